"""Running compiled pipelines on ADK's own Runner."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import fields
from functools import partial
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent.backends._config import check_state
from adk_fluent.backends._listeners import Listeners
from adk_fluent.backends.adk._compile import Compiled, compile_ir
from adk_fluent.backends.adk._config import run_config
from adk_fluent.backends.adk._events import to_agent_event
from adk_fluent.backends.adk._rewind import RewindingSessions
from adk_fluent.backends.adk._root import FlowAgent
from adk_fluent.backends.adk._sessions import existing_session, open_session, readable_store
from adk_fluent.backends.adk._values import to_content
from adk_fluent.errors import SessionError, UnknownNameError, nearest_name
from adk_fluent.ir import ExecutionConfig
from adk_fluent.protocol import BackendBase, RunResult

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping

    from google.adk.artifacts.base_artifact_service import BaseArtifactService
    from google.adk.auth.credential_service.base_credential_service import BaseCredentialService
    from google.adk.memory.base_memory_service import BaseMemoryService
    from google.adk.sessions.base_session_service import BaseSessionService
    from google.genai import types

    from adk_fluent.ir import Node
    from adk_fluent.protocol import AgentEvent, EventListener

USER: Final = "user"
_TEMP: Final = "temp:"
_OTHERS: Final = ("backend", "config")  # which builders take


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
            prompt: What the user says: text, a Content, a Part, or a list of texts and Parts.
            user_id: Whose session it is.
            session_id: The session to go on with; it is made when there is none of that id. None
                makes a new one.
            session_service: Where sessions are kept; None is the backend's.
            state: What a new session's state starts with.
            listeners: Who is told of every event.
            **unknown: Nothing else is taken.

        Raises:
            UnknownNameError: There is no such argument.
            UsageError: The prompt is no message, or the state no mapping.
            SessionError: Another run wrote to the session meanwhile.
            SessionStoreError: The sessions cannot be read or written.
            Exception: Whatever a step raised, with its own type.
        """
        _refuse(unknown)
        check_state(state)
        message = to_content(prompt)
        service = session_service or self.session_service
        app_name = compiled.config.app_name
        session = await open_session(service, app_name, user_id, session_id, state)
        told = Listeners(listeners)
        async with aclosing(
            self._events(compiled, message, service, user_id, session.id)
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
        message = to_content(prompt)
        service = session_service or self.session_service
        app_name = compiled.config.app_name
        session = await open_session(service, app_name, user_id, session_id, state)
        values = dict(session.state)
        made: list[AgentEvent] = []
        told = Listeners(listeners)
        async with aclosing(
            self._events(compiled, message, service, user_id, session.id)
        ) as events:
            async for event in events:
                told.tell(event)
                made.append(event)
                if not event.is_partial:
                    values.update(event.state_delta)
        final = {k: v for k, v in values.items() if v is not None and not k.startswith(_TEMP)}
        return RunResult(
            made, state=final, session_id=session.id, user_id=user_id, app_name=app_name
        )

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
        service = session_service or self.session_service
        name = compiled.config.app_name
        session = await existing_session(service, name, user_id, session_id)
        if all(event.invocation_id != before_invocation_id for event in session.events):
            raise SessionError(
                f"session {session_id!r} has no run {before_invocation_id!r}",
                help="use the invocation_id of a RunResult or of an event",
            )
        runner = self._new_runner(compiled, RewindingSessions(service))
        with readable_store(session_id):
            await runner.rewind_async(
                user_id=user_id,
                session_id=session_id,
                rewind_before_invocation_id=before_invocation_id,
            )

    async def _events(
        self,
        compiled: Compiled,
        message: types.Content,
        service: BaseSessionService,
        user_id: str,
        session_id: str,
    ) -> AsyncGenerator[AgentEvent, None]:
        running = self._runner(compiled, service).run_async(
            user_id=user_id,
            session_id=session_id,
            new_message=message,
            run_config=run_config(compiled.config),
        )
        with readable_store(session_id, partial(_raised_by, service)):
            async with compiled.in_use(), aclosing(running) as events:
                async for event in events:
                    yield to_agent_event(event)

    def _runner(self, compiled: Compiled, service: BaseSessionService) -> Runner:
        """The pipeline's Runner; it holds nothing of a run, so there need be but one."""
        runner = self._runners.get(compiled)
        if runner is None or runner.session_service is not service:
            runner = self._runners[compiled] = self._new_runner(compiled, service)
        return runner

    def _new_runner(self, compiled: Compiled, service: BaseSessionService) -> Runner:
        return Runner(
            app=compiled.app,
            session_service=service,
            artifact_service=self.artifact_service,
            memory_service=self.memory_service,
            credential_service=self.credential_service,
        )


def _raised_by(service: BaseSessionService, error: Exception) -> bool:
    """Whether a call of a session service raised it, and not a step of the pipeline."""
    for frame, _ in walk_tb(error.__traceback__):
        caller = frame.f_locals.get("self")
        if caller is service:
            return True
        if isinstance(caller, FlowAgent):
            return False
    return False


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
