"""Programs for tests on ADK, written as IR, and the ways of running them. Imports no ADK itself."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    ExecutionConfig,
    FallbackNode,
    FunctionNode,
    LoopNode,
    MapOverNode,
    Node,
    ParallelNode,
    RaceNode,
    Ref,
    SequenceNode,
    StateFieldRef,
    TimeoutNode,
    ToolSpec,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.events.event import Event
    from google.adk.sessions.base_session_service import BaseSessionService


def agent(
    name: str,
    *replies: Any,
    model: Any = None,
    writes: str | None = None,
    tools: Sequence[Callable[..., Any]] = (),
    **fields: Any,
) -> AgentNode:
    """An agent that gives `replies` in turn, or always the one text, or always its own name."""
    from adk_fluent.testing import ScriptedModel  # imports ADK

    if model is None:
        if len(replies) == 1 and isinstance(replies[0], str):
            model = ScriptedModel(default=replies[0])
        else:
            model = ScriptedModel(*replies) if replies else ScriptedModel(default=name)
    if writes is not None:
        fields["writes_keys"] = (StateFieldRef(writes),)
    if tools:
        fields["tools"] = tuple(ToolSpec(Ref.to(tool)) for tool in tools)
    held = model if isinstance(model, (str, Ref)) else Ref.to(model)
    return AgentNode(name, model=held, **fields)


def fn(name: str, function: Callable[[Any], Any]) -> FunctionNode:
    return FunctionNode(name, Ref.to(function))


def writer(name: str, **values: Any) -> FunctionNode:
    return fn(name, lambda state: dict(values))


def raiser(name: str, error: Exception) -> FunctionNode:
    def fail(state: Any) -> None:
        raise error

    return fn(name, fail)


def built(adk_agent: BaseAgent) -> AdkAgentNode:
    return AdkAgentNode(adk_agent.name, Ref.to(adk_agent))


def seq(*steps: Node, name: str = "pipe") -> SequenceNode:
    return SequenceNode(name, steps)


def par(*branches: Node, name: str = "par") -> ParallelNode:
    return ParallelNode(name, branches)


def race(*branches: Node, name: str = "race") -> RaceNode:
    return RaceNode(name, branches)


def fallback(*attempts: Node, name: str = "try_all") -> FallbackNode:
    return FallbackNode(name, attempts)


def loop(body: Node, times: int, name: str = "loop") -> LoopNode:
    return LoopNode(name, body, times)


def each(key: str, body: Node, name: str = "each", **fields: Any) -> MapOverNode:
    return MapOverNode(name, key, body, **fields)


def within(body: Node, seconds: float, name: str = "limit") -> TimeoutNode:
    return TimeoutNode(name, body, seconds)


def model_of(node: AgentNode) -> Any:
    """The ScriptedModel of an agent made here."""
    assert isinstance(node.model, Ref)
    return node.model.value


def turns(node: AgentNode, call: int = -1) -> list[str]:
    """What an agent's model was asked, turn by turn, without the words ADK puts around it."""
    asked = model_of(node).calls[call]
    return [plain(turn.text) for turn in asked.turns]


def plain(text: str) -> str:
    """What somebody said, without ADK's quotation marks around what other agents said."""
    begin, end = "<<<BEGIN_QUOTED_AGENT_CONTENT>>>\n", "\n<<<END_QUOTED_AGENT_CONTENT>>>"
    if begin in text:
        before, _, rest = text.partition(begin)
        author = before.rstrip().rpartition("[")[2].partition("]")[0]
        return f"{author}: {rest.partition(end)[0]}"
    if text.startswith("For context:\n["):
        author, _, said = text.removeprefix("For context:\n[").partition("] said: ")
        return f"{author}: {said}"
    return text


# --- ways of running -----------------------------------------------------------------------------


async def run(
    node: Node, message: Any = "hi", config: ExecutionConfig | None = None, **kw: Any
) -> Any:
    """Run on a backend of its own."""
    from adk_fluent.backends.adk import ADKBackend  # imports ADK

    backend = ADKBackend()
    return await backend.run(backend.compile(node, config), message, **kw)


async def by_runner(
    app_or_agent: Any,
    message: str = "hi",
    *,
    run_config: Any = None,
    service: BaseSessionService | None = None,
    session_id: str | None = None,
) -> list[Event]:
    """Run an App or a bare agent by ADK's own Runner."""
    from google.adk.apps.app import App
    from google.adk.runners import Runner
    from google.adk.sessions.in_memory_session_service import (
        InMemorySessionService,
    )
    from google.genai import types

    app = app_or_agent if isinstance(app_or_agent, App) else App(name="x", root_agent=app_or_agent)
    service = service or InMemorySessionService()
    runner = Runner(app=app, session_service=service)
    if session_id is None:
        session = await service.create_session(app_name=app.name, user_id="u")
        session_id = session.id
    running = runner.run_async(
        user_id="u",
        session_id=session_id,
        new_message=types.Content(role="user", parts=[types.Part(text=message)]),
        **({} if run_config is None else {"run_config": run_config}),
    )
    async with aclosing(running) as events:
        return [event async for event in events]
