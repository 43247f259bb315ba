"""`adk eval` itself, as a process, runs what we export."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.evaluation.eval_metrics import ToolTrajectoryCriterion

from adk_fluent.eval import FluentCase, FluentEvalSuite, ToolCall
from adk_fluent.eval._files._content import SuiteData
from adk_fluent.eval._files._evalset_adk import read_eval_set, write_eval_set

if TYPE_CHECKING:
    from pathlib import Path

HAS_EXTRA = all(find_spec(name) for name in ("pandas", "rouge_score", "vertexai"))

pytestmark = [
    pytest.mark.adk,
    pytest.mark.skipif(not HAS_EXTRA, reason="`adk eval` needs google-adk[eval]"),
]

#: google-adk 1.25 compares arguments even of calls that are expected by name alone.
_IGNORES_ARGUMENTS = "ignore_args" in ToolTrajectoryCriterion.model_fields

AGENT = '''\
from google.adk.agents.llm_agent import LlmAgent

from adk_fluent.testing import Call, ScriptedModel, rule


def look_up(order: str) -> str:
    """Look an order up."""
    return f"{order} is on its way"


model = ScriptedModel(
    rules=[
        rule("is on its way", reply="Order 7 is on its way."),
        rule("where is", reply=Call("look_up", {"order": "7"})),
    ],
    default="I can only look orders up.",
)
root_agent = LlmAgent(name="desk", model=model, tools=[look_up])
'''


def _adk(*arguments: str, cwd: Path) -> str:
    """What the command prints; how it exits differs between versions."""
    program = "from google.adk.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


def _results(agent: Path) -> dict[str, dict[str, Any]]:
    """Each case's result; google-adk 1.25 writes a file for each, 2.x one for all."""
    made: dict[str, dict[str, Any]] = {}
    for file in (agent / ".adk" / "eval_history").glob("*.evalset_result.json"):
        value = json.loads(file.read_text())
        value = json.loads(value) if isinstance(value, str) else value
        for each in value["eval_case_results"]:
            assert each["eval_id"] not in made
            made[each["eval_id"]] = each
    return made


def _scores(result: dict[str, Any]) -> dict[str, float | None]:
    results = result["overall_eval_metric_results"]
    return {each["metric_name"]: each["score"] for each in results if each["threshold"] is not None}


def test_adk_eval_runs_our_file(tmp_path: Path) -> None:
    agent = tmp_path / "desk"
    agent.mkdir()
    (agent / "__init__.py").write_text("from . import agent\n")
    (agent / "agent.py").write_text(AGENT)
    data = SuiteData(
        "orders v1",
        (
            FluentCase(
                "where is 7?",
                id="found",
                expected_trajectory=["look_up"],
                reference_response="Order 7 is on its way.",
                initial_state={"tier": "gold"},
                tags=["orders"],
                metadata={"owner": "me"},
                mock_tool_outputs={"look_up": "7 is lost"},
                target_node="desk",
                max_tokens=100,
            ),
            FluentCase(
                "hello",
                id="wrong",
                expected_trajectory=["look_up"],
                reference_response="Order 7 is on its way.",
            ),
        ),
        ("tool_trajectory_avg_score", "response_match_score"),
        {"response_match_score": 0.9},
        num_runs=2,
    )
    file, config = agent / "orders.evalset.json", agent / "config.json"
    write_eval_set(data, file, config)
    said = _adk("eval", "desk", str(file), "--config_file_path", str(config), cwd=tmp_path)
    results = _results(agent)
    assert set(results) == {"found", "found__run2", "wrong", "wrong__run2"}, said
    for name, result in results.items():
        assert result["eval_set_id"] == "orders_v1"
        answered = name.startswith("found")
        right = answered and _IGNORES_ARGUMENTS
        assert result["final_eval_status"] == (1 if right else 2), said
        scores = _scores(result)
        assert scores["tool_trajectory_avg_score"] == float(right)
        assert (scores["response_match_score"] == 1.0) is answered
        # the session is found, as its app is the agent's
        assert result["session_details"]["app_name"] == "desk"
    assert results["found"]["session_details"]["state"]["tier"] == "gold"
    assert results["found"]["user_id"] != results["found__run2"]["user_id"]
    made = read_eval_set(file)
    assert (made.num_runs, made.cases) == (2, data.cases)


def test_adk_eval_compares_arguments(tmp_path: Path) -> None:
    agent = tmp_path / "desk"
    agent.mkdir()
    (agent / "__init__.py").write_text("from . import agent\n")
    (agent / "agent.py").write_text(AGENT)
    data = SuiteData(
        "args",
        tuple(
            FluentCase(
                "where is 7?", id=order, expected_trajectory=[ToolCall("look_up", {"order": order})]
            )
            for order in ("7", "8")
        ),
        ("tool_trajectory_avg_score",),
    )
    file = agent / "args.evalset.json"
    write_eval_set(data, file, agent / "test_config.json")
    said = _adk(
        *("eval", "desk", str(file), "--config_file_path", str(agent / "test_config.json")),
        cwd=tmp_path,
    )
    results = _results(agent)
    assert {name: each["final_eval_status"] for name, each in results.items()} == {
        "7": 1,
        "8": 2,
    }, said


def test_adk_eval_compares_calls_of_a_suite_without_metrics(tmp_path: Path) -> None:
    agent = tmp_path / "desk"
    agent.mkdir()
    (agent / "__init__.py").write_text("from . import agent\n")
    (agent / "agent.py").write_text(AGENT)
    suite = FluentEvalSuite(
        "calls",
        cases=[
            FluentCase(
                "where is 7?",
                id="calls",
                expected_trajectory=[ToolCall("look_up", {"order": "7"})],
            ),
            FluentCase(
                "hello",
                id="calls_not",
                expected_trajectory=[ToolCall("look_up", {"order": "7"})],
            ),
            FluentCase("hello", id="may_not", expected_trajectory=[]),
            FluentCase("where is 7?", id="may_not_and_does", expected_trajectory=[]),
        ],
    )
    file, config = agent / "calls.evalset.json", agent / "config.json"
    suite.to_eval_set_file(file, config_path=config)
    said = _adk("eval", "desk", str(file), "--config_file_path", str(config), cwd=tmp_path)
    results = _results(agent)
    assert {name: _scores(each) for name, each in results.items()} == {
        "calls": {"tool_trajectory_avg_score": 1.0},
        "calls_not": {"tool_trajectory_avg_score": 0.0},
        "may_not": {"tool_trajectory_avg_score": 1.0},
        "may_not_and_does": {"tool_trajectory_avg_score": 0.0},
    }, said
    assert {name for name, each in results.items() if each["final_eval_status"] == 1} == {
        "calls",
        "may_not",
    }, said
