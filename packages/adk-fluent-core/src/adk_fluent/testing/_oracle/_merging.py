"""Reducers of the keys of random pipelines, and a state schema that has them all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.ir import Contract, Ref, StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adk_fluent.ir import Enforcement

#: What a key holds is told by its first letter: texts, numbers, any JSON, lists. Branches that
#: run at the same time write `SHARED` in declared order; nobody reads it there.
KEYS: Final = ("t1", "t2", "t3", "n1", "n2", "j1", "j2", "l1", "temp:t4", "user:t5")
SHARED: Final = "t0"
_TAIL: Final = 12  # characters, or elements, of a value that go on into the next one


def merged_texts(one: str, other: str) -> str:
    """Both, one after the other."""
    return f"{one[-_TAIL:]}&{other[-_TAIL:]}"


def merged_numbers(one: int, other: int) -> int:
    """A number that tells which was first."""
    return (one * 3 + other) % 1000


def merged_values(one: Any, other: Any) -> Any:
    """Both, in a list; of what was merged before, the last two."""
    before = cast("list[Any]", one)[-2:] if isinstance(one, list) else [one]
    return [*before, other]


def merged_lists(one: list[Any], other: list[Any]) -> list[Any]:
    """Both, one after the other, in the list of the first: it may change what it is given."""
    one += other
    del one[:-_TAIL]
    return one


_BY_KIND: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "t": merged_texts,
    "n": merged_numbers,
    "j": merged_values,
    "l": merged_lists,
}


def kind_of(key: str) -> str:
    """The first letter of a key, which tells what it holds."""
    return key.rpartition(":")[2][0]


def merged(key: str) -> StateFieldRef:
    """A key with the reducer that goes with what it holds."""
    return StateFieldRef(key, reducer=Ref.to(_BY_KIND[kind_of(key)]))


class Merging:
    """A state schema that has a reducer for every key."""

    __state_fields__: Final[Mapping[str, StateFieldRef]] = {
        key: merged(key) for key in (*KEYS, SHARED)
    }

    @classmethod
    def __state_encode__(cls, delta: Mapping[str, Any], where: str, /) -> dict[str, Any]:
        """A write as it is stored: as it is."""
        return dict(delta)


def names_merged(keys: Iterable[str]) -> Contract:
    """What a pipeline says that names these keys with their reducers, and nothing else."""
    return Contract(outputs=tuple(merged(key) for key in keys))


def keeps_merging(enforce: Enforcement) -> Contract:
    """What a part says that keeps to the schema."""
    return Contract(Ref.to(Merging), enforce, "allow")
