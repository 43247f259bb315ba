"""Recordings of ADK's own, in both directions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml
from recorded_desk import RAN, clerk

from adk_fluent import Agent, FanOut, Pipeline
from adk_fluent.debug import (
    Recorder,
    Recording,
    RecordingFileError,
    ReplayerBackend,
    replay_async,
)
from adk_fluent.errors import UsageError
from adk_fluent.testing import ScriptedModel

pytestmark = pytest.mark.adk


async def run_in_adk(pipeline: Any, plugin: Any, **state: Any) -> list[Any]:
    """Two runs in one session, with ADK's own runner and one of its plugins."""
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    app = pipeline.to_app()
    app.plugins.append(plugin)
    runner = InMemoryRunner(app=app)
    ids: dict[str, Any] = {"user_id": "u", "session_id": "s"}
    events: list[Any] = []
    await runner.session_service.create_session(app_name=runner.app_name, **ids)
    for index, text in enumerate(("Hello", "Refund A1")):
        delta = {key: {**value, "user_message_index": index} for key, value in state.items()}
        message = types.Content(role="user", parts=[types.Part(text=text)])
        run = runner.run_async(**ids, new_message=message, state_delta=delta)
        events += [event async for event in run]
    await runner.close()
    return events


def answers(events: list[Any]) -> list[str]:
    return [p.text for e in events if e.content for p in e.content.parts if p.text]


async def test_what_adk_has_recorded_is_replayed(tmp_path: Path) -> None:
    from google.adk.cli.plugins.recordings_plugin import RecordingsPlugin

    config = {"dir": str(tmp_path), "streaming_mode": "none"}
    RAN.clear()
    events = await run_in_adk(clerk(), RecordingsPlugin(), _adk_recordings_config=config)
    assert RAN == ["A1"]
    recording = Recording.from_adk_recordings(tmp_path / "generated-recordings.yaml")
    assert [len(run.interactions) for run in recording.runs] == [1, 3]
    [tool] = recording.tool_interactions
    assert (tool.tool_name, tool.args) == ("refund", {"order": "A1"})
    backend = ReplayerBackend(recording)
    pipeline = clerk()
    said = [
        (await pipeline.run(t, session_id="s", backend=backend)).text
        for t in ("Hello", "Refund A1")
    ]
    assert said == answers(events) == ["Good day.", "A1 is refunded."]
    assert (backend.unused, RAN) == ([], ["A1"])
    recording.save(tmp_path / "ours.json")
    assert len(Recording.load(tmp_path / "ours.json").llm_interactions) == 3


async def test_what_is_recorded_here_is_replayed_by_adk(tmp_path: Path) -> None:
    from google.adk.cli.plugins.replay_plugin import ReplayPlugin

    pipeline = clerk()
    with Recorder() as kept:
        for text in ("Hello", "Refund A1"):
            await pipeline.run(text, session_id="s")
    file = kept.recording.to_adk_recordings(tmp_path / "generated-recordings.yaml")
    assert file.name == "generated-recordings.yaml"
    text = file.read_text("utf-8")
    assert text.count("llm_recording:") == 3
    file.write_text(text.replace("status: done", "status: replayed"), "utf-8")
    config = {"dir": str(tmp_path), "streaming_mode": "none"}
    events = await run_in_adk(clerk(), ReplayPlugin(), _adk_replay_config=config)
    [response] = [each for event in events for each in event.get_function_responses()]
    assert response.response == {"status": "replayed", "order": "A1"}


async def test_there_and_back_nothing_is_lost(tmp_path: Path) -> None:
    with Recorder() as kept:
        await clerk().run("Refund A1")
    kept.recording.to_adk_recordings(tmp_path / "a.yaml")
    again = Recording.from_adk_recordings(tmp_path / "a.yaml")
    for before, after in zip(kept.recording.llm_interactions, again.llm_interactions, strict=True):
        assert (before.agent_name, before.request) == (after.agent_name, after.request)
        assert before.response_content == after.response_content
    [before], [after] = kept.recording.tool_interactions, again.tool_interactions
    assert (before.args, before.result) == (after.args, after.result)
    assert again.metadata == {"source": "google-adk"}


async def test_the_message_stands_in_the_first_request_that_has_one(tmp_path: Path) -> None:
    with Recorder() as kept:
        await clerk().run("Refund A1")
    path = kept.recording.to_adk_recordings(tmp_path / "generated-recordings.yaml")
    data = yaml.safe_load(path.read_text("utf-8"))
    data["recordings"][0]["llm_recording"]["llm_request"]["contents"] = []
    path.write_text(yaml.safe_dump(data), "utf-8")
    assert Recording.from_adk_recordings(path).runs[0].message is not None


async def test_branches_are_replayed_in_any_order(tmp_path: Path) -> None:
    def both() -> Pipeline | FanOut:
        return Agent("a", ScriptedModel(default="one")) | Agent("b", ScriptedModel(default="two"))

    with Recorder() as kept:
        await both().run("go")
    kept.recording.to_adk_recordings(tmp_path / "a.yaml")
    backend = ReplayerBackend(Recording.from_adk_recordings(tmp_path / "a.yaml"))
    async with asyncio.timeout(5):
        assert len(await both().run("go", backend=backend)) == 2
    assert backend.unused == []


async def test_calls_without_an_answer_have_no_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Recorder() as kept, pytest.raises(ConnectionError):
        await Agent("a", ScriptedModel(ConnectionError("down"))).run("x")
    kept.recording.to_adk_recordings(tmp_path / "a.yaml")
    assert "no room for 1 call without an answer" in caplog.text
    assert Recording.from_adk_recordings(tmp_path / "a.yaml").runs == []


def test_what_is_none_of_adks_is_refused(tmp_path: Path) -> None:
    wrong = "{user_message_index: 0, agent_name: 1, tool_recording: {tool_call: {name: t}, "
    wrong = f"recordings: [{wrong}tool_response: {{}}}}}}]"
    for text in (wrong, "[", "a: 1", "recordings: [{}]", "recordings: [{user_message_index: 0}]"):
        (tmp_path / "x.yaml").write_text(text, "utf-8")
        with pytest.raises(RecordingFileError, match=r"no recording of ADK's|invalid YAML"):
            Recording.from_adk_recordings(tmp_path / "x.yaml")
    with pytest.raises(RecordingFileError, match="cannot be read"):
        Recording.from_adk_recordings(tmp_path / "none.yaml")
    with pytest.raises(RecordingFileError, match="cannot be written"):
        Recording([], {}).to_adk_recordings(tmp_path / "x.yaml" / "y.yaml")


async def test_what_has_nothing_to_compare_or_to_write_is_refused(tmp_path: Path) -> None:
    with Recorder() as kept:
        await clerk().run("Hello")
    kept.recording.to_adk_recordings(tmp_path / "a.yaml")
    again = Recording.from_adk_recordings(tmp_path / "a.yaml")
    with pytest.raises(UsageError, match="holds no events"):
        await replay_async(clerk(), again)
    with pytest.raises(UsageError, match="holds no events"):
        again.to_pytest(tmp_path / "test_a.py", "desk.py:desk")
    with Recorder(capture_content=False) as kept:
        await clerk().run("Hello")
    with pytest.raises(UsageError, match="holds no content"):
        kept.recording.to_adk_recordings(tmp_path / "b.yaml")
    assert [*Path(tmp_path).iterdir()] == [tmp_path / "a.yaml"]  # noqa: ASYNC240
