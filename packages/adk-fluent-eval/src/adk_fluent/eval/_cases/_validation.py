"""Validation of cases where they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.eval._cases._turn import MATCHES, ToolCall, Turn, contains_of, key_of
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._gate import is_number
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from adk_fluent.eval._cases._case import FluentCase

#: Optional fields, their types, and what they must be.
_TYPES: Final = (
    ("id", str, "a name"),
    ("mock_tool_outputs", Mapping, "a mapping of tools to mocks"),
    ("initial_state", Mapping, "a mapping of keys to values"),
    ("target_node", str, "the name of a step"),
    ("skip", str, "a reason"),
    ("xfail", str, "a reason"),
)
_NUMBERS: Final = ("max_cost_usd", "max_latency_s", "timeout_s")
_COUNTS: Final = ("max_tokens", "max_tool_calls")
_TEMPORARY: Final = "temp:"  # ADK drops such keys at the end of each invocation


def validate(case: FluentCase) -> None:
    """Check every field of a case."""
    if not isinstance(case.metadata, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # user input
        raise EvalError("metadata= must be a mapping", found=describe(case.metadata))
    for name, kind, what in _TYPES:
        value: Any = getattr(case, name)
        if value is not None and (
            not isinstance(value, kind) or (isinstance(value, str) and not value.strip())
        ):
            raise EvalError(f"{name}= must be {what}", found=describe(value))
    for tool in case.mock_tool_outputs or {}:
        if not isinstance(tool, str) or not tool:  # pyright: ignore[reportUnnecessaryIsInstance]  # user input
            raise EvalError("keys of mock_tool_outputs= are names of tools", found=describe(tool))
    for key in map(key_of, case.initial_state or {}):
        _check_not_temporary("initial_state", key)
    if case.trajectory_match not in MATCHES:
        raise EvalError(
            f"unknown trajectory_match={case.trajectory_match!r}",
            help=f"one of {', '.join(MATCHES)}",
        )
    _check_limits(case)
    for tag in items("tags", case.tags):
        if not isinstance(tag, str) or not tag.strip():
            raise EvalError("tags= takes names", found=describe(tag))
    _check_expectations(case)
    _check_input(case)


def _check_limits(case: FluentCase) -> None:
    for name in (*_NUMBERS, *_COUNTS):
        value: Any = getattr(case, name)
        if value is None:
            continue
        whole = name in _COUNTS
        if not is_number(value) or value < 0 or (whole and not isinstance(value, int)):
            what = "whole number" if whole else "number"
            raise EvalError(f"{name}= must be a {what} >= 0", found=describe(value))
    if case.timeout_s == 0:
        raise EvalError("timeout_s= must be above 0", found="0")


def _check_expectations(of: FluentCase | Turn) -> None:
    if of.expected_trajectory is not None:
        for call in items("expected_trajectory", of.expected_trajectory):
            ToolCall.of(call)
    contains_of(of.expected_response_contains)
    reference: Any = of.reference_response
    if reference is not None and not isinstance(reference, str):
        raise EvalError("reference_response= must be a text", found=describe(reference))
    state: Any = of.state_assertions
    if state is not None and not isinstance(state, Mapping):
        raise EvalError(
            "state_assertions= must be a mapping of keys to values", found=describe(state)
        )
    for ref in cast("Mapping[Any, Any]", state or {}):
        key = key_of(ref)
        _check_not_temporary("state_assertions", key)
        _check_not_temporary("state_assertions", key.partition(".")[2])


def _check_not_temporary(name: str, key: str) -> None:
    if key.startswith(_TEMPORARY):
        raise EvalError(
            f"{name}= has the key {key!r}, which no session keeps",
            found=f"ADK drops keys with {_TEMPORARY!r} at the end of an invocation",
            help=f"use a key without {_TEMPORARY!r}",
        )


def items(name: str, value: Any) -> Sequence[Any]:
    """Return the items of a list argument."""
    if isinstance(value, list | tuple):
        return cast("Sequence[Any]", value)
    help = f"write {name}=[{value!r}]" if isinstance(value, str) else None
    raise EvalError(f"{name}= must be a list", found=describe(value), help=help)


def _check_input(case: FluentCase) -> None:
    given: Any = case.input
    several = isinstance(given, list | tuple)
    turns = cast("Sequence[Any]", given) if several else (given,)
    if not turns:
        raise EvalError("input= is empty", help="give input= a text")
    for number, turn in enumerate(turns, 1):
        try:
            if isinstance(turn, Turn):
                _check_expectations(turn)
                message: Any = turn.input
                parts = cast("list[Any]", message) if isinstance(message, list) else [message]
                for part in parts or [""]:
                    _check_message(part)
            elif several and _is_part(turn):
                raise EvalError(
                    "a list is one turn after the other, and a Part is not a turn",
                    found=describe(turn),
                    help="write input=Turn([text, part]) for one message of several parts",
                )
            else:
                _check_message(turn)
        except EvalError as error:
            if several:
                error.what = f"turn {number}: {error.what}"
            raise
    last = turns[-1]
    for name in ("expected_trajectory", "reference_response"):
        if isinstance(last, Turn) and None not in (getattr(case, name), getattr(last, name)):
            raise EvalError(f"{name}= is set on the case and on its last turn", help="set one")


def _check_message(message: Any) -> None:
    if isinstance(message, str):
        empty = not message.strip()
    elif hasattr(message, "parts"):
        empty = not message.parts
    elif _is_part(message):
        empty = False
    else:
        raise EvalError(
            "a user message is a text, or a Content or Part of google.genai",
            found=describe(message),
        )
    if empty:
        raise EvalError("input= is empty", found=describe(message), help="give input= a text")


def _is_part(value: Any) -> bool:
    """Whether a value looks like a Part of google.genai, which is not imported for it."""
    return hasattr(value, "inline_data") and hasattr(value, "text")
