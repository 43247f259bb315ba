"""Summaries of long conversations, over ADK's own Gemini and real HTTP."""

from __future__ import annotations

import asyncio
import logging
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types
from google.genai.errors import ServerError
from kit import SSE, Time, until

from adk_fluent import Agent
from adk_fluent.config import CompactionConfig, ExecutionConfig
from adk_fluent.errors import RunError, UsageError
from adk_fluent.middleware import SummarizationMiddleware, retry, summarization, token_budget
from adk_fluent.protocol import Middleware, ModelCall, ModelReply, Usage
from adk_fluent.testing import (
    AgentHarness,
    Call,
    GeminiEmulator,
    ScriptedModel,
    Thought,
    reply,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kit import Measured

    from adk_fluent.protocol import NextModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

ASKED: Final = "Write the summary now."
SHOWN: Final = "<summary of the conversation so far>"
#: Four characters a token: 100 tokens.
LONG: Final = "x" * 400


def look_up(page: str) -> str:
    """A long page."""
    return f"{page}: {LONG}"


def summary(text: str = "what was said", **fields: Any) -> Any:
    return rule(ASKED, reply=reply(text, **fields))


def clerk(model: Any, *middlewares: Any) -> Any:
    made = Agent("clerk", model).tool(look_up)
    for each in middlewares:
        made = made.middleware(each)
    return made


def is_asked(request: Any) -> bool:
    """Whether a request is for a summary."""
    return request.prompt.endswith(ASKED)


def summaries(requests: Sequence[Any]) -> list[Any]:
    return [each for each in requests if is_asked(each)]


def answers(requests: Sequence[Any]) -> list[Any]:
    return [each for each in requests if not is_asked(each)]


def pages(many: int) -> list[Any]:
    return [Call("look_up", {"page": f"page {n}"}) for n in range(many)]


async def talk(harness: AgentHarness, many: int, first: int = 0) -> None:
    """Some turns of a little more than a hundred tokens each."""
    for n in range(first, first + many):
        await harness.send(f"question {n} {LONG}")


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(metrics: Measured, caplog: pytest.LogCaptureFixture) -> None:
    script: Any = {"rules": [summary()], "default": "ok"}
    with caplog.at_level(logging.INFO, "adk_fluent"), GeminiEmulator(**script) as gemini:
        harness = AgentHarness(clerk(gemini.model(), summarization(trigger_tokens=400)))
        await talk(harness, 5)
        (asked,) = summaries(gemini.requests)
        last = answers(gemini.requests)[-1]
    assert "question 0" in asked.prompt
    assert "question 4" not in asked.prompt
    assert asked.tools == ()
    assert last.turns[0].text == f"{SHOWN}\nwhat was said\n</summary>"
    assert last.turns[-1].text == f"question 4 {LONG}"
    assert "question 0" not in str(last.turns)
    assert last.tools == ("look_up",)
    result = harness.results[-1]
    assert result.text == "ok"
    assert result.state["adk_fluent_summary:clerk"]["text"] == "what was said"
    assert metrics("adk_fluent.summarization.summaries", gen_ai__agent__name="clerk") == 1
    tokens = metrics("adk_fluent.summarization.tokens", gen_ai__token__type="input")
    assert tokens > 200
    assert metrics("adk_fluent.summarization.tokens", gen_ai__token__type="output") > 0
    assert f"{int(tokens)} tokens in" in caplog.text


async def test_streamed() -> None:
    """The user sees nothing of the summary, neither in pieces nor as an event."""
    said = reply(chunks=["a", "b", "c"])
    with GeminiEmulator(rules=[summary()], default=said) as gemini:
        harness = AgentHarness(clerk(gemini.model(), summarization(trigger_tokens=400)), config=SSE)
        await talk(harness, 5)
        (asked,) = summaries(gemini.requests)
        assert not asked.stream
        assert all(each.stream for each in answers(gemini.requests))
    partial = [each.content for each in harness.results[-1] if each.is_partial]
    assert partial == ["a", "b", "c"]
    assert not any("what was said" in str(each.content) for r in harness.results for each in r)


async def test_parallel_tools() -> None:
    """The work on one question gets too long: calls keep their results, and the question stays."""
    with GeminiEmulator(
        *[reply(*pages(3))] * 4, "done", rules=[summary()], default="never"
    ) as gemini:
        pipeline = clerk(gemini.model(), summarization(trigger_tokens=700))
        result = await pipeline.run("Compare all pages, please.")
        assert result.text == "done"
        last = answers(gemini.requests)[-1]
        assert summaries(gemini.requests)
    assert last.turns[0].text.startswith(SHOWN)
    assert last.turns[1].text == "Compare all pages, please."
    told = str(last.contents)
    assert 3 <= told.count("'functionCall'") == told.count("'functionResponse'") < 12


async def test_cancelled() -> None:
    late = rule(ASKED, reply=reply("late", latency=60))
    with GeminiEmulator(rules=[late], default="ok") as gemini:
        harness = AgentHarness(clerk(gemini.model(), summarization(trigger_tokens=400)))
        running = asyncio.ensure_future(talk(harness, 9))
        await until(lambda: bool(summaries(gemini.requests)))
        before = len(gemini.requests)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert len(gemini.requests) == before


async def test_error_after_the_first_partial() -> None:
    """What the model says after a summary is not asked for again; the summary is remembered."""
    broken = rule("question 4", times=1, reply=reply(chunks=["Half an ", "answer"], fault="cut"))
    rules = [summary(), broken]
    with GeminiEmulator(rules=rules, default=reply(chunks=["o", "k"])) as gemini:
        middleware = summarization(trigger_tokens=400)
        harness = AgentHarness(clerk(gemini.model(), middleware), config=SSE)
        await talk(harness, 4)
        many = len(gemini.requests)
        with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
            await talk(harness, 1, first=4)
        assert len(gemini.requests) <= many + 2
        assert (await harness.send("again")).text == "ok"
        assert len(summaries(gemini.requests)) == 1
        assert answers(gemini.requests)[-1].turns[0].text.startswith(SHOWN)


async def test_concurrent() -> None:
    """Each session has its own summary."""
    shared = summarization(trigger_tokens=400)

    def told(asked: Any) -> str:
        return f"of {asked.prompt.partition('user: ')[2][:4]}"

    async def converse(n: int) -> str:
        model = ScriptedModel(rules=[rule(ASKED, reply=told)], default="ok")
        harness = AgentHarness(clerk(model, shared))
        for turn in range(5):
            await harness.send(f"no {n} {turn} {LONG}")
        assert len(summaries(model.calls)) == 1
        return model.calls[-1].turns[0].text

    shown = await asyncio.gather(*(converse(n) for n in range(6)))
    assert [each.splitlines()[1] for each in shown] == [f"of no {n}" for n in range(6)]


# --- one call at a time, without a pipeline around it --------------------------------------------


def said(role: str, *parts: Any) -> types.Content:
    made = [types.Part(text=each) if isinstance(each, str) else each for each in parts]
    return types.Content(role=role, parts=made)


def turns_of(many: int) -> list[types.Content]:
    """So many turns of about two hundred tokens, and a question."""
    made = [
        content
        for n in range(many)
        for content in (said("user", f"question {n} {LONG}"), said("model", f"answer {n} {LONG}"))
    ]
    return [*made, said("user", f"question {many}")]


class Calls:
    """Model calls of one session; what was asked for summaries, and what was sent.

    Args:
        middleware: What stands around the calls.
        answer: What a request for a summary is answered with; in a text, `{n}` is its number.
    """

    def __init__(self, middleware: Any, answer: Any = "sum") -> None:
        self.middleware = middleware
        self.answer = answer
        self.state: dict[str, Any] = {}
        self.session: Any = None
        self.asked: list[ModelCall] = []
        self.model: Any = SimpleNamespace(model="own")

    async def __call__(
        self, contents: Sequence[types.Content], agent: str = "a", **fields: Any
    ) -> list[types.Content]:
        sent: list[list[types.Content]] = []

        async def model(call: ModelCall) -> ModelReply:
            if not told(call).endswith(ASKED):
                sent.append(call.request.contents)
                return ModelReply([LlmResponse(content=said("model", "ok"))])
            self.asked.append(call)
            await asyncio.sleep(0.01)
            answer: Any = self.answer(call) if callable(self.answer) else self.answer
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, LlmResponse):
                return ModelReply([answer])
            text = answer.format(n=len(self.asked), agent=call.agent)
            return ModelReply([LlmResponse(content=said("model", text))])

        config = types.GenerateContentConfig(**fields)
        request = LlmRequest(model="own", contents=list(contents), config=config)
        ctx = SimpleNamespace(state=self.state, session=self.session)
        await self.middleware.wrap_model_call(
            ModelCall(request, ctx, self.model, agent=agent), model
        )
        (contents,) = sent
        return list(contents)


