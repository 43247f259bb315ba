"""The HTML report: what it has, that nothing in it can act, and how it is in a browser."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any, Final

import pytest
from eval_desk import outcome, report

from adk_fluent.eval import (
    EvalError,
    EvalFileError,
    Finding,
    FluentEvalReport,
    MetricScore,
    MetricStatus,
    Step,
    ToolUse,
    TurnOutcome,
)
from adk_fluent.eval._report._html import histogram, html_page
from adk_fluent.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adk_fluent.eval import CaseOutcome

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER: Final = next(filter(None, map(shutil.which, _NAMES)), None)

HOSTILE: Final = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\" onload='alert(1)' x=\"",
    "{{ 7 * 7 }}{% raw %}",
    "</style></textarea></title><iframe src='http://example.com'>",
    "<!--",
    "&lt;b&gt;",
    "javascript:alert(1)",
    "\x00\x1b[31m\u202e\ud800",
)


class Parsed(HTMLParser):
    """A page's elements and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self._words: list[str] = []
        self._inside = ""
        self.feed(page)
        self.close()
        self.text = "".join(self._words)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "script":
            self.scripts.append(data)
        elif self._inside != "style":
            self._words.append(data)


def parsed(made: FluentEvalReport, baseline: FluentEvalReport | None = None) -> Parsed:
    page = "".join(html_page(made, baseline))
    page.encode()  # every character can be written
    return Parsed(page)


def full_outcome(text: str = "hm", id: str = "a", status: str = "failed") -> CaseOutcome:
    """An outcome with every field in use, each text with `text` in it."""
    use = ToolUse("find " + text, {text: text}, {"out": text}, "", text, mocked=True)
    steps = [
        Step(text, text, thought=True),
        Step(text, tool=use, inside=text),
        Step(text, tool=ToolUse("x", error=f"ValueError: {text}")),
        Step(text, state={text: text}, error=text),
    ]
    findings = [Finding(text, False, [text], {"was": text}, text, 1), Finding("met", True)]
    score = MetricScore(text, MetricStatus.FAILED, 0.5, 1.0, False, text, findings, [0.5, None])
    return outcome(
        id,
        status,
        reasons=[text],
        error=text,
        note=text,
        input=text,
        tags=[text],
        metadata={text: text},
        scores=[score],
        turns=[TurnOutcome(text, "answer " + text, steps, 1.5, Usage(5, 1, 2, 3), 2)] * 2,
        state={text: text},
        tokens=Usage(1000, 100, 20, 3),
        cost_usd=0.25,
        eval_tokens=Usage(77),
        duration_s=2.5,
        target_node=text,
        stop_reason=text,
        session_id=text,
    )


def test_it_has_all_of_a_run() -> None:
    made = report(full_outcome(), outcome("b", input="fine"), notes=["take note"])
    text = parsed(made).text
    for each in (
        *("50% of 2 runs passed", "pass rate 50% (1 of 2 runs) is below 100%", "take note", "fine"),
        *("1,000", "2.5 s", "$0.25", "judges' tokens", "77"),
        *("answer hm", "hm thought", "find hm", "mocked", "ValueError: hm", "wrote to the state"),
        *("expected", '"was": "hm"', "State at the end", "Metadata of the case"),
        *("Turn 2 · 1.5 s · 10 tokens · 2 model calls", "conversation ended by", "(inside hm)"),
    ):
        assert re.sub(r"\s+", " ", each) in re.sub(r"\s+", " ", text), each


