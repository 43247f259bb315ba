"""Where a context keeps state."""

from __future__ import annotations

import sys
from types import MappingProxyType
from typing import Any, Final

from adk_fluent.errors import UsageError
from adk_fluent.extend import describe

_NO_STATE: Final = frozenset({str, bytes, list, tuple})  # these have items, and no keys
_SESSION: Final = "google.adk.sessions.session"
#: Contexts of ADK's that simply have a `state`: found once, since binding is done often.
KNOWN: Final[set[type]] = set()


def state_of(context: Any) -> Any:
    """The state of a context: what has ``[key]``, and ``[key] = value`` where it may be written.

    Args:
        context: A ToolContext, CallbackContext, ReadonlyContext, InvocationContext or Session of
            ADK's; what a hook of a middleware or a function step is given; a dict.

    Raises:
        UsageError: It has no state.
    """
    found = None if isinstance(context, type) else _found(context)
    if found is None:
        raise UsageError(
            "bind(...) takes a context that has state",
            found=describe(context),
            help="pass what the tool, callback, hook or function step is given: "
            "its context or state",
        )
    return found


def _found(context: Any) -> Any:
    state: Any = getattr(context, "__state__", None)  # a bound schema
    if state is not None:
        return state
    state = getattr(context, "state", None)
    if hasattr(state, "__getitem__"):
        kind: type = context.__class__
        if _is_session(context):
            return MappingProxyType(state)
        if kind.__module__.startswith("google.adk.") and hasattr(kind, "state"):
            KNOWN.add(kind)
        return state
    if hasattr(context, "__getitem__") and type(context) not in _NO_STATE:
        return context
    session: Any = getattr(context, "session", None)
    if _is_session(session):  # of an InvocationContext
        return MappingProxyType(session.state)
    inner: Any = getattr(context, "ctx", None)  # a call that a middleware wraps
    return None if inner is None else _found(inner)


def _is_session(context: object) -> bool:
    """Whether it is ADK's Session: what is written to its state is stored by nobody."""
    module = sys.modules.get(_SESSION)
    return module is not None and isinstance(context, module.Session)
