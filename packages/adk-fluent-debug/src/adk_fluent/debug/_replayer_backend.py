"""Replaying: a backend on which no model is asked and no tool runs."""

from __future__ import annotations

from contextlib import ExitStack, aclosing
from functools import cached_property
from typing import TYPE_CHECKING, Any

from adk_fluent.debug._tape import Tapes
from adk_fluent.errors import UsageError
from adk_fluent.extend import LOG, middleware_everywhere
from adk_fluent.protocol import BackendBase, resume_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from typing import Self

    from adk_fluent.debug._recorded_run import Data
    from adk_fluent.debug._recording import Recording
    from adk_fluent.ir import ExecutionConfig, Node
    from adk_fluent.protocol import AgentEvent, RunResult


class ReplayerBackend(Tapes, BackendBase[Any]):
    """Runs a pipeline on ADK, with every answer of models and tools from a recording.

    ::

        recording = Recording.load("recordings/order.json")
        result = await pipeline.run("Where is order A1?", backend=ReplayerBackend(recording))

    The first run replays the first run of the recording, and so on; a run whose message was
    recorded replays that one. When all were replayed, they begin anew. A new session begins with
    the state and the history that were recorded, unless ``state=`` is given.

    Args:
        recording: What is replayed, or its file.
        on_mismatch: What a call is answered that was not recorded so: ``"error"`` raises
            `ReplayMismatchError`; ``"skip"`` answers with nothing; ``"live"`` asks the model or
            tool itself; ``"live_then_record"`` does so, too, and records the run (`recorded`).
        tools: ``"replay"`` answers tool calls from the recording and does to state and actions what
            the tools did; ``"live"`` runs the tools; a mapping says it for each tool by name, and
            those that it does not name are replayed.
        redact: What was taken out of the recording, as it was given to the `Recorder`.
        session_service: Where sessions are kept; None keeps them in memory.
        patience: Seconds to wait for something that was recorded and does not happen, before the
            recorded order is given up; and ten times as long for a call to be cancelled that was.

    Attributes:
        recording: What is replayed.
        redaction: What is taken out of calls before they are compared.
        missed: How many calls were made that were not recorded.
        begun: How many runs have begun to be replayed.
        cancels: Runs that were cancelled are cancelled here, as `replay` has it; False leaves that
            to whoever runs them, as it was when they were recorded.

    Raises:
        UsageError: An argument cannot be used, or the recording holds no content.
        UnknownNameError: There is no such mode.
        RecordingFileError: The file cannot be read.
    """

    def __enter__(self) -> Self:
        """Replay every run of a pipeline that is compiled in this block, whatever its backend."""
        self._blocks.append((self._block(), self.begun))
        return self

    def __exit__(self, *error: object) -> None:
        """Replay no further runs; that there were none is logged."""
        block, before = self._blocks.pop()
        block.close()
        if self.begun == before and error[0] is None:
            LOG.warning(
                "no run was replayed in this block: a block reaches pipelines that are compiled "
                "in it, and no other threads; give those pipeline.run(..., backend=)"
            )

    def _block(self) -> ExitStack:
        from adk_fluent.debug._run_replayer import RunReplayer  # noqa: PLC0415  # ADK, when it is used

        stack = ExitStack()
        if self._recorder is not None:
            stack.enter_context(self._recorder)
        stack.enter_context(middleware_everywhere(RunReplayer(self)))
        return stack

    def __getstate__(self) -> Data:
        return {key: each for key, each in self.__dict__.items() if key != "_adk"}

    # --- a backend -----------------------------------------------------------------------------

    def compile(self, node: Node, config: ExecutionConfig | None = None) -> Any:
        """Compile a pipeline, with the recording in the place of its models and tools."""
        with self._block():
            return self._adk.compile(node, config)

    async def stream(
        self, compiled: Any, prompt: Any, **kwargs: Any
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run, and yield each event when it happens; arguments as for `ADKBackend.stream`."""
        kwargs = await self._seeded(compiled, prompt, kwargs)
        async with aclosing(self._adk.stream(compiled, prompt, **kwargs)) as events:
            async for event in events:
                yield event

    async def run(self, compiled: Any, prompt: Any, **kwargs: Any) -> RunResult:
        """Run to the end; arguments as for `ADKBackend.run`.

        Raises:
            ReplayMismatchError: It asks for something else than was recorded.
            PipelineMismatchError: The recording is of another pipeline.
            Exception: Whatever the recorded run raised, with its own type.
        """
        kwargs = await self._seeded(compiled, prompt, kwargs)
        return await self._adk.run(compiled, prompt, **kwargs)

    @cached_property
    def _adk(self) -> Any:
        from adk_fluent.backends.adk import ADKBackend  # noqa: PLC0415  # ADK, when it is used

        return ADKBackend(self._service)

    async def _seeded(self, compiled: Any, prompt: Any, options: Data) -> Data:
        """The options of a run, in a session that is as it was when the recorded run began."""
        from adk_fluent.backends.adk import to_content  # noqa: PLC0415  # ADK, when it is used
        from adk_fluent.debug._adk import dump_content, seed  # noqa: PLC0415  # the same

        if options.get("state") is not None or resume_of(prompt) is not None:
            return options
        run = self.recording.runs[self.next_run(dump_content(to_content(prompt)))]
        service = options.get("session_service") or self._adk.session_service
        app, user = compiled.config.app_name, options.get("user_id") or "user"
        wanted = options.get("session_id")
        ids = {"app_name": app, "user_id": user, "session_id": wanted}
        if (wanted is not None and await service.get_session(**ids) is not None) or not (
            run.state or run.data.get("history")
        ):
            return options
        return {**options, "session_id": await seed(service, app, user, wanted, run.data)}

    # --- what was replayed ---------------------------------------------------------------------

    @property
    def recorded(self) -> Recording:
        """The runs as they went now, to be saved in the place of the recording.

        Raises:
            UsageError: `on_mismatch` is not ``"live_then_record"``.
        """
        if self._recorder is None:
            raise UsageError(
                "nothing was recorded in this replay",
                help="ReplayerBackend(recording, on_mismatch='live_then_record')",
            )
        return self._recorder.recording
