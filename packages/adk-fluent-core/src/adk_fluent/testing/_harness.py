"""A conversation with a pipeline, for tests."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from adk_fluent._words import describe
from adk_fluent.builders._execution import check_options, new_adk, run_sync
from adk_fluent.builders._outputs import with_types
from adk_fluent.errors import UsageError
from adk_fluent.ir import Node
from adk_fluent.protocol import RunResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.builders._running import Running
    from adk_fluent.builders._types import Message
    from adk_fluent.ir import ExecutionConfig
    from adk_fluent.protocol import AgentEvent, Backend, ToolCallInfo


class HarnessResult(RunResult[Any]):
    """What came of one message: a `RunResult`, and what tests like to look at.

    Attributes:
        message: What was sent.
    """

    def __init__(self, result: RunResult, message: Message) -> None:
        super().__init__(
            result,
            state=result.state,
            session_id=result.session_id,
            user_id=result.user_id,
            app_name=result.app_name,
            discarded=result.discarded,
        )
        self.types: Mapping[str, Any] | None = result.types
        self.message = message

    @property
    def final_text(self) -> str:
        """The answer; the same as `text`."""
        return self.text

    @property
    def events(self) -> list[AgentEvent]:
        """The events, in order; partial ones are left out."""
        return [event for event in self if not event.is_partial]

    @property
    def tool_calls(self) -> list[ToolCallInfo]:
        """The tools that were called, in order."""
        return [call for event in self.events for call in event.tool_calls]


class AgentHarness:
    """Sends messages to a pipeline, all of them in one session.

    What a step raises is raised by `send`, with its own type; the session goes on with the next
    message. Errors that agents report are in the result's `errors`.

    Example:
        >>> harness = AgentHarness(desk, backend=mock_backend({"desk": ["Hello!", "Bye!"]}))
        >>> assert (await harness.send("Hi.")).final_text == "Hello!"
        >>> assert (await harness.send("Bye.")).errors == []

    Args:
        pipeline: A builder, or IR.
        backend: What runs it; None is ADK, with sessions in memory that only this harness sees.
        config: How it runs.
        user_id: Whose session it is.
        session_id: The session; None starts a new one.
        state: What the session's state starts with.
    """

    def __init__(
        self,
        pipeline: Running | Node,
        *,
        backend: Backend[Any] | None = None,
        config: ExecutionConfig | None = None,
        user_id: str = "user",
        session_id: str | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        if not isinstance(pipeline, Node) and not hasattr(pipeline, "to_ir"):
            raise UsageError(
                f"{describe(pipeline)} is no pipeline",
                help="give a builder such as Agent(...) >> Agent(...), or IR",
            )
        check_options(
            {"backend": backend, "config": config, "user_id": user_id, "session_id": session_id}
        )
        self.session_id: str = session_id or f"harness-{uuid.uuid4().hex}"
        self.user_id = user_id
        self._pipeline, self._backend, self._config = pipeline, backend, config
        self._state = dict(state or {})
        self._results: list[HarnessResult] = []
        self._compiled: tuple[Node, Any] | None = None

    @property
    def results(self) -> tuple[HarnessResult, ...]:
        """What came of each message so far."""
        return tuple(self._results)

    @property
    def state(self) -> dict[str, Any]:
        """Session state after the last message that came to its end."""
        return self._results[-1].state if self._results else self._state

    async def send(self, message: Message) -> HarnessResult:
        """Send a message, and wait until the run comes to its end.

        Args:
            message: What the user says: text, a Part, a Content, or a list of those.

        Raises:
            Exception: Whatever a step raised, with its own type.
        """
        backend = self._backend = self._backend or new_adk()
        result = await backend.run(
            self._ready(backend),
            message,
            user_id=self.user_id,
            session_id=self.session_id,
            state=self._state,
        )
        self._results.append(HarnessResult(with_types(result, self._ir()), message))
        return self._results[-1]

    def send_sync(self, message: Message) -> HarnessResult:
        """Send a message from a test that is not async.

        Args:
            message: What the user says: text, a Part, a Content, or a list of those.

        Raises:
            UsageError: An event loop is running; use `send` there.
            Exception: Whatever a step raised, with its own type.
        """
        return run_sync("send_sync", lambda: self.send(message), instead="send")

    def _ir(self) -> Node:
        pipeline = self._pipeline
        return pipeline if isinstance(pipeline, Node) else pipeline.to_ir()

    def _ready(self, backend: Backend[Any]) -> Any:
        """The compiled pipeline, as it is now."""
        ir = self._ir()
        if self._compiled is None or self._compiled[0] is not ir:
            self._compiled = ir, backend.compile(ir, self._config)
        return self._compiled[1]
