"""The page without a browser: what is in it, what cannot get into it, and how large it becomes."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import subprocess
import sys
from html.parser import HTMLParser
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from report_samples import (
    HOSTILE,
    hostile,
    lively,
    many,
    outcome,
    pair,
    report,
    score,
)

from adk_fluent.eval._outcome import (
    CaseOutcome,
    Finding,
    MetricScore,
    MetricStatus,
    Status,
    Step,
    ToolUse,
    TurnOutcome,
)
from adk_fluent.eval._report._html import page
from adk_fluent.eval._report._html_charts import durations, scores
from adk_fluent.eval._report._html_data import PageData, page_data
from adk_fluent.eval._report._words import (
    change,
    dollars,
    in_script,
    measured,
    percent,
    plural,
    seconds,
    shown,
)


class Parsed(HTMLParser):
    """The page as a browser without JavaScript reads it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.styles: list[str] = []
        self.texts: list[str] = []
        self._in = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._in = tag
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self._in = ""

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            attrs, text = self.scripts[-1]
            self.scripts[-1] = (attrs, text + data)
        elif self._in == "style":
            self.styles.append(data)
        else:
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def data(self, id: str) -> Any:
        texts: list[str] = [text for attrs, text in self.scripts if attrs.get("id") == id]
        return json.loads(texts[0])

    @property
    def code(self) -> list[str]:
        """What would be run."""
        return [text for attrs, text in self.scripts if attrs.get("type") != "application/json"]


def details(data: PageData, place: int = 0) -> dict[str, Any]:
    """The details of the case in that place of the suite."""
    parcel, at = cast("tuple[int, int]", head(data)["cases"][place]["at"])
    return json.loads(data.parcels[parcel])[at]


def head(data: PageData) -> dict[str, Any]:
    return json.loads(data.head)


# --- the page as a whole -----------------------------------------------------------------------


