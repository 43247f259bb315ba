"""What programs share that stop and ask, and go on with an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.protocol import Answer, Resume
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._program import Expected, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from adk_fluent.builders import StepLike
    from adk_fluent.protocol import Pending
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._order import Order
    from adk_fluent.testing.conformance._program import Program

YES: Final[dict[str, Any]] = {"approved": True, "note": ""}
NO: Final[dict[str, Any]] = {"approved": False, "note": ""}


def says_to_all(value: Any) -> Callable[[Sequence[Pending]], Resume]:
    """Answers every question alike."""
    return lambda asked: Resume(tuple(each.answer(value) for each in asked))


def says_to(one: str, value: Any = True) -> Callable[[Sequence[Pending]], Resume]:
    """Answers one of the questions: by its name, by who asks, or by an argument of the call."""

    def is_meant(asked: Pending) -> bool:
        payload: object = asked.payload
        args = cast("dict[str, object]", payload) if isinstance(payload, dict) else {}
        return one in (asked.name, asked.author, *args.values())

    return lambda asked: Resume(tuple(each.answer(value) for each in asked if is_meant(each)))


def answered(
    value: Any = True,
    *,
    only: str | None = None,
    state: Mapping[str, Any] | None = None,
    text: str | None = None,
    calls: Order = (),
    events: Order | None = (),
) -> Turn:
    """The run goes on with an answer.

    Args:
        value: The answer to every question.
        only: Which question alone is answered; see `says_to`.
        state: State of the session afterwards.
        text: The answer of the run.
        calls: What is called.
        events: The lines of the events.
    """
    answers = says_to_all(value) if only is None else says_to(only, value)
    expects = Expected(state=state or {}, text=text, calls=calls, events=events)
    return Turn(answers=answers, expects=expects)


def misanswered(
    what: str,
    capability: str,
    build: Callable[[Bench], StepLike],
    *,
    calls: Order,
    events: Order,
    right: Turn,
    malformed: Any = None,
) -> Iterator[Program]:
    """What is no answer is harmless; the run goes on with the right one.

    Args:
        what: What asks, for the ids of the programs.
        capability: What they ask of a backend.
        build: Makes a pipeline that asks one question.
        calls: What is called before it asks.
        events: The events until then.
        right: The right answer, and what comes of it.
        malformed: A value that is no answer; None where everything is one.
    """
    wrong: dict[str, Callable[[Sequence[Pending]], Any]] = {
        "a message instead": lambda _: "hello",
        "an answer to another question": lambda _: Resume((Answer("ask-unknown", True),)),
    }
    if malformed is not None:
        wrong["a malformed answer"] = says_to_all(malformed)
    nothing = Expected(text=None, events=None)
    late = Expected(text=None, events=None, state=right.expects.state)
    turns = {
        each: (Turn(answers=answers, expects=nothing, may_refuse=True), right)
        for each, answers in wrong.items()
    }
    turns["a late answer"] = (right, Turn(answers=right.answers, expects=late, may_refuse=True))
    for each, then in turns.items():
        yield case(
            f"{what}/{each} runs nothing",
            capability,
            build,
            text=None,
            calls=calls,
            events=events,
            then=then,
        )