def told(call: ModelCall) -> str:
    """The text of what a model is sent last."""
    contents = call.request.contents
    return text_of(contents[-1]) if contents else ""


def text_of(content: types.Content) -> str:
    return "".join(part.text or "" for part in content.parts or ())


async def test_a_summary_goes_on_from_the_last_one() -> None:
    calls = Calls(summarization(trigger_tokens=700), "sum {n}")
    await calls(turns_of(4))
    sent = await calls(turns_of(4))
    assert len(calls.asked) == 1  # known from before
    assert "sum 1" in text_of(sent[0])
    sent = await calls(turns_of(7))
    _, second = calls.asked
    assert told(second).startswith("<summary>\nsum 1\n</summary>\n\n<conversation>")
    assert "question 0" not in told(second)
    assert "question 3" in told(second)
    assert "sum 2" in text_of(sent[0])
    assert text_of(sent[-1]) == "question 7"


async def test_a_history_that_has_changed_is_summarised_anew() -> None:
    calls = Calls(summarization(trigger_tokens=1_000), "sum {n}")
    await calls(turns_of(5))
    other = [said("user", f"another question {LONG}"), *turns_of(5)[1:]]
    sent = await calls(other)
    assert "another question" in told(calls.asked[1])
    assert "sum 1" not in told(calls.asked[1])
    assert "sum 2" in text_of(sent[0])
    assert await calls(turns_of(1)) == turns_of(1)  # rewound to before the summary


