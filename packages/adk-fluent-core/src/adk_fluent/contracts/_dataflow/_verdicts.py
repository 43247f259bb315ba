"""What a read finds: surely a value, perhaps, or none."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from adk_fluent.contracts._dataflow._values import Def, every

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adk_fluent.contracts._dataflow._values import Site, Writers


class Found(IntEnum):
    """What a read finds."""

    NEVER = 0
    MAYBE = 1
    SURE = 2


class Verdicts:
    """What each read finds, given what is known of state at the start.

    Args:
        inputs: Keys that have a value then.
        unknown: Whether other keys may have one, too.
    """

    def __init__(self, inputs: Mapping[str, object], *, unknown: bool) -> None:
        self.inputs = inputs
        self.unknown = unknown
        self._known: dict[int, Found] = {}

    def of(self, site: Site) -> Found:
        """What a read finds."""
        known = self._known
        if _is_sure(site):
            return Found.SURE
        if not _asks(site):
            return self._judge(site)
        todo, open_ = [site], set[int]()
        while todo:
            here = todo[-1]
            if id(here) in known:
                todo.pop()
                continue
            if id(here) not in open_:
                open_.add(id(here))
                todo.extend(each for each in _asks(here) if id(each) not in open_)
                continue
            todo.pop()
            known[id(here)] = self._judge(here)
        return known[id(site)]

    def _judge(self, site: Site) -> Found:
        given = site.entry and site.key in self.inputs
        lacks = site.gone is not None or is_taken(site) or (site.bare and not given)
        has = given or site.held is not None or (site.entry and self.unknown)
        older = site.key if site.how == "collects" else None
        for each in _unsure(site):
            if each.sources is None:  # as most
                has = True
                continue
            found = self.gives(each, older)
            lacks = lacks or found is not Found.SURE
            has = has or found is not Found.NEVER
        if not has:
            return Found.NEVER
        return Found.MAYBE if lacks else Found.SURE

    def gives(self, made: Def, older: str | None = None) -> Found:
        """Whether there is a value after a write: if one of those it is made of had one.

        Args:
            made: The write.
            older: A key whose value before the write may be older than counts.
        """
        if made.sources is None:
            return Found.SURE
        # a question that leads to itself, around a loop, is open
        found = [(s.key, self._known.get(id(s), Found.MAYBE)) for s in made.sources]
        return max(
            (min(each, Found.MAYBE) if key == older else each for key, each in found),
            default=Found.SURE,
        )


def _is_sure(site: Site) -> bool:
    """Whether it is plain that there is a value: one place gives it, on every way, as for most."""
    made = site.found
    if site.bare or not isinstance(made, Def):
        return False
    return made.sources is site.later is site.gone is site.races is None


def _asks(site: Site) -> list[Site]:
    """The questions on which it depends what a read finds."""
    return [source for each in _unsure(site) for source in each.sources or ()]


def _unsure(site: Site) -> tuple[Def, ...]:
    """The definitions that a read may find, one of each type, and that may have given no value."""
    found = () if site.found is None else site.found.kinds
    return found if site.later is None else (*found, *site.later.kinds)


def is_taken(site: Site) -> bool:
    """Whether something beside a read may take the value away."""
    return site.races is not None and any(each.removes for each in site.races.kinds)


def mark(groups: Iterable[Writers | None], flag: str) -> None:
    """Set a flag of everything in some groups of definitions."""
    todo = list(filter(None, groups))
    while todo:
        here = todo.pop()
        if getattr(here, flag):
            continue
        setattr(here, flag, True)
        if not isinstance(here, Def):
            todo.extend(here.parts)


def some(writers: Writers | None, most: int = 3) -> list[Def]:
    """A few of the definitions, those that were made first."""
    if writers is None:
        return []
    if isinstance(writers, Def):
        return [writers]
    found: list[Def] = []
    for each in every(writers):
        found.append(each)
        if len(found) == most:
            break
    return found