def test_it_filters_by_status_tag_metric_and_change() -> None:
    before = report(outcome("a", tags=["t"]), outcome("b", "failed"))
    missed = MetricScore("n", MetricStatus.NOT_EVALUATED)
    now = report(
        outcome("b"), outcome("a", "failed", tags=["u", "t"], scores=[missed]), outcome("c")
    )
    page = parsed(now, before)
    cases = [attrs for tag, attrs in page.tags if (tag, attrs.get("class")) == ("details", "case")]
    keys = ("data-s", "data-t", "data-m", "data-c")
    assert [[attrs[key] for key in keys] for attrs in cases] == [
        ["failed", " 0 1 ", " 1 ", "regressed"],  # what did not pass comes first
        ["passed", "  ", "  ", "improved"],
        ["passed", "  ", "  ", "added"],
    ]
    fields = [attrs["name"] for tag, attrs in page.tags if tag in {"select", "input"}]
    assert fields == ["s", "t", "m", "c", "q"]
    assert "2 cases compared: 1 regressed, 1 improved" in page.text
    assert ("li", {"class": "regressed"}) in page.tags


def test_the_baseline_of_the_run_is_the_default() -> None:
    before = report(outcome("a", turns=[TurnOutcome("hi", "the old answer")]))
    now = report(outcome("a", turns=[TurnOutcome("hi", "the new one")]), baseline=before)
    assert "the old answer" in parsed(now).text
    assert "Compared with the baseline" not in parsed(before).text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_stay_texts(text: str) -> None:
    made = report(full_outcome(text, id=text), notes=[text], engine=text, adk_version=text)
    made.suite = text
    page, plain = parsed(made, made), parsed(report(full_outcome()), report(full_outcome()))
    assert {tag for tag, _ in page.tags} <= {tag for tag, _ in plain.tags}
    names = {name for _, attrs in plain.tags for name in attrs}
    assert {name for _, attrs in page.tags for name in attrs} <= names
    assert not any(name.startswith("on") or name in {"src", "href"} for name in names)
    assert page.scripts == plain.scripts
    assert len(page.scripts) == 1
    if text.isprintable():
        assert page.text.count(text) > 20
    else:
        assert not re.search("[\x00\x1b\u202e]", page.text)


