"""Secrets of the environment reach no outcome, and so no report, journal and progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eval_programs import calling, case, desk, report_of, suite_of

from adk_fluent import Agent
from adk_fluent.eval import FluentJudge
from adk_fluent.testing import Call, ScriptedModel

if TYPE_CHECKING:
    from pathlib import Path

    from adk_fluent.eval._running._progress import Progress

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]

SECRET = "s3cr3t-of-the-shop"  # of this test alone


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", SECRET)


def lookup(order: str) -> dict[str, Any]:
    """Look an order up."""
    return {"order": order, "url": f"https://shop/?token={SECRET}"}


def fails(order: str) -> str:
    """Fail."""
    raise PermissionError(f"401 for token {SECRET}")


async def test_what_tools_models_and_judges_say(tmp_path: Path) -> None:
    def judge(actual_response: str) -> tuple[float, str]:
        return 0.0, f"it told {SECRET}"

    told: list[str] = []

    def progress(each: Progress) -> None:
        told.append(repr(each.outcome))

    program = desk(Call("lookup", {"order": SECRET}), tools=(lookup,)).writes("answer")
    asked = case(SECRET, id="a", state_assertions={"answer": SECRET[:-1]}, metadata={"n": 1})
    suite = suite_of(program, asked, custom_judges=[FluentJudge("own", fn=judge)])
    report = await suite.run(journal=tmp_path / "j", progress=progress)
    outcome = report.outcome("a")
    assert "[SHOP_TOKEN]" in outcome.response
    assert outcome.tool_uses[0].args == {"order": "[SHOP_TOKEN]"}
    assert outcome.state["answer"] == outcome.response
    assert any("it told [SHOP_TOKEN]" in each for each in outcome.reasons)
    report.save(tmp_path / "report.json")
    everything = [
        *told,
        repr(outcome),
        report.to_markdown(),
        (tmp_path / "j").read_text("utf-8"),
        (tmp_path / "report.json").read_text("utf-8"),
    ]
    assert not [each for each in everything if SECRET in each]


async def test_what_tools_raise() -> None:
    program = desk(Call("fails", {"order": "A1"}), tools=(fails,))
    outcome = (await report_of(program, case(id="a"))).outcome("a")
    assert outcome.error == "PermissionError: 401 for token [SHOP_TOKEN]"
    assert outcome.tool_uses[0].error == outcome.error
    assert SECRET not in repr(outcome)


async def test_ids_stay_what_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_PASSWORD", "the-case")
    program = Agent("clerk", ScriptedModel(default=calling()))
    report = await report_of(program, case(id="the-case", tags=["the-case"]))
    assert report.outcome("the-case").tags == ["the-case"]


def test_a_manager_of_results(tmp_path: Path) -> None:
    from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager

    program = desk(Call("lookup", {"order": SECRET}), tools=(lookup,)).writes("answer")
    suite = suite_of(program, case(SECRET, id="a"))
    manager = LocalEvalSetResultsManager(str(tmp_path))
    report = suite.run_sync(results_manager=manager)
    assert not report.notes
    [saved] = [each for each in tmp_path.rglob("*") if each.is_file()]
    text = saved.read_text("utf-8")
    assert "SHOP_TOKEN" in text
    assert SECRET not in text
