"""Every built-in over real HTTP, in front of a service that refuses, is slow, or breaks off.

Each has a function that says what has to hold then; each is tried with every trouble there is.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pytest
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from kit import NAMES, SSE, Measured, Time, clerk, search, until, weather
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from adk_fluent import Agent
from adk_fluent.middleware import (
    BudgetExceededError,
    CallLimitError,
    CallTimeoutError,
    CircuitOpenError,
    cache,
    circuit_breaker,
    context_editing,
    context_warning,
    model_call_limit,
    model_fallback,
    otel_enrichment,
    pii_filter,
    rate_limiter,
    retry,
    structured_log,
    summarization,
    timeout,
    todo_list,
    token_budget,
    tool_approval,
    tool_call_limit,
    tool_emulator,
    tool_selector,
)
from adk_fluent.protocol import Usage, classify, status_of
from adk_fluent.testing import Call, GeminiEmulator, reply, rule

if TYPE_CHECKING:
    from adk_fluent.middleware._context._warning import ContextUsage
    from adk_fluent.protocol import AgentEvent, ModelCall, ModelReply, NextModel
    from adk_fluent.testing import Reply

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

SLOW: Final = 0.2
DOWN: Final = reply(status=503)
ANN: Final = "ann@example.com"
#: Four characters a token: 100 tokens.
LONG: Final = "x" * 400
#: Another model than the agent's own.
OTHER: Final = "gemini-2.5-pro"


# --- what goes wrong -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Trouble:
    """What a service does instead of answering at once.

    Attributes:
        reply: Its reply.
        shown: What a user reads of it.
    """

    reply: Reply
    shown: str = ""

    @property
    def is_refused(self) -> bool:
        return self.reply.status is not None

    @property
    def fails(self) -> bool:
        return self.is_refused or self.reply.fault is not None

    def says(self, *chunks: str) -> Reply:
        """The same with another answer, if there is any."""
        if self.is_refused:
            return self.reply
        return replace(self.reply, parts=("".join(chunks),), chunks=chunks)

    def has_raised(self, error: BaseException) -> bool:
        """Whether an error is the service's own, and nobody else's."""
        if self.is_refused:
            return status_of(error) == self.reply.status
        return isinstance(error, Exception) and classify(error) == "retriable"


_USED: Final = Usage(prompt=700, output=40)
REFUSED: Final = Trouble(reply(status=429, retry_after=7))
OVERLOADED: Final = Trouble(DOWN)
LATE: Final = Trouble(reply(chunks=["la", "te"], latency=SLOW, usage=_USED), "late")
CUT: Final = Trouble(reply(chunks=["Half an ", "answer"], fault="cut", usage=_USED), "Half an ")


class Talk:
    """A session with a pipeline.

    Attributes:
        events: All that its user has been shown, also of runs that failed.
    """

    def __init__(self, pipeline: Any) -> None:
        self.events: list[AgentEvent] = []
        self.sessions: Any = InMemorySessionService()
        self.kept: dict[str, Any] = {
            "session_id": "s",
            "user_id": "u",
            "session_service": self.sessions,
        }
        self._pipeline = pipeline

    async def say(self, text: str = "hi") -> str:
        """Send a message; returns the answer."""
        async with asyncio.timeout(20):
            async for event in self._pipeline.stream(text, config=SSE, **self.kept):
                self.events.append(event)
        return self.events[-1].content or ""

    async def meets(self, trouble: Trouble, text: str = "hi") -> None:
        """Send a message: the user sees what there is to see, and an error is the service's."""
        before = len(self.events)
        if trouble.fails:
            with pytest.raises(Exception) as caught:  # noqa: PT011  # looked at below
                await self.say(text)
            assert trouble.has_raised(caught.value)
        else:
            assert await self.say(text) == trouble.shown
        assert "".join(self._fragments(before)) == trouble.shown

    async def fails(self, kind: type[Exception]) -> None:
        """Send a message that is refused here."""
        with pytest.raises(kind):
            await self.say()

    async def state(self) -> dict[str, Any]:
        """What the session keeps."""
        session = await self.sessions.get_session(
            app_name="adk_fluent_app", user_id="u", session_id="s"
        )
        return session.state

    def _fragments(self, start: int) -> list[str]:
        return [each.content for each in self.events[start:] if each.is_partial and each.content]


Promise = Callable[[Trouble], Awaitable[None]]
PROMISES: Final[dict[str, Promise]] = {}


