"""Percentiles of estimates, and the forms that an estimate has: Markdown, JSON, a picture."""

from __future__ import annotations

import json
from decimal import Decimal
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Fallback, RemoteAgent, Route, map_over, until
from adk_fluent.cli import main
from adk_fluent.cost import CostRecord, CostReport, TrafficAssumptions, estimate_cost
from adk_fluent.errors import UsageError
from adk_fluent.ir import AgentNode, LoopNode, ModelCandidate, SequenceNode
from adk_fluent.protocol import Money, Unknown, Usage

if TYPE_CHECKING:
    from pathlib import Path

PRICES = {"m": {"input": 1, "output": 10}, "n": {"input": 100, "output": 1000}}
#: What one call of m costs with 500 and 200 tokens; one of n costs 100 times that.
ONE = 0.0025


def agent(name: str, model: Any = "m") -> Agent:
    return Agent(name, model).history("none")


def estimate(pipeline: Any, *percentiles: float, **traffic: Any) -> Any:
    return estimate_cost(
        pipeline, TrafficAssumptions(**traffic), prices=PRICES, percentiles=percentiles
    )


def calls(pipeline: Any, *percentiles: float, **traffic: Any) -> list[float]:
    made = estimate(pipeline, *percentiles, **traffic)
    return [round(usd / ONE, 6) for usd in made.percentiles.values()]


# --- percentiles ---------------------------------------------------------------------------------


def test_percentiles_go_by_chance() -> None:
    route = Route("k").eq("x", agent("x")).otherwise(agent("o", "n"))
    assert calls(route, 50, 90, 99, branch_probabilities={"o": 0.05}) == [1, 1, 100]
    assert calls(Route("k").eq("x", agent("x")), 10, 90, branch_probabilities={"x": 0.6}) == [0, 1]
    attempts = Fallback(agent("a"), agent("b"), agent("c"))
    assert calls(attempts, 60, 80, 99, failure_rate=0.3) == [1, 2, 3]
    handed = agent("a").delegates(agent("other").description("Others."))
    assert calls(handed, 50, 90, branch_probabilities={"other": 0.25}, context_growth=False) == [
        *(1, 2)
    ]
    dear = ModelCandidate("n", prices=PRICES["n"], quality_tier=2)
    cheap = ModelCandidate("m", prices=PRICES["m"], quality_tier=1)
    climbs = Agent("a").model_select(strategy="adaptive", candidates=[cheap, dear], judge=bool)
    assert calls(climbs, 75, 85) == [1, 101]


def test_percentiles_of_loops() -> None:
    loop = agent("a") * until(lambda s: s["done"], max=5)
    assert calls(loop, 10, 50, 90) == [1, 3, 5]  # all numbers are alike
    assert calls(loop, 75, 90, 99, loop_iterations=1.2) == [1, 2, 3]
    assert calls(loop, 10, 50, loop_iterations=4.8) == [4, 5]
    long = agent("a") * until(lambda s: s["done"], max=3000)
    assert calls(long, 50, loop_iterations=11)[0] == pytest.approx(8, abs=1)
    assert calls(long, 50, loop_iterations=2990)[0] == pytest.approx(2993, abs=1)
    test = loop.to_ir()
    assert isinstance(test, LoopNode)
    endless = LoopNode("l", agent("a").to_ir(), max_iterations=0, until=test.until)
    assert calls(endless, 50, loop_iterations=11)[0] == pytest.approx(8, abs=1)


def test_percentiles_are_of_the_runs_that_the_mean_is_of() -> None:
    route = Route("k").eq("x", agent("x") >> agent("y")).otherwise(agent("o", "n"))
    whole = agent("first") >> route * until(lambda s: s["ok"], max=4) >> map_over("i", agent("z"))
    made = estimate(whole, *range(1, 101), branch_probabilities={"o": 0.3}, loop_iterations=2)
    assert sum(made.percentiles.values()) / 100 == pytest.approx(made.mean, rel=0.05)
    again = estimate(whole, 99, branch_probabilities={"o": 0.3}, loop_iterations=2)
    assert again.percentiles[99] == made.percentiles[99]


