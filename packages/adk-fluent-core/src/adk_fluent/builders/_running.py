"""What every builder can do once it is complete: be looked at, compiled and run."""

# ruff: noqa: PLC0415  # ADK, asyncio and the checks are slow to import: their first use does it

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypedDict

from adk_fluent.builders._explain import explain
from adk_fluent.builders._operands import positive
from adk_fluent.builders._types import Out_co
from adk_fluent.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
    from os import PathLike
    from typing import Self, Unpack

    from google.adk.agents import BaseAgent
    from google.adk.apps import App
    from google.adk.artifacts import BaseArtifactService
    from google.adk.auth.credential_service.base_credential_service import BaseCredentialService
    from google.adk.memory import BaseMemoryService
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.runners import Runner
    from google.adk.sessions import BaseSessionService

    from adk_fluent.backends.viz import Format
    from adk_fluent.backends.viz import Options as PictureOptions
    from adk_fluent.builders._execution import Lease, Runs
    from adk_fluent.builders._types import Message
    from adk_fluent.contracts import ContractReport
    from adk_fluent.ir import ExecutionConfig, Node
    from adk_fluent.protocol import (
        AgentEvent,
        Answer,
        AnyMiddleware,
        Backend,
        EventListener,
        Pending,
        RunResult,
    )


class RunOptions(TypedDict, total=False):
    """How one run is done; keyword arguments of everything that runs.

    Attributes:
        config: How to run; None is `ExecutionConfig()`.
        user_id: Whose session it is.
        session_id: The session to go on with; None starts a new one.
        session_service: Where sessions are kept; None keeps them in memory: those that you name by
            `session_id` as long as this builder lives. One that ``run`` or ``stream`` was given no
            id for goes with the last `RunResult` of it, or with its stream, once no question is
            open in it; ``ask`` and ``map`` keep none.
        state: What a new session's state starts with.
        backend: What runs it; None is ADK.
        listeners: Who is told of every event, in order, such as `adk_fluent.backends.trace.Trace`.
        middleware: Middlewares of this run, inside those of the pipeline and of `config`.
    """

    config: ExecutionConfig | None
    user_id: str
    session_id: str | None
    session_service: BaseSessionService | None
    state: Mapping[str, Any] | None
    backend: Backend[Any] | None
    listeners: Sequence[EventListener] | None
    middleware: Sequence[AnyMiddleware] | None


class CardOptions(TypedDict, total=False):
    """What `Running.to_agent_card` takes in addition.

    Attributes:
        name: What the agent is called; None is the pipeline's name.
        version: The agent's own version.
        skills: ``a2a.types.AgentSkill`` objects in the place of those of its agents and tools.
        auth: What `A2AServer` takes as ``auth``; its security scheme is stated.
        grpc_endpoint: URL under which it is served over gRPC; None states none.
    """

    name: str | None
    version: str
    skills: Sequence[Any] | None
    auth: Any
    grpc_endpoint: str | None


