"""Cases from plain data, as YAML and the eval sets of ADK hold it."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from adk_fluent.errors import nearest_name
from adk_fluent.eval._cases._case import FluentCase
from adk_fluent.eval._cases._turn import ToolCall, Turn
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._files._data import CALL, FLAGS, LITERAL, RAISE, REGEX, SUITE_FIELDS, marker
from adk_fluent.eval._gate import is_number
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.eval._files._source import At, Source

#: Functions that files may name, by name.
Registry: TypeAlias = Mapping[str, Callable[..., Any]]


class Reader:
    """Reads cases out of one file.

    Args:
        source: The file.
        registry: The functions that the file may name.
    """

    def __init__(self, source: Source, registry: Registry | None = None) -> None:
        self.source = source
        self._registry = registry

    def case(self, at: At, value: Any) -> FluentCase:
        """Return a case.

        Raises:
            EvalFileError: The value is not a case.
        """
        return self.build(at, self.fields(at, value, CASE_FIELDS, "a case"))

    def build(self, at: At, fields: Mapping[str, Any]) -> FluentCase:
        """Return the case with these fields.

        Raises:
            EvalFileError: They are invalid.
        """
        if "input" not in fields:
            raise self.source.error(at, "a case has no input", help="give input:")
        location = (self.source.path, self.source.line_of(at) or 1)
        try:
            return FluentCase(**fields, location=location)
        except EvalError as error:
            what = error.what.removeprefix(f"case {fields.get('id')!r}: ").removeprefix("case: ")
            raise self.source.error(at, what, found=error.found, help=error.help) from error

    def fields(self, at: At, value: Any, known: Mapping[str, _Read], what: str) -> dict[str, Any]:
        """Return the fields of a mapping; null fields are left out."""
        made: dict[str, Any] = {}
        for key, each in self.mapping(at, value).items():
            if key not in known:
                raise self.source.unknown_key((*at, key), what, known)
            if each is not None:
                made[key] = known[key](self, (*at, key), each)
        return made

    def suite_fields(self, at: At, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a suite; other keys are ignored."""
        return {
            name: _SUITE[name](self, (*at, name), each)
            for name in SUITE_FIELDS
            if (each := value.get(name)) is not None
        }

    def distinct(self, cases: Iterable[tuple[At, FluentCase]]) -> tuple[FluentCase, ...]:
        """Return cases with different ids.

        Raises:
            EvalFileError: Two have the same id.
        """
        seen: dict[str, At] = {}
        made: list[FluentCase] = []
        for at, case in cases:
            first = seen.setdefault(case.name, at)
            if first is not at:
                line = self.source.line_of(first)
                raise self.source.error(
                    (*at, "id"),
                    f"two cases have the id {case.name!r}",
                    found=f"the first is in line {line}" if line else None,
                )
            made.append(case)
        return tuple(made)

    # --- fields --------------------------------------------------------------------------------

    def input(self, at: At, value: Any) -> Any:
        """Return a message, or several turns."""
        if not isinstance(value, list):
            return self.message(at, value)
        return [self._turn((*at, n), each) for n, each in enumerate(cast("list[Any]", value))]

    def _turn(self, at: At, value: Any) -> Any:
        if not isinstance(value, Mapping) or "parts" in value:
            return self.message(at, value)
        fields = self.fields(at, value, TURN_FIELDS, "a turn")
        if "input" not in fields:
            raise self.source.error(at, "a turn has no input", help="give input:")
        return Turn(**fields)

    def message(self, at: At, value: Any) -> Any:
        """Return a text, or a Content written as ``{parts: [...]}``."""
        if not isinstance(value, Mapping):
            return self.text(at, value)
        from adk_fluent.eval._files._eval_case_adk import read_content  # noqa: PLC0415  # slow

        return read_content(self.source, at, cast("Mapping[str, Any]", value))

    def trajectory(self, at: At, value: Any) -> list[str | ToolCall]:
        """Return tool calls: names, or ``{tool: name, args: {...}}``."""
        return [self._tool_call((*at, n), each) for n, each in enumerate(self.items(at, value))]

    def _tool_call(self, at: At, value: Any) -> str | ToolCall:
        if not isinstance(value, Mapping):
            return self.text(at, value)
        fields = self.fields(at, value, _TOOL_CALL_FIELDS, "a tool call")
        if "tool" not in fields:
            raise self.source.error(at, "a tool call names no tool", help="{tool: name, args: ...}")
        return ToolCall(fields["tool"], fields.get("args"))

    def contains(self, at: At, value: Any) -> Any:
        """Return texts and patterns, or one of them."""
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [self.contains((*at, n), each) for n, each in enumerate(items)]
        return self._pattern(at, value) if isinstance(value, Mapping) else self.text(at, value)

    def _pattern(self, at: At, value: Mapping[str, Any]) -> re.Pattern[str]:
        fields = self.fields(at, value, {REGEX: Reader.text, "flags": Reader.text}, "a pattern")
        letters = fields.get("flags", "")
        if REGEX not in fields or not set(letters) <= FLAGS.keys():
            raise self.source.error(
                at, "invalid pattern", help=f'{{regex: "T-[0-9]+", flags: {"".join(FLAGS)}}}'
            )
        flags = re.NOFLAG
        for letter in letters:
            flags |= FLAGS[letter]
        try:
            return re.compile(fields[REGEX], flags)
        except (re.error, OverflowError, RecursionError) as error:
            raise self.source.error((*at, REGEX), f"invalid pattern: {error}") from error

    def expectations(self, at: At, value: Any) -> dict[str, Any]:
        """Return values or functions by name."""
        pairs = self.mapping(at, value).items()
        return {key: self._marked((*at, key), each, CALL) for key, each in pairs}

    def mocks(self, at: At, value: Any) -> dict[str, Any]:
        """Return the mocks of tools."""
        made: dict[str, Any] = {}
        for tool, each in self.mapping(at, value).items():
            place = (*at, tool)
            made[tool] = (
                [
                    self._marked((*place, n), one, CALL, RAISE)
                    for n, one in enumerate(cast("list[Any]", each))
                ]
                if isinstance(each, list)
                else self._marked(place, each, CALL, RAISE)
            )
        return made

    def _marked(self, at: At, value: Any, *known: str) -> Any:
        """A value, or what ``{call: ...}``, ``{raise: ...}`` or ``{literal: ...}`` stands for."""
        match marker(value, *known, LITERAL):
            case "call":
                return self._function((*at, CALL), value[CALL])
            case "raise":
                return self._exception((*at, RAISE), self.text((*at, RAISE), value[RAISE]))
            case "literal":
                return value[LITERAL]
            case _:
                return value

    def _function(self, at: At, name: Any) -> Callable[..., Any]:
        registry = self._registry or {}
        found = registry.get(self.text(at, name))
        if not callable(found):
            near = nearest_name(name, registry)
            raise self.source.error(
                at,
                f"the registry has no function {name!r}",
                found="files never import code",
                help=f"did you mean {near!r}?" if near else f"registry={{{name!r}: the_function}}",
            )
        return found

    def _exception(self, at: At, text: str) -> Exception:
        name, _, message = text.partition(":")
        kind = getattr(builtins, name.strip(), None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                return kind(message.strip()) if message else kind()
            except TypeError:  # such as UnicodeDecodeError
                pass
        raise self.source.error(
            at,
            "raise: takes a built-in exception and a message",
            found=repr(name),
            help='such as {raise: "ValueError: no order"}',
        )

    # --- plain values --------------------------------------------------------------------------

    def mapping(self, at: At, value: Any) -> dict[str, Any]:
        """Return a mapping."""
        if isinstance(value, Mapping):
            return dict(cast("Mapping[str, Any]", value))
        raise self._wrong(at, "a mapping", value)

    def items(self, at: At, value: Any) -> list[Any]:
        """Return a list."""
        if isinstance(value, list):
            return cast("list[Any]", value)
        raise self._wrong(at, "a list", value)

    def text(self, at: At, value: Any) -> str:
        """Return a text."""
        if isinstance(value, str):
            return value
        raise self._wrong(at, "a text", value)

    def texts(self, at: At, value: Any) -> list[str]:
        """Return a list of texts."""
        return [self.text((*at, n), each) for n, each in enumerate(self.items(at, value))]

    def number(self, at: At, value: Any) -> float:
        """Return a number."""
        if is_number(value):
            return value
        raise self._wrong(at, "a number", value)

    def numbers(self, at: At, value: Any) -> dict[str, float]:
        """Return numbers by name."""
        pairs = self.mapping(at, value).items()
        return {name: self.number((*at, name), each) for name, each in pairs}

    def positive(self, at: At, value: Any) -> int:
        """Return a whole number from 1 up."""
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        raise self._wrong(at, "a whole number >= 1", value)

    def _wrong(self, at: At, what: str, value: Any) -> Exception:
        quoted = isinstance(value, bool | int | float) and what == "a text"
        return self.source.error(
            at,
            f"expected {what}",
            found=describe(value),
            help="put it in quotes" if quoted else None,
        )


_Read: TypeAlias = Callable[[Reader, "At", Any], Any]

TURN_FIELDS: Final[dict[str, _Read]] = {
    "input": Reader.message,
    "expected_trajectory": Reader.trajectory,
    "reference_response": Reader.text,
    "expected_response_contains": Reader.contains,
    "state_assertions": Reader.expectations,
}
CASE_FIELDS: Final[dict[str, _Read]] = {
    **TURN_FIELDS,
    "id": Reader.text,
    "input": Reader.input,
    "trajectory_match": Reader.text,
    "mock_tool_outputs": Reader.mocks,
    "initial_state": Reader.mapping,
    "target_node": Reader.text,
    "tags": Reader.texts,
    "metadata": Reader.mapping,
    "max_cost_usd": Reader.number,
    "max_tokens": Reader.number,
    "max_latency_s": Reader.number,
    "max_tool_calls": Reader.number,
    "timeout_s": Reader.number,
    "skip": Reader.text,
    "xfail": Reader.text,
}
_TOOL_CALL_FIELDS: Final[dict[str, _Read]] = {"tool": Reader.text, "args": Reader.expectations}
_SUITE: Final[dict[str, _Read]] = {
    "name": Reader.text,
    "description": Reader.text,
    "metrics": Reader.texts,
    "thresholds": Reader.numbers,
    "num_runs": Reader.positive,
}
