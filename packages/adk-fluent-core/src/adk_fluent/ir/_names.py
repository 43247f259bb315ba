"""Names and state keys that ADK or adk-fluent keep for themselves."""

from __future__ import annotations

from typing import Final

_TAKEN: Final = {
    "user": "ADK calls the person who talks to the agents `user`",
    "START": "ADK calls the entry of a graph `START`",
    "__START__": "ADK calls the entry of a graph `__START__`",
}
_PREFIX: Final = "_adk"
_MIDDLEWARES: Final = "adk_fluent_"
_KEYS: Final = frozenset(
    {
        "__session_metadata__",  # where `adk web` keeps a session's title
        "__llm_request_key__",  # of a model call, while ADK evaluates
        # what ADK keeps of the code that agents run
        *("_code_execution_context", "_code_execution_results"),
        *("_code_executor_error_counts", "_code_executor_input_files"),
    }
)


def why_reserved(name: str) -> str | None:
    """Why no node may be called so; None when it may."""
    if name.startswith(_PREFIX):
        return f"names that start with `{_PREFIX}` are kept for ADK"
    return _TAKEN.get(name)


def is_reserved_key(key: str) -> bool:
    """Whether a state key, without its scope prefix, is none of the user's."""
    return key.startswith(_PREFIX) or key in _KEYS


def is_kept_key(key: str) -> bool:
    """Whether a state key, without its scope prefix, is no step's: ADK's, or a middleware's.

    Middlewares count and remember under such keys; functions may read them.
    """
    return key.startswith(_MIDDLEWARES) or is_reserved_key(key)
