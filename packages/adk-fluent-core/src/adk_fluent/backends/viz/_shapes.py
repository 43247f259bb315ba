"""Outlines of boxes as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.backends.viz._layout import Rect
from adk_fluent.backends.viz._sizes import POINTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.backends.viz._diagram import BoxKind
    from adk_fluent.backends.viz._layout import Point


def number(value: float) -> str:
    """A coordinate, as short as it can be."""
    return f"{value:.1f}".removesuffix(".0")


def way(points: Sequence[Point]) -> str:
    """Straight lines from point to point, as the data of a path."""
    return f"M{'L'.join([f'{number(x)} {number(y)}' for x, y in points])}"


def rectangle(rect: Rect) -> str:
    """The attributes that place a rectangle."""
    wide, high = number(rect.width), number(rect.height)
    return f'x="{number(rect.x)}" y="{number(rect.y)}" width="{wide}" height="{high}"'


def shape(kind: BoxKind, rect: Rect) -> str:  # noqa: PLR0911  # a row for each shape
    """The outline of a box."""
    look = f'class="shape {kind}"'
    x, y, wide, high = rect.x, rect.y, rect.width, rect.height
    middle = (x + wide / 2, y + high / 2)
    match kind:
        case "start":
            return _circle(look, middle, wide / 2)
        case "end":
            return _circle(look, middle, wide / 2) + _circle('class="join"', middle, wide / 4)
        case "choice":
            return f'<path {look} d="{_hexagon(rect)}"/>'
        case "remote":
            return f'<path {look} d="{_cloud(rect)}"/>'
        case "gate":
            return f'<rect {look} {rectangle(rect)} rx="3"/>{_person((x + 14, middle[1]))}'
        case "folded":
            behind = Rect(x + 3, y - 3, wide, high)
            return (
                f'<rect {look} {rectangle(behind)} rx="3"/><rect {look} {rectangle(rect)} rx="3"/>'
            )
        case _:
            return f'<rect {look} {rectangle(rect)} rx="{number(_ROUND.get(kind, high / 2))}"/>'


#: Radius of corners; the others are round at their ends.
_ROUND: Final[dict[BoxKind, float]] = {
    "agent": 7,
    "function": 0,
    "look": 7,
    "transfer": 0,
    "join": 2,
    "other": 3,
}


def _circle(look: str, middle: Point, radius: float) -> str:
    x, y = middle
    return f'<circle {look} cx="{number(x)}" cy="{number(y)}" r="{number(radius)}"/>'


def _person(middle: Point) -> str:
    x, y = middle
    body = f'<path class="person" d="{way(((x - 7, y + 9),))}a7 8 0 0 1 14 0Z"/>'
    return _circle('class="person"', (x, y - 5), 4) + body


def _hexagon(rect: Rect) -> str:
    right, low, middle = rect.x + rect.width, rect.y + rect.height, rect.y + rect.height / 2
    corners = (
        (rect.x, middle),
        (rect.x + POINTED, rect.y),
        (right - POINTED, rect.y),
        (right, middle),
        (right - POINTED, low),
        (rect.x + POINTED, low),
    )
    return f"{way(corners)}Z"


def _cloud(rect: Rect) -> str:
    """Bumps around a rectangle that lies a little inside, so that they stay in the box."""
    rim = 9.0
    wide, high = rect.width - 2 * rim, rect.height - 2 * rim
    across, down = max(3, round(wide / 34)), max(1, round(high / 30))
    steps = (
        *((wide / across, 0.0),) * across,
        *((0.0, high / down),) * down,
        *((-wide / across, 0.0),) * across,
        *((0.0, -high / down),) * down,
    )
    bumps = [_bump(x, y, rim) for x, y in steps]
    return f"{way(((rect.x + rim, rect.y + rim),))}{''.join(bumps)}Z"


def _bump(x: float, y: float, rim: float) -> str:
    half = (abs(x) + abs(y)) / 2
    radius = number((half**2 + rim**2) / (2 * rim))  # an arc over 2 * half that is `rim` high
    return f"a{radius} {radius} 0 {int(half < rim)} 1 {number(x)} {number(y)}"
