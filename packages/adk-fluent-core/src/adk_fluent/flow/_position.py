"""Where a run stands: flat, and JSON-shaped where state values are; what a journal keeps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from adk_fluent.flow._strand import Frame

#: Where a run stands, JSON-shaped where state values are: what a journal keeps.
Position = dict[str, Any]
OnStep = Callable[[Position], Awaitable[None]]
#: Gives the state that writes a position down, for the event that brings the run there.
Journaled = Callable[[Position], Mapping[str, Any]]

#: Keys of a step's frame: the strand in which it goes on, and how it ended while hooks still run.
INSIDE: Final = "in"
ENDED: Final = "out"


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


def open_up(position: Position) -> None:
    """Bring a position into the form of a run that has nothing around its steps; in place."""
    strands: dict[str, list[Frame]] = position["strands"]
    for id in list(strands):
        frames = strands.get(id)
        while frames and INSIDE in frames[-1]:
            frames[-1:] = strands.pop(frames[-1][INSIDE])


def enclose(position: Position, frames: list[Frame], first: int) -> None:
    """Let a stack end at a step that something stands around, and go on in a strand of its own.

    Args:
        position: Where the run stands.
        frames: The stack.
        first: The place of the first step that something stands around.
    """
    frame = frames[first]
    if INSIDE not in frame:
        id = new_id(position)
        position["strands"][id] = frames[first:]
        frames[first:] = [{"c": frame["c"], INSIDE: id}]


def below(frame: Frame) -> list[str]:
    """Take the strands that go on below a frame out of it."""
    ids: list[str] = list(frame.pop("strands", {}).values())
    return [*ids, frame.pop(INSIDE)] if INSIDE in frame else ids
