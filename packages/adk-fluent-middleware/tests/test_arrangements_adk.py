"""Each built-in beside each kind of agent: what is answered and kept is what it is without it.

Most of them look into requests and answers, and each kind of agent has others: typed ones carry a
schema, those in a map run at the same time, those below another one are run by ADK.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from kit import NAMES, SSE, Time
from pydantic import BaseModel

import adk_fluent.middleware as built_in
from adk_fluent import Agent, map_over
from adk_fluent.middleware import production
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder
    from adk_fluent.config import ExecutionConfig

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

TRIPLE, QUAD = '{"total": 3}', '{"total": 4}'


class Invoice(BaseModel):
    total: int


def nobody(name: str, args: dict[str, Any]) -> bool:
    """Ask nobody."""
    return False


def look(what: str) -> str:
    """Look something up."""
    return f"{what} costs 3"


def text(model: Callable[..., ScriptedModel]) -> Builder:
    return Agent("a", model("the answer")).writes("out")


def typed(model: Callable[..., ScriptedModel]) -> Builder:
    return Agent("a", model(TRIPLE)).writes("out") @ Invoice


def typed_with_tools(model: Callable[..., ScriptedModel]) -> Builder:
    agent = Agent("a", model(Call("look", {"what": "tea"}), TRIPLE)).tool(look)
    return agent.writes("out") @ Invoice


def asked_again(model: Callable[..., ScriptedModel]) -> Builder:
    agent = Agent("a", model("It is 3.", TRIPLE)).output_retries(1)
    return agent.writes("out") @ Invoice


def mapped(model: Callable[..., ScriptedModel]) -> Builder:
    body = Agent("a", model(TRIPLE, QUAD)).instruct("Read {item}.") @ Invoice
    return map_over("items", body, item_key="item", output_key="out", concurrency=1)


def transfer(model: Callable[..., ScriptedModel]) -> Builder:
    spec = Agent("a", model("the answer")).instruct("Answer.").writes("out")
    boss = model(Call("transfer_to_agent", {"agent_name": "a"}))
    return Agent("boss", boss).instruct("Pass it on.").delegates(spec)


def agent_as_tool(model: Callable[..., ScriptedModel]) -> Builder:
    spec = Agent("a", model(TRIPLE)).instruct("Answer.") @ Invoice
    boss = model(Call("a", {"request": "Do it."}), "the boss")
    return Agent("boss", boss).writes("out").agent_tool(spec)


#: Each with how it is run: a streamed one is a typed one that is streamed.
ARRANGED: dict[str, tuple[Callable[[Any], Builder], ExecutionConfig | None]] = {
    "text": (text, None),
    "typed": (typed, None),
    "typed with tools": (typed_with_tools, None),
    "asked again": (asked_again, None),
    "asked again, streamed": (asked_again, SSE),
    "map_over": (mapped, None),
    "streamed": (typed, SSE),
    "streamed with tools": (typed_with_tools, SSE),
    "transfer": (transfer, None),
    "agent as tool": (agent_as_tool, None),
}
#: Options with which nothing is in the way.
OPTIONS: dict[str, dict[str, Any]] = {
    "context_warning": {"max_context": 1_000_000},
    "model_call_limit": {"per_run": 50},
    "rate_limiter": {"requests_per_minute": 10_000},
    "retry": {"clock": Time()},
    "timeout": {"model": 60.0, "tool": 60.0, "run": 60.0},
    "token_budget": {"max_tokens": 1_000_000},
    "tool_approval": {"when": nobody},
    "tool_call_limit": {"per_run": 50},
    "tool_emulator": {"results": {"look": "tea costs 3"}},
}


def made(name: str, **options: Any) -> Any:
    factory: Any = getattr(built_in, name)
    return factory(**{**OPTIONS.get(name, {}), **options})


async def outcome(
    arranged: str,
    *stack: Any,
    model: Callable[..., ScriptedModel] = ScriptedModel,
    ignored: tuple[str, ...] = (),
) -> Any:
    arrange, config = ARRANGED[arranged]
    pipeline = arrange(model).allow("MDW003")  # not each of them has a tool
    result = await pipeline.run(
        "hi", state={"items": [1, 2]}, config=config, middleware=[*stack] or None
    )
    state = {key: value for key, value in result.state.items() if not key.startswith(ignored)}
    told = [each.result for event in result for each in event.tool_responses]
    return result.text, state, told, result.errors, result.pending


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    """What comes of each of them without any middleware."""
    return {arranged: asyncio.run(outcome(arranged)) for arranged in ARRANGED}


@pytest.mark.parametrize("name", [each for each in NAMES if each != "model_fallback"])
async def test_nothing_else_comes_of_it(name: str, plain: dict[str, Any]) -> None:
    """The emulator gives a tool's result in another form, and the list of things to do is kept."""
    for arranged in ARRANGED:
        with_it = await outcome(arranged, made(name), ignored=("todos", "temp:"))
        compared = 2 if name == "tool_emulator" else len(with_it)
        assert with_it[:compared] == plain[arranged][:compared], arranged


class Flaky(ScriptedModel):
    """A model each of whose first calls fails."""

    def __init__(self, *replies: Any) -> None:
        super().__init__(ConnectionError("reset"), *replies)


async def test_a_call_is_made_again_wherever_it_fails(plain: dict[str, Any]) -> None:
    for arranged in ARRANGED:
        with_it = await outcome(arranged, made("retry"), model=Flaky)
        assert with_it == plain[arranged], arranged


async def test_another_model_answers_wherever_one_fails(plain: dict[str, Any]) -> None:
    answers = {
        "map_over": (TRIPLE, QUAD),
        "asked again": ("It is 3.", TRIPLE),
        "asked again, streamed": ("It is 3.", TRIPLE),
        "transfer": (Call("transfer_to_agent", {"agent_name": "a"}), "the answer"),
        "agent as tool": (Call("a", {"request": "Do it."}), TRIPLE, "the boss"),
        "text": ("the answer",),
    }
    for arranged in ARRANGED:
        tools = "tools" in arranged
        script = (Call("look", {"what": "tea"}), TRIPLE) if tools else (TRIPLE,)
        other = ScriptedModel(*answers.get(arranged, script))
        fallback = made("model_fallback", models=[other])

        def down(*replies: Any) -> ScriptedModel:
            return ScriptedModel(default=ConnectionError("reset"))

        with_it = await outcome(arranged, fallback, model=down)
        assert with_it == plain[arranged], arranged


async def test_a_whole_stack(plain: dict[str, Any]) -> None:
    stack = production(personal_data=True, cached=True, max_tokens=1_000_000)
    for arranged in ARRANGED:
        assert await outcome(arranged, *stack) == plain[arranged], arranged
