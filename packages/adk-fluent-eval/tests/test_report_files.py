"""Reports in files: what is written is read again, and nothing else is."""

from __future__ import annotations

import errno
import json
import math
import os
import stat
import sys
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_fluent.eval import (
    CaseOutcome,
    EvalFileError,
    Finding,
    FluentEvalReport,
    Gate,
    MetricScore,
    MetricStatus,
    Status,
    Step,
    Tokens,
    ToolUse,
    TurnOutcome,
    _write,
)
from adk_fluent.eval._report._json import line_of
from adk_fluent.eval._report._read import outcome_of

STARTED = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


def everything() -> CaseOutcome:
    """An outcome of which every field is other than by default."""
    use = ToolUse(
        "find", {"q": "é", "n": 1}, {"result": [1, None]}, "KeyError: x", "desk", True, "1"
    )
    step = Step("desk", "hm", use, {"intent": "billing"}, "429: busy", True, "inner")
    turn = TurnOutcome("hi", "hello", [step], 1.5, Tokens(1, 2, 3, 4), 2, "inv")
    finding = Finding("state x", ok=False, expected=[], actual={}, reason="is {}", turn=1)
    score = MetricScore(
        "m", MetricStatus.FAILED, 0.0, 0.5, True, "no", [finding], [0.0, None], "calls"
    )
    return CaseOutcome(
        "a", 2, Status.XFAILED, ["is {}"], "E: x", "hi", ["t"], {"owner": "me"}, [score], [turn],
        {"k": [1.5, {"x": None}]}, Tokens(5, 6, 7, 8), 0.25, Tokens(4, 3, 2, 1), 0.5, 2.5,
        "max_turns", "flaky", "desk", "model-1", 3, 4, "s", "u",
    )  # fmt: skip


def report(*outcomes: CaseOutcome, **given_: Any) -> FluentEvalReport:
    given_.setdefault("started_at", STARTED)
    return FluentEvalReport(outcomes, **given_)


