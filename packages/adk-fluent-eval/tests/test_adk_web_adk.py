"""`adk web` itself, as a process, serves the results that we write."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import ProxyHandler, build_opener

import pytest

from adk_fluent.eval import (
    CaseOutcome,
    FluentCase,
    FluentEvalReport,
    MetricScore,
    MetricStatus,
    Status,
    Step,
    ToolUse,
    TurnOutcome,
)
from adk_fluent.eval._files._content import SuiteData
from adk_fluent.eval._files._evalset_adk import write_eval_set
from adk_fluent.eval._files._results_adk import write_eval_set_result

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pytestmark = pytest.mark.adk

#: Where its endpoints of evaluation are.
_APPS = "/apps" if version("google-adk").startswith("1.") else "/dev/apps"
_PATIENCE_S = 120

AGENT = """\
from google.adk.agents.llm_agent import LlmAgent

from adk_fluent.testing import ScriptedModel

root_agent = LlmAgent(name="desk", model=ScriptedModel(default="Hello."))
"""

_open = build_opener(ProxyHandler({})).open  # loopback, whatever proxy the machine has


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _get(address: str) -> Any:
    with _open(address, timeout=30) as answer:
        return json.loads(answer.read())


@contextmanager
def _adk_web(agents: Path) -> Generator[str]:
    """The server, over a folder of agents; its address."""
    port = _free_port()
    program = "from google.adk.cli import main; main()"
    log = agents.with_name("web.log")
    with log.open("wb") as out:
        server = subprocess.Popen(
            [
                *(sys.executable, "-W", "ignore", "-c", program),
                *("web", "--host", "127.0.0.1", "--port", str(port), str(agents)),
            ],
            cwd=agents,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        try:
            address = f"http://127.0.0.1:{port}"
            _await(server, address, log)
            yield address
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _await(server: subprocess.Popen[bytes], address: str, log: Path) -> None:
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        assert server.poll() is None, log.read_text()
        try:
            _get(f"{address}/list-apps")
        except (URLError, ConnectionError):
            time.sleep(0.2)
        else:
            return
    pytest.fail(f"the server does not answer: {log.read_text()}")


def _report(cases: tuple[FluentCase, ...]) -> FluentEvalReport:
    use = ToolUse("look_up", {"order": "7"}, {"result": "sent"}, call_id="c1")
    turn = TurnOutcome(
        "where is 7?",
        "On its way. <b>&amp;</b> \u2028 é",
        [Step("desk", tool=use), Step("desk", "On its way. <b>&amp;</b> \u2028 é")],
        duration_s=0.5,
        invocation_id="i1",
    )
    score = MetricScore("tool_trajectory_avg_score", MetricStatus.PASSED, 1.0, 1.0, turns=[1.0])
    seen: dict[str, Any] = {"scores": [score], "turns": [turn], "state": {"intent": "order"}}
    outcomes = [
        CaseOutcome("found", 1, Status.PASSED, session_id="s1", user_id="u1", **seen),
        CaseOutcome("found", 2, Status.ERROR, error="ValueError: no model", session_id="s2"),
    ]
    return FluentEvalReport(outcomes, suite="orders v1", cases=cases)


def test_adk_web_shows_our_results(tmp_path: Path) -> None:
    agents = tmp_path / "agents"
    (agents / "desk").mkdir(parents=True)
    (agents / "desk" / "__init__.py").write_text("from . import agent\n")
    (agents / "desk" / "agent.py").write_text(AGENT)
    cases = (FluentCase("where is 7?", id="found", expected_trajectory=["look_up"]),)
    data = SuiteData("orders v1", cases, num_runs=2)
    write_eval_set(data, agents / "desk" / "orders_v1.evalset.json")
    (file,) = write_eval_set_result(_report(cases), agents, "desk")
    with _adk_web(agents) as address:
        found = _get(f"{address}{_APPS}/desk/eval-results")
        (name,) = found["evalResultIds"]
        assert file.name.startswith(name)
        result = _get(f"{address}{_APPS}/desk/eval-results/{quote(name)}")
        with pytest.raises(HTTPError):
            _get(f"{address}{_APPS}/desk/eval-results/{quote(name)}x")
        sets = _get(f"{address}{_APPS}/desk/eval-sets")
        case = _get(f"{address}{_APPS}/desk/eval-sets/orders_v1/eval-cases/found__run2")
    assert sets["evalSetIds"] == ["orders_v1"]
    assert case["conversation"][0]["userContent"]["parts"] == [{"text": "where is 7?"}]
    assert result["evalSetId"] == "orders_v1"
    passed, failed = result["evalCaseResults"]
    assert (passed["evalId"], passed["finalEvalStatus"]) == ("found", 1)
    assert (failed["evalId"], failed["finalEvalStatus"]) == ("found__run2", 2)
    (score,) = passed["overallEvalMetricResults"]
    assert (score["metricName"], score["score"]) == ("tool_trajectory_avg_score", 1.0)
    (turn,) = passed["evalMetricResultPerInvocation"]
    said = turn["actualInvocation"]["finalResponse"]["parts"][0]["text"]
    assert said == "On its way. <b>&amp;</b> \u2028 é"
    assert turn["expectedInvocation"]["intermediateData"]["toolUses"][0]["name"] == "look_up"
    assert [each["author"] for each in passed["sessionDetails"]["events"]] == [
        "user",
        "desk",
        "desk",
        "desk",
    ]
    (why,) = failed["overallEvalMetricResults"]
    assert why["details"]["rubricScores"][0]["rationale"] == "ValueError: no model"
