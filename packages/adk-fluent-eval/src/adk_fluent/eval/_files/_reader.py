"""Cases and suites from plain data, as YAML and the eval sets of ADK hold it."""

from __future__ import annotations

import builtins
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from adk_fluent.eval._arguments import did_you_mean
from adk_fluent.eval._cases._case import FluentCase
from adk_fluent.eval._cases._turn import ToolCall, Turn, UserSimulation
from adk_fluent.eval._files._data import CALL, FLAGS, LITERAL, RAISE, REGEX, SUITE_FIELDS, marker
from adk_fluent.eval._gate import Gate
from adk_fluent.eval._values import defaults_of
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from adk_fluent.eval._files._source import At, Source

#: Functions that files may name, by name.
Registry: TypeAlias = Mapping[str, Callable[..., Any]]

_R = TypeVar("_R")
_TURN = tuple(Turn.__dataclass_fields__)
CASE_FIELDS = tuple(name for name in FluentCase.__dataclass_fields__ if name != "location")


class Reader:
    """Reads cases out of one file."""

    def __init__(self, source: Source, registry: Registry | None = None) -> None:
        self.source = source
        self._registry = registry or {}

    def suite(self, at: At, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of a suite other than its cases."""
        made = {name: value[name] for name in SUITE_FIELDS if value.get(name) is not None}
        if "gate" in made:
            made["gate"] = self._record((*at, "gate"), made["gate"], Gate, "a gate")
        if "simulation" in made:
            made["simulation"] = self._simulation((*at, "simulation"), made["simulation"])
        return made

    def _simulation(self, at: At, value: Any) -> UserSimulation:
        return self._record(at, value, UserSimulation, "a simulation")

    def _record(self, at: At, value: Any, kind: type[_R], what: str) -> _R:
        """A dataclass whose fields a mapping has."""
        given = self.source.mapping(at, value, defaults_of(kind), what)
        with self.source.naming(at):
            return kind(**given)

    def cases(self, at: At, values: list[Any]) -> tuple[FluentCase, ...]:
        """Return cases with different ids."""
        made = (self.case((*at, n), each) for n, each in enumerate(values))
        return self.distinct(at, "id", made)

    def distinct(self, at: At, field: str, cases: Iterable[FluentCase]) -> tuple[FluentCase, ...]:
        """Return cases, checked to have different ids, which are in a field."""
        seen: dict[str, FluentCase] = {}
        for n, case in enumerate(cases):
            if (first := seen.setdefault(case.name, case)) is not case:
                raise self.source.error(
                    (*at, n, field),
                    f"two cases have the id {case.name!r}",
                    found=f"the first is at {first.place}",
                )
        return tuple(seen.values())

    def case(self, at: At, value: Any) -> FluentCase:
        """Return a case."""
        fields = self._fields(at, value, CASE_FIELDS, "a case")
        if isinstance(given := fields.get("input"), list):
            turns = cast("list[Any]", given)
            fields["input"] = [self._turn((*at, "input", n), each) for n, each in enumerate(turns)]
        elif "input" in fields:
            fields["input"] = self._message((*at, "input"), given)
        return self.build(at, fields)

    def build(self, at: At, fields: Mapping[str, Any]) -> FluentCase:
        """Return the case with these fields."""
        if "input" not in fields:
            raise self.source.error(at, "a case has no input", help="give input:")
        with self.source.naming(at):
            return FluentCase(**fields, location=(self.source.path, self.source.line_of(at) or 1))

    def _turn(self, at: At, value: Any) -> Any:
        if not isinstance(value, Mapping) or "parts" in value:
            return self._message(at, value)
        fields = self._fields(at, value, _TURN, "a turn")
        if "input" not in fields:
            raise self.source.error(at, "a turn has no input", help="give input:")
        return Turn(**{**fields, "input": self._message((*at, "input"), fields["input"])})

    def _message(self, at: At, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        from adk_fluent.eval._files._eval_case_adk import read_content  # noqa: PLC0415  # slow

        return read_content(self.source, at, cast("Mapping[str, Any]", value))

    def _fields(self, at: At, value: Any, known: Collection[str], what: str) -> dict[str, Any]:
        """The fields of a case or turn; null fields are left out."""
        fields = {k: v for k, v in self.source.mapping(at, value).items() if v is not None}
        self.source.mapping(at, fields, known, what)
        readers: dict[str, Callable[[At, Any], Any]] = {
            "simulation": self._simulation,
            "expected_trajectory": self._calls,
            "expected_response_contains": self._contains,
            "state_assertions": self._expectations,
            "mock_tool_outputs": self._mocks,
        }
        for name in readers.keys() & fields.keys():
            fields[name] = readers[name]((*at, name), fields[name])
        return fields

    def _calls(self, at: At, value: Any) -> Any:
        """Tool calls: names, or ``{tool: name, args: {...}}``."""
        if not isinstance(value, list):
            return value  # refused by the case
        return [self._call((*at, n), each) for n, each in enumerate(cast("list[Any]", value))]

    def _call(self, at: At, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        given = self.source.mapping(at, value, ("tool", "args"), "a tool call")
        args = self._expectations((*at, "args"), given.get("args"))
        with self.source.naming(at):
            return ToolCall(given.get("tool") or "", args)

    def _contains(self, at: At, value: Any) -> Any:
        """Texts and patterns, or one of them."""
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [self._contains((*at, n), each) for n, each in enumerate(items)]
        if not isinstance(value, Mapping):
            return value
        given = self.source.mapping(at, value)
        text, letters = given.get(REGEX), given.get("flags", "")
        try:
            flags = re.NOFLAG
            for letter in letters:
                flags |= FLAGS[letter]
            return re.compile(cast("str", text), flags)
        except (re.error, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise self.source.error(
                at,
                f"invalid pattern: {error}",
                help=f'{{regex: "T-[0-9]+", flags: {"".join(FLAGS)}}}',
            ) from error

    def _expectations(self, at: At, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        pairs = cast("Mapping[str, Any]", value).items()
        return {key: self._marked((*at, key), each, CALL) for key, each in pairs}

    def _mocks(self, at: At, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        pairs = cast("Mapping[str, Any]", value).items()
        return {tool: self._mock((*at, tool), mock) for tool, mock in pairs}

    def _mock(self, at: At, value: Any) -> Any:
        if not isinstance(value, list):
            return self._marked(at, value, CALL, RAISE)
        answers = enumerate(cast("list[Any]", value))
        return [self._marked((*at, n), each, CALL, RAISE) for n, each in answers]

    def _marked(self, at: At, value: Any, *known: str) -> Any:
        """A value, or what ``{call: ...}``, ``{raise: ...}`` or ``{literal: ...}`` stands for."""
        key = marker(value, *known, LITERAL)
        if key is None or key == LITERAL:
            return value if key is None else value[key]
        name = value[key]
        if not isinstance(name, str):
            raise self.source.error((*at, key), "expected a text", found=describe(name))
        if key == CALL:
            if not callable(found := self._registry.get(name)):
                raise self.source.error(
                    (*at, CALL),
                    f"the registry has no function {name!r}",
                    found="files never import code",
                    help=did_you_mean(name, self._registry, f"registry={{{name!r}: ...}}"),
                )
            return found
        kind, _, message = name.partition(":")
        exception = getattr(builtins, kind.strip(), None)
        if isinstance(exception, type) and issubclass(exception, Exception):
            try:
                return exception(message.strip()) if message else exception()
            except TypeError:  # such as UnicodeDecodeError
                pass
        raise self.source.error(
            (*at, RAISE),
            f"{kind!r} is not a built-in exception with a message",
            help='such as {raise: "ValueError: no order"}',
        )
