"""What comes next: the meaning of every arrangement as small, pure, synchronous functions.

A rule gets its frame and the signal that came up from below (or `ENTER`), and answers with

- an int: go down to that child,
- an operation for the engine to perform (`Run`, `Ask`, `Call`, `Test`, `Fork`, `Emit`), whose
  result comes back as the next signal,
- a signal for the node above: `OK`, `ESCALATE`, `STOP` or an exception,
- `PAUSE`: the strand ends here, its stack is kept.

Rules keep their whole position in the frame, and each may be entered again after a restart.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from adk_fluent.errors import ExpectationError, StateTypeError, add_place
from adk_fluent.flow._failures import falls_back, tell_discarded
from adk_fluent.flow._functions import function_delta, in_words, transform_delta
from adk_fluent.flow._gates import refusal
from adk_fluent.flow._join import Join, RaceEnd
from adk_fluent.flow._port import Note
from adk_fluent.flow._run_state import RunState
from adk_fluent.flow._signals import (
    ENTER,
    ESCALATE,
    OK,
    PAUSE,
    STOP,
    Ask,
    Call,
    Emit,
    Fork,
    Joined,
    Returned,
    Run,
    Signal,
    Step,
    Test,
)
from adk_fluent.flow._strand import Frame, Strand
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    ExpectNode,
    FallbackNode,
    FunctionNode,
    GateNode,
    LoopNode,
    MapOverNode,
    MiddlewareNode,
    Node,
    ParallelNode,
    RaceNode,
    RemoteAgentNode,
    RouteNode,
    SequenceNode,
    TapNode,
    TimeoutNode,
    TransferNode,
    TransformNode,
)
from adk_fluent.protocol._decision import Decision

if TYPE_CHECKING:
    from collections.abc import Mapping

#: A rule: run state, strand, frame, node and signal to what comes next.
Rule = Callable[[RunState[Any], Strand, Frame, Any, Any], Step]


# --- leaves ------------------------------------------------------------------------------------


def leaf_rule(e: RunState[Any], s: Strand, f: Frame, n: Node, signal: Any) -> Step:
    return Run() if signal is ENTER else signal


def _gate(e: RunState[Any], s: Strand, f: Frame, n: GateNode, signal: Any) -> Step:
    if isinstance(signal, Decision):
        if not signal.approved:
            f["no"] = 1
        note = Note("gate") if signal.approved else Note("refused", text=refusal(n, signal))
        return _write(e, s, f, {n.key or n.name: signal.value}, note)
    if signal is ENTER and "w" not in f:
        if n.predicate is not None and "asks" not in f:
            return Test(n.predicate)
        signal = Signal.TRUE
    if signal is Signal.TRUE:
        f["asks"] = 1
        return Ask()
    if signal is ENTER or signal is Signal.EMITTED:
        return STOP if "no" in f else OK
    return OK if signal is Signal.FALSE else signal


def _function(e: RunState[Any], s: Strand, f: Frame, n: FunctionNode, signal: Any) -> Step:
    if signal is ENTER and "w" not in f:
        return Call(n.fn)
    if isinstance(signal, Returned):
        return _write(e, s, f, function_delta(n, signal.value))
    return OK if signal is ENTER or signal is Signal.EMITTED else signal


def _transform(e: RunState[Any], s: Strand, f: Frame, n: TransformNode, signal: Any) -> Step:
    if signal is ENTER and "w" not in f:
        return Call(n.fn) if n.fn is not None else _write(e, s, f, transform_delta(n, {}, s.state))
    if isinstance(signal, Returned):
        return _write(e, s, f, transform_delta(n, function_delta(n, signal.value), s.state))
    return OK if signal is ENTER or signal is Signal.EMITTED else signal


def _write(
    e: RunState[Any],
    s: Strand,
    f: Frame,
    delta: Mapping[str, Any],
    note: Note = Note("step"),  # noqa: B008  # frozen
) -> Step:
    delta = _kept(e, s, delta, note) if delta else delta

    def committed() -> None:
        f["w"] = 1  # exactly once: whoever restarts from here must not call the function again
        if s.scope is not None:
            e.log.record(s.scope, delta)

    return Emit(lambda: delta, note, committed) if delta or note.why == "refused" else OK


def _kept(e: RunState[Any], s: Strand, delta: Mapping[str, Any], note: Note) -> Mapping[str, Any]:
    """A write as it is stored; what a refusal amounts to need not fit, as the run ends with it."""
    try:
        return e.kept(s, s.nodes[-1], delta)
    except StateTypeError:
        if note.why != "refused":
            raise
        return {}


def _tap(e: RunState[Any], s: Strand, f: Frame, n: TapNode, signal: Any) -> Step:
    if signal is ENTER:
        return Call(n.fn)
    return OK if isinstance(signal, Returned) else signal


def _expect(e: RunState[Any], s: Strand, f: Frame, n: ExpectNode, signal: Any) -> Step:
    if signal is ENTER:
        return Test(n.predicate)
    if signal is Signal.FALSE:
        return ExpectationError(
            n.message,
            node=n,
            found=f"{in_words(n.predicate)} does not hold",
            help="correct the step that writes this state, or the expectation",
        )
    return OK if signal is Signal.TRUE else signal


# --- one child at a time -----------------------------------------------------------------------


def _sequence(e: RunState[Any], s: Strand, f: Frame, n: SequenceNode, signal: Any) -> Step:
    if signal is ENTER:
        at = f.setdefault("i", 0)
    elif signal is OK:
        at = f["i"] = f["i"] + 1
    else:
        return signal
    return at if at < len(n.steps) else OK


def _within(e: RunState[Any], s: Strand, f: Frame, n: MiddlewareNode, signal: Any) -> Step:
    """Its middlewares stand around the steps and calls inside; see `Around`."""
    return f.setdefault("i", 0) if signal is ENTER else signal


def _loop(e: RunState[Any], s: Strand, f: Frame, n: LoopNode, signal: Any) -> Step:
    if signal is ENTER:
        f.setdefault("n", 0)
        signal = OK if "t" in f else ENTER  # a restart before the test: the body is done
    if signal is OK and n.until is not None:
        f["t"] = 1
        return Test(n.until)
    if signal is OK or signal is Signal.FALSE:
        f.pop("t", None)
        f["n"] += 1
    elif signal is Signal.TRUE or signal is ESCALATE:
        return OK
    elif signal is not ENTER:
        return signal
    return 0 if f["n"] < n.max_iterations else OK


def _route(e: RunState[Any], s: Strand, f: Frame, n: RouteNode, signal: Any) -> Step:
    if signal is ENTER:
        if "p" in f:
            return f["p"]
        f["t"] = 0
    elif signal is Signal.TRUE:
        f["p"] = f.pop("t")
        return f["p"]
    elif signal is Signal.FALSE:
        f["t"] += 1
    else:
        return signal
    if f["t"] < len(n.tests):
        return Test(n.tests[f["t"]])
    if n.default is None:
        return OK
    f["p"] = len(n.branches)
    return f["p"]


def _transfer(e: RunState[Any], s: Strand, f: Frame, n: TransferNode, signal: Any) -> Step:
    if signal is ENTER:
        if f.get("go"):
            return 0
        if n.condition is not None:
            return Test(n.condition)
        signal = Signal.TRUE
    if signal is Signal.TRUE:
        note = Note("transfer", transfer_to=n.target)
        return Emit(dict[str, Any], note, lambda: f.update(go=1))
    if signal is Signal.EMITTED:
        return 0
    return OK if signal is Signal.FALSE else signal


def _fallback(e: RunState[Any], s: Strand, f: Frame, n: FallbackNode, signal: Any) -> Step:
    if signal is ENTER and "i" not in f:
        f["i"] = 0
        e.open_scope(s, f)
        return 0
    if isinstance(signal, Exception):
        e.errors.remember(f, signal)
        f["undo"] = 1
        if f["i"] + 1 == len(n.attempts) or not falls_back(n, signal):
            f["last"] = 1
        else:
            tell_discarded(n, f["i"], signal)
    elif signal is Signal.EMITTED:
        return _next_attempt(e, s, f, n)
    elif signal is not ENTER:  # it succeeded, or the run stops here
        e.close_scope(s, f)
        e.errors.forget(f)
        return signal
    elif "undone" in f:
        return _next_attempt(e, s, f, n)
    return _undo_attempt(e, s, f, n) if "undo" in f else f["i"]


def _undo_attempt(e: RunState[Any], s: Strand, f: Frame, n: FallbackNode) -> Step:
    scope = s.scope
    assert scope is not None  # noqa: S101  # opened by this very node

    def committed() -> None:
        e.discard(s, [scope])
        s.scope = scope.parent
        f["undone"] = 1
        del f["scope"]

    if not scope.touched:
        committed()
        return _next_attempt(e, s, f, n)
    note = Note("discarded", discarded=(scope.id,))
    return Emit(lambda: e.log.compensation([scope]), note, committed)


def _next_attempt(e: RunState[Any], s: Strand, f: Frame, n: FallbackNode) -> Step:
    del f["undo"], f["undone"]
    if "last" in f:
        return e.errors.recall(f)
    f["i"] += 1
    e.open_scope(s, f)
    return f["i"]


# --- children at the same time -----------------------------------------------------------------


def _parallel(e: RunState[Any], s: Strand, f: Frame, n: Node, signal: Any) -> Step:
    if signal is ENTER and "end" not in f:
        return Fork()
    if isinstance(signal, Joined):
        ended = signal.ended.values()
        first = next((x for x in (STOP, PAUSE, ESCALATE) if x in ended), OK)
        if signal.error is not None:
            e.errors.remember(f, signal.error)
        elif first is PAUSE:
            return PAUSE
        f["end"] = first.value
        e.abandon(f)
    elif signal is Signal.EMITTED:
        return _joined(e, f)
    elif signal is not ENTER:
        return signal
    join = Join(e, s, f, n)
    try:
        delta = join.delta()
    except Exception as error:  # noqa: BLE001  # what a reducer raised
        failed = e.failed(s, add_place(error, n))
        if e.ends_run(s):
            return failed
        e.errors.remember(f, failed)
        join = Join(e, s, f, n)
        delta = join.delta()
    note = Note("joined", discarded=tuple(each.id for each in join.failed if each.touched))
    optional = not note.discarded
    return Emit(lambda: {**join.undo(), **delta}, note, join.committed, optional=optional)


def _race(e: RunState[Any], s: Strand, f: Frame, n: Node, signal: Any) -> Step:
    if signal is ENTER and "end" not in f:
        return Fork()
    if isinstance(signal, Joined):
        if signal.winner is None and PAUSE in signal.ended.values():
            return PAUSE
        f["end"] = OK.value
        if signal.winner is not None:
            f["won"] = signal.winner
            f["end"] = signal.ended[signal.winner].value
        for index in sorted(signal.ended) if signal.winner is None else ():
            e.errors.remember(f, signal.ended[index])
        e.abandon(f)
    elif signal is Signal.EMITTED:
        return _joined(e, f)
    elif signal is not ENTER:
        return signal
    end = RaceEnd(e, s, f)
    touched = tuple(scope.id for scope in end.losers if scope.touched)
    if not touched:
        end.committed()
        return _joined(e, f)
    return Emit(end.delta, Note("discarded", discarded=touched), end.committed)


def _joined(e: RunState[Any], f: Frame) -> Step:
    return e.errors.recall(f) if f.get("errors") else Signal(f["end"])


def _parallel_or_race(e: RunState[Any], s: Strand, f: Frame, n: ParallelNode, signal: Any) -> Step:
    rule = _race if n.merge == "first_complete" else _parallel
    return rule(e, s, f, n, signal)


#: The meaning of every node the engine runs; all other nodes are leaves of another layer.
RULES: dict[type[Node], Rule] = {
    AgentNode: leaf_rule,
    AdkAgentNode: leaf_rule,
    RemoteAgentNode: leaf_rule,
    GateNode: _gate,
    FunctionNode: _function,
    TransformNode: _transform,
    TapNode: _tap,
    ExpectNode: _expect,
    SequenceNode: _sequence,
    LoopNode: _loop,
    RouteNode: _route,
    FallbackNode: _fallback,
    TransferNode: _transfer,
    ParallelNode: _parallel_or_race,
    RaceNode: _race,
    MapOverNode: _parallel,
    TimeoutNode: _parallel,
    MiddlewareNode: _within,
}
