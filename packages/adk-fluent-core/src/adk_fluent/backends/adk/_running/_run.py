"""Running compiled pipelines on ADK's own Runner."""

from __future__ import annotations

from contextlib import AsyncExitStack, aclosing
from dataclasses import fields
from functools import partial
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.events.event import Event
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent.backends._config import check_state
from adk_fluent.backends._listeners import Listeners
from adk_fluent.backends._resources import Owner, close_gone, session_is_gone
from adk_fluent.backends._resuming import check_free
from adk_fluent.backends.adk._config import run_config
from adk_fluent.backends.adk._lowering._compile import Compiled, compile_ir
from adk_fluent.backends.adk._lowering._values import to_content
from adk_fluent.backends.adk._running._noticing import announce_to
from adk_fluent.backends.adk._running._root import FlowAgent
from adk_fluent.backends.adk._session._events import to_agent_event
from adk_fluent.backends.adk._session._sessions import (
    existing_session,
    open_session,
    readable_store,
)
from adk_fluent.backends.adk._session._stamps import kept_state, stamp_of
from adk_fluent.backends.adk._waiting._answering import Start, going_on, open_questions
from adk_fluent.backends.adk._waiting._claim import given_up, release
from adk_fluent.backends.adk._waiting._journal import load
from adk_fluent.backends.adk._waiting._rewind import RewindingSessions
from adk_fluent.errors import (
    SessionError,
    UnknownNameError,
    UnsupportedConfigError,
    UsageError,
    nearest_name,
    unwrap,
)
from adk_fluent.ir import ExecutionConfig
from adk_fluent.protocol import BackendBase, RunResult, collect_discarded, collect_notes, resume_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Iterable, Mapping

    from google.adk.apps.app import App
    from google.adk.artifacts.base_artifact_service import BaseArtifactService
    from google.adk.auth.credential_service.base_credential_service import BaseCredentialService
    from google.adk.memory.base_memory_service import BaseMemoryService
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.adk.sessions.session import Session

    from adk_fluent.ir import Node
    from adk_fluent.protocol import AgentEvent, EventListener, JournalEntry, Pending

USER: Final = "user"
_BOOKKEEPING: Final = ("journal", "claim")
_OTHERS: Final = ("backend", "config")  # which builders take


class Recalled:
    """A session as it was when it was read.

    Attributes:
        entry: Where its run stands; None when it is over, or there was none.
    """

    __slots__ = ("_session", "entry")

    def __init__(self, entry: JournalEntry | None, session: Session) -> None:
        self.entry: JournalEntry | None = entry
        self._session = session

    @property
    def is_begun(self) -> bool:
        """Whether a run has put out anything."""
        return self.entry is not None or any(e.author != USER for e in self._session.events)

    def result(self) -> RunResult:
        """What ``run`` would have returned, for all runs together; ``pending`` is what is open."""
        session, waits = self._session, () if self.entry is None else self.entry.waits
        told = [
            to_agent_event(event)
            for event in session.events
            if event.author != USER and not _is_bookkeeping(event)
        ]
        for event in told:  # what was asked and answered is no question any more
            event.pending = tuple(each for each in event.pending if each.id in waits)
        return RunResult(
            told,
            state=kept_state(session.state),
            session_id=session.id,
            user_id=session.user_id,
            app_name=session.app_name,
        )


