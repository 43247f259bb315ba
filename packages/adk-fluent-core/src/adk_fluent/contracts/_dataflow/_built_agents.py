"""What agents that were built by hand do to state, as far as their plain data says it.

That is the keys of `output_key`, and of the placeholders of an instruction that is text. What their
code does, such as callbacks and tools, stays unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._template import placeholders

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.ir import StateFieldRef

_RUN: Final = "_run_async_impl"
_AGENTS: Final = "google.adk.agents."
_KINDS: Final = {
    f"{_AGENTS}llm_agent:LlmAgent": "LlmAgent",
    f"{_AGENTS}sequential_agent:SequentialAgent": "SequentialAgent",
    f"{_AGENTS}parallel_agent:ParallelAgent": "ParallelAgent",
    f"{_AGENTS}loop_agent:LoopAgent": "LoopAgent",
}


@dataclass(frozen=True, slots=True)
class BuiltAgent:
    """One agent of ADK's, as its data has it.

    Attributes:
        name: Its name.
        kind: The class of ADK's that it is of, or "" for one of the user's own.
        reads: The keys that its instruction is filled with.
        writes: The key that it writes its answer to, if any.
        starts_with_code: Whether code runs before its instruction is filled.
        has_code: Whether code runs at all that may write state.
        below: The agents that it holds.
    """

    name: str
    kind: str
    reads: tuple[StateFieldRef, ...]
    writes: str | None
    starts_with_code: bool
    has_code: bool
    below: tuple[BuiltAgent, ...]


def built_agent(agent: Any) -> BuiltAgent:
    """Read the data of an ADK agent, and of those below it."""
    kind = _kind(agent)
    is_model = kind == "LlmAgent"
    text = getattr(agent, "instruction", None) if is_model else None
    key = getattr(agent, "output_key", None) if is_model else None
    before = bool(getattr(agent, "before_agent_callback", None))
    code = ("tools", "planner", "code_executor") if is_model else ()
    cls = cast("type[Any]", type(agent))
    fields = cast("Iterable[str]", getattr(cls, "model_fields", ()))
    callbacks = [name for name in fields if name.endswith("_callback")]
    below = cast("Iterable[Any]", getattr(agent, "sub_agents", None) or ())
    return BuiltAgent(
        str(getattr(agent, "name", "")),
        kind,
        placeholders(text) if isinstance(text, str) else (),
        key if isinstance(key, str) and key else None,
        starts_with_code=before,
        has_code=not kind or any(getattr(agent, name, None) for name in (*code, *callbacks)),
        below=tuple(built_agent(each) for each in below),
    )


def _kind(agent: Any) -> str:
    cls = cast("type[Any]", type(agent))
    for base in cls.__mro__:
        if found := _KINDS.get(f"{base.__module__}:{base.__name__}"):
            same = getattr(cls, _RUN, None) is getattr(base, _RUN, None)
            return found if same else ""  # one of the user's own, which runs in its own way
    return ""
