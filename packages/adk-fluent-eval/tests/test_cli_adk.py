"""``adk-fluent eval`` as a person calls it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from adk_fluent.cli import main
from adk_fluent.eval import FluentEvalReport
from adk_fluent.eval._cli import Output

pytestmark = pytest.mark.adk

DESK = """
from adk_fluent import Agent
from adk_fluent.eval import FluentCase, FluentEvalSuite
from adk_fluent.testing import Call, ScriptedModel

print("imported")
desk = Agent("desk", ScriptedModel(default="good morning"))
suite = FluentEvalSuite("desk", desk, [
    FluentCase("hello", id="good", expected_response_contains="morning", tags=["a"]),
    FluentCase("hi", id="bad", expected_response_contains="night", tags=["b"]),
])
good = FluentEvalSuite("good", desk, suite.cases[:1])
def make():
    return good
def down(asked=None):
    raise ConnectionError("down")
away = Agent("away", ScriptedModel(default=down))
no_model = FluentEvalSuite("no_model", away, suite.cases[:1])
calls = Agent("calls", ScriptedModel(default=Call("down", {}))).tool(down)
no_tool = FluentEvalSuite("no_tool", calls, suite.cases[:1])
"""
GUARDED = """
from desk import desk
from google.adk.apps import App
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

class Guard(BasePlugin):
    async def before_model_callback(self, **_):
        return LlmResponse(content=types.Content(role="model", parts=[types.Part(text="no")]))

app = App(name="shop", root_agent=desk.to_agent(), plugins=[Guard(name="guard")])
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "desk.py").write_text(DESK, "utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)


def call(*args: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(["eval", *args])
    return int(caught.value.code or 0)


def test_run_prints_the_verdict_and_writes_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    forms = ("--json", "r.json", "--junit", "r.xml", "--markdown", "r.md", "--html", "r.html")
    assert call("run", "desk.py:suite", "--runs", "2", *forms) == 1
    out, err = capsys.readouterr()
    assert "desk: not passed, 50% of 4 runs passed" in out
    assert "answer contains of turn 1" in out
    assert "imported" in err
    assert "desk: 4 of 4 runs" in err
    assert len(FluentEvalReport.load("r.json").outcomes) == 4
    assert len(list(ET.parse("r.xml").iter("testcase"))) == 4
    assert Path("r.md").read_text("utf-8").startswith("# ❌ Evaluation: desk")
    assert "50% <small>of 4 runs passed" in Path("r.html").read_text("utf-8")


def test_a_terminal_shows_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_terminal(_: Any) -> bool:
        return True

    monkeypatch.setattr("adk_fluent.eval._cli.is_interactive", is_terminal)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    Path("desk.py").write_text(f"{DESK}\nsuite.name = 'desk [/b]'", "utf-8")
    assert call("run", "desk.py:suite") == 1
    _, err = capsys.readouterr()
    assert "desk [/b]" in err
    assert "2/2" in err
    assert "failed bad" in err


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("desk.py:good",), 0),
        (("desk.py:make",), 0),
        (("desk.py:suite", "--min-pass-rate", "0.5"), 0),
        (("desk.py:suite", "--tag", "a"), 0),
        (("desk.py:suite", "--case", "bad", "--fail-fast"), 1),
        (("desk.py:suite", "--min-pass-rate", "x"), 2),
        (("desk.py:suite", "--tag", "z"), 2),
        (("desk.py",), 2),
        (("desk.py:desk",), 2),
        (("desk.py:gut",), 2),
        (("nothing.py:x",), 2),
        (("nothing.yaml", "--pipeline", "desk.py:desk"), 2),
        (("desk.py:good", "--pipeline", "desk.py:desk"), 2),
        (("desk.py:suite", "--max-regressions", "1"), 2),
        (("desk.py:suite", "--baseline", "none.json"), 2),
        (("desk.py:good", "--json", "desk.py/x.json"), 3),
        (("desk.py:good", "--html", "desk.py"), 2),
        (("desk.py:no_model",), 3),
        (("desk.py:no_tool",), 1),  # the model answered
        (("desk.py:suite", "--shard", "1/2"), 0),
        (("desk.py:suite", "--shard", "3/3"), 2),
        (("desk.py:suite", "--cache-mode", "replay"), 2),
        (("desk.py:good", "--cache", "kept", "--cache-mode", "replay"), 1),
        (("desk.py:good", "--model", "no-such-model"), 2),
        (("desk.py:good", "--journal", "desk.py"), 2),
    ],
)
def test_exit_codes(args: tuple[str, ...], code: int) -> None:
    assert call("run", *args) == code


def test_a_module_with_one_suite_needs_no_name() -> None:
    Path("one.py").write_text(DESK.partition("good = ")[0], "utf-8")
    assert call("run", "one.py") == 1  # one of its cases fails


