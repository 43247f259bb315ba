"""What a pipeline promises about state, as its runs keep it."""

from __future__ import annotations

from functools import reduce
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._copies import copied_containers
from adk_fluent.errors import BuildError, UsageError
from adk_fluent.ir._node import distinct
from adk_fluent.ir._reducers import ref_reducers, same_reducer, schema_reducers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from adk_fluent.flow._strand import Strand
    from adk_fluent.ir import Node, Ref

#: Reducers by key.
Reducers = dict[str, "Ref"]
NO_REDUCERS: Final[Mapping[str, Any]] = {}


class Promises:
    """What one pipeline promises about state. Never changed, so that all its runs share it.

    Args:
        everywhere: The reducers of keys that nodes name.
        parts: Those of state schemas, by the identity of the node whose part keeps to one.
    """

    __slots__ = ("_everywhere", "_parts")

    def __init__(self, everywhere: Reducers, parts: Mapping[int, Reducers]) -> None:
        self._everywhere = everywhere
        self._parts = parts

    def reducers(self, strand: Strand) -> Mapping[str, Ref]:
        """The reducers that count where a strand stands."""
        found = dict(self._everywhere)
        for node in strand.around():
            found.update(self._parts.get(id(node), {}))
        return found


def promises_of(root: Node) -> Promises | None:
    """What a pipeline promises about state; None: nothing that a run has to do with.

    Raises:
        BuildError: Two different reducers are declared for a key.
    """
    everywhere: Reducers = {}
    parts: dict[int, Reducers] = {}
    first: dict[str, tuple[Node, Ref]] = {}
    for node in distinct(root):
        named = dict(_checked(node, ref_reducers(node), first))
        everywhere.update(named)
        if node.contract is not None:
            of_schema = dict(_checked(node, schema_reducers(node.contract), first))
            if of_schema:
                parts[id(node)] = of_schema
    return Promises(everywhere, parts) if everywhere or parts else None


def _checked(
    node: Node, declared: Iterator[tuple[str, Ref]], first: dict[str, tuple[Node, Ref]]
) -> Iterator[tuple[str, Ref]]:
    for key, reducer in declared:
        before, known = first.setdefault(key, (node, reducer))
        if not same_reducer(known, reducer):
            raise BuildError(
                f"state key {key!r} has two different reducers",
                node=node,
                found=f"{known.name} at {before.name!r}, and {reducer.name} at {node.name!r}",
                help="declare one of them wherever the key is declared",
            )
        yield key, reducer


def reduced(key: str, reducer: Ref, values: Sequence[Any]) -> Any:
    """One value of several, which stay as they are.

    Raises:
        UsageError: The reducer is async.
        Exception: What the reducer raised.
    """
    try:
        made = reduce(reducer.value, [copied_containers(each) for each in values])
    except Exception as error:
        error.add_note(f"in the reducer of state key {key!r}, {reducer.name}")
        raise
    if isawaitable(made):
        if hasattr(made, "close"):
            made.close()  # nobody will await it
        raise UsageError(
            f"the reducer of state key {key!r} is async",
            found=reducer.name,
            help="give a function that returns the value",
        )
    return made
