"""The journal of a run: nothing of it is lost, and nothing else is."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_fluent.eval import (
    CaseOutcome,
    EvalFileError,
    FluentCase,
    FluentJudge,
    MetricScore,
    MetricStatus,
    Status,
    Step,
    Tokens,
    ToolCall,
    ToolUse,
    Turn,
    TurnOutcome,
    UserSimulation,
)
from adk_fluent.eval._journal._identity import digest_of, what_counts
from adk_fluent.eval._journal._journal import Journal
from adk_fluent.eval._running._names import journal_of
from adk_fluent.eval._running._settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

CASES = [FluentCase("Hi", id="a"), FluentCase("Ho", id="b")]
RICH = CaseOutcome(
    "b",
    2,
    Status.FAILED,
    ["a reason", "zwei Gründe \u2028"],
    input="Ho",
    tags=["t"],
    metadata={"k": [1, None, {"x": 1.5}]},
    scores=[MetricScore("m", MetricStatus.FAILED, 0.25, 0.5, turns=[None, 0.25], unit="s")],
    turns=[
        TurnOutcome(
            "Ho", "Hey", [Step("a", "Hey"), Step("a", tool=ToolUse("t", {"x": 1}, {"y": 2}))]
        )
    ],
    state={"k": "v"},
    tokens=Tokens(1, 2, 3, 4),
    cost_usd=0.125,
    duration_s=1.5,
    attempts=2,
)
PASSED = CaseOutcome("a", 1, Status.PASSED)


def journal(path: Path, *, suite: str = "s", cases: Any = None, **settings: Any) -> Journal:
    """A journal of a suite."""
    return Journal(path, suite, settings, CASES if cases is None else cases)


def written(path: Path, *outcomes: CaseOutcome, **options: Any) -> Path:
    """A journal in which some outcomes were noted."""
    with journal(path, **options) as made:
        for each in outcomes:
            made.add(each)
    return path


def read(path: Path, **options: Any) -> dict[tuple[str, int], CaseOutcome]:
    """What is done according to a journal."""
    with journal(path, **options) as made:
        return dict(made.done)


def test_what_is_noted_is_read_again(tmp_path: Path) -> None:
    path = written(tmp_path / "deep" / "er" / "j.jsonl", PASSED, RICH)
    assert read(path) == {("a", 1): PASSED, ("b", 2): RICH}
    written(path, replace(PASSED, run=3))
    assert list(read(path)) == [("a", 1), ("b", 2), ("a", 3)]
    lines = path.read_bytes().splitlines()
    assert len(lines) == 4
    assert json.loads(lines[0])["adk_fluent"] == {"kind": "eval-journal", "schema": 1}


def test_the_last_line_of_a_run_counts(tmp_path: Path) -> None:
    worse = replace(PASSED, status=Status.FAILED, reasons=["no"])
    assert read(written(tmp_path / "j", PASSED, worse)) == {("a", 1): worse}


def test_errors_are_run_again(tmp_path: Path) -> None:
    error = replace(PASSED, status=Status.ERROR, error="x")
    assert read(written(tmp_path / "j", error, RICH)) == {("b", 2): RICH}
    assert read(written(tmp_path / "j", PASSED)) == {("b", 2): RICH, ("a", 1): PASSED}
    assert read(written(tmp_path / "j", error)) == {("b", 2): RICH}


def test_what_broke_is_run_again_whatever_its_status(tmp_path: Path) -> None:
    broken = replace(PASSED, status=Status.XFAILED, error="x")
    assert read(written(tmp_path / "j", broken, RICH)) == {("b", 2): RICH}


@pytest.mark.parametrize("status", [Status.SKIPPED, Status.XFAILED, Status.FAILED])
def test_everything_else_is_done(tmp_path: Path, status: Status) -> None:
    assert read(written(tmp_path / "j", replace(PASSED, status=status)))


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_a_line_that_was_cut_off_is_run_again(tmp_path_factory: Any, data: Any) -> None:
    path = written(tmp_path_factory.mktemp("j") / "j", PASSED, RICH)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    lines = sum(each in whole.splitlines() for each in whole[:cut].splitlines())
    assert list(read(path)) == [("a", 1), ("b", 2)][: max(0, lines - 1)]
    assert read(written(path, PASSED, RICH)) == {("a", 1): PASSED, ("b", 2): RICH}
    assert [json.loads(line) for line in path.read_bytes().splitlines()]


def test_a_last_line_without_its_end_is_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "j", PASSED)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])  # as some editors leave it
    assert read(path) == {("a", 1): PASSED}
    assert path.read_bytes() == whole
    path.write_bytes(whole.splitlines()[0])
    assert read(path) == {}
    assert read(written(path, RICH)) == {("b", 2): RICH}


def test_a_line_that_was_emptied_is_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path / "j", PASSED, RICH)
    head, first, second = path.read_bytes().splitlines()
    path.write_bytes(b"\r\n".join((head, b"", b"  ", second, first, b"")))
    assert read(path) == {("a", 1): PASSED, ("b", 2): RICH}


def test_a_hole_at_the_end_is_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path / "j", PASSED)
    whole = path.read_bytes()
    path.write_bytes(whole + bytes(500))  # as a power cut leaves it
    assert read(path) == {("a", 1): PASSED}
    assert path.read_bytes() == whole


@settings(deadline=None, max_examples=40)
@given(st.binary(max_size=200))
def test_a_file_that_is_no_journal_stays_as_it_is(tmp_path_factory: Any, content: bytes) -> None:
    path = tmp_path_factory.mktemp("j") / "j"
    path.write_bytes(content)
    if not content or written(path.with_name("k")).read_bytes().startswith(content):
        assert read(path) == {}
        return
    with pytest.raises(EvalFileError):
        read(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (b"{", "Expecting"),
        (b"\xff", "utf-8"),
        (b"[]", "something else"),
        (b'"x"', "something else"),
        (b"{}", "something else"),
        (b'{"case": "x"}', "something else"),
        (b'{"case": "x", "outcome": []}', "something else"),
        (b'{"case": "x", "outcome": {"id": 7}}', "something else"),
        (b"[" * 100_000, "recursion"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: bytes, found: str) -> None:
    path = written(tmp_path / "j", PASSED)
    path.write_bytes(path.read_bytes() + line + b"\n")
    before = path.read_bytes()
    with pytest.raises(EvalFileError, match="the journal is broken") as caught:
        read(path)
    assert caught.value.line == 3
    assert found in (caught.value.found or "")
    assert path.read_bytes() == before


def test_a_field_that_is_none_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "j", PASSED, RICH)
    path.write_text(path.read_text().replace('"duration_s":1.5', '"duration_s":"long"'))
    with pytest.raises(EvalFileError, match="not what it should be") as caught:
        read(path)
    assert (caught.value.line, caught.value.field) == (3, "duration_s")


def test_a_case_that_changed_is_run_again(tmp_path: Path) -> None:
    path = written(tmp_path / "j", PASSED, RICH)
    changed = [FluentCase("Hi!", id="a"), CASES[1]]
    assert list(read(path, cases=changed)) == [("b", 2)]
    assert list(read(path, cases=[CASES[0]])) == [("a", 1)]
    assert read(path) == {("a", 1): PASSED, ("b", 2): RICH}


@pytest.mark.parametrize(
    ("other", "field"),
    [({"suite": "t"}, "suite"), ({"engine": "local"}, "settings"), ({"model": None}, "settings")],
)
def test_a_journal_of_another_run_is_refused(
    tmp_path: Path, other: dict[str, Any], field: str
) -> None:
    path = written(tmp_path / "j", PASSED, engine="light")
    before = path.read_bytes()
    with pytest.raises(EvalFileError, match="of another") as caught:
        read(path, **{"engine": "light", **other})
    assert caught.value.field == field
    assert "give another journal, or delete it" in (caught.value.help or "")
    assert path.read_bytes() == before


def test_a_journal_of_another_run_says_what_is_different(tmp_path: Path) -> None:
    path = written(tmp_path / "j", PASSED, engine="light", timeout_s=1.5, prices=True)
    with pytest.raises(EvalFileError, match="of another run") as caught:
        read(path, engine="light", timeout_s=None, prices=True)
    assert caught.value.found == '{"timeout_s": 1.5}'
    assert caught.value.help == (
        'now it is {"timeout_s": null}; give another journal, or delete it'
    )


def test_a_journal_of_another_pipeline_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with Journal(path, "s", {}, CASES, "one"):
        pass
    with Journal(path, "s", {}, CASES, "one"):
        pass
    with (
        pytest.raises(EvalFileError, match="the pipeline has changed since") as caught,
        Journal(path, "s", {}, CASES, "two"),
    ):
        pass
    assert caught.value.help == "give another journal, or delete it"


HOLD = """
import sys
from adk_fluent.eval._journal._journal import Journal
with Journal(sys.argv[1], "s", {}, []):
    print("open", flush=True)
    sys.stdin.read()
