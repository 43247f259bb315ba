"""Data flow through maps: what their results are made of."""

from __future__ import annotations

from typing import Any

from adk_fluent import Agent, S, map_over
from adk_fluent.contracts import MaybeUndefined, check_all
from adk_fluent.ir import ExecutionConfig
from adk_fluent.testing import Call, Script, mock_backend


def stop(tool_context: Any) -> None:
    """Enough."""
    tool_context.actions.escalate = True


async def test_an_item_that_ends_the_loop_around_its_map_owes_nothing_and_the_results_do() -> None:
    each = map_over("items", Agent("a").tool(stop).writes("k"), result_key="k")
    loop = (each >> Agent("c").writes("late")) * 2
    pipeline = S.set(items=["x", "y"]) >> loop >> Agent("b").reads("results", "late")
    found = [each for each in check_all(pipeline) if isinstance(each, MaybeUndefined)]
    assert {(each.node, each.message) for each in found} == {
        ("map_over", "`map_over` collects `k` of its items, which may have no value by then"),
        ("b", "`b` reads `late`, which may have no value by then"),
    }
    script = {"a": Script(default=Call("exit_loop")), "b": "B"}
    config = ExecutionConfig(contracts="off")
    ran = await pipeline.run("go", backend=mock_backend(script), config=config)
    assert ran.state == {"items": ["x", "y"], "results": [None, None]}


async def test_what_was_there_before_is_no_result_of_an_item() -> None:
    body = S.merge("note", into="k")
    pipeline = S.set(items=["x"], k="old") >> map_over("items", body, result_key="k")
    found = [each for each in check_all(pipeline) if each.node == "map_over"]
    assert any("collects `k` of its items" in each.message for each in found)
    config = ExecutionConfig(contracts="off")
    ran = await pipeline.run("go", backend=mock_backend({}), config=config)
    assert ran.state["results"] == [None]
    with_note = S.set(note="new") >> pipeline
    assert not any("collects" in each.message for each in check_all(with_note))
