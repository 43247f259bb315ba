"""What `adk eval` makes of our files, and `adk web` of our results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from enum import StrEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

import pytest
from google.adk.evaluation.eval_case import get_all_tool_calls
from google.adk.evaluation.local_eval_set_results_manager import LocalEvalSetResultsManager
from pydantic import ValidationError

from adk_fluent import Agent
from adk_fluent.eval import (
    EvalError,
    EvalFileError,
    FluentCase,
    FluentEvalReport,
    FluentEvalSuite,
    Status,
    ToolCall,
)
from adk_fluent.testing import Call, ScriptedModel, rule

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.adk

HAS_EXTRA = all(find_spec(name) for name in ("pandas", "rouge_score", "vertexai"))
AGENT = '''\
from google.adk.agents.llm_agent import LlmAgent

from adk_fluent.testing import Call, ScriptedModel, rule


def look_up(order: str) -> str:
    """Look up an order."""
    return f"{order} is on its way"


model = ScriptedModel(
    rules=[
        rule("is on its way", reply="Order 7 is on its way."),
        rule("where is", reply=Call("look_up", {"order": "7"})),
    ],
    default="I can only look up orders.",
)
root_agent = LlmAgent(name="desk", model=model, tools=[look_up])
'''


def look_up(order: str) -> str:
    """Look up an order."""
    return f"{order} is on its way"


def pipeline() -> Agent:
    rules = [
        rule("is on its way", reply="Order 7 is on its way."),
        rule("where is", reply=Call("look_up", {"order": "7"})),
    ]
    return Agent("desk", ScriptedModel(rules=rules, default="I can only look up orders.")).tool(
        look_up
    )


SUITE = FluentEvalSuite(
    "orders v1",
    cases=[
        FluentCase(
            "where is 7?",
            id="found",
            expected_trajectory=[ToolCall("look_up", {"order": "7"})],
            reference_response="Order 7 is on its way.",
            initial_state={"tier": "gold"},
            tags=["orders"],
        ),
        FluentCase(
            "hello", id="wrong", expected_trajectory=["look_up"], reference_response="Order 7"
        ),
    ],
    metrics=["response_match_score"],
    thresholds={"response_match_score": 0.9},
)


@pytest.fixture
def agents(tmp_path: Path) -> Path:
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import agent\n", "utf-8")
    (folder / "agent.py").write_text(AGENT, "utf-8")
    return tmp_path


def results_in(agents: Path) -> dict[str, dict[str, Any]]:
    """Result of each case; google-adk 1.x writes a file for each case."""
    found: dict[str, dict[str, Any]] = {}
    for file in (agents / "desk" / ".adk" / "eval_history").glob("*.evalset_result.json"):
        value: Any = json.loads(file.read_text("utf-8"))
        value = json.loads(value) if isinstance(value, str) else value
        for each in value["eval_case_results"]:
            assert each["eval_id"] not in found
            found[each["eval_id"]] = each
    return found


def scores(result: dict[str, Any]) -> dict[str, Any]:
    return {each["metric_name"]: each["score"] for each in result["overall_eval_metric_results"]}


def test_a_case_that_is_no_longer_valid_is_refused() -> None:
    case = FluentCase("hi", id="a")
    case.reference_response = cast("Any", 5)
    with pytest.raises(ValidationError, match="text"):
        FluentEvalSuite("s", cases=[case]).to_eval_set()


def test_texts_of_a_subclass_become_plain() -> None:
    class Word(StrEnum):
        FINE = "fine"

    case = FluentCase(Word.FINE, reference_response=Word.FINE, expected_trajectory=[Word.FINE])
    [made] = FluentEvalSuite("s", cases=[case]).to_eval_set().eval_cases
    [turn] = made.conversation or []
    assert turn.final_response is not None
    texts = [
        *(part.text for part in turn.final_response.parts or ()),
        *(part.text for part in turn.user_content.parts or ()),
        *(call.name for call in get_all_tool_calls(turn.intermediate_data)),
    ]
    assert [(type(text), text) for text in texts] == [(str, "fine")] * 3


def test_eval_cases_share_nothing() -> None:
    before = SUITE.to_eval_set().model_dump()
    for case in SUITE.to_eval_set().eval_cases:
        [turn] = case.conversation or []
        for content in (turn.user_content, turn.final_response):
            assert content is not None
            assert content.parts is not None
            content.parts[0].text = "changed"
            content.parts.append(content.parts[0])
        [call] = get_all_tool_calls(turn.intermediate_data)
        assert call.args is not None
        call.args["added"] = True
    assert SUITE.to_eval_set().model_dump() == before


@pytest.mark.skipif(not HAS_EXTRA, reason="`adk eval` needs google-adk[eval]")
def test_adk_eval_runs_our_file_with_the_same_result(agents: Path) -> None:
    file, config = agents / "desk" / "orders.evalset.json", agents / "config.json"
    SUITE.to_eval_set_file(file, config_path=config)
    program = "from google.adk.cli import main; main()"
    done = subprocess.run(
        [
            *(sys.executable, "-W", "ignore", "-c", program, "eval", "desk", str(file)),
            *("--config_file_path", str(config)),
        ],
        cwd=agents,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    theirs = results_in(agents)
    assert set(theirs) == {"found", "wrong"}, done.stdout + done.stderr
    suite = FluentEvalSuite.from_eval_set(file, pipeline(), config_path=config)
    ours = {each.eval_id: each for each in suite.run_sync().case_results}
    for name, result in theirs.items():
        assert result["eval_set_id"] == "orders_v1"
        assert result["final_eval_status"] == ours[name].final_eval_status.value
        metrics = ours[name].overall_eval_metric_results
        expected = {each.metric_name: each.score for each in metrics}
        # google-adk 2.x adds its informational counts
        assert {key: scores(result)[key] for key in expected} == pytest.approx(expected)
        assert result["session_details"]["app_name"] == "desk"
    assert theirs["found"]["session_details"]["state"]["tier"] == "gold"


def report(**more: Any) -> FluentEvalReport:
    gone = {"look_up": ValueError("gone")}
    failing = FluentCase("where is 7?", id="error", max_tokens=9, mock_tool_outputs=gone)
    cases = [*SUITE.cases, failing]
    cases.append(FluentCase("hi", id="skipped", expected_trajectory=[], skip="later"))
    return FluentEvalSuite(SUITE.name, pipeline(), cases, num_runs=2).run_sync(**more)


def test_results_are_where_adk_reads_them(agents: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "gold-and-silver")
    SUITE.cases[0].initial_state = {"tier": "gold-and-silver"}
    made = report()
    SUITE.cases[0].initial_state = {"tier": "gold"}
    files = made.save_adk_results(agents, "desk")
    manager = LocalEvalSetResultsManager(str(agents))
    names = manager.list_eval_set_results("desk")
    assert [f"{each}.evalset_result.json" for each in names] == [each.name for each in files]
    found = {
        each.eval_id: each
        for name in names
        for each in manager.get_eval_set_result("desk", name).eval_case_results
    }
    assert {name: each.final_eval_status.name for name, each in found.items()} == {
        "found": "PASSED",
        "found__run2": "PASSED",
        "wrong": "FAILED",
        "wrong__run2": "FAILED",
        "error": "FAILED",
        "error__run2": "FAILED",
        "skipped": "NOT_EVALUATED",
        "skipped__run2": "NOT_EVALUATED",
    }
    assert made.outcome("error").status is Status.ERROR
    session = found["found"].session_details
    assert session is not None
    assert (session.app_name, len(session.events)) == ("desk", 4)
    assert session.state["tier"] == "[SHOP_TOKEN]"
    [turn] = found["found"].eval_metric_result_per_invocation
    assert turn.expected_invocation is not None
    [why] = found["error"].overall_eval_metric_results
    assert why.details is not None
    assert why.details.rubric_scores is not None
    assert "gone" in str(why.details.rubric_scores[0].rationale)


@pytest.mark.filterwarnings("ignore")  # of ADK's server, about itself
def test_adk_web_shows_them(agents: Path) -> None:
    from google.adk.cli.fast_api import get_fast_api_app
    from starlette.testclient import TestClient

    SUITE.to_eval_set_file(agents / "desk" / "orders_v1.evalset.json")
    report().save_adk_results(agents, "desk")
    client = TestClient(get_fast_api_app(agents_dir=str(agents), web=True))
    base = next(
        base
        for base in ("/dev/apps/desk", "/apps/desk")
        if client.get(f"{base}/eval-results").status_code == 200
    )
    names = client.get(f"{base}/eval-results").json()["evalResultIds"]
    shown = [client.get(f"{base}/eval-results/{each}").json() for each in names]
    cases = {case["evalId"]: case for each in shown for case in each["evalCaseResults"]}
    assert (cases["found"]["finalEvalStatus"], cases["error"]["finalEvalStatus"]) == (1, 2)
    assert cases["found"]["sessionDetails"]["events"][0]["author"] == "user"
    assert client.get(f"{base}/eval-sets").json()["evalSetIds"] == ["orders_v1"]


def test_a_place_that_is_not_an_agents_is_refused(agents: Path) -> None:
    made = FluentEvalReport([])
    with pytest.raises(EvalFileError, match="there is no such agent"):
        made.save_adk_results(agents, "dask")
    with pytest.raises(EvalError, match="app_name= is the name"):
        made.save_adk_results(agents, "../desk")
    (agents / "desk" / ".adk").write_text("", "utf-8")
    with pytest.raises(EvalFileError, match="the results cannot be written"):
        made.save_adk_results(agents, "desk")
