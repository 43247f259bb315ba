"""Programs that run several times at once: what tells their runs apart."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from adk_fluent.testing.conformance._order import each_line
from adk_fluent.testing.conformance._program import NUMBER, Expected

if TYPE_CHECKING:
    from collections.abc import Mapping


def numbered(expected: Expected, copy: int) -> Expected:
    """What is expected of one of several runs at the same time."""
    return replace(
        expected,
        state=filled(dict(expected.state), copy),
        text=filled(expected.text, copy),
        events=each_line(expected.events or (), lambda line: filled(line, copy))
        if expected.events is not None
        else None,
    )


def filled(value: Any, copy: int) -> Any:
    """JSON data, with the number of the run in its texts."""
    if isinstance(value, str):
        return value.replace(NUMBER, str(copy))
    if isinstance(value, dict):
        held = cast("Mapping[str, Any]", value)
        return {key: filled(each, copy) for key, each in held.items()}
    if isinstance(value, list):
        return [filled(each, copy) for each in cast("list[Any]", value)]
    return value
