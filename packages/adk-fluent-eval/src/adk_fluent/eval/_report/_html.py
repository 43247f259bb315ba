"""The report as one page of HTML, which loads nothing and trusts nothing that a model said."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._report._documents import document, environment
from adk_fluent.eval._text import plain
from adk_fluent.extend import clean, one_line, script_source, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from adk_fluent.eval._report._figures import ReportFigures

_PACKAGE: Final = "adk_fluent.eval._report"
_TEMPLATE: Final = "report.html.j2"
_LONG: Final = 20_000  # characters of a text
_SHORT: Final = 200  # and without room
_ROOM: Final = 40_000_000  # characters of transcripts in a page
_ROOM_OF_RUN: Final = 1_000_000
_ITEMS: Final = 200  # of a list
_BINS: Final = 20
_LARGEST: Final = 1e300  # score that is drawn
_WORST_FIRST: Final = (Status.ERROR, Status.FAILED, Status.PASSED, Status.XFAILED, Status.SKIPPED)


def html_page(report: ReportFigures, baseline: ReportFigures | None = None) -> Iterator[str]:
    """Return a report as a page, in pieces; the same report gives the same page.

    Args:
        report: What is shown.
        baseline: What it is compared with; None is the report's own baseline.
    """
    before = report.baseline if baseline is None else baseline
    changes: dict[str, str] = {}
    lines: list[str] = []
    if before is not None:
        compared = report.compare(before)
        document_lines = document("comparison.md.j2", made=compared).splitlines()
        lines = [each.removeprefix("- ") for each in document_lines]
        changes |= dict.fromkeys(compared.added, "added")
        changes |= {each.id: "improved" for each in compared.improved}
        changes |= {each.id: "regressed" for each in compared.regressed}
    page = _Page()
    made = environment(page.text, json=page.json, some=page.some, line=one_line)
    source = files(_PACKAGE).joinpath(_TEMPLATE).read_text("utf-8")
    script = source.partition("<script>")[2].partition("</script>")[0]
    per_tag, per_metric = report.per_tag, report.per_metric
    return made.get_template(_TEMPLATE).generate(
        page=page,
        report=report,
        runs=page.each(report.outcomes),
        per_tag=per_tag,
        per_metric=per_metric,
        tags={name: number for number, name in enumerate(per_tag)},
        metrics={name: number for number, name in enumerate(per_metric)},
        flaky={*report.flaky},
        lines=lines,
        changes=changes,
        before=None if before is None else {each.key: each for each in before.outcomes},
        histogram=histogram,
        script_source=script_source(script),
    )


class Histogram(NamedTuple):
    """Scores of a metric in equal bins, as the page draws them.

    Attributes:
        bars: Left edge and height of each bin that is not empty, in percent.
        low: The lowest value.
        high: The highest value.
        mark: The threshold's place, in percent; None without one in the range.
    """

    bars: list[tuple[float, float]]
    low: float
    high: float
    mark: float | None


def histogram(
    values: Iterable[float | None], mark: float | None = None, unit: str = ""
) -> Histogram | None:
    """Return the bins of some scores; None if there are fewer than two to draw."""
    known = [each for each in values if each is not None and abs(each) < _LARGEST]
    if len(known) < 2:  # nothing to see in one
        return None
    low, high = min(known), max(known)
    if not unit:  # shares, with room for others
        low, high = min(low, 0.0), max(high, 1.0)
    if low == high:
        return None
    span = high - low
    counts = Counter(min(int((each - low) / span * _BINS), _BINS - 1) for each in known)
    most = max(counts.values())
    bars = [(n * 100 / _BINS, count * 100 / most) for n, count in sorted(counts.items())]
    place = None if mark is None or not low <= mark <= high else (mark - low) / span * 100
    return Histogram(bars, low, high, place)


@dataclass(slots=True)
class _Page:
    """The room of a page: long texts and lists are cut."""

    _left: int = field(default_factory=lambda: _ROOM)
    _left_of_run: int = _ROOM_OF_RUN
    cut: bool = False

    def each(self, outcomes: Iterable[CaseOutcome]) -> Iterator[CaseOutcome]:
        """Yield the runs, those that did not pass first: to them belongs the room."""
        for each in sorted(outcomes, key=lambda it: _WORST_FIRST.index(it.status)):
            self._left_of_run = _ROOM_OF_RUN
            yield each

    @property
    def full(self) -> bool:
        """Whether there is no more room, not even for short texts."""
        return self._left < -_ROOM // 2

    # --- filters -------------------------------------------------------------------------------

    def text(self, value: object) -> str:
        """Return a text for the page: without control characters, and as long as there is room."""
        given = str(value)
        limit = _LONG if min(self._left, self._left_of_run) > 0 else _SHORT
        self.cut |= len(given) > limit
        shown = clean(shorten(given, limit))
        self._left -= len(shown)
        self._left_of_run -= len(shown)
        return shown

    def json(self, value: object) -> str:
        """Return plain data as indented JSON; a text as it is."""
        if isinstance(value, str):
            return self.text(value)
        return self.text(json.dumps(plain(value), indent=2, ensure_ascii=False))

    def some(self, values: Sequence[Any]) -> list[Any]:
        """Return the first items of a list."""
        self.cut |= len(values) > _ITEMS
        return list(values[:_ITEMS])