def test_a_run_in_a_thread_needs_no_signals() -> None:
    with ThreadPoolExecutor(1) as threads:
        assert threads.submit(call, "run", "desk.py:good").result() == 0


def test_documents_on_standard_output_are_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("run", "desk.py:good", "--json", "-", "-q") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["suite"] == "good"
    assert "good: passed" in err


def test_files_of_cases(capsys: pytest.CaptureFixture[str]) -> None:
    text = "cases:\n- {input: hello, id: x, expected_response_contains: morning}"
    Path("c.yaml").write_text(text, "utf-8")
    assert call("run", "c.yaml") == 2
    assert "suite 'c' has no pipeline" in capsys.readouterr().err
    assert call("run", "c.yaml", "--pipeline", "desk.py:desk") == 0
    assert call("list", "c.yaml") == 0
    Path("guarded.py").write_text(GUARDED, "utf-8")
    assert call("run", "c.yaml", "--pipeline", "guarded.py:app") == 1  # with the App's plugins
    capsys.readouterr()
    assert call("run", "c.yaml", "--pipeline", "desk.py:down") == 2
    assert "desk.py:down raised" in capsys.readouterr().err


def test_baselines(capsys: pytest.CaptureFixture[str]) -> None:
    base = ("--baseline", "b.json")
    assert call("run", "desk.py:suite", *base, "--update-baseline") == 1
    assert call("run", "desk.py:suite", *base, "--min-pass-rate", "0") == 0
    Path("desk.py").write_text(DESK.replace("good morning", "good night"), "utf-8")
    assert call("run", "desk.py:suite", *base, "--min-pass-rate", "0", "--json", "n.json") == 1
    out = capsys.readouterr().out
    assert "regressed: good" in out
    assert "improved: bad" in out
    assert (
        call("run", "desk.py:suite", *base, "--min-pass-rate", "0", "--max-regressions", "1") == 0
    )
    assert call("compare", "n.json", "b.json", "--json", "c.json", "--html", "c.html") == 1
    assert "1 regressed, 1 improved" in Path("c.html").read_text("utf-8")
    assert json.loads(Path("c.json").read_text("utf-8"))["regressed"][0]["id"] == "good"
    assert call("compare", "n.json", "b.json", "--max-regressions", "1") == 0
    report = FluentEvalReport.load("b.json")
    report.interrupted = True
    report.save("i.json")
    capsys.readouterr()
    assert call("compare", "i.json", "b.json") == 1
    assert "not ok\ni.json is of a run that was interrupted" in capsys.readouterr().out
    assert call("compare", "n.json", "none.json") == 2
    assert call("run", "desk.py:suite", "--baseline", "none.json") == 2
    assert "write one with --update-baseline" in capsys.readouterr().err


def test_the_summary_of_a_step_on_github(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    run = ("run", "desk.py:good", "--json", "r.json")
    assert call(*run) == 0  # where GitHub is not
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    file = Path("summary.md")
    assert call(*run) == 0
    assert call(*run) == 0
    assert file.read_text("utf-8").count("# ✅ Evaluation: good") == 2
    assert call("compare", "r.json", "r.json") == 0
    assert "# ✅ good compared with its baseline" in file.read_text("utf-8")
    file.write_text("x" * ((1 << 20) - 100), "utf-8")
    assert call(*run) == 0
    assert file.stat().st_size <= 1 << 20
    assert file.read_text("utf-8").endswith("Cut here: GitHub shows no more than 1 MiB.\n")
    full = file.read_bytes()
    assert call(*run) == 0
    assert file.read_bytes() == full
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "desk.py/summary.md")
    capsys.readouterr()
    assert call(*run) == 3
    assert "error: desk.py/summary.md cannot be written: Not a directory" in capsys.readouterr().err


def test_a_bug_in_making_a_document_is_no_file_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")

    def broken() -> str:
        raise ValueError("a bug")

    output = Output({"json": "r.json"})
    for write in (lambda: output.write("json", broken), lambda: output.summarize(broken)):
        with pytest.raises(ValueError, match="a bug"):
            write()


@pytest.mark.parametrize("shard", ["9/5", "0/3", "1/0", "x", "1", "1/"])
def test_a_shard_that_is_no_part_is_refused(capsys: pytest.CaptureFixture[str], shard: str) -> None:
    assert call("run", "desk.py:suite", "--shard", shard) == 2
    assert "is not a part; write 2/5 for the second of five." in capsys.readouterr().err