class ADKBackend(BackendBase[Compiled]):
    """Runs pipelines on ADK.

    One backend may do any number of runs at the same time, also of one pipeline.

    Args:
        session_service: Where sessions are kept; None keeps them in memory, as long as the backend
            lives.
        artifact_service: Where artifacts are kept; None is memory.
        memory_service: What agents remember beyond a session; None is memory.
        credential_service: Where credentials of tools are kept.
    """

    def __init__(
        self,
        session_service: BaseSessionService | None = None,
        artifact_service: BaseArtifactService | None = None,
        memory_service: BaseMemoryService | None = None,
        credential_service: BaseCredentialService | None = None,
    ) -> None:
        self.session_service: BaseSessionService = session_service or InMemorySessionService()
        self.artifact_service: BaseArtifactService = artifact_service or InMemoryArtifactService()
        self.memory_service: BaseMemoryService = memory_service or InMemoryMemoryService()
        self.credential_service = credential_service
        self._runners: WeakKeyDictionary[Compiled, Runner] = WeakKeyDictionary()

    def compile(self, node: Node, config: ExecutionConfig | None = None) -> Compiled:
        """Compile a pipeline.

        Raises:
            UnsupportedConfigError: A field of the configuration has no effect in this version.
            MissingLayerError: A node's layer is not installed.
            UnsupportedNodeError: There is no rule for a node.
            BuildError: Something in the pipeline cannot be.
        """
        return compile_ir(node, config)

    def compile_segment(
        self,
        node: Node,
        config: ExecutionConfig | None = None,
        *,
        segment: str,
        beside: Collection[str] = (),
    ) -> Compiled:
        """Compile a pipeline of which runs do the steps of one segment alone.

        A run stops, resumable, before the steps of other segments: `recall` returns where.

        Args:
            node: The pipeline.
            config: How it runs.
            segment: The step with the execution boundary; "" is what stands outside of every one.
            beside: Segments whose steps are done, too, where they stand in branches or items that
                run at the same time as others.

        Raises:
            BuildError: As for `compile`.
        """
        return compile_ir(node, config, segment=segment, beside=beside)

    async def stream(
        self,
        compiled: Compiled,
        prompt: Any,
        *,
        user_id: str = USER,
        session_id: str | None = None,
        session_service: BaseSessionService | None = None,
        state: Mapping[str, Any] | None = None,
        listeners: Iterable[EventListener] | None = None,
        **unknown: Any,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run, and yield each event when it happens; closing the generator ends the run.

        Args:
            compiled: What `compile` returned.
            prompt: What the user says: text, a Content, a Part, or a list of texts and Parts; or
                an `Answer`, a list of them, or `Resume`, which go on with a run.
            user_id: Whose session it is.
            session_id: The session to go on with; it is made when there is none of that id. None
                makes a new one.
            session_service: Where sessions are kept; None is the backend's.
            state: What a new session's state starts with.
            listeners: Who is told of every event.
            **unknown: Nothing else is taken.

        Raises:
            UnknownNameError: There is no such argument.
            UsageError: The prompt is no message, or no answer, or the state no mapping.
            PlanChangedError: The pipeline is not the one whose run is to go on.
            SessionError: Another run wrote to the session meanwhile, or there is no such run or
                question to go on with.
            SessionStoreError: The sessions cannot be read or written.
            Exception: Whatever a step raised, with its own type.
        """
        _refuse(unknown)
        check_state(state)
        service = session_service or self.session_service
        session, start = await _opened(
            compiled, prompt, service, user_id=user_id, session_id=session_id, state=state
        )
        told = Listeners(listeners)
        async with aclosing(
            self._events(compiled, start, service, user_id, session.id, told=told)
        ) as events:
            async for event in events:
                told.tell(event)
                yield event

    async def run(
        self,
        compiled: Compiled,
        prompt: Any,
        *,
        user_id: str = USER,
        session_id: str | None = None,
        session_service: BaseSessionService | None = None,
        state: Mapping[str, Any] | None = None,
        listeners: Iterable[EventListener] | None = None,
        **unknown: Any,
    ) -> RunResult:
        """Run to the end; arguments and errors as for `stream`."""
        _refuse(unknown)
        check_state(state)
        service = session_service or self.session_service
        session, start = await _opened(
            compiled, prompt, service, user_id=user_id, session_id=session_id, state=state
        )
        values = dict(session.state)
        made: list[AgentEvent] = []
        told = Listeners(listeners)
        with collect_discarded() as discarded, collect_notes(session.id) as notes:
            async with aclosing(
                self._events(compiled, start, service, user_id, session.id, told=told)
            ) as events:
                async for event in events:
                    told.tell(event)
                    made.append(event)
                    if not event.is_partial:
                        values.update(event.state_delta)
        return RunResult(
            made,
            state=kept_state(values),
            session_id=session.id,
            user_id=user_id,
            app_name=compiled.config.app_name,
            discarded=discarded,
            notes=notes,
        )

    async def recall(
        self,
        compiled: Compiled,
        *,
        session_id: str,
        user_id: str = USER,
        session_service: BaseSessionService | None = None,
    ) -> Recalled:
        """Return where the run of a session stands, and what its runs have given so far.

        Args:
            compiled: What `compile` returned.
            session_id: The session.
            user_id: Whose session it is.
            session_service: Where it is kept; None is the backend's.

        Raises:
            SessionError: There is no such session, or a newer version wrote it.
            SessionStoreError: The sessions cannot be read.
        """
        _, session = await self._existing(compiled, session_id, user_id, session_service)
        return Recalled(load(session.state, compiled.root.name), session)

    async def release(
        self,
        compiled: Compiled,
        *,
        session_id: str,
        user_id: str = USER,
        session_service: BaseSessionService | None = None,
    ) -> None:
        """Let others go on at once with a run whose process is known to be dead.

        Whoever does it nevertheless can write nothing more to the session.

        Args:
            compiled: What `compile` returned.
            session_id: The session.
            user_id: Whose session it is.
            session_service: Where it is kept; None is the backend's.

        Raises:
            SessionError: There is no such session.
            SessionStoreError: The sessions cannot be read or written.
        """
        service, session = await self._existing(compiled, session_id, user_id, session_service)
        with readable_store(session_id):
            await release(service, compiled.root.name, session, lambda _: True)

    async def pending(
        self,
        compiled: Compiled,
        *,
        session_id: str,
        user_id: str = USER,
        session_service: BaseSessionService | None = None,
    ) -> list[Pending]:
        """The questions that the run of a session waits on; empty when none waits.

        Args:
            compiled: What `compile` returned.
            session_id: The session.
            user_id: Whose session it is.
            session_service: Where it is kept; None is the backend's.

        Raises:
            SessionError: There is no such session.
            SessionStoreError: The sessions cannot be read.
        """
        _, session = await self._existing(compiled, session_id, user_id, session_service)
        return open_questions(compiled.root, session)

    async def rewind(
        self,
        compiled: Compiled,
        *,
        session_id: str,
        before_invocation_id: str,
        user_id: str = USER,
        session_service: BaseSessionService | None = None,
    ) -> None:
        """Take back a run and everything after it: state, artifacts, and what agents see.

        Args:
            compiled: What `compile` returned.
            session_id: The session.
            before_invocation_id: The first run that is taken back.
            user_id: Whose session it is.
            session_service: Where it is kept; None is the backend's.

        Raises:
            SessionError: There is no such session, or no such run in it, or a run wrote to it
                meanwhile.
            SessionStoreError: The sessions cannot be read or written.
        """
        service, session = await self._existing(compiled, session_id, user_id, session_service)
        if all(event.invocation_id != before_invocation_id for event in session.events):
            raise SessionError(
                f"session {session_id!r} has no run {before_invocation_id!r}",
                help="use the invocation_id of a RunResult or of an event",
            )
        runner = self._new_runner(compiled.app, RewindingSessions(service))
        with readable_store(session_id):
            await runner.rewind_async(
                user_id=user_id,
                session_id=session_id,
                rewind_before_invocation_id=before_invocation_id,
            )

    def forget(self, app_name: str, user_id: str, session_id: str) -> None:
        """Forget a session and its artifacts, as far as the backend keeps them in memory itself.

        What was injected for the session is tidied up by the next run that has resources.

        Args:
            app_name: The app.
            user_id: Whose session it is.
            session_id: The session; it need not be there.
        """
        if isinstance(self.session_service, InMemorySessionService):
            users = self.session_service.sessions.get(app_name, {})
            users.get(user_id, {}).pop(session_id, None)
            session_is_gone(Owner(app_name, user_id, session_id))
        if isinstance(self.artifact_service, InMemoryArtifactService):
            held, under = self.artifact_service.artifacts, f"{app_name}/{user_id}/{session_id}/"
            for path in list(held):  # at once: garbage collection may call this at any point
                if path.startswith(under):
                    held.pop(path, None)

    async def aclose(self) -> None:
        """Forget every session that the backend keeps in memory itself, and what belongs to it.

        What was injected for these sessions is tidied up.
        """
        if isinstance(self.session_service, InMemorySessionService):
            for app_name, users in list(self.session_service.sessions.items()):
                for user_id, sessions in list(users.items()):
                    for session_id in list(sessions):
                        self.forget(app_name, user_id, session_id)
        await close_gone()

    async def _existing(
        self,
        compiled: Compiled,
        session_id: str,
        user_id: str,
        session_service: BaseSessionService | None,
    ) -> tuple[BaseSessionService, Session]:
        """A session that must be there, and where it is kept."""
        service = session_service or self.session_service
        name = compiled.config.app_name
        return service, await existing_session(service, name, user_id, session_id)

    async def _events(
        self,
        compiled: Compiled,
        start: Start,
        service: BaseSessionService,
        user_id: str,
        session_id: str,
        *,
        told: Listeners,
    ) -> AsyncGenerator[AgentEvent, None]:
        config = run_config(compiled.config)
        announce_to(config, session_id, told)
        runner = self._runner(compiled, service)
        called: dict[str, Any] = {"new_message": start.message}
        if start.message is None:
            app, called = compiled.resumable_app, {"invocation_id": start.invocation_id}
            runner = self._new_runner(app, service)
        running = runner.run_async(
            user_id=user_id, session_id=session_id, run_config=config, **called
        )
        where = {"app_name": compiled.config.app_name, "user_id": user_id, "session_id": session_id}
        try:
            async with AsyncExitStack() as stack:
                if compiled.root.plan.needs_plugin:  # there may be a journal
                    name = compiled.root.name
                    await stack.enter_async_context(given_up(service, name, where))
                stack.enter_context(readable_store(session_id, partial(_raised_by, service)))
                await stack.enter_async_context(compiled.in_use())
                events = await stack.enter_async_context(aclosing(running))
                async for event in events:
                    if start.message is None and _is_held(event):
                        raise SessionError(
                            f"the run of session {session_id!r} is over",
                            help="somebody else has gone on with it meanwhile",
                        )
                    if not _is_bookkeeping(event):
                        yield to_agent_event(event)
        except RuntimeError as error:
            refused = unwrap(error)  # our plugin's, where somebody was faster than this run
            if refused is not error and isinstance(refused, SessionError):
                raise refused from None
            raise

    def _runner(self, compiled: Compiled, service: BaseSessionService) -> Runner:
        """The pipeline's Runner; it holds nothing of a run, so there need be but one."""
        runner = self._runners.get(compiled)
        if runner is None or runner.session_service is not service:
            runner = self._runners[compiled] = self._new_runner(compiled.app, service)
        return runner

    def _new_runner(self, app: App, service: BaseSessionService) -> Runner:
        return Runner(
            app=app,
            session_service=service,
            artifact_service=self.artifact_service,
            memory_service=self.memory_service,
            credential_service=self.credential_service,
        )


async def _opened(
    compiled: Compiled,
    prompt: Any,
    service: BaseSessionService,
    *,
    user_id: str,
    session_id: str | None,
    state: Mapping[str, Any] | None,
) -> tuple[Session, Start]:
    """The session of a run, and what the run is started with."""
    _refuse_live(compiled.config)
    app_name, resume = compiled.config.app_name, resume_of(prompt)
    if resume is None:
        start = Start(to_content(prompt))
        session = await open_session(service, app_name, user_id, session_id, state)
        root = compiled.root
        check_free(root.plan.pipeline, load(session.state, root.name))
        return session, start
    if session_id is None:
        raise UsageError(
            "to go on with a run, its session has to be named",
            help="give session_id=result.session_id, and the session_service of that run; "
            "a run that may fail needs a session_id= from the start",
        )
    session = await existing_session(service, app_name, user_id, session_id)
    return session, going_on(compiled.root, resume, session)


def _is_held(event: Event) -> bool:
    """Whether an event tells that nothing was run."""
    stamp = stamp_of(event) if event.custom_metadata else None
    return stamp is not None and stamp.get("why") == "held"


def _is_bookkeeping(event: Event) -> bool:
    """Whether an event does nothing but say where the run stands."""
    stamp = stamp_of(event) if event.content is None and event.custom_metadata else None
    return stamp is not None and stamp.get("why") in _BOOKKEEPING


def _raised_by(service: BaseSessionService, error: Exception) -> bool:
    """Whether a call of a session service raised it, and not a step of the pipeline."""
    for frame, _ in walk_tb(error.__traceback__):
        caller = frame.f_locals.get("self")
        if caller is service:
            _note_step(error, frame.f_locals.get("event"))
            return True
        if isinstance(caller, FlowAgent):
            return False
    return False


def _note_step(error: Exception, event: object) -> None:
    """Say on an error of a session service whose event it could not store."""
    stamp = stamp_of(event) if isinstance(event, Event) else None
    if stamp is not None and isinstance(event, Event):
        keys = ", ".join(map(repr, event.actions.state_delta))
        error.add_note(
            f"while the session service stored what step {stamp.get('node')!r} put out"
            + (f", with state {keys}" if keys else "")
        )


def _refuse_live(config: ExecutionConfig) -> None:
    """A live run has no prompt: what the user says comes while it lasts.

    Raises:
        UnsupportedConfigError: The configuration asks for one.
    """
    if config.streaming_mode == "bidi":
        raise UnsupportedConfigError(
            "a live run takes what the user says from a queue, and not a prompt",
            field="streaming_mode",
            brings="ADK's Runner",
            found="streaming_mode='bidi'",
            help="p.to_runner(config).run_live(user_id=..., session_id=..., "
            "live_request_queue=LiveRequestQueue())",
        )


def _refuse(unknown: Mapping[str, Any]) -> None:
    """A misspelt argument must not be ignored; the protocol lets every backend have its own.

    Raises:
        UnknownNameError: There is one.
    """
    for name in unknown:
        field = nearest_name(name, [each.name for each in fields(ExecutionConfig)])
        raise UnknownNameError(
            f"a run on ADK takes no {name!r}",
            unknown=name,
            known=("user_id", "session_id", "session_service", "state", "listeners", *_OTHERS),
            help=f"give config=ExecutionConfig({field}=...)" if field else None,
        )
