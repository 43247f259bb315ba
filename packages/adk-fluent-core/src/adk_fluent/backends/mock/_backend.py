"""Running pipelines on scripted agents."""

from __future__ import annotations

import uuid
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.backends._boundaries import check_boundaries
from adk_fluent.backends._config import check_state
from adk_fluent.backends._contracts import hold
from adk_fluent.backends._listeners import Listeners, Notices
from adk_fluent.backends._owner import running
from adk_fluent.backends._recording import recorded
from adk_fluent.backends._remotes import with_fallbacks
from adk_fluent.backends._resources import NOTHING, Injection, Owner, Table
from adk_fluent.backends._resuming import GoOn, Pipeline, Tell, Verdict, judge
from adk_fluent.backends.mock._checks import agents_of, check_app, check_config
from adk_fluent.backends.mock._keeper import MockKeeper
from adk_fluent.backends.mock._leaf import MockLeaf, Session
from adk_fluent.backends.mock._prompt import USER, said
from adk_fluent.backends.mock._responses import Conditional, Response, script_of
from adk_fluent.errors import (
    UnknownNameError,
    UsageError,
    nearest_name,
)
from adk_fluent.flow import Promises, promises_of
from adk_fluent.ir import (
    AgentNode,
    AppNode,
    ExecutionConfig,
    Node,
)
from adk_fluent.protocol import (
    AgentEvent,
    BackendBase,
    JournalEntry,
    RunResult,
    collect_discarded,
    resume_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping

    from adk_fluent._scripts._replies import Asked
    from adk_fluent._scripts._script import Script
    from adk_fluent.protocol import EventListener, Resume

_OPTIONS: Final = ("user_id", "session_id", "state", "listeners")


@dataclass(frozen=True, slots=True)
class MockApp:
    """A pipeline that is ready to run on scripted agents.

    Attributes:
        node: The pipeline as it was given.
        config: How it runs.
        root: What the engine runs.
        mocks: Scripts of agents that bring their own (``Agent.mock``), by name.
        pipeline: The root, as runs know it that go on.
        injection: What functions may name.
        names: Names of its agents.
        promises: What it promises about state.
    """

    node: Node
    config: ExecutionConfig
    root: Node
    mocks: Mapping[str, Script]
    pipeline: Pipeline
    injection: Injection = NOTHING
    names: frozenset[str] = frozenset()
    promises: Promises | None = None


class MockBackend(BackendBase[MockApp]):
    """Runs pipelines on scripted agents; sessions are kept in memory.

    An agent's answer is looked for in the conditions of `when`, in order, then in `responses`, then
    in the agent's own mock.

    Args:
        responses: What agents answer, by name.
    """

    def __init__(self, responses: Mapping[str, Response] | None = None) -> None:
        self._scripts = {name: script_of(each) for name, each in (responses or {}).items()}
        self._conditions: list[Conditional] = []
        self._calls: list[Asked] = []
        self._sessions: dict[tuple[str, str, str], Session] = {}
        self._shared: dict[tuple[str, ...], dict[str, Any]] = {}

    @property
    def calls(self) -> tuple[Asked, ...]:
        """What agents were asked so far, in order."""
        return tuple(self._calls)

    def when(self, agent: str) -> When:
        """Begin to say what an agent answers under a condition."""
        return When(self, agent)

    def add(self, condition: Conditional) -> None:
        """Take in what an agent answers under a condition; earlier ones come first."""
        self._conditions.append(condition)

    def compile(self, node: Node, config: ExecutionConfig | None = None) -> MockApp:
        """Make a pipeline ready to run.

        Raises:
            UsageError: A field of the configuration holds a value that has no meaning.
            UnsupportedConfigError: A field of the configuration has no effect here.
            MissingLayerError: A layer that a node needs is not installed.
            UnsupportedNodeError: A node, or its execution boundary, has no meaning here.
            BuildError: A transfer leads nowhere.
            ContractError: It is proven that its runs fail; see `ExecutionConfig.contracts`.
        """
        root, injection = node, NOTHING
        if isinstance(node, AppNode):
            check_app(node)
            root, config = node.root, config or node.execution
            injection = Injection(node.resources)
        config = config or ExecutionConfig()
        check_config(config)
        check_boundaries(node)
        root = with_fallbacks(root)
        agents = agents_of(root)
        mocks = {
            name: script_of(each.mock.value)
            for name, each in agents.items()
            if isinstance(each, AgentNode) and each.mock is not None
        }
        hold(node, config)
        return MockApp(
            node,
            config,
            root,
            mocks,
            Pipeline(root),
            injection,
            frozenset(agents),
            promises_of(root),
        )

    async def stream(
        self,
        compiled: MockApp,
        prompt: Any,
        *,
        user_id: str = USER,
        session_id: str | None = None,
        state: Mapping[str, Any] | None = None,
        listeners: Iterable[EventListener] | None = None,
        **unknown: Any,
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run, and yield each event when it happens; closing the generator ends the run.

        Args:
            compiled: What `compile` returned.
            prompt: What the user says: text, a Content, a Part, or a list of those; or an `Answer`,
                a list of them, or `Resume`, which go on with a run.
            user_id: Whose session it is.
            session_id: The session to go on with; it is made when there is none of that id. None
                makes a new one.
            state: What a new session's state starts with.
            listeners: Who is told of every event.
            **unknown: Nothing else is taken.

        Raises:
            UnknownNameError: There is no such argument, or nobody said what an agent answers.
            UsageError: The prompt is no message, or no answer, or the state no mapping.
            PlanChangedError: The pipeline is not the one whose run is to go on.
            SessionError: There is no such run or question to go on with.
            Exception: Whatever a step raised, with its own type.
        """
        for name in unknown:
            raise UnknownNameError(
                f"a run on the mock backend takes no {name!r}", unknown=name, known=_OPTIONS
            )
        check_state(state)
        resume = resume_of(prompt)
        session_id = session_id or str(uuid.uuid4())
        session = self._open(compiled.config.app_name, user_id, session_id, state)
        message = _text(prompt) if resume is None else ""
        verdict = _judge(compiled.pipeline, session, resume)
        owner = Owner(compiled.config.app_name, user_id, session_id)
        async with compiled.injection.open(owner) as table:
            told = Listeners(listeners)
            running = self._events(compiled, message, session, verdict, table=table, told=told)
            async with aclosing(running) as events:
                async for event in events:
                    told.tell(event)
                    yield event
        self._keep(compiled.config.app_name, user_id, session)

    async def run(
        self,
        compiled: MockApp,
        prompt: Any,
        *,
        user_id: str = USER,
        session_id: str | None = None,
        state: Mapping[str, Any] | None = None,
        listeners: Iterable[EventListener] | None = None,
        **unknown: Any,
    ) -> RunResult:
        """Run to the end; arguments and errors as for `stream`."""
        session_id = session_id or str(uuid.uuid4())
        name = compiled.config.app_name
        with collect_discarded() as discarded:
            made = [
                event
                async for event in self.stream(
                    compiled,
                    prompt,
                    user_id=user_id,
                    session_id=session_id,
                    state=state,
                    listeners=listeners,
                    **unknown,
                )
            ]
        values = self._sessions[name, user_id, session_id].state
        final = {key: value for key, value in values.items() if value is not None}
        return RunResult(
            made,
            state=final,
            session_id=session_id,
            user_id=user_id,
            app_name=name,
            discarded=discarded,
        )

    async def _events(
        self,
        compiled: MockApp,
        message: str,
        session: Session,
        verdict: Verdict,
        *,
        table: Table,
        told: Listeners,
    ) -> AsyncGenerator[AgentEvent, None]:
        goes_on = verdict if isinstance(verdict, GoOn) else None
        run = str(uuid.uuid4()) if goes_on is None else goes_on.entry.run
        if goes_on is not None:
            message = goes_on.entry.user_message
        elif not isinstance(verdict, Tell):  # what runs nothing no agent is shown
            session.begin()
            session.events.append(said(message, run))

        def script_for(node: Node, asked: Asked) -> Script:
            self._calls.append(asked)
            return self._script_for(compiled, node, asked)

        leaf = MockLeaf(
            session,
            compiled.root.name,
            run,
            config=compiled.config,
            script_for=script_for,
            message=message,
            known=compiled.names,
        )
        if isinstance(verdict, Tell):
            asked = (each for event in session.events for each in event.pending)
            pending = tuple(each for each in asked if each.id in verdict.waits)
            yield leaf.note("held", content=verdict.text, pending=pending)
            return
        leaf.injection, leaf.table, leaf.told = compiled.injection, table, told
        entry = JournalEntry("", run=run, invocation_id=run, user_message=message)
        if goes_on is not None:
            entry = replace(goes_on.entry, answered=dict(goes_on.answers))
        durable = compiled.config.resumable
        kept = durable or goes_on is not None or session.entry is not None
        try:
            with running() as holder:
                entry = replace(entry, owner=holder.name)
                events = recorded(
                    compiled.pipeline.node,
                    leaf,
                    MockKeeper(session, compiled.pipeline, leaf, entry),
                    goes_on,
                    limit=compiled.config.timeout_seconds,
                    durable=durable,
                    kept=kept,
                    watch=Notices(told, leaf.event) if told.want_notices else None,
                    promises=compiled.promises,
                )
                async with aclosing(events):
                    async for event in events:
                        leaf.commit(event)
                        if event.metadata.get("why") != "journal":
                            yield event
        finally:
            for key in [key for key in session.state if key.startswith("temp:")]:
                del session.state[key]
        if leaf.missing is not None:  # a fallback must not cover up what the test forgot
            raise leaf.missing

    def _script_for(self, compiled: MockApp, node: Node, asked: Asked) -> Script:
        for condition in self._conditions:
            if condition.applies(node.name, asked.prompt):
                return condition.script
        script = self._scripts.get(node.name) or compiled.mocks.get(node.name)
        if script is not None:
            return script
        known = {*self._scripts, *(each.agent for each in self._conditions)}
        near = nearest_name(node.name, known - {node.name})
        hint = f"; did you mean it with {near!r}?" if near else ""
        raise UnknownNameError(
            f"nobody said what agent {node.name!r} answers",
            unknown=node.name,
            known=known,
            node=node,
            found=f"prompt {asked.prompt[:200]!r}",
            help=f"mock_backend({{{node.name!r}: 'text'}}){hint}",
        )

    # --- sessions ------------------------------------------------------------------------------

    def _open(
        self, app_name: str, user_id: str, session_id: str, state: Mapping[str, Any] | None
    ) -> Session:
        key = (app_name, user_id, session_id)
        session = self._sessions.get(key)
        if session is None:
            session = self._sessions[key] = Session(dict(state or {}))
        for shared in ((app_name,), (app_name, user_id)):
            session.state.update(self._shared.get(shared, {}))
        return session

    def _keep(self, app_name: str, user_id: str, session: Session) -> None:
        """Let other sessions of the app and the user see what is theirs, too."""
        for prefix, shared in (("app:", (app_name,)), ("user:", (app_name, user_id))):
            own = {key: value for key, value in session.state.items() if key.startswith(prefix)}
            self._shared.setdefault(shared, {}).update(own)


class When:
    """What an agent answers under a condition; made by `MockBackend.when`."""

    def __init__(self, backend: MockBackend, agent: str) -> None:
        self._backend = backend
        self._agent = agent
        self._contains: str | None = None

    def given(self, *, prompt_contains: str) -> When:
        """Only if this text occurs in the prompt, in upper or lower case.

        The prompt is what is new to the agent: what the user and other agents said since its own
        last turn.
        """
        self._contains = prompt_contains
        return self

    def responds(self, response: Response) -> MockBackend:
        """Answer with this.

        Raises:
            UsageError: It is nothing an agent can answer.
        """
        self._backend.add(Conditional(self._agent, self._contains, script_of(response)))
        return self._backend

    def responds_with_state(self, state: Mapping[str, Any]) -> MockBackend:
        """Write this to state."""
        return self.responds(state)


def mock_backend(responses: Mapping[str, Response] | None = None) -> MockBackend:
    """A backend whose agents answer what you say.

    Args:
        responses: By name of the agent: a text, which it says; a mapping, which it writes to state;
            a list of such, each used once, in order; a function of the prompt's text that gives
            one; or a `Script`.
    """
    return MockBackend(responses)


def _judge(pipeline: Pipeline, session: Session, resume: Resume | None) -> Verdict:
    """What becomes of what came in.

    Raises:
        PlanChangedError: The pipeline is not the one whose run is to go on.
        SessionError: There is no such run or question to go on with.
        UsageError: What was answered is no answer.
    """
    answers = {each.id: each.value for each in resume.answers} if resume is not None else {}
    verdict = judge(
        pipeline,
        session.entry,
        answers,
        goes_on=resume is not None and not answers,
        whole=True,
        was_asked=lambda id: any(each.id == id for e in session.events for each in e.pending),
    )
    if isinstance(verdict, Tell) and resume is not None:
        raise verdict.error
    return verdict


def _text(prompt: Any) -> str:
    """The text of a message, in any form that ADK takes.

    Raises:
        UsageError: It is none.
    """
    if isinstance(prompt, str):
        return prompt
    parts: Any = getattr(prompt, "parts", prompt)
    if isinstance(parts, list | tuple):
        return "\n".join(_text(part) for part in cast("list[Any]", parts))
    text = getattr(parts, "text", None)
    if isinstance(text, str) or hasattr(parts, "inline_data"):
        return text or ""
    raise UsageError(
        f"a {type(prompt).__name__} is no message",
        help="give text, a Content, a Part, or a list of those",
    )