def attributes(found: FluentEvalReport) -> dict[str, Any]:
    return {name: value for name, value in vars(found).items() if name != "baseline"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "report.json"


# --- round trips ---------------------------------------------------------------------------------


def test_everything_is_read_as_it_was_written(path: Path) -> None:
    outcome = everything()
    plain = CaseOutcome("a")
    for each in fields(CaseOutcome):
        if each.name != "id":
            assert getattr(outcome, each.name) != getattr(plain, each.name), each.name
    saved = report(
        outcome,
        CaseOutcome("b"),
        suite="desk",
        gate=Gate(0.5, {"t": 0.25}, {"m": 1.0}, None, True, False, 2.0),
        metrics=["m"],
        engine="light",
        adk_version="2.13.0",
        duration_s=1.25,
        notes=["a note"],
        interrupted=True,
        model="model-1",
        shard=(2, 3),
    )
    saved.save(path)
    loaded = FluentEvalReport.load(path)
    assert attributes(loaded) == attributes(saved)
    assert loaded.failures == saved.failures
    assert loaded.to_json() == saved.to_json() == path.read_text(encoding="utf-8")
    assert type(loaded.outcomes[0].status) is Status


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
PLAIN = st.recursive(
    SCALARS.filter(lambda each: not (isinstance(each, float) and math.isinf(each))),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
TEXT = st.text(max_size=20)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
SCORES = st.builds(
    MetricScore,
    TEXT,
    st.sampled_from(MetricStatus),
    st.none() | FINITE,
    st.none() | FINITE,
    st.booleans(),
    TEXT,
    st.lists(st.builds(Finding, TEXT, st.booleans(), PLAIN, PLAIN, TEXT, st.none()), max_size=2),
    st.lists(st.none() | FINITE, max_size=2),
)
STEPS = st.builds(
    Step, TEXT, TEXT, st.none() | st.builds(ToolUse, TEXT, st.dictionaries(TEXT, PLAIN), PLAIN)
)
OUTCOMES = st.builds(
    CaseOutcome,
    TEXT,
    st.integers(1, 9),
    st.sampled_from(Status),
    st.lists(TEXT, max_size=2),
    st.none() | TEXT,
    scores=st.lists(SCORES, max_size=2),
    turns=st.lists(st.builds(TurnOutcome, TEXT, TEXT, st.lists(STEPS, max_size=2)), max_size=2),
    state=st.dictionaries(TEXT, PLAIN, max_size=3),
    cost_usd=st.none() | FINITE,
)


@settings(deadline=None)
@given(st.lists(OUTCOMES, max_size=3, unique_by=lambda each: each.key), TEXT)
def test_any_report_survives_a_file(
    tmp_path_factory: pytest.TempPathFactory, outcomes: list[CaseOutcome], suite: str
) -> None:
    file = tmp_path_factory.mktemp("any") / "r.json"
    saved = report(*outcomes, suite=suite)
    saved.save(file)
    assert attributes(FluentEvalReport.load(file)) == attributes(saved)


def test_shards_and_merges_survive(path: Path) -> None:
    part = FluentEvalReport.merge(report(CaseOutcome("a", status=Status.PASSED), shard=(1, 3)))
    part.save(path)
    loaded = FluentEvalReport.load(path)
    assert loaded.missing_shards == (2, 3)
    assert loaded.failures == part.failures


def test_a_report_that_got_worse_does_not_pass_when_it_is_read_again(path: Path) -> None:
    baseline = report(CaseOutcome("a", status=Status.PASSED))
    now = report(CaseOutcome("a", status=Status.FAILED), gate=Gate(0), baseline=baseline)
    now.save(path)
    loaded = FluentEvalReport.load(path)
    assert loaded.baseline is None
    assert loaded.failures == now.failures != []
    loaded.save(path)
    assert FluentEvalReport.load(path).failures == now.failures
    assert FluentEvalReport.merge(loaded).failures == now.failures
    loaded.baseline = report(CaseOutcome("a", status=Status.FAILED))
    assert loaded.ok


def in_shards(path: Path, gate: Gate, now: str, *, before: str = "") -> FluentEvalReport:
    """A report of two shards that were saved; cases are letters, passed if they are upper case."""

    def outcomes(cases: str) -> list[CaseOutcome]:
        statuses = {True: Status.PASSED, False: Status.FAILED}
        return [CaseOutcome(each.lower(), status=statuses[each.isupper()]) for each in cases]

    baseline = report(*outcomes(before or now.upper()))
    loaded: list[FluentEvalReport] = []
    for which in (1, 2):
        part = report(
            *outcomes(now[which - 1 :: 2]), gate=gate, baseline=baseline, shard=(which, 2)
        )
        part.save(path)
        loaded.append(FluentEvalReport.load(path))
        assert loaded[-1].failures == part.failures
        assert loaded[-1].to_json() == path.read_text(encoding="utf-8")
    merged = FluentEvalReport.merge(*loaded)
    merged.save(path)
    assert FluentEvalReport.load(path).failures == merged.failures
    return merged


def test_shards_that_were_saved_are_judged_as_a_whole(path: Path) -> None:
    found = in_shards(path, Gate(0.0, max_regressions=1), "abCD")
    assert found.failures == ["2 cases got worse than the baseline, of 4 (p=0.5), 1 allowed: a, b"]
    assert in_shards(path, Gate(0.0, max_regressions=2), "abCD").ok
    assert in_shards(path, Gate(0.0, max_regressions=None), "abcd").ok


def test_shards_that_were_saved_are_tested_as_a_whole(path: Path) -> None:
    gate = Gate(0.0, significant_only=True)
    assert in_shards(path, gate, "abcdeFGH").ok
    (line,) = in_shards(path, gate, "abcdefGH").failures
    assert line.startswith("6 cases got worse than the baseline, of 8 (p=0.0312), 0 allowed")
    mended = in_shards(path, gate, "aBcDeFgHiJkL", before="AbCdEfGhIjKl")  # one shard got worse
    assert mended.failures == []


def test_runs_of_the_baseline_are_kept_in_order(path: Path) -> None:
    statuses = {"P": Status.PASSED, "F": Status.FAILED, "S": Status.SKIPPED}

    def runs(letters: str) -> list[CaseOutcome]:
        return [CaseOutcome("a", run, statuses[each]) for run, each in enumerate(letters, 1)]

    baseline = report(*runs("SFPP"), CaseOutcome("b"))
    report(*runs("F"), gate=Gate(0), baseline=baseline).save(path)
    loaded = FluentEvalReport.load(path)
    assert loaded.kept_baseline == {"a": [False, True, True]}
    assert loaded.ok
    report(*runs("F"), gate=Gate(0), baseline=report(*runs("PFF"))).save(path)
    assert not FluentEvalReport.load(path).ok


def test_files_of_before_keep_what_their_gate_said(path: Path) -> None:
    baseline = report(*(CaseOutcome(id, status=Status.PASSED) for id in "ab"))
    said = "1 case got worse than the baseline, of 1 (p=1), 0 allowed: a"

    def part(id: str, which: int) -> FluentEvalReport:
        bad = CaseOutcome(id, status=Status.FAILED)
        return report(bad, gate=Gate(0), baseline=baseline, shard=(which, 2))

    data = json.loads(part("a", 1).to_json())
    del data["kept_baseline"]
    data["kept_regressions"] = [said]
    path.write_text(json.dumps(data), encoding="utf-8")
    old = FluentEvalReport.load(path)
    assert old.kept_baseline is None
    assert old.failures == [said]
    part("b", 2).save(path)
    merged = FluentEvalReport.merge(old, FluentEvalReport.load(path))
    assert [each[-1] for each in merged.failures] == ["a", "b"]
    merged.save(path)
    assert FluentEvalReport.load(path).failures == merged.failures


def test_other_tools_find_the_summary(path: Path) -> None:
    report(CaseOutcome("a", status=Status.PASSED), CaseOutcome("b")).save(path)
    data = json.loads(path.read_text(encoding="utf-8"))
    assert data["adk_fluent"] == {"kind": "eval-report", "schema": 1}
    assert data["summary"]["pass_rate"] == 0.5
    assert data["summary"]["counts"]["error"] == 1
    assert data["summary"]["failures"] == ["pass rate 50% (1 of 2 runs) is below 100%"]


def test_a_byte_order_mark_is_no_harm(path: Path) -> None:
    path.write_text("\ufeff" + report().to_json(), encoding="utf-8")
    assert FluentEvalReport.load(str(path)).outcomes == ()


def test_what_a_later_version_adds_is_left_alone(path: Path) -> None:
    data = json.loads(report(everything()).to_json())
    data["new"] = data["outcomes"][0]["new"] = 1
    path.write_text(json.dumps(data), encoding="utf-8")
    assert FluentEvalReport.load(path).outcomes == (everything(),)


# --- what JSON cannot say ------------------------------------------------------------------------


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_keep_their_status(path: Path, number: float) -> None:
    score = MetricScore("m", MetricStatus.PASSED, number, number, turns=[number, 1.0])
    turn = TurnOutcome("x", duration_s=number)
    report(
        CaseOutcome("a", scores=[score], turns=[turn], duration_s=number, cost_usd=number),
        duration_s=number,
    ).save(path)
    assert "NaN" not in path.read_text()
    loaded = FluentEvalReport.load(path)
    found = loaded.outcomes[0]
    assert found.scores == [MetricScore("m", MetricStatus.PASSED, turns=[None, 1.0])]
    assert (found.duration_s, found.cost_usd, found.turns[0].duration_s) == (0.0, None, 0.0)
    assert loaded.duration_s == 0.0


def test_lone_surrogates_are_replaced_and_pairs_joined(path: Path) -> None:
    outcome = CaseOutcome("a\ud800", reasons=["\ud83d\ude00 and \udc00"], state={"\udfff": "é"})
    report(outcome, suite="s\ud800").save(path)
    loaded = FluentEvalReport.load(path)
    assert loaded.suite == "s\ufffd"
    assert loaded.outcomes[0].id == "a\ufffd"
    assert loaded.outcomes[0].reasons == ["😀 and \ufffd"]
    assert loaded.outcomes[0].state == {"\ufffd": "é"}
    report(outcome).to_json().encode()


class Secretive:
    def __repr__(self) -> str:
        return "password=hunter2"


def test_values_that_are_no_data_are_told_by_their_type(path: Path) -> None:
    loop: dict[str, Any] = {"x": 1}
    loop["self"] = loop
    deep: Any = "end"
    for _ in range(5_000):
        deep = [deep]
    state = {
        "object": Secretive(),
        "set": {1},
        "bytes": b"x",
        "loop": loop,
        "deep": deep,
        "big": 10**5_000,
        "keys": {(1, 2): 3, 4: 5},
        "tuple": (1, 2),
    }
    report(CaseOutcome("a", state=state), CaseOutcome("b")).save(path)
    assert "hunter2" not in path.read_text()
    found = FluentEvalReport.load(path).outcomes[0].state
    assert found["object"] == "(a Secretive)"
    assert found["set"] == "(a set)"
    assert found["big"] == "(a very large int)"
    assert found["loop"]["self"]["self"]["x"] == 1
    assert found["keys"]["4"] == 5
    assert found["tuple"] == [1, 2]


def test_a_report_of_100_mb_is_saved_and_loaded(path: Path) -> None:
    text = "é" + "x" * 1_000_000
    outcomes = [
        CaseOutcome(f"c{n}", status=Status.FAILED, turns=[TurnOutcome("q", text)], reasons=[text])
        for n in range(50)
    ]
    saved = report(*outcomes)
    saved.save(path)
    assert path.stat().st_size > 100_000_000
    assert FluentEvalReport.load(path).outcomes == saved.outcomes
    for form in (saved.to_markdown(), saved.to_junit()):
        assert len(form) < 1_000_000
        assert "more characters)" in form


# --- bad files -----------------------------------------------------------------------------------


GONE: Any = object()


def edited(place: str, value: Any) -> str:
    """A report's file in which one place holds something else; ``+`` is behind the last."""
    data: Any = json.loads(report(everything()).to_json())
    *way, last = place.split("/")
    there = data
    for each in way:
        there = there[int(each) if each.isdigit() else each]
    if last == "+":
        there.append(value)
    elif value is GONE:
        del there[last]
    else:
        there[last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        ("", 1, "is empty"),
        ("  \n", 2, "is empty"),
        ('{"adk_fluent": {},\n"x": ]}', 2, r"(?s)no JSON.*column 6"),
        (report(everything()).to_json()[:-40], None, r"(?s)no JSON.*cut off"),
        ("[" * 200_000, None, "nested too deep"),
        ('{"a": ' + "9" * 5_000 + "}", None, "numbers too long"),
        ("[]", None, "(?s)no report of a suite.*JSON of something else"),
        ("null", None, "no report of a suite"),
        ('{"eval_set_id": "x", "eval_cases": []}', None, "no report of a suite"),
        ('{"adk_fluent": "eval-report"}', None, "no report of a suite"),
        ('{"adk_fluent": {"kind": "eval-matrix"}}', None, r"(?s)'eval-matrix'.*ModelMatrix\.load"),
        ('{"adk_fluent": {"kind": ["x"], "schema": 1}}', None, "no report of a suite"),
        ('{"adk_fluent": {"kind": "eval-report"}}', None, "(?s)does not say.*None"),
        ('{"adk_fluent": {"kind": "eval-report", "schema": "1"}}', None, "(?s)does not say.*a str"),
        ('{"adk_fluent": {"kind": "eval-report", "schema": true}}', None, "does not say"),
        (
            '{"adk_fluent": {"kind": "eval-report", "schema": 2}}',
            None,
            "(?s)schema 2, and this version reads up to 1.*upgrade adk-fluent-eval",
        ),
    ],
)
def test_files_that_are_none_of_ours(path: Path, content: str, line: int | None, what: str) -> None:
    path.write_text(content, encoding="utf-8")
    with pytest.raises(EvalFileError, match=what) as error:
        FluentEvalReport.load(path)
    assert error.value.path == str(path)
    assert str(path) in str(error.value)
    if line is not None:
        assert error.value.line == line


@pytest.mark.parametrize(
    ("place", "value", "field", "what"),
    [
        ("outcomes", GONE, "outcomes", "nothing"),
        ("suite", GONE, "suite", "nothing"),
        ("outcomes", {}, "outcomes", "a dict"),
        ("started_at", "yesterday", "started_at", "a str"),
        ("interrupted", "no", "interrupted", "a str"),
        ("gate", None, "gate", "None"),
        ("gate/min_pass_rate", "all", "gate.min_pass_rate", "a str"),
        ("metrics", [1], "metrics[0]", "1"),
        ("kept_baseline", {"a": [1]}, "kept_baseline.a[0]", "1"),
        ("kept_baseline", [], "kept_baseline", "a list"),
        ("outcomes/+", {"run": 1}, "outcomes[1].id", "nothing"),
        ("outcomes/+", "secret", "outcomes[1]", "a str"),
        ("outcomes/0/status", "great", "outcomes[0].status", "a str"),
        ("outcomes/0/run", "1", "outcomes[0].run", "a str"),
        ("outcomes/0/scores/0/score", "high", "outcomes[0].scores[0].score", "a str"),
        (
            "outcomes/0/turns/0/steps/0/tool/name",
            GONE,
            "outcomes[0].turns[0].steps[0].tool.name",
            "nothing",
        ),
    ],
)
def test_fields_that_are_not_what_they_should_be(
    path: Path, place: str, value: Any, field: str, what: str
) -> None:
    path.write_text(edited(place, value), encoding="utf-8")
    with pytest.raises(EvalFileError) as error:
        FluentEvalReport.load(path)
    assert error.value.field == field
    assert what in str(error.value.found)
    assert f"{path} ({field})" in str(error.value)
    assert "secret" not in str(error.value)


def test_many_wrong_fields_are_counted(path: Path) -> None:
    path.write_text(edited("metrics", [1, 2, 3, 4, 5, 6]), encoding="utf-8")
    with pytest.raises(EvalFileError, match=r"5 more, at metrics\[1\], metrics\[2\].*, \.\.\."):
        FluentEvalReport.load(path)


@pytest.mark.parametrize(
    ("place", "value", "what"),
    [
        ("outcomes/+", {"id": "a", "run": 2}, "two outcomes of run 2 of case 'a'"),
        ("gate/min_pass_rate", 7, "min_pass_rate= is no share"),
        ("started_at", "2030-01-01T00:00:00", "no time zone"),
    ],
)
def test_reports_that_do_not_hold_together(path: Path, place: str, value: Any, what: str) -> None:
    path.write_text(edited(place, value), encoding="utf-8")
    with pytest.raises(EvalFileError, match=f"does not hold together: .*{what}"):
        FluentEvalReport.load(path)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(EvalFileError, match=r"(?s)no such file.*report\.save") as error:
        FluentEvalReport.load(tmp_path / "none.json")
    assert isinstance(error.value.__cause__, FileNotFoundError)
    with pytest.raises(EvalFileError, match="cannot be read: Is a directory"):
        FluentEvalReport.load(tmp_path)
    with pytest.raises(EvalFileError, match="cannot be read"):
        FluentEvalReport.load("a\0b")
    (tmp_path / "latin").write_bytes(b'{"x": "\xe9"}')
    with pytest.raises(EvalFileError, match=r"(?s)no text in UTF-8.*byte 7"):
        FluentEvalReport.load(tmp_path / "latin")


# --- writing whole or not at all -----------------------------------------------------------------


def test_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "r.json"
    report().save(path)
    assert FluentEvalReport.load(path).suite == "suite"


def test_the_page_for_browsers_is_a_file_too(tmp_path: Path) -> None:
    path = tmp_path / "pages" / "r.html"
    report(CaseOutcome("a\ud800", status=Status.PASSED), suite="desk").save_html(path)
    assert "<html" in path.read_text(encoding="utf-8")


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("where", ["fsync", "replace"])
@pytest.mark.parametrize("there", [True, False])
def test_a_full_disk_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, where: str, there: bool
) -> None:
    if there:
        report(suite="old").save(path)
    if where == "fsync":
        monkeypatch.setattr(os, "fsync", full)
    else:
        monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(EvalFileError, match="cannot be written: No space left") as error:
        report(suite="new").save(path)
    assert error.value.path == str(path)
    assert ("is as it was" in str(error.value)) == there
    monkeypatch.undo()
    assert [each.name for each in path.parent.iterdir()] == (["report.json"] if there else [])
    if there:
        assert FluentEvalReport.load(path).suite == "old"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_what_ends_the_writing_leaves_nothing_behind(
    path: Path, error: type[BaseException]
) -> None:
    path.write_text("old")

    def chunks() -> Any:
        yield "new"
        raise error

    with pytest.raises(error):
        _write.write_whole(path, chunks())
    assert [each.name for each in path.parent.iterdir()] == ["report.json"]
    assert path.read_text() == "old"


