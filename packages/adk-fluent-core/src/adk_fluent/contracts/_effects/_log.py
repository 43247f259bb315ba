"""What the analysis has seen a function do to state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.contracts._effects._derived import Derived
from adk_fluent.contracts._effects._values import IS_NONE, IS_NOT, UNCLEAR, none_of, type_of
from adk_fluent.ir import UNSET, StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adk_fluent.contracts._effects._values import Value


class Log:
    """What was seen so far.

    Attributes:
        reads_all: Whether it looks at all keys there are.
        escalates: Whether it may end a loop.
        transfers: Whether it may hand over.
        doubtful: Keys whose values a schema may refuse.
        refused: Keys whose values a schema surely refuses: what is given, and what is declared.
        result: What it may return.
        returned: The types of keys that the function says it returns.
    """

    __slots__ = (
        *("_inside", "_read_as", "_reads", "_ways", "_written"),
        *("doubtful", "escalates", "reads_all", "refused", "result", "returned", "transfers"),
    )

    def __init__(self) -> None:
        self._reads: dict[str, Any] = {}
        self._read_as: dict[str, list[Any]] = {}
        self._written: dict[str, tuple[int, Any]] = {}
        self._inside: dict[str, int] = {}
        self._ways: list[Mapping[str, int]] = []
        self.doubtful: dict[str, None] = {}
        self.refused: dict[str, tuple[Any, Any]] = {}
        self.result: Value | None = None
        self.returned: dict[str, Any] = {}
        self.reads_all: bool = False
        self.escalates: bool = False
        self.transfers: bool = False

    def read(self, key: str, default: Any = UNSET, type: Any = None) -> None:
        """Note that a key is read; without a default its absence is an error.

        Args:
            key: The key.
            default: What the function gets instead.
            type: What it takes the value to be.
        """
        if default is UNSET or key not in self._reads:
            self._reads[key] = default
        if type is not None and type not in (known := self._read_as.setdefault(key, [])):
            known.append(type)

    def write(self, key: str, none: int, type: Any, *, inside: bool = False) -> None:
        """Note that a key is written on some way.

        Args:
            key: The key.
            none: Whether the value is None.
            type: Its type; of None there is nothing to know.
            inside: A function inside does it, which may be called at any time.
        """
        if inside:
            self._inside[key] = self._inside.get(key, 0) | none
        before, known = self._written.get(key, (0, None))
        if none == IS_NONE:
            type = known
        elif before & ~IS_NONE and known != type:
            type = None
        self._written[key] = (before | none, type)

    def written_as(self, key: str) -> Any:
        """The type of what was written."""
        return self._written[key][1]

    def returns(self, given: Mapping[str, int]) -> None:
        """Note a way to the end of the function, and what was written on all of it."""
        self._ways.append(given)

    @property
    def reads(self) -> tuple[StateFieldRef, ...]:
        """What is read: a key once for each type that it is taken to be."""
        return tuple(
            StateFieldRef(key, type, default=default)
            for key, default in self._reads.items()
            for type in self._read_as.get(key, (None,))
        )

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
            doubtful=tuple(self.doubtful),
            refused=tuple((key, *kinds) for key, kinds in self.refused.items()),
            gives=None if self.result is None else type_of(self.result),
            gives_none=self.result is None or none_of(self.result) != IS_NOT,
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
            StateFieldRef(key, self.returned.get(key) or self._written[key][1]) for key in keys
        )
