"""Prints both hashes of pipelines that hold every sort of thing; run by `test_hash.py`.

Nothing may be moved to another function here without need: qualified names are in the hashes.
"""

# pyright: basic
# ruff: noqa: C416, SIM220
# it is full of odd code, for that is what is hashed

from __future__ import annotations

import asyncio
import datetime as dt
import decimal
import functools
import json
import operator
import pathlib
import re
from enum import Enum
from typing import Any, Literal

from adk_fluent import ir


class Color(Enum):
    RED = 1


class Schema:
    text: str


class Tool:
    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, text: str) -> str:
        """Run.

        Args:
            text: A text.
        """
        return text

    @classmethod
    def make(cls) -> Tool:
        return cls("x")

    @staticmethod
    def static(x: int) -> int:
        # a comment
        return x


def plain(state: Any, *, limit: int = 3) -> dict[str, Any]:
    name, quote = "n", "q"
    if state:
        return {f"{name!r:>{limit}} {'x' if quote else f'{name}'} {{}} é": 1}
    return {
        "rows": [
            f"""{row}
    {limit=}"""
            for row in state
        ]
    }


async def fetch(state: Any) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {key: value async for key, value in state}


def closing_over(limit: Any, words: tuple[str, ...], fn: Any) -> Any:
    def inner(state: Any) -> bool:
        return bool(state["n"] > limit and words and fn and inner)

    return inner


@functools.lru_cache(maxsize=3)
def cached(x: int) -> int:
    return x


def sourceless(text: str) -> Any:
    return eval(text, {"__name__": "nowhere"})


two = (lambda x: x > 1), (lambda x: x > 2)
ones = (lambda: 1), (lambda: 2)
nested = [lambda x: lambda y: x + y, lambda *a, **k: a if k else (a, k)]
odd = (
    lambda row: {k: v
                 for k, v in row},  # the end
    lambda x: x and \
    not x,
)  # fmt: skip

OBJECTS: dict[str, Any] = {
    "plain": plain,
    "fetch": fetch,
    "two0": two[0],
    "two1": two[1],
    "ones0": ones[0],
    "ones1": ones[1],
    "nested0": nested[0],
    "nested1": nested[1],
    "nested inner": nested[0](1),
    "odd0": odd[0],
    "odd1": odd[1],
    "closure": closing_over(0.5, ("b", "a"), plain),
    "closure2": closing_over(2.0, (), re.compile("x+", re.IGNORECASE)),
    "closure3": closing_over(decimal.Decimal("1.5"), (), dt.date(2026, 1, 2)),
    "closure4": closing_over(1, (), {"b": {2, 1}, "a": [Color.RED, b"x", None, 1 + 2j]}),
    "closure5": closing_over(1, (), pathlib.PurePosixPath("/x")),
    "partial": functools.partial(plain, limit=4),
    "method": Tool("a").run,
    "class method": Tool.make,
    "static": Tool.static,
    "cached": cached,
    "class": Schema,
    "object": Tool("search"),
    "builtin": len,
    "bound builtin": [].append,
    "method descriptor": str.upper,
    "getter": operator.itemgetter("done"),
    "caller": operator.methodcaller("get", "k", default=1),
    "sourceless": sourceless("lambda x, *, y=(1, 2): [z for z in x if z != 'no' and y]"),
    "enum": Color.RED,
    "module": json,
    "dict": {"b": 1, "a": frozenset({"x", "y", "z"})},
}

TYPES: dict[str, Any] = {
    "str": str,
    "generic": dict[str, list[int]],
    "union": int | str | None,
    "literal": Literal["a", "b", 3],
    "schema": list[Schema],
}


def pipelines() -> dict[str, ir.Node]:
    found: dict[str, ir.Node] = {
        name: ir.FunctionNode("f", ir.Ref.to(value)) for name, value in OBJECTS.items()
    }
    for name, form in TYPES.items():
        found[f"type {name}"] = ir.AgentNode("a", reads_keys=(ir.StateFieldRef("k", form),))
    agent = ir.AgentNode(
        "Ünï",
        model="m",
        content=ir.ContentSpec(frozenset(ir.Modality), frozenset({ir.Modality.TEXT})),
        settings=(("a", float("inf")), ("b", -0.1), ("c", 10**400), ("d", ir.UNSET)),
        callbacks=(("before_agent", (ir.Ref.to(plain),)),),
    )
    steps = tuple(found.values())
    found["all"] = ir.AppNode(
        "app",
        ir.SequenceNode(
            "main", (agent, ir.LoopNode("again", agent, until=ir.Ref.to(two[0])), *steps)
        ),
        execution=ir.ExecutionConfig(
            custom_metadata={"b": 1, "a": [1, 2]}, middlewares=(Tool("m"),), default_model="d"
        ),
    )
    return found


if __name__ == "__main__":
    hashes = {n: (ir.structure_hash(p), ir.content_hash(p)) for n, p in pipelines().items()}
    print(json.dumps(hashes))
