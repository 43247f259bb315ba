"""The middlewares of one run as the call sites use them, and how the sites find them."""

from __future__ import annotations

from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.protocol import fresh

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from adk_fluent.ir import AgentNode

_KEY: Final = "_adk_fluent_chain"

#: The chain of the run whose tool is running: a tool may run agents in a session of their own.
CALLER: ContextVar[Chain | None] = ContextVar("adk_fluent_caller", default=None)


class Chain:
    """What stands around every model call and tool call of a run.

    Args:
        stack: The middlewares, outermost first.
        nodes: The nodes of agents that were built here, by name.
        run: Identity of the run.
        outer: The chain of the flow that this one is part of.
    """

    __slots__ = ("_calls", "_nodes", "model_hooks", "run", "stack", "tool_hooks")

    def __init__(
        self,
        stack: Sequence[Any],
        nodes: Mapping[str, AgentNode],
        run: str,
        outer: Chain | None = None,
    ) -> None:
        own = [fresh(each) for each in stack]
        self.stack: list[Any] = own if outer is None else [*outer.stack, *own]
        self.run = run
        self.model_hooks = [m.wrap_model_call for m in self.stack if _has(m, "wrap_model_call")]
        self.tool_hooks = [m.wrap_tool_call for m in self.stack if _has(m, "wrap_tool_call")]
        self._nodes = nodes
        self._calls: dict[int, tuple[object, int]] = {}

    def node(self, agent: str) -> AgentNode | None:
        """The node of an agent that was built here."""
        return self._nodes.get(agent)

    def count(self, context: object) -> int:
        """How often this was called with a context before; each run of an agent has its own."""
        _, times = self._calls.get(id(context), (context, 0))
        self._calls[id(context)] = (context, times + 1)  # kept, so that its id stays its own
        return times


def _has(middleware: object, hook: str) -> bool:
    return getattr(middleware, hook, None) is not None


def compose(hooks: Sequence[Any], innermost: Callable[[Any], Awaitable[Any]]) -> Any:
    """The hooks around the thing itself, the first one outermost."""
    following: Any = innermost
    for hook in reversed(hooks):
        following = partial(_call, hook, following)
    return following


def _call(hook: Any, following: Any, call: Any) -> Awaitable[Any]:
    return hook(call, following)


# --- where it is kept: in the context of the run's root, and so in every copy of that ------------


def attach(context: Any, chain: Chain) -> None:
    """Let everything that runs in a context, or in a copy of it, find the chain."""
    context.__dict__[_KEY] = chain


def attached(context: Any) -> Chain | None:
    """The chain of an InvocationContext, or of the tool that runs it."""
    chain: Chain | None = context.__dict__.get(_KEY)
    return CALLER.get() if chain is None else chain


def invocation_of(context: Any) -> Any:
    """The InvocationContext behind a CallbackContext, ToolContext or Context."""
    return context._invocation_context  # noqa: SLF001  # 2.x has a method for it, 1.x does not
