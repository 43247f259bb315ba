"""Questions that stand open in a session of ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.backends.adk._waiting._inbox import questions
from adk_fluent.backends.adk._waiting._journal import load

if TYPE_CHECKING:
    from google.adk.sessions.session import Session

    from adk_fluent.backends.adk import Compiled
    from adk_fluent.protocol import Pending


def open_questions(compiled: Compiled, session: Session | None) -> list[Pending]:
    """What the run of a pipeline in a session waits on."""
    entry = None if session is None else load(session.state, compiled.root.name)
    if session is None or entry is None or entry.status != "waiting":
        return []
    return questions(session.events, entry.waits)
