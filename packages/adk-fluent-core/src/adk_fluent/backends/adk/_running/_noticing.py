"""How the flows of a run find its listeners: in ADK's configuration of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.backends._listeners import Listeners, Notices

if TYPE_CHECKING:
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.agents.run_config import RunConfig

    from adk_fluent.backends.adk._running._leaf import AdkLeaf

#: A key of its ``__dict__``, which ADK carries on into every copy.
_KEY: Final = "_adk_fluent_listeners"


def announce_to(config: RunConfig, session_id: str, listeners: Listeners) -> None:
    """Let the flows of a run find its listeners."""
    if listeners.want_notices:
        vars(config)[_KEY] = (session_id, listeners)


def notices(ctx: InvocationContext, leaf: AdkLeaf) -> Notices | None:
    """What tells the listeners of a run; None if nobody wants to know."""
    config = ctx.run_config
    session_id, listeners = (config and vars(config).get(_KEY)) or (None, None)
    # 2.x hands the configuration on to runs of agents that are tools; nobody hears their events
    if listeners is None or ctx.session.id != session_id:
        return None
    return Notices(listeners, leaf.notice)
