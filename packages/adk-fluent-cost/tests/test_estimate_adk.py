"""Estimates by structure, held against runs on ADK whose tokens were counted."""

from __future__ import annotations

import json
from itertools import cycle
from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import (
    Agent,
    Fallback,
    FanOut,
    Pipeline,
    RemoteAgent,
    Route,
    gate,
    map_over,
    race,
    until,
)
from adk_fluent.cli import main
from adk_fluent.cost import TrafficAssumptions, cost_attribution, cost_of, estimate_cost
from adk_fluent.errors import UsageError
from adk_fluent.protocol import RunResult
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from pathlib import Path

    from adk_fluent.builders import Builder
    from adk_fluent.ir import History

PRICES = {"m": {"input": 1, "output": 10}, "n": {"input": 100, "output": 1000}}
#: What one call of the model costs with 500 and 200 tokens.
ONE = 0.0025


def agent(name: str, model: Any = "m") -> Agent:
    return Agent(name, model).history("none")


def estimate(pipeline: Any, **traffic: Any) -> Any:
    return estimate_cost(pipeline, TrafficAssumptions(**traffic), prices=PRICES)


def bounds(pipeline: Any, **traffic: Any) -> tuple[float, ...]:
    made = estimate(pipeline, **traffic)
    return tuple(round(number / ONE, 6) for number in (made.lo, made.mean, made.hi))


# --- by structure --------------------------------------------------------------------------------


def test_steps_add_up() -> None:
    made = estimate(agent("a") >> agent("b", "n"), invocations_per_day=10)
    assert made.per_agent == pytest.approx({"b": 100 * ONE, "a": ONE})
    assert made.per_model == pytest.approx({"n": 100 * ONE, "m": ONE})
    assert made.daily == made.total_estimated == pytest.approx(1010 * ONE)
    assert bounds(FanOut(agent("a"), agent("b"))) == (2, 2, 2)
    assert bounds(race(agent("a"), agent("b"))) == (2, 2, 2)


def test_routes_go_by_the_probabilities_of_their_branches() -> None:
    route = Route("k").eq("x", agent("x")).eq("y", agent("y") >> agent("z")).otherwise(agent("o"))
    second = next(each for each in route.to_ir().children if each.name not in ("x", "o")).name
    assert bounds(route) == (1, 1.333333, 2)
    assert bounds(route, branch_probabilities={"x": 0.5, second: 0.5}) == (1, 1.5, 2)
    assert bounds(route, branch_probabilities={"x": 0.8}) == (1, 1.1, 2)
    assert bounds(Route("k").eq("x", agent("x"))) == (0, 0.5, 1)
    with pytest.raises(UsageError, match="taken more often than it runs"):
        estimate(route, branch_probabilities={"x": 0.8, "o": 0.8})


def test_loops_have_their_bounds() -> None:
    assert bounds(agent("a") * 3) == (3, 3, 3)
    early = agent("a") * until(lambda s: s["done"], max=5)
    assert bounds(early) == (1, 3, 5)
    assert bounds(early, loop_iterations=2) == (1, 2, 5)
    assert bounds(early, loop_iterations={early.to_ir().name: 4}) == (1, 4, 5)
    assert bounds(early, loop_iterations=50) == (1, 5, 5)
    for cannot in (0, 50):
        with pytest.raises(UsageError, match="runs 1 to 5 times"):
            estimate(early, loop_iterations={early.to_ir().name: cannot})


def test_fallbacks_maps_tools_and_delegates() -> None:
    assert bounds(Fallback(agent("a"), agent("b")), failure_rate=0.25) == (1, 1.25, 2)
    mapped = map_over("items", agent("a"))
    made = estimate(mapped, map_items=7)
    assert (made.mean, made.hi) == (pytest.approx(7 * ONE), inf)
    assert made.unbounded == (mapped.to_ir().name,)
    assert "without a bound" in str(made)

    def look() -> str:
        """Look."""
        return ""

    tools = agent("a").tool(look)
    assert bounds(tools, tool_rounds=0) == (1, 1, 1)
    assert estimate(tools, tool_rounds=2).calls == {"a": 3}
    asked = agent("a").agent_tool(agent("helper").description("Helps."))
    assert estimate(asked, tool_rounds=2).calls == {"a": 3, "helper": 2}
    handed = agent("a").delegates(agent("other").description("Others."))
    assert bounds(handed, branch_probabilities={"other": 0.25}, context_growth=False) == (
        1,
        1.25,
        2,
    )


