"""Where a run stands: flat, and JSON-shaped where state values are; what a journal keeps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

#: Where a run stands, JSON-shaped where state values are: what a journal keeps.
Position = dict[str, Any]
OnStep = Callable[[Position], Awaitable[None]]
#: Gives the state that writes a position down, for the event that brings the run there.
Journaled = Callable[[Position], Mapping[str, Any]]


def new_position() -> Position:
    """The position of a run that has not begun."""
    return {"v": 1, "next": 1, "strands": {"0": [{"c": 0}]}}


def questions_at(position: Position) -> dict[str, str]:
    """The questions that stand open at a position: id to kind."""
    strands = position["strands"].values()
    return {
        id: kind
        for frames in strands
        for frame in frames
        for id, kind in frame.get("waits", {}).items()
    }


def new_id(position: Position) -> str:
    """A number that nothing else in the run has."""
    number = position["next"]
    position["next"] = number + 1
    return str(number)
