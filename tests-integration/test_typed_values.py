"""Single pipelines over typed state in which values may be of a wrong type: none is proven to hold.

Each program stands beside one in which all is well, and which is proven.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import pytest
from typed_pipelines.programs import HEADER, load
from typed_pipelines.running import on_mock, ran

from adk_fluent.contracts import check_all


class Case(NamedTuple):
    """A program with a gap, and what makes it wrong, or right.

    Attributes:
        name: What it is about.
        fields: Of the schema.
        body: The rest, with ``GAP``.
        wrong: Fills the gap so that it fails.
        right: Fills it so that it does not.
    """

    name: str
    fields: tuple[str, ...]
    body: str
    wrong: str
    right: str


READ_A = """
def f(state):
    note(Shop.bind(state).a)
    return None
"""
CASES = [
    Case(
        "a function step",
        ("a: SessionScoped[int]",),
        READ_A + "def g(state):\n    return {'a': GAP}\n"
        "def made():\n    return 'x'\n"
        "root = Pipeline(g, f).state(Shop)\nstart = {}",
        "made()",
        "1",
    ),
    Case(
        "a transform by a function",
        ("a: SessionScoped[str]",),
        READ_A
        + 'root = Pipeline(GAP, f).state(Shop).contract(inputs=[Shop.a])\nstart = {"a": "x"}',
        'S.transform("a", len)',
        'S.default(a="y")',
    ),
    Case(
        "a computed value",
        ("a: SessionScoped[str]",),
        READ_A + "root = Pipeline(GAP, f).state(Shop)\nstart = {}",
        "S.compute(a=lambda state: 3)",
        "S.set(a='x')",
    ),
    Case(
        "a value that was moved",
        ("a: SessionScoped[int]", "b: SessionScoped[str]", "c: SessionScoped[int]"),
        READ_A + "root = Pipeline(S.rename(GAP='a'), f).state(Shop).contract("
        "inputs=[Shop.b, Shop.c])\nstart = Shop.initial(b='x', c=1)",
        "b",
        "c",
    ),
    Case(
        "values that were joined",
        ("a: SessionScoped[int]", "b: SessionScoped[str]", "c: SessionScoped[str]"),
        READ_A.replace(".a)", ".GAP)") + "root = Pipeline(S.merge('b', into='GAP'), f).state(Shop)"
        ".contract(inputs=[Shop.b])\nstart = Shop.initial(b='x')",
        "a",
        "c",
    ),
    Case(
        "an item of a map",
        ("l: SessionScoped[list[GAP]]", "a: SessionScoped[int]", "r: SessionScoped[list[str]]"),
        READ_A + "root = map_over(Shop.l, Pipeline(f, Agent('b').mock('x')), item_key=Shop.a, "
        "output_key=Shop.r).state(Shop).contract(inputs=[Shop.l])\nstart = {'l': [GAP('1')]}",
        "str",
        "int",
    ),
    Case(
        "the results of a map",
        ("l: SessionScoped[list[str]]", "a: SessionScoped[list[GAP]]"),
        READ_A + "root = Pipeline(map_over(Shop.l, Agent('b').mock('x'), output_key=Shop.a), f)"
        ".state(Shop).contract(inputs=[Shop.l])\nstart = {'l': ['1']}",
        "int",
        "str",
    ),
    Case(
        "a list of other items",
        ("a: SessionScoped[list[int]]",),
        READ_A + "root = Pipeline(S.set(a=[GAP]), f).state(Shop)\nstart = {}",
        "'x'",
        "1",
    ),
    Case(
        "an input of no type",
        ("a: SessionScoped[int]",),
        READ_A + "root = Pipeline(f).contract(inputs=[GAP])\nstart = {'a': 'x'} if GAP == 'a' else "
        "{'a': 1}",
        "'a'",
        "Shop.a",
    ),
    Case(
        "a value beyond a limit",
        ("a: SessionScoped[int] = field(ge=0)", "b: SessionScoped[int]"),
        READ_A + "g = Agent('b').writes(GAP).mock(says(data(GAP, 0 if GAP is Shop.a else -1)))\n"
        "class Other(StateSchema):\n    b: SessionScoped[int] = field(ge=0)\n"
        "def h(state):\n    note(Other.bind(state).b)\n    return None\n"
        "root = Pipeline(g, f if GAP is Shop.a else h)\nstart = {}",
        "Shop.b",
        "Shop.a",
    ),
    Case(
        "a key that the same function reads",
        ("a: SessionScoped[int]",),
        "def g(state):\n    note(Shop.bind(state).a)\n    return {'a': GAP}\n"
        "root = Pipeline(g).state(Shop).contract(inputs=[Shop.a])\nstart = {'a': 1}",
        "'x'",
        "2",
    ),
    Case(
        "a list as a tuple",
        ("a: SessionScoped[list[int]]",),
        "class Other(StateSchema):\n    a: SessionScoped[GAP]\n"
        + READ_A.replace("Shop", "Other")
        + "root = Pipeline(Agent('b').writes(Shop.a).mock(says(data(Shop.a, [1]))), f).state(Shop)"
        "\nstart = {}",
        "tuple[int, int]",
        "list[float]",
    ),
    Case(
        "a dict as a model",
        ("a: SessionScoped[dict[str, int]]",),
        "class Other(StateSchema):\n    a: SessionScoped[GAP]\n"
        + READ_A.replace("Shop", "Other")
        + "root = Pipeline(Agent('b').writes(Shop.a).mock(says(data(Shop.a, {}))), f).state(Shop)"
        "\nstart = {}",
        "Address",
        "dict[str, float]",
    ),
    Case(
        "an int or a text as a text",
        ("a: SessionScoped[int | str]",),
        "class Other(StateSchema):\n    a: SessionScoped[GAP]\n"
        + READ_A.replace("Shop", "Other")
        + "root = Pipeline(Agent('b').writes(Shop.a).mock(says(data(Shop.a, 3))), f).state(Shop)"
        "\nstart = {}",
        "str",
        "str | int",
    ),
    Case(
        "an answer that may be None",
        ("a: SessionScoped[str | None]",),
        "class Other(StateSchema):\n    a: SessionScoped[GAP]\n"
        + READ_A.replace("Shop", "Other")
        + "root = Pipeline(Agent('b').writes(Shop.a).mock(says(data(Shop.a, None))), f).state(Shop)"
        "\nstart = {}",
        "str",
        "str | None",
    ),
    Case(
        "reduced values of another type",
        ("a: SessionScoped[Annotated[list[int], Reduce(GAP)]]",),
        READ_A + "def g(state):\n    return Shop.delta(a=[1])\n"
        "def h(state):\n    return Shop.delta(a=[2])\n"
        "root = Pipeline(FanOut(g, h), f).state(Shop)\nstart = {}",
        "lambda one, other: 'no'",
        "operator.add",
    ),
]
NAMES = [case.name for case in CASES]


def text(case: Case, filled: str) -> str:
    fields = "".join(f"    {each}\n" for each in case.fields)
    header = HEADER.format(future="") + "from pydantic import Field\n"
    return f"{header}class Shop(StateSchema):\n{fields}{case.body}\n".replace("GAP", filled)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_what_fails_is_not_proven(case: Case) -> None:
    assert not check_all(load(text(case, case.wrong)).root).proven


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_what_is_not_proven_here_fails(case: Case) -> None:
    module = load(text(case, case.wrong))
    watch = asyncio.run(ran(module, on_mock, 0, contracts="off"))
    assert watch.wrong


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_what_is_well_is_proven(case: Case) -> None:
    module = load(text(case, case.right))
    assert check_all(module.root).proven
    assert asyncio.run(ran(module, on_mock, 0)).wrong == []
