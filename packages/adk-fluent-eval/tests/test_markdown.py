"""A report as Markdown, and in the summary of a job of GitHub's."""

from __future__ import annotations

import html
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from adk_fluent.eval import (
    CaseOutcome,
    EvalFileError,
    FluentEvalReport,
    MetricScore,
    MetricStatus,
    Status,
    Tokens,
)
from adk_fluent.eval._report._github import LIMIT, fitting
from adk_fluent.eval._report._markdown_words import code, table, text
from adk_fluent.eval._report._text import clean, encodable, one_line, shorten
from adk_fluent.eval._report._words import NONE

if TYPE_CHECKING:
    from pathlib import Path

MARKDOWN = MarkdownIt("commonmark").enable(["table", "strikethrough"])  # with raw HTML, as GitHub

HOSTILE = (
    "a | b\n| c | d |\n\n# head\r\n```\ncode\n```\n<script>alert(1)</script> &lt;b&gt; [x](http://e)"
    " ![i](http://e/i.png) **b** _i_ ~~s~~ @me me@e.org #12 https://evil.example www.evil.example"
    " \\| \\` ` `` \x1b[31m \u202eabc \ud800 $x$ {{ y }}"
)
#: Made of what Markdown is made of, to find what gets through.
NASTY = st.text(alphabet="|`\\<>&*_~[]()!#@$:/w.-+=1a \n\t\r'\"", max_size=30)
ANY = NASTY | st.text(alphabet=st.characters(), max_size=30)