def test_where_chance_has_no_say_all_percentiles_are_alike() -> None:
    plain = agent("a") * 3 >> map_over("items", agent("b"))
    assert calls(plain, 99, 1, map_items=7) == [10, 10]
    assert estimate(plain).percentiles == {}
    often = map_over("items", Route("k").eq("x", agent("x")), output_key="o")
    assert calls(often, 50, map_items=10_000)[0] == pytest.approx(5000, rel=0.01)
    many = often * until(lambda s: s["ok"], max=2)
    assert calls(map_over("i", many), 50, map_items=200)[0] == pytest.approx(30_000, rel=0.01)


@pytest.mark.parametrize("given", [(0,), (101,), ("50",), (True,), 50, (float("nan"),)], ids=str)
def test_what_is_no_percentile_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="takes numbers above 0 and up to 100"):
        estimate_cost(agent("a"), prices=PRICES, percentiles=given)


# --- beside what was measured --------------------------------------------------------------------


def report(*rows: tuple[str, str | None]) -> CostReport:
    return CostReport(
        CostRecord(
            agent=name,
            model="m" if usd else "house-9",
            served="m" if usd else "house-9",
            usage=Usage(prompt=5),
            cost=Money(Decimal(usd)) if usd else Unknown("no price"),
        )
        for name, usd in rows
    )


def desk() -> Any:
    return agent("a") >> agent("b", "house-9") >> agent("c").mock("free")


def test_amounts_in_json_are_without_what_binary_fractions_leave() -> None:
    made = estimate_cost(
        Agent("a", "m") >> Agent("b", "m") >> Agent("c", "m"),
        prices={"m": {"input": 1, "output": 0.3}},
    )
    amounts = made.to_dict()["per_agent"]
    assert amounts == pytest.approx(made.per_agent)
    assert max(len(str(each)) for each in amounts.values()) <= len("0.00012345")


RUNS = (report(("a", "0.002"), ("b", None), ("x|y", "0.5")), report(("a", "0.004"), ("a", None)))


def test_what_was_measured_stands_beside() -> None:
    made = estimate(desk(), 50)
    text = made.to_markdown(RUNS)
    assert "percentiles of a run: p50 $0.002500" in text
    assert (
        "$0.253000 a run, measured in 2 runs; not in it, since no price is known: house-9" in text
    )
    assert "| agent | calls a run | a run | measured calls | measured |\n" in text
    assert "| a | 1.00 | $0.002500 | 1.50 | $0.003000 + 1 unpriced |" in text
    assert "| b | 1.00 | - | 0.50 | unknown |" in text
    assert "| x\\|y | 0.00 | - | 0.50 | $0.250000 |" in text
    data = json.loads(json.dumps(made.to_dict(RUNS)))
    assert data["percentiles"] == {"p50": pytest.approx(ONE)}
    assert data["measured"] == {
        "runs": 2,
        "mean_usd": pytest.approx(0.253),
        "per_agent": {"a": pytest.approx(0.003), "b": None, "x|y": 0.25},
        "calls": {"a": 1.5, "b": 0.5, "x|y": 0.5},
        "unpriced_models": {"house-9": 1.0},
    }
    assert "measured" not in made.to_dict()
    for wrong in (RUNS[0], [], ["a"]):
        with pytest.raises(UsageError, match="takes reports of costs, one for each run"):
            made.to_markdown(wrong)


# --- the picture ---------------------------------------------------------------------------------


