"""Reducers: one for a key."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from adk_fluent.contracts._reports._diagnostic import Related
from adk_fluent.contracts._reports._issues import ConflictingReducers
from adk_fluent.ir._promised import ref_reducers, same_reducer, schema_reducers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import Node, Ref


def check_reducers(graph: Graph) -> Iterator[Diagnostic]:
    """No two nodes or schemas declare different reducers for one key."""
    first: dict[str, tuple[Node, Ref]] = {}
    told: set[tuple[str, int]] = set()
    for node in graph.nodes:
        declared = ref_reducers(node)
        if node.contract is not None:
            declared = chain(declared, schema_reducers(node.contract))
        for key, reducer in declared:
            before, known = first.setdefault(key, (node, reducer))
            if same_reducer(known, reducer) or (key, id(node)) in told:
                continue
            told.add((key, id(node)))
            yield ConflictingReducers.at(
                graph,
                node,
                f"`{node.name}` merges `{key}` by `{reducer.name}`, "
                f"and `{before.name}` by `{known.name}`",
                related=[Related.at(before, "the other one is declared here")],
                help="declare one of them wherever the key is declared",
            )
