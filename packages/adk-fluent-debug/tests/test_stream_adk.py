"""Recordings that are written while their runs go on."""

from __future__ import annotations

import json
import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from recorded_desk import CANARY, clerk, desk, full_disk

from adk_fluent import Agent
from adk_fluent.cli import load, main
from adk_fluent.debug import (
    Recorder,
    Recording,
    RecordingFileError,
    ReplayerBackend,
    ReplayMismatchError,
    replay_async,
)
from adk_fluent.errors import UsageError
from adk_fluent.testing import Call, ScriptedModel

pytestmark = pytest.mark.adk

KILLED = """
import os, signal
from adk_fluent import Agent
from adk_fluent.debug import Recorder
from adk_fluent.testing import Call, ScriptedModel

def stop(order: str) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    return order

model = ScriptedModel(Call("stop", {"order": "A1"}), "Done.")
pipeline = Agent("first").mock("Hello.") >> Agent("clerk", model).tool(stop)

def main() -> None:
    with Recorder(stream="run.jsonl"):
        pipeline.ask("Stop A1")
"""


async def test_a_stream_is_what_is_saved(tmp_path: Path) -> None:
    with Recorder(stream=tmp_path / "deep" / "run.jsonl") as kept:
        await desk().run("Refund A1", state={"vip": True})
        with pytest.raises(ConnectionError):
            await Agent("a", ScriptedModel(ConnectionError("down"))).run("x")
    recording = Recording.load(tmp_path / "deep" / "run.jsonl")
    assert [run.data for run in recording.runs] == [run.data for run in kept.recording.runs]
    assert [run.status for run in recording.runs] == ["completed", "failed"]
    assert not recording.edited
    recording.runs.pop()
    assert (await replay_async(desk(), recording)).ok


@pytest.fixture
def killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("killed.py").write_text(KILLED, "utf-8")
    code = "import sys; sys.path.insert(0, '.'); import killed; killed.main()"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.usefixtures("killed")
async def test_a_killed_run_leaves_what_happened(capsys: pytest.CaptureFixture[str]) -> None:
    recording = Recording.load("run.jsonl")
    [run] = recording.runs
    assert (run.status, [each.content for each in run.events if each.content]) == ("", ["Hello."])
    [tool] = recording.tool_interactions
    assert (tool.args, tool.cancelled) == ({"order": "A1"}, True)
    with pytest.raises(SystemExit):
        main(["show", "run.jsonl"])
    out = capsys.readouterr().out
    assert "run 0: cut off" in out
    assert "tool stop(order='A1'): cancelled" in out

    def stop(order: str) -> str:
        return f"{order} stopped"

    model = ScriptedModel(default="Stopped after all.")
    again = Agent("first", ScriptedModel()) >> Agent("clerk", model).tool(stop)
    with pytest.raises(ReplayMismatchError, match="was at work where the recording ends"):
        await load("killed.py:pipeline").run("Stop A1", backend=ReplayerBackend(recording))
    lively = ReplayerBackend(recording, on_mismatch="live")
    assert (await again.run("Stop A1", backend=lively)).text == "Stopped after all."


async def test_a_line_that_was_cut_off_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Recorder(stream=tmp_path / "run.jsonl"):
        await clerk().run("Refund A1")
    text = (tmp_path / "run.jsonl").read_text("utf-8")
    whole = Recording.from_json(text)
    lines = text.splitlines()
    cut = Recording.from_json("\n".join(lines[:6])[:-3])
    assert cut.runs[0].tape == whole.runs[0].tape[:3]
    assert "cut off in its last line" in caplog.text
    for at, wrong in ((2, "{}"), (3, '{"run": 7, "entry": {}}'), (3, '{"run": -1}'), (2, "[")):
        broken = [*lines[:at], wrong, *lines[at:], ""]
        with pytest.raises(RecordingFileError, match=r"^this is no line of a recording"):
            Recording.from_json("\n".join(broken))