class Page(HTMLParser):
    """The tags, attributes and texts of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.names, self.texts = list[str](), set[str](), list[str]()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.names |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_the_picture_has_the_money_at_each_step() -> None:
    route = Route("k").eq("x", agent("x")).otherwise(agent("o", "n") >> agent("h", "house-9"))
    far = RemoteAgent("far", endpoint="https://far.example")
    whole = agent("a") >> route >> far >> agent("z").mock("free")
    shares = {"branch_probabilities": {"x": 0.75}}
    page = Page(estimate(whole, **shares).to_html())
    for text in ("$0.002500 a run", "1.00 calls", "$0.001875 a run", "0.75 calls"):
        assert text in page.texts
    assert "no price is known of house-9" in page.texts
    assert "$0.064375 a run in all" in page.texts
    assert "costs: nobody sees its models" in page.texts
    assert sum(text.endswith(" calls") for text in page.texts) == 4
    above = "".join(page.texts)
    assert "$0.066875 a run, at least $0.005000, at most $0.252500" in above
    assert "not in it, since no price is known: house-9" in above
    beside = Page(estimate(desk()).to_html(RUNS))
    shown = " ".join(text for text in beside.texts if text.strip())  # lines are wrapped
    assert "measured: $0.003000 + 1 unpriced, 1.50 calls" in shown
    assert "$0.253000 a run, measured in 2 runs" in "".join(beside.texts)


HOSTILE = "</title></text><script>alert(1)</script><img src=x onerror='alert(2)'>\ud800\x00|\"&"


def test_names_and_models_cannot_inject() -> None:
    root = SequenceNode(HOSTILE, (AgentNode(HOSTILE, model=HOSTILE), AgentNode("b", model=HOSTILE)))
    spent = CostReport(
        [CostRecord(agent=HOSTILE, model=HOSTILE, served=HOSTILE, cost=Unknown("?"))]
    )
    text = estimate_cost(root).to_html([spent])
    text.encode()
    page = Page(text)
    assert page.tags.count("script") == 1
    assert "img" not in page.tags
    assert not {name for name in page.names if name.startswith("on")} | page.names & {"src", "href"}
    assert any("<script>alert(1)</script>" in each for each in page.texts)


# --- the command ---------------------------------------------------------------------------------


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["estimate", *args])
    captured = capsys.readouterr()
    return int(caught.value.code or 0), captured.out, captured.err


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, prices, page = tmp_path / "desk.py", tmp_path / "prices.yaml", tmp_path / "desk.html"
    path.write_text("from adk_fluent import Agent\npipeline = Agent('a', 'm')\n")
    prices.write_text("m: {input: 1, output: 10}\n")
    plain, printed = tmp_path / "one.json", tmp_path / "two.jsonl"
    plain.write_text(json.dumps(RUNS[0].to_dict()))
    printed.write_text('{"text": "Hi."}\n' + json.dumps({"cost": RUNS[1].to_dict()}) + "\n")
    options = (str(path), "--prices", str(prices), "--html", str(page), "--percentiles")
    reports = ("--report", str(plain), "--report", str(printed))
    code, out, _ = run(capsys, *options, *reports)
    assert code == 0
    assert "p50 $0.002500, p90 $0.002500, p99 $0.002500" in out
    assert "measured in 2 runs" in out
    assert "measured in 2 runs" in page.read_text("utf-8")
    assert "1.50 calls" in page.read_text("utf-8")
    code, out, _ = run(capsys, *options, *reports, "--json")
    assert json.loads(out)["measured"]["runs"] == 2
    code, out, _ = run(capsys, *options, "--html", str(prices))
    assert code == 2


@pytest.mark.parametrize("text", ["nothing", '{"cost": 5}', '{"records": [5]}', "[]", "\x81"])
def test_what_is_no_report_is_refused(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, told = tmp_path / "desk.py", tmp_path / "cost.json"
    path.write_text("from adk_fluent import Agent\npipeline = Agent('a', 'm')\n")
    told.write_bytes(text.encode("latin-1"))
    code, out, err = run(capsys, str(path), "--report", str(told))
    assert (code, out) == (2, "")
    assert "cost.json" in err
