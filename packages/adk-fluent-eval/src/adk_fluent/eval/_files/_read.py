"""Cases from plain data: what YAML, JSON lines, tables and the block in ADK's files share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._words import describe
from adk_fluent.eval._cases._case import MATCHES, FluentCase, Rubric, ToolCall, Turn
from adk_fluent.eval._cases._simulation import UserSimulation
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._files._marked import CALL, RAISE, Registry, read_marked, read_pattern

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable

    from adk_fluent.eval._files._place import At, Source


class Reader:
    """Reads cases out of one file.

    Args:
        source: The file.
        registry: Functions by the names that it calls them by.
    """

    def __init__(self, source: Source, registry: Registry | None = None) -> None:
        self.source = source
        self.registry = registry

    def case(self, at: At, value: Any) -> FluentCase:
        """A case.

        Raises:
            EvalFileError: The value is none.
        """
        return self.build(at, self.case_fields(at, value))

    def build(self, at: At, fields: Mapping[str, Any]) -> FluentCase:
        """The case of fields that were read.

        Raises:
            EvalFileError: They make no case.
        """
        if "input" not in fields:
            raise self.source.error(
                at, "a case has no input", help="give input: what the user says"
            )
        line = self.source.line_of(at)
        try:
            return FluentCase(**fields, location=(self.source.path, line or 1))
        except EvalError as error:
            raise self.source.error(at, error.what, found=error.found, help=error.help) from error

    def case_fields(self, at: At, value: Any) -> dict[str, Any]:
        """The fields of a case."""
        return self._fields(at, value, CASE_FIELDS, "a case")

    def turn_fields(self, at: At, value: Any) -> dict[str, Any]:
        """The fields of a turn."""
        return self._fields(at, value, TURN_FIELDS, "a turn")

    def _fields(self, at: At, value: Any, known: Mapping[str, _Read], what: str) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, each in self.mapping(at, value, what).items():
            if key not in known:
                raise self.source.unknown((*at, key), what, known)
            if each is not None:
                made[key] = known[key](self, (*at, key), each)
        return made

    # --- what the user says --------------------------------------------------------------------

    def input(self, at: At, value: Any) -> Any:
        """What the user says: a message, or several turns."""
        if not isinstance(value, list):
            return self.message(at, value)
        turns = cast("list[Any]", value)
        if not turns:
            raise self.source.error(at, "a case says nothing", found="an empty list")
        return [self._turn((*at, n), each) for n, each in enumerate(turns)]

    def _turn(self, at: At, value: Any) -> Any:
        if not isinstance(value, Mapping) or "parts" in value:
            return self.message(at, value)
        fields = self.turn_fields(at, value)
        if "input" not in fields:
            raise self.source.error(
                at, "a turn has no input", help="give input: what the user says"
            )
        return Turn(**fields)

    def message(self, at: At, value: Any) -> Any:
        """A text, or a Content of ADK's as ``{parts: [...]}``."""
        if isinstance(value, Mapping):
            from adk_fluent.eval._files._native_adk import read_content  # noqa: PLC0415  # slow

            return read_content(self.source, at, cast("Mapping[str, Any]", value))
        return self.text(at, value)

    # --- what is expected ----------------------------------------------------------------------

    def trajectory(self, at: At, value: Any) -> list[str | ToolCall]:
        """Calls of tools: names, or ``{tool: name, args: {...}}``."""
        return [self._tool_call((*at, n), each) for n, each in enumerate(self.items(at, value))]

    def _tool_call(self, at: At, value: Any) -> str | ToolCall:
        if not isinstance(value, Mapping):
            return self.named(at, value)
        fields = self._fields(at, value, _TOOL_CALL_FIELDS, "a call of a tool")
        if "tool" not in fields:
            raise self.source.error(
                at, "a call of a tool names none", help="write {tool: name, args: {...}}"
            )
        return ToolCall(fields["tool"], fields.get("args"))

    def match(self, at: At, value: Any) -> str:
        """A way to compare trajectories."""
        text = self.text(at, value)
        if text not in MATCHES:
            raise self.source.error(
                at, f"there is no trajectory_match {text!r}", help=f"one of {', '.join(MATCHES)}"
            )
        return text

    def contains(self, at: At, value: Any) -> Any:
        """Texts and patterns that an answer has, or one of them."""
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [self._contained((*at, n), each) for n, each in enumerate(items)]
        return self._contained(at, value)

    def _contained(self, at: At, value: Any) -> str | re.Pattern[str]:
        if isinstance(value, Mapping):
            return read_pattern(self.source, at, cast("Mapping[str, Any]", value))
        return self.text(at, value)

    def expectations(self, at: At, value: Any) -> dict[str, Any]:
        """Values, or functions that say whether a value will do, by name."""
        return {
            key: read_marked(self.source, (*at, key), each, self.registry, CALL)
            for key, each in self.mapping(at, value).items()
        }

    def mocks(self, at: At, value: Any) -> dict[str, Any]:
        """Tools, and what they answer."""
        return {
            tool: [self._mock((*at, tool, n), one) for n, one in enumerate(cast("list[Any]", each))]
            if isinstance(each, list)
            else self._mock((*at, tool), each)
            for tool, each in self.mapping(at, value).items()
        }

    def _mock(self, at: At, value: Any) -> Any:
        return read_marked(self.source, at, value, self.registry, CALL, RAISE)

    def rubrics(self, at: At, value: Any) -> list[str | Rubric]:
        """Rubrics: texts, or ``{text: ..., id: ...}``."""
        return [self._rubric((*at, n), each) for n, each in enumerate(self.items(at, value))]

    def _rubric(self, at: At, value: Any) -> str | Rubric:
        if not isinstance(value, Mapping):
            return self.named(at, value)
        fields = self._fields(at, value, _RUBRIC_FIELDS, "a rubric")
        if "text" not in fields:
            raise self.source.error(at, "a rubric says nothing", help="give text:")
        return Rubric(fields["text"], fields.get("id", ""))

    def simulation(self, at: At, value: Any) -> UserSimulation:
        """Who plays the user."""
        fields = self._fields(at, value, _SIMULATION_FIELDS, "a simulated user")
        try:
            return UserSimulation(**fields)
        except EvalError as error:
            raise self.source.error(at, error.what, found=error.found, help=error.help) from error

    def persona(self, at: At, value: Any) -> Any:
        """Who a simulated user is: words, or a UserPersona of ADK's as a mapping."""
        if isinstance(value, Mapping):
            from adk_fluent.eval._files._native_adk import read_persona  # noqa: PLC0415  # slow

            return read_persona(self.source, at, cast("Mapping[str, Any]", value))
        return self.text(at, value)

    # --- plain values --------------------------------------------------------------------------

    def mapping(self, at: At, value: Any, what: str = "") -> dict[str, Any]:
        """A mapping of texts to anything."""
        if isinstance(value, Mapping):
            return dict(cast("Mapping[str, Any]", value))
        subject = what or (_label(at) if at else "the file")
        raise self.source.error(
            at, f"{subject} is no mapping", found=describe(value), help="write key: value"
        )

    def items(self, at: At, value: Any) -> list[Any]:
        """A list."""
        if isinstance(value, list):
            return cast("list[Any]", value)
        help = f"write [{value}]" if isinstance(value, str) and value else None
        raise self.source.error(at, f"{_label(at)} is no list", found=describe(value), help=help)

    def text(self, at: At, value: Any) -> str:
        """A text."""
        if isinstance(value, str):
            return value
        plain = isinstance(value, bool | int | float)
        raise self.source.error(
            at,
            f"{_label(at)} is no text",
            found=describe(value),
            help="put it in quotes" if plain else None,
        )

    def named(self, at: At, value: Any) -> str:
        """A text that is not empty."""
        text = self.text(at, value)
        if not text.strip():
            raise self.source.error(at, f"{_label(at)} is empty")
        return text

    def texts(self, at: At, value: Any) -> list[str]:
        """A list of texts that are not empty."""
        return [self.named((*at, n), each) for n, each in enumerate(self.items(at, value))]

    def number(self, at: At, value: Any) -> float:
        """A number from 0 up."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not (0 <= value < math.inf):
            raise self.source.error(
                at,
                f"{_label(at)} is no number from 0 up",
                found=repr(value) if is_number else describe(value),
            )
        return value

    def count(self, at: At, value: Any) -> int:
        """A whole number from 0 up."""
        number = self.number(at, value)
        if not isinstance(number, int):
            raise self.source.error(at, f"{_label(at)} is no whole number", found=repr(number))
        return number

    def flag(self, at: At, value: Any) -> bool:
        """True or false."""
        if not isinstance(value, bool):
            raise self.source.error(
                at, f"{_label(at)} is neither true nor false", found=describe(value)
            )
        return value


def _label(at: At) -> str:
    """What a value is called: its key, with the position where it is one of several."""
    if not at:
        return "it"
    last = at[-1]
    if isinstance(last, int):
        named = next((step for step in reversed(at) if isinstance(step, str)), "it")
        return f"item {last + 1} of {named}:"
    return f"{last}:"


_Read = Callable[[Reader, "At", Any], Any]

TURN_FIELDS: Final[dict[str, _Read]] = {
    "input": Reader.message,
    "expected_trajectory": Reader.trajectory,
    "reference_response": Reader.text,
    "expected_response_contains": Reader.contains,
    "state_assertions": Reader.expectations,
    "rubrics": Reader.rubrics,
}

CASE_FIELDS: Final[dict[str, _Read]] = {
    **TURN_FIELDS,
    "id": Reader.named,
    "input": Reader.input,
    "trajectory_match": Reader.match,
    "mock_tool_outputs": Reader.mocks,
    "initial_state": Reader.mapping,
    "target_node": Reader.named,
    "tags": Reader.texts,
    "metadata": Reader.mapping,
    "simulation": Reader.simulation,
    "max_cost_usd": Reader.number,
    "max_tokens": Reader.count,
    "max_latency_s": Reader.number,
    "max_tool_calls": Reader.count,
    "timeout_s": Reader.number,
    "skip": Reader.named,
    "xfail": Reader.named,
}

_TOOL_CALL_FIELDS: Final[dict[str, _Read]] = {"tool": Reader.named, "args": Reader.expectations}

_RUBRIC_FIELDS: Final[dict[str, _Read]] = {"text": Reader.named, "id": Reader.text}

_SIMULATION_FIELDS: Final[dict[str, _Read]] = {
    "model": Reader.named,
    "persona": Reader.persona,
    "success_criteria": Reader.text,
    "stop_signal": Reader.text,
    "max_turns": Reader.count,
    "starting_prompt": Reader.named,
    "include_function_calls": Reader.flag,
    "script": Reader.texts,
}


def distinct(cases: Iterable[tuple[Source, At, FluentCase]]) -> tuple[FluentCase, ...]:
    """Cases of which no two have one id.

    Args:
        cases: Each with where it stands.

    Raises:
        EvalFileError: Two have.
    """
    seen: dict[str, int | None] = {}
    made: list[FluentCase] = []
    for source, at, case in cases:
        if case.name in seen:
            line = seen[case.name]
            raise source.error(
                (*at, "id"),
                f"there are two cases {case.name!r}",
                found=f"the first is in line {line}" if line else None,
                help="give them different ids",
            )
        seen[case.name] = source.line_of(at)
        made.append(case)
    return tuple(made)
