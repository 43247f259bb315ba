"""Running pipelines on scripted agents."""

from __future__ import annotations

import time
import uuid
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._registry import INSTALLED, missing_layer
from adk_fluent.backends._config import check_state, check_values
from adk_fluent.backends._listeners import Listeners
from adk_fluent.backends._resources import NOTHING, Injection, Owner, Table
from adk_fluent.backends.mock._leaf import MockLeaf, Session
from adk_fluent.backends.mock._prompt import USER
from adk_fluent.backends.mock._responses import Conditional, Response, When, script_of
from adk_fluent.errors import (
    UnknownNameError,
    UnsupportedConfigError,
    UnsupportedNodeError,
    UsageError,
    nearest_name,
)
from adk_fluent.flow import RULES, Engine, check_transfers
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    AppNode,
    ExecutionConfig,
    GateNode,
    Node,
    RemoteAgentNode,
    TimeoutNode,
)
from adk_fluent.protocol import AgentEvent, BackendBase, RunResult

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping

    from adk_fluent.protocol import EventListener
    from adk_fluent.testing import Asked, Script

_OPTIONS: Final = ("user_id", "session_id", "state", "listeners")
_AGENTS: Final = (AgentNode, AdkAgentNode, RemoteAgentNode)


@dataclass(frozen=True, slots=True)
class MockApp:
    """A pipeline that is ready to run on scripted agents.

    Attributes:
        node: The pipeline as it was given.
        config: How it runs.
        root: What the engine runs.
        mocks: Scripts of agents that bring their own (``Agent.mock``), by name.
        injection: What functions may name.
    """

    node: Node
    config: ExecutionConfig
    root: Node
    mocks: Mapping[str, Script]
    injection: Injection = NOTHING


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
            MissingLayerError: A node's layer is not installed.
            UnsupportedNodeError: A node has no meaning here.
            BuildError: A transfer leads nowhere.
        """
        root, injection = node, NOTHING
        if isinstance(node, AppNode):
            _check_app(node)
            root, config = node.root, config or node.execution
            injection = Injection(node.resources)
        config = config or ExecutionConfig()
        _check_config(config)
        mocks: dict[str, Script] = {}
        nodes = list(_run_nodes(root))
        check_transfers(root, nodes)
        for each in nodes:
            _check_node(each)
            if isinstance(each, AgentNode) and each.mock is not None and each.name not in mocks:
                mocks[each.name] = script_of(each.mock.value)
        if config.timeout_seconds is not None:
            root = TimeoutNode(root.name, root, config.timeout_seconds, location=root.location)
        return MockApp(node, config, root, mocks, injection)

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
            prompt: What the user says: text, a Content, a Part, or a list of those.
            user_id: Whose session it is.
            session_id: The session to go on with; it is made when there is none of that id. None
                makes a new one.
            state: What a new session's state starts with.
            listeners: Who is told of every event.
            **unknown: Nothing else is taken.

        Raises:
            UnknownNameError: There is no such argument, or nobody said what an agent answers.
            UsageError: The prompt is no message, or the state no mapping.
            Exception: Whatever a step raised, with its own type.
        """
        for name in unknown:
            raise UnknownNameError(
                f"a run on the mock backend takes no {name!r}", unknown=name, known=_OPTIONS
            )
        check_state(state)
        session_id = session_id or str(uuid.uuid4())
        session = self._open(compiled.config.app_name, user_id, session_id, state)
        owner = Owner(compiled.config.app_name, user_id, session_id)
        async with compiled.injection.open(owner) as table:
            running = self._events(compiled, _text(prompt), session, table)
            told = Listeners(listeners)
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
        return RunResult(made, state=final, session_id=session_id, user_id=user_id, app_name=name)

    async def _events(
        self, compiled: MockApp, message: str, session: Session, table: Table
    ) -> AsyncGenerator[AgentEvent, None]:
        run = str(uuid.uuid4())
        metadata = {"run": run}
        session.events.append(
            AgentEvent(USER, message, timestamp=time.time(), invocation_id=run, metadata=metadata)
        )
        root = compiled.root

        def script_for(node: Node, asked: Asked) -> Script:
            self._calls.append(asked)
            return self._script_for(compiled, node, asked)

        leaf = MockLeaf(
            session,
            root.name,
            run,
            config=compiled.config,
            script_for=script_for,
            message=message,
        )
        leaf.injection, leaf.table = compiled.injection, table
        engine = Engine(root, leaf)
        leaf.bind(engine)
        try:
            async with aclosing(engine.run()) as events:
                async for event in events:
                    leaf.commit(event)
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


def mock_backend(responses: Mapping[str, Response] | None = None) -> MockBackend:
    """A backend whose agents answer what you say.

    Args:
        responses: By name of the agent: a text, which it says; a mapping, which it writes to state;
            a list of such, each used once, in order; a function of the prompt's text that gives
            one; or a `Script`.
    """
    return MockBackend(responses)


def _run_nodes(root: Node) -> Iterator[Node]:
    """The nodes that the engine runs; what stands below an agent is the agent's business."""
    todo, seen = [root], set[int]()
    while todo:
        node = todo.pop()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            if not isinstance(node, _AGENTS):
                todo.extend(reversed(node.children))


def _check_node(node: Node) -> None:
    kind = type(node)
    if kind in RULES and kind is not GateNode:
        return
    if node.layer != "core" and node.layer not in INSTALLED.installed():
        raise missing_layer(node.layer, kind.__name__, node)
    raise UnsupportedNodeError(
        f"the mock backend cannot run a {kind.__name__}",
        node=node,
        help="leave it out of what you test here, or run it on ADK with scripted models",
    )


def _check_app(node: AppNode) -> None:
    if node.middlewares:
        raise _unsupported("middlewares")


def _check_config(config: ExecutionConfig) -> None:
    check_values(config)
    refused = {
        "telemetry": config.telemetry is not None,
        "middlewares": bool(config.middlewares),
        "resumable": config.resumable,
        "streaming_mode": config.streaming_mode == "bidi",
    }
    for field, asked in refused.items():
        if asked:
            raise _unsupported(field)


def _unsupported(field: str) -> UnsupportedConfigError:
    return UnsupportedConfigError(
        f"the mock backend makes nothing of {field!r}", field=field, brings="the ADK backend"
    )


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
