"""Token budgets, over ADK's own Gemini and real HTTP, and on models that are scripted."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions import InMemorySessionService
from google.genai import types
from kit import SSE, TWO_TOOLS, clerk, until

from adk_fluent import Agent, gate
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UsageError
from adk_fluent.middleware import (
    BudgetExceededError,
    TokenBudgetMiddleware,
    model_fallback,
    retry,
    token_budget,
    tool_selector,
)
from adk_fluent.middleware._budgets._ledger import Ledger
from adk_fluent.protocol import AgentReply, Middleware, ModelReply, Usage, classify
from adk_fluent.testing import AgentHarness, Call, GeminiEmulator, ScriptedModel, reply

if TYPE_CHECKING:
    from kit import Measured

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import ModelCall, NextModel, NextRun, RunCall

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

#: More than any estimate of the prompts here.
ENOUGH = 100_000


def said(text: Any, prompt: int = 40, output: int = 10, **more: Any) -> Any:
    """A reply that says what it has cost."""
    return reply(text, usage=Usage(prompt=prompt, output=output), **more)


def counted(budget: TokenBudgetMiddleware, of: str = "s1", user: str = "user") -> dict[str, int]:
    """What is known in this process of a session."""
    return budget.ledger.account("session", ExecutionConfig().app_name, user, of).used


class Unmetered:
    """A model that does not say what it uses, or says that it is nothing."""

    def __init__(self, usage: Any) -> None:
        self.usage = usage

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        made = await next(call)
        return ModelReply(
            [each.model_copy(update={"usage_metadata": self.usage}) for each in made.responses]
        )


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(metrics: Measured) -> None:
    """The call that does not fit any more is not made."""
    budget = token_budget(max_tokens=200)
    with GeminiEmulator(said(Call("search", {"word": "x"}), 100, 80), "never") as gemini:
        with pytest.raises(BudgetExceededError, match="tokens of this run are used up") as caught:
            await clerk(gemini, budget).run("hi")
        assert len(gemini.requests) == 1
    assert (caught.value.limit, caught.value.used) == (200, 180)
    assert "180 of 200 used, 0 set aside" in str(caught.value)
    assert caught.value.node == "clerk"
    assert classify(caught.value) == "permanent"
    assert metrics("adk_fluent.limit.denials", adk_fluent__limit="token_budget") == 1
    assert metrics("adk_fluent.limit.denials", adk_fluent__scope="run") == 1


async def test_streamed() -> None:
    """Each chunk repeats what was used so far; it counts once, and all of it is streamed."""
    usage = Usage(prompt=30, output=12, thoughts=8, tool=5)
    budget = token_budget(max_tokens=ENOUGH, scope="session")
    with GeminiEmulator(reply(chunks=["a", "b", "c"], usage=usage)) as gemini:
        result = await clerk(gemini, budget).run("hi", session_id="s1", config=SSE)
        assert [each.content for each in result if each.is_partial][:3] == ["a", "b", "c"]
    assert result.text == "abc"
    assert counted(budget) == {"input": 35, "output": 20}


async def test_parallel_tools() -> None:
    """Tools cost nothing; agents in them use the tokens of the run they are called in."""
    expert = Agent("expert", ScriptedModel(default=said("An answer.", 100, 100)))
    twice = reply(
        Call("expert", {"request": "one"}),
        Call("expert", {"request": "two"}),
        usage=Usage(prompt=50, output=10),
    )
    budget = token_budget(max_tokens=ENOUGH, scope="session")
    pipeline = Agent("a", ScriptedModel(twice, said("done"))).agent_tool(expert)
    result = await pipeline.middleware(budget).run("hi", session_id="s1")
    assert result.text == "done"
    assert sum(counted(budget).values()) == 60 + 200 + 200 + 50
    assert result.state["adk_fluent_tokens"] == counted(budget)
    with GeminiEmulator(*TWO_TOOLS) as gemini:
        assert (await clerk(gemini, budget).run("hi")).text == "done"


@pytest.mark.parametrize(
    ("answer", "used"),
    [
        (reply("never", latency=60), {}),
        (reply(chunks=["a", "b"], usage=Usage(prompt=20, output=5), pause=60), {"input": 20}),
    ],
)
async def test_cancelled(answer: Any, used: dict[str, int]) -> None:
    """A call that is cut off gives back what it set aside; what it has reported, it has used."""
    budget = token_budget(max_tokens=ENOUGH, scope="session")
    with GeminiEmulator(answer) as gemini:
        account = budget.ledger.account("session", ExecutionConfig().app_name, "user", "s1")
        heard = asyncio.Event()
        running = asyncio.ensure_future(follow(clerk(gemini, budget), heard))
        await until(
            lambda: account.held() > 0 and (heard.is_set() or bool(gemini.requests and not used))
        )
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert account.held() == 0
    assert account.total("input") == used.get("input", 0)
    assert account.total("output") <= 5


async def follow(pipeline: Builder, heard: asyncio.Event) -> None:
    async for event in pipeline.stream("hi", session_id="s1", config=SSE):
        if event.content:
            heard.set()


async def test_error_after_the_first_partial() -> None:
    budget = token_budget(max_tokens=ENOUGH, scope="session")
    half = reply(chunks=["Half an ", "answer"], fault="cut", usage=Usage(prompt=70, output=4))
    with GeminiEmulator(half, reply(status=503)) as gemini:
        for _ in range(2):  # the second one fails before it says anything
            with pytest.raises(Exception):  # noqa: B017, PT011  # clients of different ages call it differently
                await clerk(gemini, budget).run("hi", session_id="s1", config=SSE)
    used = counted(budget)
    assert used["input"] == 70
    assert used["output"] <= 4


async def test_concurrent() -> None:
    """Branches at the same time cannot all take what is there for one."""
    model = ScriptedModel(default=said("ok", 50, 50, latency=0.05))
    short = types.GenerateContentConfig(max_output_tokens=100)
    branches: Builder = Agent("b0", model).generate_content_config(short)
    for number in range(1, 4):
        branches = branches | Agent(f"b{number}", model).generate_content_config(short)
    stop = token_budget(max_tokens=250, on_exceeded="stop", message="No.")
    result = await branches.middleware(stop).run("hi")
    texts = [each.content for each in result if each.content and not each.is_partial]
    assert len(model.calls) == 2
    assert sorted(texts)[:2] == ["No.", "No."]


# --- whose tokens are counted together -----------------------------------------------------------


async def test_each_run_begins_with_the_whole_budget() -> None:
    budget = token_budget(max_tokens=100)
    pipeline = Agent("a", ScriptedModel(default=said("ok", 60, 30))).middleware(budget)
    for _ in range(3):
        result = await pipeline.run("hi", session_id="s1")
        assert (result.text, result.state) == ("ok", {})


async def test_a_run_that_waited_for_an_answer_goes_on_counting() -> None:
    """Also in another process: nothing but the session is shared here."""
    sessions = InMemorySessionService()

    def pipeline(*answers: Any) -> Builder:
        made = Agent("a", ScriptedModel(*answers)) >> gate(message="Go on?", name="go")
        made = made >> Agent("b", ScriptedModel(*answers)) >> Agent("c", ScriptedModel(*answers))
        return made.named("desk").middleware(token_budget(max_tokens=24500))

    job: Any = {"session_id": "s1", "session_service": sessions}
    asked = await pipeline(said("A", 7000, 3000)).run("hi", **job)
    (key,) = [key for key in asked.state if key.startswith("adk_fluent_tokens/")]
    assert asked.state[key] == {"input": 7000, "output": 3000}
    (question,) = asked.pending
    with pytest.raises(BudgetExceededError) as caught:
        await pipeline(said("B", 10000, 4500)).resume(question.answer(True), **job)
    assert caught.value.used == 24500

    asked = await pipeline(said("A", 7000, 3000)).run(
        "hi", session_id="s2", session_service=sessions
    )
    done = await pipeline(said("B", 10, 10)).resume(
        asked.pending[0].answer(True), session_id="s2", session_service=sessions
    )
    assert done.text == "B"
    assert not [key for key, value in done.state.items() if "tokens" in key and value is not None]


async def test_a_session_is_counted_on_by_another_process() -> None:
    """State keeps what was used, also of a run that failed."""
    sessions = InMemorySessionService()
    job: Any = {"session_id": "s1", "session_service": sessions}
    for used, answer in ((0, "A"), (10000, "B")):
        budget = token_budget(max_tokens=25000, scope="session")
        assert sum(counted(budget).values()) == 0
        model = ScriptedModel(said(answer, 6000, 4000), ValueError("broken"))
        pipeline = (Agent("a", model) >> Agent("b", model)).middleware(budget)
        with pytest.raises(ValueError, match="broken"):
            await pipeline.run("hi", **job)
        assert sum(counted(budget).values()) == used + 10000
    other = token_budget(max_tokens=20000, scope="session")
    with pytest.raises(BudgetExceededError, match="of this session") as caught:
        await Agent("a", ScriptedModel()).middleware(other).run("hi", **job)
    assert caught.value.used == 20000
    stored = await sessions.get_session(
        app_name=ExecutionConfig().app_name, user_id="user", session_id="s1"
    )
    assert stored is not None
    assert stored.state["adk_fluent_tokens"] == {"input": 12000, "output": 8000}


async def test_what_a_run_used_that_is_cut_off_is_in_its_state() -> None:
    sessions = InMemorySessionService()
    model = ScriptedModel(said("A", 60, 40), reply("never", latency=60))
    pipeline = Agent("a", model) >> Agent("b", model)
    running = asyncio.ensure_future(
        pipeline.middleware(token_budget(max_tokens=ENOUGH, scope="session")).run(
            "hi", session_id="s1", session_service=sessions
        )
    )
    await until(lambda: len(model.calls) == 2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    stored = await sessions.get_session(
        app_name=ExecutionConfig().app_name, user_id="user", session_id="s1"
    )
    assert stored is not None
    assert stored.state["adk_fluent_tokens"] == {"input": 60, "output": 40}


async def test_the_copy_makes_no_events_of_its_own() -> None:
    model = ScriptedModel(default=said("ok"))
    plain = Agent("a", model) >> Agent("b", model)
    events = len(await plain.run("hi"))
    budget = token_budget(max_tokens=ENOUGH, scope="session")
    result = await plain.middleware(budget).run("hi")
    assert len(result) == events
    assert len([each for each in result if "adk_fluent_tokens" in each.state_delta]) == 2


async def test_a_user_has_one_budget_for_all_sessions() -> None:
    sessions = InMemorySessionService()
    budget = token_budget(max_tokens=15000, scope="user", on_exceeded="stop", message="Enough.")
    pipeline = Agent("a", ScriptedModel(default=said("ok", 6000, 4000))).middleware(budget)
    job: Any = {"session_service": sessions}
    said_by = [
        (await pipeline.run("hi", user_id=user, session_id=session, **job)).text
        for user, session in (("ann", "1"), ("ann", "2"), ("bob", "3"), ("ann", "1"))
    ]
    assert said_by == ["ok", "ok", "ok", "Enough."]
    anew = token_budget(max_tokens=15000, scope="user", on_exceeded="stop", message="Enough.")
    elsewhere = Agent("a", ScriptedModel(default="ok")).middleware(anew)
    assert (await elsewhere.run("hi", user_id="ann", session_id="9", **job)).text == "Enough."
    assert (await elsewhere.run("hi", user_id="eve", session_id="10", **job)).text == "ok"


async def test_runs_of_a_user_at_the_same_time_share_the_budget() -> None:
    config = types.GenerateContentConfig(max_output_tokens=100)
    model = ScriptedModel(default=said("ok", 20, 100, latency=0.05))
    budget = token_budget(max_output_tokens=250, scope="user", on_exceeded="stop", message="No.")
    pipeline = Agent("a", model).generate_content_config(config).middleware(budget)
    results = await asyncio.gather(*(pipeline.run("hi") for _ in range(5)))
    assert sorted(each.text for each in results) == ["No.", "No.", "No.", "ok", "ok"]


async def test_what_is_undone_was_used_all_the_same() -> None:
    """State forgets what a discarded branch wrote in it; what it cost is known."""
    budget = token_budget(max_tokens=ENOUGH, scope="session")
    failing = Agent("a", ScriptedModel(said("A", 100, 1))) >> Agent(
        "b", ScriptedModel(ValueError("broken"))
    )
    rescue = Agent("c", ScriptedModel(said("C", 10, 1)))
    result = await (failing // rescue).middleware(budget).run("hi", session_id="s1")
    assert result.text == "C"
    assert result.state["adk_fluent_tokens"] == counted(budget) == {"input": 110, "output": 2}


async def test_pipelines_in_pipelines_use_the_tokens_of_the_run() -> None:
    inner = (Agent("x", ScriptedModel(said("X", 5000, 500))) >> Agent("y", ScriptedModel())).named(
        "in"
    )
    budget = token_budget(max_tokens=9000)
    whole = Agent("a", ScriptedModel(said("A", 3000, 500))) >> inner.to_agent()
    with pytest.raises(BudgetExceededError) as caught:
        await whole.middleware(budget).run("hi")
    assert caught.value.used == 9000


async def test_a_ledger_may_be_shared_and_an_owner_begin_anew() -> None:
    ledger = Ledger()
    model = ScriptedModel(default=said("ok", 6000, 4000))
    small = token_budget(max_tokens=15000, scope="session", ledger=ledger)
    large = token_budget(max_tokens=25000, scope="session", ledger=ledger)
    sessions = InMemorySessionService()
    job: Any = {"session_id": "s1", "session_service": sessions}
    for each in (small, large):
        await Agent("a", model).middleware(each).run("hi", **job)
    with pytest.raises(BudgetExceededError):
        await Agent("a", model).middleware(small).run("hi", **job)
    ledger.forget("session", ExecutionConfig().app_name, "user", "s1")
    with pytest.raises(BudgetExceededError):  # its state knows
        await Agent("a", model).middleware(small).run("hi", **job)
    assert (await Agent("a", model).middleware(small).run("hi", session_id="s2")).text == "ok"


async def test_two_budgets_of_a_session_have_keys_of_their_own() -> None:
    one = token_budget(max_tokens=ENOUGH, scope="session", state_key="mine")
    two = token_budget(max_tokens=ENOUGH, scope="user", state_key="mine")
    pipeline = Agent("a", ScriptedModel(said("ok"))).middleware(one).middleware(two)
    state = (await pipeline.run("hi")).state
    assert state == {"mine": {"input": 40, "output": 10}, "user:mine": {"input": 40, "output": 10}}


async def test_a_run_that_is_run_again_goes_on_counting() -> None:
    class Twice:
        async def wrap_run(self, call: RunCall, next: NextRun) -> AgentReply:
            try:
                return await next(call)
            except ValueError:
                return await next(call)

    model = ScriptedModel(
        said("A", 6000, 3000), ValueError("x"), said("A", 6000, 3000), said("B", 1, 1)
    )
    budget = token_budget(max_tokens=15000)
    pipeline = (Agent("a", model) >> Agent("b", model)).middleware(Twice()).middleware(budget)
    with pytest.raises(BudgetExceededError) as caught:
        await pipeline.run("hi")
    assert caught.value.used == 18000


def test_event_loops_in_threads_share_a_budget() -> None:
    config = types.GenerateContentConfig(max_output_tokens=100)
    budget = token_budget(max_output_tokens=450, scope="user", on_exceeded="stop", message="No.")
    texts: list[str] = []

    def work() -> None:
        model = ScriptedModel(default=said("ok", 20, 100, latency=0.02))
        pipeline = Agent("a", model).generate_content_config(config).middleware(budget)

        async def runs() -> None:
            texts.extend(
                each.text for each in await asyncio.gather(*(pipeline.run("hi") for _ in range(4)))
            )

        asyncio.run(runs())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(texts) == ["No."] * 4 + ["ok"] * 4


# --- what counts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [None, SSE])
@pytest.mark.parametrize("usage", [None, types.GenerateContentResponseUsageMetadata()])
async def test_of_a_model_that_does_not_say_the_estimate_counts(usage: Any, config: Any) -> None:
    budget = token_budget(max_tokens=ENOUGH, scope="session")
    nothing = None if usage is None else Usage()
    model = ScriptedModel(reply(chunks=["x" * 200, "y" * 200], usage=nothing))
    pipeline = Agent("a", model).middleware(budget).middleware(Unmetered(usage))
    await pipeline.run("z" * 4000, session_id="s1", config=config or ExecutionConfig())
    used = counted(budget)
    assert used["output"] == 100
    assert 1000 <= used["input"] <= 1100


async def test_an_answer_that_a_fallback_rejects_counts_once() -> None:
    outside, inside = (token_budget(max_tokens=ENOUGH, scope="session") for _ in range(2))
    inside.state_key = "inside"
    models = [ScriptedModel(said("hm", 7, 3)), ScriptedModel(said("fine", 5, 2))]
    other = model_fallback(models=models, fallback_if=lambda reply: "hm" in str(reply))
    desk = Agent("a", ScriptedModel(said("hm")))
    for each in (outside, other, inside):
        desk = desk.middleware(each)
    result = await desk.run("hi")
    assert result.text == "fine"
    assert result.state["adk_fluent_tokens"] == {"input": 52, "output": 15}
    assert result.state[inside.state_key] == {"input": 52, "output": 15}


async def test_an_answer_that_a_retry_rejects_counts_once() -> None:
    budget = token_budget(max_tokens=ENOUGH, scope="session")
    again = retry(retry_reply=lambda reply: "hm" in str(reply), backoff_base=0)
    model = ScriptedModel(said("hm", 7, 3), said("fine", 5, 2))
    result = await Agent("a", model).middleware(budget).middleware(again).run("hi")
    assert result.text == "fine"
    assert result.state["adk_fluent_tokens"] == {"input": 12, "output": 5}


@pytest.mark.parametrize("answer", ['{"tools": ["search"]}', "no JSON"])
async def test_a_model_that_chooses_tools_counts(answer: str) -> None:
    def search(word: str) -> str:
        """Look something up."""
        return word

    def weather(place: str) -> str:
        """How the weather is."""
        return place

    budget = token_budget(max_tokens=150, scope="session")
    chooses = tool_selector(max_tools=1, model=ScriptedModel(said(answer, 100, 20)))
    model = ScriptedModel(said("ok"))
    desk = Agent("a", model).tool(search).tool(weather).middleware(budget).middleware(chooses)
    harness = AgentHarness(desk)
    first = await harness.send("hi")  # that it chooses first is not known before
    assert first.text == "ok"
    assert first.state["adk_fluent_tokens"] == {"input": 140, "output": 30}
    with pytest.raises(BudgetExceededError):
        await harness.send("hi")


async def test_a_prompt_that_is_too_long_is_not_sent() -> None:
    model = ScriptedModel()
    budget = token_budget(max_input_tokens=1000)
    with pytest.raises(BudgetExceededError, match="input tokens of this run") as caught:
        await Agent("a", model).middleware(budget).run("z" * 5000)
    assert caught.value.used == 0
    assert not model.calls


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"max_tokens": 199}, 199),
        ({"max_input_tokens": 100, "max_output_tokens": 500}, 100),
        ({"max_output_tokens": 100}, 100),
        ({"max_output_tokens": 159, "reserve_output": 60}, 159),
    ],
)
async def test_what_is_limited(options: Any, limit: int) -> None:
    """One call of 100 and 100 tokens, and the next one cannot be made."""
    model = ScriptedModel(said(Call("look"), 100, 100), said("never"))

    def look() -> str:
        """Look."""
        return "seen"

    with pytest.raises(BudgetExceededError) as caught:
        await Agent("a", model).tool(look).middleware(token_budget(**options)).run("hi")
    assert caught.value.limit == limit
    assert len(model.calls) == 1
    more: dict[str, Any] = {
        key: value if key.startswith("reserve") else value + 1000 for key, value in options.items()
    }
    model = ScriptedModel(said(Call("look"), 100, 100), said("done"))
    again = Agent("a", model).tool(look).middleware(token_budget(**more))
    assert (await again.run("hi")).text == "done"


async def test_thoughts_are_output_and_a_failed_call_costs_nothing() -> None:
    budget = token_budget(max_tokens=ENOUGH, scope="session")
    usage = Usage(prompt=10, output=2, thoughts=30)
    model = ScriptedModel(ValueError("x"), reply("ok", usage=usage))
    pipeline = Agent("a", model).middleware(budget)
    with pytest.raises(ValueError, match="x"):
        await pipeline.run("hi", session_id="s1")
    assert counted(budget) == {}
    await pipeline.run("hi", session_id="s1")
    assert counted(budget) == {"input": 10, "output": 32}


async def test_a_model_that_is_not_called_for_others_costs_nothing() -> None:
    """An answer from inside, of somebody who knows what it has cost."""

    class Answers:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            return ModelReply([])

    budget = token_budget(max_tokens=ENOUGH, scope="session")
    pipeline = Agent("a", ScriptedModel()).middleware(budget).middleware(Answers())
    await pipeline.run("hi", session_id="s1")
    assert counted(budget) == {}


# --- what comes then -----------------------------------------------------------------------------


@pytest.mark.parametrize("config", [None, SSE])
async def test_a_run_may_end_well(config: Any, metrics: Measured) -> None:
    """After the results of tools, too; Gemini itself would refuse a history that is not whole."""
    budget = token_budget(max_tokens=200, on_exceeded="stop", message="That is all.")
    calls = reply(*TWO_TOOLS[0].parts, usage=Usage(prompt=100, output=90))
    settings: Any = {"session_id": "s1", "session_service": InMemorySessionService()}
    settings["config"] = config or ExecutionConfig()
    with GeminiEmulator(calls, "Hello again.") as gemini:
        result = await clerk(gemini, budget).run("hi", **settings)
        assert result.text == "That is all."
        (last,) = [each for each in result if each.content == "That is all."]
        assert last.custom_metadata == {"adk_fluent_stopped": "token_budget"}
        assert len(gemini.requests) == 1
        assert (await clerk(gemini).run("And now?", **settings)).text == "Hello again."
    assert metrics("adk_fluent.limit.denials") == 1


async def test_fragments_are_noted_whoever_else_changes_the_call() -> None:
    class Changes:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            made = replace(call)
            answer = await next(made)
            assert call.emitted
            assert made.emitted
            return answer

    budget = token_budget(max_tokens=ENOUGH, scope="session")
    model = ScriptedModel(said("", chunks=["a", "b"]))
    pipeline = Agent("x", model).middleware(Changes()).middleware(budget).middleware(Changes())
    assert (await pipeline.run("hi", session_id="s1", config=SSE)).text == "ab"
    assert counted(budget) == {"input": 40, "output": 10}


# --- what it is given ----------------------------------------------------------------------------


def test_it_is_a_middleware() -> None:
    made = TokenBudgetMiddleware(max_tokens=5)
    assert isinstance(made, Middleware)
    assert (made.scope, made.on_exceeded, made.reserve_output) == ("run", "error", 0)
    assert set(TokenBudgetMiddleware.DESC.config_schema or {}) >= {"properties"}


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_input_tokens": -1}, "max_input_tokens"),
        ({"max_tokens": 5, "scope": "app"}, "scope"),
        ({"max_tokens": 5, "on_exceeded": "end"}, "on_exceeded"),
        ({"max_tokens": 5, "reserve_output": -1}, "reserve_output"),
        ({"max_tokens": 5, "state_key": ""}, "state_key"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"token_budget\({option}=\.\.\.\)") as caught:
        TokenBudgetMiddleware(**options)
    assert __file__ in str(caught.value)


def test_a_budget_of_nothing_in_particular_is_refused() -> None:
    with pytest.raises(UsageError, match="no budget"):
        token_budget()


# --- around a part -------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["session", "user"])
async def test_a_part_is_counted_over_the_runs_of_a_session(scope: Any) -> None:
    model = ScriptedModel(default=said("ok", 4000, 1000))
    budget = token_budget(max_tokens=10_000, scope=scope)
    pipeline = Agent("a", model).middleware(budget, scope="agent") >> Agent("b").mock("B")
    await pipeline.run("hi", session_id="s1")
    result = await pipeline.run("hi", session_id="s1")
    key = "user:adk_fluent_tokens/a" if scope == "user" else "adk_fluent_tokens/a"
    assert result.state[key] == {"input": 8000, "output": 2000}
    with pytest.raises(BudgetExceededError, match=f"of this {scope} are used up"):
        await pipeline.run("hi", session_id="s1" if scope == "session" else "s2")
    assert len(model.calls) == 2


async def test_a_part_goes_on_counting_in_another_process() -> None:
    job: Any = {"session_id": "s1", "session_service": InMemorySessionService()}

    def pipeline() -> Builder:  # another process has all of it anew, but for the session
        budget = token_budget(max_tokens=5_000, scope="session")
        part = Agent("a", ScriptedModel(default=said("ok", 4000, 1000))).middleware(
            budget, scope="agent"
        )
        return (part >> Agent("b").mock("B")).named("desk")

    await pipeline().run("hi", **job)
    with pytest.raises(BudgetExceededError):
        await pipeline().run("hi", **job)


async def test_a_part_that_waits_goes_on_counting() -> None:
    job: Any = {"session_id": "s1", "session_service": InMemorySessionService()}

    def pipeline() -> Builder:
        model = ScriptedModel(default=said("ok", 4000, 1000))
        part = Agent("a", model) >> gate(message="Go on?", name="go") >> Agent("b", model)
        part = part.named("part").middleware(token_budget(max_tokens=5_000), scope="agent")
        return (part >> Agent("c").mock("C")).named("desk")

    asked = await pipeline().run("hi", **job)
    with pytest.raises(BudgetExceededError, match="of this run are used up"):
        await pipeline().resume(asked.pending[0].answer(True), **job)


async def test_a_part_is_not_counted_with_the_run_around_it() -> None:
    def budget(tokens: int) -> TokenBudgetMiddleware:
        return token_budget(max_tokens=tokens, scope="session")

    model = ScriptedModel(default=said("ok", 4000, 1000))
    part = Agent("b", model).middleware(budget(10_000), scope="agent")
    pipeline = (Agent("a", model) >> part).middleware(budget(ENOUGH))
    await pipeline.run("hi", session_id="s1")
    result = await pipeline.run("hi", session_id="s1")
    assert result.state["adk_fluent_tokens"] == {"input": 16000, "output": 4000}
    assert result.state["adk_fluent_tokens/b"] == {"input": 8000, "output": 2000}


async def test_an_agent_in_a_tool_is_counted_for_the_session_it_is_called_in() -> None:
    helper = Agent("helper", ScriptedModel(default=said("ok", 4000, 1000)))
    budget = token_budget(max_tokens=10_000, scope="session", on_exceeded="stop", message="no more")
    helper = helper.middleware(budget, scope="agent")
    answers: list[Any] = []
    job: Any = {"session_id": "s1", "session_service": InMemorySessionService()}
    for _ in range(3):
        model = ScriptedModel(Call("helper", {"request": "x"}), "done")
        result = await Agent("clerk", model).agent_tool(helper).run("hi", **job)
        answers += [each.result for event in result for each in event.tool_responses]
    assert [str(each) for each in answers][2].count("no more") == 1
    assert "no more" not in str(answers[:2])
