"""The spans of recorded runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace

from adk_fluent import Agent
from adk_fluent.debug import Recorder, Recording, replay
from adk_fluent.errors import UsageError
from adk_fluent.testing import Call, ScriptedModel, rule

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.adk
CANARY = "canary-4711-x"


def refund(order: str, password: str) -> str:
    """Pay an order back."""
    trace.get_tracer("mine").start_span("pay", attributes={"why": f"because {password}"}).end()
    return f"{order} is refunded"


def desk() -> Any:
    model = ScriptedModel(
        rules=[
            rule("[result refund", reply="A1 is refunded."),
            rule("A1", reply=Call("refund", {"order": "A1", "password": CANARY})),
        ],
    )
    return Agent("clerk", model).tool(refund) >> Agent("letter", ScriptedModel(default="Dear Ann"))


def names(recording: Recording, run: int = 0) -> set[str]:
    return {each["name"].partition(" ")[0] for each in recording.runs[run].spans}


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_spans_are_kept_beside_the_tape_without_credentials(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"run.{suffix}"
    with Recorder(spans=True, stream=file if suffix == "jsonl" else None) as recorder:
        desk().ask("Refund A1")
        with trace.get_tracer("mine").start_as_current_span("outside"):
            desk().ask("Refund A1")
    if suffix == "json":
        recorder.save(file)
    assert CANARY not in file.read_text()
    recording = Recording.load(file)
    for number in (0, 1):
        found = names(recording, number)
        assert {"invoke_agent", "execute_tool", "pay"} <= found
        assert "outside" not in found
        spans = recording.runs[number].spans
        starts = [each["start"] for each in spans]
        assert starts == sorted(starts)
        assert all(each["end"] >= each["start"] for each in spans)
        [pay] = [each for each in spans if each["name"] == "pay"]
        assert pay["attributes"] == {"why": "because [redacted]"}
        above = {each["span_id"]: each for each in spans}[pay["parent_id"]]
        assert above["name"] == "execute_tool refund"
    assert replay(desk(), recording).ok


def test_each_recorder_has_the_spans_of_its_runs() -> None:
    with Recorder(spans=True) as outer, Recorder() as plain:
        desk().ask("Refund A1")
        with Recorder(spans=True) as inner:
            desk().ask("Refund A1")
    ids = [{each["span_id"] for each in run.spans} for run in outer.recording.runs]
    assert not ids[0] & ids[1]
    assert {each["span_id"] for each in inner.recording.runs[0].spans} == ids[1]
    assert [run.spans for run in plain.recording.runs] == [[], []]


def test_without_content_a_span_has_its_name_and_times() -> None:
    with Recorder(capture_content=False, spans=True) as recorder:
        desk().ask("Refund A1")
    spans = recorder.recording.runs[0].spans
    assert len(spans) > 5
    known = {"name", "span_id", "parent_id", "trace_id", "start", "end", "status"}
    assert {frozenset({*each} - {"agent"}) for each in spans} == {frozenset(known)}


def test_spans_is_a_yes_or_no() -> None:
    wrong: Any = "all"
    with pytest.raises(UsageError, match="spans= takes True or False"):
        Recorder(spans=wrong)


def test_spans_are_shown(tmp_path: Path) -> None:
    from adk_fluent.debug._show import text_of

    with Recorder(spans=True) as recorder:
        desk().ask("Refund A1")
    recording = recorder.recording
    lines = [each.partition("ms")[2].split() for each in text_of(recording).splitlines()]
    assert [each[:4] for each in lines if "execute_tool" in each] == [
        ["clerk", "span", "execute_tool", "refund:"]
    ]
    page = recording.to_html(tmp_path / "run.html").read_text()
    data = json.dumps("execute_tool refund")[1:-1]
    assert '"kind":"span"' in page.replace('": ', '":')
    assert data in page