def test_delegates_without_a_share_have_the_rest_alike() -> None:
    three = [agent(name).description("Helps.") for name in "xyz"]
    desk = agent("a").delegates(*three)
    assert estimate(desk).calls == {"a": 1, "x": 0.25, "y": 0.25, "z": 0.25}
    assert bounds(desk) == (1, 1.75, 4)
    named = estimate(desk, branch_probabilities={"x": 0.4})
    assert named.calls == pytest.approx({"a": 1, "x": 0.4, "y": 0.2, "z": 0.2})


def test_prompts_grow_by_what_histories_show() -> None:
    first = agent("a")
    shown: dict[History, int] = {"transcript": 700, "input": 700, "none": 500, "own": 500}
    for history, tokens in shown.items():
        made = estimate(first >> Agent("b", "m").history(history))
        assert made.per_agent["b"] == pytest.approx((tokens + 2000) / 1e6)
    long = first >> agent("b") >> Agent("c", "m")
    assert estimate(long).per_agent["c"] == pytest.approx((900 + 2000) / 1e6)
    looped = Agent("a", "m") * 3
    assert estimate(looped).per_agent["a"] == pytest.approx(3 * (700 + 2000) / 1e6)


def test_what_is_not_known_is_named() -> None:
    pipeline = (
        agent("a") >> Agent("b", "house-9") >> RemoteAgent("far", endpoint="https://far.example")
    )
    pipeline = pipeline >> Agent("c") >> Agent("d").mock("free")
    made = estimate(pipeline)
    assert made.unpriced == {"house-9": 1, "(default model)": 1}
    assert made.opaque == ("far",)
    assert made.mean == pytest.approx(ONE)
    assert "no price is known: house-9, (default model)" in str(made)
    assert "nobody sees their models: far" in str(made)
    assert estimate_cost(Agent("c"), prices=PRICES, default_model="m").unpriced == {}


@pytest.mark.parametrize(
    "traffic",
    [
        {"avg_input_tokens": -1},
        {"avg_output_tokens": "many"},
        {"invocations_per_day": float("inf")},
        {"branch_probabilities": {"a": 1.5}},
        {"failure_rate": 2},
        {"tool_rounds": {"a": True}},
        {"tool_rounds": {3: 1}},
        {"failure_rate": {"a": 0.5}},
        {"branch_probabilities": 0.5},
        {"measured_calls": None},
        {"tool_tokens": None},
        {"context_growth": "yes"},
    ],
    ids=str,
)
def test_what_cannot_be_assumed_is_refused(traffic: Any) -> None:
    with pytest.raises(UsageError, match="TrafficAssumptions"):
        TrafficAssumptions(**traffic)


@pytest.mark.parametrize(
    ("traffic", "says"),
    [
        (
            {"branch_probabilities": {"billin": 0.4}},
            "no branch of a route 'billin'(?s:.)*mean 'billing'",
        ),
        ({"avg_output_tokens": {"nobody": 4}}, "avg_output_tokens.*no step 'nobody'"),
        ({"branch_probabilities": {"k": 0.4}}, "no branch of a route 'k'(?s:.)*billing, other"),
        ({"loop_iterations": {"billing": 4}}, "no loop 'billing'(?s:.)*none here"),
        ({"map_items": {"k": 4}}, "no map 'k'"),
        ({"branch_probabilities": {"billing": 0.3, "other": 0.3}}, "less often than it runs"),
    ],
)
def test_what_does_not_fit_the_pipeline_is_refused(traffic: Any, says: str) -> None:
    desk = Route("k").eq("x", agent("billing")).otherwise(agent("other"))
    with pytest.raises(UsageError, match=says):
        estimate(desk, **traffic)


