"""Steps that are made by a function: tap, expect, race, map_over, timeout, transfer."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, get_args, overload

from adk_fluent._words import describe
from adk_fluent.builders._effects import reading
from adk_fluent.builders._flow import Builder, Race, Silent
from adk_fluent.builders._keys import as_key, as_written
from adk_fluent.builders._operands import (
    as_agent,
    as_node,
    as_predicate,
    function_name,
    passengers,
    positive,
)
from adk_fluent.builders._settings import as_text
from adk_fluent.builders._types import Out_co, Value
from adk_fluent.errors import UsageError
from adk_fluent.ir import (
    Effects,
    ExpectNode,
    MapOverNode,
    Node,
    OnError,
    Ref,
    TapNode,
    TimeoutNode,
    TransferNode,
)

_ON_ERROR: Final[tuple[OnError, ...]] = get_args(OnError)

if TYPE_CHECKING:
    from adk_fluent.builders._base import AgentLike, StepLike
    from adk_fluent.builders._types import (
        KeyLike,
        PredicateLike,
        TapFunction,
    )


class Tap(Silent):
    """Looks at state and changes nothing; made by `tap`."""

    __slots__ = ("_effects", "_fn")
    _kind = "tap"

    def __init__(
        self, fn: TapFunction | Ref, name: str | None = None, effects: Effects | None = None
    ) -> None:
        super().__init__(name)
        if not isinstance(fn, Ref) and (not callable(fn) or isinstance(fn, type)):
            raise UsageError(
                "tap(...) takes a function of state",
                found=describe(fn),
                help="pass fn(state), such as print; what it returns is not used",
            )
        name = function_name(fn, "a tap", self._kind, help="do the work when called; do not yield")
        self._name = self._name or name
        self._fn: Ref = fn if isinstance(fn, Ref) else Ref.to(fn)
        self._effects: Effects = reading(self._fn.value) if effects is None else effects

    def _freeze(self) -> Node:
        return TapNode(self.name, self._fn, self._effects, location=self._location)


class Expect(Silent):
    """Stops the run when its predicate does not hold; made by `expect`."""

    __slots__ = ("_message", "_predicate")
    _kind = "expect"

    def __init__(self, predicate: PredicateLike, message: str, name: str | None = None) -> None:
        super().__init__(name)
        self._predicate = as_predicate(predicate, "expect(...)")
        self._message = as_text(message, "the message of expect(...)")

    def _freeze(self) -> Node:
        return ExpectNode(self.name, self._predicate, self._message, location=self._location)


class MapOver(Builder[Out_co]):
    """A body for each item of a list; made by `map_over`."""

    __slots__ = (
        *("_body", "_concurrency", "_item_key", "_list_key", "_on_error", "_output_key"),
        "_result_key",
    )
    _kind = "map_over"

    def __init__(
        self,
        key: KeyLike,
        body: StepLike,
        *,
        item_key: KeyLike = "_item",
        output_key: KeyLike = "results",
        result_key: KeyLike | None = None,
        concurrency: int | None = None,
        on_error: OnError = "raise",
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self._list_key = as_key(key, "map_over(...)").key
        self._item_key = as_written(item_key, "item_key").key
        self._output_key = as_written(output_key, "output_key").key
        self._result_key = None if result_key is None else as_written(result_key, "result_key").key
        self._concurrency: int | None = (
            None if concurrency is None else positive(concurrency, "concurrency", whole=True)
        )
        if on_error not in _ON_ERROR:
            raise UsageError(
                f"on_error= takes {', '.join(map(repr, _ON_ERROR))}", found=describe(on_error)
            )
        self._on_error: OnError = on_error
        self._body = as_node(body, "the body of map_over")
        self._board(passengers(body))

    def _freeze(self) -> Node:
        return MapOverNode(
            self.name,
            self._list_key,
            self._body,
            self._item_key,
            self._output_key,
            self._result_key,
            self._concurrency,
            self._on_error,
            location=self._location,
        )


class Timeout(Builder[Out_co]):
    """A body that is cancelled when it takes too long; made by `timeout`."""

    __slots__ = ("_body", "_seconds")
    _kind = "timeout"

    def __init__(self, body: StepLike, seconds: float, name: str | None = None) -> None:
        super().__init__(name)
        swapped = isinstance(body, int | float)
        help = "timeout(agent, 5): first what is bounded, then the seconds" if swapped else None
        self._seconds = float(positive(seconds, "seconds", help=help))
        if self._seconds == inf:
            raise UsageError(
                "seconds is a number that ends",
                found="inf",
                help="leave the timeout out where there is no limit",
            )
        self._body = as_node(body, "the body of timeout")
        self._board(passengers(body))

    def _freeze(self) -> Node:
        return TimeoutNode(self.name, self._body, self._seconds, location=self._location)


class Transfer(Builder):
    """Hands over to another step of the pipeline; made by `transfer`."""

    __slots__ = ("_condition", "_target")
    _kind = "transfer"

    def __init__(
        self, target: str | AgentLike, when: PredicateLike | None = None, name: str | None = None
    ) -> None:
        super().__init__(name)
        self._target = _target(target)
        self._condition = None if when is None else as_predicate(when, "when")

    def _freeze(self) -> Node:
        return TransferNode(self.name, self._target, self._condition, location=self._location)


def _target(target: object) -> str:
    if isinstance(target, str) and target.strip():
        return target
    if isinstance(target, str):
        raise UsageError(
            "transfer(...) takes the name of a step",
            found="an empty str",
        )
    return as_agent(target, "transfer(...)").name


def tap(fn: TapFunction, *, name: str | None = None) -> Tap:
    """A step that looks at state and changes nothing.

    Args:
        fn: ``fn(state)``, sync or async; what it returns is not used.
        name: The step's name; None is the function's.
    """
    return Tap(fn, name)


def expect(
    predicate: PredicateLike, message: str = "Expectation failed", *, name: str | None = None
) -> Expect:
    """A step that stops the run with `ExpectationError` unless a predicate holds.

    Args:
        predicate: A function of state, sync or async.
        message: What the error says.
        name: The step's name.
    """
    return Expect(predicate, message, name)


@overload
def race(*branches: Builder[Value], name: str | None = ...) -> Race[Value]: ...
@overload
def race(*branches: StepLike, name: str | None = ...) -> Race: ...
def race(*branches: StepLike, name: str | None = None) -> Race:
    """Run branches at the same time; the first success wins, the others are cancelled and undone.

    Args:
        *branches: What runs.
        name: The step's name.
    """
    return Race(*branches) if name is None else Race(name, *branches)


@overload
def map_over(
    key: KeyLike,
    body: Builder[Value],
    *,
    item_key: KeyLike = ...,
    output_key: KeyLike = ...,
    result_key: KeyLike | None = ...,
    concurrency: int | None = ...,
    on_error: OnError = ...,
    name: str | None = ...,
) -> MapOver[list[Value]]: ...
@overload
def map_over(
    key: KeyLike,
    body: StepLike,
    *,
    item_key: KeyLike = ...,
    output_key: KeyLike = ...,
    result_key: KeyLike | None = ...,
    concurrency: int | None = ...,
    on_error: OnError = ...,
    name: str | None = ...,
) -> MapOver: ...
def map_over(
    key: KeyLike,
    body: StepLike,
    *,
    item_key: KeyLike = "_item",
    output_key: KeyLike = "results",
    result_key: KeyLike | None = None,
    concurrency: int | None = None,
    on_error: OnError = "raise",
    name: str | None = None,
) -> MapOver:
    """Run a body once for each item of a list in state; results in the list's order.

    What the body writes is gone afterwards, but for the results, what a reducer joins, and keys of
    ``user:`` and ``app:``.

    Args:
        key: State key of the list.
        body: Runs on a snapshot of state in which `item_key` is the item.
        item_key: Where the body finds its item.
        output_key: Where the list of results is written.
        result_key: The key of the body's state that is an item's result; None takes its answer.
        concurrency: Items at the same time, at most; None is all.
        on_error: What becomes of an item that fails. ``"raise"`` ends the map with its error.
            ``"collect"`` gives it None for a result; under ``{output_key}_errors`` is a list that
            has, at the same index, ``{"code": ..., "message": ...}``, and None for the others.
            ``"skip"`` leaves it out of the results. Both log it as a warning, keep it in
            `RunResult.discarded`, and leave it out of `RunResult.output`.
        name: The step's name.
    """
    return MapOver(
        key,
        body,
        item_key=item_key,
        output_key=output_key,
        result_key=result_key,
        concurrency=concurrency,
        on_error=on_error,
        name=name,
    )


@overload
def timeout(body: Builder[Value], seconds: float, *, name: str | None = ...) -> Timeout[Value]: ...
@overload
def timeout(body: StepLike, seconds: float, *, name: str | None = ...) -> Timeout: ...
def timeout(body: StepLike, seconds: float, *, name: str | None = None) -> Timeout:
    """Cancel a body with `StepTimeoutError` when it takes longer than some seconds.

    Args:
        body: What is bounded.
        seconds: How long it may take.
        name: The step's name.
    """
    return Timeout(body, seconds, name)


def transfer(
    target: str | AgentLike, *, when: PredicateLike | None = None, name: str | None = None
) -> Transfer:
    """A step that hands over to another one of the same pipeline; behind it, the flow goes on.

    Args:
        target: An agent or named arrangement that stands elsewhere in the pipeline, or its name.
        when: A function of state, sync or async: hand over only if it holds.
        name: The step's name.
    """
    return Transfer(target, when, name)