def test_the_policy_allows_its_own_script_alone() -> None:
    page = parsed(report(outcome("a")))
    policy = next(str(attrs["content"]) for _, attrs in page.tags if "http-equiv" in attrs)
    digest = base64.b64encode(hashlib.sha256(page.scripts[0].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}';" in policy


def test_reports_without_anything() -> None:
    assert "No run counts" in parsed(report()).text
    assert "later" in parsed(report(outcome("a", "skipped", note="later"))).text
    assert "interrupted" in parsed(report(outcome("a"), interrupted=True)).text


def test_values_that_json_has_no_words_for() -> None:
    deep: list[Any] = []
    deep.append(deep)
    nan = MetricScore("m", MetricStatus.FAILED, float("nan"), float("inf"))
    made = outcome("a", state={"x": deep}, scores=[nan], cost_usd=float("nan"), duration_s=1e308)
    assert '"..."' in parsed(report(made, outcome("b"))).text


def test_large_transcripts_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [Step("clerk", "x" * 30_000)] * 300
    made = report(
        *(outcome(f"c{n}", "failed", turns=[TurnOutcome("hi", "y", many)]) for n in range(4)),
        outcome("p", turns=[TurnOutcome("hi")]),
    )
    monkeypatch.setattr("adk_fluent.eval._report._html._ROOM", 1_500_000)
    text = parsed(made).text
    assert len(text) < 3_000_000
    assert "… (10,000 more characters)" in text
    assert "and 100 steps more" in text
    assert "Long texts and lists are cut here" in text
    assert "Long texts" not in parsed(report(outcome("a"))).text


def test_what_has_no_room_is_left_out_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adk_fluent.eval._report._html._Page.full", True)
    text = parsed(report(outcome("a", turns=[TurnOutcome("hi", "not there")]))).text
    assert "There is no room left for this transcript" in text
    assert "not there" not in text


@pytest.mark.full
def test_a_hundred_megabytes_of_transcripts(tmp_path: Path) -> None:
    steps = [Step("clerk", "word " * 4_000) for _ in range(50)]
    turns = [TurnOutcome("hi", "bye", steps)]
    report(*(outcome(f"c{n}", turns=turns) for n in range(100))).to_html(tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 60_000_000


def test_histograms() -> None:
    assert histogram([0.5], None, "") is None
    assert histogram([2.0, 2.0, float("nan"), None], None, "s") is None
    found = histogram([0.0, 0.04, 0.5, 1.0], 0.8, "")
    assert found is not None
    assert found.bars == [(0.0, 100.0), (50.0, 50.0), (95.0, 50.0)]
    assert found.mark == pytest.approx(80.0)
    assert histogram([-1.7e308, 1.7e308], None, "s") is None


def test_files(tmp_path: Path) -> None:
    made = report(outcome("a"))
    made.to_html(tmp_path / "deep" / "r.html")
    assert (tmp_path / "deep" / "r.html").read_text("utf-8") == "".join(html_page(made))
    with pytest.raises(EvalFileError, match="cannot be written"):
        made.to_html(tmp_path)
    with pytest.raises(EvalError, match="a baseline is a FluentEvalReport"):
        made.to_html(tmp_path / "r.html", baseline="main.json")  # pyright: ignore[reportArgumentType]


# --- in a browser --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright: Any = pytest.importorskip(
        "playwright.sync_api", reason="the group `browser` is not installed"
    )
    if BROWSER is None:
        pytest.skip(f"there is none of {', '.join(_NAMES)} on PATH")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


def _open(browser: Any, path: Path, **options: Any) -> tuple[Any, list[Any]]:
    """The page, and what it complains of or asks for."""
    tab = browser.new_page(**options)
    seen: list[Any] = []

    def note(what: Any) -> None:
        seen.append(what)

    for event in ("console", "pageerror", "dialog", "request"):
        tab.on(event, note)
    tab.goto(path.as_uri())
    return tab, seen


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_filters_in_a_browser(browser: Any, tmp_path: Path, scheme: str) -> None:
    path = tmp_path / "r.html"
    outcomes = [full_outcome(text, f"h{n}") for n, text in enumerate(HOSTILE)]
    report(*outcomes, *(outcome(f"p{n}", tags=["t"]) for n in range(5))).to_html(path)
    tab, seen = _open(browser, path, color_scheme=scheme, viewport={"width": 390, "height": 800})
    shown = tab.locator(".case:visible")
    assert shown.count() == len(HOSTILE) + 5
    tab.select_option("select[name=s]", "passed")
    assert shown.count() == 5
    assert tab.inner_text("#found") == "5 of 14 shown"
    tab.click("#reset")
    tab.click("button[data-set=t] >> nth=-1")
    assert shown.count() == 5
    tab.click("#reset")
    tab.select_option("select[name=m]", label="javascript:alert(1)")
    assert shown.count() == 1
    tab.click("#reset")
    tab.fill("input[name=q]", "H3")
    shown.locator("summary").click()
    assert tab.locator("pre:visible").count() > 5
    assert tab.evaluate("document.documentElement.scrollWidth") == 390  # nothing sticks out
    ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert ground == {"light": "rgb(246, 247, 248)", "dark": "rgb(17, 20, 23)"}[scheme]
    assert [getattr(each, "url", each) for each in seen] == [
        path.as_uri()
    ]  # no dialog, no complaint, no request


@pytest.mark.full
def test_five_thousand_runs_in_a_browser(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    report(
        *(full_outcome("some text", f"c{n}", "failed" if n % 9 else "error") for n in range(5000))
    ).to_html(path)
    assert path.stat().st_size < 80_000_000
    tab, _ = _open(browser, path)
    tab.select_option("select[name=s]", "error")
    assert tab.inner_text("#found") == "556 of 5,000 shown"
    took = tab.evaluate(
        "() => { const began = performance.now();"
        " document.querySelector('#reset').click(); document.body.offsetHeight;"
        " return performance.now() - began; }"
    )
    assert took < 5000  # milliseconds; a tenth of it where nothing else runs