def test_it_loads_nothing_and_runs_one_script() -> None:
    read = Parsed(page(*pair()))
    assert len(read.code) == 1
    digest = base64.b64encode(hashlib.sha256(read.code[0].encode()).digest()).decode()
    policy = next(
        attrs["content"]
        for tag, attrs in read.tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy is not None
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert "require-trusted-types-for 'script'" in policy
    for tag, attrs in read.tags:
        assert tag not in {"img", "iframe", "object", "embed", "base", "link"}
        assert "src" not in attrs
        assert "style" not in attrs
        assert not any(name.startswith("on") for name in attrs)
        assert (attrs.get("href") or "#").startswith("#")
    assert not re.search(r"url\(|@import", "".join(read.styles))


def test_the_script_writes_no_markup() -> None:
    code = Parsed(page(report(outcome("a")))).code[0]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(", code)
    assert not re.search(r"</script|<!--", code, re.IGNORECASE)


def test_the_same_report_gives_the_same_page() -> None:
    assert page(*pair()) == page(*pair())


def test_the_summary_can_be_read_without_a_script() -> None:
    now, before = pair()
    read = Parsed(page(now, before))
    assert "support desk" in read.text
    assert "Failed" in read.text
    assert f"{percent(now.pass_rate)} of {now.counting} runs passed" in read.text
    low, high = now.pass_rate_ci()
    assert f"95% confidence: {percent(low)} to {percent(high)}" in read.text
    assert now.failures[0] in read.text
    assert now.notes[0] in read.text
    assert "$0.07" in read.text
    for tag in now.per_tag:
        assert tag in read.text
    compared = now.compare(before)
    assert f"{len(compared.regressed)} regressed" in read.text
    assert f"(p = {compared.p_value:.3g})" in read.text
    for each in now.outcomes:
        assert each.id in read.text


def test_a_baseline_with_other_numbers_of_runs_says_so() -> None:
    once, twice = report(outcome("a")), report(outcome("a"), outcome("a", run=2))
    assert "1 case ran more often in one than in the other" in Parsed(page(twice, once)).text
    assert "ran more often" not in Parsed(page(twice, twice)).text


def test_a_report_that_passes_says_so() -> None:
    read = Parsed(page(report(outcome("a"), outcome("b"))))
    assert "✓Passed" in read.text
    assert "Why the gate is not met" not in read.text
    assert "Against the baseline" not in read.text


def test_an_interrupted_report_says_so() -> None:
    read = Parsed(page(report(outcome("a"), interrupted=True)))
    assert "!Interrupted" in read.text


def test_nothing_that_counts() -> None:
    read = Parsed(page(report(outcome("a", Status.SKIPPED, note="no bank"))))
    assert "- of 0 runs passed" in read.text
    assert "95% confidence" not in read.text
    assert "no bank" in read.text


def test_no_case_at_all() -> None:
    read = Parsed(page(report()))
    assert "no case was run" in read.text
    assert read.data("data")["cases"] == []


def test_the_title_is_of_choice() -> None:
    read = Parsed(page(report(outcome("a")), title="<b>Nightly</b>"))
    assert "<b>Nightly</b>" in read.text


def test_a_baseline_without_common_cases() -> None:
    read = Parsed(page(report(outcome("a")), report(outcome("b"))))
    assert "No case can be compared with the baseline." in read.text
    assert "1 added" in read.text
    assert "1 removed" in read.text


def test_a_baseline_that_is_the_same() -> None:
    read = Parsed(page(report(outcome("a")), report(outcome("a"))))
    assert "None of 1 case in both passes more or less often than before." in read.text


def test_many_lines_are_counted() -> None:
    made = report(outcome("a"), notes=[f"note {at}" for at in range(60)] + ["x" * 5_000])
    read = Parsed(page(made))
    assert "note 39" in read.text
    assert "note 40" not in read.text
    assert "… and 21 more" in read.text


def test_jinja_is_imported_when_a_page_is_made() -> None:
    code = (
        "import sys, adk_fluent.eval._report._html as it\n"
        "assert 'jinja2' not in sys.modules and 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- hostile texts -----------------------------------------------------------------------------


def test_hostile_texts_stay_texts() -> None:
    made = page(hostile(), hostile(), title=HOSTILE[6])
    made.encode()  # every character has its bytes
    read = Parsed(made)
    assert len(read.code) == 1
    assert not {tag for tag, _ in read.tags} & {"img", "iframe"}
    assert not any("onload" in attrs for _, attrs in read.tags)
    assert "49" not in read.text
    for attrs, text in read.scripts:
        if attrs.get("type") == "application/json":
            assert not re.search("[<>&\u2028\u2029]", text)
    first = read.data("parcel-0")[0]
    assert first["turns"][0]["input"] == HOSTILE[0]
    assert first["error"] == HOSTILE[0]


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_any_text_comes_through_a_script_element(text: str) -> None:
    made = in_script({"text": text, text: [text]})
    made.encode()
    assert not re.search("[<>&\u2028\u2029]", made)
    assert json.loads(made)["text"] == json.loads(json.dumps(text))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_any_data_can_be_shown(value: Any) -> None:
    use = ToolUse("t", {"value": value}, value)
    made = outcome(
        "a",
        turns=[TurnOutcome("hi", steps=[Step("x", tool=use, state={"k": value})])],
        scores=[score("m", 0.0, findings=[Finding("w", False, value, value)])],
        state={"k": value},
    )
    found = details(page_data([made]))
    assert found["state"] == [["k", shown(value)]]


def test_data_that_json_has_no_words_for() -> None:
    assert shown({"a": math.nan}) == '{\n  "a": NaN\n}'
    assert shown({1: object}).startswith('{\n  "1": "<class')
    loop: list[Any] = []
    loop.append(loop)
    assert shown(loop) == "(list that cannot be written as JSON)"
    assert shown({(1, 2): 3}) == "(dict that cannot be written as JSON)"
    deep: Any = 0
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "(list that cannot be written as JSON)"
    while deep:  # taken apart by hand, for its end would be as deep
        deep = deep[0]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_figures_that_are_no_numbers(value: float) -> None:
    scored = MetricScore("m", MetricStatus.FAILED, value, value)
    made = page(
        report(
            outcome("a", cost_usd=value, duration_s=value, scores=[scored]),
            outcome("b", cost_usd=1.0, duration_s=1.0, scores=[score("m", 0.5)]),
            duration_s=value,
        )
    )
    assert Parsed(made).data("data")["cases"][0]["d"] is None


# --- data --------------------------------------------------------------------------------------


def test_a_case_with_everything() -> None:
    use = ToolUse("find", {"q": 1}, None, "ValueError: no", "clerk", mocked=True)
    made = outcome(
        "a",
        Status.FAILED,
        reasons=["state x is 1"],
        input="Hi",
        tags=["t", "u", "t"],
        turns=[
            TurnOutcome(
                "Hi",
                "Bye",
                [
                    Step("triage", "hm", thought=True),
                    Step("clerk", tool=use),
                    Step("clerk", state={"x": 1}),
                    Step("clerk", error="E: e"),
                    Step("searcher", "found", inside="search"),
                ],
            )
        ],
        scores=[
            score(
                "m",
                0.5,
                reason="because",
                findings=[Finding("state x", False, 2, 1, "another", 1), Finding("all", True)],
            )
        ],
        attempts=2,
        replayed=3,
        target_node="clerk",
        stop_reason="max_turns",
    )
    data = page_data([made], flaky=["a"])
    listed = head(data)["cases"][0]
    assert (listed["id"], listed["run"], listed["s"], listed["f"]) == ("a", 1, "failed", 1)
    assert [head(data)["tags"][at] for at in listed["t"]] == ["t", "u"]
    assert listed["m"] == "f"
    assert listed["h"] == "find Bye"
    found = details(data)
    assert found["reasons"] == ["state x is 1"]
    assert ["Attempts", "2"] in found["facts"]
    assert ["Answers replayed", "3"] in found["facts"]
    assert ["Part of the pipeline", "clerk"] in found["facts"]
    thought, call, wrote, raised, inner = found["turns"][0]["steps"]
    assert inner == {"author": "searcher (inside of search)", "inside": True, "text": "found"}
    assert thought == {"author": "triage", "thought": "hm"}
    assert call["tool"] == {
        "name": "find",
        "agent": "clerk",
        "mocked": True,
        "args": '{\n  "q": 1\n}',
        "response": None,
        "error": "ValueError: no",
    }
    assert wrote["state"] == [["x", "1"]]
    assert raised["error"] == "E: e"
    assert found["turns"][0]["response"] == "Bye"  # no step said it
    missed, met = found["findings"]
    assert missed["sides"] == ["2", "1"]
    assert missed["turn"] == 1
    assert "sides" not in met
    assert found["scores"][0]["threshold"] == "≥ 0.8"
    assert found["scores"][0]["reason"] == "because"


def test_texts_are_compared_as_texts_and_other_things_as_json() -> None:
    findings = [Finding("a", False, "42", "43"), Finding("b", False, "42", 42)]
    data = page_data([outcome("a", scores=[score("m", 0.0, findings=findings)])])
    assert [each["sides"] for each in details(data)["findings"]] == [["42", "43"], ['"42"', "42"]]


def test_an_answer_that_a_step_said_is_not_said_again() -> None:
    turn = TurnOutcome("Hi", "Bye", [Step("clerk", "Bye")])
    assert details(page_data([outcome("a", turns=[turn])]))["turns"][0]["response"] == ""


def test_the_run_of_the_baseline_that_is_compared() -> None:
    before = [
        outcome("a", run=1, turns=[TurnOutcome("Hi", "one")]),
        outcome("a", run=2, turns=[TurnOutcome("Hi", "two")], scores=[score("m", 0.9)]),
    ]
    now = [
        outcome(
            "a", Status.FAILED, run=2, turns=[TurnOutcome("Hi", "2")], scores=[score("m", 0.4)]
        ),
        outcome("a", run=3, turns=[TurnOutcome("Hi", "one")]),
        outcome("b"),
    ]
    data = page_data(now, before, {"a": "regressed", "b": "added"})
    second, third, other = (details(data, at)["before"] for at in range(3))
    assert second["run"] == 2
    assert second["answers"] == ["2", "two"]
    assert ["Status", "failed", "passed", ""] in second["rows"]
    assert ["m", "0.4", "0.9", "-0.5"] in second["rows"]
    assert [turn["response"] for turn in second["turns"]] == ["two"]
    assert third["run"] == 1
    assert third["answers"] is None
    assert third["turns"] == []  # it is the same
    assert other is None
    assert [each.get("ch") for each in head(data)["cases"]] == ["regressed", "regressed", "added"]


# --- what is left out --------------------------------------------------------------------------


def test_a_long_text_is_cut_and_says_how_much() -> None:
    turn = TurnOutcome("x" * 25_000, "y" * 20_000)
    found = details(page_data([outcome("a", turns=[turn], state={"k": "z" * 30_000})]))
    assert found["turns"][0]["input"] == ["x" * 20_000, 5_000]
    assert found["turns"][0]["response"] == "y" * 20_000
    assert found["state"][0][1][1] == 30_002 - 20_000  # with its quotes


def test_the_budget_goes_to_what_did_not_pass() -> None:
    turn = [TurnOutcome("x" * 10_000)]
    passed = [outcome(f"p{at}", turns=turn) for at in range(20)]
    failed = [outcome(f"f{at}", Status.FAILED, turns=turn) for at in range(5)]
    data = page_data([*passed, *failed], budget=80_000)
    cases = head(data)["cases"]
    assert all(each["at"] for each in cases[20:])
    assert details(data, 24)["turns"][0]["input"] == "x" * 10_000
    assert data.shortened > 0
    assert data.shortened + data.omitted <= 20
    at = next(at for at in range(19, -1, -1) if cases[at]["at"])
    assert details(data, at)["turns"][0]["input"] == ["x" * 500, 9_500]
    assert len(data.head) + sum(map(len, data.parcels)) < 85_000


def test_without_room_only_the_list_is_left() -> None:
    data = page_data([outcome("a", turns=[TurnOutcome("x" * 1_000)])], budget=100)
    assert data.omitted == 1
    assert head(data)["cases"][0]["at"] is None


def test_a_hundred_megabytes_of_transcripts(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = [Step("clerk", "word " * 4_000) for _ in range(50)]
    made = report(*(outcome(f"c{at}", turns=[TurnOutcome("Hi", steps=steps)]) for at in range(100)))
    text = page(made)
    assert len(text) < 66_000_000
    assert "are cut short, as the transcripts are very large" in text


def test_what_is_omitted_is_said() -> None:
    steps = [Step("clerk", "word " * 4_000)] * 130_000
    huge = outcome("huge", turns=[TurnOutcome("Hi", steps=steps)])
    read = Parsed(page(report(huge, outcome("small"))))
    assert "Transcripts of 1 run are left out" in read.text
    assert [each["at"] for each in read.data("data")["cases"]] == [None, [0, 0]]


def test_thousands_of_cases_are_parcelled() -> None:
    data = page_data(many(3_000).outcomes)
    assert len(data.parcels) > 3
    assert max(map(len, data.parcels)) < 600_000
    listed = head(data)["cases"]
    assert len({tuple(each["at"]) for each in listed}) == 3_000
    assert len(data.head) < 3_000 * 900


# --- charts and words --------------------------------------------------------------------------


def test_scores_are_spread_over_the_chart() -> None:
    values = [0.0, 0.04, 0.79, 0.8, 1.0]
    made = [outcome(f"{at}", scores=[score("m", value)]) for at, value in enumerate(values)]
    chart = scores("m", made, 0.8)
    assert chart is not None
    assert [(bar.x, bar.good > 0, bar.bad > 0) for bar in chart.bars] == [
        (0.0, False, True),
        (75.0, False, True),
        (80.0, True, False),
        (95.0, True, False),
    ]
    assert [mark.x for mark in chart.marks] == [pytest.approx(80)]
    assert chart.label == "5 runs, 0 to 1, threshold 0.8"


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True) | st.none(), max_size=30),
    st.none() | st.floats(-1e6, 1e6),
)
@example([-1.7e308, 1.7e308], None)
@example([-1.7e306], 0.0)
@example([5e-324], None)
def test_any_scores_fit_the_chart(values: list[float | None], threshold: float | None) -> None:
    made = [
        CaseOutcome(f"{at}", scores=[MetricScore("m", MetricStatus.PASSED, value)])
        for at, value in enumerate(values)
    ]
    chart = scores("m", made, threshold)
    kept = [value for value in values if value is not None and math.isfinite(value)]
    assert (chart is None) == (not kept)
    if chart is not None:
        assert all(0 <= bar.x < 100 and 0 < bar.good <= 100 for bar in chart.bars)
        assert all(-1e-6 <= mark.x <= 100 + 1e-6 for mark in chart.marks)


def test_times_are_marked() -> None:
    assert durations([outcome("a", duration_s=1.0)]) is None
    chart = durations([outcome(f"{at}", duration_s=float(at)) for at in range(1, 101)])
    assert chart is not None
    assert [mark.label for mark in chart.marks] == ["median 50.5 s", "95% within 1 min 35 s"]


def test_words() -> None:
    assert [percent(each) for each in (0, 0.0001, 0.5, 0.875, 0.9999, 1, None)] == [
        *("0%", "0.1%", "50%", "87.5%", "99.9%", "100%", "-")
    ]
    assert [seconds(each) for each in (0, 0.0042, 0.9996, 59.96, 61, 3_725, None)] == [
        *("0 ms", "4 ms", "1.0 s", "1 min 00 s", "1 min 01 s", "1 h 02 min", "-")
    ]
    assert [dollars(each) for each in (0, 0.00000123, 0.00042, 0.07, 1_234.5, None)] == [
        *("$0", "$1.2e-06", "$0.00042", "$0.07", "$1,234.50", "-")
    ]
    assert [measured(each) for each in (0.79996, 3, 4_477.4, 123_456.7, math.nan, None)] == [
        *("0.8", "3", "4,477", "123,457", "nan", "-")
    ]
    assert measured(1.5, "s") == "1.5 s"
    assert measured(0.5, "USD") == "$0.50"
    assert [plural(1, "run"), plural(2_000, "run"), plural(0, "key", "keys")] == [
        *("1 run", "2,000 runs", "0 keys")
    ]
    assert [change(2, 1), change(1, 2.5), change(1, 1), change(None, 1), change(1, math.nan)] == [
        *("+1", "-1.5", "", "", "")
    ]


def test_samples_are_lively() -> None:
    found = {each.status for each in lively().outcomes}
    assert found == set(Status)
