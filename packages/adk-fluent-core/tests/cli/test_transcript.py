"""A run as a person follows it: every text once, in lines that belong to one agent each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.cli._transcript import Transcript
from adk_fluent.protocol import AgentEvent, ErrorInfo, ToolCallInfo

if TYPE_CHECKING:
    import pytest


def part(author: str, text: str, **fields: Any) -> AgentEvent:
    return AgentEvent(author, text, is_partial=True, path=author, **fields)


def whole(author: str, text: str | None, **fields: Any) -> AgentEvent:
    return AgentEvent(author, text, path=author, **fields)


def shown(capsys: pytest.CaptureFixture[str], *events: AgentEvent) -> tuple[str, str]:
    transcript = Transcript()
    for event in events:
        transcript.show(event)
    transcript.end()
    out, err = capsys.readouterr()
    return out, err


def test_whole_texts_take_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown(capsys, whole("a", "one"), whole("b", None), whole("a", "two"))
    assert out == "a: one\na: two\n"


def test_streamed_text_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = shown(capsys, part("a", "on"), part("a", "e"), whole("a", "one"), whole("b", "two"))
    assert out == "a: one\nb: two\n"


def test_streamed_text_is_shown_when_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    transcript = Transcript()
    for piece, so_far in (("on", "a: on"), ("e", "e")):
        transcript.show(part("a", piece))
        assert capsys.readouterr().out == so_far


def test_who_streams_at_the_same_time_is_heard_afterwards(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out, _ = shown(
        capsys,
        part("a", "on"),
        part("b", "tw"),
        part("c", "thr"),
        part("a", "e"),
        part("b", "o"),
        whole("b", "two"),
        whole("a", "one"),
        part("c", "ee"),
        whole("c", "three"),
    )
    assert out == "a: one\nb: two\nc: three\n"


def test_what_happens_in_between_breaks_the_line_and_loses_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = whole("b", None, tool_calls=[ToolCallInfo("look_up", {"order": 17, "why": "x\ny"})])
    out, err = shown(capsys, part("a", "on"), call, part("a", "e"), whole("a", "one"))
    assert out == "a: on\na: e\n"
    assert err == '[b calls look_up(order=17, why="x\\ny")]\n'


def test_text_that_never_got_whole_is_shown_too(capsys: pytest.CaptureFixture[str]) -> None:
    out, err = shown(
        capsys,
        part("a", "lost", attempt="1"),
        part("b", "tw", attempt="2"),
        AgentEvent("root", node="fallback", discarded=("1",)),
        part("a", "kept", attempt="3"),
        whole("a", "kept", attempt="3"),
    )
    assert out == "a: lost\nb: tw\na: kept\n"
    assert err == "[fallback: an attempt failed and was undone]\n"


def test_errors_that_agents_report_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = shown(capsys, whole("a", None, error=ErrorInfo("SAFETY", "blocked\x1b[2J")))
    assert err == "[a reports SAFETY: blocked[2J]\n"


def test_long_arguments_are_cut(capsys: pytest.CaptureFixture[str]) -> None:
    _, err = shown(capsys, whole("a", None, tool_calls=[ToolCallInfo("t", {"x": "y" * 999})]))
    assert err.startswith('[a calls t(x="yyy')
    assert err.endswith("…)]\n")
    assert len(err) < 90


def test_what_an_event_says_to_the_user_is_shown_beside_the_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    notice = {"adk_fluent_notice": "You have used 62% of the model's context.\x1b[2J"}
    out, err = shown(
        capsys,
        part("a", "on", custom_metadata=notice),
        part("a", "e", custom_metadata=notice),
        whole("a", "one", custom_metadata=notice),
        whole("b", "two", custom_metadata={"other": 1}),
    )
    assert out == "a: one\nb: two\n"
    assert err == "[a: You have used 62% of the model's context.[2J]\n"
