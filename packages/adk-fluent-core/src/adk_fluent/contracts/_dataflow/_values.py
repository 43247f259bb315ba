"""What the analysis is about: who gives keys values, who reads them, and what reaches whom.

Everything here grows by joining two things into one that holds both, which costs the same however
much they hold. It is taken apart once, at the end.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from adk_fluent.ir import UNSET

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.ir import Node

_VALUES: Final = 8  # that are told apart among the definitions of one key
_SCALARS: Final = (str, int, float, bool)


class Need(IntEnum):
    """What becomes of a reader that finds no value; a worse one is greater."""

    #: Nobody reads: the question whether there is a value is the analysis's own.
    PROBE = 0
    #: It is prepared for that.
    OPTIONAL = 1
    #: It goes on with None.
    SOFT = 2
    #: It fails.
    REQUIRED = 3


class Def:
    """A place where a key gets a value, or loses it.

    Attributes:
        key: The key.
        node: Who does it.
        type: What the value is, as far as it is known.
        assumed: Whether it is only as good as certain that it gives a value.
        doubtful: Whether a schema looks at the value, and may refuse it.
        implied: Whether nobody has declared the type; it is what an agent answers with.
        sources: Questions about other keys: there is a value if one of them has one; None is sure.
        copies: Questions about keys whose value it may be.
        item_of: The read of a list of which it is an item.
        list_of: The read of what it is a list of.
        used: Whether somebody may read it.
        kept: Whether it may be there when the pipeline is done.
        removes: Whether the value is taken away.
        value: The value, if it is known; else `ir.UNSET`.
    """

    __slots__ = (
        *("assumed", "copies", "doubtful", "implied", "item_of", "kept", "key", "list_of"),
        *("node", "removes", "sources", "type", "used", "value"),
    )
    #: Whether not all values are among its `kinds`.
    blurred = False

    def __init__(
        self,
        key: str,
        node: Node,
        type: Any = None,
        *,
        sources: tuple[Site, ...] | None = None,
        removes: bool = False,
        implied: bool = False,
    ) -> None:
        self.key = key
        self.implied = implied
        self.node = node
        self.type = type
        self.sources = sources
        self.assumed = False
        self.doubtful = False
        self.copies: tuple[Site, ...] = ()
        self.item_of: Site | None = None
        self.list_of: Site | None = None
        self.removes = removes
        self.value: Any = UNSET
        self.used = False
        self.kept = False

    @property
    def kinds(self) -> tuple[Def, ...]:
        """One definition of each type."""
        return (self,)

    @property
    def depends(self) -> bool:
        """Whether what it gives depends on what a read of its own finds."""
        return bool(self.sources or self.copies or self.item_of or self.list_of)


class Defs:
    """Several definitions of one key, any of which may be the last.

    Attributes:
        parts: What it is joined of.
        kinds: One definition of each type and known value; those whose value depends on others,
            all.
        blurred: Whether there are more values of a type than are among its `kinds`.
        used: Whether somebody may read them.
        kept: Whether they may be there when the pipeline is done.
    """

    __slots__ = ("blurred", "kept", "kinds", "parts", "used")

    def __init__(self, one: Def | Defs, other: Def | Defs) -> None:
        self.parts = (one, other)
        self.used = False
        self.kept = False
        self.blurred = one.blurred or other.blurred
        kinds = one.kinds
        for each in other.kinds:
            if each in kinds:
                continue
            if each.depends or not (alike := _alike(each, kinds)):
                kinds = (*kinds, each)
            elif not any(_is_equal(known.value, each.value) for known in alike):
                if len(kinds) < _VALUES:
                    kinds = (*kinds, each)
                else:
                    self.blurred = True
        self.kinds = kinds


#: One definition or several.
Writers = Def | Defs


def _alike(one: Def, kinds: tuple[Def, ...]) -> list[Def]:
    """Those of the same type."""
    flags = (one.assumed, one.implied, one.removes)
    return [
        each
        for each in kinds
        if (each.type is one.type or each.type == one.type)
        and not each.depends
        and flags == (each.assumed, each.implied, each.removes)
    ]


def _is_equal(one: object, other: object) -> bool:
    if one is other:
        return True
    return type(one) is type(other) and type(one) in _SCALARS and one == other


def both(one: Writers | None, other: Writers | None) -> Writers | None:
    """All definitions of both."""
    if one is None or one is other:
        return other
    return one if other is None else Defs(one, other)


def every(writers: Writers | None) -> Iterator[Def]:
    """The definitions, each once."""
    todo: list[Writers] = [] if writers is None else [writers]
    seen = set[int]()
    while todo:
        here = todo.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        if isinstance(here, Def):
            yield here
        else:
            todo.extend(reversed(here.parts))


class Change:
    """What a part of a pipeline does to one key.

    Attributes:
        through: Whether the key may be left alone.
        defs: Who may have given it its value.
        gone: Who may have taken its value away.
    """

    __slots__ = ("defs", "gone", "through")

    def __init__(
        self, through: bool, defs: Writers | None = None, gone: Writers | None = None
    ) -> None:
        self.through = through
        self.defs = defs
        self.gone = gone


#: What a part does to a key that it does not touch.
UNTOUCHED: Final = Change(through=True)


def after(one: Change, other: Change) -> Change:
    """The second after the first."""
    if not other.through:
        return other
    if one is UNTOUCHED:
        return other
    return Change(one.through, both(one.defs, other.defs), both(one.gone, other.gone))


def either(one: Change, other: Change) -> Change:
    """One of the two."""
    if one is other:
        return one
    return Change(
        one.through or other.through, both(one.defs, other.defs), both(one.gone, other.gone)
    )


class Site:
    """A place where a key is read, and in the end all that is known about what it finds there.

    Attributes:
        key: The key.
        node: Who reads.
        type: What it takes, as far as it is known.
        need: What becomes of it without a value.
        how: How it reads, in words that follow the node's name.
        found: Definitions that may be found.
        held: Definitions that may be found, and that gave a value if they are.
        later: Definitions that may be found from the second time round a loop on.
        gone: Definitions that may have taken the value away.
        races: Definitions in branches beside this one.
        entry: Whether the state at the start of the pipeline may be found.
        bare: Whether there may be a way from the start on which nothing is known to be there.
        tainted: Whether something may have written whose writes are not known.
    """

    __slots__ = (
        *("bare", "entry", "found", "gone", "held", "how", "key", "later"),
        *("need", "node", "races", "tainted", "type"),
    )

    def __init__(
        self, key: str, node: Node, need: Need, how: str = "reads", type: Any = None
    ) -> None:
        self.key = key
        self.node = node
        self.need = need
        self.how = how
        self.type = type
        self.found: Writers | None = None
        self.held: Writers | None = None
        self.later: Writers | None = None
        self.gone: Writers | None = None
        self.races: Writers | None = None
        self.entry = False
        self.bare = False
        self.tainted = False

    @property
    def blurred(self) -> bool:
        """Whether there may be other values than those of its `kinds`."""
        return any(group is not None and group.blurred for group in self._groups)

    @property
    def _groups(self) -> tuple[Writers | None, ...]:
        return (self.found, self.held, self.later)

    @property
    def kinds(self) -> tuple[Def, ...]:
        """What may be found: one definition of each type."""
        found = () if self.found is None else self.found.kinds
        if self.later is None and self.held is None:
            return found
        return (
            *found,
            *(each for group in (self.held, self.later) if group for each in group.kinds),
        )


class Open:
    """Reads of one key that still depend on what was before them.

    Attributes:
        parts: The reads.
        defs: Who may have given the key a value in between.
        later: Who may have, from the second time round a loop on.
        gone: Who may have taken it away in between.
        races: Who gives it a value beside them.
        sure: Whether they happen only if there is a value.
    """

    __slots__ = ("defs", "gone", "later", "parts", "races", "sure")

    def __init__(
        self,
        parts: tuple[Reads, ...],
        defs: Writers | None = None,
        gone: Writers | None = None,
        races: Writers | None = None,
        *,
        later: Writers | None = None,
        sure: bool = False,
    ) -> None:
        self.parts = parts
        self.later = later
        self.defs = defs
        self.gone = gone
        self.races = races
        self.sure = sure


#: One read or several.
Reads = Site | Open


def merged(one: Reads | None, other: Reads) -> Reads:
    """The reads of both."""
    return other if one is None or one is other else Open((one, other))


def since(reads: Reads, change: Change) -> Reads:
    """The same reads, with something before them that may leave the key alone."""
    if change.defs is None and change.gone is None:
        return reads
    return Open((reads,), change.defs, change.gone)


class Seen(NamedTuple):
    """What the groups of reads around a read say of what it finds.

    Attributes:
        defs: Definitions.
        held: Definitions of which it is known that they gave a value.
        later: Definitions of later times round a loop.
        gone: Removals.
        races: Definitions and removals beside it.
        sure: Whether there was surely a value somewhere before.
    """

    defs: Writers | None
    held: Writers | None
    later: Writers | None
    gone: Writers | None
    races: Writers | None
    sure: bool


def settle(reads: Reads, change: Change, *, tainted: bool) -> None:
    """Tell reads what they find, now that nothing before `change` matters to them.

    A `change` that may leave the key alone is the whole pipeline's: what the key was at its start
    is then found, too.
    """
    first = Seen(change.defs, None, None, change.gone, None, False)
    todo: list[tuple[Reads, Seen]] = [(reads, first)]
    while todo:
        here, seen = todo.pop()
        if isinstance(here, Open):
            inside = _inside(here, seen)
            for each in here.parts:
                todo.append((each, inside))  # noqa: PERF401  # far quicker
            continue
        defs, held, later, gone, races, sure = seen
        here.found = both(here.found, defs)
        if seen is not first:
            here.held = both(here.held, held)
            here.later = both(here.later, later)
            here.races = both(here.races, races)
        here.gone = both(here.gone, gone)
        here.tainted |= tainted
        if change.through:
            here.entry = True
            here.bare |= not sure


def _inside(here: Open, seen: Seen) -> Seen:
    if here.defs is here.later is here.gone is here.races is None and not here.sure:
        return seen  # several reads, and nothing before them
    if here.sure:  # there is a value, whoever gave it: what might have taken it away did not
        held = both(seen.held, both(seen.defs, seen.later))
        return Seen(None, held, None, None, seen.races, sure=True)
    return Seen(
        both(seen.defs, here.defs),
        seen.held,
        both(seen.later, here.later),
        both(seen.gone, here.gone),
        both(seen.races, here.races),
        seen.sure,
    )
