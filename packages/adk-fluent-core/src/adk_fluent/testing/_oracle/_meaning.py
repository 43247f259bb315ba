"""What a pipeline amounts to, and how what ran it is compared with that.

Where something happens at the same time, some things depend on timing: how far a branch got before
it was cancelled, and so which of its calls were made and which of its keys were written. These are
told apart (`Outcome.unsure`, `Outcome.loose`); all else is determined.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeAlias

from adk_fluent.errors import (
    AdkFluentError,
    AgentReportedError,
    ExpectationError,
    StepTimeoutError,
)

State: TypeAlias = Mapping[str, Any]
End = Literal["done", "escalates", "hangs", "fails"]
_NONE: frozenset[str] = frozenset()
_LONGEST = 1000  # errors in a chain


class Failure(NamedTuple):
    """An error, as far as it is the same wherever the pipeline runs.

    Attributes:
        kind: Its type's name.
        text: Its message; for errors of this library, what identifies the failure.
    """

    kind: str
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """What is compared of an error."""
        match error:
            case AgentReportedError():
                text = f"{error.node}: {error.error_code}: {error.error_message}"
            case StepTimeoutError():
                text = f"{error.node}: {error.seconds:g}"
            case ExpectationError():
                text = error.what
            case AdkFluentError():
                text = str(error.node)
            case _:
                text = str(error)
        return cls(type(error).__name__, text)


#: A failure with those it replaced, the earliest first.
Chain: TypeAlias = tuple[Failure, ...]


class Together(NamedTuple):
    """Calls of branches that run at the same time."""

    branches: tuple[Order, ...]


#: Calls in the order in which they are made.
Order: TypeAlias = "tuple[str | Together, ...]"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a part of a pipeline amounts to.

    Attributes:
        end: How it ends.
        failures: If it fails, with one of these.
        writes: What it writes to state, in order.
        said: Its answer.
        order: The calls it makes.
        reported: Code and message of errors that agents reported and nobody took for failures.
        touched: All keys it writes at some time, undone or not.
        unsure: Keys whose value depends on timing; only ever after a failure.
        loose: Names of calls of which some may not be made.
    """

    end: End = "done"
    failures: frozenset[Chain] = frozenset()
    writes: tuple[tuple[str, Any], ...] = ()
    said: str = ""
    order: Order = ()
    reported: tuple[tuple[str, str], ...] = ()
    touched: frozenset[str] = _NONE
    unsure: frozenset[str] = _NONE
    loose: frozenset[str] = _NONE

    @classmethod
    def wrote(cls, delta: State, order: Order = (), said: str = "") -> Outcome:
        """That of a step that writes."""
        return cls(writes=tuple(delta.items()), touched=frozenset(delta), order=order, said=said)

    @classmethod
    def failed(cls, error: Exception, order: Order = ()) -> Outcome:
        """That of a step that fails."""
        return cls("fails", frozenset({(Failure.of(error),)}), order=order)

    def then(self, later: Outcome) -> Outcome:
        """Both, one after the other."""
        return Outcome(
            later.end,
            later.failures,
            self.writes + later.writes,
            later.said or self.said,
            self.order + later.order,
            self.reported + later.reported,
            self.touched | later.touched,
            self.unsure | later.unsure,
            self.loose | later.loose,
        )

    def undone(self) -> Outcome:
        """The same with nothing of it left but keys that are never undone, and the calls."""
        return replace(
            self,
            writes=tuple(each for each in self.writes if _is_permanent(each[0])),
            unsure=frozenset(key for key in self.unsure if _is_permanent(key)),
            said="",
            reported=(),
        )

    def cancelled(self) -> Outcome:
        """The same, ended from outside at some time."""
        return replace(self, unsure=self.touched, loose=self.loose | self.names(), reported=())

    def names(self) -> frozenset[str]:
        """The names of all its calls."""
        return frozenset(_flat(self.order))


def side_by_side(made: Iterable[Outcome], end: End) -> Outcome:
    """Outcomes at the same time, whose writes count in this order."""
    every = tuple(made)
    total = Outcome()
    for each in every:
        total = total.then(each)
    said = "\n\n".join(each.said for each in every if each.said)
    order = (Together(tuple(each.order for each in every)),)
    return replace(total, end=end, failures=frozenset(), said=said, order=order)