@pytest.mark.parametrize(
    "stored", ["?", {}, {"covers": "3"}, {"covers": 3, "prefix": "?", "text": "?"}, {"covers": 99}]
)
async def test_a_stored_summary_of_something_else_is_not_used(stored: Any) -> None:
    calls = Calls(summarization())
    calls.state["adk_fluent_summary:a"] = stored
    assert await calls(turns_of(3)) == turns_of(3)


async def test_each_agent_has_its_own() -> None:
    calls = Calls(summarization(trigger_tokens=1_000), "for {agent}")
    await calls(turns_of(5), agent="a")
    await calls(turns_of(6), agent="b")
    assert {key: each["text"] for key, each in calls.state.items()} == {
        "adk_fluent_summary:a": "for a",
        "adk_fluent_summary:b": "for b",
    }


async def test_the_same_summary_is_asked_for_once_at_a_time() -> None:
    calls = Calls(summarization(trigger_tokens=1_000))
    sent = await asyncio.gather(*(calls(turns_of(5), agent=f"a{n}") for n in range(5)))
    assert len(calls.asked) == 1
    assert all(each == sent[0] for each in sent)
    assert len(calls.state) == 5


async def test_who_is_cancelled_leaves_it_to_those_who_wait() -> None:
    calls = Calls(summarization(trigger_tokens=1_000))
    first = asyncio.ensure_future(calls(turns_of(5), agent="a"))
    others = [asyncio.ensure_future(calls(turns_of(5), agent=f"b{n}")) for n in range(3)]
    await until(lambda: bool(calls.asked))
    first.cancel()
    sent = await asyncio.gather(*others)
    assert first.cancelled()
    assert len(calls.asked) == 2
    assert all("sum" in text_of(each[0]) for each in sent)


async def test_those_who_wait_fail_with_it() -> None:
    calls = Calls(summarization(trigger_tokens=1_000), ConnectionError("reset"))
    sent = await asyncio.gather(*(calls(turns_of(5), agent=f"a{n}") for n in range(4)))
    assert len(calls.asked) == 1
    assert all(each == turns_of(5) for each in sent)


def test_event_loops_in_other_threads() -> None:
    calls = Calls(summarization(trigger_tokens=1_000))
    sent: list[Any] = []

    def run(n: int) -> None:
        sent.append(asyncio.run(calls(turns_of(5), agent=f"a{n}")))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(sent) == 4
    assert all("sum" in text_of(each[0]) for each in sent)


# --- the session ---------------------------------------------------------------------------------


async def test_it_is_known_in_another_process() -> None:
    sessions = InMemorySessionService()
    ids: Any = {"user_id": "u", "session_id": "s", "session_service": sessions}
    with GeminiEmulator(rules=[summary()], default="ok") as gemini:
        for n in range(12):  # each time with nothing but the session
            pipeline = clerk(gemini.model(), summarization(trigger_tokens=600))
            await pipeline.run(f"question {n} {LONG}", **ids)
        first, second, *_ = summaries(gemini.requests)
        assert "question 0" in first.prompt
        assert "what was said" in second.prompt
        assert "question 0" not in second.prompt
    session: Any = sessions.sessions["adk_fluent_app"]["u"]["s"]
    told = [each.content.parts[0].text for each in session.events if each.content]
    assert told[::2] == [f"question {n} {LONG}" for n in range(12)]
    assert set(told[1::2]) == {"ok"}


