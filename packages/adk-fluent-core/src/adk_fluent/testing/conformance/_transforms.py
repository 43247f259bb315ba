"""Programs about `S`, changes to state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.builders import FanOut, Pipeline, Route, S, map_over
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._order import beside
from adk_fluent.testing.conformance._program import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adk_fluent.builders import Builder, State
    from adk_fluent.testing.conformance._program import Program


_SAME: Final[dict[str, Any]] = {"a": 1, "b": "é"}


def transforms() -> Iterator[Program]:
    """All of them."""
    start = {"a": 1, "b": "é", "user:u": "U"}
    table: list[tuple[str, Callable[[], Builder], dict[str, Any]]] = [
        ("set", lambda: S.set(a={"x": [None]}, n=[]), {"a": {"x": [None]}, "n": []}),
        ("set of what is there already, which is a write", lambda: S.set(a=1, b="é"), _SAME),
        ("default", lambda: S.default(a=2, c=3), {"c": 3}),
        ("drop", lambda: S.drop("a", "missing"), {"a": None}),
        ("pick", lambda: S.pick("b"), {"a": None}),
        ("rename", lambda: S.rename(a="b", b="a"), {"a": "é", "b": 1}),
        ("rename of what is absent", lambda: S.rename(missing="c"), {}),
        ("merge", lambda: S.merge("b", "user:u", into="c"), {"c": "é\nU"}),
        ("transform", lambda: S.transform("b", str.upper), {"b": "É"}),
        ("transform of what is absent", lambda: S.transform("missing", str.upper), {}),
        ("compute", lambda: S.compute(a=_next, c=_next), {"a": 2, "c": 2}),
        ("guard", lambda: S.guard("a"), {}),
        ("log", lambda: S.log("a"), {}),
        ("user scope", lambda: S.user.set(u="V"), {"user:u": "V"}),
        ("app scope", lambda: S.app.set(v="W"), {"app:v": "W"}),
        ("default of what is there", lambda: S.default(a=2, b=None), {}),
    ]
    for what, make, delta in table:
        end = {**start, **delta}
        yield case(
            f"transform/{what}",
            "transform",
            lambda _, make=make: Pipeline("root", make().named("t")),
            start=start,
            end={key: value for key, value in end.items() if value is not None},
            events=(f"s0 t@root {shown(delta)}",) if delta else (),
        )
    yield case(
        "transform/in a map they see the item",
        "transform",
        lambda _: map_over(
            "items",
            S.compute(doubled=lambda state: state["_item"] * 2).named("t"),
            result_key="doubled",
            name="root",
            concurrency=1,
        ),
        start={"items": [1, "é"]},
        end={"items": [1, "é"], "results": [2, "éé"]},
        events=(
            "m0 t@root {'doubled': 2}",
            "m1 t@root {'doubled': 'éé'}",
            ". root {'doubled': None, 'results': [2, 'éé']}",
        ),
    )
    yield case(
        "transform/what was there already is written by an item of a map",
        "transform",
        lambda p: map_over(
            "items",
            Route("_item").eq(1, p.fn("f", {"k": "new"})).otherwise(S.set(k="old").named("t")),
            result_key="k",
            name="root",
            concurrency=1,
        ),
        start={"items": [1, 2], "k": "old"},
        end={"items": [1, 2], "k": "old", "results": ["new", "old"]},
        calls=("f",),
        events=(
            "m0.r0 f@root {'k': 'new'}",
            "m1.r1 t@root {'k': 'old'}",
            ". root {'results': ['new', 'old']}",
        ),
    )
    yield case(
        "transform/what was there already is written by the last branch",
        "transform",
        lambda p: FanOut(
            "root",
            Pipeline("one", p.awaits("wait", "g"), p.fn("f", {"k": "new"})),
            Pipeline("two", S.set(k="old").named("t"), p.fn("g")),
        ),
        start={"k": "old"},
        calls=beside(("wait", "f"), ("g",)),
        events=("p1.s0 t@root {'k': 'old'}", "p0.s1 f@root {'k': 'new'}", ". root {'k': 'old'}"),
    )


def _next(state: State) -> int:
    return state["a"] + 1