async def test_a_stream_may_be_cut_off_anywhere(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with Recorder(stream=file):
        await Agent("a", ScriptedModel(default="Grüße 😀")).run("Hé")
    whole, text = Recording.load(file).runs[0].tape, file.read_bytes()
    head, face = text.index(b"\n") + 1, text.index("😀".encode())
    for end in (*range(face, face + 6), *range(head, len(text), 97)):
        file.write_bytes(text[:end])
        for run in Recording.load(file).runs:
            assert run.tape == whole[: len(run.tape)]
    file.write_bytes(b"\xef\xbb\xbf" + text)  # as some editors save it
    assert Recording.load(file).runs[0].tape == whole


async def test_no_secret_stays_in_a_stream(tmp_path: Path) -> None:
    def login(user: str, password: str) -> str:
        """Log in."""
        return f"{user} is in"

    model = ScriptedModel(Call("login", {"user": "ann", "password": CANARY}), "in")
    with Recorder(stream=tmp_path / "run.jsonl"):
        await Agent("a", model).tool(login).run(f"My word is {CANARY}.")
    text = (tmp_path / "run.jsonl").read_text("utf-8")
    assert CANARY not in text
    assert "My word is [redacted]." in text
    assert "ann is in" in text
    assert [*Path(tmp_path).iterdir()] == [tmp_path / "run.jsonl"]  # noqa: ASYNC240


@pytest.mark.parametrize("secret", ['p\xe4"ss-word', "pass\\nword's", "two\nlines of it"])
async def test_a_secret_is_taken_out_of_earlier_lines_however_it_is_quoted(
    tmp_path: Path, secret: str
) -> None:
    def login(password: str) -> str:
        """Log in."""
        return "in"

    said = f"{secret} {json.dumps(secret)} {json.dumps(secret, ensure_ascii=False)} {secret!r}"
    for each in said, json.dumps(secret):
        model = ScriptedModel(Call("login", {"password": secret}), "in")
        with Recorder(stream=tmp_path / "run.jsonl", overwrite=True):
            await Agent("a", model).tool(login).run(each)
        [run] = Recording.load(tmp_path / "run.jsonl").runs
        text = (tmp_path / "run.jsonl").read_text("utf-8")
        assert "[redacted]" in (run.message or {})["parts"][0]["text"]
        for part in ("ss-word", "word's", "lines of it"):
            assert part not in text


async def test_a_stream_is_not_saved_over(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    with Recorder(stream=file) as kept:
        await clerk().run("Hello")
        with pytest.raises(UsageError, match="which is the stream"):
            kept.save(file)
        await clerk().run("Refund A1")
    assert len(Recording.load(file).runs) == 2
    number: Any = 1
    with pytest.raises(UsageError, match="stream= takes the path of a file"):
        Recorder(stream=number)


async def test_a_stream_keeps_an_earlier_recording(tmp_path: Path) -> None:
    file, model = tmp_path / "run.jsonl", ScriptedModel(default="Hi.")
    with Recorder(stream=file):
        await clerk().run("the run that failed")
    with pytest.raises(RecordingFileError, match="overwrite=True"), Recorder(stream=file):
        await Agent("a", model).run("after the restart")
    assert not model.calls
    assert "the run that failed" in file.read_text("utf-8")
    with Recorder(stream=file, overwrite=True):
        await Agent("a", model).run("after the restart")
    assert len(Recording.load(file).runs) == 1
    assert "the run that failed" not in file.read_text("utf-8")


async def test_without_content_a_stream_has_none(tmp_path: Path) -> None:
    with Recorder(capture_content=False, stream=tmp_path / "run.jsonl"):
        await clerk().run("Refund A1")
    assert "A1" not in (tmp_path / "run.jsonl").read_text("utf-8")
    assert len(Recording.load(tmp_path / "run.jsonl").llm_interactions) == 2


async def test_a_stream_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    with pytest.raises(RecordingFileError, match="cannot be written"):
        await clerk().run("Hello", middleware=[Recorder(stream=tmp_path / "file" / "run.jsonl")])
    for place in (tmp_path, "/dev/full"):
        with pytest.raises(RecordingFileError, match="cannot be written"):
            await clerk().run("Hello", middleware=[Recorder(stream=place)])


async def test_a_disk_that_fills_up_ends_the_stream_and_not_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR, "adk_fluent")
    with full_disk(1_500), Recorder(stream=tmp_path / "run.jsonl") as kept:
        assert (await clerk().run("Refund A1")).text == "A1 is refunded."
    assert "ends here: File too large" in caplog.text
    assert len(kept.recording.llm_interactions) == 2
    run = Recording.load(tmp_path / "run.jsonl").runs[0]
    assert (run.status, len(run.interactions)) == ("", 1)


@pytest.mark.parametrize(("secret", "runs"), [(CANARY, 1), ("pw12", 0)])
async def test_no_secret_stays_in_a_stream_when_the_disk_is_full(
    tmp_path: Path, secret: str, runs: int
) -> None:
    def login(password: str) -> str:
        """Log in."""
        return "in"

    file = tmp_path / "run.jsonl"
    model = ScriptedModel(Call("login", {"password": secret}), "in")
    with full_disk(3_000), Recorder(stream=file):
        await Agent("a", model).tool(login).run(f"{secret} " * (1_500 // len(secret)))
    assert secret not in file.read_text("utf-8")
    assert len(Recording.load(file).runs) == runs  # there is no room for what is longer than it


def test_record_streams_to_jsonl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("desk.py").write_text(
        "from adk_fluent import Agent\ndesk = Agent('desk').mock('Good day.')\n", "utf-8"
    )
    with pytest.raises(SystemExit):
        main(["record", "desk.py:desk", "Hello", "-o", "run.jsonl"])
    lines = Path("run.jsonl").read_text("utf-8").splitlines()
    assert [*json.loads(lines[0])][:3] == ["format", "version", "lines"]
    assert Recording.load("run.jsonl").runs[0].status == "completed"
