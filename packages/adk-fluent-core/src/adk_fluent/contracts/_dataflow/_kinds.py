"""What reads may find: values of which types, and whose."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from adk_fluent._accepting import accepts
from adk_fluent.contracts._types import (
    Fit,
    fit,
    gives_none,
    is_certain,
    item_type,
    name_of,
)
from adk_fluent.ir import UNSET

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adk_fluent.contracts._dataflow._values import Def, Site
    from adk_fluent.ir import StateFieldRef

_ITEMS: Final = 100  # of a list that is known, more are not looked at


class Kind(NamedTuple):
    """A value that may be found.

    Attributes:
        by: Who gives it; None is an input.
        type: Its type, as far as it is known.
        value: The value itself, if that is known; else `ir.UNSET`.
    """

    by: Def | None
    type: Any
    value: Any = UNSET

    def fit(self, read: Any) -> Fit:
        """How well it can be read as a type."""
        how_well = fit(self.type, read)
        if self.value is UNSET or is_certain(self.type, read):
            return how_well
        accepted = accepts(read, self.value)
        return how_well if accepted is None else Fit.YES if accepted else Fit.NO

    def is_certain(self, read: Any) -> bool:
        """Whether it can be read as a type for sure."""
        if is_certain(self.type, read):
            return True
        return self.value is not UNSET and accepts(read, self.value) is True

    def misfits(self, read: Any) -> bool:
        """Whether a finding says that it need not be readable as a type."""
        return self.fit(read) is not Fit.YES

    def described(self, read: Any) -> str:
        """What it is, as messages say it; never the value, which may be secret."""
        name = name_of(self.type)
        told = self.value is UNSET or fit(self.type, read) is Fit.NO
        return name if told else f"{name}, with a value that does not fit"

    @property
    def gives_none(self) -> bool:
        """Whether it may be None, as far as types tell."""
        return self.type is not None and gives_none(self.type)


class Kinds:
    """Finds out what the values of keys may be.

    Args:
        inputs: Keys that have a value at the start.
    """

    def __init__(self, inputs: Mapping[str, StateFieldRef]) -> None:
        self._inputs = inputs

    def found(self, site: Site) -> Iterator[Kind]:
        """What a read may find, but for what is taken away."""
        return self._found(site, set())

    def written(self, made: Def) -> Iterator[Kind]:
        """What a definition may give."""
        seen = set[int]()
        yield from self._own(made, seen, blurred=False)
        for copy in made.copies:
            yield from self._found(copy, seen)

    def _found(self, site: Site, seen: set[int]) -> Iterator[Kind]:
        """What leads back to itself says no more."""
        todo = [] if id(site) in seen else [site]
        seen.add(id(site))
        while todo:
            here = todo.pop()
            blurred = here.blurred
            for each in here.kinds:
                if each.removes:
                    continue
                yield from self._own(each, seen, blurred=blurred)
                todo += [copy for copy in each.copies if id(copy) not in seen]
                seen.update(id(copy) for copy in each.copies)
            given = self._inputs.get(here.key) if here.entry else None
            if given is not None:
                yield Kind(None, given.type)

    def _own(self, made: Def, seen: set[int], *, blurred: bool) -> Iterator[Kind]:
        if made.item_of is not None:
            for several in self._found(made.item_of, seen):
                yield from _items(made, several)
        elif made.list_of is not None:
            yield Kind(made, self._list_type(made.list_of, seen))
        elif not made.copies or made.type is not None:
            yield Kind(made, made.type, UNSET if blurred else made.value)

    def _list_type(self, of: Site, seen: set[int]) -> Any:
        """The type of a list of what a read finds."""
        first, *others = [each.type for each in self._found(of, seen)] or [None]
        same = first is not None and all(each == first for each in others)
        return list[first] if same else list


def _items(made: Def, several: Kind) -> Iterator[Kind]:
    value = several.value
    if not isinstance(value, list) or len(cast("list[Any]", value)) > _ITEMS:
        yield Kind(made, item_type(several.type))
        return
    for item in cast("list[Any]", value):
        yield Kind(made, type(item), item)