def of(name: str) -> Callable[[Promise], Promise]:
    """What a built-in promises."""

    def keep(promise: Promise) -> Promise:
        PROMISES[name] = promise
        return promise

    return keep


by_name = pytest.mark.parametrize("name", NAMES)


@pytest.mark.full
@by_name
async def test_429(name: str) -> None:
    await PROMISES[name](REFUSED)


@by_name
async def test_503(name: str) -> None:
    await PROMISES[name](OVERLOADED)


@by_name
async def test_slow(name: str) -> None:
    await PROMISES[name](LATE)


@pytest.mark.full
@by_name
async def test_cut(name: str) -> None:
    await PROMISES[name](CUT)


def test_each_of_them_promises_something() -> None:
    assert PROMISES.keys() == set(NAMES)


# --- calls that fail, come too often, or take too long -------------------------------------------


@of("retry")
async def asks_again(trouble: Trouble) -> None:
    """The same, when the service wants it; not after the user has read a part of an answer."""
    time = Time()
    with GeminiEmulator(DOWN, trouble.reply, "whole") as gemini:
        talk = Talk(clerk(gemini, retry(clock=time, jitter=0.0)))
        if trouble.is_refused:
            assert await talk.say() == "whole"
        else:
            await talk.meets(trouble)
        bodies = [each.body for each in gemini.requests]
    assert bodies == bodies[:1] * (3 if trouble.is_refused else 2)
    assert time.waits == [1.0, *([trouble.reply.retry_after or 2.0] if trouble.is_refused else [])]


@of("circuit_breaker")
async def leaves_it_alone(trouble: Trouble) -> None:
    """After so many failures; then one call finds out how it is, however long that takes."""
    time = Time()
    breaker = circuit_breaker(failures=2, reset_after=30.0, clock=time)
    fails = [trouble.reply if trouble.fails else DOWN] * 2
    with GeminiEmulator(*fails, trouble.reply, default="whole") as gemini:
        pipeline = clerk(gemini, breaker)
        for _ in fails:
            await Talk(pipeline).meets(trouble if trouble.fails else OVERLOADED)
        await Talk(pipeline).fails(CircuitOpenError)
        assert len(gemini.requests) == 2
        time.time += 30.0
        probe = asyncio.ensure_future(Talk(pipeline).meets(trouble))
        await until(lambda: len(gemini.requests) == 3)
        await Talk(pipeline).fails(CircuitOpenError)
        await probe
        if trouble.fails:
            await Talk(pipeline).fails(CircuitOpenError)
        else:
            assert await Talk(pipeline).say() == "whole"