"""


def test_a_journal_has_one_user_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "j"
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdin is not None
    assert other.stdout is not None
    assert other.stdout.readline().strip() == b"open"
    before = path.read_bytes()
    with pytest.raises(EvalFileError, match="another run is using the journal"):
        read(path)
    assert path.read_bytes() == before
    other.communicate()
    assert other.returncode == 0
    assert read(path) == {}


def test_two_runs_of_one_process_cannot_share_a_journal(tmp_path: Path) -> None:
    with journal(tmp_path / "j") as made:
        with pytest.raises(EvalFileError, match="is using the journal"):
            read(tmp_path / "j")
        made.add(PASSED)
    assert read(tmp_path / "j") == {("a", 1): PASSED}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no flock")
def test_where_there_are_no_locks_there_is_a_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def none(file: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    assert read(written(tmp_path / "j", PASSED)) == {("a", 1): PASSED}


def test_a_journal_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "j", PASSED)
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2'))
    with pytest.raises(EvalFileError, match="newer version") as caught:
        read(path)
    assert "newer adk-fluent-eval" in (caught.value.help or "")


def test_what_cannot_be_opened_is_told(tmp_path: Path) -> None:
    with pytest.raises(EvalFileError, match="this is a folder"):
        read(tmp_path)
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(EvalFileError, match="cannot be written"):
        read(file / "j")
    with pytest.raises(EvalFileError, match="cannot be written"):
        read(tmp_path / "a\0b")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such devices")
def test_a_device_is_no_journal(tmp_path: Path) -> None:
    (tmp_path / "j").symlink_to("/dev/zero")
    with pytest.raises(EvalFileError, match="this is a device"):
        read(tmp_path / "j")


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", _full)
    with pytest.raises(EvalFileError, match="No space left on device"):
        read(tmp_path / "j")
    monkeypatch.undo()
    assert read(tmp_path / "j") == {}


def _full(_: int) -> None:
    raise OSError(28, "No space left on device")


def test_a_disk_that_is_full_later_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "j", PASSED)

    with journal(path) as made:
        monkeypatch.setattr(os, "fsync", _full)
        with pytest.raises(EvalFileError, match="No space left on device"):
            made.add(RICH)
        monkeypatch.undo()
    assert read(path)["a", 1] == PASSED


# --- what nobody can tell ------------------------------------------------------------------------


def unsure(id: str) -> FluentCase:
    """A case that holds something that may say anything."""
    return FluentCase("Hi", id=id, state_assertions={"k": partial(print, memoryview(b"x"))})


def test_what_may_have_changed_is_run_again(tmp_path: Path) -> None:
    path, cases = tmp_path / "j", [unsure("a"), CASES[1]]
    with journal(path, cases=cases) as made:
        made.add(PASSED)
        made.add(RICH)
        assert not made.notes
    with journal(path, cases=cases) as made:
        assert list(made.done) == [("b", 2)]
        (note,) = made.notes
        assert note.startswith(f"of the journal {path}, case 'a' is run again: nobody can tell")
        assert "whether state_assertions (memoryview) is what it was" in note
    with journal(path, cases=[unsure("a"), unsure("b")]) as made:
        made.add(RICH)
    with journal(path, cases=[unsure("a"), unsure("b")]) as made:
        assert "case 'a' and 1 other is run again" in made.notes[0]


def test_what_may_have_changed_of_all_is_run_again(tmp_path: Path) -> None:
    path = written(tmp_path / "j", PASSED, RICH)
    with Journal(path, "s", {}, CASES, unsure=["judge 'j' (generator)"]) as made:
        assert not made.done
        (note,) = made.notes
        assert note.startswith(f"of the journal {path}, every case is run again: nobody can tell")
        assert "whether judge 'j' (generator) is what it was" in note
    with Journal(tmp_path / "new", "s", {}, CASES, unsure=["judge 'j' (generator)"]) as made:
        assert not made.notes


def test_what_may_have_changed_and_was_an_error_is_no_news(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with journal(path, cases=[unsure("a")]) as made:
        made.add(replace(PASSED, status=Status.ERROR, error="x"))
    with journal(path, cases=[unsure("a")]) as made:
        assert not made.notes


# --- looking at it beforehand --------------------------------------------------------------------


def test_a_look_at_a_journal_leaves_it_as_it_is(tmp_path: Path) -> None:
    path = written(tmp_path / "j", PASSED)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"case":"half')
    journal(path).check()
    assert path.read_bytes() == whole + b'{"case":"half'
    journal(tmp_path / "none" / "j").check()
    assert not (tmp_path / "none").exists()
    assert read(path) == {("a", 1): PASSED}


def test_a_look_at_a_journal_tells_what_is_wrong(tmp_path: Path) -> None:
    path = written(tmp_path / "j", PASSED)
    with pytest.raises(EvalFileError, match="of another suite"):
        journal(path, suite="t").check()
    with pytest.raises(EvalFileError, match="this is a folder"):
        journal(tmp_path).check()
    with journal(path), pytest.raises(EvalFileError, match="is using the journal"):
        journal(path).check()
    path.write_bytes(path.read_bytes() + b"{}\n")
    with pytest.raises(EvalFileError, match="the journal is broken"):
        journal(path).check()
    journal(written(tmp_path / "k", PASSED)).check()  # nobody holds it


def test_a_journal_that_is_open_is_not_opened_again(tmp_path: Path) -> None:
    made = journal(written(tmp_path / "j", PASSED))
    with made:
        with made:
            made.add(RICH)
        assert list(made.done) == [("a", 1)]
    with pytest.raises(AssertionError):
        made.add(RICH)
    assert read(tmp_path / "j") == {("a", 1): PASSED, ("b", 2): RICH}


# --- what counts as another case -----------------------------------------------------------------


def _yes(value: Any) -> bool:
    return bool(value)


def _no(value: Any) -> bool:
    return not value


def _above(least: int) -> Any:
    def above(value: Any) -> bool:
        return value > least

    return above


CASE: dict[str, Any] = {"input": "Hi", "id": "a"}
OTHERS: list[dict[str, Any]] = [
    {"input": "Ho"},
    {"input": ["Hi", "Ho"]},
    {"input": ["Hi", Turn("Ho")]},
    {"input": ["Hi", Turn("Ho", expected_trajectory=["t"])]},
    {"input": ["Hi", Turn("Ho", rubrics=["x"])]},
    {"expected_trajectory": []},
    {"expected_trajectory": ["t"]},
    {"expected_trajectory": [ToolCall("t", {"x": 1})]},
    {"expected_trajectory": [ToolCall("t", {"x": True})]},
    {"expected_trajectory": [ToolCall("t", {"x": _yes})]},
    {"expected_trajectory": [ToolCall("t", {"x": _no})]},
    {"expected_response_contains": "x"},
    {"expected_response_contains": re.compile("x")},
    {"expected_response_contains": re.compile("x", re.IGNORECASE)},
    {"reference_response": "x"},
    {"mock_tool_outputs": {"t": 1}},
    {"mock_tool_outputs": {"t": [1]}},
    {"mock_tool_outputs": {"t": b"1"}},
    {"mock_tool_outputs": {"t": b"2"}},
    {"mock_tool_outputs": {"t": ValueError("x")}},
    {"mock_tool_outputs": {"t": ValueError("y")}},
    {"state_assertions": {"k": lambda v: v == 1}},  # pyright: ignore[reportUnknownLambdaType]
    {"state_assertions": {"k": lambda v: v == 2}},  # pyright: ignore[reportUnknownLambdaType]
    {"state_assertions": {"k": _above(1)}},
    {"state_assertions": {"k": _above(2)}},
    {"initial_state": {"k": 1}},
    {"simulation": UserSimulation(script=["x"])},
    {"simulation": UserSimulation(script=["y"])},
    {"max_tokens": 1},
    {"xfail": "x"},
    {"skip": "x"},
    {"target_node": "n"},
    {"tags": ["t"]},
]


def test_whatever_a_case_says_makes_it_another() -> None:
    digests = [digest_of(FluentCase(**CASE | each)) for each in ({}, *OTHERS)]
    assert len(set(digests)) == len(digests)


def test_a_case_is_the_same_wherever_it_is_written() -> None:
    def made() -> list[FluentCase]:
        return [FluentCase(**CASE | each) for each in ({}, *OTHERS)]

    assert [digest_of(each) for each in made()] == [digest_of(each) for each in made()]


def test_an_object_without_a_word_of_its_own_is_the_same_at_another_place() -> None:
    class Silent:
        pass

    first, second = (FluentCase("Hi", mock_tool_outputs={"t": Silent()}) for _ in range(2))
    assert digest_of(first) == digest_of(second)


def test_a_function_that_calls_itself_ends() -> None:
    def again(value: Any) -> bool:
        return again(value) if value else True

    assert digest_of(FluentCase("Hi", state_assertions={"k": again}))


def test_what_a_run_depends_on_is_told_without_secrets() -> None:
    class Model:
        model = "m-1"
        api_key = "sesame"

    class Named:
        name = "p"

    settings = Settings(
        "s",
        judge_model=Model(),
        model=Model(),
        simulation=UserSimulation(model="u-1", persona="curt"),
    )
    told = what_counts(settings, ["m"], {"m": 0.5}, [FluentJudge("j", _taking_nothing)]).told
    text = json.dumps(told)
    assert "sesame" not in text
    assert (told["model"], told["judge_model"]) == ("m-1", "m-1")
    assert told["simulation"]["persona"] == "curt"
    assert told["judges"][0]["name"] == "j"
    assert (told["timeout_s"], told["prices"], told["plugins"]) == (None, None, [])
    (plugin,) = what_counts(Settings("s", plugins=[Named()]), [], {}, []).told["plugins"]
    assert plugin.startswith("p ")
    assert what_counts(Settings("s"), [], {}, []).told["simulation"] is None


def _taking_nothing() -> bool:
    return True


# --- names ---------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.text(min_size=1, max_size=300), unique=True, max_size=8))
def test_each_model_has_a_journal_of_its_own(tmp_path_factory: Any, models: list[str]) -> None:
    folder: Path = tmp_path_factory.getbasetemp()
    found = [journal_of(folder / "run.jsonl", each) for each in models]
    assert len({each.name.lower() for each in found}) >= len({each.lower() for each in models})
    for each in found:
        assert each.parent == folder
        assert each.name.startswith("run.")
        assert each.suffix == ".jsonl"
        each.touch()


def test_the_name_of_a_model_is_seen_in_that_of_its_journal() -> None:
    assert journal_of("run.jsonl", "gemini-2.5-pro").name == "run.gemini-2.5-pro.jsonl"
    assert journal_of("run", "m").name == "run.m"
    assert journal_of("run.jsonl", "a/b").name.startswith("run.a_b-")