class Running(Generic[Out_co]):
    """Methods that need the whole pipeline, and the backends only when they are called."""

    __slots__ = ("_runs",)

    _runs: Runs | None

    def to_ir(self) -> Node:
        """The pipeline as IR."""
        raise NotImplementedError

    # --- look ----------------------------------------------------------------------------------

    def explain(self, config: ExecutionConfig | None = None) -> str:
        """What this is, as text: each step with its model, what it reads and writes, and where."""
        return explain(self.to_ir(), config)

    def check(self) -> ContractReport:
        """Look for mistakes without running anything."""
        from adk_fluent.contracts import check_all

        return check_all(self.to_ir())

    def validate(self) -> Self:
        """Check, and raise if there are errors.

        Raises:
            ContractError: `ContractError.report` has every finding.
        """
        self.check().raise_for_errors()
        return self

    def visualize(
        self,
        format: Format | None = None,
        path: str | PathLike[str] | None = None,
        **options: Unpack[PictureOptions],
    ) -> str:
        """A picture of it: what comes after what, and who reads what whom wrote to state.

        Args:
            format: ``"svg"``, ``"html"``, ``"mermaid"`` or ``"dot"``. None goes by the end of the
                file's name; without a file it is ``"svg"``.
            path: A file that the picture is also written to.
            **options: See `adk_fluent.backends.viz.Options`.
        """
        from adk_fluent.backends import viz

        if path is None:
            return viz.render(self.to_ir(), format or "svg", **options)
        return viz.save(self.to_ir(), path, format, **options)

    def to_mermaid(self, **options: Unpack[PictureOptions]) -> str:
        """The picture as Mermaid text, for READMEs and issues; options as for `visualize`."""
        return self.visualize("mermaid", **options)

    def _repr_svg_(self) -> str | None:
        """What a notebook shows; None while something is missing."""
        try:
            return self.visualize("svg")
        except BuildError:
            return None

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What a notebook shows, and what it shows where it cannot draw."""
        picture = self._repr_svg_()
        text = {"text/plain": repr(self)}
        return text if picture is None else {"image/svg+xml": picture, **text}

    # --- compile to ADK ------------------------------------------------------------------------

    def to_agent(self, config: ExecutionConfig | None = None) -> BaseAgent:
        """A native ADK agent, such as a module-level ``root_agent``."""
        from adk_fluent.backends import adk

        return adk.to_agent(self.to_ir(), config)

    def to_app(
        self, config: ExecutionConfig | None = None, *, plugins: Sequence[BasePlugin] = ()
    ) -> App:
        """A native ADK App.

        Args:
            config: How it runs.
            plugins: Your own ADK plugins, in order.
        """
        from adk_fluent.backends import adk

        return adk.to_app(self.to_ir(), config, plugins=plugins)

    def to_runner(
        self,
        config: ExecutionConfig | None = None,
        *,
        plugins: Sequence[BasePlugin] = (),
        session_service: BaseSessionService | None = None,
        artifact_service: BaseArtifactService | None = None,
        memory_service: BaseMemoryService | None = None,
        credential_service: BaseCredentialService | None = None,
    ) -> Runner:
        """A native ADK Runner; services that are not given are kept in memory."""
        from adk_fluent.backends import adk

        return adk.to_runner(
            self.to_ir(),
            config,
            plugins=plugins,
            session_service=session_service,
            artifact_service=artifact_service,
            memory_service=memory_service,
            credential_service=credential_service,
        )

    def to_agent_card(
        self, *, description: str | None = None, endpoint: str, **options: Unpack[CardOptions]
    ) -> Any:
        """An A2A agent card that advertises the pipeline: an ``a2a.types.AgentCard``.

        Args:
            description: What it does; None takes the pipeline's own description.
            endpoint: URL under which it is served.
            **options: See `CardOptions`.

        Raises:
            MissingLayerError: The layer ``a2a`` is not installed.
            UsageError: The endpoint is not a URL that a card can state, or a skill is not one.
        """
        from adk_fluent._registry import provided, require_layer

        require_layer("a2a", ".to_agent_card(...)")
        (make,) = (each.object for each in provided("agent_cards") if each.layer == "a2a")
        return make(self.to_ir(), description=description, endpoint=endpoint, **options)

    # --- run -----------------------------------------------------------------------------------

    async def run(self, message: Message, **options: Unpack[RunOptions]) -> RunResult[Out_co]:
        """Run to the end.

        Args:
            message: What the user says: text, a Part, a Content, or a list of those.
            **options: See `RunOptions`.

        Returns:
            The events in order; it also has the answer, as text and as a value of its type, the
            final state and what it used.
        """
        from adk_fluent.builders._outputs import with_types

        return with_types(await self._run(message, options, remember=True), self.to_ir())

    def stream(
        self, message: Message, **options: Unpack[RunOptions]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run, and give each event as it comes; closing the generator ends the run.

        Args:
            message: What the user says: text, a Part, a Content, or a list of those.
            **options: See `RunOptions`.
        """
        from adk_fluent.builders._execution import hold

        runs, backend, compiled, rest, lease = self._ready(message, options, remember=True)
        followed = runs.follow(compiled, lease, backend.stream(compiled, message, **rest))
        if lease is not None:
            hold(lease, followed)
        return followed

    async def resume(self, *answers: Answer, **options: Unpack[RunOptions]) -> RunResult[Out_co]:
        """Go on with the run of a session: one that waits, that failed, or whose process died.

        Args:
            *answers: Answers to what it waits on, as ``result.pending[0].answer(True)``. Without
                one it goes on where it failed or was cut off; for the latter it must have been run
                with ``ExecutionConfig(resumable=True)``.
            **options: See `RunOptions`; ``session_id`` and the ``session_service`` of that run.

        Returns:
            What happened from there on.

        Raises:
            SessionError: There is no such run or question, or somebody else goes on with the run.
            PlanChangedError: The pipeline has other steps than the one that was run.
            UsageError: What was answered is no answer.
        """
        from adk_fluent.builders._execution import check_answers
        from adk_fluent.protocol import Resume

        check_answers(answers)
        return await self.run(Resume(answers), **options)

    async def pending(
        self,
        *,
        session_id: str,
        user_id: str = "user",
        session_service: BaseSessionService | None = None,
        config: ExecutionConfig | None = None,
    ) -> list[Pending]:
        """The questions that the run of a session waits on; empty when none waits.

        Args:
            session_id: The session.
            user_id: Whose session it is.
            session_service: Where it is kept; None is this builder's memory.
            config: How it was run.

        Raises:
            SessionError: There is no such session.
        """
        runs = self._kept()
        return await runs.adk.pending(
            runs.compiled(self.to_ir(), config, None),
            user_id=user_id,
            session_id=session_id,
            session_service=session_service,
        )

    async def ask_async(self, message: Message, **options: Unpack[RunOptions]) -> str:
        """Run, and return the answer's text.

        Args:
            message: What the user says: text, a Part, a Content, or a list of those.
            **options: See `RunOptions`.

        Raises:
            AgentReportedError: There is no answer, for an agent reported an error instead, such as
                a blocked prompt; ``run`` gives what there is.
            SessionError: There is no answer, for the run waits for one itself; ``run`` gives its
                questions, and ``resume`` goes on.
        """
        from adk_fluent.builders._execution import unanswered, waits

        remember = options.get("session_id") is not None
        result = await self._run(message, options, remember=remember)
        text = result.text
        if result.pending:
            raise waits(result, self.to_ir())
        if not text and result.errors:
            raise unanswered(result, self.to_ir())
        return text

    def ask(self, message: Message, **options: Unpack[RunOptions]) -> str:
        """Run, and return the answer's text; for code that is not async.

        Args:
            message: What the user says: text, a Part, a Content, or a list of those.
            **options: See `RunOptions`.

        Raises:
            UsageError: An event loop is running; use `ask_async` there.
        """
        from adk_fluent.builders._execution import run_sync

        return run_sync("ask", lambda: self.ask_async(message, **options))

    async def map_async(
        self, messages: Iterable[Message], *, concurrency: int = 10, **options: Unpack[RunOptions]
    ) -> list[str]:
        """Run once for each message; the answers are in the order of the messages.

        The first run that fails cancels those under way, and its error is raised.

        Args:
            messages: What the user says in each run.
            concurrency: Runs at the same time, at most.
            **options: See `RunOptions`.
        """
        from adk_fluent.builders._execution import run_each

        positive(concurrency, "concurrency", whole=True)
        return await run_each(messages, lambda m: self.ask_async(m, **options), concurrency)

    def map(
        self, messages: Iterable[Message], *, concurrency: int = 10, **options: Unpack[RunOptions]
    ) -> list[str]:
        """Run once for each message, as `map_async` does; for code that is not async.

        Args:
            messages: What the user says in each run.
            concurrency: Runs at the same time, at most.
            **options: See `RunOptions`.

        Raises:
            UsageError: An event loop is running; use `map_async` there.
        """
        positive(concurrency, "concurrency", whole=True)
        from adk_fluent.builders._execution import run_sync

        return run_sync("map", lambda: self.map_async(messages, concurrency=concurrency, **options))

    async def rewind(
        self,
        *,
        session_id: str,
        before_invocation_id: str,
        user_id: str = "user",
        session_service: BaseSessionService | None = None,
        config: ExecutionConfig | None = None,
    ) -> None:
        """Take back a run and everything after it from a session.

        Args:
            session_id: The session.
            before_invocation_id: The first run that is taken back.
            user_id: Whose session it is.
            session_service: Where it is kept; None is this builder's memory.
            config: How it was run.
        """
        runs = self._kept()
        await runs.adk.rewind(
            runs.compiled(self.to_ir(), config, None),
            user_id=user_id,
            session_id=session_id,
            before_invocation_id=before_invocation_id,
            session_service=session_service,
        )

    async def aclose(self) -> None:
        """Tidy up injected resources that live longer than a run, in every app and session."""
        from adk_fluent.backends._resources import Injection
        from adk_fluent.ir import AppNode

        node = self.to_ir()
        await Injection(node.resources if isinstance(node, AppNode) else ()).close()

    def close(self) -> None:
        """The same as `aclose`, for code that is not async.

        Raises:
            UsageError: An event loop is running; use `aclose` there.
        """
        from adk_fluent.builders._execution import run_sync

        run_sync("close", self.aclose, instead="aclose")

    async def _run(self, message: Message, options: RunOptions, *, remember: bool) -> RunResult:
        from adk_fluent.builders._execution import hold

        runs, backend, compiled, rest, lease = self._ready(message, options, remember=remember)
        brief: Any = backend if not remember and options.get("backend") is None else None
        try:
            result = await backend.run(compiled, message, **rest)
        finally:
            if brief is not None:  # an ADK backend made for this run: its session ends with it
                await brief.aclose()
        if lease is not None:
            hold(lease, result)
            await runs.settle(compiled, lease, asks=bool(result.pending))
        return result

    def _ready(
        self, message: Message, options: RunOptions, *, remember: bool
    ) -> tuple[Runs, Backend[Any], Any, dict[str, Any], Lease | None]:
        """What runs, the compiled pipeline, the run's own options, and what keeps its session."""
        from adk_fluent.builders._execution import check_options, new_adk, with_middlewares

        check_options(options)
        given: dict[str, Any] = {k: v for k, v in options.items() if v is not None}
        backend, config = given.pop("backend", None), given.pop("config", None)
        runs, ir = self._kept(), self.to_ir()
        if (more := given.pop("middleware", None)) is not None:
            config = with_middlewares(config, ir, more)
        compiled = runs.compiled(ir, config, backend)
        if backend is not None or not remember:
            return runs, backend or new_adk(), compiled, given, None
        kept_here = "session_service" not in given
        lease = runs.lease(compiled, message, given) if kept_here else None
        return runs, runs.adk, compiled, given, lease

    def _kept(self) -> Runs:
        from adk_fluent.builders._execution import LOCK, Runs

        with LOCK:  # two threads that run this for the first time share its sessions
            if self._runs is None:
                self._runs = Runs()
            return self._runs
