"""``adk-fluent record``, ``replay`` and ``diff`` as a person calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adk_fluent.cli import FINDINGS, OK, USAGE, main
from adk_fluent.debug import Recording, RecordingFileError
from adk_fluent.errors import UsageError

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
    assert (code, out) == (OK, "Good day.\n")
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
    assert '- "content": "Good day."' in out.replace("-  ", "- ").replace("-\t", "- ")
    assert call(capsys, "diff", "a.json", "a.json")[0] == OK


def test_a_changed_pipeline_is_a_finding(capsys: pytest.CaptureFixture[str]) -> None:
    call(capsys, "record", "desk.py:desk", "Hello", "-o", "a.json")
    write("rude.py", how="Be rude.")
    code, out, _ = call(capsys, "replay", "a.json", "rude.py:desk")
    assert code == FINDINGS
    assert "AgentNode 'desk' has changed" in out
    code, out, _ = call(capsys, "replay", "a.json", "rude.py:desk", "--on-mismatch", "live")
    assert code == FINDINGS
    assert "not asked for" in out


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    Path("x.json").write_text("[", "utf-8")
    code, _, err = call(capsys, "replay", "x.json", "desk.py:desk")
    assert code == USAGE
    assert "ADKF950" in err or "no recording" in err
    assert call(capsys, "record", "desk.py:desk", "Hello", "-o", "a", "--state", "[")[0] == USAGE


def test_a_test_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    recording = Recording([], {})
    with pytest.raises(UsageError, match="name="):
        recording.to_pytest(tmp_path / "t.py", "desk.py:desk", name="desk")
    with pytest.raises(UsageError, match="target="):
        recording.to_pytest(tmp_path / "t.py", "desk")
    with pytest.raises(UsageError, match="no content"):
        Recording([], {"capture_content": False}).to_pytest(tmp_path / "t.py", "desk.py:desk")
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(RecordingFileError):
        recording.to_pytest(tmp_path / "file" / "t.py", "desk.py:desk")
