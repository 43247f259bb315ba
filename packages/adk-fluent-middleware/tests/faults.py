"""Runs in which things go wrong at random, and what each built-in promises about them.

A spy stands outside and another one inside of each middleware under test. The two tell what went
in, which calls came of it, and what came out; what a middleware promises is a rule about that, so
it holds wherever in a stack the middleware stands.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import ExitStack
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from google.adk.sessions.in_memory_session_service import InMemorySessionService
from kit import Time, weather

from adk_fluent import Agent, FanOut
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import RunError
from adk_fluent.middleware import (
    BudgetExceededError,
    CallLimitError,
    CircuitOpenError,
    RateLimitError,
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
from adk_fluent.middleware._context._history import pairs
from adk_fluent.protocol import classify, request_key, status_of
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from adk_fluent.builders import Builder
    from adk_fluent.middleware._context._warning import ContextUsage
    from adk_fluent.protocol import ModelCall, ModelReply, NextModel, NextTool, ToolCall

EMAIL: Final = "ann@example.com"
#: How a question for a summary ends, and how what is cleared and what is to do begin.
SUMMARY, CLEARED, TODOS = "Write the summary now.", "[cleared", "<todos>"


@dataclass(eq=False)
class Went:
    """One call at a spy.

    Attributes:
        what: What was called: ``model``, or the name of a tool.
        run: The run it belongs to.
        agent: The agent that calls.
        id: What identifies a tool call.
        key: What identifies the request.
        text: All that the request says, calls and results of tools included.
        last: What its last content says.
        tools: The tools that the request offers.
        shape: How many parts each content of the request has.
        orphans: Results in it without the calls they belong to.
        inside: The calls that came of it further in, of a spy outside.
        emitted: Whether a fragment was sent on while it went on.
        said: The texts of its fragments and of its reply.
        reply: What it gave.
        error: What it raised.
        at: When it began.
        over: Whether it has ended.
    """

    what: str
    run: str
    agent: str = ""
    id: str | None = None
    key: str = ""
    text: str = ""
    last: str = ""
    tools: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    orphans: int = 0
    inside: list[Went] = field(default_factory=list["Went"])
    emitted: bool = False
    said: list[str] = field(default_factory=list[str])
    reply: Any = None
    error: BaseException | None = None
    at: float = 0.0
    over: bool = False


class Watched:
    """A middleware between two spies.

    Args:
        middleware: What is watched.
        time: The clock.

    Attributes:
        calls: The calls from outside.
        most: Model calls at the same time, at most.
        approved: How many tool calls a person has approved.
    """

    def __init__(self, middleware: Any, time: Time) -> None:
        self.middleware = middleware
        self.calls: list[Went] = []
        self.most = self.approved = 0
        self._time = time
        self._open = 0
        self._here: ContextVar[Went | None] = ContextVar("here", default=None)

    @property
    def stack(self) -> list[Any]:
        return [_Outside(self), self.middleware, _Inside(self)]

    async def outside(self, went: Went, doing: Callable[[], Any]) -> Any:
        self.calls.append(went)
        token = self._here.set(went)
        try:
            return await self._note(went, doing)
        finally:
            self._here.reset(token)

    async def inside(self, went: Went, doing: Callable[[], Any]) -> Any:
        above = self._here.get()
        if above is not None:
            above.inside.append(went)
        self._open += went.what == "model"
        self.most = max(self.most, self._open)
        try:
            return await self._note(went, doing)
        finally:
            self._open -= went.what == "model"

    async def _note(self, went: Went, doing: Callable[[], Any]) -> Any:
        went.at = self._time.monotonic()
        try:
            went.reply = await doing()
        except BaseException as error:
            went.error = error
            raise
        finally:
            went.over = True
        return went.reply


class _Spy:
    def __init__(self, watched: Watched) -> None:
        self._watched = watched

    def _pass(self, went: Went, doing: Callable[[], Any]) -> Any:
        raise NotImplementedError

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        went = _asked(call)
        sink, forward = call.sink, call.sink.forward

        async def noted(fragment: Any) -> None:
            went.emitted = True
            went.said.append(_said(fragment))
            if forward is not None:
                await forward(fragment)

        sink.forward = noted
        try:
            made = await self._pass(went, lambda: next(call))
        finally:
            sink.forward = forward
        went.said += [_said(each) for each in made.responses]
        return made

    async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
        went = Went(call.name, call.run, call.agent, call.call_id, text=repr(call.args))
        return await self._pass(went, lambda: next(call))


class _Outside(_Spy):
    def _pass(self, went: Went, doing: Callable[[], Any]) -> Any:
        return self._watched.outside(went, doing)


class _Inside(_Spy):
    def _pass(self, went: Went, doing: Callable[[], Any]) -> Any:
        return self._watched.inside(went, doing)


def _asked(call: ModelCall) -> Went:
    request: Any = call.request
    contents: list[Any] = request.contents
    parts = [part for content in contents for part in content.parts or ()]
    results = [part for part in parts if part.function_response]
    return Went(
        "model",
        call.run,
        call.agent,
        key=request_key(request),
        text=_told(parts),
        last=_told(contents[-1].parts or ()) if contents else "",
        tools=tuple(
            each.name
            for tool in request.config.tools or ()
            for each in tool.function_declarations or ()
        ),
        shape=tuple(len(content.parts or ()) for content in contents),
        orphans=len(results) - len(list(pairs(contents))),
    )


def _told(parts: Sequence[Any]) -> str:
    return repr([part.text or part.function_call or part.function_response for part in parts])


def _said(response: Any) -> str:
    parts = response.content.parts if response.content is not None else ()
    return "".join(part.text or "" for part in parts or ())


# --- what goes wrong -----------------------------------------------------------------------------


TODO: Final = {"content": "look", "status": "in_progress"}
CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("search", {"word": "x"}),
    ("weather", {"city": EMAIL}),
    ("write_todos", {"todos": [TODO]}),
)


def faulty(rng: Random) -> Callable[[Any], Any]:
    """What a model says: mostly something, sometimes nothing good."""

    def say(asked: Any) -> Any:  # noqa: PLR0911  # a row for each thing that may happen
        chance = rng.random()
        pieces = ["Write ", "to ann@", "example.com", f" {rng.randrange(3)}."]
        if chance < 0.15:
            return reply(raises=ConnectionError("reset"))
        if chance < 0.25:
            return reply(status=rng.choice([429, 503, 500]), retry_after=rng.choice([None, 2]))
        if chance < 0.30:
            return reply(status=400)
        if chance < 0.40:
            return reply(chunks=pieces, raises=ConnectionError("cut"))
        if chance < 0.45:
            return reply(error_code="SAFETY")
        if chance < 0.75 and (chance < 0.6 or "[result" not in asked.prompt):
            return reply(*(Call(name, args) for name, args in CALLS if name in asked.tools))
        return reply(chunks=pieces, latency=rng.choice([None, None, 0.001]))

    return say


def shaky(rng: Random) -> list[Any]:
    """Tools that fail at times."""

    async def search(word: str) -> str:
        """Look something up."""
        if rng.random() < 0.2:
            raise rng.choice([ConnectionError("reset"), ValueError("broken")])
        await asyncio.sleep(0)
        return f"found {word} on page 17 of a long book"

    return [search, weather]


# --- what each promises --------------------------------------------------------------------------


def same(call: Went, inside: Went) -> bool:
    """Whether what came of a call is what came of the one inside it, or somebody has ended it."""
    return call.error is inside.error or isinstance(call.error, asyncio.CancelledError)


def retries(watched: Watched) -> None:
    most = watched.middleware.max_attempts
    for call in watched.calls:
        tries = call.inside
        assert 1 <= len(tries) <= most
        for earlier, later in pairwise(tries):
            assert isinstance(earlier.error, Exception)
            assert classify(earlier.error) == "retriable"
            assert not earlier.emitted, "called again after the user had read a part"
            assert later.key == earlier.key, "the request of a further call is another one"
        assert same(call, tries[-1])


def breaks_circuits(watched: Watched) -> None:
    for call in watched.calls:
        if not call.inside:
            assert isinstance(call.error, CircuitOpenError | asyncio.CancelledError)
        else:
            assert len(call.inside) == 1
            assert same(call, call.inside[0])


def limits_rates(watched: Watched) -> None:
    rule = watched.middleware
    began = sorted(
        each.at for call in watched.calls for each in call.inside if each.what == "model"
    )
    for at, first in enumerate(began):
        within = [each for each in began[at:] if each < first + 60.0]
        assert len(within) <= rule.requests_per_minute
    assert watched.most <= rule.concurrency
    for call in watched.calls:
        if not call.inside:
            assert isinstance(call.error, RateLimitError | asyncio.CancelledError)


def caches(watched: Watched) -> None:
    known: dict[str, set[str]] = {}
    for call in watched.calls:
        if call.what != "model":
            continue
        assert len(call.inside) <= 1
        for each in call.inside:
            if each.error is None:
                known.setdefault(call.key, set()).add(each.said[-1])
            else:
                assert same(call, each)
    for call in watched.calls:
        if call.what == "model" and not call.inside and call.error is None:
            assert call.said[-1] in known[call.key], "nobody has ever answered this"


def keeps_budget(watched: Watched) -> None:
    used = Counter[str]()
    for call in watched.calls:
        for each in call.inside:
            if each.what == "model" and each.error is None and each.reply.usage is not None:
                used[call.run] += each.reply.usage.total
        if not call.inside and call.what == "model":
            assert isinstance(call.error, BudgetExceededError | asyncio.CancelledError)
    # the answer of one call at a time on each branch is not known before it is made
    assert all(each <= watched.middleware.max_tokens + 2 * 60 for each in used.values())


def counts_models(watched: Watched) -> None:
    made = Counter(
        each.run for call in watched.calls for each in call.inside if each.what == "model"
    )
    assert all(each <= watched.middleware.per_run for each in made.values())
    for call in watched.calls:
        if call.what == "model" and not call.inside:
            assert isinstance(call.error, CallLimitError | asyncio.CancelledError)


def counts_tools(watched: Watched) -> None:
    made = Counter(
        each.run for call in watched.calls for each in call.inside if each.what != "model"
    )
    assert all(each <= watched.middleware.per_run for each in made.values())
    for call in watched.calls:
        if call.what != "model" and not call.inside:
            assert isinstance(call.error, CallLimitError | asyncio.CancelledError)


def falls_back(watched: Watched) -> None:
    for call in watched.calls:
        if call.what != "model":
            continue
        tries = call.inside
        assert 1 <= len(tries) <= 1 + len(watched.middleware.models)
        for earlier in tries[:-1]:
            assert earlier.error is not None
            assert not earlier.emitted
        if tries[-1].error is None:
            assert call.error is None


def filters(watched: Watched) -> None:
    for call in watched.calls:
        for each in call.inside:
            assert EMAIL not in each.text or each.what != "model", "a model saw personal data"
        whole = "".join(call.said)
        assert EMAIL not in whole, "the user saw personal data"


def passes_on(watched: Watched) -> None:
    for call in watched.calls:
        (only,) = call.inside
        assert same(call, only)
        assert call.reply is only.reply
        assert call.emitted == only.emitted


def edits(watched: Watched) -> None:
    for call in watched.calls:
        (only,) = call.inside
        assert same(call, only)
        assert call.reply is only.reply
        assert call.shape == only.shape
        assert not only.orphans
        assert call.text == only.text or CLEARED in only.text


def summarises(watched: Watched) -> None:
    for call in watched.calls:
        *asked, last = call.inside
        if isinstance(call.error, asyncio.CancelledError):
            continue
        assert all(SUMMARY in each.text for each in asked)
        assert SUMMARY not in last.text
        assert call.error is last.error
        assert call.reply is last.reply
        assert call.emitted == last.emitted, "the user saw something of a summary"
        assert not last.orphans


class Told(list["ContextUsage"]):
    """What `context_warning` tells."""

    def __call__(self, usage: ContextUsage) -> None:
        self.append(usage)


def warns(watched: Watched) -> None:
    told: Told = watched.middleware.on_warning
    assert all(each.part >= 0.5 for each in told)
    for call in watched.calls:
        (only,) = call.inside
        assert same(call, only)
        assert call.said == only.said
    warned = Counter(each.agent for each in told)
    runs = Counter(agent for _, agent in {(each.run, each.agent) for each in watched.calls})
    less = Counter(each.agent for each in watched.calls if not _is_full(each, told))
    assert all(many <= runs[agent] + less[agent] for agent, many in warned.items())


def _is_full(call: Went, told: Told) -> bool:
    usage = None if call.reply is None else getattr(call.reply, "usage", None)
    return usage is None or usage.prompt + usage.tool + usage.output >= WINDOW / 2


def plans(watched: Watched) -> None:
    """Agents have the tool, and see the list from when they have written it."""
    wrote: set[tuple[str, str]] = set()
    for call in watched.calls:
        if call.what == "write_todos" and "The list is kept" in str(call.reply):
            wrote.add((call.run, call.agent))
        elif call.what == "model" and SUMMARY not in call.text:
            assert "write_todos" in call.tools
            knows = TODOS in call.last or "The list is kept" in call.last
            assert knows or (call.run, call.agent) not in wrote
            assert wrote or TODOS not in call.text


def selects(watched: Watched) -> None:
    for call in watched.calls:
        (only,) = call.inside
        assert same(call, only)
        assert call.reply is only.reply
        shown = [each for each in only.tools if each in ("search", "weather")]
        assert only.tools == call.tools or shown == ["weather"]
        assert "write_todos" not in call.tools or "write_todos" in only.tools


def stands_in(watched: Watched) -> None:
    for call in watched.calls:
        if call.what == "search":
            assert not call.inside, "a tool ran that is to be emulated"
            assert call.error is None or isinstance(call.error, asyncio.CancelledError)
        else:
            assert same(call, call.inside[0])


def asks_first(watched: Watched) -> None:
    ran = {each.id for call in watched.calls for each in call.inside if each.what == "weather"}
    assert len(ran) <= watched.approved, "a tool ran that nobody had approved"
    assert all(same(call, each) for call in watched.calls for each in call.inside)


def cuts_off(watched: Watched) -> None:
    for call in watched.calls:
        (only,) = call.inside
        assert only.over
        if only.error is None:
            assert call.reply is only.reply


Rule = tuple[str, "Callable[[Time], Any]", "Callable[[Watched], None]"]

#: Tokens of a context that is full now and then.
WINDOW: Final = 150


def some_tools(call: ModelCall, tools: Any) -> list[str]:
    """Chooses, if it can."""
    if len(call.request.contents) % 3 == 0:
        raise ConnectionError("reset")
    return ["weather"]


#: The built-ins, how each is set up, and what it promises.
RULES: Final[tuple[Rule, ...]] = (
    ("structured_log", lambda time: structured_log(clock=time, max_entries=20), passes_on),
    ("otel_enrichment", lambda time: otel_enrichment(clock=time), passes_on),
    ("pii_filter", lambda time: pii_filter(), filters),
    (
        "summarization",
        lambda time: summarization(trigger_tokens=20, keep=1, keep_tokens=5),
        summarises,
    ),
    (
        "context_editing",
        lambda time: context_editing(
            trigger_tokens=0, keep=0, clear_at_least=0, placeholder=CLEARED
        ),
        edits,
    ),
    (
        "context_warning",
        lambda time: context_warning(max_context=WINDOW, on_warning=Told()),
        warns,
    ),
    ("todo_list", lambda time: todo_list(), plans),
    ("tool_selector", lambda time: tool_selector(max_tools=1, select=some_tools), selects),
    ("cache", lambda time: cache(), caches),
    ("model_call_limit", lambda time: model_call_limit(per_run=2), counts_models),
    ("tool_call_limit", lambda time: tool_call_limit(per_run=1), counts_tools),
    ("token_budget", lambda time: token_budget(max_tokens=300), keeps_budget),
    (
        "model_fallback",
        lambda time: model_fallback(models=[ScriptedModel(default="From the other.")]),
        falls_back,
    ),
    (
        "circuit_breaker",
        lambda time: circuit_breaker(failures=1, failure_ratio=0.3, clock=time),
        breaks_circuits,
    ),
    ("retry", lambda time: retry(clock=time, jitter=0.0, tools=True), retries),
    (
        "rate_limiter",
        lambda time: rate_limiter(requests_per_minute=3, concurrency=1, per="all", clock=time),
        limits_rates,
    ),
    ("timeout", lambda time: timeout(model=30.0, tool=30.0), cuts_off),
    ("tool_approval", lambda time: tool_approval(tools=["weather"]), asks_first),
    (
        "tool_emulator",
        lambda time: tool_emulator(tools=["search"], results={"search": "made up"}),
        stands_in,
    ),
)


def pipeline(
    rng: Random, time: Time, rules: Sequence[Rule], model: Any
) -> tuple[Builder, list[Watched]]:
    """A random pipeline of one to three agents, within some of the built-ins."""
    agents: list[Any] = [
        Agent(name, model).tool(shaky(rng)[0]).tool(weather)
        for name in ("a", "b", "c")[: rng.randint(1, 3)]
    ]
    whole: Any = agents[0]
    for each in agents[1:]:
        joined: list[Any] = [whole >> each, FanOut(whole, each), whole // each]
        whole = rng.choice(joined)
    watched: list[Watched] = []
    for _, make, _ in rules:
        watched.append(Watched(make(time), time))
        whole = whole.middleware(*watched[-1].stack)
    return whole, watched


def _expected(error: BaseException | None) -> None:
    """What a run may end with: what was scripted, or what a middleware says by itself."""
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # of anything
            _expected(each)  # pyright: ignore[reportUnknownArgumentType]
        return
    if error is None or isinstance(error, RunError):
        return
    scripted = str(error) in ("reset", "cut", "broken") or status_of(error) is not None
    lost = isinstance(error, Exception) and classify(error) == "retriable"  # over HTTP
    if not scripted and not lost:
        raise AssertionError(f"nobody raises this: {error!r}") from error


#: Of those that do what they do before any spy sees the call: how it is seen that they have.
ACTED: Final[dict[str, Callable[[Watched], bool]]] = {
    "tool_approval": lambda watched: watched.approved > 0,
    "todo_list": lambda watched: any(call.what == "write_todos" for call in watched.calls),
}


def acted(watched: Watched) -> bool:
    """Whether a middleware has done anything that one that does nothing would not have done."""
    return any(
        len(call.inside) != 1
        or call.inside[0].text != call.text
        or call.inside[0].tools != call.tools
        or call.inside[0].at > call.at
        or call.inside[0].said != call.said
        or call.inside[0].reply is not call.reply
        for call in watched.calls
        if call.over and not isinstance(call.error, asyncio.CancelledError)
    )


async def conversation(
    rng: Random, whole: Any, watched: Sequence[Watched], *, emulated: bool
) -> None:
    """Three runs, some in one session, some cancelled; who is asked says yes or no."""
    config = ExecutionConfig(streaming_mode=rng.choice(["none", "sse"]))
    service: Any = InMemorySessionService()
    for session in ("1", *rng.choices(["1", "2"], [2, 1], k=2)):
        kept: Any = {"session_id": session, "session_service": service, "config": config}
        running = asyncio.ensure_future(whole.run(f"I am {EMAIL}", **kept))
        if rng.random() < 0.1:
            for _ in range(rng.randrange(60)):
                await asyncio.sleep(0.001 if emulated else 0)
            running.cancel()
        await asyncio.wait([running])
        for _ in range(2):
            if running.cancelled() or running.exception() or not running.result().pending:
                break
            answers = [each.answer(rng.random() < 0.7) for each in running.result().pending]
            for each in watched:
                each.approved += sum(answer.value for answer in answers)
            running = asyncio.ensure_future(whole.resume(*answers, **kept))
            await asyncio.wait([running])
        if not running.cancelled():
            _expected(running.exception())


async def once(rng: Random, *, emulated: bool = False) -> set[str]:
    """A random pipeline run three times; every promise is held to.

    Args:
        rng: Says what happens.
        emulated: Over ADK's own Gemini and real HTTP, instead of a scripted model.

    Returns:
        The names of the middlewares that did anything.

    Raises:
        AssertionError: One was not kept.
    """
    time = Time()
    chosen = [rule for rule in RULES if rng.random() < 0.5] or [rng.choice(RULES)]
    if rng.random() < 0.3:
        rng.shuffle(chosen)
    with ExitStack() as stack:
        gemini = stack.enter_context(GeminiEmulator(default=faulty(rng))) if emulated else None
        model = ScriptedModel(default=faulty(rng)) if gemini is None else gemini.model()
        whole, watched = pipeline(rng, time, chosen, model)
        await conversation(rng, whole, watched, emulated=emulated)
        if gemini is not None:
            assert len(gemini.requests) == len(gemini.calls), "Gemini would refuse one of these"
    for (name, _, promise), each in zip(chosen, watched, strict=True):
        assert all(call.over for call in each.calls), f"{name} left a call hanging"
        try:
            promise(each)
        except AssertionError as error:
            error.add_note(f"{name}, in {[rule[0] for rule in chosen]}")
            raise
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, f"left over: {left}"
    return {
        name
        for (name, _, _), each in zip(chosen, watched, strict=True)
        if ACTED.get(name, acted)(each)
    }
