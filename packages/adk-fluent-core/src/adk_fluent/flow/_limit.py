"""The time a whole run may take: a timeout around the pipeline, and yet no part of it.

Whoever goes on with a run may give it another time, or none. So a position says whether there is a
limit, and is brought into the other form where it has to be.
"""

from __future__ import annotations

from typing import Any, Final

from adk_fluent.ir import Node, TimeoutNode

_LIMITED: Final = "limited"


def limited(root: Node, seconds: float) -> Node:
    """A pipeline that may take so many seconds."""
    return TimeoutNode(root.name, root, seconds, location=root.location)


def fit(position: dict[str, Any], *, limit: bool) -> None:
    """Bring a position into the form that a run with a limit has, or one without; in place."""
    if (_LIMITED in position) is limit:
        return
    if limit:
        _wrap(position)
    else:
        _unwrap(position)


def _wrap(position: dict[str, Any]) -> None:
    number: int = position["next"]
    position["next"] = number + 1
    strands = position["strands"]
    strands[str(number)] = strands["0"]
    strands["0"] = [{"c": 0, "strands": {"0": str(number)}, "scopes": {}, "done": {}}]
    position[_LIMITED] = 1


def _unwrap(position: dict[str, Any]) -> None:
    strands = position["strands"]
    frame: dict[str, Any] = strands["0"][0] if strands["0"] else {}
    strand = frame.get("strands", {}).get("0")
    if strand is not None:
        strands["0"] = strands.pop(strand)
    elif frame.get("done"):  # the pipeline has come to its end
        strands["0"] = []
    del position[_LIMITED]
