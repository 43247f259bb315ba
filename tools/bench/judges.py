"""What samples say about a goal."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import log
from typing import TYPE_CHECKING

from bench.stats import differences, estimate, flat, ratios

if TYPE_CHECKING:
    from bench.crew import Samples
    from bench.stats import Grouped

#: The columns of sides, and labels of cases that go there.
SIDES = ("ours", "adk", "mono")


@dataclass(slots=True)
class Finding:
    """A row's result.

    Attributes:
        cells: Column to text.
        ratio: How ours stands to what it is compared with.
        reached: Whether the goal is reached; None where there is none, or nothing to judge by.
        numbers: The figures behind it, in seconds or as factors.
    """

    cells: dict[str, str] = field(default_factory=dict[str, str])
    ratio: str = ""
    reached: bool | None = None
    numbers: dict[str, float] = field(default_factory=dict[str, float])


Judge = Callable[["Samples"], Finding]


def duration(seconds: float) -> str:
    """A time with three digits and its unit."""
    size = abs(seconds)
    for factor, unit in ((1e6, "us"), (1e3, "ms")):
        if size * factor < 999.5:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def shown(samples: Samples) -> Finding:
    """The medians of all cases, each in the column of its side."""
    finding = Finding()
    for label, groups in samples.seconds.items():
        seconds = estimate(groups).median
        finding.numbers[label] = seconds
        _put(finding, label, duration(seconds))
    for label, error in samples.failed.items():
        _put(finding, label, error.partition(":")[0])
    return finding


def _put(finding: Finding, label: str, text: str) -> None:
    side, _, more = label.partition(" ")
    text = f"{text} ({more})" if more else text
    known = finding.cells.get(side)
    finding.cells[side] = f"{known}, {text}" if known else text


def under(limit: float, *others: str, unless: str = "") -> Judge:
    """Ours takes less than that many seconds, and does not return `unless`.

    Args:
        limit: Seconds.
        *others: Labels to compare with; by default all that are not ours.
        unless: A result that misses the goal.
    """

    def judge(samples: Samples) -> Finding:
        finding = shown(samples)
        finding.reached = finding.numbers["ours"] < limit and samples.results["ours"] != unless
        _compare(finding, samples, *others)
        return finding

    return judge


def runs(samples: Samples) -> Finding:
    """Ours gets to the end."""
    finding = shown(samples)
    finding.reached = "ours" in samples.seconds
    return finding


def suite(limit: float) -> Judge:
    """A suite takes less than that many seconds; also says what a thousand tests take."""

    def judge(samples: Samples) -> Finding:
        finding = under(limit)(samples)
        passed = re.search(r"(\d+) passed", str(samples.results["ours"]))
        if passed:
            each = finding.numbers["ours"] / int(passed[1])
            finding.ratio = f"{passed[1]} tests, {duration(1000 * each)} a 1 000"
        return finding

    return judge


def at_most(factor: float, *others: str) -> Judge:
    """Ours takes at most that many times as long as the fastest of others, at 95 %."""

    def judge(samples: Samples) -> Finding:
        finding = shown(samples)
        _compare(finding, samples, *others)
        finding.reached = finding.numbers.get("ratio upper", float("inf")) <= factor
        return finding

    return judge


def above(per: float, size: int, other: str) -> Judge:
    """Ours takes at most `per` seconds more than another for each of `size` parts, at 95 %."""

    def judge(samples: Samples) -> Finding:
        finding = shown(samples)
        more = differences(samples.seconds["ours"], samples.seconds[other])
        parted = estimate([[value / size for value in group] for group in more])
        finding.numbers |= {"more each": parted.median, "more each upper": parted.upper}
        sign = "" if parted.median < 0 else "+"
        finding.ratio = f"{sign}{duration(parted.median)} each (<= {duration(parted.upper)})"
        finding.reached = parted.upper <= per
        return finding

    return judge


def each(count: int, judge: Judge) -> Judge:
    """What another judge says, of the time for one of `count` things that a case does."""

    def one(groups: Grouped) -> Grouped:
        return [[value / count for value in group] for group in groups]

    def judged(samples: Samples) -> Finding:
        parted = {label: one(groups) for label, groups in samples.seconds.items()}
        return judge(replace(samples, seconds=parted))

    return judged


def finding_each(per: float, other: str) -> Judge:
    """Ours takes at most `per` seconds more than another for each finding more, at 95 %."""

    def judge(samples: Samples) -> Finding:
        found = samples.results["ours"] - samples.results[other]
        finding = above(per, max(found, 1), other)(samples)
        finding.numbers["findings"] = found
        finding.ratio = f"{finding.ratio}, {found}"
        finding.reached = bool(finding.reached) and found > 0
        return finding

    return judge


def beside(*others: str) -> Judge:
    """Ours with the ratio to the fastest of these; there is no goal."""

    def judge(samples: Samples) -> Finding:
        finding = shown(samples)
        _compare(finding, samples, *others)
        return finding

    return judge


def growing(order: Callable[[float], float], small: int, large: int, slack: float) -> Judge:
    """From a small size to a large one, time grows at most as `order` does, times `slack`."""

    def judge(samples: Samples) -> Finding:
        finding = shown(samples)
        growth = estimate(ratios(samples.seconds["ours"], samples.seconds["ours small"]))
        allowed = order(large) / order(small)
        finding.numbers |= {"growth": growth.median, "allowed": allowed * slack}
        finding.ratio = f"x{growth.median:.1f} for x{large // small}"
        finding.reached = growth.median <= allowed * slack
        return finding

    return judge


def level(blocks: float, share: float) -> Judge:
    """Of a soak: from its first tenth to its last, memory stays as it is.

    Args:
        blocks: At most so many more of Python's blocks a call.
        share: At most so much more memory of the process, as a share of what it had.
    """

    def judge(samples: Samples) -> Finding:
        finding, soak = shown(samples), samples.results["ours"]
        calls = soak["calls"] * (1 - 1 / len(soak["blocks"]))
        more = (soak["blocks"][-1] - soak["blocks"][0]) / calls
        before, after = soak["resident"][0], soak["resident"][-1]
        grown = (after - before) / before if before else 0.0  # not every system tells
        each = finding.numbers["ours"] / soak["calls"]
        finding.numbers |= {"blocks a call": more, "grown": grown, "each": each}
        finding.ratio = f"{more:+.4f} blocks a call, {grown:+.2%} memory"
        finding.reached = more <= blocks and grown <= share and soak["reached"] >= soak["calls"]
        return finding

    return judge


def flat_each(slack: float) -> Judge:
    """Of open streams: with all of them each takes at most so much of what it does with some."""

    def judge(samples: Samples) -> Finding:
        finding, held = shown(samples), samples.results["ours"]
        finding.numbers |= {"each of some": held["some"], "each of all": held["all"]}
        growth = held["all"] / held["some"] if held["some"] else 0.0  # not every system tells
        finding.ratio = f"{held['all'] / 1024:.0f} KiB each, x{growth:.2f} of a quarter of them"
        finding.reached = growth <= slack
        return finding

    return judge


def linear(size: float) -> float:
    """Of order n."""
    return size


def sorting(size: float) -> float:
    """Of order n log n."""
    return size * log(size)


def _compare(finding: Finding, samples: Samples, *others: str) -> None:
    """Put the ratio to the fastest of these labels; by default of all that are not ours."""
    candidates = others or [label for label in samples.seconds if not label.startswith("ours")]
    known = {label: finding.numbers[label] for label in candidates if label in finding.numbers}
    if not known or "ours" not in samples.seconds:
        return
    fastest = min(known, key=known.__getitem__)
    ratio = estimate(ratios(samples.seconds["ours"], samples.seconds[fastest]))
    finding.numbers |= {"ratio": ratio.median, "ratio upper": ratio.upper}
    finding.ratio = f"{ratio.median:.3g} (<= {ratio.upper:.3g}) x {fastest}"


def all_of(samples: Samples) -> dict[str, Grouped]:
    """The raw samples, for a file."""
    return {label: groups for label, groups in samples.seconds.items() if flat(groups)}
