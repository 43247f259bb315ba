"""The report as one page of HTML, which loads nothing and trusts nothing that a model said."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections import Counter
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.eval._outcome import CaseOutcome, MetricStatus, Status
from adk_fluent.eval._report._documents import document, environment, plain_line
from adk_fluent.eval._text import clean, shorten

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
_WORST_FIRST: Final = (Status.ERROR, Status.FAILED, Status.PASSED, Status.XFAILED, Status.SKIPPED)
_SIGNS: Final = dict(zip(_WORST_FIRST, "!✗✓~»", strict=True))
_MET: Final = {MetricStatus.PASSED: "✓", MetricStatus.FAILED: "✗", MetricStatus.NOT_EVALUATED: "!"}


def html_page(report: ReportFigures, baseline: ReportFigures | None = None) -> Iterator[str]:
    """Return a report as a page, in pieces; the same report gives the same page.

    Args:
        report: What is shown.
        baseline: What it is compared with; None is the report's own baseline.
    """
    page = _Page(report, report.baseline if baseline is None else baseline)
    made = environment(page.text, json=page.json, some=page.some, line=plain_line)
    source = files(_PACKAGE).joinpath(_TEMPLATE).read_text("utf-8")
    script = source.partition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return made.get_template(_TEMPLATE).generate(
        page=page,
        report=report,
        script_hash=digest,
        signs=_SIGNS,
        met=_MET,
        tags={name: number for number, name in enumerate(report.per_tag)},
        metrics={name: number for number, name in enumerate(report.per_metric)},
        flaky={*report.flaky},
    )


@dataclass(frozen=True, slots=True)
class Histogram:
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


def histogram(values: Iterable[float | None], mark: float | None, unit: str) -> Histogram | None:
    """Return the bins of some scores; None if there are fewer than two to draw."""
    known = [each for each in values if each is not None and math.isfinite(each)]
    if len(known) < 2:  # nothing to see in one
        return None
    low, high = min(known), max(known)
    if not unit:  # shares, with room for others
        low, high = min(low, 0.0), max(high, 1.0)
    span = high / 2 - low / 2  # half of it, for the whole may overflow
    if span <= 0:
        return None
    counts = Counter(min(int((each / 2 - low / 2) / span * _BINS), _BINS - 1) for each in known)
    most = max(counts.values())
    bars = [(n * 100 / _BINS, count * 100 / most) for n, count in sorted(counts.items())]
    inside = mark is not None and low <= mark <= high
    return Histogram(
        bars, low, high, (mark / 2 - low / 2) / span * 100 if inside and mark is not None else None
    )


@dataclass(slots=True)
class _Page:
    """What the template asks for."""

    report: ReportFigures
    baseline: ReportFigures | None
    _left: int = field(default_factory=lambda: _ROOM)
    _left_of_run: int = _ROOM_OF_RUN
    cut: bool = False
    lines: list[str] = field(default_factory=list[str])
    changes: dict[str, str] = field(default_factory=dict[str, str])
    before: dict[tuple[str, int], CaseOutcome] = field(
        default_factory=dict[tuple[str, int], CaseOutcome]
    )

    def __post_init__(self) -> None:
        if self.baseline is None:
            return
        compared = self.report.compare(self.baseline)
        self.before = {each.key: each for each in self.baseline.outcomes}
        lines = document("comparison.md.j2", made=compared).splitlines()
        self.lines = [each.removeprefix("- ") for each in lines]
        self.changes = dict.fromkeys(compared.added, "added")
        self.changes |= {each.id: "improved" for each in compared.improved}
        self.changes |= {each.id: "regressed" for each in compared.regressed}

    @property
    def stack(self) -> Iterator[tuple[Status, str, int, float, float]]:
        """Each status with its sign, runs, and left edge and width in percent."""
        counts, left = self.report.counts, 0.0
        total = sum(counts.values()) or 1
        for status, sign in _SIGNS.items():
            if counts[status]:
                width = counts[status] * 100 / total
                yield status, sign, counts[status], left, width
                left += width

    @property
    def charts(self) -> Iterator[tuple[str, Histogram | None]]:
        """Each metric with the histogram of its scores."""
        scores: dict[str, list[float | None]] = {}
        for outcome in self.report.outcomes:
            for each in outcome.scores if outcome.status.counts else ():
                scores.setdefault(each.name, []).append(each.score)
        for name, each in self.report.per_metric.items():
            yield name, histogram(scores.get(name, ()), each.threshold, each.unit)

    @property
    def times(self) -> Histogram | None:
        """The histogram of the durations of runs."""
        return histogram((each.duration_s for each in self.report.outcomes), None, "s")

    @property
    def runs(self) -> Iterator[CaseOutcome]:
        """The runs, those that did not pass first: to them belongs the room."""
        for each in sorted(self.report.outcomes, key=lambda it: _WORST_FIRST.index(it.status)):
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
        try:
            return self.text(json.dumps(value, indent=2, ensure_ascii=False, default=repr))
        except (RecursionError, TypeError, ValueError):
            return f"({type(value).__name__} that cannot be written as JSON)"

    def some(self, values: Sequence[Any]) -> list[Any]:
        """Return the first items of a list."""
        self.cut |= len(values) > _ITEMS
        return list(values[:_ITEMS])

    def share(self, value: float | None, of: float | None = 1.0) -> float:
        """Return a score's place on a scale of 0 to `of`, in percent."""
        if value is None or not of or not math.isfinite(value) or not math.isfinite(of):
            return 0.0
        return max(0.0, min(100.0, value / of * 100))
