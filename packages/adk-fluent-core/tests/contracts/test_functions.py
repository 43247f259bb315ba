"""Functions that a run cannot call: what is found before it says what the run says."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Loop, Pipeline, Route, S, expect, tap, transfer, until
from adk_fluent.contracts import UncallableFunction, check_all
from adk_fluent.errors import UsageError
from adk_fluent.testing import mock_backend

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder
    from adk_fluent.contracts import Diagnostic


def loose(fn: Callable[..., Any]) -> Any:
    """The function as it is, where type checkers would see the mistake."""
    return fn


def one(fn: Callable[[Any], object]) -> Any:
    """The same for a lambda of one parameter."""
    return fn


def two(fn: Callable[[Any, Any], object]) -> Any:
    """The same for two."""
    return fn


def three(fn: Callable[[Any, Any, Any], object]) -> Any:
    """The same for three."""
    return fn


ADD = "add .inject(db=...) to the pipeline, or give `db` a default"


@loose
def needs(state: Any, db: Any) -> None:
    """Needs a resource."""


@loose
def needs_two(state: Any, db: Any, *, http: Any, limit: int = 3) -> None:
    """Needs two."""


@loose
def only(state: Any, db: Any, /) -> None:
    """Takes both by position only."""


@loose
def nothing() -> bool:
    """Takes nothing."""
    return True


@loose
def no_value(*, db: Any = None) -> None:
    """Takes nothing by position."""


@loose
def with_default(state: Any, db: Any = 1) -> None:
    """Can do without."""


@loose
def anything(*values: Any, **named: Any) -> None:
    """Takes whatever there is."""


@loose
def anything_and_db(*values: Any, db: Any) -> None:
    """Takes any values and a resource."""


class Step:
    def __call__(self, state: Any, db: Any) -> None:
        """Needs a resource."""

    def method(self, state: Any, db: Any) -> None:
        """Needs a resource."""


class Signed:
    """Says of itself what is not so."""

    __signature__ = "nonsense"

    def __call__(self, state: Any) -> None:
        """Take state."""


def wrapped(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def call(state: Any) -> Any:
        return fn(state, "a database of its own")

    return call


def forwarded(fn: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **{"db": 1, **kwargs})

    return call


def after(step: Callable[..., Any] | Builder) -> Pipeline:
    return Agent("a") >> step


@dataclass
class Case:
    pipeline: Builder
    says: str
    help: str = ADD


LAMBDA = two(lambda s, db: None)
NONE = "`nothing` takes no value, and is called with 1"
TAKE = "give it a parameter for what it is called with, as in `lambda state: ...`"

UNCALLABLE = {
    "a step": Case(after(needs), "`needs` needs `db`, which no resource fills"),
    "a lambda": Case(after(LAMBDA), "in `step`, `<lambda>` needs `db`, which no resource fills"),
    "two": Case(
        after(needs_two),
        "`needs_two` needs `db` and `http`, which no resource fills",
        "add .inject(db=..., http=...) to the pipeline, or give them defaults",
    ),
    "one of two": Case(
        after(needs_two).inject(db=1),
        "`needs_two` needs `http`, which no resource fills",
        "add .inject(http=...) to the pipeline, or give `http` a default",
    ),
    "nearly": Case(
        after(needs).inject(dbs=1),
        "`needs` needs `db`, which no resource fills",
        "did you mean the resource `dbs`? Otherwise add .inject(db=...) to the pipeline",
    ),
    "by position only": Case(
        after(only).inject(db=1),
        "`only` takes `db` by position only, and resources are given by name",
        "put the `/` of its parameters before `db`",
    ),
    "a resource called like the first parameter": Case(
        after(needs).inject(db=1) >> one(lambda db: None),
        "in `step`, `<lambda>` takes `db` first, which gets state and the resource `db`",
        "put a parameter for state before `db`",
    ),
    "a partial": Case(
        after(functools.partial(needs)), "`needs` needs `db`, which no resource fills"
    ),
    "an object": Case(after(Step()), "`Step` needs `db`, which no resource fills"),
    "a method": Case(after(Step().method), "`method` needs `db`, which no resource fills"),
    "a tap": Case(after(tap(needs)), "`needs` needs `db`, which no resource fills"),
    "an expectation": Case(
        after(expect(needs, "no")), "in `expect`, `needs` needs `db`, which no resource fills"
    ),
    "a guard": Case(
        after(S.guard(needs)), "in `guard`, `needs` needs `db`, which no resource fills"
    ),
    "until": Case(
        Loop("again", Agent("a")).until(needs),
        "in `again`, `needs` needs `db`, which no resource fills",
    ),
    "until nothing": Case(Agent("a") * until(nothing), f"in `loop`, {NONE}", TAKE),
    "a test": Case(
        after(Route("way").when(needs, Agent("b"))),
        "in `route`, `needs` needs `db`, which no resource fills",
    ),
    "a transfer": Case(
        after(transfer("b", when=needs)) >> Agent("b"),
        "in `transfer`, `needs` needs `db`, which no resource fills",
    ),
    "a computed value": Case(
        after(S.compute(n=len) >> S.compute(x=needs)),
        "in `compute`, `needs` needs `db`, which no resource fills",
    ),
    "a changed value": Case(
        after(S.set(x=1) >> S.transform("x", needs)),
        "`needs` needs `db`, which no resource fills",
    ),
    "merged values": Case(
        after(S.set(x=1) >> S.merge("x", "y", into="z", fn=one(lambda x: x))),
        "in `merge`, `<lambda>` takes 1 value, and is called with 2",
        "give it 2 parameters, one for each value",
    ),
    "merged values and a resource": Case(
        after(S.set(x=1) >> S.merge("x", "y", into="z", fn=three(lambda x, y, db: x))),
        "in `merge`, `<lambda>` needs `db`, which no resource fills",
    ),
    "nothing": Case(after(nothing), NONE, TAKE),
    "nothing by position": Case(
        after(no_value), "`no_value` takes no value, and is called with 1", TAKE
    ),
}

FINE = {
    "a resource": after(needs).inject(db=1),
    "two": after(needs_two).inject(db=1, http=2),
    "one of a part": Pipeline("all", after(needs).inject(db=1), needs),
    "a default": after(with_default),
    "anything": after(anything),
    "anything and a resource": after(anything_and_db).inject(db=1),
    "a partial": after(functools.partial(needs, db=1)),
    "an object": after(Step()).inject(db=1),
    "a wrapper that fills it": after(wrapped(needs)),
    "a wrapper that takes anything": after(forwarded(needs)),
    "a resource that nothing names": after(one(lambda s: None)).inject(db=1),
    "something of Python's own": after(tap(print)),
    "what says of itself what is not so": after(Signed()),
    "a value named like a resource": after(S.set(x=1) >> S.transform("x", lambda db: db)).inject(
        db=1
    ),
    "computed": after(S.set(x=1) >> S.compute(y=needs)).inject(db=1),
    "merged": after(
        S.set(x=1) >> S.merge("x", "y", into="z", fn=three(lambda x, y, db: db))
    ).inject(db=1),
}


def found(pipeline: Builder) -> list[Diagnostic]:
    return [each for each in check_all(pipeline) if type(each) is UncallableFunction]


async def run(pipeline: Builder) -> None:
    await pipeline.run("go", backend=mock_backend({"a": "A", "b": "B"}))


@pytest.mark.parametrize("case", UNCALLABLE.values(), ids=UNCALLABLE.keys())
async def test_what_cannot_be_called_is_found_and_refused_with_the_same_words(case: Case) -> None:
    [finding] = found(case.pipeline)
    assert (finding.message, finding.help) == (case.says, case.help)
    with pytest.raises(UsageError) as error:
        await run(case.pipeline)
    told = error.value
    assert case.says.endswith(told.what)
    assert told.help == case.help
    assert (told.node, told.location) == (finding.node, finding.location)


@pytest.mark.parametrize("pipeline", FINE.values(), ids=FINE.keys())
async def test_what_can_be_called_is_not_found(pipeline: Builder) -> None:
    assert found(pipeline) == []
    await run(pipeline)


async def test_an_error_of_the_function_itself_stays_as_it_is() -> None:
    def step(state: Any) -> None:
        needs(state)

    for pipeline in (after(step), after(S.compute(x=step)), after(tap(operator.neg))):
        assert found(pipeline) == []
        with pytest.raises(TypeError) as error:
            await run(pipeline)
        assert type(error.value) is TypeError


def test_two_tests_of_one_route_are_told_once_each() -> None:
    way = Route("way").when(needs, Agent("b")).when(nothing, Agent("c")).when(needs, Agent("d"))
    assert [each.message for each in found(after(way))] == [
        "in `route`, `needs` needs `db`, which no resource fills",
        f"in `route`, {NONE}",
    ]