async def test_a_rewound_session_is_summarised_as_it_is_now() -> None:
    sessions = InMemorySessionService()
    with GeminiEmulator(rules=[summary()], default="ok") as gemini:
        pipeline = clerk(gemini.model(), summarization(trigger_tokens=400))
        ids: Any = {"user_id": "u", "session_id": "s"}
        runs = [
            await pipeline.run(f"question {n} {LONG}", session_service=sessions, **ids)
            for n in range(6)
        ]
        assert summaries(gemini.requests)
        runner = pipeline.to_runner(session_service=sessions)
        await runner.rewind_async(**ids, rewind_before_invocation_id=[*runs[1]][-1].invocation_id)
        await pipeline.run("another one", session_service=sessions, **ids)
        texts = [each.text for each in gemini.requests[-1].turns]
        assert texts == [f"question 0 {LONG}", "ok", "another one"]


async def test_the_request_of_others_stays_as_it_is() -> None:
    """Whoever stands outside and calls again gets the same."""
    contents = turns_of(5)
    before = [each.model_dump() for each in contents]
    calls = Calls(summarization(trigger_tokens=1_000))

    first = await calls(contents)
    assert await calls(contents) == first != contents
    assert len(calls.asked) == 1
    assert [each.model_dump() for each in contents] == before


# --- when, and how much --------------------------------------------------------------------------


async def test_it_goes_by_what_the_model_counted() -> None:
    """Four characters a token is wrong for many languages; what the model says is not."""
    counts = reply("ok", usage=Usage(prompt=900, output=10))
    for limit, asked in ((1_000, 0), (900, 1)):
        with GeminiEmulator(counts, rules=[summary()], default="ok") as gemini:
            middleware = summarization(trigger_tokens=limit, keep=1)
            harness = AgentHarness(clerk(gemini.model(), middleware))
            await harness.send("a question of few letters")
            await harness.send("?")
            assert len(summaries(gemini.requests)) == asked


def event(author: str, run: str, tokens: int | None = None, **actions: Any) -> Event:
    usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=tokens)
    return Event(
        author=author,
        invocation_id=run,
        usage_metadata=None if tokens is None else usage,
        actions=EventActions(**actions),
    )


COMPACTED: Final = EventCompaction(
    start_timestamp=1.0, end_timestamp=2.0, compacted_content=said("model", "in short")
)


@pytest.mark.parametrize(
    ("events", "counts"),
    [
        ([event("a", "1", 900)], True),
        ([event("a", "1", 900), event("user", "2"), event("b", "2", 10)], True),
        ([event("b", "1", 900)], False),
        ([event("a", "1", 900), event("a", "2", 10)], False),
        ([event("a", "1", 900), event("user", "1", rewind_before_invocation_id="1")], False),
        ([event("a", "0", 900), event("user", "1", rewind_before_invocation_id="1")], True),
        (
            [
                event("a", "0", 10),
                event("user", "1"),
                event("a", "1", 900),
                event("user", "2", rewind_before_invocation_id="1"),
            ],
            False,
        ),
        ([event("a", "1", 900), event("user", "2", compaction=COMPACTED)], False),
    ],
)
async def test_it_goes_by_the_last_count_of_what_there_still_is(
    events: list[Event], counts: bool
) -> None:
    """Of this agent, and neither of what was rewound nor of what was compacted since."""
    calls = Calls(summarization(trigger_tokens=900, keep=1))
    calls.session = SimpleNamespace(events=events)
    await calls([said("user", "q"), said("model", "a"), said("user", "q")])
    assert bool(calls.asked) == counts


async def test_it_goes_by_a_part_of_what_the_model_can_be_sent() -> None:
    calls = Calls(summarization(max_context=1_600, trigger_fraction=0.5))
    await calls(turns_of(3))
    assert not calls.asked
    await calls(turns_of(4))
    assert calls.asked


async def test_it_goes_by_the_number_of_contents() -> None:
    calls = Calls(summarization(trigger_contents=7, keep=3))
    assert await calls(turns_of(2)) == turns_of(2)
    sent = await calls(turns_of(3))
    assert [text_of(each)[:10] for each in sent[1:]] == ["question 2", "answer 2 x", "question 3"]
    for many in (4, 5):  # the next seven that no summary covers
        await calls(turns_of(many))
    assert len(calls.asked) == 2
    assert "question 2" in told(calls.asked[1])


