"""State through a schema, and bare, on a context of ADK's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.agents.invocation_context import InvocationContext
from google.adk.sessions.session import Session
from google.adk.tools.tool_context import ToolContext

from adk_fluent.state import SessionScoped, StateSchema, UserScoped, field

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.side.worker import Task


class Desk(StateSchema):
    """As much as a small pipeline has."""

    intent: SessionScoped[str]
    confidence: SessionScoped[float]
    tier: UserScoped[str] = field(default="free")
    tags: SessionScoped[list[str]] = field(default_factory=list)


def _context() -> ToolContext:
    state = {"intent": "refund"}
    session = Session(id="1", app_name="bench", user_id="user", state=state)
    return ToolContext(InvocationContext.model_construct(session=session))


def bind_read(size: int) -> Callable[[], str]:
    """Bind a context, and read a text."""
    context, bind = _context(), Desk.bind
    return lambda: bind(context).intent


def bare_read(size: int) -> Callable[[], str]:
    """Read a text."""
    context = _context()
    return lambda: context.state["intent"]


def bound_write(size: int) -> Callable[[], str]:
    """Write a text to what is bound."""
    desk = Desk.bind(_context())

    def once() -> str:
        desk.intent = "refund"
        return "refund"

    return once


def bare_write(size: int) -> Callable[[], str]:
    """Write a text."""
    state = _context().state

    def once() -> str:
        state["intent"] = "refund"
        return "refund"

    return once


TASKS: dict[str, Task] = {
    "bind-read": bind_read,
    "bare-read": bare_read,
    "bound-write": bound_write,
    "bare-write": bare_write,
}
