"""Nothing in a picture lies on anything else, whatever the pipeline."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING

import ir_strategies
import pytest
from hypothesis import given
from pictured_pipelines import pictures

from adk_fluent.backends.viz import Diagram, diagram
from adk_fluent.backends.viz._layout import Layout, Rect, layout
from adk_fluent.backends.viz._text import width
from adk_fluent.ir import (
    AgentNode,
    FallbackNode,
    LoopNode,
    Node,
    ParallelNode,
    RouteNode,
    SequenceNode,
    StateFieldRef,
    TransferNode,
)
from adk_fluent.testing._oracle import generate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pictured_pipelines import Picture

_TOUCH = 0.01
_SHORT = 100
PICTURES = {each.name: each for each in pictures()}


def overlap(one: Rect, other: Rect) -> bool:
    return (
        one.x + _TOUCH < other.x + other.width
        and other.x + _TOUCH < one.x + one.width
        and one.y + _TOUCH < other.y + other.height
        and other.y + _TOUCH < one.y + one.height
    )


def overlapping(things: Iterable[tuple[str, Rect]]) -> Iterator[tuple[str, str]]:
    """Pairs that overlap, found by a sweep from above."""
    open_: list[tuple[str, Rect]] = []
    for name, rect in sorted(things, key=lambda each: each[1].y):
        open_ = [each for each in open_ if each[1].y + each[1].height > rect.y]
        yield from ((other, name) for other, there in open_ if overlap(there, rect))
        open_.append((name, rect))


def inside(inner: Rect, outer: Rect) -> bool:
    return (
        outer.x - _TOUCH <= inner.x
        and outer.y - _TOUCH <= inner.y
        and inner.x + inner.width <= outer.x + outer.width + _TOUCH
        and inner.y + inner.height <= outer.y + outer.height + _TOUCH
    )


def problems(placed: Layout) -> list[str]:
    """What is wrong with a layout."""
    found: list[str] = []
    canvas = Rect(0, 0, placed.width, placed.height)
    boxes = [(f"box {at}", rect) for at, rect in enumerate(placed.boxes)]
    texts = [(f"text {text.text!r}", text.rect) for text in placed.texts if text.text]
    for name, rect in [*boxes, *texts, *(("frame", rect) for rect in placed.frames)]:
        if not inside(rect, canvas):
            found.append(f"{name} leaves the canvas")
    found += [f"{one} lies on {other}" for one, other in overlapping(boxes)]
    found += [f"{one} lies on {other}" for one, other in overlapping(texts)]
    for text in placed.texts:
        for at, rect in enumerate(placed.boxes):
            own = text.box == at and text.role != "key"
            if text.text and own != inside(text.rect, rect) and (own or overlap(text.rect, rect)):
                found.append(f"{text.text!r} and box {at}")
    found += _clusters(placed)
    found += _lines(placed, boxes, texts)
    return found


def _clusters(placed: Layout) -> Iterator[str]:
    """Frames hold what stands in them, and nothing else."""
    parents = [each.parent for each in placed.diagram.clusters]
    above: dict[int | None, set[int]] = {None: set()}
    for at, parent in enumerate(parents):
        above[at] = above[parent] | {at}
    for at, box in enumerate(placed.diagram.boxes):
        for cluster, frame in enumerate(placed.frames):
            here = cluster in above[box.cluster]
            if here and not inside(placed.boxes[at], frame):
                yield f"box {at} leaves frame {cluster}"
            if not here and overlap(placed.boxes[at], frame):
                yield f"box {at} lies on frame {cluster}"


def _lines(
    placed: Layout, boxes: list[tuple[str, Rect]], texts: list[tuple[str, Rect]]
) -> Iterator[str]:
    """No wire goes through a box or a text; nothing that leads on goes through a box, a key or the
    short title of a frame.
    """
    for wire in placed.wires:
        for (x0, y0), (x1, y1) in wire.lines:
            line = Rect(min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0))
            for name, rect in [*boxes, *texts]:
                if overlap(line, rect):
                    yield f"wire {wire.key!r} goes through {name}"
    free = [
        (text.text, text.rect)
        for text in placed.texts
        if text.text
        and (text.role == "key" or (text.role == "frame" and text.rect.width <= _SHORT))
    ]
    for path in placed.paths:
        for (x0, y0), (x1, y1) in pairwise(path):
            line = Rect(min(x0, x1), min(y0, y1), abs(x1 - x0), abs(y1 - y0))
            for name, rect in [*boxes, *free]:
                if overlap(line, rect):
                    yield f"a way goes through {name}"


def check(drawn: Diagram) -> None:
    assert problems(layout(drawn)) == []


@pytest.mark.parametrize("picture", PICTURES.values(), ids=PICTURES)
def test_the_pictures_of_the_documentation(picture: Picture) -> None:
    made = picture.backend
    check(diagram(picture.node, max_nodes=made.max_nodes))
    check(diagram(picture.node, data_flow=False))


@pytest.mark.parametrize("seed", range(150))
def test_random_programs(seed: int) -> None:
    random = Random(seed)
    root = generate(random.randint).root
    check(diagram(root, data_flow=random.random() < 0.8, depth=random.choice([None, None, 2])))


@ir_strategies.laws
@given(ir_strategies.graphs())
def test_any_legal_ir(root: Node) -> None:
    check(diagram(root))


KEYS = [f"key_{i}" for i in range(6)]


def talkative(random: Random, depth: int, names: Iterator[int]) -> Node:  # noqa: PLR0911
    """A random pipeline in which everything reads and writes a lot."""
    if depth == 0 or random.random() < 0.2:
        name = f"agent_{next(names)}"
        if random.random() < 0.1:
            return TransferNode(f"to_{name}", f"agent_{random.randint(0, 5)}")
        keys = [
            tuple(StateFieldRef(key) for key in random.sample(KEYS, random.randint(0, 4)))
            for _ in range(2)
        ]
        return AgentNode(name, reads_keys=keys[0], writes_keys=keys[1])
    parts = tuple(talkative(random, depth - 1, names) for _ in range(random.randint(1, 4)))
    match random.randint(0, 5):
        case 0:
            return ParallelNode("at_once", parts)
        case 1:
            return FallbackNode("try", parts)
        case 2:
            return LoopNode("loop", SequenceNode("pipeline", parts))
        case 3:
            return RouteNode("route", random.choice(KEYS), default=parts[0])
        case 4:
            return AgentNode(f"helped_{next(names)}", agent_tools=parts)
        case _:
            return SequenceNode(f"named_{next(names)}", parts)


@pytest.mark.parametrize("seed", range(60))
def test_many_wires(seed: int) -> None:
    root = talkative(Random(seed), 4, iter(range(10_000)))
    check(diagram(root, max_nodes=80))


def test_the_checks_notice_what_is_wrong() -> None:
    """The tests above would fail if there were something to find."""
    placed = layout(diagram(AgentNode("a")))
    text = placed.texts[1]
    wrong = Layout(
        placed.diagram,
        placed.width / 2,
        placed.height,
        (*placed.boxes[:-1], placed.boxes[1]),
        placed.frames,
        placed.paths,
        placed.wires,
        placed.stubs,
        (*placed.texts, text),
    )
    found = " ".join(problems(wrong))
    for word in ("leaves the canvas", "box 1 lies on box 2", "text 'a' lies on text 'a'"):
        assert word in found


def test_widths_are_at_least_those_of_a_wide_font() -> None:
    verdana = {"a": 0.601, "W": 0.989, "m": 0.973, " ": 0.352, "i": 0.274, "_": 0.636, "@": 1.0}
    for character, em in verdana.items():
        assert width(character, 100) >= 99 * em
        assert width(character, 100, bold=True) >= 99 * em