@pytest.mark.parametrize(
    ("options", "kept"), [({"keep": 3}, 3), ({"keep_tokens": 350}, 4), ({}, 5)]
)
async def test_what_came_last_stays_as_it_is(options: Any, kept: int) -> None:
    calls = Calls(summarization(**({"trigger_tokens": 1_000} | options)))
    contents = turns_of(6)
    sent = await calls(contents)
    assert all(one is other for one, other in zip(sent[1:], contents[-kept:], strict=True))


async def test_calls_keep_their_signatures_and_results() -> None:
    call = types.FunctionCall(name="look_up", args={"page": "a"})
    result = types.FunctionResponse(name="look_up", response={"result": LONG * 4})
    new = [
        said("model", types.Part(function_call=call, thought_signature=b"signed")),
        said("user", types.Part(function_response=result)),
    ]
    calls = Calls(summarization(trigger_tokens=500, keep=1, keep_tokens=0))
    sent = await calls([*turns_of(2), *new])
    assert [text_of(each)[:10] for each in sent[:2]] == [SHOWN[:10], "question 2"]
    assert all(one is other for one, other in zip(sent[2:], new, strict=True))


async def test_a_long_instruction_is_no_reason_to_summarise_each_time() -> None:
    """It cannot be made shorter; a summary has to be worth its call."""
    calls = Calls(summarization(trigger_tokens=3_000))
    for many in range(1, 31):
        await calls(turns_of(many), system_instruction=LONG * 40)
    assert 1 <= len(calls.asked) <= 30 * 200 / 300 + 1


async def test_what_is_much_too_long_is_summarised_in_steps() -> None:
    """No call for a summary is longer than the requests that are to be."""
    calls = Calls(summarization(trigger_tokens=700), "sum {n}")
    sent = await calls(turns_of(12))
    assert len(calls.asked) >= 3
    assert max(len(told(each)) for each in calls.asked) < 700 * 4 * 1.2
    for n in range(10):
        assert sum(f"question {n} " in told(each) for each in calls.asked) == 1
    assert f"sum {len(calls.asked)}" in text_of(sent[0])


async def test_what_was_done_before_a_step_failed_is_kept() -> None:
    def fail(call: ModelCall) -> Any:
        return "sum 1" if len(calls.asked) == 1 else ConnectionError("reset")

    calls = Calls(summarization(trigger_tokens=700), fail)
    sent = await calls(turns_of(12))
    assert len(calls.asked) == 2
    assert "sum 1" in text_of(sent[0])
    covered = calls.state["adk_fluent_summary:a"]["covers"]
    assert sent[1] == turns_of(12)[covered]


@pytest.mark.parametrize("contents", [[], turns_of(0), turns_of(1)[:2]])
async def test_what_cannot_be_cut_is_sent_as_it_is(contents: Any) -> None:
    calls = Calls(summarization(trigger_tokens=1, keep=1))
    assert await calls(contents) == contents
    assert not calls.asked


async def test_a_static_instruction_stays_in_front() -> None:
    """ADK 2.x puts images of a static instruction, and what follows it, before the conversation."""
    head = [said("user", "Referenced inline data: 0"), said("user", "instruction")]
    request = LlmRequest(model="own", contents=[*head, *turns_of(5)])
    if not hasattr(request, "_static_instruction_prefix_end_index"):
        pytest.skip("this version of ADK puts nothing there")
    request._static_instruction_prefix_end_index = 2
    sent: list[Any] = []

    async def model(call: ModelCall) -> ModelReply:
        sent.append(call)
        return ModelReply([LlmResponse(content=said("model", "sum"))])

    ctx = SimpleNamespace(state={}, session=None)
    call = ModelCall(request, ctx, SimpleNamespace(model="own"), agent="a")
    await summarization(trigger_tokens=1_000).wrap_model_call(call, model)
    asked, answered = sent
    assert "instruction" not in told(asked)
    assert answered.request.contents[:2] == head
    assert text_of(answered.request.contents[2]).startswith(SHOWN)


async def test_an_instruction_that_follows_results_is_not_what_the_user_said() -> None:
    """ADK puts it there at each call, and it is another one each time."""
    call = types.FunctionCall(name="look_up", args={"page": "a"})
    result = types.FunctionResponse(name="look_up", response={"result": LONG})
    work = [
        said("model", types.Part(function_call=call)),
        said("user", types.Part(function_response=result)),
    ]
    calls = Calls(summarization(trigger_tokens=300, keep=1))
    contents = [said("user", "question"), *work * 4, said("user", "It is noon.")]
    sent = await calls(contents)
    assert [text_of(each) for each in sent[1:]] == ["question", "", "", "It is noon."]


