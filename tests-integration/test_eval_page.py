"""The report of an evaluation in a browser: filters, links, transcripts, and nothing that is run.

Pictures of it are kept in the directory that `ADK_FLUENT_PICTURES` names.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus

import pytest

from adk_fluent.eval._report._html import page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adk_fluent.eval._report._report import FluentEvalReport

playwright: Any = pytest.importorskip(
    "playwright.sync_api", reason="the group `browser` is not installed"
)

expect: Final = playwright.expect
ROOT: Final = Path(__file__).parents[1]
_NAMES: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER: Final = next(filter(None, map(shutil.which, _NAMES)), None)
PICTURES: Final = os.environ.get("ADK_FLUENT_PICTURES")
PATIENCE: Final = 30_000  # milliseconds

expect.set_options(timeout=PATIENCE)

pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"there is none of {', '.join(_NAMES)}")


def _samples() -> Any:
    """The reports that the tests of the wheel show, too."""
    path = ROOT / "packages" / "adk-fluent-eval" / "tests" / "report_samples.py"
    spec = spec_from_file_location("report_samples", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules.setdefault("report_samples", module_from_spec(spec))
    spec.loader.exec_module(module)
    return module


samples: Final = _samples()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER)
        yield opened
        opened.close()


class Page:
    """A report in front of somebody."""

    def __init__(self, tab: Any, file: Path) -> None:
        self.tab = tab
        self._file = file

    def go(self, fragment: str = "") -> None:
        self.tab.goto("about:blank")
        self.tab.goto(self._file.as_uri() + fragment)

    @property
    def fragment(self) -> str:
        return self.tab.evaluate("location.hash")

    def counts(self, text: str | re.Pattern[str]) -> None:
        """Waits until the line above the list says so."""
        expect(self.tab.locator("#found")).to_have_text(text)

    @property
    def details(self) -> Any:
        return self.tab.locator("#details")

    @property
    def list(self) -> Any:
        return self.tab.get_by_role("listbox")

    @property
    def rows(self) -> Any:
        return self.list.get_by_role("option")

    @property
    def ids(self) -> list[str]:
        return self.rows.locator(".id bdi").all_inner_texts()

    def choose(self, label: str, value: str) -> None:
        self.field(label).select_option(value)

    def field(self, label: str) -> Any:
        return self.tab.get_by_role("combobox", name=label, exact=True)

    def search(self, text: str) -> None:
        self.tab.get_by_role("searchbox").fill(text)

    def elements(self) -> int:
        return self.tab.evaluate("document.getElementsByTagName('*').length")

    def overflows(self) -> bool:
        return self.tab.evaluate("document.documentElement.scrollWidth > innerWidth")


@pytest.fixture
def show(
    browser: Any, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., Page]]:
    """Opens reports; whatever the browser complains of or asks for fails the test."""
    tabs: list[Any] = []
    complaints: list[str] = []
    asked: list[str] = []

    def open_(
        report: FluentEvalReport,
        baseline: FluentEvalReport | None = None,
        fragment: str = "",
        **context: Any,
    ) -> Page:
        file = tmp_path / f"{len(tabs)}.html"
        file.write_text(page(report, baseline), encoding="utf-8")
        context.setdefault("viewport", {"width": 1280, "height": 800})
        tab = browser.new_context(**context).new_page()
        tab.set_default_timeout(PATIENCE)
        for event, noted, where in (
            ("console", "text", complaints),
            ("pageerror", "message", complaints),
            ("dialog", "message", complaints),
            ("request", "url", asked),
        ):
            tab.on(event, _note(noted, where))
        tabs.append(tab)
        opened = Page(tab, file)
        opened.go(fragment)
        return opened

    yield open_
    for number, tab in enumerate(tabs):
        if PICTURES is not None:
            tab.screenshot(path=Path(PICTURES) / f"{request.node.name}-{number}.png")
        tab.context.close()
    assert complaints == []
    assert [url for url in asked if not url.startswith((tmp_path.as_uri(), "about:"))] == []


def _note(attribute: str, where: list[str]) -> Callable[[Any], None]:
    """Writes down what an event of the browser has in an attribute."""
    return lambda event: where.append(str(getattr(event, attribute)))


def _contrasts(tab: Any) -> list[list[Any]]:
    """Contrast of each text that is seen with what is behind it, and the text."""
    return tab.evaluate(
        """() => {
          const canvas = document.createElement("canvas");
          const paint = canvas.getContext("2d", {willReadFrequently: true});
          const back_of = (element) => rgb(getComputedStyle(element).backgroundColor);
          const rgb = (colour, under) => {
            paint.clearRect(0, 0, 1, 1);
            if (under) { paint.fillStyle = `rgb(${under})`; paint.fillRect(0, 0, 1, 1); }
            paint.fillStyle = colour; paint.fillRect(0, 0, 1, 1);
            return [...paint.getImageData(0, 0, 1, 1).data];
          };
          const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255;
            return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; });
            return .2126 * r + .7152 * g + .0722 * b; };
          const found = [];
          const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          for (let node; (node = walk.nextNode());) {
            const element = node.parentElement;
            if (!node.data.trim() || !element.checkVisibility()) continue;
            if (element.closest("script, style, noscript, title, :disabled, option")) continue;
            let behind = element;
            while (behind && back_of(behind)[3] === 0) behind = behind.parentElement;
            const back = back_of(behind ?? document.body).slice(0, 3);
            const front = rgb(getComputedStyle(element).color, back).slice(0, 3);
            const [one, other] = [light(front), light(back)].sort((a, b) => b - a);
            found.push([(one + .05) / (other + .05), node.data.trim().slice(0, 40)]);
          }
          return found;
        }"""
    )


# --- what is shown -----------------------------------------------------------------------------


def test_the_page_and_a_case(show: Callable[..., Page]) -> None:
    now, before = samples.pair()
    shown = show(now, before)
    assert shown.tab.title() == "Failed · support desk"
    shown.counts(f"{len(now.outcomes)} runs")
    missed = next(each for each in now.outcomes if each.status == "failed")
    shown.rows.filter(has_text=missed.id).first.click()
    shown.details.get_by_role("heading", name=missed.id).wait_for()
    text = shown.details.inner_text()
    assert missed.reasons[0] in text
    assert "argument amount is 125, not 12.5" in text
    assert missed.turns[0].input in text
    assert missed.turns[0].response in text
    assert '"note": "asked twice"' in text
    assert "The user writes about" not in text  # thoughts are folded
    shown.details.get_by_text("triage thought").first.click()
    shown.details.get_by_text("The user writes about").first.wait_for()
    shown.details.get_by_text("State at the end").click()
    shown.details.get_by_text("customer").wait_for()
    assert "Against the baseline" in text


def test_what_is_not_as_expected_is_marked_line_by_line(show: Callable[..., Page]) -> None:
    now, before = samples.pair()
    missed = next(each for each in now.outcomes if each.status == "failed")
    shown = show(now, before, f"#case={missed.id}&run={missed.run}")
    first = shown.details.locator(".check").first
    gone, added = first.locator(".gone"), first.locator(".added")
    assert ['"amount": 12.5' in each for each in gone.all_inner_texts()] == [True]
    assert '"amount": 125,' in added.all_inner_texts()[1]
    assert "missing:" in gone.first.inner_text()  # not by colour alone


def test_a_link_to_a_run(show: Callable[..., Page]) -> None:
    now = samples.lively()
    shown = show(now, fragment="#case=account-003&run=2")
    shown.details.get_by_role("heading", name="account-003").wait_for()
    current = shown.details.locator("[aria-current]")
    assert current.inner_text().startswith("Run 2")
    shown.details.get_by_role("link", name="Run 1").click()
    expect(current).to_contain_text("Run 1")
    assert shown.fragment.endswith("run=1")
    shown.tab.go_back()
    expect(current).to_contain_text("Run 2")
    assert shown.fragment.endswith("run=2")
    shown.details.get_by_role("button", name="All cases").click()
    assert shown.details.is_hidden()
    assert "case" not in shown.fragment


def test_a_link_to_nothing(show: Callable[..., Page]) -> None:
    now = samples.lively()
    shown = show(now, fragment="#case=nobody&run=x&tag=none&status=bad,failed&sort=9&%E0%A4%A")
    assert shown.details.is_hidden()
    failed = sum(each.status == "failed" for each in now.outcomes)
    shown.counts(f"{failed} of {len(now.outcomes)} runs")


# --- filters -----------------------------------------------------------------------------------


def test_filters_and_the_address(show: Callable[..., Page]) -> None:
    now, before = samples.pair()
    shown = show(now, before)
    shown.tab.get_by_role("button", name="failed", exact=False).first.click()
    shown.choose("Tag", "billing")
    failed = [each for each in now.outcomes if each.status == "failed" and "billing" in each.tags]
    shown.counts(f"{len(failed)} of {len(now.outcomes)} runs")
    assert shown.fragment == "#tag=billing&status=failed"
    shown.tab.reload()
    shown.counts(f"{len(failed)} of {len(now.outcomes)} runs")
    pressed = shown.tab.locator("[aria-pressed=true]")
    assert "failed" in pressed.inner_text()
    shown.tab.get_by_role("button", name="Clear filters").click()
    shown.counts(f"{len(now.outcomes)} runs")
    assert shown.fragment == ""


def test_the_words_of_a_search_all_have_to_be_there(show: Callable[..., Page]) -> None:
    now = samples.lively()
    shown = show(now)
    shown.search("invoice 1005")
    shown.counts(f"2 of {len(now.outcomes)} runs")
    assert set(shown.ids) == {"billing-005"}
    shown.search("invoice nowhere")
    shown.counts(f"0 of {len(now.outcomes)} runs")
    assert shown.rows.count() == 0


def test_filters_by_metric(show: Callable[..., Page]) -> None:
    now = samples.lively(60)
    name = "response_match_score"
    shown = show(now, fragment=f"#metric={name}")
    score = shown.field("Its score")
    assert score.is_enabled()
    score.select_option("failed")
    failed = [each for each in now.outcomes if (got := each.score(name)) and got.status == "failed"]
    assert 0 < len(failed) < len(now.outcomes)
    shown.counts(f"{len(failed)} of {len(now.outcomes)} runs")
    shown.choose("Metric", "")
    assert score.is_disabled()
    assert shown.fragment == ""


def test_filters_by_the_baseline_and_by_flaky_cases(show: Callable[..., Page]) -> None:
    now, before = samples.pair()
    compared = now.compare(before)
    shown = show(now, before)
    shown.choose("Baseline", "regressed")
    assert set(shown.ids) <= {each.id for each in compared.regressed}
    shown.counts(re.compile(f"^{2 * len(compared.regressed)} of "))
    shown.choose("Baseline", "added")
    assert set(shown.ids) == set(compared.added)
    shown.choose("Baseline", "")
    shown.choose("Runs", "1")
    shown.counts(re.compile(f"^{2 * len(now.flaky)} of "))


def test_links_of_the_summary_filter(show: Callable[..., Page]) -> None:
    now, before = samples.pair()
    shown = show(now, before)
    shown.tab.get_by_role("link", name="refund").click()
    expect(shown.field("Tag")).to_have_value("refund")
    refunds = [each for each in now.outcomes if "refund" in each.tags]
    shown.counts(f"{len(refunds)} of {len(now.outcomes)} runs")
    shown.tab.get_by_role("link", name="improved").click()
    expect(shown.field("Baseline")).to_have_value("improved")
    expect(shown.field("Tag")).to_have_value("")


def test_the_order(show: Callable[..., Page]) -> None:
    now = samples.lively(8, 1)
    shown = show(now, viewport={"width": 1280, "height": 2_600})  # all of them are drawn
    shown.choose("Order", "time")
    slowest = sorted(now.outcomes, key=lambda each: -each.duration_s)
    assert shown.ids == [each.id for each in slowest]
    shown.choose("Order", "suite")
    assert shown.ids == [each.id for each in now.outcomes]


def test_the_keyboard_is_enough(show: Callable[..., Page]) -> None:
    now = samples.lively(40, 1)
    shown = show(now, fragment="#sort=suite")
    shown.list.focus()
    for key in ("End", "Home", "ArrowDown", "ArrowDown", "ArrowUp"):
        shown.tab.keyboard.press(key)
    active = shown.list.get_attribute("aria-activedescendant")
    row = shown.tab.locator(f"#{active}")
    assert row.locator("bdi").inner_text() == now.outcomes[1].id
    assert row.get_attribute("aria-posinset") == "2"
    assert row.get_attribute("aria-setsize") == "40"
    shown.tab.keyboard.press("Enter")
    shown.details.get_by_role("heading", name=now.outcomes[1].id).wait_for()
    assert shown.details.evaluate("each => each === document.activeElement")
    shown.tab.keyboard.press("Escape")
    assert shown.details.is_hidden()
    assert shown.list.evaluate("each => each === document.activeElement")


# --- hostile texts -----------------------------------------------------------------------------


def test_nothing_of_what_models_say_is_run(show: Callable[..., Page]) -> None:
    now = samples.hostile()
    shown = show(now, now)
    for each in now.outcomes:
        shown.go(f"#case={quote_plus(each.id.encode('utf-8', 'replace'))}&run=1")
        place = samples.HOSTILE.index(each.id.split(" ", 1)[1])
        if shown.details.is_hidden():  # half a character is no part of an address
            shown.rows.nth(place).click()
        for folded in shown.details.locator("summary").all():
            folded.click()
        text = shown.details.inner_text()
        assert each.input.split("\x00")[0].split("\ud83d")[0].split("\u2028")[0].strip() in text
    assert shown.tab.evaluate("window.owned") is None
    assert shown.tab.locator("img, iframe, svg[onload], body script:not([type])").count() == 1
    assert "49" not in shown.tab.locator("main").inner_text()
    links = shown.tab.locator("a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)


def test_hostile_texts_without_a_script(show: Callable[..., Page]) -> None:
    shown = show(samples.hostile(), java_script_enabled=False)
    assert shown.tab.locator("noscript table tbody tr").count() == len(samples.HOSTILE)
    assert shown.tab.locator("img, svg[onload]").count() == 0
    assert shown.tab.locator(".needs-script:visible").count() == 0


def test_hostile_texts_as_links_to_tags(show: Callable[..., Page]) -> None:
    shown = show(samples.hostile())
    for place in range(len(samples.HOSTILE)):
        shown.tab.locator(".tags a").nth(place).click()
        expect(shown.field("Tag")).not_to_have_value("")
        shown.counts(re.compile("^1 of "))


# --- very many, very long ----------------------------------------------------------------------


def test_five_thousand_cases(show: Callable[..., Page]) -> None:
    now = samples.many(5_000)
    shown = show(now)
    shown.counts("5,000 runs")
    assert shown.elements() < 2_000
    shown.list.focus()
    shown.tab.keyboard.press("End")
    expect(shown.rows.last).to_have_attribute("aria-posinset", "5000")
    shown.tab.keyboard.press("Enter")
    shown.details.get_by_role("heading", level=3).wait_for()
    assert shown.elements() < 3_000
    shown.search("billing-4995")
    shown.counts("1 of 5,000 runs")
    assert shown.ids == ["billing-4995"]
    shown.rows.first.click()
    shown.details.get_by_role("heading", name="billing-4995").wait_for()
    assert shown.tab.locator("script[type='application/json']").count() > 5


def test_a_transcript_of_a_thousand_steps(show: Callable[..., Page]) -> None:
    steps = [samples.Step("clerk", f"word {at}") for at in range(1_000)]
    turn = samples.TurnOutcome("Hi " + "x" * 30_000, "word 999", steps)
    shown = show(samples.report(samples.outcome("long", turns=[turn])), fragment="#case=long&run=1")
    assert shown.details.locator(".said.agent").count() == 100
    cut = shown.details.locator(".cut").first.inner_text()
    assert cut == "10,003 more characters are left out here; the JSON report has all of them."
    for left in range(900, 0, -100):
        shown.details.get_by_role("button", name=f"Show more: {left} steps are left").click()
    assert shown.details.locator(".said.agent").count() == 1_000


# --- how it looks ------------------------------------------------------------------------------


@pytest.mark.parametrize("fragment", ["", "#case=refund-011&run=2"])
@pytest.mark.parametrize("width", [360, 768])
def test_narrow_screens(show: Callable[..., Page], width: int, fragment: str) -> None:
    shown = show(*samples.pair(), fragment, viewport={"width": width, "height": 740})
    assert not shown.overflows()
    assert shown.elements() < 2_500


def test_a_narrow_screen_with_hostile_texts(show: Callable[..., Page]) -> None:
    now = samples.hostile()
    now.outcomes[0].turns[0].response = "x" * 5_000
    shown = show(now, viewport={"width": 360, "height": 740})
    assert not shown.overflows()
    shown.rows.first.click()
    shown.details.get_by_role("heading", level=3).wait_for()
    assert shown.list.is_hidden()
    assert not shown.overflows()
    shown.details.get_by_role("button", name="All cases").click()
    assert shown.list.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read(show: Callable[..., Page], scheme: str) -> None:
    shown = show(*samples.pair(), "#case=refund-011&run=2", color_scheme=scheme)
    for folded in shown.details.locator("summary").all():
        folded.click()
    found = _contrasts(shown.tab)
    assert len(found) > 300
    assert [each for each in found if each[0] < 4.5] == []


def test_the_theme_can_be_chosen(show: Callable[..., Page]) -> None:
    shown = show(samples.lively(), color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = shown.tab.evaluate(background)
    shown.choose("Theme", "dark")
    dark = shown.tab.evaluate(background)
    assert dark != light
    shown.tab.reload()
    assert shown.tab.evaluate(background) == dark
    shown.choose("Theme", "")
    assert shown.tab.evaluate(background) == light


def test_paper_has_the_cases_that_are_left(show: Callable[..., Page]) -> None:
    now = samples.lively(30, 1)
    shown = show(now, fragment="#status=failed")
    shown.tab.emulate_media(media="print")
    shown.tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    failed = sum(each.status == "failed" for each in now.outcomes)
    assert shown.tab.locator("#paper tbody tr:visible").count() == failed
    assert shown.list.is_hidden()
    assert shown.tab.locator("#filters").is_hidden()
    shown.tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert shown.tab.locator("#paper tr").count() == 0


def test_everything_has_a_name(show: Callable[..., Page]) -> None:
    shown = show(*samples.pair(), "#case=refund-011&run=2")
    nameless = shown.tab.evaluate(
        """() => [
            ...document.querySelectorAll("button, a, select, input, [role=img], [role=group]")]
          .filter((each) => !(each.getAttribute("aria-label") || each.textContent.trim()
            || each.labels?.length)).map((each) => each.outerHTML)"""
    )
    assert nameless == []
    ids = shown.tab.evaluate("[...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))
    levels = shown.tab.evaluate(
        "[...document.querySelectorAll('h1,h2,h3,h4')].map((each) => +each.tagName[1])"
    )
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
