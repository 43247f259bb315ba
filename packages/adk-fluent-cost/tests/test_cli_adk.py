"""``adk-fluent run --cost``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from adk_fluent.cli import main

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

DESK = """
from adk_fluent import Agent
from adk_fluent.cost import cost_attribution
from adk_fluent.protocol import Usage
from adk_fluent.testing import ScriptedModel, reply

def model(name):
    return ScriptedModel(reply("Good day.", usage=Usage(prompt=1000, output=100)), model=name)

pipeline = Agent("clerk", model("gemini-2.5-flash")) >> Agent("odd", model("house-9"))
own = Agent("clerk", model("house-9")).middleware(
    cost_attribution(prices={"house-9": {"input": 1, "output": 10}})
)
"""


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["run", *args, "--cost"])
    captured = capsys.readouterr()
    return int(caught.value.code or 0), captured.out, captured.err


@pytest.fixture
def desk(tmp_path: Path) -> str:
    (tmp_path / "desk.py").write_text(DESK)
    return str(tmp_path / "desk.py")


def test_the_cost_is_printed_at_the_end(desk: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, desk, "hi")
    assert code == 0
    assert "Cost" not in out
    assert (
        "Cost: $0.00055 for 2 model calls; not in it, since no price is known: house-9 (1)" in err
    )
    assert "| clerk | $0.00055 | 1 | 1,000 | 100 |" in err


def test_as_a_line_of_json(desk: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, f"{desk}:pipeline", "hi", "--json")
    told = json.loads(out.splitlines()[-1])["cost"]
    assert (code, told["usd"], told["unpriced_models"]) == (0, "0.00055", {"house-9": 1})


def test_prices_of_the_pipeline_hold(desk: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, f"{desk}:own", "hi")
    assert "Cost: $0.002 for 1 model call\n" in err


def test_what_a_run_printed_stands_beside_an_estimate(
    desk: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(capsys, f"{desk}:pipeline", "hi", "--json")
    printed = tmp_path / "run.jsonl"
    printed.write_text(out)
    with pytest.raises(SystemExit):
        main(["estimate", f"{desk}:pipeline", "--report", str(printed)])
    out = capsys.readouterr().out
    assert "| clerk | 1.00 | $0.000650 | 1.00 | $0.000550 |" in out
    assert "| odd | 1.00 | - | 1.00 | unknown |" in out
