"""Small pipelines on ADK's own Gemini over HTTP: what Gemini is sent, and what comes of it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

import pytest
from google.adk.runners import InMemoryRunner
from google.genai import errors, types
from pydantic import BaseModel

from adk_fluent import Agent, FanOut, Route, map_over, race, timeout, until
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import StepTimeoutError
from adk_fluent.protocol import Usage
from adk_fluent.testing import (
    AgentHarness,
    Call,
    GeminiEmulator,
    Script,
    ScriptExhaustedError,
    Thought,
    reply,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from adk_fluent.testing import Asked, Rule

pytestmark = [
    pytest.mark.adk,
    # 1.x says so when it streams
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

WHOLE, STREAMED = ExecutionConfig(), ExecutionConfig(streaming_mode="sse")
BOTH = pytest.mark.parametrize("config", [WHOLE, STREAMED], ids=["whole", "streamed"])


@pytest.fixture
async def gemini() -> AsyncIterator[GeminiEmulator]:
    async with GeminiEmulator() as emulator:
        yield emulator


def answers(gemini: GeminiEmulator, **agents: Any) -> None:
    """What each agent is answered, as often as it asks; a list is answered in order."""
    rules: list[Rule] = []
    for agent, each in agents.items():
        if isinstance(each, list):
            replies = cast("list[Any]", each)
            rules += [rule(agent=agent, reply=one, times=1) for one in replies]
        else:
            rules.append(rule(agent=agent, reply=each))
    gemini.script = Script(rules=rules)


def asked(gemini: GeminiEmulator) -> list[str]:
    return [each.agent or "" for each in gemini.requests]


def texts(content: dict[str, Any]) -> str:
    return "".join(part.get("text", "") for part in content["parts"])


# --- arrangements --------------------------------------------------------------------------------


@BOTH
async def test_a_route_asks_the_agent_it_leads_to(
    gemini: GeminiEmulator, config: ExecutionConfig
) -> None:
    classify = Agent("classify").instruct("One word: billing or other?").writes("topic")
    billing = Agent("billing").instruct("Topic: {topic}. Answer about the invoice.")
    desk = classify >> Route("topic").contains("bill", billing).otherwise(Agent("general"))
    desk.model(gemini.model())
    answers(gemini, classify="billing", billing=reply(chunks=["You get ", "a refund."]))
    result = await desk.run("My invoice is wrong.", config=config)
    assert result.text == "You get a refund."
    assert result.state == {"topic": "billing"}
    first, second = gemini.requests
    action = "streamGenerateContent" if config is STREAMED else "generateContent"
    assert {first.action, second.action} == {action}
    assert first.body is not None
    assert first.body["contents"] == [{"role": "user", "parts": [{"text": "My invoice is wrong."}]}]
    assert first.system.startswith("One word: billing or other?")
    assert second.system.startswith("Topic: billing. Answer about the invoice.")
    assert second.agent == "billing"
    told = "".join(map(texts, second.contents)).partition("[classify] said:")[2]
    assert "billing" in told  # ADK 2.x quotes it, 1.x does not
    assert first.tools == second.tools == ()


def _approved(state: Mapping[str, Any]) -> bool:
    return state.get("verdict") == "fine"


@BOTH
async def test_a_loop_asks_again(gemini: GeminiEmulator, config: ExecutionConfig) -> None:
    draft = Agent("draft").instruct("Write. The reviewer said: {verdict?}").writes("text")
    review = Agent("review").instruct("Review: {text}").history("none").writes("verdict")
    loop = ((draft >> review) * until(_approved, max=5)).model(gemini.model())
    answers(gemini, draft=["one", "two"], review=["shorter", "fine"])
    result = await loop.run("Go.", config=config)
    assert result.state == {"text": "two", "verdict": "fine"}
    assert asked(gemini) == ["draft", "review"] * 2
    _, second = gemini.of(agent="draft")
    assert "The reviewer said: shorter" in second.system
    for number, request in enumerate(gemini.of(agent="review")):
        assert f"Review: {('one', 'two')[number]}" in request.system
        assert "Go." not in "".join(map(texts, request.contents))  # it sees its instruction only


@BOTH
async def test_a_fallback_asks_another_model_after_429(
    gemini: GeminiEmulator, config: ExecutionConfig
) -> None:
    busy = reply(status=429, error_message="quota", retry_after=30, chunks=["half an "])
    pro = Agent("pro", gemini.model("gemini-2.5-pro")).writes("text")
    flash = Agent("flash", gemini.model("gemini-2.5-flash")).writes("text")
    after = Agent("after", gemini.model("gemini-2.5-flash"))
    gemini.script = Script(
        rules=[rule(model="gemini-2.5-pro", reply=busy), rule(agent="flash", reply="from flash")],
        default="done",
    )
    result = await (pro // flash >> after).run("Hi.", config=config)
    assert (result.text, result.state, result.errors) == ("done", {"text": "from flash"}, [])
    assert [each.model for each in gemini.requests] == [
        *("gemini-2.5-pro", "gemini-2.5-flash"),
        "gemini-2.5-flash",
    ]
    assert "half an" not in json.dumps([each.body for each in gemini.of(model="gemini-2.5-flash")])


async def test_without_a_fallback_the_error_is_raised_with_its_place(
    gemini: GeminiEmulator,
) -> None:
    answers(gemini, a="fine", b=reply(status=429, error_message="quota", retry_after=30))
    pipeline = (Agent("a") >> Agent("b")).model(gemini.model())
    with pytest.raises(errors.ClientError, match="quota") as caught:
        await pipeline.run("Hi.")
    assert caught.value.code == 429
    assert any("'b'" in note and __file__ in note for note in caught.value.__notes__)


@BOTH
@pytest.mark.parametrize(
    "bad",
    [
        reply(error_code="SAFETY"),
        reply(finish_reason="RECITATION"),
        reply("x", fault="truncated"),
        reply(chunks=["x", "y"], fault="cut"),
        reply(status=503, fault="html"),
        reply(status=404),
    ],
    ids=["blocked", "recitation", "truncated", "cut", "proxy", "not found"],
)
async def test_a_fallback_makes_good_whatever_goes_wrong(
    gemini: GeminiEmulator, bad: Any, config: ExecutionConfig
) -> None:
    answers(gemini, a=bad, b="good")
    pipeline = (Agent("a").writes("k") // Agent("b").writes("k")).model(gemini.model())
    result = await pipeline.run("Hi.", config=config)
    assert (result.text, result.state, result.errors) == ("good", {"k": "good"}, [])


@BOTH
async def test_an_agent_that_is_blocked_reports_one_error(
    gemini: GeminiEmulator, config: ExecutionConfig
) -> None:
    answers(gemini, a=reply(error_code="PROHIBITED_CONTENT"))
    result = await Agent("a", gemini.model()).run("Hi.", config=config)
    assert [error.code for error in result.errors] == ["PROHIBITED_CONTENT"]
    assert result.text == ""


async def test_branches_are_asked_at_the_same_time(gemini: GeminiEmulator) -> None:
    both = asyncio.Barrier(2)  # of the emulator's loop: that is where it is awaited

    async def meet(asked: Asked) -> str:
        async with asyncio.timeout(30):
            await both.wait()
        return f"{asked.agent} is here"

    answers(gemini, a=meet, b=meet)
    pipeline = FanOut(Agent("a").writes("a"), Agent("b").writes("b")).model(gemini.model())
    result = await pipeline.run("Hi.")
    assert result.state == {"a": "a is here", "b": "b is here"}
    for request in gemini.requests:  # neither sees the other
        assert "".join(map(texts, request.contents)) == "Hi."


async def test_a_lost_race_hangs_up(gemini: GeminiEmulator) -> None:
    answers(gemini, slow=reply("late", latency=3600), fast="first")
    pipeline = race(Agent("slow"), Agent("fast")).model(gemini.model())
    assert (await pipeline.run("Hi.")).text == "first"
    if gemini.of(agent="slow"):  # the race may be over before it even asks
        await _holds(lambda: [each.agent for each in gemini.abandoned] == ["slow"])


async def test_a_timeout_hangs_up(gemini: GeminiEmulator) -> None:
    answers(gemini, slow=reply("late", latency=3600))
    pipeline = timeout(Agent("slow", gemini.model()), 1.0)
    with pytest.raises(StepTimeoutError):
        await pipeline.run("Hi.")
    await _holds(lambda: [each.agent for each in gemini.abandoned] == ["slow"])


async def _holds(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  # it happens in another thread
            await asyncio.sleep(0.01)


async def test_items_of_a_map_are_asked_for_one_by_one(gemini: GeminiEmulator) -> None:
    def twice(asked: Asked) -> str:
        return asked.system.removeprefix("Double: ")[0] * 2

    answers(gemini, double=twice)
    body = Agent("double").instruct("Double: {item}").history("none").writes("doubled")
    pipeline = map_over("items", body, item_key="item", output_key="all").model(gemini.model())
    result = await pipeline.run("Hi.", state={"items": ["a", "b", "c"]})
    assert result.state["all"] == ["aa", "bb", "cc"]
    assert len(gemini.requests) == 3


# --- tools ---------------------------------------------------------------------------------------


def area(width: int, height: int) -> dict[str, int]:
    """Work out an area.

    Args:
        width: In metres.
        height: In metres.
    """
    return {"square_metres": width * height}


def colour(name: str) -> str:
    """Look up a colour."""
    return f"{name} is #ff0000"


@BOTH
async def test_tools_are_declared_called_and_told_of(
    gemini: GeminiEmulator, config: ExecutionConfig
) -> None:
    both = reply(
        Thought("I need both."),
        Call("area", {"width": 2, "height": 3}, id="c1"),
        Call("colour", {"name": "red"}, id="c2"),
    )
    answers(gemini, painter=[both, "Six square metres of red."])
    painter = Agent("painter", gemini.model()).instruct("Paint.").tool(area).tool(colour)
    result = await painter.run("A wall of 2 by 3.", config=config)
    assert result.text == "Six square metres of red."
    first, second = gemini.requests
    assert first.tools == second.tools == ("area", "colour")
    declared = first.declarations["area"]
    assert declared["description"].startswith("Work out an area.")
    schema: Any = declared.get("parameters") or declared.get("parameters_json_schema")
    assert schema["properties"].keys() == {"width", "height"}
    assert sorted(schema["required"]) == ["height", "width"]
    assert second.body is not None
    said, called, results = second.body["contents"]
    assert texts(said) == "A wall of 2 by 3."
    calls = [part["functionCall"] for part in called["parts"] if "functionCall" in part]
    assert called["role"] == "model"
    assert [(call["name"], call["args"]) for call in calls] == [
        ("area", {"width": 2, "height": 3}),
        ("colour", {"name": "red"}),
    ]
    assert results["role"] == "user"
    assert [(each["name"], each["response"]) for each in second.results] == [
        ("area", {"square_metres": 6}),
        ("colour", {"result": "red is #ff0000"}),
    ]


async def test_a_tool_that_raises_stops_the_run(gemini: GeminiEmulator) -> None:
    def broken() -> str:
        """Break."""
        raise ZeroDivisionError("broken")

    answers(gemini, a=Call("broken"))
    with pytest.raises(ZeroDivisionError, match="broken"):
        await Agent("a", gemini.model()).tool(broken).run("Hi.")
    assert len(gemini.requests) == 1


# --- what else is in a request -------------------------------------------------------------------


class Invoice(BaseModel):
    """What is asked for."""

    number: int
    total: float


async def test_a_schema_goes_to_gemini(gemini: GeminiEmulator) -> None:
    answers(gemini, read='{"number": 7, "total": 9.5}')
    read = Agent("read", gemini.model()).instruct("Read the invoice.").writes("invoice") @ Invoice
    result = await read.run("No. 7: 9.50")
    assert result.state["invoice"] == {"number": 7, "total": 9.5}
    config = gemini.requests[0].config
    assert config["responseMimeType"] == "application/json"
    schema: Any = config.get("responseSchema") or config.get("responseJsonSchema")
    assert schema["properties"].keys() == {"number", "total"}


async def test_generation_settings_go_to_gemini(gemini: GeminiEmulator) -> None:
    answers(gemini, a="hi")
    config = types.GenerateContentConfig(temperature=0.25, max_output_tokens=50, top_k=3)
    await Agent("a", gemini.model()).configure(generate_content_config=config).run("Hi.")
    assert gemini.requests[0].config == {"temperature": 0.25, "maxOutputTokens": 50, "topK": 3}


async def test_images_go_to_gemini(gemini: GeminiEmulator) -> None:
    answers(gemini, look="a cat")
    picture = types.Part.from_bytes(data=b"\x89PNG", mime_type="image/png")
    await Agent("look", gemini.model()).run([types.Part(text="What is it?"), picture])
    [content] = gemini.requests[0].contents
    text, image = content["parts"]
    assert text == {"text": "What is it?"}
    assert image["inlineData"]["data"] == "iVBORw=="
    assert "image/png" in image["inlineData"].values()  # Google's client writes mime_type


@pytest.mark.parametrize(
    ("history", "seen"),
    [
        ("transcript", ["one", "a1", "b1", "two", "a2"]),
        ("own", ["one", "b1", "two"]),
        ("input", ["a2"]),
        ("none", []),
    ],
)
async def test_histories_decide_what_goes_to_gemini(
    gemini: GeminiEmulator, history: Any, seen: list[str]
) -> None:
    answers(gemini, a=["a1", "a2"], b=["b1", "b2"])
    pipeline = (Agent("a") >> Agent("b").history(history)).model(gemini.model())
    harness = AgentHarness(pipeline)
    await harness.send("one")
    await harness.send("two")
    said = "\n".join(map(texts, gemini.of(agent="b")[-1].contents))
    for text in ("one", "b1", "two", "a1", "a2"):
        assert (text in said) == (text in seen), text


async def test_a_conversation_goes_on(gemini: GeminiEmulator) -> None:
    answers(gemini, a=["Hello!", "Bye!"])
    harness = AgentHarness(Agent("a", gemini.model()))
    assert [(await harness.send(text)).final_text for text in ("Hi.", "Bye.")] == ["Hello!", "Bye!"]
    assert [(each["role"], texts(each)) for each in gemini.requests[1].contents] == [
        ("user", "Hi."),
        ("model", "Hello!"),
        ("user", "Bye."),
    ]


# --- streaming, usage ----------------------------------------------------------------------------


async def test_pieces_arrive_one_by_one_and_usage_counts_once(gemini: GeminiEmulator) -> None:
    usage = Usage(prompt=50, cached=20, output=8, thoughts=4)
    answers(gemini, a=reply(chunks=["a ", "b ", "c"], usage=usage), b=reply("d", usage=usage))
    pipeline = (Agent("a").writes("k") >> Agent("b")).model(gemini.model())
    result = await pipeline.run("Hi.", config=STREAMED)
    assert [event.content for event in result if event.is_partial] == ["a ", "b ", "c", "d"]
    assert (result.text, result.state) == ("d", {"k": "a b c"})
    assert result.usage == usage + usage


# --- under ADK's own Runner ----------------------------------------------------------------------


async def test_adks_own_runner_sends_the_same(gemini: GeminiEmulator) -> None:
    answers(gemini, a="one", b="two")
    pipeline = (Agent("a").instruct("First.").writes("k") >> Agent("b").instruct("{k}?")).model(
        gemini.model()
    )
    await pipeline.run("Hi.")
    ours = [each.body for each in gemini.requests]
    app = pipeline.to_app()
    runner = InMemoryRunner(app=app)
    session = await runner.session_service.create_session(app_name=app.name, user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="Hi.")])
    said = [
        event.content.parts[0].text
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message)
        if event.content and event.content.parts
    ]
    assert said == ["one", "two"]
    assert [each.body for each in gemini.requests[2:]] == ours


async def test_what_the_script_forgot_is_told_although_a_fallback_made_good() -> None:
    async def use() -> None:
        async with GeminiEmulator(rules=[rule(agent="b", reply="good")]) as gemini:
            pipeline = (Agent("a") // Agent("b")).model(gemini.model())
            assert (await pipeline.run("Hi.")).text == "good"

    with pytest.raises(ScriptExhaustedError, match="no reply for call 1"):
        await use()
