"""Edits of requests, over ADK's own Gemini and real HTTP, and on random conversations."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from google.adk.models.llm_request import LlmRequest
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types
from kit import SSE, clerk, until

from adk_fluent import Agent
from adk_fluent.errors import UsageError
from adk_fluent.middleware import ContextEditingMiddleware, context_editing
from adk_fluent.protocol import Middleware, ModelCall, ModelReply, estimate_tokens
from adk_fluent.testing import AgentHarness, Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kit import Measured

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

CLEARED: Final = "[cleared"
#: Four characters a token: 100 tokens.
LONG: Final = "x" * 400


def look_up(page: str) -> str:
    """A long page."""
    return f"{page}: {LONG}"


def note(text: str) -> str:
    """Write something down."""
    return f"noted {text}: {LONG}"


def eager(**options: Any) -> ContextEditingMiddleware:
    at_once: dict[str, Any] = {"trigger_tokens": 0, "keep": 1, "clear_at_least": 0}
    return context_editing(**(at_once | options))


def reader(gemini: GeminiEmulator, middleware: Any) -> Any:
    made = Agent("reader", gemini.model()).tool(look_up).tool(note)
    return made.middleware(middleware)


def pages(many: int) -> list[Any]:
    return [Call("look_up", {"page": f"page {n}"}) for n in range(many)]


def results_in(request: Any) -> list[str]:
    """The results that a request brings, each in its first characters."""
    return [
        str(part["functionResponse"]["response"]["result"])[:6]
        for content in request.contents
        for part in content["parts"]
        if "functionResponse" in part
    ]


def parts_of(content: types.Content) -> list[Any]:
    assert content.parts
    return list(content.parts)


def request_of(contents: Sequence[types.Content]) -> LlmRequest:
    return LlmRequest(model="m", contents=list(contents), config=types.GenerateContentConfig())


async def edited(contents: Sequence[types.Content], **options: Any) -> list[types.Content]:
    """What a model is sent of a conversation."""
    sent: list[ModelCall] = []

    async def model(call: ModelCall) -> ModelReply:
        sent.append(call)
        return ModelReply()

    call = ModelCall(request_of(contents), agent="a")
    await context_editing(**options).wrap_model_call(call, model)
    return sent[0].request.contents


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(metrics: Measured) -> None:
    with GeminiEmulator(*pages(4), "done") as gemini:
        result = await reader(gemini, eager(keep=2)).run("hi")
        assert result.text == "done"
        assert [results_in(each) for each in gemini.requests] == [
            [],
            ["page 0"],
            ["page 0", "page 1"],
            ["[clear", "page 1", "page 2"],
            ["[clear", "[clear", "page 2", "page 3"],
        ]
    assert metrics("adk_fluent.editing.tokens", gen_ai__agent__name="reader") > 3 * 80


async def test_streamed() -> None:
    with GeminiEmulator(*pages(3), reply(chunks=["a", "b", "c"])) as gemini:
        result = await reader(gemini, eager()).run("hi", config=SSE)
        assert result.text == "abc"
        assert [each.content for each in result if each.is_partial][-3:] == ["a", "b", "c"]
        assert results_in(gemini.requests[-1]) == ["[clear", "[clear", "page 2"]


async def test_parallel_tools() -> None:
    """The emulator refuses calls without results; what is new is never cleared."""
    both = reply(*pages(2))
    with GeminiEmulator(both, both, "done") as gemini:
        assert (await reader(gemini, eager(keep=0)).run("hi")).text == "done"
        assert results_in(gemini.requests[1]) == ["page 0", "page 1"]
        assert results_in(gemini.requests[2]) == ["[clear", "[clear", "page 0", "page 1"]


async def test_cancelled() -> None:
    with GeminiEmulator(*pages(2), reply("late", latency=60)) as gemini:
        running = asyncio.ensure_future(reader(gemini, eager()).run("hi"))
        await until(lambda: len(gemini.requests) == 3)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(gemini.requests) == 3
        assert results_in(gemini.requests[2]) == ["[clear", "page 1"]


async def test_error_after_the_first_partial() -> None:
    half = reply(chunks=["Half an ", "answer"], fault="cut")
    with GeminiEmulator(*pages(2), half, "whole") as gemini:
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await reader(gemini, eager()).run("hi", config=SSE)
        assert len(gemini.requests) == 3
        assert results_in(gemini.requests[2]) == ["[clear", "page 1"]


async def test_concurrent() -> None:
    """Nothing is remembered: one middleware edits many conversations, each as if it were alone."""
    shared = eager()
    models = [ScriptedModel(*pages(n), "done") for n in range(6)]
    await asyncio.gather(
        *(Agent("a", model).tool(look_up).middleware(shared).run("hi") for model in models)
    )
    cleared = [str(model.calls[-1].turns).count(CLEARED) for model in models]
    assert cleared == [0, 0, 1, 2, 3, 4]


# --- the session ---------------------------------------------------------------------------------


async def test_events_of_the_session_stay_as_they_are() -> None:
    sessions = InMemorySessionService()
    image = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))
    every = eager(keep=0, clear_inputs=True, drop_thoughts=True, media_turns=1)
    with GeminiEmulator(*pages(2), "one", *pages(2), "two") as gemini:
        pipeline = reader(gemini, every)
        ids: Any = {"user_id": "u", "session_id": "s"}
        await pipeline.run([types.Part(text="see"), image], session_service=sessions, **ids)
        await pipeline.run("again", session_service=sessions, **ids)
        assert str(gemini.requests[-1].contents).count(CLEARED) == 3
        assert "[image/png left out]" in str(gemini.requests[-1].contents)
    session: Any = sessions.sessions["adk_fluent_app"]["u"]["s"]
    told = str([each.content for each in session.events])
    assert CLEARED not in told
    assert "left out" not in told
    assert told.count(LONG) == 4


async def test_the_request_of_others_stays_as_it_is() -> None:
    """Whoever stands outside and calls again gets what he gave."""
    given: Any = []
    contents = conversation("call", "result", "call", "result", "model", "user")

    async def model(call: ModelCall) -> ModelReply:
        given.append(call.request.contents)
        return ModelReply()

    call = ModelCall(request_of(contents), agent="a")
    before = [each.model_dump() for each in contents]
    for _ in range(2):
        await eager(keep=0, clear_inputs=True).wrap_model_call(call, model)
    assert given[0] == given[1] != contents
    assert [each.model_dump() for each in call.request.contents] == before


# --- results of tools ----------------------------------------------------------------------------


def said(role: str, *parts: Any) -> types.Content:
    made = [types.Part(text=each) if isinstance(each, str) else each for each in parts]
    return types.Content(role=role, parts=made)


def conversation(*kinds: str) -> list[types.Content]:
    """A conversation of these kinds of contents, each of about a hundred tokens."""
    made: list[types.Content] = [said("user", "question")]
    for number, kind in enumerate(kinds):
        match kind:
            case "call":
                call = types.FunctionCall(name="look_up", args={"page": LONG, "n": number})
                part = types.Part(function_call=call, thought_signature=b"signed")
                made.append(said("model", part))
            case "result":
                result = types.FunctionResponse(name="look_up", response={"result": LONG})
                made.append(said("user", types.Part(function_response=result)))
            case _:
                made.append(said(kind, f"{kind} {number} {LONG}"))
    return made


async def test_nothing_is_cleared_below_the_trigger() -> None:
    contents = conversation("call", "result", "call", "result", "call", "result")
    tokens = sum(map(estimate_tokens, contents))
    same = await edited(contents, trigger_tokens=tokens, keep=0, clear_at_least=0)
    assert all(one is other for one, other in zip(same, contents, strict=True))
    less = await edited(contents, trigger_tokens=tokens - 1, keep=0, clear_at_least=0)
    assert str(less).count(CLEARED) == 2  # the third one has just come
    assert not str(await edited(contents, trigger_tokens=None)).count(CLEARED)


async def test_nothing_is_cleared_that_saves_too_little() -> None:
    contents = conversation(*["call", "result"] * 4)
    options: Any = {"trigger_tokens": 1, "keep": 0}
    assert str(await edited(contents, **options, clear_at_least=400)).count(CLEARED) == 0
    assert str(await edited(contents, **options, clear_at_least=200)).count(CLEARED) == 3


async def test_a_growing_conversation_keeps_its_beginning_for_a_while() -> None:
    """What a prompt cache holds stays the beginning of the next request, but for few times."""
    whole = conversation(*["call", "result"] * 40)
    options: Any = {"trigger_tokens": 1_000, "keep": 1, "clear_at_least": 800}
    sent = [await edited(whole[:end], **options) for end in range(1, len(whole) + 1, 2)]
    changes = sum(after[: len(before)] != before for before, after in zip(sent, sent[1:]))  # noqa: RUF007, B905
    assert 2 <= changes <= 6
    assert changes < len(sent) / 5
    assert max(estimate_tokens(each) for each in sent) < 10_000


async def test_what_was_cleared_counts_no_more() -> None:
    """Below the trigger again, nothing is cleared until it is exceeded again."""
    whole = conversation(*["call", "result"] * 20)
    options: Any = {"trigger_tokens": 3_000, "keep": 1, "clear_at_least": 0, "clear_inputs": True}
    sent = [await edited(whole[:end], **options) for end in range(1, len(whole) + 1, 2)]
    cleared = [str(each).count(CLEARED) for each in sent]
    assert len(set(cleared)) == 2
    assert cleared[-1] > 10


async def test_what_needs_no_edit_is_passed_on_as_it_is() -> None:
    passed: list[ModelCall] = []

    async def model(call: ModelCall) -> ModelReply:
        passed.append(call)
        return ModelReply()

    call = ModelCall(request_of(conversation("call", "result")), agent="a")
    await context_editing().wrap_model_call(call, model)
    assert passed[0] is call


async def test_calls_keep_their_signatures_and_ids() -> None:
    call = types.FunctionCall(name="look_up", args={"page": LONG}, id="call-1")
    result = types.FunctionResponse(name="look_up", response={"result": LONG}, id="call-1")
    contents = [
        said("user", "question"),
        said("model", types.Part(function_call=call, thought_signature=b"signed")),
        said("user", types.Part(function_response=result)),
        said("model", "answer"),
        said("user", "and?"),
    ]
    sent = await edited(contents, trigger_tokens=0, keep=0, clear_at_least=0, clear_inputs=True)
    ((calling,), (told,)) = (parts_of(each) for each in sent[1:3])
    assert (calling.function_call.args, calling.function_call.id) == ({}, "call-1")
    assert calling.thought_signature == b"signed"
    assert (told.function_response.name, told.function_response.id) == ("look_up", "call-1")
    assert told.function_response.response == {"result": eager().placeholder}
    kept = await edited(contents, trigger_tokens=0, keep=0, clear_at_least=0)
    assert parts_of(kept[1])[0].function_call.args == {"page": LONG}


async def test_results_of_some_tools_are_never_cleared() -> None:
    both = [Call("look_up", {"page": "a"}), Call("note", {"text": "b"})]
    with GeminiEmulator(*both, "done") as gemini:
        await reader(gemini, eager(keep=0, exclude_tools=["look_up"])).run("hi")
        assert results_in(gemini.requests[-1]) == ["a: xxx", "noted "]
    with GeminiEmulator(*both, "x", "done") as gemini:
        harness = AgentHarness(reader(gemini, eager(keep=0, exclude_tools=["look_up"])))
        await harness.send("hi")
        await harness.send("and?")
        assert results_in(gemini.requests[-1]) == ["a: xxx", "[clear"]


async def test_what_stands_in_the_place_of_a_result_may_be_said_otherwise() -> None:
    contents = conversation("call", "result", "model", "user")
    sent = await edited(
        contents, trigger_tokens=0, keep=0, clear_at_least=0, placeholder="(gelöscht)"
    )
    assert parts_of(sent[2])[0].function_response.response == {"result": "(gelöscht)"}


async def test_a_result_that_is_shorter_stays() -> None:
    contents = conversation("call", "result", "model", "user")
    parts_of(contents[2])[0].function_response.response = {"result": "ok"}
    assert await edited(contents, trigger_tokens=0, keep=0, clear_at_least=0) == contents


# --- turns, media, thoughts ----------------------------------------------------------------------


async def test_old_turns_are_left_out() -> None:
    with GeminiEmulator(default="ok") as gemini:
        harness = AgentHarness(clerk(gemini, context_editing(max_turns=2)))
        for n in range(4):
            await harness.send(f"question {n}")
        assert [each.turns[0].text for each in gemini.requests] == [
            *("question 0", "question 0", "question 1", "question 2"),
        ]


@pytest.mark.parametrize(
    ("at_once", "firsts"), [(1, [0, 0, 0, 1, 2, 3, 4]), (3, [0, 0, 0, 0, 0, 3, 3])]
)
async def test_turns_are_left_out_together(at_once: int, firsts: list[int]) -> None:
    contents: list[types.Content] = []
    for n in range(7):
        contents.append(said("user", f"question {n}"))
        sent = await edited(contents, max_turns=3, turns_at_once=at_once)
        assert sent[0] is contents[2 * firsts[n]]
        contents.append(said("model", "answer"))


async def test_a_turn_with_its_calls_is_one() -> None:
    contents = [*conversation("call", "result", "model"), *conversation("call", "result", "model")]
    assert await edited([*contents, said("user", "and?")], max_turns=2) == [
        *contents[4:],
        said("user", "and?"),
    ]


async def test_images_and_files_of_old_turns_are_named_only() -> None:
    image = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))
    file = types.Part(file_data=types.FileData(file_uri="gs://a", mime_type="application/pdf"))
    contents = [
        said("user", "see", image, file),
        said("model", "seen"),
        said("user", image),
        said("model", "seen"),
        said("user", image),
    ]
    sent = await edited(contents, media_turns=2)
    assert [part.text for part in parts_of(sent[0])] == [
        *("see", "[image/png left out]", "[application/pdf left out]"),
    ]
    assert sent[1:] == contents[1:]
    assert contents[0].parts == [types.Part(text="see"), image, file]


async def test_images_that_tools_have_returned_are_old_ones_too() -> None:
    image = types.FunctionResponseBlob(data=b"png", mime_type="image/png")
    call = types.FunctionCall(name="look_up", args={})
    result = types.FunctionResponse(
        name="look_up",
        response={"result": LONG},
        parts=[types.FunctionResponsePart(inline_data=image)],
    )
    contents = [
        said("user", "question"),
        said("model", types.Part(function_call=call)),
        said("user", types.Part(function_response=result)),
        said("model", "answer"),
        said("user", "and?"),
    ]
    for options, text in (
        ({"media_turns": 1}, LONG),
        ({"trigger_tokens": 0, "keep": 0, "clear_at_least": 0}, eager().placeholder),
    ):
        told = parts_of((await edited(contents, **options))[2])[0].function_response
        assert (told.response, told.parts) == ({"result": text}, None)
    assert result.parts


async def test_thoughts_of_earlier_turns_are_left_out() -> None:
    thought = types.Part(text="hm", thought=True)
    call = types.Part(function_call=types.FunctionCall(name="look_up", args={}), thought=True)
    result = types.FunctionResponse(name="look_up", response={"result": "r"})
    one_turn = [
        said("user", "question"),
        said("model", thought),
        said("model", thought, call),
        said("user", types.Part(function_response=result)),
        said("model", thought, "answer"),
    ]
    sent = await edited([*one_turn, *one_turn[:4]], drop_thoughts=True)
    assert sent == [
        said("user", "question"),
        said("model", call),
        one_turn[3],
        said("model", "answer"),
        *one_turn[:4],
    ]


async def test_what_other_agents_say_is_no_turn() -> None:
    """ADK tells an agent of others as of the user."""
    models = [ScriptedModel(default=f"said by {n}") for n in range(3)]
    agents = [Agent(f"agent_{n}", model) for n, model in enumerate(models)]
    pipeline = agents[0] >> agents[1] >> agents[2]
    harness = AgentHarness(pipeline.middleware(context_editing(max_turns=1)))
    for question in ("first", "second"):
        await harness.send(question)
    (_, last) = models[2].calls
    assert last.turns[0].text == "second"
    assert [each for each in range(3) if f"said by {each}" in str(last.turns)] == [0, 1]


@pytest.mark.parametrize("prefix", [0, 2])
async def test_a_static_instruction_stays_in_front(prefix: int) -> None:
    """ADK 2.x puts images of a static instruction before the conversation."""
    head = [said("user", "Referenced inline data: 0"), said("user", "instruction")][:prefix]
    contents = [said("user", "q1"), said("model", "a1"), said("user", "q2")]
    request = request_of([*head, *contents])
    if prefix:
        if not hasattr(request, "_static_instruction_prefix_end_index"):
            pytest.skip("this version of ADK puts nothing there")
        request._static_instruction_prefix_end_index = prefix
    sent: list[Any] = []

    async def model(call: ModelCall) -> ModelReply:
        sent.extend(call.request.contents)
        return ModelReply()

    await context_editing(max_turns=1).wrap_model_call(ModelCall(request, agent="a"), model)
    assert sent == [*head, contents[-1]]


async def test_a_conversation_that_the_service_has_is_left_alone() -> None:
    request: Any = SimpleNamespace(
        previous_interaction_id="i", contents=conversation("model", "user")
    )
    seen: list[Any] = []

    async def model(call: ModelCall) -> ModelReply:
        seen.append(call.request)
        return ModelReply()

    await context_editing(max_turns=1).wrap_model_call(ModelCall(request), model)
    assert seen == [request]


# --- what it is given ----------------------------------------------------------------------------


def test_it_is_a_middleware() -> None:
    assert isinstance(ContextEditingMiddleware(), Middleware)
    assert ContextEditingMiddleware().keep == 5


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"trigger_tokens": -1}, "trigger_tokens"),
        ({"keep": -1}, "keep"),
        ({"keep": "3"}, "keep"),
        ({"clear_at_least": -1}, "clear_at_least"),
        ({"exclude_tools": "search"}, "exclude_tools"),
        ({"max_turns": 0}, "max_turns"),
        ({"max_turns": 3, "turns_at_once": 0}, "turns_at_once"),
        ({"turns_at_once": 2}, "turns_at_once"),
        ({"media_turns": 0}, "media_turns"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"context_editing\({option}=\.\.\.\)") as caught:
        ContextEditingMiddleware(**options)
    assert __file__ in str(caught.value)