async def test_a_conversation_that_the_service_has_is_left_alone() -> None:
    request: Any = SimpleNamespace(previous_interaction_id="i", contents=turns_of(9))
    seen: list[Any] = []

    async def model(call: ModelCall) -> ModelReply:
        seen.append(call.request)
        return ModelReply()

    await summarization(trigger_tokens=1).wrap_model_call(ModelCall(request), model)
    assert seen == [request]


# --- who writes it, and what of ------------------------------------------------------------------


async def test_it_passes_through_the_middlewares_inside() -> None:
    """Retries, limits and budgets inside have their part in it; what is filtered outside is."""
    passed: list[ModelCall] = []

    class Inside:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            passed.append(call)
            return await next(call)

    class Filter:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            contents = [
                said(each.role or "", text_of(each).replace("secret", "[hidden]"))
                for each in call.request.contents
            ]
            request = call.request.model_copy(update={"contents": contents})
            return await next(replace(call, request=request))

    fails = rule(ASKED, times=2, reply=reply(status=503))
    with GeminiEmulator(rules=[fails, summary()], default="ok") as gemini:
        inside = (Inside(), retry(clock=Time()))
        stack = (Filter(), summarization(trigger_tokens=400), *inside)
        harness = AgentHarness(clerk(gemini.model(), *stack))
        await harness.send(f"the secret {LONG}")
        await talk(harness, 4)
        assert len(summaries(gemini.requests)) == 3
        assert "the [hidden] xxx" in summaries(gemini.requests)[-1].prompt
        assert "secret" not in str([each.body for each in gemini.requests])
    (of_summary,) = (each for each in passed if told(each).endswith(ASKED))
    assert (of_summary.agent, of_summary.stream, of_summary.emitted) == ("clerk", False, False)


@pytest.mark.parametrize("is_outside", [False, True])
async def test_a_budget_counts_it(is_outside: bool) -> None:
    budget = token_budget(max_tokens=100_000, scope="session")
    with GeminiEmulator(rules=[summary()], default="ok") as gemini:
        middleware = summarization(trigger_contents=3, keep=1)
        stack = (budget, middleware) if is_outside else (middleware, budget)
        harness = AgentHarness(clerk(gemini.model(), *stack))
        await talk(harness, 2)
        assert len(gemini.requests) == 3
    first, both = (sum(each.state["adk_fluent_tokens"].values()) for each in harness.results)
    assert both > 3 * first  # the first call, the second, and that for the summary


async def test_what_a_budget_inside_says_is_no_summary() -> None:
    """The call for the summary does not fit, and that of the agent does."""
    budget = token_budget(max_tokens=400, on_exceeded="stop", message="No more.")
    with GeminiEmulator(rules=[summary()], default="ok") as gemini:
        middleware = summarization(trigger_contents=3, keep=1, prompt=LONG * 4)
        harness = AgentHarness(clerk(gemini.model(), middleware, budget))
        await talk(harness, 2)
        assert not summaries(gemini.requests)
    assert [each.text for each in harness.results] == ["ok", "ok"]
    assert "adk_fluent_summary:clerk" not in harness.results[-1].state


async def test_another_model_may_write_it() -> None:
    writer = ScriptedModel(default="by another", model="writer")
    with GeminiEmulator(default="ok") as gemini:
        middleware = summarization(trigger_tokens=400, model=writer)
        harness = AgentHarness(clerk(gemini.model(), middleware))
        await talk(harness, 5)
        assert len(gemini.requests) == 5
        assert "by another" in gemini.requests[-1].turns[0].text
    (asked,) = writer.calls
    assert asked.model == "writer"


async def test_a_name_will_do_for_another_model(monkeypatch: pytest.MonkeyPatch) -> None:
    with GeminiEmulator(rules=[summary()], default="ok") as gemini:
        for name, value in gemini.env.items():
            monkeypatch.setenv(name, value)
        from adk_fluent.backends import adk

        made: list[str] = []

        def resolve(name: str, resolve: Any = adk.resolve_model) -> Any:
            made.append(name)
            return resolve(name)

        monkeypatch.setattr(adk, "resolve_model", resolve)
        middleware = summarization(trigger_tokens=400, model="gemini-2.5-flash-lite")
        harness = AgentHarness(clerk(gemini.model("gemini-2.5-pro"), middleware))
        await talk(harness, 8)
        first, second, *_ = summaries(gemini.requests)
        assert first.model == second.model == "gemini-2.5-flash-lite"
        assert made == ["gemini-2.5-flash-lite"]
        assert {each.model for each in answers(gemini.requests)} == {"gemini-2.5-pro"}


