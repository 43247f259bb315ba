"""A report in JUnit's XML."""

from __future__ import annotations

from datetime import UTC, datetime
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.eval import (
    CaseOutcome,
    FluentEvalReport,
    Gate,
    MetricScore,
    MetricStatus,
    Status,
    Tokens,
    TurnOutcome,
)

HOSTILE = "]]><x a=\"'&\x00\x08\x1b\ud800\ufffe\x85\r\n\t&amp;é😀"
ANYTHING = st.text(alphabet=st.characters(), max_size=20)  # lone surrogates, too


def parsed(report: FluentEvalReport) -> ET.Element:
    text = report.to_junit()
    return ET.fromstring(text.encode())  # that which a file would hold


def properties(element: ET.Element) -> dict[str, str]:
    return {each.attrib["name"]: each.attrib["value"] for each in element.iter("property")}


def test_each_status_has_its_element() -> None:
    root = parsed(
        FluentEvalReport(
            [
                CaseOutcome("a", 1, Status.PASSED, duration_s=1.5, tags=["x", "y"]),
                CaseOutcome("b", 1, Status.FAILED, ["is wrong", "and late"]),
                CaseOutcome("b", 2, Status.ERROR, error="ValueError: boom"),
                CaseOutcome("c", 1, Status.SKIPPED, note="no network"),
                CaseOutcome("d", 1, Status.XFAILED, ["is wrong"], note="issue 7"),
            ],
            suite="desk",
            engine="light",
            duration_s=2.25,
            started_at=datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC),
        )
    )
    assert root.tag == "testsuites"
    (suite,) = root
    for element in (root, suite):
        figures = {name: element.attrib[name] for name in ("tests", "failures", "errors")}
        assert figures == {"tests": "5", "failures": "1", "errors": "1"}
        assert (element.attrib["skipped"], element.attrib["time"]) == ("2", "2.250")
    assert suite.attrib["timestamp"] == "2030-01-02T03:04:05"
    cases = suite.findall("testcase")
    assert [each.attrib["name"] for each in cases] == ["a", "b (run 1)", "b (run 2)", "c", "d"]
    assert {each.attrib["classname"] for each in cases} == {"desk"}
    assert cases[0].attrib["time"] == "1.500"
    assert [[each.tag for each in case if each.tag != "properties"] for case in cases] == [
        [],
        ["failure"],
        ["error"],
        ["skipped"],
        ["skipped"],
    ]
    (failure,) = cases[1].findall("failure")
    assert (failure.attrib["message"], failure.text) == ("is wrong", "is wrong\nand late")
    (error,) = cases[2].findall("error")
    assert (error.attrib["type"], error.attrib["message"]) == ("ValueError", "ValueError: boom")
    assert [each.attrib["message"] for each in suite.iter("skipped")] == [
        "no network",
        "failed as expected: issue 7",
    ]
    assert "pass rate" in (suite.findtext("system-err") or "")
    assert properties(suite)["engine"] == "light"


def test_properties_say_what_a_run_took() -> None:
    outcome = CaseOutcome(
        "a",
        status=Status.PASSED,
        tags=["x", "y"],
        tokens=Tokens(10, 0, 5),
        cost_usd=0.0025,
        scores=[
            MetricScore("m", MetricStatus.PASSED, 0.5),
            MetricScore("n", MetricStatus.NOT_EVALUATED),
        ],
    )
    (case,) = parsed(FluentEvalReport([outcome])).iter("testcase")
    assert properties(case) == {
        "tags": "x, y",
        "tokens": "15",
        "cost_usd": "0.0025",
        "score.m": "0.5 (passed)",
        "score.n": "none (not_evaluated)",
    }


def test_a_gate_that_fails_though_all_passed_is_told() -> None:
    outcome = CaseOutcome("a", status=Status.PASSED, cost_usd=2.0)
    root = parsed(FluentEvalReport([outcome], gate=Gate(max_cost_usd=1)))
    assert root.findtext("testsuite/system-err") == "the cost, $2.00, is above $1.00"
    assert properties(root)["ok"] == "false"


@given(ANYTHING, ANYTHING, st.sampled_from(Status))
def test_any_text_makes_xml(one: str, other: str, status: Status) -> None:
    outcome = CaseOutcome(
        one,
        2,
        status,
        [other],
        f"{other}: x",
        tags=[other],
        note=other,
        turns=[TurnOutcome(one, other)],
        scores=[MetricScore(one, MetricStatus.PASSED, 1.0)],
    )
    (case,) = parsed(FluentEvalReport([outcome], suite=other, model=one)).iter("testcase")
    assert case.attrib["name"].endswith(" (run 2)")


def test_hostile_texts_keep_what_can_be_shown() -> None:
    outcome = CaseOutcome(HOSTILE, status=Status.FAILED, reasons=[HOSTILE])
    (case,) = parsed(FluentEvalReport([outcome])).iter("testcase")
    assert case.findtext("failure") == "]]><x a=\"'&\ufffd\n\t&amp;é😀"
    assert len(case.findall("failure")) == 1


def test_long_texts_are_cut_with_a_note() -> None:
    long = "x" * 1_000_000
    outcome = CaseOutcome(
        "a",
        status=Status.FAILED,
        reasons=[long],
        turns=[TurnOutcome(long, long) for _ in range(30)],
    )
    text = FluentEvalReport([outcome]).to_junit()
    assert len(text) < 100_000
    assert "990,000 more characters" in text
    assert "and 20 more turns" in text


def test_a_report_of_nothing_is_xml() -> None:
    root = parsed(FluentEvalReport([], duration_s=float("nan")))
    assert root.attrib["tests"] == "0"
    assert root.attrib["time"] == "0.000"
    assert root.findtext("testsuite/system-err") == "no case was run"