def test_a_loop_that_asks_at_its_end_runs_once_at_least() -> None:
    loop = agent("a") * until(lambda state: state["ok"], max=3)
    assert bounds(loop, loop_iterations=0) == (1, 1, 3)


def test_what_is_no_pipeline_is_refused() -> None:
    with pytest.raises(UsageError, match="takes a pipeline"):
        estimate_cost(Agent)
    with pytest.raises(UsageError, match="takes a pipeline"):
        estimate_cost(5)
    wrong: Any = 5
    with pytest.raises(UsageError, match="default_model"):
        estimate_cost(agent("a"), default_model=wrong)
    with pytest.raises(UsageError, match="from_results takes results"):
        TrafficAssumptions.from_results(wrong)
    wrong = [3]
    with pytest.raises(UsageError, match=r"from_results takes results(?s:.)*found: 3"):
        TrafficAssumptions.from_results(wrong)
    with pytest.raises(UsageError, match="takes TrafficAssumptions"):
        estimate_cost(agent("a"), {"avg_input_tokens": 5})  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="0 results without any"):
        TrafficAssumptions.from_results([])


def test_depth_and_length_do_not_matter() -> None:
    deep: Any = agent("a")
    for _ in range(3000):
        deep = deep * 1
    assert bounds(deep) == (1, 1, 1)
    long: Builder = agent("a0")
    for number in range(1, 3000):
        long = long >> agent(f"a{number}")
    assert bounds(long) == (3000, 3000, 3000)


# --- against runs --------------------------------------------------------------------------------

TEXT = "word " * 160  # 200 tokens
INSTRUCTION = "rule " * 400  # 500 tokens


def talks(name: str, *replies: Any) -> Agent:
    return Agent(name, ScriptedModel(*replies, default=TEXT, model="m")).instruct(INSTRUCTION)


def looped() -> tuple[Builder, dict[str, Any]]:
    """Three drafts, each reviewed."""
    body = talks("draft") >> talks("review").history("own")
    return Pipeline(talks("plan"), body * 3), {}


def routed() -> tuple[Builder, dict[str, Any]]:
    kinds = cycle("aaab")

    def choose(state: Any) -> dict[str, str]:
        return {"kind": next(kinds)}

    route = Route("kind").eq("a", talks("short")).otherwise(talks("long") >> talks("longer"))
    other = next(each.name for each in route.to_ir().children if each.name != "short")
    shares = {"branch_probabilities": {"short": 0.75, other: 0.25}}
    return talks("classify") >> choose >> route >> talks("close"), shares


def with_tools() -> tuple[Builder, dict[str, Any]]:
    def look(word: str) -> str:
        """Look something up."""
        return "fact " * 80

    calls = ScriptedModel(
        default=lambda asked: (
            TEXT
            if asked.turns[-1].text.startswith("[result")
            else reply(TEXT, Call("look", {"word": "x"}))
        ),
        model="m",
    )
    asking = Agent("ask", calls).instruct(INSTRUCTION).tool(look)
    return asking * 2 >> talks("close"), {"tool_rounds": 1}


@pytest.mark.adk
@pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")
@pytest.mark.parametrize("case", [looped, routed, with_tools])
async def test_an_estimate_is_within_a_fifth_of_what_runs_cost(case: Any) -> None:
    pipeline, traffic = case()
    watched = pipeline.middleware(cost_attribution(prices=PRICES))
    runs = [await watched.run("Go on, please.") for _ in range(4)]
    actual = sum(float(cost_of(each).total.usd) for each in runs) / len(runs)
    assert estimate(pipeline, **traffic).mean == pytest.approx(actual, rel=0.2)
    measured = TrafficAssumptions.from_results(runs, invocations_per_day=5)
    again = estimate_cost(watched, measured, prices=PRICES)
    assert again.mean == pytest.approx(actual, rel=0.01)
    assert again.daily == pytest.approx(5 * again.mean)