class Open:
    """Notes how many model calls are under way."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            return await next(call)
        finally:
            self.now -= 1


@of("rate_limiter")
async def gives_the_place_back(trouble: Trouble) -> None:
    """To whoever waits, as soon as a call is over, and not before."""
    within = Open()
    troubled = rule("first", reply=trouble.reply)
    with Measured() as metrics, GeminiEmulator(rules=[troubled], default="whole") as gemini:
        pipeline = clerk(gemini, rate_limiter(concurrency=1), within)
        *_, second, third = await asyncio.gather(
            Talk(pipeline).meets(trouble, "first"), Talk(pipeline).say(), Talk(pipeline).say()
        )
    assert (second, third) == ("whole", "whole")
    assert (within.now, within.most) == (0, 1)
    waited = [value for name, value, _ in metrics.points if name == "adk_fluent.limiter.wait"]
    assert len(waited) == 3
    assert trouble.fails or sorted(waited)[1] > SLOW / 2


@of("timeout")
async def ends_what_is_late(trouble: Trouble) -> None:
    """What comes in time is what it is, errors too; the time of the next call is its own."""
    with GeminiEmulator(trouble.reply, reply("never", latency=4.0)) as gemini:
        talk = Talk(clerk(gemini, timeout(model=1.5)))
        await talk.meets(trouble)
        await talk.fails(CallTimeoutError)
        await until(lambda: gemini.requests[-1] in gemini.abandoned)


@of("model_fallback")
async def asks_others(trouble: Trouble) -> None:
    """One after the other, until one has begun to answer."""
    with GeminiEmulator(DOWN, trouble.reply, "whole") as gemini:
        others = [gemini.model(OTHER), gemini.model("gemini-2.0-flash")]
        talk = Talk(clerk(gemini, model_fallback(models=others)))
        if trouble.is_refused:
            assert await talk.say() == "whole"
        else:
            await talk.meets(trouble)
        models = [each.model for each in gemini.requests]
    asked = ["gemini-2.5-flash", OTHER, "gemini-2.0-flash"]
    assert models == asked[: 3 if trouble.is_refused else 2]


# --- answers and tokens --------------------------------------------------------------------------


@of("cache")
async def keeps_whole_answers(trouble: Trouble) -> None:
    """And gives them to who asks the same meanwhile and later; nobody is given half of one."""
    with GeminiEmulator(trouble.reply, default="whole") as gemini:
        pipeline = clerk(gemini, cache())
        first = asyncio.ensure_future(Talk(pipeline).meets(trouble))
        await until(lambda: bool(gemini.requests))
        meanwhile = await Talk(pipeline).say()
        await first
        later = await Talk(pipeline).say()
        bodies = [each.body for each in gemini.requests]
    assert meanwhile == later == ("whole" if trouble.fails else "late")
    assert bodies == bodies[:1] * (2 if trouble.fails else 1)


@of("token_budget")
async def counts_what_is_used(trouble: Trouble) -> None:
    """Nothing for what has failed, and of what was cut off what it had said by then."""
    whole = reply("whole", usage=Usage(prompt=1900, output=100))
    with GeminiEmulator(trouble.reply, whole, "never") as gemini:
        talk = Talk(clerk(gemini, token_budget(max_tokens=2000, scope="session")))
        await talk.meets(trouble)
        used: Counter[str] = Counter((await talk.state()).get("adk_fluent_tokens"))
        assert used["input"] == (0 if trouble.is_refused else 700)
        assert used["output"] <= (0 if trouble.is_refused else 40)
        assert trouble.fails or used["output"] == 40
        assert await talk.say() == "whole"
        await talk.fails(BudgetExceededError)
        assert len(gemini.requests) == 2


@of("model_call_limit")
async def counts_model_calls(trouble: Trouble) -> None:
    """What has failed was called."""
    with GeminiEmulator(trouble.reply, "whole", "never") as gemini:
        talk = Talk(clerk(gemini, model_call_limit(per_session=2)))
        await talk.meets(trouble)
        assert await talk.say() == "whole"
        await talk.fails(CallLimitError)
        assert len(gemini.requests) == 2


@of("tool_call_limit")
async def counts_tool_calls(trouble: Trouble) -> None:
    """Whatever becomes of the answer that has asked for them, or is made of them."""
    ran: list[str] = []

    def look(word: str) -> str:
        """Look something up."""
        ran.append(word)
        return "found"

    call = Call("look", {"word": "x"})
    with GeminiEmulator(trouble.reply, call, trouble.reply, call, "never") as gemini:
        made = Agent("clerk", gemini.model()).tool(look)
        talk = Talk(made.middleware(tool_call_limit(per_session=1)))
        await talk.meets(trouble)
        await talk.meets(trouble)
        assert ran == ["x"]
        await talk.fails(CallLimitError)
        assert len(gemini.requests) == 4
    assert ran == ["x"]


# --- who looks on, and who filters ---------------------------------------------------------------


@of("structured_log")
async def notes_it(trouble: Trouble) -> None:
    """The error of each of them once, and how long it took."""
    log = structured_log()
    with GeminiEmulator(trouble.reply, "whole") as gemini:
        talk = Talk(clerk(gemini, log))
        await talk.meets(trouble)
        of_first = log.log
        assert await talk.say() == "whole"
    ends = [each for each in of_first if each["event"] in ("after_model", "on_model_error")]
    assert len(ends) == 1
    (end,) = ends
    if trouble.fails:
        assert [each["event"] for each in of_first[-3:]] == [
            *("on_model_error", "on_agent_error", "on_run_error")
        ]
        assert end["error_type"]
        assert str(trouble.reply.status or "") in end["error"]
        assert end["seconds"] >= 0
    else:
        assert (end["response"], of_first[-1]["event"]) == ("late", "after_run")
        assert end["seconds"] > SLOW / 2
    assert log.log[len(of_first) + 4]["response"] == "whole"


_SPANS: Final = InMemorySpanExporter()


def exported() -> InMemorySpanExporter:
    """Where the spans of this process go, too."""
    provider: Any = trace.get_tracer_provider()
    if not hasattr(provider, "add_span_processor"):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    if not hasattr(provider, "_of_faulty_service"):
        provider._of_faulty_service = True
        provider.add_span_processor(SimpleSpanProcessor(_SPANS))
    _SPANS.clear()
    return _SPANS


@of("otel_enrichment")
async def marks_the_spans(trouble: Trouble) -> None:
    """Those that failed, too, and no others than there are without it."""
    names: list[Counter[str]] = []
    with Measured() as metrics:
        for middlewares in ((), (otel_enrichment(pipeline_name="desk"),)):
            spans = exported()
            with GeminiEmulator(trouble.reply) as gemini:
                await Talk(clerk(gemini, *middlewares)).meets(trouble)
            names.append(Counter(each.name for each in spans.get_finished_spans()))
    assert names[0] == names[1]
    for span in _SPANS.get_finished_spans():
        said = dict(span.attributes or {})
        assert said["adk_fluent.pipeline"] == "desk"
        if span.name.startswith("generate_content"):
            assert said["adk_fluent.agent_name"] == "clerk"
            assert trouble.fails or said["adk_fluent.actual_output_tokens"] == 40
    failed = [each for each in _SPANS.get_finished_spans() if not each.status.is_ok]
    assert bool(failed) == trouble.fails
    assert metrics("adk_fluent.pipeline.errors", adk_fluent__pipeline="desk") == trouble.fails


@of("pii_filter")
async def leaks_nothing(trouble: Trouble) -> None:
    """Neither to the service, nor of the fragments before a stream ends, nor into the session."""
    said = trouble.says("Write to ", "ann@exam", "ple.com", " now")
    shown = {"late": "Write to [EMAIL] now"}.get(trouble.shown, "")
    with GeminiEmulator(said, "whole") as gemini:
        talk = Talk(clerk(gemini, pii_filter()))
        if trouble.fails:
            with pytest.raises(Exception) as caught:  # noqa: PT011  # looked at below
                await talk.say(f"I am {ANN}")
            assert trouble.has_raised(caught.value)
        else:
            assert await talk.say(f"I am {ANN}") == shown
        fragments = "".join(each.content or "" for each in talk.events if each.is_partial)
        assert fragments == shown or "Write to ".startswith(fragments)
        assert await talk.say("go on") == "whole"
        for each in gemini.requests:
            assert "I am [EMAIL]" in json.dumps(each.body)
            assert "ann@" not in json.dumps(each.body)
    assert "ann@" not in repr(talk.sessions.sessions) + repr([each.raw for each in talk.events])


# --- long conversations --------------------------------------------------------------------------


@of("summarization")
async def does_without_a_summary(trouble: Trouble) -> None:
    """If the one who writes it is in trouble; some calls later it is asked again."""
    asked, shown = "Write the summary now.", "<summary of the conversation so far>"
    troubled = rule(asked, times=1, reply=trouble.says("what was said"))
    rules = [troubled, rule(asked, reply="what was said")]
    with GeminiEmulator(rules=rules, default="ok") as gemini:
        talk = Talk(Agent("clerk", gemini.model()).middleware(summarization(trigger_tokens=400)))
        for n in range(10):
            assert await talk.say(f"question {n} {LONG}") == "ok"
            if any(each.prompt.endswith(asked) for each in gemini.requests):
                break
        first = gemini.requests[-1].turns[0].text
        assert first.startswith("question 0" if trouble.fails else f"{shown}\nwhat was said")
        assert ("adk_fluent_summary:clerk" in await talk.state()) != trouble.fails
        for _ in range(2):
            assert await talk.say("go on") == "ok"
        assert gemini.requests[-1].turns[0].text.startswith(f"{shown}\nwhat was said")


@of("context_editing")
async def edits_in_the_same_way(trouble: Trouble) -> None:
    """Who asks again sends the same again, and the session has everything."""

    def look_up(page: str) -> str:
        """A long page."""
        return f"{page}: {LONG}"

    pages = [Call("look_up", {"page": f"page {n}"}) for n in range(2)]
    with GeminiEmulator(*pages, trouble.reply, "whole") as gemini:
        editing = context_editing(trigger_tokens=0, keep=1, clear_at_least=0)
        talk = Talk(Agent("clerk", gemini.model()).tool(look_up).middleware(editing))
        await talk.meets(trouble)
        assert await talk.say("again") == "whole"
        sent, again = (each.contents for each in gemini.requests[2:])
    assert again[: len(sent)] == sent
    assert (json.dumps(sent).count("[cleared"), json.dumps(sent).count(LONG)) == (1, 1)
    stored = repr(talk.sessions.sessions)
    assert "[cleared" not in stored
    assert f"page 0: {LONG}" in stored


@of("context_warning")
async def warns_once(trouble: Trouble) -> None:
    """Of a full context; that a call fails may come of it."""
    told: list[ContextUsage] = []
    warning = context_warning(max_context=1000, on_warning=told.append)
    whole = reply("whole", usage=Usage(prompt=900, output=1))
    with GeminiEmulator(trouble.reply, whole) as gemini:
        talk = Talk(clerk(gemini, warning))
        await talk.meets(trouble, "x" * 4000)
        assert len(told) == 1
        assert told[0].used == 740 or (trouble.fails and told[0].used >= 1000)
        assert await talk.say() == "whole"
    assert len(told) == 1


# --- tools ---------------------------------------------------------------------------------------


@of("todo_list")
async def keeps_the_list(trouble: Trouble) -> None:
    """As it was written, and shows it again."""
    todos = [{"content": "look", "status": "in_progress"}, {"content": "say", "status": "pending"}]
    write = Call("write_todos", {"todos": todos})
    with GeminiEmulator(write, trouble.reply, "whole") as gemini:
        talk = Talk(clerk(gemini, todo_list()))
        await talk.meets(trouble)
        assert (await talk.state())["todos"] == todos
        assert await talk.say() == "whole"
        last = gemini.requests[-1].contents[-1]["parts"][-1]
    assert last == {"text": "<todos>\n[>] look\n[ ] say\n</todos>"}
    assert (await talk.state())["todos"] == todos


@of("tool_approval")
async def runs_what_was_approved_once(trouble: Trouble) -> None:
    """Nothing is asked about a call that was never made, and nothing is done twice."""
    paid: list[str] = []

    def pay(order: str) -> str:
        """Pay an order."""
        paid.append(order)
        return "paid"

    call = Call("pay", {"order": "A1"})
    with GeminiEmulator(trouble.reply, call, trouble.reply, "whole") as gemini:
        pipeline = Agent("desk", gemini.model()).tool(pay).middleware(tool_approval())
        talk = Talk(pipeline)
        await talk.meets(trouble)
        asked = await pipeline.run("pay", config=SSE, **talk.kept)
        (question,) = asked.pending
        assert (question.name, paid) == ("pay", [])
        resumed = pipeline.resume(question.answer(True), config=SSE, **talk.kept)
        if trouble.fails:
            with pytest.raises(Exception) as caught:  # noqa: PT011  # looked at below
                await resumed
            assert trouble.has_raised(caught.value)
            assert (await pipeline.resume(config=SSE, **talk.kept)).text == "whole"
        else:
            assert (await resumed).text == "late"
            assert await talk.say() == "whole"
    assert paid == ["A1"]


@of("tool_selector")
async def shows_all_tools(trouble: Trouble) -> None:
    """If the one who chooses is in trouble; the next time it is asked again."""
    chosen = rule(model=OTHER, times=1, reply=trouble.says('{"tools": ', '["weather"]}'))
    rules = [chosen, rule(model=OTHER, reply='{"tools": ["search"]}')]
    with Measured() as metrics, GeminiEmulator(rules=rules, default="ok") as gemini:
        talk = Talk(clerk(gemini, tool_selector(max_tools=1, model=gemini.model(OTHER))))
        assert await talk.say() == "ok"
        assert await talk.say() == "ok"
        offered = [each.tools for each in gemini.requests if each.model != OTHER]
    both = (search.__name__, weather.__name__)
    assert offered == [both if trouble.fails else ("weather",), ("search",)]
    choices = "adk_fluent.selector.choices"
    assert metrics(choices, adk_fluent__outcome="failed") == trouble.fails
    assert metrics(choices, adk_fluent__outcome="chosen") == 2 - trouble.fails


@of("tool_emulator")
async def runs_no_tool(trouble: Trouble) -> None:
    """Also if the one who makes results up is in trouble: the call fails then."""
    ran: list[str] = []

    def balance(account: str) -> str:
        """Tell the balance."""
        ran.append(account)
        return "real"

    made_up = rule(model=OTHER, times=1, reply=trouble.says('{"euros"', ": 3}"))
    rules = [made_up, rule(model=OTHER, reply='{"euros": 3}')]
    call = Call("balance", {"account": "17"})
    script = (call, call, "done") if trouble.fails else (call, "done")
    with GeminiEmulator(*script, rules=rules) as gemini:
        made = Agent("teller", gemini.model()).tool(balance)
        pipeline = made.middleware(tool_emulator(model=gemini.model(OTHER)))
        if trouble.fails:
            await Talk(pipeline).meets(replace(trouble, shown=""))
        assert await Talk(pipeline).say() == "done"
        assert gemini.requests[-1].results[-1]["response"] == {"euros": 3}
    assert ran == []
