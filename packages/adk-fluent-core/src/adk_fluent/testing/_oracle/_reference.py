"""What a pipeline means: a recursive, sequential interpreter on plain dicts.

The measure for everything that runs pipelines. It shares no code with the flow engine and has
neither tasks nor an undo log: a part of a pipeline is a function from state to an `Outcome`, whose
writes are a plain list. What a discarded attempt wrote is simply left out.

A pipeline whose result depends on timing, such as a race that two branches could win, has no
meaning here and raises `UndeterminedError`.
"""

from __future__ import annotations

import inspect
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain, product
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.errors import (
    AgentReportedError,
    ExpectationError,
    OutputMissingError,
    StepTimeoutError,
    UsageError,
)
from adk_fluent.ir import (
    AgentNode,
    ExpectNode,
    FallbackNode,
    FunctionNode,
    LoopNode,
    MapOverNode,
    Match,
    Node,
    ParallelNode,
    Predicate,
    RaceNode,
    Ref,
    RouteNode,
    SequenceNode,
    TapNode,
    TimeoutNode,
    TransferNode,
    TransformNode,
    walk,
)
from adk_fluent.testing._oracle._meaning import (
    Chain,
    Meaning,
    Outcome,
    State,
    joined,
    kept,
    side_by_side,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

_SURE: Final = 1.0  # seconds in which everything here is done


class UndeterminedError(Exception):
    """The result of a pipeline depends on timing, so nothing can be said about it."""


@dataclass(frozen=True, slots=True)
class Act:
    """What an agent does in one turn.

    Attributes:
        says: Its answer.
        writes: What its callbacks and tools write before.
        raises: The error it raises instead.
        reports: Code and message of the error it reports instead.
        escalates: It calls a tool that ends the loop; what it says beside is no answer.
        hangs: It never ends.
    """

    says: str = ""
    writes: State = field(default_factory=dict[str, Any])
    raises: Exception | None = None
    reports: tuple[str, str] | None = None
    escalates: bool = False
    hangs: bool = False


@dataclass(frozen=True, slots=True)
class _Inside:
    """What stands somewhere above.

    Attributes:
        loop: A loop, which an agent may end.
        attempt: A fallback or race, where a reported error is a failure.
        reducers: What makes one value of several, by key.
    """

    loop: bool = False
    attempt: bool = False
    reducers: Mapping[str, Callable[[Any, Any], Any]] = field(default_factory=dict[str, Any])


def meaning(root: Node, state: State, act: Callable[[AgentNode, State], Act]) -> Meaning:
    """What a pipeline means.

    Args:
        root: The pipeline.
        state: State at the start.
        act: What an agent does, given the state it sees.

    Raises:
        UndeterminedError: It depends on timing, or the pipeline never ends.
    """
    outcome = _Reference(root, act).run(root, state, _Inside(reducers=_named(root)))
    if outcome.end == "hangs":
        raise UndeterminedError("it never ends")
    return Meaning(kept({**state, **dict(outcome.writes)}), outcome)


class _Reference:
    """Interprets one pipeline; one method a kind of node."""

    def __init__(self, root: Node, act: Callable[[AgentNode, State], Act]) -> None:
        self._root = root
        self._act = act

    def run(self, node: Node, state: State, inside: _Inside) -> Outcome:
        """What `node` amounts to on this state."""
        if node.contract is not None and node.contract.schema is not None:
            fields = node.contract.schema.value.__state_fields__.values()
            own = {ref.key: ref.reducer.value for ref in fields}
            inside = replace(inside, reducers={**inside.reducers, **own})
        return _KINDS[type(node)](self, node, state, inside)

    # --- leaves --------------------------------------------------------------------------------

    def agent(self, node: AgentNode, state: State, inside: _Inside) -> Outcome:
        act = self._act(node, state)
        before = Outcome.wrote(act.writes, (node.name,))
        if act.hangs:
            return replace(before, end="hangs")
        if act.raises is not None:
            return before.then(Outcome.failed(act.raises))
        if act.reports is not None:
            return before.then(self._reports(node, act, act.reports, inside))
        if act.escalates:
            return replace(before, end="escalates" if inside.loop else "done")
        answer = {ref.key: act.says for ref in node.writes_keys}
        return before.then(Outcome.wrote(answer, said=act.says))

    def _reports(
        self, node: AgentNode, act: Act, error: tuple[str, str], inside: _Inside
    ) -> Outcome:
        if inside.attempt:
            code, message = error
            return Outcome.failed(
                AgentReportedError("", error_code=code, error_message=message, node=node)
            )
        if {ref.key for ref in node.writes_keys} - act.writes.keys():
            return Outcome.failed(OutputMissingError("", node=node))
        return Outcome(reported=(error,))

    def function(self, node: FunctionNode | TapNode, state: State, inside: _Inside) -> Outcome:
        delta, made = self._called(node, node.fn, state)
        if isinstance(node, TapNode) or delta is None:
            return made
        return Outcome.wrote(delta, made.order)

    def transform(self, node: TransformNode, state: State, inside: _Inside) -> Outcome:
        listed = node.affected_keys or ()
        if node.semantics == "delete_keys":
            return Outcome.wrote({key: None for key in listed if state.get(key) is not None})
        delta, made = ({}, Outcome()) if node.fn is None else self._called(node, node.fn, state)
        if delta is None:
            return made
        if node.semantics == "replace_session":
            others = (key for key in state if key not in listed)
            gone = (key for key in others if node.scope == "all" or ":" not in key)
            delta = {**dict.fromkeys(gone), **delta}
        return Outcome.wrote(delta, made.order)

    def expect(self, node: ExpectNode, state: State, inside: _Inside) -> Outcome:
        holds, tested = self._holds(node, node.predicate, state)
        if holds or tested.end == "fails":
            return tested
        return tested.then(Outcome.failed(ExpectationError(node.message)))

    def _called(self, node: Node, fn: Ref, state: State) -> tuple[dict[str, Any] | None, Outcome]:
        """What a function over state returned; None when it failed. Taps may return anything."""
        order = (node.name,)
        try:
            value = _finished(fn.value(state))
        except Exception as error:  # noqa: BLE001  # what the user's function raises is the outcome
            return None, Outcome.failed(error, order)
        if isinstance(node, TapNode) or value is None:
            return {}, Outcome(order=order)
        if not isinstance(value, dict):
            return None, Outcome.failed(UsageError("", node=node), order)
        return cast("dict[str, Any]", value), Outcome(order=order)

    def _holds(self, node: Node, test: Predicate, state: State) -> tuple[bool, Outcome]:
        """Whether a predicate of a node holds, and the call it took or the error it gave."""
        order = (test.name,) if isinstance(test, Ref) else ()
        try:
            if isinstance(test, Ref):
                return bool(_finished(test.value(state))), Outcome(order=order)
            return _matches(test, state.get(test.key)), Outcome()
        except Exception as error:  # noqa: BLE001  # what the user's predicate raises is the outcome
            told = error if isinstance(test, Ref) else UsageError("", node=node)
            return False, Outcome.failed(told, order)

    # --- one after the other -------------------------------------------------------------------

    def sequence(self, node: SequenceNode, state: State, inside: _Inside) -> Outcome:
        here, total = dict(state), Outcome()
        for step in node.steps:
            made = self.run(step, here, inside)
            here.update(made.writes)
            total = total.then(made)
            if made.end != "done":
                break
        return total

    def loop(self, node: LoopNode, state: State, inside: _Inside) -> Outcome:
        here, total = dict(state), Outcome()
        for _ in range(node.max_iterations):
            made = self.run(node.body, here, replace(inside, loop=True))
            here.update(made.writes)
            total = total.then(made)
            if made.end == "escalates":
                return replace(total, end="done")
            if made.end != "done":
                return total
            if node.until is not None:
                holds, tested = self._holds(node, node.until, here)
                total = total.then(tested)
                if holds or tested.end == "fails":
                    return total
        return total

    def route(self, node: RouteNode, state: State, inside: _Inside) -> Outcome:
        total = Outcome()
        for test, branch in node.rules:
            holds, tested = self._holds(node, test, state)
            total = total.then(tested)
            if tested.end == "fails":
                return total
            if holds:
                return total.then(self.run(branch, state, inside))
        return total if node.default is None else total.then(self.run(node.default, state, inside))

    def transfer(self, node: TransferNode, state: State, inside: _Inside) -> Outcome:
        holds, tested = True, Outcome()
        if node.condition is not None:
            holds, tested = self._holds(node, node.condition, state)
        if not holds:
            return tested
        everywhere = (each for each in walk(self._root) if not isinstance(each, TransferNode))
        target = next(each for each in everywhere if each.name == node.target)
        return tested.then(self.run(target, state, inside))

    def fallback(self, node: FallbackNode, state: State, inside: _Inside) -> Outcome:
        here, before, chains = dict(state), Outcome(), frozenset[Chain]({()})
        for attempt in node.attempts:
            made = self.run(attempt, here, replace(inside, attempt=True))
            if made.end != "fails":
                return before.then(made)
            before = before.then(made.undone())
            here.update(before.writes)
            chains = frozenset(a + b for a, b in product(chains, made.failures))
        return replace(before, end="fails", failures=chains)

    # --- at the same time ----------------------------------------------------------------------

    def race(self, node: RaceNode | ParallelNode, state: State, inside: _Inside) -> Outcome:
        inside = replace(inside, attempt=True)
        made = [self.run(branch, state, inside) for branch in node.branches]
        won = [each for each in made if each.end in ("done", "escalates")]
        lost = [each.undone() for each in made if each not in won]
        if len(won) > 1 or any(each.writes for each in lost):
            raise UndeterminedError("two could win, or one that lost wrote what is never undone")
        if won:
            others = side_by_side(lost, "fails")
            loose = won[0].loose | others.loose | others.names()
            return replace(won[0], loose=loose, touched=won[0].touched | others.touched)
        if any(each.end == "hangs" for each in made):
            return side_by_side(made, "hangs").cancelled()
        chains = product(*(each.failures for each in made))
        failures = frozenset(tuple(chain.from_iterable(each)) for each in chains)
        return replace(side_by_side(lost, "fails"), failures=failures)

    def parallel(self, node: ParallelNode, state: State, inside: _Inside) -> Outcome:
        if node.merge == "first_complete":
            return self.race(node, state, inside)
        here, made = dict(state), list[Outcome]()
        for branch in node.branches:
            made.append(self.run(branch, here, inside))
            here.update(made[-1].writes)
        return self._merged(joined(made), made, inside)

    def map(self, node: MapOverNode, state: State, inside: _Inside) -> Outcome:
        items: Any = state.get(node.list_key)
        if items is None:
            items = []
        if not isinstance(items, list):
            return Outcome.failed(UsageError("", node=node))
        made, results, errors = list[Outcome](), list[Any](), list[Any]()
        survives = node.on_error != "raise"
        within = replace(inside, attempt=True) if survives else inside
        for item in cast("list[Any]", items):
            fixed = {node.item_key: item}
            one = self.run(node.body, {**state, **fixed}, within)
            if survives and one.end == "fails":
                made.append(replace(one.undone(), end="done", failures=frozenset()))
                errors.append(self._collected(one))
                results += [None] if node.on_error == "collect" else []
                continue
            made.append(one)
            errors.append(None)
            own = {**fixed, **dict(one.writes)}
            results.append(one.said if node.result_key is None else own.get(node.result_key))
        if node.concurrency is not None and {"hangs", "fails"} <= {each.end for each in made}:
            raise UndeterminedError("an item that hangs may keep one that fails from starting")
        total = self._merged(joined(made), made, inside)
        if total.end in ("hangs", "fails"):
            return total
        lasting = tuple(
            each
            for each in total.writes
            if each[0] in inside.reducers or each[0].startswith(("user:", "app:"))
        )
        written = Outcome.wrote({node.output_key: results})
        if node.errors_key is not None:
            written = written.then(Outcome.wrote({node.errors_key: errors}))
        return replace(replace(total, writes=lasting).then(written), end=total.end)

    def _collected(self, one: Outcome) -> dict[str, str]:
        """An item's error as it is collected; of ours, the text is not compared."""
        last = {chain[-1] for chain in one.failures}
        if len(last) != 1:
            raise UndeterminedError("an item fails with one of several errors")
        kind, text = last.pop()
        return {"code": kind, "message": text}

    def _merged(self, total: Outcome, made: list[Outcome], inside: _Inside) -> Outcome:
        """Branches that met, with one value of all that they wrote to a key that has a reducer."""
        if total.end in ("hangs", "fails"):
            return total
        written: dict[str, Any] = {}
        for key, reducer in inside.reducers.items():
            values = [dict(each.writes).get(key) for each in made]
            values = [deepcopy(each) for each in values if each is not None]
            if values:
                written[key] = reduce(reducer, values)
        return replace(total.then(Outcome.wrote(written)), end=total.end)

    def timeout(self, node: TimeoutNode, state: State, inside: _Inside) -> Outcome:
        made = self.run(node.body, state, inside)
        if made.end == "hangs":
            late = Outcome.failed(StepTimeoutError("", seconds=node.seconds, node=node))
            return replace(made.cancelled(), end="fails", failures=late.failures)
        if node.seconds < _SURE:
            raise UndeterminedError("a timeout so short may or may not come first")
        return made


_KINDS: Final[dict[type[Node], Callable[..., Outcome]]] = {
    AgentNode: _Reference.agent,
    FunctionNode: _Reference.function,
    TapNode: _Reference.function,
    TransformNode: _Reference.transform,
    ExpectNode: _Reference.expect,
    SequenceNode: _Reference.sequence,
    LoopNode: _Reference.loop,
    RouteNode: _Reference.route,
    TransferNode: _Reference.transfer,
    FallbackNode: _Reference.fallback,
    RaceNode: _Reference.race,
    ParallelNode: _Reference.parallel,
    MapOverNode: _Reference.map,
    TimeoutNode: _Reference.timeout,
}

#: The kinds of nodes that have a meaning here.
KINDS: Final = frozenset(_KINDS)


def _named(root: Node) -> dict[str, Callable[[Any, Any], Any]]:
    """The reducers of all keys that the pipeline itself names."""
    named = root.contract.outputs if root.contract is not None else None
    return {ref.key: ref.reducer.value for ref in named or () if ref.reducer is not None}


def _matches(test: Match, value: Any) -> bool:
    if test.operator in ("eq", "ne"):
        same = isinstance(value, bool) is isinstance(test.value, bool) and value == test.value
        return same is (test.operator == "eq")
    if value is None:
        return False
    if test.operator == "contains":
        parts = cast("list[Any]", value) if isinstance(value, list) else None
        within = _folded(value) if parts is None else [_folded(each) for each in parts]
        return _folded(test.value) in within
    if test.operator == "contains_case":
        return test.value in value
    return bool(value > test.value if test.operator == "gt" else value < test.value)


def _folded(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value


def _finished(value: Any) -> Any:
    """What a coroutine that waits for nothing but its next turn returns."""
    if not inspect.isawaitable(value):
        return value
    waiting: Iterable[Any] = value.__await__()
    turns = iter(waiting)
    while True:
        try:
            next(turns)
        except StopIteration as end:
            return end.value
