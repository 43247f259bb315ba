"""``adk-fluent record``, ``replay``, ``show`` and ``diff`` as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adk_fluent.cli import FINDINGS, OK, USAGE, main
from adk_fluent.debug import RecordedRun, Recording, RecordingFileError
from adk_fluent.errors import TargetError, UsageError

pytestmark = pytest.mark.adk

DESK = """
from adk_fluent import Agent
from adk_fluent.testing import ScriptedModel

desk = Agent("desk", ScriptedModel(default={says!r})).instruct({how!r}).writes("said")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("desk.py")


def write(name: str, says: str = "Good day.", how: str = "Be kind.") -> None:
    Path(name).write_text(DESK.format(says=says, how=how), "utf-8")


def call(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    try:
        code: Any = main(args)
    except SystemExit as stopped:
        code = stopped.code
    out, err = capsys.readouterr()
    return code or 0, out, err


def test_a_run_is_recorded_replayed_and_compared(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "record", "desk.py:desk", "Hello", "-o", "a.json")
    assert (code, out) == (OK, "desk: Good day.\n")
    assert "1 model call," in err
    write("other.py", says="asked a model")
    code, out, _ = call(capsys, "replay", "a.json", "other.py:desk")
    assert (code, out) == (OK, "1 run replayed: no difference in 1 event\n")
    code, out, _ = call(capsys, "replay", "a.json", "other.py:desk", "--json")
    assert json.loads(out)["ok"] is True
    call(capsys, "record", "other.py:desk", "Hello", "-o", "b.json")
    code, out, _ = call(capsys, "diff", "a.json", "b.json")
    assert code == FINDINGS
    assert "differs at .content: 'Good day.' -> 'asked a model'" in out
    code, out, _ = call(capsys, "diff", "a.json", "b.json", "--unified")
    code, out, _ = call(capsys, "diff", "a.json", "b.json", "--json")
    assert code == FINDINGS
    assert json.loads(out)["lanes"].keys() == {"desk"}
    code, out, _ = call(capsys, "diff", "a.json", "b.json", "--unified")
    assert '- "content": "Good day."' in out.replace("-  ", "- ").replace("-\t", "- ")
    assert call(capsys, "diff", "a.json", "a.json")[0] == OK


def test_a_run_that_was_streamed_is_streamed_again(capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "record", "desk.py:desk", "Hello", "-o", "a.json", "--stream")
    assert Recording.load("a.json").events[0].is_partial
    assert call(capsys, "replay", "a.json", "desk.py:desk")[0] == OK


def test_nothing_runs_for_a_file_that_cannot_hold_it(capsys: pytest.CaptureFixture[str]) -> None:
    for where in ("desk.py", "."):
        code, out, err = call(capsys, "record", "desk.py:desk", "Hello", "-o", where)
        assert code != OK
        assert out == ""
        assert "not written over" in err or "this is a folder" in err


def test_questions_are_answered_as_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    gated = 'from adk_fluent import gate\nasks = desk >> gate(message="Send it?", name="send")\n'
    Path("asks.py").write_text(Path("desk.py").read_text("utf-8") + gated, "utf-8")
    code, _, err = call(capsys, "record", "asks.py:asks", "Hello", "-o", "a.json")
    assert code == FINDINGS
    assert "to answer at once --answer send=yes" in err
    given = ("--answer", "send=yes")
    code, out, _ = call(capsys, "record", "asks.py:asks", "Hello", "-o", "b.json", *given)
    assert (code, out) == (OK, "desk: Good day.\n")
    assert [run.status for run in Recording.load("b.json").runs] == ["waiting", "completed"]
    assert call(capsys, "replay", "b.json", "asks.py:asks")[0] == OK


def test_a_changed_pipeline_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "record", "desk.py:desk", "Hello", "-o", "a.json")
    write("rude.py", how="Be rude.")
    code, out, _ = call(capsys, "replay", "a.json", "rude.py:desk")
    assert code == FINDINGS
    assert out.startswith("error[ADKF952]: ")
    assert "AgentNode 'desk' has changed" in out
    code, out, _ = call(capsys, "replay", "a.json", "rude.py:desk", "--on-mismatch", "live")
    assert code == FINDINGS
    assert "not asked for" in out


