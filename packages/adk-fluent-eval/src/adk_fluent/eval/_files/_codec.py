"""Suites and cases as plain data, as files hold them: written and read."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from adk_fluent.eval._cases._case import FluentCase, initial_state
from adk_fluent.eval._cases._turn import StateMap, ToolCall, Turn, UserSimulation, key_of
from adk_fluent.eval._errors import did_you_mean, require_type
from adk_fluent.eval._outcome import defaults_of
from adk_fluent.eval._report._figures import Gate
from adk_fluent.eval._text import plain
from adk_fluent.extend import describe, json_safe, storage_fault

if TYPE_CHECKING:
    from adk_fluent.eval._errors import EvalError
    from adk_fluent.eval._files._source import At, Source


SUITE_FIELDS: Final = (
    *("name", "description", "metrics", "thresholds", "num_runs", "gate"),
    *("judge_model", "judge_samples", "simulation"),
)
#: A mapping with one of these as its only key stands for something that files have no words for;
#: LITERAL escapes a value that looks like one.
CALL: Final = "call"
RAISE: Final = "raise"
REGEX: Final = "regex"
LITERAL: Final = "literal"
FLAGS: Final = {
    "a": re.ASCII,
    "i": re.IGNORECASE,
    "m": re.MULTILINE,
    "s": re.DOTALL,
    "x": re.VERBOSE,
}
#: Fields in the order of files.
_EXPECTED: Final = (
    *("expected_trajectory", "rubrics", "reference_response", "expected_response_contains"),
    *("state_assertions", "expected_status"),
)
_ORDER: Final = (
    *("id", "input", *_EXPECTED, "simulation", "trajectory_match", "mock_tool_outputs"),
    *("initial_state", "target_node", "max_cost_usd", "max_tokens", "max_latency_s"),
    *("max_tool_calls", "timeout_s", "skip", "xfail", "tags", "metadata", "answers"),
)


@dataclass(frozen=True)
class SuiteData:
    """A suite as files hold it: without its pipeline and judges.

    Attributes:
        fields: Arguments of `FluentEvalSuite`.
        cases: The cases.
        source: The file it was read from.
        at: Where in the file its fields are.
    """

    fields: dict[str, Any]
    cases: tuple[FluentCase, ...]
    source: Source | None = None
    at: At = ()


def marker(value: Any, *known: str) -> str | None:
    """Return the only key of a mapping if it is a known marker."""
    if not isinstance(value, Mapping) or len(cast("Mapping[str, Any]", value)) != 1:
        return None
    key = next(iter(cast("Mapping[str, Any]", value)))
    return key if key in known else None


def suite_data(data: SuiteData) -> dict[str, Any]:
    """Return the fields of a suite that differ from their defaults, without its cases."""
    made = {
        name: value
        for name in SUITE_FIELDS
        if (value := data.fields.get(name)) and (name, value) != ("num_runs", 1)
    }
    if gate := _record_data(made.pop("gate", Gate())):
        made["gate"] = gate
    if (simulation := made.pop("simulation", None)) is not None:
        made["simulation"] = _simulation_data(simulation)
    return made


def _simulation_data(simulation: UserSimulation) -> dict[str, Any]:
    for name in ("model", "persona"):
        what = f"simulation: {name}= has a value that files cannot hold"
        require_type(getattr(simulation, name), str | None, what, help="use a name or a text")
    return _record_data(simulation)


def _record_data(record: Gate | UserSimulation) -> dict[str, Any]:
    """The fields of a record that differ from their defaults."""
    given = {name: getattr(record, name) for name in defaults_of(type(record))}
    defaults = defaults_of(type(record))
    return {name: plain(each) for name, each in given.items() if each != defaults[name]}


def case_data(case: FluentCase) -> dict[str, Any]:
    """Return a case as plain data."""
    return _Writer(case).fields(case, _ORDER)


class _Writer:
    def __init__(self, case: FluentCase) -> None:
        self._case = case
        self._writers: dict[str, Callable[[Any], Any]] = {
            "input": self._input,
            "expected_trajectory": lambda given: [self._call(each) for each in given],
            "expected_response_contains": self._contains,
            "state_assertions": self._assertions,
            "simulation": _simulation_data,
            "mock_tool_outputs": self._mocks,
            "initial_state": lambda _: self.plain("initial_state", initial_state(case)),
        }

    def fields(self, of: FluentCase | Turn, names: Iterable[str]) -> dict[str, Any]:
        """The fields that are set."""
        made: dict[str, Any] = {}
        defaults = defaults_of(type(of))
        for name in names:
            value, default = getattr(of, name), defaults[name]
            if value is None or (default is not None and (not value or value == default)):
                continue
            write = self._writers.get(name)
            made[name] = self.plain(name, value) if write is None else write(value)
        return made

    def _assertions(self, given: StateMap) -> dict[str, Any]:
        return {
            key_of(ref): self._expected(f"state_assertions[{key_of(ref)!r}]", value, ref)
            for ref, value in given.items()
        }

    def _mocks(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {
            tool: self._mock(f"mock_tool_outputs[{tool!r}]", value) for tool, value in given.items()
        }

    def _input(self, given: Any) -> Any:
        if isinstance(given, list | tuple):
            return [self._turn(each) for each in cast("Sequence[Any]", given)]
        return [self._turn(given)] if isinstance(given, Turn) else self._message(given)

    def _turn(self, given: Any) -> Any:
        if not isinstance(given, Turn):
            return self._message(given)
        return {"input": self._message(given.input), **self.fields(given, _EXPECTED)}

    def _message(self, given: Any) -> Any:
        if isinstance(given, str):
            return self.plain("input", given)
        from adk_fluent.eval._files._cases_adk import content_data  # noqa: PLC0415  # slow

        return content_data(given)

    def _call(self, given: str | ToolCall) -> str | dict[str, Any]:
        if isinstance(given, str):
            return self.plain("expected_trajectory", given)
        made: dict[str, Any] = {"tool": given.name}
        if given.args is not None:
            made["args"] = {
                name: self._expected(f"expected_trajectory: argument {name!r}", value)
                for name, value in given.args.items()
            }
        return made

    def _contains(self, given: Any) -> Any:
        if isinstance(given, list | tuple):
            return [self._contains(each) for each in cast("Sequence[Any]", given)]
        if not isinstance(given, re.Pattern):
            return self.plain("expected_response_contains", given)
        pattern = cast("re.Pattern[str]", given)
        letters = "".join(letter for letter, flag in FLAGS.items() if pattern.flags & flag)
        return {REGEX: pattern.pattern, **({"flags": letters} if letters else {})}

    def _mock(self, field: str, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._mock(field, each) for each in cast("Sequence[Any]", value)]
        if isinstance(value, Exception):
            kind, args = type(value), value.args
            own = getattr(builtins, kind.__name__, None) is kind
            if not own or len(args) > 1 or not all(isinstance(each, str) for each in args):
                raise self._unwritable(field, kind, "use a built-in exception with a text")
            return {RAISE: self.plain(field, ": ".join((kind.__name__, *args)))}
        return self._expected(field, value, markers=(CALL, RAISE))

    def _expected(
        self, field: str, value: Any, ref: Any = None, markers: tuple[str, ...] = (CALL,)
    ) -> Any:
        """A value or a function; a value that looks like a marker is escaped."""
        if callable(value):
            return {CALL: self._reference(field, value)}
        encode = None if isinstance(ref, str) else getattr(ref, "encode", None)
        made = self.plain(field, value if encode is None else encode(value))
        return {LITERAL: made} if marker(made, LITERAL, *markers) else made

    def _reference(self, field: str, function: Callable[..., Any]) -> str:
        """The name of a function of a module, as ``module:qualname``."""
        if isinstance(function, FunctionType | BuiltinFunctionType):
            module, name = function.__module__ or "", function.__qualname__
            found: Any = sys.modules.get(module)
            for step in name.split("."):
                found = getattr(found, step, None)
            if found is function and module != "__main__":
                return f"{module}:{name}"
        raise self._unwritable(field, function, "define the function in a module")

    def plain(self, field: str, value: Any) -> Any:
        """Return a value as JSON holds it."""
        if storage_fault(value) is not None:
            raise self._unwritable(field, value, "use texts, numbers, lists and mappings of texts")
        return json_safe(value)

    def _unwritable(self, field: str, value: Any, help: str) -> EvalError:
        return self._case.error(
            f"{field} has a value that files cannot hold", found=describe(value), help=help
        )


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
        from adk_fluent.eval._files._cases_adk import read_content  # noqa: PLC0415  # slow

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
