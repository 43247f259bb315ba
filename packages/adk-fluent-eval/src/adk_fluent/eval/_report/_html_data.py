"""The data of the page: a head for the list of cases, and parcels of details within a budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._report._html_case import Details, NoRoomError, headline
from adk_fluent.eval._report._words import STATUS, in_script

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Characters of one text that are shown.
TEXT_LIMIT: Final = 20_000
#: Bytes of data in the page, about.
BUDGET: Final = 60_000_000

_SHORT: Final = 500
_ROOMY: Final = 0.8
_PARCEL: Final = 500_000

#: Statuses, the ones to look at first before the others.
WORST_FIRST: Final = tuple(STATUS)


@dataclass(slots=True)
class PageData:
    """What goes into the page as JSON, ready to stand inside script elements.

    Attributes:
        head: What the list needs.
        parcels: Details of cases, several in each, so that few are read at a time.
        shortened: Cases whose texts are cut shorter than usual, as the budget was nearly spent.
        omitted: Cases without details, as it was spent.
    """

    head: str = ""
    parcels: list[str] = field(default_factory=list[str])
    shortened: int = 0
    omitted: int = 0


@dataclass(slots=True)
class _Parcels:
    """Packs details together, never more of them than there is room for."""

    room: int
    limit: int
    parcels: list[list[str]] = field(default_factory=lambda: [[]])
    size: int = 0
    spent: int = 0
    shortened: int = 0
    omitted: int = 0

    def add(self, outcome: CaseOutcome, before: CaseOutcome | None) -> list[int] | None:
        """Where the details went: the parcel and the place in it; None if there was no room."""
        short = min(_SHORT, self.limit)
        for limit, room in ((self.limit, self.room * _ROOMY), (short, self.room)):
            left = room - self.spent
            if left <= 0:
                continue
            try:
                made = in_script(Details(limit, left).of(outcome, before))
            except NoRoomError:
                continue
            if (size := len(made.encode())) <= left:
                self.shortened += limit < self.limit
                return self._put(made, size)
        self.omitted += 1
        return None

    def _put(self, made: str, size: int) -> list[int]:
        if self.size + size > _PARCEL and self.parcels[-1]:
            self.parcels.append([])
            self.size = 0
        self.parcels[-1].append(made)
        self.size += size
        self.spent += size
        return [len(self.parcels) - 1, len(self.parcels[-1]) - 1]


def page_data(
    outcomes: Sequence[CaseOutcome],
    baseline: Iterable[CaseOutcome] | None = None,
    changes: dict[str, str] | None = None,
    flaky: Iterable[str] = (),
    *,
    text_limit: int = TEXT_LIMIT,
    budget: int = BUDGET,
) -> PageData:
    """The data of the page.

    Cases that did not pass get their room first.

    Args:
        outcomes: The runs, in the order of the suite.
        baseline: The runs to compare with.
        changes: Case to what became of it since: ``regressed``, ``improved`` or ``added``.
        flaky: Cases that passed in one run and did not in another.
        text_limit: Characters of one text that are shown.
        budget: Bytes of data, about.
    """
    tags = _numbered(tag for each in outcomes for tag in each.tags)
    metrics = _numbered(score.name for each in outcomes for score in each.scores)
    heads = [headline(each, tags, metrics) for each in outcomes]
    before = _Before(baseline)
    unsteady = set(flaky)
    head: dict[str, Any] = {
        "cases": heads,
        "tags": list(tags),
        "metrics": list(metrics),
        "statuses": {status.value: list(words) for status, words in STATUS.items()},
        "compared": baseline is not None,
    }
    packed = _Parcels(budget - len(in_script(head).encode()), text_limit)
    order = sorted(range(len(outcomes)), key=lambda at: WORST_FIRST.index(outcomes[at].status))
    for at in order:
        outcome, entry = outcomes[at], heads[at]
        entry["at"] = packed.add(outcome, before.of(outcome))
        if outcome.id in unsteady:
            entry["f"] = 1
        if changed := (changes or {}).get(outcome.id):
            entry["ch"] = changed
    parcels = [f"[{','.join(each)}]" for each in packed.parcels]
    return PageData(in_script(head), parcels, packed.shortened, packed.omitted)


class _Before:
    """Finds the baseline's run of a case: the same run, else its first."""

    def __init__(self, outcomes: Iterable[CaseOutcome] | None) -> None:
        self._same: dict[tuple[str, int], CaseOutcome] = {}
        self._first: dict[str, CaseOutcome] = {}
        for each in outcomes or ():
            if each.status is not Status.SKIPPED:
                self._same[each.key] = each
                self._first.setdefault(each.id, each)

    def of(self, outcome: CaseOutcome) -> CaseOutcome | None:
        return self._same.get(outcome.key) or self._first.get(outcome.id)


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}