def test_state_is_given_as_to_run(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--state", "n=3", "--state", "who=Ann"]
    assert call(capsys, "record", "desk.py:desk", "Hello", "-o", "a.json", *given)[0] == OK
    recording = Recording.load("a.json")
    assert recording.runs[0].state == {"n": 3, "who": "Ann"}
    assert recording.state_at(0) == {"n": 3, "who": "Ann", "said": "Good day."}


SHOP = """
from adk_fluent import Agent
from adk_fluent.testing import Call, ScriptedModel

def refund(order: str) -> str:
    raise ConnectionError("no \\x1b[31m bank")

model = ScriptedModel(default=Call("refund", {"order": "A" * 200}))
shop = (Agent("a").mock("one") | Agent("b").mock("two")) >> Agent("clerk", model).tool(refund)
"""


def test_what_is_recorded_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    Path("shop.py").write_text(SHOP, "utf-8")
    code, _, _ = call(capsys, "record", "shop.py:shop", "Refund it", "-o", "a.json")
    assert code != OK
    code, out, _ = call(capsys, "show", "a.json")
    assert code == OK
    lines = out.splitlines()
    assert lines[0] == "a.json: 1 run, 3 model calls, 1 tool call"
    assert "  user: 'Refund it'" in lines
    assert [each.split()[2:4] for each in lines if "says" in each] == [["a", "says"], ["b", "says"]]
    [tool] = [each for each in lines if "tool refund" in each]
    assert "A" * 71 in tool
    assert "A" * 73 not in tool
    assert tool.endswith("...): ConnectionError: no \\x1b[31m bank")
    assert lines[-1] == "  failed: ConnectionError: no \\x1b[31m bank"
    assert "A" * 200 in call(capsys, "show", "a.json", "--full")[1]


def test_no_control_character_of_a_file_reaches_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    evil = "\x1b[2J\u202e"
    data = {"tape": [{"t": 1, "model_call": 0, "agent": evil, "model": evil}], "status": evil}
    Recording([RecordedRun(data)], {"recorded_at": evil}).save("a.json")
    code, out, _ = call(capsys, "show", "a.json")
    assert (code, out.replace("\n", "").isprintable()) == (OK, True)
    assert "model \\x1b[2J\\u202e: cancelled" in out


def test_quotes_of_an_error_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    error = {"type": "builtins:KeyError", "message": "no 'a' in \"b\"\nhelp"}
    Recording([RecordedRun({"tape": [], "error": error})], {}).save("a.json")
    out = call(capsys, "show", "a.json")[1]
    assert out.endswith("failed: KeyError: no 'a' in \"b\"\\nhelp\n")


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.json").write_text("[", "utf-8")
    code, _, err = call(capsys, "replay", "x.json", "desk.py:desk")
    assert code == USAGE
    assert "ADKF950" in err or "no recording" in err
    assert call(capsys, "record", "desk.py:desk", "Hello", "-o", "a", "--state", "n")[0] == USAGE


def test_a_test_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    recording = Recording([], {})
    (tmp_path / "own.py").write_text("def test_mine(): ...", "utf-8")
    with pytest.raises(RecordingFileError, match="already"):
        recording.to_pytest(tmp_path / "own.py", "desk.py:desk")
    assert (tmp_path / "own.py").read_text("utf-8") == "def test_mine(): ..."
    with pytest.raises(TargetError, match="no target"):
        recording.to_pytest(tmp_path / "t.py", "desk:")
    with pytest.raises(TargetError, match=r"there is no file dask\.py"):
        recording.to_pytest(tmp_path / "t.py", "dask.py:desk")
    with pytest.raises(TargetError, match="did you mean 'desk'"):
        recording.to_pytest(tmp_path / "t.py", "desk.py:dsk")
    assert not (tmp_path / "t.py").exists()
    with pytest.raises(UsageError, match="no content"):
        Recording([], {"capture_content": False}).to_pytest(tmp_path / "t.py", "desk.py:desk")
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(RecordingFileError):
        recording.to_pytest(tmp_path / "file" / "t.py", "desk.py:desk")
