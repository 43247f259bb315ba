"""What a case may hold: a case that has no meaning is refused where it is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._words import describe
from adk_fluent.eval._cases._simulation import UserSimulation
from adk_fluent.eval._cases._turn import MATCHES, Rubric, ToolCall, Turn, key_of, texts_of
from adk_fluent.eval._errors import EvalError

if TYPE_CHECKING:
    from adk_fluent.eval._cases._case import FluentCase

#: Fields of one kind; None where they are not given.
_KINDS: Final = (
    ("id", str, "name"),
    ("mock_tool_outputs", Mapping, "mapping of tools to answers"),
    ("initial_state", Mapping, "mapping of keys to values"),
    ("target_node", str, "name of a step"),
    ("simulation", UserSimulation, "UserSimulation"),
    ("skip", str, "reason"),
    ("xfail", str, "reason"),
)
_NUMBERS: Final = ("max_cost_usd", "max_latency_s", "timeout_s")
_COUNTS: Final = ("max_tokens", "max_tool_calls")
#: What a case and its last turn cannot both expect.
_ONCE: Final = ("expected_trajectory", "reference_response")
#: Keys that ADK keeps out of sessions: of no invocation but the one that writes them.
_TEMP: Final = "temp:"


def check_case(case: FluentCase) -> None:
    """Look at everything that a case says.

    Raises:
        EvalError: Something has no meaning; with the line that made the case.
    """
    try:
        _check_kinds(case)
        _check_numbers(case)
        _check_tags(case.tags)
        _check_expected(case)
        _check_turns(case)
    except EvalError as error:
        raise case.error(error.what, found=error.found, help=error.help) from None


def _check_kinds(case: FluentCase) -> None:
    if not isinstance(case.metadata, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
        raise EvalError("metadata= is no mapping", found=describe(case.metadata))
    for name, kind, what in _KINDS:
        value: Any = getattr(case, name)
        if value is None:
            continue
        if not isinstance(value, kind) or (isinstance(value, str) and not value.strip()):
            raise EvalError(f"{name}= is no {what}", found=describe(value))
    for tool in case.mock_tool_outputs or {}:
        if not isinstance(tool, str) or not tool:  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            raise EvalError("mock_tool_outputs= names tools", found=describe(tool))
    for key in map(key_of, case.initial_state or {}):
        if key.startswith(_TEMP):
            raise EvalError(
                f"no agent gets what initial_state= gives {key!r}",
                found=f"ADK begins no session with keys of {_TEMP!r}",
                help=f"give a key without {_TEMP!r}",
            )
    if case.trajectory_match not in MATCHES:
        raise EvalError(
            f"there is no trajectory_match={case.trajectory_match!r}",
            help=f"one of {', '.join(MATCHES)}",
        )


def _check_numbers(case: FluentCase) -> None:
    for name in (*_NUMBERS, *_COUNTS):
        value: Any = getattr(case, name)
        if value is None:
            continue
        kinds, what = (int, "whole number") if name in _COUNTS else (int | float, "number")
        is_one = isinstance(value, kinds) and not isinstance(value, bool)
        if not (is_one and 0 <= value < math.inf):
            raise EvalError(f"{name}= is no {what} from 0 up", found=describe(value))
    if case.timeout_s == 0:
        raise EvalError("timeout_s=0 ends every run before it begins")


def _check_tags(tags: Any) -> None:
    for tag in _items("tags", tags):
        if not isinstance(tag, str) or not tag.strip():
            raise EvalError("a tag is no name", found=describe(tag))


def _check_expected(of: FluentCase | Turn) -> None:
    """What is expected, by a case or by one of its turns."""
    if of.expected_trajectory is not None:
        _each(_call, _items("expected_trajectory", of.expected_trajectory))
    texts_of(of.expected_response_contains)
    reference: Any = of.reference_response
    if reference is not None and not isinstance(reference, str):
        raise EvalError("reference_response= is no text", found=describe(reference))
    state: Any = of.state_assertions
    if state is not None and not isinstance(state, Mapping):
        raise EvalError(
            "state_assertions= is no mapping of keys to what they hold", found=describe(state)
        )
    _each(_check_asserted, cast("Mapping[Any, Any]", state or {}))
    _each(_rubric, _items("rubrics", of.rubrics))


def _check_asserted(ref: Any) -> None:
    key = key_of(ref)
    if key.startswith(_TEMP) or key.partition(".")[2].startswith(_TEMP):
        raise EvalError(
            f"state_assertions= expects something of {key!r}, which is never there",
            found=f"ADK drops keys of {_TEMP!r} at the end of each invocation",
            help=f"expect a key without {_TEMP!r}",
        )


def _call(value: Any) -> str | ToolCall:
    return value if isinstance(value, str) and value else ToolCall.of(value)


def _rubric(value: Any) -> Rubric:
    return value if isinstance(value, Rubric) else Rubric(value)


def _items(name: str, value: Any) -> Sequence[Any]:
    """A list that was given."""
    if isinstance(value, list | tuple):
        return cast("Sequence[Any]", value)
    if isinstance(value, str):
        raise EvalError(
            f"{name}= is one text, not a list of them",
            found=repr(value),
            help=f"write {name}=[{value!r}]",
        )
    raise EvalError(f"{name}= is no list", found=describe(value))


def _each(check: Callable[[Any], object], items: Iterable[Any]) -> None:
    for item in items:
        check(item)


# --- turns ---------------------------------------------------------------------------------------


def _check_turns(case: FluentCase) -> None:
    given: Any = case.input
    several = isinstance(given, list | tuple)
    items = cast("Sequence[Any]", given) if several else (given,)
    if not items:
        raise EvalError("it says nothing", found=describe(given), help="give input= a text")
    for number, item in enumerate(items, 1):
        try:
            _check_turn(item, several=several)
        except EvalError as error:
            if several:
                error.what = f"turn {number}: {error.what}"
            raise
    for name in _ONCE if isinstance(items[-1], Turn) else ():
        if getattr(case, name) is not None and getattr(items[-1], name) is not None:
            raise EvalError(
                f"{name}= is given twice, for the case and for its last turn",
                help="leave out one of them",
            )
    if case.simulation is not None and len(items) > 1:
        raise EvalError(
            "it says several turns, and somebody else plays the user after the first",
            help="give one turn, or no simulation=",
        )


def _check_turn(item: Any, *, several: bool) -> None:
    if isinstance(item, Turn):
        _check_expected(item)
        message = item.input
        _each(_check_message, cast("list[Any]", message) if _is_list(message) else [message])
        if _is_list(message) and not message:
            raise EvalError("it says nothing", found=describe(message))
        return
    if several and _is_part(item):
        raise EvalError(
            "a list is one turn after the other, and a Part is no turn",
            found=describe(item),
            help="write input=Turn([text, part]) for one message of several parts",
        )
    _check_message(item)


def _check_message(message: Any) -> None:
    if isinstance(message, str):
        says = bool(message.strip())
    elif _is_part(message):
        says = True
    elif hasattr(message, "parts"):
        says = bool(message.parts)
    else:
        raise EvalError(
            "what the user says is no text",
            found=describe(message),
            help="give a text, or a Content or Part of google.genai",
        )
    if not says:
        raise EvalError("it says nothing", found=describe(message), help="give input= a text")


def _is_part(value: Any) -> bool:
    """Whether it looks like ADK's Part, which is not imported for it."""
    return hasattr(value, "inline_data") and hasattr(value, "text")


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple)