class Shown(HTMLParser):
    """What a reader sees, and of which elements it is made."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        assert not attrs or tag in {"td", "th"}, (tag, attrs)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    def text(self) -> str:
        return "".join(self.texts).replace("\u200b", "").strip()


def report(*outcomes: CaseOutcome, **fields: Any) -> FluentEvalReport:
    return FluentEvalReport(outcomes, started_at=datetime(2030, 1, 2, 3, 4, tzinfo=UTC), **fields)


def failed(id: str, *reasons: str, **fields: Any) -> CaseOutcome:
    return CaseOutcome(id, status=Status.FAILED, reasons=list(reasons), **fields)


# --- words ---------------------------------------------------------------------------------------


@given(ANY)
def test_a_text_shows_as_it_is(given_: str) -> None:
    shown = Shown(MARKDOWN.render(f"- x {text(given_)} y"))
    assert set(shown.tags) == {"ul", "li"}
    assert shown.text() == f"x {one_line(given_, 500)} y"


@given(ANY)
def test_a_name_shows_as_it_is(given_: str) -> None:
    shown = Shown(MARKDOWN.render(f"- x {code(given_)} y"))
    assert set(shown.tags) <= {"ul", "li", "code"}
    name = one_line(given_, 120) or NONE
    assert "".join(shown.text().split()) == "".join(f"x{name}y".split())


@given(st.lists(st.tuples(ANY, ANY), min_size=1, max_size=4))
def test_a_table_stays_a_table(rows: list[tuple[str, str]]) -> None:
    lines = table(("A", "B:"), ((code(one), text(other) or NONE) for one, other in rows))
    shown = Shown(MARKDOWN.render("\n".join(lines)))
    assert shown.tags.count("table") == 1
    assert shown.tags.count("td") == 2 * len(rows)
    assert set(shown.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}


@given(ANY)
def test_nobody_is_called_and_nothing_is_linked(given_: str) -> None:
    assert not re.search(r"@\w|#\w|://|www\.", html.unescape(text(given_)))


def test_long_tables_are_cut_with_a_note() -> None:
    lines = table(("A",), ((str(n),) for n in range(250)))
    assert lines[-2] == "*and 150 more*"
    assert len(lines) == 2 + 100 + 3


@given(ANY)
def test_cleaned_texts_can_be_written_and_cleaned_again(given_: str) -> None:
    once = clean(given_)
    once.encode()
    assert clean(once) == once
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", once)


@given(st.text(alphabet=st.characters()))
def test_encodable_changes_only_what_has_no_bytes(given_: str) -> None:
    made = encodable(given_)
    made.encode()
    if not re.search("[\ud800-\udfff]", given_):
        assert made == given_


def test_shortening_says_how_much_is_left_out() -> None:
    assert shorten("abc", 3) == "abc"
    assert shorten("x" * 1_500, 3) == "xxx… (1,497 more characters)"
    assert one_line("a\n b\x00" + "c" * 10, 5) == "a b… (10 more characters)"


# --- the page ------------------------------------------------------------------------------------


def full() -> FluentEvalReport:
    score = MetricScore("tool_trajectory_avg_score", MetricStatus.PASSED, 0.5, 0.8)
    return report(
        CaseOutcome("a", 1, Status.PASSED, tags=["t"], scores=[score], cost_usd=0.5),
        CaseOutcome(
            "a", 2, Status.FAILED, ["r1", "r2"], None, "my bill", ["t"], tokens=Tokens(5, 1, 2, 3)
        ),
        CaseOutcome("b", 1, Status.ERROR, error="ValueError: boom"),
        CaseOutcome("c", 1, Status.SKIPPED),
        CaseOutcome("d", 1, Status.XFAILED),
        suite="desk",
        model="model-1",
        engine="light",
        adk_version="2.13.0",
        notes=["a note"],
        duration_s=1.25,
    )


def test_the_page_has_all_of_it() -> None:
    page = full().to_markdown()
    for line in (
        "# ❌ Evaluation: desk",
        "- **pass rate 33.3% (1 of 3 runs) is below 100%**",
        "- a note",
        "| Pass rate | **33.3%** (6.1% to 79.2% with 95% confidence) |",
        "| Passed | 1 of 3 runs |",
        "| Failed as expected | 1 |",
        "| Tokens | 10 (5 prompt, 1 of them cached; 2 output; 3 thoughts) |",
        "| Cost | $0.50, 1 run not known |",
        "| Model | `model-1` |",
        "| Run | 2030-01-02 03:04 UTC engine `light` google-adk `2.13.0` |",
        "## 2 runs not passed",
        "- ❌ `a` run 2: my bill",
        "  - r1",
        "- 💥 `b`",
        "  - ValueError: boom",
        "## 1 flaky case",
        "| `a` | 1 of 2 |",
        "## Tags",
        "## Metrics",
        f"| `tool_trajectory_avg_score` | 0.5 | 0.5 | 0.5 | {NONE} | ≥ 0.8 | 1 | 0 | 0 |",
    ):
        assert line in page.splitlines(), line
    assert "baseline" not in page
    assert page == full()._repr_markdown_()


def test_a_page_of_passes_is_short() -> None:
    page = report(CaseOutcome("a", status=Status.PASSED)).to_markdown()
    assert page.startswith("# ✅ Evaluation: suite\n\n| Summary |")
    assert "##" not in page
    assert "| Cost | not known |" in page


def test_a_page_of_nothing() -> None:
    assert "- **no case was run**" in report().to_markdown()


def test_the_comparison_is_shown_if_there_is_a_baseline() -> None:
    before = report(CaseOutcome("a", status=Status.PASSED))
    now = report(failed("a", "is wrong"))
    given_ = now.to_markdown(before)
    assert "## Compared with the baseline" in given_
    assert "| `a` | passed (1 of 1) | failed (0 of 1) | is wrong |" in given_
    now.baseline = before
    assert "### Got worse: 1 case" in now.to_markdown()


def test_hostile_output_is_shown_and_does_nothing() -> None:
    score = MetricScore(HOSTILE, MetricStatus.PASSED, 0.5)
    before = report(CaseOutcome(HOSTILE, status=Status.PASSED))
    page = report(
        failed(HOSTILE, HOSTILE, input=HOSTILE, tags=[HOSTILE], scores=[score]),
        CaseOutcome(HOSTILE, 2, Status.PASSED),
        suite=HOSTILE,
        model=HOSTILE,
        engine=HOSTILE,
        adk_version=HOSTILE,
        notes=[HOSTILE],
    ).to_markdown(before)
    page.encode()
    shown = Shown(MARKDOWN.render(page))
    plain = {"h1", "h2", "h3", "ul", "li", "p", "strong", "em", "code"}
    assert set(shown.tags) <= plain | {"table", "thead", "tbody", "tr", "th", "td"}
    assert not re.search(r"@me|@e\.org|#12|://|www\.", html.unescape(page))
    assert "<script>alert(1)</script>" in shown.text()


def test_long_texts_and_many_outcomes_are_cut_with_notes() -> None:
    long = "x" * 1_000_000
    page = report(*(failed(f"c{n}", *[long] * 9, input=long) for n in range(300))).to_markdown()
    assert "999,500 more characters" in page
    assert "- *and 250 more*" in page
    assert "*and 4 more reasons*" in page
    assert len(page) < 200_000


# --- GitHub --------------------------------------------------------------------------------------


def test_the_summary_is_added_to_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "summary.md"
    path.write_text("before", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(path))
    assert full().github_summary() is True
    assert path.read_text(encoding="utf-8") == f"before\n\n{full().to_markdown()}"
    other = tmp_path / "other.md"
    assert full().github_summary(other) is True
    assert other.read_text(encoding="utf-8").strip() == full().to_markdown().strip()


@pytest.mark.parametrize("value", [None, ""])
def test_without_a_summary_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    if value is not None:
        monkeypatch.setenv("GITHUB_STEP_SUMMARY", value)
    assert full().github_summary() is False


def test_the_summary_keeps_to_the_limit_of_github(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("x" * (LIMIT - 700))
    assert full().github_summary(path) is True
    found = path.read_text(encoding="utf-8")
    assert len(found.encode()) <= LIMIT
    assert "# ❌ Evaluation: desk" in found
    assert found.endswith("The report's file has it all.*\n")
    path.write_text("x" * (LIMIT - 10))
    assert full().github_summary(path) is False
    path.write_text("x" * (LIMIT + 10))
    assert full().github_summary(path) is False
    assert path.stat().st_size == LIMIT + 10


@given(st.text(max_size=300), st.integers(-5, 800))
def test_a_page_is_cut_to_its_room(page: str, room: int) -> None:
    page = encodable(page)
    found = fitting(page, room)
    found.decode()
    assert len(found) <= max(room, 0)
    if len(page.encode()) <= room:
        assert found == page.encode()


def test_a_summary_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none" / "s.md", "a\0b"):
        with pytest.raises(EvalFileError, match="cannot be written"):
            full().github_summary(place)
