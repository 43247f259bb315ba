"""What a part of a pipeline does to state, and how parts are put together.

A `Part` says, for each key it has to do with, what becomes of the key and which reads depend on
what was before the part. Putting parts together costs what the smaller one holds, and a key that is
surely written becomes one that may be written only once, so that a pipeline of n nodes costs about
n log n, however deep and wide it is.
"""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Final

from adk_fluent.contracts._dataflow._values import (
    UNTOUCHED,
    Change,
    Open,
    after,
    both,
    either,
    merged,
    settle,
    since,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping

    from adk_fluent.contracts._dataflow._values import Reads, Writers


#: Keys with this prefix are those of one session, and of one run.
TEMPORARY: Final = "temp:"


class Part:
    """What a part of a pipeline does to state.

    Attributes:
        sure: Changes of keys that it surely writes or removes.
        maybe: Changes of keys that it may leave alone.
        reads: Reads that depend on what was before it.
        tainted: Such reads behind something whose writes are not known.
        late: Changes, for the case that the loop around it is left somewhere inside; only of keys
            for which that makes a difference.
        leaves: Whether the loop around it may be left somewhere inside.
        opaque: Whether something in it writes what is not known.
    """

    __slots__ = ("late", "leaves", "maybe", "opaque", "reads", "sure", "tainted")

    def __init__(self) -> None:
        self.sure: dict[str, Change] = {}
        self.maybe: dict[str, Change] = {}
        self.reads: dict[str, Reads] = {}
        self.tainted: dict[str, Reads] = {}
        self.late: dict[str, Change] = {}
        self.leaves = False
        self.opaque = False

    def change(self, key: str) -> Change:
        """What becomes of a key."""
        return self.sure.get(key) or self.maybe.get(key) or UNTOUCHED

    def copy(self) -> Part:
        """Another one like it, for it stands in several places."""
        new = Part()
        for name in ("sure", "maybe", "reads", "tainted", "late"):
            setattr(new, name, dict(getattr(self, name)))
        new.leaves, new.opaque = self.leaves, self.opaque
        return new

    def __len__(self) -> int:
        return (
            len(self.sure) + len(self.maybe) + len(self.reads) + len(self.tainted) + len(self.late)
        )

    def changes(self) -> list[tuple[str, Change]]:
        """Every key it has to do with as a writer, and what becomes of it."""
        return [*self.sure.items(), *self.maybe.items()]

    def touched(self, keys: Mapping[str, object]) -> list[str]:
        """Those of the keys that it changes."""
        if len(keys) < len(self.sure) + len(self.maybe):
            return [key for key in keys if key in self.sure or key in self.maybe]
        return [key for held in (self.sure, self.maybe) for key in held if key in keys]

    def taint(self) -> None:
        """Something before it writes what is not known."""
        self.tainted = _collect(self.tainted, self.reads)
        self.reads = {}

    # --- what a single step does, behind all that is in it ---------------------------------------

    def read(self, key: str, reads: Reads) -> None:
        """It reads a key."""
        change = self.sure.get(key)
        if change is not None:
            settle(reads, change, tainted=self.opaque)
            return
        if self.maybe and (change := self.maybe.get(key)) is not None:
            reads = since(reads, change)
        known = self.tainted if self.opaque else self.reads
        known[key] = merged(known.get(key), reads)

    def write(self, key: str, change: Change, late: Change | None = None) -> None:
        """It changes a key; `late` is what it does to it if the loop is left inside of it."""
        before = self.change(key)
        if late is not None or self.leaves:
            now = after(before, late or change)
            self.late[key] = either(self.late.get(key) or before, now) if self.leaves else now
        now = after(before, change)
        if not now.through:
            self.maybe.pop(key, None)
            self.sure[key] = now
        else:
            self.maybe[key] = now

    def add(self, other: Part) -> None:
        """It does what another part does; uses the other one up."""
        for key, reads in other.reads.items():
            self.read(key, reads)
        if other.tainted:
            opaque, self.opaque = self.opaque, True
            for key, reads in other.tainted.items():
                self.read(key, reads)
            self.opaque = opaque
        for key, change in other.changes():
            self.write(key, change, other.late.get(key))
        self.leaves |= other.leaves
        self.opaque |= other.opaque


def behind(one: Part, other: Part) -> Part:
    """The second after the first; uses both up."""
    if len(other) > len(one):
        return _prepend(one, other)
    one.add(other)
    return one


def _prepend(one: Part, other: Part) -> Part:
    keys = {*one.late, *other.late, *other.sure} if one.leaves else one.touched(other.late)
    for key in keys:
        before = one.change(key)
        late = after(before, other.late.get(key) or other.change(key))
        other.late[key] = either(one.late.get(key) or before, late) if one.leaves else late
    for key, change in one.changes():
        for known in (other.reads, other.tainted):
            if key in known and not change.through:
                settle(known.pop(key), change, tainted=one.opaque or known is other.tainted)
            elif key in known:
                known[key] = since(known[key], change)
        if key not in other.sure:
            now = after(change, other.maybe.pop(key, None) or UNTOUCHED)
            (other.maybe if now.through else other.sure)[key] = now
    if one.opaque:
        other.taint()
    other.reads = _collect(other.reads, one.reads)
    other.tainted = _collect(other.tainted, one.tainted)
    other.leaves |= one.leaves
    other.opaque |= one.opaque
    return other


def _collect(one: dict[str, Reads], other: dict[str, Reads]) -> dict[str, Reads]:
    """The reads of both, in the larger."""
    if not other:
        return one
    if len(one) < len(other):
        one, other = other, one
    for key, reads in other.items():
        one[key] = merged(one.get(key), reads)
    return one


def alternatives(parts: list[Part], *, none: bool = False) -> Part:
    """One of several parts; with `none` also nothing at all. Uses them up."""
    if not parts:
        return Part()
    count = len(parts) + none
    if count == 1:
        return parts[0]
    late = {key: _late(parts, key, none=none) for part in parts for key in part.late}
    base = max(parts, key=len)
    total, tally = base.sure, dict.fromkeys(base.sure, 1)
    base.sure = {}
    for part in parts:
        if part is base:
            continue
        for key, change in part.sure.items():
            tally[key] = tally.get(key, 0) + 1
            total[key] = either(total[key], change) if key in total else change
        for key, change in part.maybe.items():
            base.maybe[key] = either(base.maybe.get(key) or change, change)
        base.reads = _collect(base.reads, part.reads)
        base.tainted = _collect(base.tainted, part.tainted)
        base.leaves |= part.leaves
        base.opaque |= part.opaque
    for key, change in total.items():
        if tally[key] == count:
            base.sure[key] = change
        else:
            base.maybe[key] = either(base.maybe.get(key) or UNTOUCHED, change)
    base.late = late
    return base


def _late(parts: Iterable[Part], key: str, *, none: bool) -> Change:
    changes = [part.late.get(key) or part.change(key) for part in parts]
    total = UNTOUCHED if none else changes[0]
    for each in changes:
        total = either(total, each)
    return total


def beside(
    parts: Iterable[Part], reduced: Container[str], clash: Callable[[str, Writers, Writers], None]
) -> Part:
    """Several parts at the same time, joined in declared order. Uses them up.

    Args:
        parts: In declared order; each is used up before the next is asked for.
        reduced: Keys whose values are joined, as far as the parts that were asked for say.
        clash: Told of a key that two of them change, with who does in the one and in the other.
    """
    return reduce(partial(_beside, reduced=reduced, clash=clash), parts)


def _beside(
    one: Part,
    other: Part,
    reduced: Container[str],
    clash: Callable[[str, Writers, Writers], None],
) -> Part:
    swapped = len(other) > len(one)
    base, small = (other, one) if swapped else (one, other)
    late: dict[str, Change] = {}
    for key in (*one.late, *other.late):
        first, second = (part.late.get(key) or part.change(key) for part in (one, other))
        late[key] = _reduced(first, second) if key in reduced else _joined(first, second)
    for known in (small.reads, small.tainted):
        for key, reads in known.items():
            change = base.change(key)
            if change is not UNTOUCHED:
                known[key] = _racing(reads, change)
    for key, change in small.changes():
        for known in (base.reads, base.tainted):
            if key in known:
                known[key] = _racing(known[key], change)
        before = base.change(key)
        now = change
        if before is not UNTOUCHED:
            first, second = (change, before) if swapped else (before, change)
            if (by := writers(first)) is not None and (too := writers(second)) is not None:
                clash(key, by, too)
            now = _reduced(first, second) if key in reduced else _joined(first, second)
        base.sure.pop(key, None)
        base.maybe.pop(key, None)
        (base.maybe if now.through else base.sure)[key] = now
    base.reads = _collect(base.reads, small.reads)
    base.tainted = _collect(base.tainted, small.tainted)
    base.late = late
    base.leaves |= small.leaves
    base.opaque |= small.opaque
    return base


def _racing(reads: Reads, change: Change) -> Reads:
    """Reads beside which something changes their key."""
    return Open((reads,), change.defs, races=both(change.defs, change.gone))


def writers(change: Change) -> Writers | None:
    """Who gives a key a value, or takes it away."""
    return change.defs or change.gone


def _joined(first: Change, second: Change) -> Change:
    """The later one in declared order wins, if it writes."""
    return either(first, second) if first.through and second.through else after(first, second)


def _reduced(first: Change, second: Change) -> Change:
    """One value is made of two; a branch that removes its own adds nothing to the other's."""
    defs = both(first.defs, second.defs)
    if _gives(first) or _gives(second):
        return Change(through=False, defs=defs)
    return Change(first.through and second.through, defs, both(first.gone, second.gone))


def _gives(change: Change) -> bool:
    """Whether there is surely a value afterwards."""
    return not change.through and change.gone is None


def again(part: Part, *, rounds: bool = True) -> Part:
    """A part that runs once or more: its reads may find what an earlier time wrote.

    Args:
        part: The part; it is used up.
        rounds: Whether there is a first time that everybody can see, as in a loop.
    """
    for known in (part.reads, part.tainted):
        for key in part.touched(known):
            change = part.change(key)
            defs, later = (None, change.defs) if rounds else (change.defs, None)
            known[key] = Open((known[key],), defs, change.gone, later=later)
    if part.opaque:
        part.taint()
    return part


def optional(part: Part) -> Part:
    """A part that may be left out."""
    return alternatives([part], none=True)


def left(part: Part) -> Part:
    """A loop's body seen from behind the loop, which may have been left inside the body."""
    for key, change in part.late.items():
        part.sure.pop(key, None)
        part.maybe.pop(key, None)
        (part.maybe if change.through else part.sure)[key] = change
    part.late = {}
    part.leaves = False
    return part


def apart(part: Part) -> Part:
    """A part in a session of its own, which temporary keys neither get into nor out of."""
    for known, tainted in ((part.reads, False), (part.tainted, True)):
        for key in [key for key in known if key.startswith(TEMPORARY)]:
            reads = known.pop(key)
            settle(reads, Change(through=False), tainted=tainted)
            _bare(reads)
    for held in (part.sure, part.maybe, part.late):
        for key in [key for key in held if key.startswith(TEMPORARY)]:
            del held[key]
    return left(part)


def _bare(reads: Reads) -> None:
    """On the way from the start of a session to some reads there may be nothing."""
    todo = [reads]
    while todo:
        here = todo.pop()
        if not isinstance(here, Open):
            here.bare = True
        elif not here.sure:
            todo.extend(here.parts)