def joined(made: Iterable[Outcome]) -> Outcome:
    """Branches that all have to succeed: a failure cancels the others."""
    every = tuple(made)
    ends = {each.end for each in every}
    failed = [each for each in every if each.end == "fails"]
    if not failed:
        end: End = "hangs" if "hangs" in ends else "escalates" if "escalates" in ends else "done"
        return side_by_side(every, end)
    others = [each.cancelled() for each in every if each is not failed[0] or len(failed) > 1]
    return replace(
        side_by_side(every, "fails"),
        failures=failed[0].failures.union(*(each.failures for each in failed)),
        reported=(),
        unsure=failed[0].unsure.union(*(each.unsure for each in others)),
        loose=failed[0].loose.union(*(each.loose for each in others)),
    )


def _is_permanent(key: str) -> bool:
    return key.startswith(("user:", "app:"))


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a pipeline does. Each method tells what is wrong with what was seen, or None.

    Attributes:
        state: State at the end, what is None and temporary left out.
        outcome: The rest.
    """

    state: dict[str, Any]
    outcome: Outcome

    @property
    def fails(self) -> bool:
        """Whether the run ends with an error."""
        return self.outcome.end == "fails"

    def text_differs(self, text: str) -> str | None:
        """Compare an answer."""
        if text == self.outcome.said:
            return None
        return f"answer is {text!r}, should be {self.outcome.said!r}"

    def state_differs(self, state: State) -> str | None:
        """Compare a final state, JSON value by JSON value."""
        have, want = _canonical(kept(state)), _canonical(self.state)
        wrong = {
            key: f"{have.get(key)}, should be {want.get(key)}"
            for key in sorted(have.keys() | want.keys())
            if have.get(key) != want.get(key) and key not in self.outcome.unsure
        }
        return f"state differs: {wrong}" if wrong else None

    def calls_differ(self, calls: Iterable[str]) -> str | None:
        """Compare the calls that were made."""
        loose = self.outcome.loose
        want = _without(self.outcome.order, loose)
        have = [name for name in calls if name not in loose]
        return None if _agrees(want, have) else f"calls are {have}, should be {want}"

    def reports_differ(self, reported: Iterable[tuple[str, str]]) -> str | None:
        """Compare the errors that were reported; branches may have done so in any order."""
        have, want = sorted(reported), sorted(self.outcome.reported)
        return None if have == want else f"reported errors are {have}, should be {want}"

    def error_differs(self, error: BaseException | None) -> str | None:
        """Compare the error that was raised, and the chain of those before it."""
        if error is None:
            return f"no error, should be {set(self.outcome.failures)}" if self.fails else None
        raised: list[Failure] = []
        here: BaseException | None = error
        while here is not None and len(raised) < _LONGEST:
            raised.append(Failure.of(here))
            here = here.__context__
        if any(_is_chain(raised, each) for each in self.outcome.failures):
            return None
        return f"error is {raised}, should be {set(self.outcome.failures) or 'none'}"


def kept(state: State) -> dict[str, Any]:
    """State without what is None, which is as good as absent, and without temporary keys."""
    return {
        key: value
        for key, value in state.items()
        if value is not None and not key.startswith("temp:")
    }


def _canonical(state: State) -> dict[str, str]:
    return {key: json.dumps(value, sort_keys=True) for key, value in state.items()}


def _is_chain(raised: list[Failure], wanted: Chain) -> bool:
    """Whether the newest errors agree, and the earlier ones are there in this order."""
    rest = iter(raised)
    return raised[0] == wanted[-1] and all(each in rest for each in reversed(wanted))


def _flat(order: Order) -> Iterator[str]:
    for each in order:
        if isinstance(each, Together):
            yield from chain.from_iterable(map(_flat, each.branches))
        else:
            yield each


def _without(order: Order, names: frozenset[str]) -> Order:
    return tuple(
        Together(tuple(_without(branch, names) for branch in each.branches))
        if isinstance(each, Together)
        else each
        for each in order
        if isinstance(each, Together) or each not in names
    )


def _agrees(order: Order, calls: list[str]) -> bool:
    """Whether calls were made in an order that is possible.

    Of branches that share a name only how often each call was made is compared.
    """
    at = 0
    for each in order:
        if isinstance(each, str):
            if calls[at : at + 1] != [each]:
                return False
            at += 1
            continue
        flat = [Counter(_flat(branch)) for branch in each.branches]
        every = Counter(_flat((each,)))
        here = calls[at : at + every.total()]
        if Counter(here) != every:
            return False
        at += len(here)
        for branch, own in zip(each.branches, flat, strict=True):
            alone = all(every[name] == count for name, count in own.items())
            if alone and own.total() > 1 and not _agrees(branch, [n for n in here if n in own]):
                return False
    return at == len(calls)
