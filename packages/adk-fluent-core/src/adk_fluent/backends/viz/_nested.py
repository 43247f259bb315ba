"""Clusters with what stands in them, for formats that nest them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.backends.viz._diagram import Diagram

#: What comes next: a box, or the beginning or end of a cluster; and its index.
Step = tuple[Literal["box", "open", "close"], int]


def nested(diagram: Diagram) -> Iterator[Step]:
    """Every box and cluster, inner ones between the beginning and end of outer ones."""
    inside: dict[int | None, list[Step]] = {}
    for at, cluster in enumerate(diagram.clusters):
        inside.setdefault(cluster.parent, []).append(("open", at))
    for at, box in enumerate(diagram.boxes):
        inside.setdefault(box.cluster, []).append(("box", at))
    todo: list[Step] = inside.get(None, [])[::-1]
    while todo:
        step = todo.pop()
        yield step
        if step[0] == "open":
            todo.append(("close", step[1]))
            todo.extend(reversed(inside.get(step[1], [])))
