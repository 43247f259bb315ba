"""What becomes of what comes in: a run begins, goes on, or nothing is run and that is told.

One rule for every backend. A run that waits goes on with an answer and with nothing else; a run
that failed or was cut off goes on when somebody says so, and a new message begins a new one.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from adk_fluent.backends._owner import is_at_work
from adk_fluent.errors import PlanChangedError, SessionError, UnstorableValueError, UsageError
from adk_fluent.ir import GateNode, Node, structure_hash, walk
from adk_fluent.protocol._decision import Decision, Fault, decide

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from adk_fluent.errors import AdkFluentError
    from adk_fluent.protocol import JournalEntry, JournalStatus


@dataclass(frozen=True, slots=True)
class Begin:
    """A new run begins."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """A run goes on.

    Attributes:
        entry: Where it stands.
        answers: What was answered, by id of the question; earlier answers that count still, too.
    """

    entry: JournalEntry
    answers: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Tell:
    """Nothing is run.

    Attributes:
        text: Why, and what to do.
        error: The same for a program.
        waits: The questions that stand open.
    """

    text: str
    error: AdkFluentError
    waits: Collection[str] = ()


Verdict: TypeAlias = Begin | GoOn | Tell
_HOW: Final[dict[JournalStatus, str]] = {
    "waiting": "paused",
    "failed": "failed",
    "running": "was cut off",
    "boundary": "stopped at an execution boundary",
}


class Pipeline:
    """What a run that goes on must be a run of.

    Args:
        node: The pipeline.
    """

    __slots__ = ("_gates", "_hash", "node")

    def __init__(self, node: Node) -> None:
        self.node: Node = node
        self._hash: str | None = None
        self._gates: dict[str, list[GateNode]] | None = None

    @property
    def hash(self) -> str:
        """What a pipeline of other steps has another of."""
        if self._hash is None:
            self._hash = structure_hash(self.node)
        return self._hash

    def gates(self, question: str) -> list[GateNode]:
        """The gate that asks a question; several where several are called the same."""
        if self._gates is None:
            self._gates = {}
            for each in walk(self.node):
                if isinstance(each, GateNode):
                    self._gates.setdefault(each.name, []).append(each)
        return self._gates.get(question.rpartition("-")[0], [])


def judge(
    pipeline: Pipeline,
    entry: JournalEntry | None,
    answers: Mapping[str, Any],
    *,
    goes_on: bool = False,
    whole: bool = False,
    was_asked: Callable[[str], bool] = lambda _: False,
    elsewhere: Callable[[], Mapping[str, JournalEntry]] = dict,
    below: Iterable[Pipeline] = (),
) -> Verdict:
    """Decide what becomes of what came in.

    Args:
        pipeline: What is run.
        entry: Where the last run stands; None when there is none, or it is over.
        answers: What came in for questions, by their ids.
        goes_on: Whether it was asked to go on with the last run.
        whole: Whether nothing is run unless every answer counts.
        was_asked: Whether a question was ever asked.
        elsewhere: Where runs of other pipelines stand in the same session, by their names.
        below: What stands below its steps and runs as a pipeline of its own, which may have asked.

    Raises:
        PlanChangedError: The pipeline is not the one whose run is to go on.
        SessionError: Somebody else does the run.
    """
    if entry is None or (entry.status != "waiting" and not answers and not goes_on):
        if answers:
            return _asked_by_another(pipeline, answers, (), elsewhere()) or _not_open(
                answers, (), was_asked
            )
        check_free(pipeline, entry)
        return _nothing_to_go_on_with(pipeline, elsewhere()) if goes_on else Begin()
    known = {id: value for id, value in answers.items() if id in entry.waits}
    among = (pipeline, *below) if known else ()
    faults = {id: _fault(among, entry, id, value) for id, value in known.items()}
    valid = {id: value for id, value in known.items() if faults[id] is None}
    again = answers and entry.status != "waiting" and _repeats(answers, entry.answered)
    if (
        (valid and not (whole and len(valid) < len(answers)))
        or again
        or (not answers and goes_on and entry.status != "waiting")
    ):
        _check(pipeline, entry)
        return GoOn(entry, {**entry.answered, **valid})
    wrong = [fault for fault in faults.values() if fault is not None]
    if wrong:
        text = "; ".join(f"{fault.what}: {fault.help}" for fault in wrong)
        kind = UnstorableValueError if wrong[0].unstorable else UsageError
        error = kind(wrong[0].what, help=wrong[0].help)
        return Tell(f"Nothing was run: {text}.", error, entry.waits)
    if answers:
        others = [id for id in answers if id not in entry.waits]
        return _asked_by_another(pipeline, others, entry.waits, elsewhere()) or _not_open(
            others, entry.waits, was_asked
        )
    return _still_waits(entry.waits)


def _fault(pipelines: Iterable[Pipeline], entry: JournalEntry, id: str, value: Any) -> Fault | None:
    kind = entry.waits[id]
    found: list[Decision | Fault] = []
    if kind == "confirmation":
        found = [decide(None, value, None)]
    elif kind in ("gate", "input"):  # the gate of a pipeline below is input that an agent waits for
        gates = [gate for each in pipelines for gate in each.gates(id)]
        found = [decide(each.response_schema, value, each.name) for each in gates]
    faults = [each for each in found if isinstance(each, Fault)]
    return faults[0] if faults and len(faults) == len(found) else None


def _repeats(answers: Mapping[str, Any], taken: Mapping[str, Any]) -> bool:
    """Whether the same was answered before: who says no meanwhile wants nothing gone on with."""
    return all(
        id in taken and (value == taken[id] or _approves(value) is _approves(taken[id]) is not None)
        for id, value in answers.items()
    )


def _approves(value: Any) -> bool | None:
    decision = decide(None, value, None)
    return decision.approved if isinstance(decision, Decision) else None


def _check(pipeline: Pipeline, entry: JournalEntry) -> None:
    if entry.plan != pipeline.hash:
        raise PlanChangedError(
            f"{pipeline.node.name} was changed since its run {_how(entry)}",
            node=pipeline.node,
            found=f"steps {pipeline.hash[:12]} instead of {entry.plan[:12]}",
            help="finish the run with the version that began it, or take it back with "
            f".rewind(session_id=..., before_invocation_id={entry.invocation_id!r})",
        )
    check_free(pipeline, entry)


def check_free(pipeline: Pipeline, entry: JournalEntry | None) -> None:
    """See that nobody does the run of a session: two would write over each other.

    Raises:
        SessionError: Somebody does.
    """
    if entry is None or entry.status != "running":
        return
    if is_at_work(entry.owner, time.time() - entry.saved):
        error = SessionError(
            f"a run of {pipeline.node.name} is still going on in this session",
            node=pipeline.node,
            found=f"its owner is {entry.owner}",
            help="wait for it; it is taken for dead when its process is, and on another machine "
            "when it has given no sign of life for a minute",
        )
        error.taken_by = entry.owner
        raise error


def _how(entry: JournalEntry) -> str:
    return _HOW[entry.status]


def _not_open(
    answers: Collection[str], waits: Collection[str], was_asked: Callable[[str], bool]
) -> Tell:
    late = [id for id in answers if was_asked(id)]
    ids = ", ".join(map(repr, late or answers))
    what = f"question {ids} " + (
        "is not open any more: it was answered, or its run was taken back"
        if late
        else "was never asked in this session"
    )
    help = "answer one of those that stand open" if waits else "nothing waits for an answer"
    if waits:
        help += f": {', '.join(map(repr, waits))}"
    return Tell(f"Nothing was run: {what}; {help}.", SessionError(what, help=help), waits)


def _asked_by_another(
    pipeline: Pipeline,
    answers: Collection[str],
    waits: Collection[str],
    others: Mapping[str, JournalEntry],
) -> Tell | None:
    """What is told where a question is that of another pipeline; None where none is."""
    for id in answers:
        for name, entry in others.items():
            if id in entry.waits:
                what = f"no run of {pipeline.node.name} waits for question {id!r} in this session; "
                what += f"one of {name} does"
                help = _of_another(pipeline, name, entry, "answer it")
                return Tell(
                    f"Nothing was run: {what}; {help}.", SessionError(what, help=help), waits
                )
    return None


def _of_another(pipeline: Pipeline, name: str, entry: JournalEntry, do: str) -> str:
    return (
        f"{do} by that pipeline. If {name} was renamed to {pipeline.node.name}, let it have its "
        "old name until the run is over, or take the run back with "
        f".rewind(session_id=..., before_invocation_id={entry.invocation_id!r})"
    )


def _still_waits(waits: Collection[str]) -> Tell:
    what = "the run in this session waits for an answer"
    help = "answer it first: pass one of result.pending[0].answer(...), or refuse"
    text = f"Nothing was run: {what}. Answer it first."
    return Tell(text, SessionError(what, found=", ".join(waits), help=help), waits)


def _nothing_to_go_on_with(pipeline: Pipeline, others: Mapping[str, JournalEntry]) -> Tell:
    what = "there is no run to go on with in this session"
    for name, entry in others.items():
        how = "waits" if entry.status == "waiting" else _HOW[entry.status]
        what = f"there is no run of {pipeline.node.name} to go on with in this session; one of "
        what += f"{name} {how}"
        help = _of_another(pipeline, name, entry, "go on with it")
        return Tell(f"Nothing was run: {what}.", SessionError(what, help=help))
    help = "a run that came to its end is over; one that was cut off is kept where it runs with "
    help += "ExecutionConfig(resumable=True)"
    return Tell(f"Nothing was run: {what}.", SessionError(what, help=help))
