"""What the analysis has seen a function do to state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.contracts._effects._derived import Derived
from adk_fluent.contracts._effects._values import IS_NONE, IS_NOT, UNCLEAR
from adk_fluent.ir import UNSET, StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


class Log:
    """What was seen so far.

    Attributes:
        reads_all: Whether it looks at all keys there are.
        escalates: Whether it may end a loop.
        transfers: Whether it may hand over.
        types: The declared types of keys, where the function says them.
    """

    __slots__ = (
        *("_inside", "_reads", "_strict", "_ways", "_written"),
        *("escalates", "reads_all", "transfers", "types"),
    )

    def __init__(self) -> None:
        self._reads: dict[str, StateFieldRef] = {}
        self._written: dict[str, tuple[int, Any]] = {}
        self._inside: dict[str, int] = {}
        self._strict: dict[str, None] = {}
        self._ways: list[Mapping[str, int]] = []
        self.types: dict[str, Any] = {}
        self.reads_all: bool = False
        self.escalates: bool = False
        self.transfers: bool = False

    def read(
        self, key: str, default: Any = UNSET, type: Any = None, *, strict: bool = False
    ) -> None:
        """Note that a key is read; without a default its absence is an error.

        Args:
            key: The key.
            default: What the function gets instead.
            type: What it takes the value to be.
            strict: None is an error as well, if absence is.
        """
        if strict and default is UNSET:
            self._strict[key] = None
        known = self._reads.get(key)
        if known is None or (known.default is not UNSET and default is UNSET):
            self._reads[key] = StateFieldRef(key, type, default=default)

    def write(self, key: str, none: int, type: Any, *, inside: bool = False) -> None:
        """Note that a key is written on some way.

        Args:
            key: The key.
            none: Whether the value is None.
            type: Its type.
            inside: A function inside does it, which may be called at any time.
        """
        if inside:
            self._inside[key] = self._inside.get(key, 0) | none
        known = self._written.get(key)
        if known is not None:
            none |= known[0]
            type = type if known[1] == type else None
        self._written[key] = (none, type)

    def returns(self, given: Mapping[str, int]) -> None:
        """Note a way to the end of the function, and what was written on all of it."""
        self._ways.append(given)

    @property
    def reads(self) -> tuple[StateFieldRef, ...]:
        """What is read."""
        return tuple(self._reads.values())

    def derived(self) -> Derived:
        """All of it."""
        writes = self._always(lambda none: not none & IS_NONE)
        removes = self._always(lambda none: none == IS_NONE)
        some = {key: none for key, (none, _) in self._written.items()}
        rest = {key: none for key, none in some.items() if key not in {*writes, *removes}}
        may_write = [key for key, none in rest.items() if none & (IS_NOT | UNCLEAR)]
        may_remove = [key for key, none in rest.items() if none & IS_NONE]
        return Derived(
            self.reads,
            self._refs(writes),
            self._refs(may_write),
            tuple(removes),
            tuple(may_remove),
            tuple(key for key, none in some.items() if none & UNCLEAR),
            strict=tuple(self._strict),
            reads_all=self.reads_all,
            escalates=self.escalates,
            transfers=self.transfers,
        )

    def _always(self, holds: Callable[[int], bool]) -> list[str]:
        if not self._ways:
            return []
        later = self._inside
        return [
            key
            for key in self._ways[0]
            if all(key in way and holds(way[key] | later.get(key, 0)) for way in self._ways)
        ]

    def _refs(self, keys: Iterable[str]) -> tuple[StateFieldRef, ...]:
        return tuple(
            StateFieldRef(key, self.types.get(key) or self._written[key][1]) for key in keys
        )