async def test_a_model_that_there_is_not_is_a_mistake_and_no_failure() -> None:
    calls = Calls(summarization(trigger_tokens=700, model="no-such-model"))
    with pytest.raises(UsageError, match="no-such-model"):
        await calls(turns_of(5))


async def test_what_it_is_told_to_do_may_be_said_otherwise() -> None:
    with GeminiEmulator(rules=[summary()], default="ok") as gemini:
        middleware = summarization(trigger_tokens=400, prompt="In {one} word.")
        await talk(AgentHarness(clerk(gemini.model(), middleware)), 5)
        (asked,) = summaries(gemini.requests)
        assert asked.system == "In {one} word."


async def test_what_the_service_has_to_know_of_a_call_it_is_told_of_a_summary() -> None:
    calls = Calls(summarization(trigger_tokens=700))
    safety = [types.SafetySetting(category="HARM_CATEGORY_HARASSMENT", threshold="BLOCK_NONE")]  # pyright: ignore[reportArgumentType]  # pydantic makes an enum of it
    fields: Any = {
        "labels": {"team": "desk"},
        "safety_settings": safety,
        "http_options": types.HttpOptions(timeout=5, headers={"x-team": "desk"}),
    }
    await calls(turns_of(5), **fields, temperature=2.0, response_mime_type="application/json")
    config = calls.asked[0].request.config
    assert (config.labels, config.safety_settings) == ({"team": "desk"}, safety)
    assert (config.http_options.timeout, config.http_options.headers) == (5, {"x-team": "desk"})
    assert config.http_options.headers is not fields["http_options"].headers
    assert config.temperature is None
    assert config.response_mime_type is None


async def test_who_writes_it_is_told_everything() -> None:
    """Calls, results, code and images; what the model thought only is not said again."""
    image = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))
    file = types.Part(file_data=types.FileData(file_uri="gs://a", mime_type="application/pdf"))
    call = types.FunctionCall(name="look_up", args={"page": "ä"})
    drawn = types.FunctionResponseBlob(data=b"drawn", mime_type="image/png")
    result = types.FunctionResponse(
        name="look_up",
        response={"result": LONG},
        parts=[types.FunctionResponsePart(inline_data=drawn)],
    )
    code = types.Part(executable_code=types.ExecutableCode(code="print(1)", language="PYTHON"))  # pyright: ignore[reportArgumentType]  # pydantic makes an enum of it
    ran = types.Part(
        code_execution_result=types.CodeExecutionResult(outcome="OUTCOME_OK", output="1")  # pyright: ignore[reportArgumentType]  # pydantic makes an enum of it
    )
    contents = [
        said("user", "see", image, file),
        said("model", types.Part(text="hm", thought=True), "look", types.Part(function_call=call)),
        said("user", types.Part(function_response=result)),
        said("model", code, ran, f"done {LONG}"),
        said("user", "and?"),
    ]
    calls = Calls(summarization(trigger_contents=5, keep=1))
    await calls(contents)
    (asked,) = calls.asked
    assert told(asked) == (
        "<conversation>\n\nuser: see\n\nuser gives:user gives:model: look\n\n"
        'model calls look_up: {"page": "ä"}\n\n'
        f'look_up returns: {{"result": "{LONG}"}}'
        f"model runs: print(1)\n\nit prints: 1\n\nmodel: done {LONG}\n\n"
        f"</conversation>\n\n{ASKED}"
    )
    parts = asked.request.contents[0].parts
    assert [each.inline_data or each.file_data for each in parts if not each.text] == [
        image.inline_data,
        file.file_data,
        types.Blob(data=b"drawn", mime_type="image/png"),
    ]


async def test_of_an_endless_text_the_middle_is_left_out() -> None:
    text = f"begin {LONG * 20} end"
    calls = Calls(summarization(trigger_tokens=500, keep=1))
    await calls([said("user", text), said("model", "ok"), said("user", "and?")])
    assert len(told(calls.asked[0])) < 1_300
    assert "user: begin xx" in told(calls.asked[0])
    assert "characters left out] xx" in told(calls.asked[0])
    assert "xx end" in told(calls.asked[0])


# --- when it fails -------------------------------------------------------------------------------


async def test_without_a_summary_it_goes_on(
    caplog: pytest.LogCaptureFixture, metrics: Measured
) -> None:
    down = rule(ASKED, reply=reply(status=503, error_message="overloaded"))
    with GeminiEmulator(rules=[down], default="ok") as gemini:
        harness = AgentHarness(clerk(gemini.model(), summarization(trigger_tokens=400)))
        await talk(harness, 5)
        assert harness.results[-1].text == "ok"
        last = answers(gemini.requests)[-1]
        assert "question 0" in last.turns[0].text
        assert len(last.turns) == 9
    assert "no new summary for agent clerk" in caplog.text
    assert "overloaded" in caplog.text
    assert metrics("adk_fluent.summarization.summaries", error__type="ServerError") >= 1


