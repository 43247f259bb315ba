"""Pictures that nobody set limits for can be read, whatever the pipeline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import pytest
from pictured_pipelines import pictures

from adk_fluent import Agent, FanOut, Pipeline, Route
from adk_fluent.backends.viz import Diagram, diagram, render
from adk_fluent.backends.viz._layout import layout
from adk_fluent.errors import UsageError
from adk_fluent.ir import AgentNode, LoopNode, Node, ParallelNode, TimeoutNode

if TYPE_CHECKING:
    from collections.abc import Callable

WIDEST, HIGHEST = 3000, 12000
LONG: Final = "long" * 50


def agents(count: int, name: str = "a") -> list[Agent]:
    return [Agent(f"{name}{i}") for i in range(count)]


def talkers(count: int) -> list[Agent]:
    """Agents with the widest boxes there are."""
    return [
        each.reads(f"read_{LONG}").writes(f"wrote_{at}_{LONG}")
        for at, each in enumerate(agents(count, LONG))
    ]


def route(count: int) -> Route:
    made = Route("key")
    for at, agent in enumerate(agents(count)):
        made = made.eq(f"value {at}", agent)
    return made


def nested(count: int, around: Callable[[int, Node], Node]) -> Node:
    here: Node = AgentNode("inside")
    for at in range(count):
        here = around(at, here)
    return here


TIMEOUTS: Final = nested(400, lambda at, here: TimeoutNode(f"t{at}", here, seconds=5))
LARGE: Final[dict[str, Node]] = {
    "delegates": Agent("boss").delegates(*agents(300)).to_ir(),
    "helpers": Agent("boss").agent_tool(*agents(300)).to_ir(),
    "route": route(500).to_ir(),
    "branches": FanOut(*agents(300)).to_ir(),
    "wide branches": FanOut(*talkers(300)).to_ir(),
    "wide branches after a step": (Agent("first") >> FanOut(*talkers(300))).to_ir(),
    "branches of branches": FanOut(*(FanOut(*agents(12, f"a{at}_")) for at in range(12))).to_ir(),
    "steps": Pipeline("steps", *agents(300)).to_ir(),
    "wide steps": Pipeline("steps", *talkers(300)).to_ir(),
    "timeouts": TIMEOUTS,
    "loops": nested(400, lambda at, here: LoopNode(f"l{at}", here)),
    "helpers of helpers": nested(400, lambda at, here: AgentNode(f"h{at}", agent_tools=(here,))),
    "parallels": nested(
        400, lambda at, here: ParallelNode(f"p{at}", (here, AgentNode(f"beside{at}")))
    ),
    "everything three times": nested(60, lambda at, here: ParallelNode(f"p{at}", (here,) * 3)),
}


def size(drawn: Diagram) -> tuple[float, float]:
    placed = layout(drawn)
    return placed.width, placed.height


def folded(drawn: Diagram) -> list[str]:
    return [" ".join((box.title, *box.lines)) for box in drawn.boxes if box.kind == "folded"]


@pytest.mark.parametrize("node", LARGE.values(), ids=LARGE)
@pytest.mark.parametrize("options", [{}, {"data_flow": False}, {"depth": 15}], ids=str)
def test_no_picture_is_too_large(node: Node, options: dict[str, Any]) -> None:
    drawn = diagram(node, **options)
    wide, high = size(drawn)
    assert wide <= WIDEST
    assert high <= HIGHEST
    assert re.search(r"\d+ that are not shown", drawn.summary)


def test_the_svg_says_its_size() -> None:
    found = re.search(r'viewBox="0 0 (\d+) (\d+)"', render(LARGE["delegates"]))
    assert found is not None
    assert 2000 < int(found[1]) <= WIDEST
    assert int(found[2]) < 400


@pytest.mark.parametrize("format", ["mermaid", "dot", "html"])
def test_the_other_formats_show_the_same(format: Any) -> None:
    text = render(LARGE["branches"], format)
    assert "281 steps more" in text
    assert "a18" in text
    assert "a19" not in text


@pytest.mark.parametrize("name", ["delegates", "helpers", "branches"])
def test_the_end_of_a_row_is_one_box(name: str) -> None:
    assert folded(diagram(LARGE[name])) == ["… 281 steps more"]


def test_a_row_in_the_middle_keeps_its_beginning_too() -> None:
    drawn = diagram((Agent("first") >> FanOut(*agents(30)) >> Agent("last")).to_ir())
    assert folded(drawn) == ["… 11 steps more"]
    (at,) = [at for at, box in enumerate(drawn.boxes) if box.kind == "folded"]
    assert sum(link.target == at for link in drawn.links) == 1
    assert sum(link.source == at for link in drawn.links) == 1
    assert folded(diagram(FanOut(*agents(20)).to_ir())) == []


def test_wide_boxes_make_short_rows() -> None:
    (said,) = folded(diagram(LARGE["wide branches after a step"]))
    assert re.fullmatch(r"… 29\d steps more", said)


def test_deep_frames_end_in_a_box() -> None:
    drawn = diagram(TIMEOUTS)
    assert len(drawn.clusters) == 20
    assert folded(drawn) == ["t379 timeout, 380 steps"]


def test_who_asks_for_all_gets_all() -> None:
    assert len(diagram(LARGE["delegates"], max_nodes=None).boxes) == 303
    assert len(diagram(TIMEOUTS, max_nodes=None).clusters) == 400
    assert len(diagram(TIMEOUTS, depth=None).clusters) == 400
    assert size(diagram(LARGE["delegates"], depth=None))[0] > WIDEST


def test_a_number_of_boxes_holds_however_large_they_are() -> None:
    drawn = diagram(LARGE["delegates"], max_nodes=150)
    assert len(drawn.boxes) == 152
    assert size(drawn)[0] > WIDEST


def test_a_depth_alone_leaves_the_rows_short() -> None:
    assert folded(diagram(LARGE["branches"], depth=3)) == ["… 281 steps more"]
    assert len(diagram(TIMEOUTS, depth=5).clusters) == 5


def test_the_words_that_are_the_default_may_be_said() -> None:
    node = LARGE["branches"]
    assert render(node, depth="fit", max_nodes="fit") == render(node)
    wrong: Any = "all"
    with pytest.raises(UsageError, match=r"depth= takes a whole number from 0, None .* or 'fit'"):
        render(node, depth=wrong)


def test_what_fits_is_shown_whole() -> None:
    for each in pictures():
        if each.name != "catalogue":
            assert diagram(each.node) == diagram(each.node, depth=None, max_nodes=None)
