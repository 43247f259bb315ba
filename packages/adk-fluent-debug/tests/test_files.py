"""Files of recordings: written whole, and read with suspicion."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from recorded_desk import full_disk

from adk_fluent.debug import RecordedRun, Recording, RecordingFileError
from adk_fluent.errors import UsageError
from adk_fluent.protocol import AgentEvent

if TYPE_CHECKING:
    from pathlib import Path


def made() -> Recording:
    tape: list[dict[str, Any]] = [
        {"t": 1.0, "model_call": 0, "agent": "a", "model": "m", "request": {"contents": []}},
        {"t": 3.5, "reply_of": 0, "responses": [{"content": {"parts": [{"text": "hi"}]}}]},
        {"t": 4.0, "event": AgentEvent("a", "hi", state_delta={"k": 2}).to_dict()},
        {"t": 5.0, "event": AgentEvent("a", "ho", state_delta={"k": None, "j": 1}).to_dict()},
    ]
    run = {"message": {"parts": [{"text": "go"}]}, "state": {"k": 1}, "tape": tape}
    return Recording([RecordedRun(run)], {"capture_content": True})


def test_importing_it_imports_nothing_slow() -> None:
    program = (
        "import sys; from adk_fluent.debug import Recorder, Recording, ReplayerBackend;"
        "slow = ('google.', 'asyncio.', 'adk_fluent.contracts.'); "
        "sys.exit(any(name.startswith(slow) for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_each_public_name_is_there() -> None:
    debug: Any = import_module("adk_fluent.debug")
    assert all(getattr(debug, name).__name__ for name in debug.__all__)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    recording, file = made(), tmp_path / "deep" / "down" / "run.json"
    recording.save(file)
    again = Recording.load(file)
    assert again.to_json() == recording.to_json()
    assert again.path == file
    assert not again.edited
    assert [each.name for each in file.parent.iterdir()] == ["run.json"]


def test_calls_events_and_state_are_told() -> None:
    recording = made()
    [call] = recording.get_llm_interactions()
    assert (call.agent_name, call.model, call.latency_ms) == ("a", "m", 2.5)
    assert call.response_content == [{"parts": [{"text": "hi"}]}]
    assert recording.get_tool_interactions() == []
    assert [event.content for event in recording.events] == ["hi", "ho"]
    assert recording.state_at(0) == {"k": 2}
    assert recording.state_at(-1) == {"j": 1}
    with pytest.raises(UsageError, match="no event 2") as caught:
        recording.state_at(2)
    assert caught.value.found == "it has 2 events"
    odd: Any = "1"
    with pytest.raises(UsageError, match="no event '1'"):
        recording.state_at(odd)


def test_state_that_was_not_captured_is_an_error() -> None:
    recording = made()
    recording.runs[0].state = None
    with pytest.raises(UsageError, match="no state"):
        recording.state_at(0)


def test_only_a_recording_is_saved_over(tmp_path: Path) -> None:
    file = tmp_path / "important.txt"
    file.write_text("keep me", "utf-8")
    with pytest.raises(RecordingFileError, match="no recording"):
        made().save(file)
    assert file.read_text("utf-8") == "keep me"
    file.write_text("", "utf-8")
    made().save(file)
    made().save(file)
    assert Recording.load(file).path == file


def test_an_edited_file_is_read_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "run.json"
    made().save(file)
    file.write_text(file.read_text("utf-8").replace('"hi"', '"hello"'), "utf-8")
    assert Recording.load(file).edited
    assert "was edited" in caplog.text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "invalid JSON"),
        ('{"format": "adk-fluent-reco', "invalid JSON"),
        ("[" * 100_000, "invalid JSON"),
        ('{"format": NaN}', "NaN is not JSON"),
        ("[1]", "no recording"),
        ('{"a": 1}', "no recording"),
        ('{"format": "adk-fluent-recording", "version": 2}', "version 2"),
        ('{"format": "adk-fluent-recording", "version": "x"}', "version 'x'"),
        ('{"format": "adk-fluent-recording", "version": 1}', "'metadata'"),
    ],
)
def test_what_is_no_recording_is_refused(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text, "utf-8")
    with pytest.raises(RecordingFileError, match=says) as caught:
        Recording.load(file)
    assert caught.value.path == str(file)


def test_a_truncated_file_says_so(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(made().to_json()[:300], "utf-8")
    with pytest.raises(RecordingFileError) as caught:
        Recording.load(file)
    assert "invalid JSON" in str(caught.value)
    assert caught.value.line == made().to_json()[:300].count("\n") + 1


@pytest.mark.parametrize(
    ("entry", "field"),
    [
        ({"t": 1}, "runs[0].tape[1]"),
        ({"model_call": "0", "agent": "a"}, "runs[0].tape[1].model_call"),
        ({"model_call": 0}, "runs[0].tape[1].agent"),
        ({"event": {"content": "hi"}}, "runs[0].tape[1].event.author"),
        ({"event": {"author": "a", "nonsense": 1}}, "runs[0].tape[1].event"),
        ({"event": {"author": "a", "state_delta": None}}, "runs[0].tape[1].event.state_delta"),
        ({"t": 1e300, "reply_of": 0}, "runs[0].tape[1].t"),
        ({"reply_of": 0, "responses": "hi"}, "runs[0].tape[1].responses"),
        (3, "runs[0].tape[1]"),
    ],
)
def test_a_wrong_entry_is_named(entry: Any, field: str) -> None:
    data = json.loads(made().to_json())
    data["runs"][0]["tape"].insert(1, entry)
    with pytest.raises(RecordingFileError) as caught:
        Recording.from_json(json.dumps(data))
    assert caught.value.field == field


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="cannot be read"):
        Recording.load(tmp_path / "none.json")


@pytest.mark.parametrize("name", ["run.json", "run.html", "run.yaml"])
def test_a_disk_that_fills_up_leaves_what_was_there(name: str, tmp_path: Path) -> None:
    recording = made()
    writes: dict[str, Any] = {
        "run.json": recording.save,
        "run.html": recording.to_html,
        "run.yaml": recording.to_adk_recordings,
    }
    file = tmp_path / name
    writes[name](file)
    before = file.read_text("utf-8")
    with full_disk(100), pytest.raises(RecordingFileError, match="File too large"):
        writes[name](file)
    assert file.read_text("utf-8") == before
    assert [each.name for each in tmp_path.iterdir()] == [name]