def test_places_that_take_no_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "file" / "r.json", "a\0b"):
        with pytest.raises(EvalFileError, match="cannot be written"):
            report().save(place)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "x"


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    link, real = tmp_path / "link.json", tmp_path / "real.json"
    real.write_text("old")
    link.symlink_to(real)
    report(suite="new").save(link)
    assert link.is_symlink()
    assert FluentEvalReport.load(real).suite == "new"


@pytest.mark.skipif(sys.platform == "win32", reason="has no such modes")
def test_others_may_read_what_the_mask_lets_them(path: Path) -> None:
    old = os.umask(0o027)
    try:
        report().save(path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


# --- lines of a journal --------------------------------------------------------------------------


def test_a_line_of_a_journal_is_an_outcome_again() -> None:
    line = line_of(everything())
    assert "\n" not in line
    assert outcome_of(json.loads(line), "journal.jsonl", 3) == everything()


def test_a_wrong_line_of_a_journal_is_told() -> None:
    with pytest.raises(EvalFileError, match=r"journal\.jsonl:3 \(scores\[0\]\.status\)") as error:
        outcome_of({"id": "a", "scores": [{"name": "m", "status": "secret"}]}, "journal.jsonl", 3)
    assert "'secret'" not in str(error.value)
    assert error.value.line == 3