def test_shards_are_merged(capsys: pytest.CaptureFixture[str]) -> None:
    for n in ("1", "2"):
        call("run", "desk.py:suite", "--shard", f"{n}/2", "--json", f"{n}.json")
    assert call("merge", "1.json", "2.json", "--json", "all.json") == 1
    assert "desk: not passed, 50% of 2 runs passed" in capsys.readouterr().out
    assert [each.id for each in FluentEvalReport.load("all.json").outcomes] == ["good", "bad"]
    call("run", "desk.py:suite", "--shard", "1/1", "--json", "whole.json")
    for incomplete in (("1.json",), ("1.json", "1.json"), ("1.json", "whole.json")):
        capsys.readouterr()
        assert call("merge", *incomplete) == 2
        said = capsys.readouterr().err
        assert said.startswith(
            "error[ADKF700]: merge() takes the reports of all shards\n  found: 1/"
        )
        assert "help: merge the reports of 1/n to n/n, each once" in said
    assert call("merge", "whole.json") == 1


def test_a_baseline_of_one_shard_is_no_baseline_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    call("run", "desk.py:suite", "--shard", "1/2", "--json", "1.json")
    call("run", "desk.py:suite", "--baseline", "1.json", "--json", "now.json")
    assert "the baseline is of shard 1 of 2 alone" in capsys.readouterr().out
    assert call("compare", "now.json", "1.json") == 0
    assert "the baseline is of shard 1 of 2 alone" in capsys.readouterr().err


def test_answers_are_recorded_and_replayed_and_runs_resumed() -> None:
    kept = ("--cache", "kept", "--case", "good")
    assert call("run", "desk.py:suite", *kept) == 0
    Path("desk.py").write_text(DESK.replace('"good morning"', "lambda _: 1 / 0"), "utf-8")
    assert call("run", "desk.py:suite", "--case", "good") == 1
    assert call("run", "desk.py:suite", *kept, "--cache-mode", "replay") == 0
    Path("desk.py").write_text(DESK, "utf-8")
    assert call("run", "desk.py:good", "--journal", "j.jsonl") == 0
    assert len(Path("j.jsonl").read_text("utf-8").splitlines()) == 2
    assert call("run", "desk.py:good", "--journal", "j.jsonl") == 0
    assert len(Path("j.jsonl").read_text("utf-8").splitlines()) == 2


def test_results_for_adk_web() -> None:
    Path("agent").mkdir()
    assert call("run", "desk.py:good", "--adk-results", "agent") == 0
    assert list(Path("agent/.adk/eval_history").glob("*.evalset_result.json"))
    assert call("run", "desk.py:good", "--adk-results", "nowhere") == 3


def test_the_example_passes() -> None:
    example = Path(__file__).parents[1] / "examples" / "support_desk.py"
    assert call("run", f"{example}:suite") == 0
    suite = f"{example.parent / 'demo_desk' / 'suite.py'}:no_apology"
    assert call("run", suite, "--case", "review-rude", "--case", "review-polite") == 1


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("list", "desk.py:suite") == 0
    out = capsys.readouterr().out
    assert "good [a]: hello  -> adk_fluent_response" in out
    assert "bad [b]: hi  -> adk_fluent_response" in out


def test_no_key_is_told_before_any_model_call(capsys: pytest.CaptureFixture[str]) -> None:
    Path("desk.py").write_text(
        DESK.replace('ScriptedModel(default="good morning")', '"gemini-2.5-flash"'), "utf-8"
    )
    assert call("run", "desk.py:suite") == 3
    assert "GOOGLE_API_KEY" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGINT for one process")
@pytest.mark.parametrize(
    ("wait", "numbers"),
    [
        pytest.param("await asyncio.sleep(60)", [signal.SIGINT], marks=pytest.mark.full),
        pytest.param("await asyncio.sleep(60)", [signal.SIGTERM], marks=pytest.mark.full),
        ("time.sleep(60)", [signal.SIGINT, signal.SIGTERM]),  # blocks the event loop
    ],
)
def test_a_signal_keeps_what_is_done(wait: str, numbers: list[int]) -> None:
    Path("slow.py").write_text(
        DESK
        + f"""
import asyncio, sys, time
async def slow(asked):
    if "wait" in asked.prompt:
        print("waiting", file=sys.stderr, flush=True)
        {wait}
    return "good morning"
lazy = Agent("lazy", ScriptedModel(default=slow))
suite = FluentEvalSuite("slow", lazy, [
    FluentCase("hello", id="good", expected_response_contains="morning"),
    FluentCase("wait", id="late", expected_response_contains="morning"),
])
del good
""",
        "utf-8",
    )
    command = [sys.executable, "-m", "adk_fluent.cli", "eval", "run", "slow.py:suite"]
    process = subprocess.Popen(
        [*command, "--json", "r.json", "--parallelism", "1"],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "waiting" in line:
            break
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.2)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "interrupted" in out + err
    report = FluentEvalReport.load("r.json")
    assert ([each.id for each in report.outcomes], report.interrupted) == (["good"], True)
