"""Pipelines that read and write state, of several shapes, in words that the monolith knows, too.

It has our import name, so what is imported is untyped. `size` is about how many nodes there are.
"""

from __future__ import annotations

from importlib import import_module
from random import Random
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_fluent: Any = import_module("adk_fluent")
Agent, FanOut, Fallback, Loop, Route = (
    getattr(_fluent, name) for name in ("Agent", "FanOut", "Fallback", "Loop", "Route")
)

MODEL: Final = "gemini-2.5-flash"
#: How many cases a route has, and how many nodes a part with such a route.
CASES: Final = 9
ROUTED: Final = 2 + 3 * CASES + 2
#: How often arrangements stand in each other in `nested`.
DEPTH: Final = 12


def agent(name: str, reads: str = "", writes: str = "", model: Any = MODEL) -> Any:
    """An agent whose instruction has keys in it, and whose answer is written to a key."""
    named = " ".join(f"{{{key}}}" for key in reads.split())
    made = Agent(name, model).instruct(f"use {named}" if named else "begin")
    return made.writes(writes) if writes else made


def lost(name: str, reads: str = "", writes: str = "") -> Any:
    """An agent that reads what nothing writes, and writes nothing: there is one finding of it."""
    return agent(name, f"m_{name}")


def chain(size: int, make: Any = agent) -> Any:
    """Each agent reads what the one before it has written."""
    made = make("a0", "", "k0")
    for i in range(1, size - 2):
        made = made >> make(f"a{i}", f"k{i - 1}", f"k{i}")
    return made >> make("end", f"k{size - 3}", "")


def wide(size: int, make: Any = agent) -> Any:
    """Agents beside each other read one key; one after them reads what they have written."""
    branches = FanOut("p")
    for i in range(size - 4):
        branches = branches.branch(make(f"a{i}", "y", f"k{i}"))
    join = make("join", " ".join(f"k{i}" for i in range(size - 4)), "")
    return make("first", "", "y") >> branches >> join


def routed(size: int, make: Any = agent) -> Any:
    """Routes one after the other, two steps in each case, a reader of their answers behind."""
    made: Any = None
    for i in range(max(size // ROUTED, 1)):
        route = Route(f"i{i}")
        for j in range(CASES):
            steps = make(f"x{i}_{j}", "", f"o{i}") >> make(f"y{i}_{j}", f"o{i}", "")
            route = route.eq(str(j), steps)
        route = route.otherwise(make(f"d{i}", "", f"o{i}"))
        part = agent(f"c{i}", "", f"i{i}") >> route >> make(f"e{i}", f"o{i}", "")
        made = part if made is None else made >> part
    return made


def nested(size: int, make: Any = agent) -> Any:
    """Arrangements of all kinds in each other, at random, and the same each time."""
    return agent("first", "", "x") >> _Nest(make).arranged(size - 2, DEPTH)


class _Nest:
    def __init__(self, make: Any) -> None:
        self.make = make
        self.random = Random(1)  # noqa: S311  # the same each time
        self.count = 0

    def name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def arranged(self, size: int, depth: int) -> Any:
        if size < 6 or depth == 0:
            steps = [self.make(self.name("a"), "x", "") for _ in range(max(size, 1))]
            made = steps[0]
            for step in steps[1:]:
                made = made >> step
            return made
        one, other = (self.arranged((size - 2) // 2, depth - 1) for _ in range(2))
        kind = self.random.choice(("sequence", "parallel", "loop", "route", "fallback"))
        match kind:
            case "sequence":
                return one >> other
            case "parallel":
                return FanOut(self.name("p"), one, other)
            case "loop":
                return Loop(self.name("l"), one, other, max=2)
            case "fallback":
                return Fallback(self.name("f"), one, other)
            case _:
                return Route("x").eq(self.name("case"), one).otherwise(other)


def deep(kind: str, size: int) -> Any:
    """Fallbacks, loops or routes in each other."""
    nodes, around = DEEP[kind]
    made = agent("last", "x")
    for i in range(size // nodes):
        made = around(i, agent(f"a{i}", "x"), made)
    return agent("first", "", "x") >> made


def _case(number: int, first: Any, rest: Any) -> Any:
    return Route("x").eq(f"case{number}", first >> rest).otherwise(agent(f"b{number}", "x"))


#: Kind to how many nodes one takes, and what makes one of a number, a step and what is inside.
DEEP: Final[dict[str, tuple[int, Callable[[int, Any, Any], Any]]]] = {
    "fallback": (2, lambda i, first, rest: Fallback(f"f{i}", first, rest)),
    "loop": (3, lambda i, first, rest: Loop(f"l{i}", first, rest, max=2)),
    "route": (4, _case),
}


SHAPES: Final[dict[str, Callable[..., Any]]] = {
    "chain": chain,
    "wide": wide,
    "routed": routed,
    "nested": nested,
}
