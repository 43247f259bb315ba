"""The error about a run whose position cannot be written down: which key is at fault, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from adk_fluent.backends._storable import json_fault
from adk_fluent.errors import UnstorableValueError
from adk_fluent.ir import MapOverNode, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adk_fluent.ir import Node

_WHEN: Final = "a run that pauses, or is resumable, keeps "
_WRITES: Final = "what open branches and attempts wrote, and what was there before they did"
_ITEMS: Final = "the items of a map_over and what they gave"


class _Kept(NamedTuple):
    """A value in a position, and where it is from."""

    keys: tuple[str, ...]
    value: Any
    why: str


def unkept(position: Mapping[str, Any], node: Node, why: str) -> UnstorableValueError:
    """The error about a position that holds what is no JSON.

    Args:
        position: Where the run stands.
        node: The pipeline.
        why: What the encoder says, where it is nothing of the user's.
    """
    what = "where the run stands cannot be written down, for it holds what is no JSON"
    for kept in _kept(position, node):
        fault = json_fault(kept.value)
        if fault is not None:
            paths = [f"state[{key!r}]{fault.path}" for key in kept.keys]
            return UnstorableValueError(
                what,
                key=kept.keys[0] if len(kept.keys) == 1 else None,
                path=paths[0] if len(paths) == 1 else fault.path,
                node=node,
                found=f"{' or '.join(paths)} {fault.says}",
                help=f"{fault.help}; {_WHEN}{kept.why}",
            )
    return UnstorableValueError(what, node=node, found=why, help=f"{_WHEN}{_ITEMS}; and {_WRITES}")


def _kept(position: Mapping[str, Any], node: Node) -> Iterator[_Kept]:
    """What a position keeps that is the user's."""
    for scope in position.get("scopes", {}).values():
        for key, (_, value) in scope["w"].items():
            yield _Kept((key,), value, _WRITES)
    for key, value in position.get("base", {}).items():
        yield _Kept((key,), value, _WRITES)
    maps = [each for each in walk(node) if isinstance(each, MapOverNode)]
    lists = tuple(dict.fromkeys(each.list_key for each in maps))
    results = tuple(dict.fromkeys(each.result_key or each.output_key for each in maps))
    for frames in position["strands"].values():
        for frame in frames:
            yield _Kept(lists, frame.get("items"), _ITEMS)
            for value in frame.get("results", {}).values():
                yield _Kept(results, value, _ITEMS)
