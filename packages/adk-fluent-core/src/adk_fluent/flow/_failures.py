"""Failures of steps: with their place, with those before them, kept, and raised as they are."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NoReturn

from adk_fluent._logs import LOG
from adk_fluent.errors import AgentReportedError, RunError, add_place
from adk_fluent.flow._position import new_id
from adk_fluent.protocol._discarded import DiscardedAttempt, add_discarded
from adk_fluent.protocol._event import ErrorInfo

if TYPE_CHECKING:
    from adk_fluent.flow._position import Position
    from adk_fluent.flow._strand import Frame
    from adk_fluent.ir import FallbackNode, MapOverNode, Node

_log: Final = LOG.getChild("flow")
_MISTAKES: Final = (TypeError, KeyError, NameError, UnboundLocalError, AttributeError)
_MISTAKE: Final = "_adk_fluent_mistake"


def failure(error: Exception, node: Node) -> Exception:
    """The failure of a step, with its place; its type stays where a generator can raise it."""
    if isinstance(error, StopIteration | StopAsyncIteration):
        return left_by(error, node)
    return add_place(error, node)


def left_by(error: BaseException, node: Node) -> RunError:
    """What stands for an exception that a step may raise but no generator can pass on."""
    kind = type(error).__name__
    failure = RunError(
        f"{node.name} was left by {kind}",
        node=node,
        help=f"catch {kind} in the step: it means something else to those who wait for it",
    )
    failure.__cause__ = error
    return failure


def note_mistake(error: Exception) -> None:
    """Remember of what a function of the user's raised whether it looks like a mistake in it.

    Types derived from these are raised on purpose, as are the errors of adk-fluent.
    """
    if type(error) in _MISTAKES:
        error.__dict__[_MISTAKE] = True


def falls_back(fallback: FallbackNode, error: Exception) -> bool:
    """Whether an error lets a fallback try its next attempt; a mistake in a function does not."""
    if fallback.on:
        return isinstance(error, tuple(ref.value for ref in fallback.on))
    return _MISTAKE not in error.__dict__


def tell_discarded(fallback: FallbackNode, at: int, error: Exception) -> None:
    """Tell, in the log and in the result, that an attempt failed and another one takes its place.

    Args:
        fallback: Whose attempt it is.
        at: Which one; not the last.
        error: What it failed with.
    """
    _tell(fallback, fallback.attempts[at], error, f"tries {fallback.attempts[at + 1].name}")


def tell_left_out(mapping: MapOverNode, index: int, error: Exception) -> None:
    """Tell, in the log and in the result, that an item failed and the map goes on without it.

    Args:
        mapping: Whose item it is.
        index: Which one.
        error: What it failed with.
    """
    _tell(mapping, mapping.body, error, f"goes on without item {index}")


def _tell(node: Node, attempt: Node, error: Exception, instead: str) -> None:
    info = ErrorInfo(type(error).__name__, str(error))
    notes: list[str] = getattr(error, "__notes__", [])
    where = "; ".join(notes) or str(attempt.location or node.location or "")
    add_discarded(DiscardedAttempt(node.name, attempt.name, info, where, error))
    place = f" at {node.location}" if node.location else ""
    _log.warning(
        "%s%s %s, for %s failed: %s: %s%s",
        *(node.name, place, instead, attempt.name),
        *(info.code, error, "".join(f"; {note}" for note in notes)),
    )


def cancelled_inside(error: asyncio.CancelledError, node: Node) -> Exception:
    """The failure of a step that something of its own cancelled; cancelling us is no failure."""
    task = asyncio.current_task()
    if task is None or task.cancelling():
        raise error
    failure = RunError(
        f"{node.name} was cancelled from inside",
        node=node,
        help="something that it waited for was cancelled; look at its cause",
    )
    failure.__cause__ = error
    return failure


class Remembered:
    """Errors of attempts and branches, kept while something else is tried.

    The position of the run holds their texts.

    Args:
        position: Where the run stands.
    """

    def __init__(self, position: Position) -> None:
        self._position = position
        self._errors: dict[str, Exception] = {}

    def remember(self, frame: Frame, error: Exception) -> None:
        """Keep an error of an attempt or branch; after a restart only its text is known."""
        key = new_id(self._position)
        frame.setdefault("errors", []).append([key, f"{type(error).__name__}: {error}"])
        self._errors[key] = error

    def forget(self, frame: Frame) -> list[Exception]:
        """The errors remembered in a frame; it has none from here on."""
        errors: list[Exception] = []
        for key, text in frame.pop("errors", ()):
            error = self._errors.pop(key, None)
            errors.append(error or AgentReportedError(text, error_code="RESTARTED"))
        return errors

    def recall(self, frame: Frame) -> Exception:
        """The last remembered error, those before it chained as its context."""
        return _chained(self.forget(frame))


def _chained(errors: list[Exception]) -> Exception:
    """The last error, with each one before it as the context of the next."""
    for earlier, later in pairwise(errors):
        known = {id(each) for each in _contexts(earlier)}  # one raised twice must make no ring
        own = [each for each in _contexts(later) if id(each) not in known]
        if own:
            own[-1].__context__ = earlier
    return errors[-1]


def raise_error(error: Exception) -> NoReturn:
    """Raise an error with its own chain, also while the caller handles another one."""
    before = error.__context__
    try:
        raise error
    finally:
        error.__context__ = before or error.__context__


def _contexts(error: BaseException) -> list[BaseException]:
    found: dict[int, BaseException] = {}
    here: BaseException | None = error
    while here is not None and id(here) not in found:
        found[id(here)] = here
        here = here.__context__
    return list(found.values())
