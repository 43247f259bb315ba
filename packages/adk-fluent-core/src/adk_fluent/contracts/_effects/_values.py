"""Values as the analysis sees them: what one may be, joined where ways through a function meet."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Final, Never, cast

from adk_fluent.ir import UNSET

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Whether a value is None, as bits: it is not on some way, it is on some way, nobody can tell.
IS_NOT: Final = 1
IS_NONE: Final = 2
UNCLEAR: Final = 4


@dataclass(frozen=True, slots=True)
class Plain:
    """A value that is not state and gives nobody state.

    Attributes:
        none: Whether it is None.
        type: Its exact type, or the one that a schema declares, where that is certain.
        key: The state key it was looked up under by ``get``, which told whether it is there.
        default: What that gives where it is not: a constant, or `UNSET` if it is not one.
        of: The state key that a tool changes by changing the value in place.
        lent: A schema's view gave it, or what it is part of, so that it cannot be changed in place.
    """

    none: int = UNCLEAR
    type: Any = None
    key: str | None = None
    default: Any = UNSET
    of: str | None = None
    lent: bool = False

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Plain)
            and (self.none, self.type, self.key) == (other.none, other.type, other.key)
            and (self.of, self.lent) == (other.of, other.lent)
            and Const(self.default) == Const(other.default)
        )

    def __hash__(self) -> int:
        return hash((self.none, self.key))  # a declared type need not have a hash


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """Text, a number, True, False or None.

    Attributes:
        value: The constant.
        outside: It is what a name outside the function means now; nobody swears that it stays so.
    """

    value: Any
    outside: bool = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const):
            return False
        one, two = self.value, other.value
        same = one is two or (type(one) is type(two) and bool(one == two))
        return same and self.outside == other.outside

    def __hash__(self) -> int:
        return hash(cast("type[Any]", type(self.value)))


@dataclass(frozen=True, slots=True, eq=False)
class Live:
    """An object that exists already: a class, a module, a function, a constant of a module."""

    it: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Live) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)


@dataclass(frozen=True, slots=True)
class Tracked:
    """State, or what leads to it.

    Attributes:
        kind: ``state``, ``context``, ``session``, ``actions``, ``delta``, ``bound`` (a schema's
            view of state), ``edited`` (what such a view lends) or ``sometimes`` (not always one).
        manner: How state behaves: ``view`` is core's, ``adk`` is ADK's that can be written,
            ``frozen`` is ADK's that cannot, ``live`` is that of a session in a run: steps after it
            find what is written there, but it is part of no event, so that nothing stores it.
        schema: The state schema of a view.
        name: What the source calls it.
    """

    kind: str
    manner: str = "view"
    schema: Any = None
    name: str = "state"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Tracked)
            and (self.kind, self.manner) == (other.kind, other.manner)
            and self.schema is other.schema
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.manner))


@dataclass(frozen=True, slots=True)
class Fields:
    """A dict whose keys are known.

    Attributes:
        items: By key, whether it is there for sure, and its value.
        open: Why other keys may be there; None if there are none.
        none: Whether it may be None instead, which a function step may return as well.
        mixed: Whether it may have keys that are no text, too.
    """

    items: dict[str, tuple[bool, Value]]
    open: str | None = None
    none: bool = False
    mixed: bool = False

    def __hash__(self) -> int:
        return len(self.items)

    def _with(self, items: dict[str, tuple[bool, Value]]) -> Fields:
        return replace(self, items=items)

    def with_item(self, key: str, value: Value, *, sure: bool = True) -> Fields:
        """The dict after an assignment, or after one that happens sometimes."""
        if not sure and key in self.items:
            known, old = self.items[key]
            return self._with({**self.items, key: (known, joined(old, value))})
        return self._with({**self.items, key: (sure, value)})

    def without(self, key: str) -> Fields:
        """The dict after a key was deleted."""
        return self._with({k: v for k, v in self.items.items() if k != key})

    def updated(self, other: Fields) -> Fields:
        """The dict after all of another was put in."""
        made = replace(self, mixed=self.mixed or other.mixed)
        if other.open:  # any key may have got another value
            items: dict[str, tuple[bool, Value]] = {
                known: (there, Plain()) for known, (there, _) in made.items.items()
            }
            made = replace(made, items=items, open=made.open or other.open)
        for key, (sure, value) in other.items.items():
            made = made.with_item(key, value, sure=sure)
        return made

    def opened(self, why: str) -> Fields:
        """The dict when others may have changed it."""
        items: dict[str, tuple[bool, Value]] = {key: (False, Plain()) for key in self.items}
        return replace(self, items=items, open=self.open or why)

    def as_plain(self) -> Plain:
        """The dict where its keys do not matter."""
        return Plain(IS_NOT | IS_NONE if self.none else IS_NOT, type_of(self))


Value = Plain | Const | Live | Tracked | Fields


def joined(one: Value, two: Value) -> Value:
    """What a value is that is one or the other."""
    if one == two:
        return one
    if isinstance(one, Tracked) or isinstance(two, Tracked):
        tracked = one if isinstance(one, Tracked) else two
        assert isinstance(tracked, Tracked)  # noqa: S101  # for the type checker
        return Tracked("sometimes", name=tracked.name)
    here, there = _as_fields(one), _as_fields(two)
    if here and there and (isinstance(one, Fields) or isinstance(two, Fields)):
        return _joined_fields(here, there)
    none = none_of(one) | none_of(two)
    kinds = [type_of(each) for each in (one, two) if none_of(each) != IS_NONE]
    kind = kinds[0] if kinds and kinds[0] == kinds[-1] else None
    return Plain(none, kind, lent=is_lent(one) or is_lent(two))


def _joined_fields(one: Fields, two: Fields) -> Fields:
    items: dict[str, tuple[bool, Value]] = {}
    for key in {**one.items, **two.items}:
        if key in one.items and key in two.items:
            here, there = one.items[key], two.items[key]
            items[key] = (here[0] and there[0], joined(here[1], there[1]))
        else:
            items[key] = (False, (one.items.get(key) or two.items[key])[1])
    mixed = one.mixed or two.mixed
    return Fields(items, one.open or two.open, one.none or two.none, mixed)


def _as_fields(value: Value) -> Fields | None:
    """A dict, or None in its place; None if it is something else."""
    if isinstance(value, Fields):
        return value
    return Fields({}, none=True) if none_of(value) == IS_NONE else None


def is_lent(value: Value) -> bool:
    """Whether a value cannot be changed in place."""
    return isinstance(value, Plain) and value.lent


def none_of(value: Value) -> int:
    """Whether a value is None, as bits."""
    match value:
        case Plain(none=none):
            return none
        case Const(value=held) | Live(it=held):
            return IS_NONE if held is None else IS_NOT
        case Fields(none=True):
            return IS_NOT | IS_NONE
        case _:
            return IS_NOT


def type_of(value: Value) -> Any:
    """The type of a value, where that is certain."""
    match value:
        case Plain(type=found):
            return found
        case Const(value=held):
            return None if held is None else cast("type[Any]", type(held))
        case Fields(open=None, mixed=False):
            return container_of(dict, [each for _, each in value.items.values()])
        case Fields():
            return dict
        case Live(it=Enum()):
            return cast("type[Any]", type(value.it))
        case _:
            return None


def container_of(kind: type, items: Sequence[Value]) -> Any:
    """The type of a container: of what, too, where that is certain."""
    inside = [None if none_of(each) != IS_NOT else type_of(each) for each in items]
    if kind is tuple:
        return tuple[tuple(inside)] if inside and None not in inside else tuple
    known = bool(inside) and inside[0] is not None and all(each == inside[0] for each in inside)
    if inside and not known:
        return kind
    item = inside[0] if inside else Never
    return GenericAlias(kind, (str, item) if kind is dict else (item,))


def truth_of(value: Value) -> bool | None:
    """Whether a value counts as true; None if that is not certain."""
    match value:
        case Const(value=held, outside=False):
            return bool(held)
        case _:
            return None