async def test_without_a_summary_it_may_fail() -> None:
    down = rule(ASKED, reply=reply(status=503))
    with GeminiEmulator(rules=[down], default="ok") as gemini:
        middleware = summarization(trigger_tokens=400, on_error="raise")
        with pytest.raises(ServerError, match="503"):
            await talk(AgentHarness(clerk(gemini.model(), middleware)), 5)


async def test_a_summary_that_failed_is_tried_again_later_and_later() -> None:
    """A run of many calls does not pay for a broken model at each of them, nor never try again."""
    calls = Calls(summarization(trigger_tokens=700).new(), ConnectionError("reset"))
    tried: list[int] = []
    for n in range(20):
        before = len(calls.asked)
        await calls(turns_of(5))
        if len(calls.asked) > before:
            tried.append(n)
    assert tried == [0, 2, 5, 10, 19]
    calls.answer = "sum"
    calls.middleware = calls.middleware.new()  # the next run tries at once
    assert "sum" in text_of((await calls(turns_of(5)))[0])


@pytest.mark.parametrize(
    "answer",
    [
        LlmResponse(error_code="SAFETY", error_message="blocked"),
        LlmResponse(error_code="SAFETY", content=said("model", "blocked in the mid")),
        LlmResponse(content=said("model", "cut of"), finish_reason=types.FinishReason.MAX_TOKENS),
        LlmResponse(content=said("model", types.Part(text="hm", thought=True))),
        LlmResponse(content=said("model", "  ")),
        LlmResponse(
            content=said("model", "The budget is used up."),
            custom_metadata={"adk_fluent_stopped": "token_budget"},
        ),
    ],
)
async def test_what_is_no_summary_is_not_taken_for_one(answer: LlmResponse) -> None:
    calls = Calls(summarization(trigger_tokens=700), answer)
    assert await calls(turns_of(5)) == turns_of(5)
    assert calls.state == {}
    with pytest.raises(RunError, match="the model wrote no summary"):
        await Calls(summarization(trigger_tokens=700, on_error="raise"), answer)(turns_of(5))


async def test_thoughts_are_no_part_of_a_summary() -> None:
    rules = [rule(ASKED, reply=reply(Thought("hm"), "what was said"))]
    with GeminiEmulator(rules=rules, default="ok") as gemini:
        harness = AgentHarness(clerk(gemini.model(), summarization(trigger_tokens=400)))
        await talk(harness, 5)
    assert harness.results[-1].state["adk_fluent_summary:clerk"]["text"] == "what was said"


# --- beside ADK's own ----------------------------------------------------------------------------


async def test_it_warns_of_a_session_that_adk_compacts(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(default="ok")
    config = ExecutionConfig(compaction=CompactionConfig(interval=1, overlap=0))
    harness = AgentHarness(clerk(model, summarization()), config=config)
    with caplog.at_level(logging.WARNING, "adk_fluent"):
        for n in range(4):
            await harness.send(f"question {n}")
    (record,) = [each for each in caplog.records if "compacted by ADK" in each.message]
    assert "leave one of them out" in record.message


# --- what it is given ----------------------------------------------------------------------------


def test_it_is_a_middleware() -> None:
    assert isinstance(SummarizationMiddleware(), Middleware)
    assert SummarizationMiddleware.DESC.config_schema is not None
    schema: Any = SummarizationMiddleware.DESC.config_schema["properties"]["model"]
    assert schema["anyOf"] == [{"type": "string"}, {"type": "null"}]


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"trigger_tokens": 0}, "trigger_tokens"),
        ({"max_context": "128k"}, "max_context"),
        ({"trigger_fraction": 1.5}, "trigger_fraction"),
        ({"trigger_contents": 1}, "trigger_contents"),
        ({"trigger_contents": 20}, "keep"),
        ({"keep": 0}, "keep"),
        ({"keep_tokens": 100, "trigger_tokens": 100}, "keep_tokens"),
        ({"model": 3}, "model"),
        ({"model": ""}, "model"),
        ({"prompt": ""}, "prompt"),
        ({"on_error": "ignore"}, "on_error"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"summarization\({option}=\.\.\.\)") as caught:
        SummarizationMiddleware(**options)
    assert __file__ in str(caught.value)