@pytest.mark.adk
@pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")
async def test_the_parts_of_a_run_that_waited_are_one_run() -> None:
    pipeline = (talks("draft") >> gate(message="Send it?") >> talks("send")).middleware(
        cost_attribution(prices=PRICES)
    )
    parts: list[Any] = []
    for session in ("a", "b"):
        asked = await pipeline.run("Go on, please.", session_id=session)
        done = await pipeline.resume(asked.pending[0].answer(True), session_id=session)
        parts += [asked, done, RunResult([*asked, *done])]  # the last as an engine gives it
    measured = TrafficAssumptions.from_results(parts)
    assert measured.measured_calls == {"draft": 1, "send": 1}


@pytest.mark.adk
async def test_a_branch_that_no_run_took_costs_nothing() -> None:
    desk = Route("k").eq("x", talks("billing") >> talks("review")).otherwise(talks("other"))
    result = await desk.middleware(cost_attribution(prices=PRICES)).run("Go on, please.")
    measured = TrafficAssumptions.from_results([result])
    assert estimate_cost(desk, measured).calls == {"billing": 0, "review": 0, "other": 1}
    # a step that every run takes is new
    assert estimate_cost(desk >> talks("close"), measured).calls["close"] == 1


# --- the command ---------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["estimate", *args])
    captured = capsys.readouterr()
    return int(caught.value.code or 0), captured.out, captured.err


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "desk.py"
    path.write_text(
        "from adk_fluent import Agent, Route\n"
        "a = [Agent(n, 'm').history('none') for n in 'abc']\n"
        "pipeline = Route('k').eq('x', a[0]).otherwise(a[1] >> a[2])\n"
    )
    prices = tmp_path / "prices.yaml"
    prices.write_text("m: {input: 1, output: 10}\n")
    options = (str(path), "--prices", str(prices), "--branch", "a=0.9", "--per-day", "1000")
    code, out, _ = run(capsys, *options)
    assert code == 0
    assert "$0.002750 a run, at least $0.002500, at most $0.005000" in out
    assert "$2.75 a day of 1000 runs" in out
    code, out, _ = run(capsys, *options, "--per-day", "1")
    assert "$0.002750 a day of 1 run" in out
    code, out, _ = run(capsys, *options, "--json")
    assert json.loads(out)["daily_usd"] == pytest.approx(2.75)
    for slip, says in (
        (("a",), "'a' is not NAME=NUMBER"),
        (("a=much",), "'a=much' is not NAME=NUMBER"),
        (("a=2",), "a share from 0 to 1"),
        (("k=0.1",), "no branch of a route 'k'"),
        (("a=0.1", "--branch", "a=0.2"), "'a' is given twice"),
    ):
        code, out, err = run(capsys, str(path), "--branch", *slip)
        assert (code, out) == (2, "")
        assert says in err
    assert run(capsys, str(path), "--branch", "a=7")[0] == 2


def test_a_long_prompt_is_estimated_at_its_own_price() -> None:
    def one(prompt: int) -> float:
        traffic = TrafficAssumptions(avg_input_tokens=prompt, avg_output_tokens=0)
        return estimate_cost(agent("a", "gemini-2.5-pro"), traffic).mean

    assert one(200_000) == pytest.approx(0.25)
    assert one(200_001) == pytest.approx(0.5000025)
    assert one(3_000_000) == pytest.approx(7.5)
    rows = {"m": {"input": 1, "output": 1, "above": {1500: {"input": 2}, 4_000_000: {"input": 3}}}}
    for prompt, usd in ((1500, 0.0015), (1501, 0.003002), (4_000_001, 12.000003)):
        traffic = TrafficAssumptions(avg_input_tokens=prompt, avg_output_tokens=0)
        assert estimate_cost(agent("a"), traffic, prices=rows).mean == pytest.approx(usd)
