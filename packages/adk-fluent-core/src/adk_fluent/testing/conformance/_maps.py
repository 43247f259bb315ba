"""Programs about maps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.builders import (
    Pipeline,
    map_over,
)
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import beside
from adk_fluent.testing.conformance._parallels import reduced
from adk_fluent.testing.conformance._program import Raised, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adk_fluent.builders import State
    from adk_fluent.ir import OnError
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._program import Program

_MANY: Final = 1_000


def maps() -> Iterator[Program]:
    """All of them."""
    starts: dict[str, dict[str, Any]] = {"an empty list": {"items": []}, "an absent list": {}}
    for what, start in starts.items():
        yield case(
            f"map_over/{what}",
            "map_over",
            lambda p: map_over("items", p.agent("x"), name="root"),
            start=start,
            end={**start, "results": []},
            events=(". root {'results': []}",),
        )
    yield case(
        "map_over/what is no list is told",
        "map_over",
        lambda p: Pipeline("root", map_over("items", p.agent("x"), name="m")),
        start={"items": "text"},
        raises=Raised("UsageError", "ADKF101", node="m"),
    )
    items = list(range(_MANY))
    for width, order in ((None, beside), (10, beside), (1, None)):
        fn = tuple(f"m{n} f@root {{'square': {n * n}}}" for n in items)
        yield case(
            f"map_over/a thousand items, {width or 'all'} at a time",
            "map_over",
            lambda p, width=width: map_over(
                "items",
                p.fn("f", {"square": lambda s: s["_item"] ** 2}, later=True),
                result_key="square",
                output_key="squares",
                concurrency=width,
                name="root",
            ),
            start={"items": items},
            end={"items": items, "squares": [n * n for n in items]},
            calls=("f",) * _MANY,
            events=(
                *(order(*((line,) for line in fn)) if order else fn),
                f". root {{'square': None, 'squares': {[n * n for n in items]}}}",
            ),
        )
    yield case(
        "map_over/results keep the list's order, whatever ends first",
        "map_over",
        lambda p: map_over("items", _backwards(p), result_key="r", output_key="out", name="root"),
        start={"items": [0, 1, 2]},
        end={"items": [0, 1, 2], "out": [0, 10, 20]},
        calls=("f",) * 3,
        events=(
            "m2 f@root {'r': 20}",
            "m1 f@root {'r': 10}",
            "m0 f@root {'r': 0}",
            ". root {'out': [0, 10, 20], 'r': None}",
        ),
    )
    yield case(
        "map_over/items see nothing of each other",
        "map_over",
        lambda p: map_over(
            "items",
            p.fn("f", {"sum": lambda s: s.get("sum", 0) + s["item"]}),
            item_key="item",
            result_key="sum",
            concurrency=1,
            name="root",
        ),
        start={"items": [1, 2, 3]},
        end={"items": [1, 2, 3], "results": [1, 2, 3]},
        calls=("f",) * 3,
        events=(
            *(f"m{n} f@root {{'sum': {n + 1}}}" for n in range(3)),
            ". root {'results': [1, 2, 3], 'sum': None}",
        ),
    )
    yield case(
        "map_over/no more at a time than it may",
        "map_over",
        lambda p: map_over("items", _counted(p), result_key="busy", concurrency=3, name="root"),
        start={"items": list(range(9))},
        end={"items": list(range(9)), "results": [True] * 9},
        calls=("f",) * 9,
        events=(
            *beside(*((f"m{n} f@root {{'busy': True}}",) for n in range(9))),
            f". root {{'busy': None, 'results': {[True] * 9}}}",
        ),
    )
    yield case(
        "map_over/a result that was not written is None",
        "map_over",
        lambda p: map_over("items", p.fn("f"), result_key="r", name="root", concurrency=1),
        start={"items": [1, 2]},
        end={"items": [1, 2], "results": [None, None]},
        calls=("f", "f"),
        events=(". root {'results': [None, None]}",),
    )
    yield case(
        "map_over/in a map",
        "map_over",
        lambda p: map_over(
            "rows",
            map_over(
                "row",
                p.fn("f", {"r": lambda s: s["cell"] * 10}),
                item_key="cell",
                result_key="r",
                output_key="done",
                concurrency=1,
                name="inner",
            ),
            item_key="row",
            result_key="done",
            output_key="table",
            concurrency=1,
            name="root",
        ),
        start={"rows": [[1, 2], []]},
        end={"rows": [[1, 2], []], "table": [[10, 20], []]},
        calls=("f", "f"),
        events=(
            "m0.m0 f@root {'r': 10}",
            "m0.m1 f@root {'r': 20}",
            "m0 inner@root {'done': [10, 20], 'r': None}",
            "m1 inner@root {'done': []}",
            ". root {'done': None, 'table': [[10, 20], []]}",
        ),
    )
    yield case(
        "map_over/an item that fails ends it",
        "map_over",
        lambda p: map_over("items", p.fn("f", {"k": _not_two}), concurrency=1, name="root"),
        start={"items": [1, 2, 3]},
        end={"items": [1, 2, 3], "k": 1},
        calls=("f", "f"),
        events=("m0 f@root {'k': 1}",),
        raises=Raised("ValueError", text="two", node="f"),
    )
    survived: tuple[tuple[OnError, list[Any]], ...] = (
        ("collect", [1, None, 3]),
        ("skip", [1, 3]),
    )
    for on_error, results in survived:
        lists: dict[str, Any] = {"results": results}
        if on_error == "collect":
            lists["results_errors"] = [None, {"code": "ValueError", "message": "two"}, None]
        yield case(
            f"map_over/an item that fails does not end it: {on_error}",
            "map_over",
            lambda p, on_error=on_error: map_over(
                "items",
                Pipeline("body", p.agent("a", "said", writes="w"), p.fn("f", {"k": _not_two})),
                result_key="k",
                concurrency=1,
                on_error=on_error,
                name="root",
            ),
            start={"items": [1, 2, 3], "w": "before"},
            end={"items": [1, 2, 3], "w": "before", **lists},
            text="said\n\nsaid",
            calls=("a", "f") * 3,
            events=(
                *("m0.s0 a 'said' {'w': 'said'}", "m0.s1 f@root {'k': 1}"),
                "~m1.s0 a 'said' {'w': 'said'}",
                *("m2.s0 a 'said' {'w': 'said'}", "m2.s1 f@root {'k': 3}"),
                f". root {shown({'k': None, 'w': 'before', **lists})}",
            ),
        )
    yield case(
        "map_over/a reducer merges what the items wrote, in the list's order",
        "map_over",
        lambda p: map_over(
            "items",
            Pipeline(
                "body",
                p.fn("f", {"k": lambda s: [s["item"]]}, later=True),
                p.agent("a").reads(reduced("k", _extended)),
            ),
            item_key="item",
            result_key="k",
            concurrency=2,
            name="root",
        ),
        start={"items": [1, 2, 3], "k": ["before"]},
        end={"items": [1, 2, 3], "k": [1, 2, 3], "results": [[1], [2], [3]]},
        text="A\n\nA\n\nA",
        calls=None,
        events=(
            *beside(*((f"m{n}.s0 f@root {{'k': [{n + 1}]}}", f"m{n}.s1 a 'A'") for n in range(3))),
            ". root {'k': [1, 2, 3], 'results': [[1], [2], [3]]}",
        ),
    )


def _extended(one: list[int], other: list[int]) -> list[int]:
    one.extend(other)  # it may change what it is given
    return one


def _not_two(state: State) -> int:
    if state["_item"] == 2:
        raise ValueError("two")
    return state["_item"]


def _backwards(p: Bench) -> Callable[[State], Any]:
    """A function whose last call ends first."""
    ended: list[int] = []

    async def f(state: State) -> dict[str, int]:
        p.calls.append("f")
        while len(ended) < 2 - state["_item"]:  # noqa: ASYNC110  # works in any event loop
            await asyncio.sleep(0)
        try:
            return {"r": state["_item"] * 10}
        finally:
            asyncio.get_running_loop().call_later(0.01, ended.append, state["_item"])

    return f


def _counted(p: Bench) -> Callable[[State], Any]:
    busy: list[int] = []

    async def f(state: State) -> dict[str, bool]:
        p.calls.append("f")
        busy.append(1)
        for _ in range(5):
            await asyncio.sleep(0)
        fits = len(busy) <= 3
        busy.pop()
        return {"busy": fits}

    return f
