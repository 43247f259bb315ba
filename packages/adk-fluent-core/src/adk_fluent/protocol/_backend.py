"""What compiles IR and what runs it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.ir import ExecutionConfig, Node
    from adk_fluent.protocol._event import AgentEvent
    from adk_fluent.protocol._result import RunResult

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@runtime_checkable
class Compiler(Protocol[T_co]):
    """Turns IR into something else: an ADK app, a diagram, an estimate."""

    def compile(self, node: Node, config: ExecutionConfig | None = None) -> T_co:
        """Turn IR into what this compiler makes.

        Raises:
            MissingLayerError: A node's layer is not installed.
            UnsupportedNodeError: There is no rule for a node.
        """
        ...


@runtime_checkable
class Backend(Compiler[T], Protocol[T]):
    """A compiler whose results can run.

    Each call gives what happens in it. One that goes on with a run that waited, failed or was cut
    off (its prompt is a `Resume`) gives what happens from there on; what came before is in the
    session. A run from its beginning is what those give who look at runs, not at calls:
    ``ADKBackend.recall``, the engines of ``adk_fluent.distributed``, and tasks of an A2A server.
    """

    def stream(self, compiled: T, prompt: Any, **kwargs: Any) -> AsyncGenerator[AgentEvent, None]:
        """Run, and yield each event when it happens.

        Args:
            compiled: What `compile` returned.
            prompt: Text, or what else the backend takes (ADK: Content, Part, a list of them).
            **kwargs: ``user_id``, ``session_id`` and what else the backend takes.
        """
        ...

    async def run(self, compiled: T, prompt: Any, **kwargs: Any) -> RunResult:
        """Run to the end; arguments as for `stream`."""
        ...


class BackendBase(ABC, Generic[T]):
    """A backend that needs `compile` and `stream` only; `run` collects what `stream` yields."""

    @abstractmethod
    def compile(self, node: Node, config: ExecutionConfig | None = None) -> T:
        """Turn IR into what this backend runs."""

    @abstractmethod
    def stream(self, compiled: T, prompt: Any, **kwargs: Any) -> AsyncGenerator[AgentEvent, None]:
        """Run, and yield each event when it happens."""

    async def run(self, compiled: T, prompt: Any, **kwargs: Any) -> RunResult:
        """Run to the end and return the events.

        The result's state is what the events wrote; a backend that knows the session overrides it.
        """
        from adk_fluent.protocol._discarded import collect_discarded  # noqa: PLC0415  # when it runs
        from adk_fluent.protocol._result import RunResult  # noqa: PLC0415  # the same

        with collect_discarded() as discarded:
            async with aclosing(self.stream(compiled, prompt, **kwargs)) as stream:
                events = [event async for event in stream]
        return RunResult(
            events,
            session_id=kwargs.get("session_id") or "",
            user_id=kwargs.get("user_id") or "",
            discarded=discarded,
        )
