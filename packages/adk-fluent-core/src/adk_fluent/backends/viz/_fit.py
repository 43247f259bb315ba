"""How much of a pipeline a picture shows, so that it can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from adk_fluent.backends.viz._layout import layout
from adk_fluent.backends.viz._parts import Limits

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.backends.viz._diagram import Diagram

#: A limit of what is shown: a number, None for no limit, ``fit`` for a picture that can be read.
Limit = int | Literal["fit"] | None

MAX_NODES: Final = 150
MAX_DEPTH: Final = 20
#: Of an SVG, in pixels.
MAX_WIDTH: Final = 3000
MAX_HEIGHT: Final = 12000
#: Branches beside each other, at most; the later ones are for those that are too wide.
_ROWS: Final = (20, 16, 12, 8, 6, 4)


def fitting(draw: Callable[[Limits], Diagram], depth: Limit, max_nodes: Limit) -> Diagram:
    """Draw as much as the limits allow; see `Options`."""
    boxes = MAX_NODES if max_nodes == "fit" else max_nodes
    if max_nodes != "fit" or depth is None:
        return draw(Limits(None if depth == "fit" else depth, boxes))
    return _readable(draw, MAX_DEPTH if depth == "fit" else depth)


def _readable(draw: Callable[[Limits], Diagram], depth: int) -> Diagram:
    """Shorten the rows until they are narrow enough, then look for how many boxes have room."""
    row = _ROWS[-1]
    for row in _ROWS:
        drawn = draw(Limits(depth, MAX_NODES, row))
        placed = layout(drawn)
        if placed.width <= MAX_WIDTH:
            if placed.height <= MAX_HEIGHT:
                return drawn
            break
    fits, too_many = 1, MAX_NODES
    best = draw(Limits(depth, fits, row))
    while too_many - fits > 1:
        boxes = (fits + too_many) // 2
        drawn = draw(Limits(depth, boxes, row))
        placed = layout(drawn)
        if placed.width <= MAX_WIDTH and placed.height <= MAX_HEIGHT:
            fits, best = boxes, drawn
        else:
            too_many = boxes
    return best
