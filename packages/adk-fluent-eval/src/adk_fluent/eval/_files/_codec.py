"""Suites and cases as plain data, as files hold them: written and read."""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import partial
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast

from adk_fluent.eval._arguments import did_you_mean, require_type
from adk_fluent.eval._cases._case import FluentCase, check_case, initial_state
from adk_fluent.eval._cases._suite import Gate, Suite
from adk_fluent.eval._cases._turn import ToolCall, Turn, UserSimulation, key_of
from adk_fluent.eval._outcome import changed, defaults_of
from adk_fluent.eval._text import plain
from adk_fluent.extend import describe, json_safe, storage_fault

if TYPE_CHECKING:
    from adk_fluent.eval._errors import EvalError
    from adk_fluent.eval._files._source import Source
    from adk_fluent.extend import At

#: Functions that files may name, by name.
Registry: TypeAlias = Mapping[str, Callable[..., Any]]
_R = TypeVar("_R")

#: A mapping with one of these as its only key stands for something that files have no words for;
#: LITERAL escapes a value that looks like one.
CALL: Final = "call"
RAISE: Final = "raise"
REGEX: Final = "regex"
LITERAL: Final = "literal"
_FLAGS: Final = {letter: re.RegexFlag[letter.upper()] for letter in "aimsx"}

SUITE_FIELDS: Final = tuple(
    name
    for name in Suite.__dataclass_fields__
    if name not in {"pipeline", "cases", "custom_judges"}
)
#: In the order in which files have them.
CASE_FIELDS: Final = (
    *("id", "input"),
    *(name for name in FluentCase.__dataclass_fields__ if name not in {"id", "input", "location"}),
)
TURN_FIELDS: Final = tuple(Turn.__dataclass_fields__)
_TEXTS: Final = ("name", "id", "reference_response", "target_node")


@dataclass(frozen=True)
class SuiteData:
    """What a file says of a suite.

    Attributes:
        fields: Arguments of `FluentEvalSuite`.
        cases: The cases.
        source: The file.
        at: Where in the file the fields are.
    """

    fields: dict[str, Any]
    cases: tuple[FluentCase, ...]
    source: Source
    at: At = ()


def _marker(value: Any, *known: str) -> str | None:
    """The only key of a mapping if it is a known marker."""
    if not isinstance(value, Mapping) or len(cast("Mapping[str, Any]", value)) != 1:
        return None
    key = next(iter(cast("Mapping[str, Any]", value)))
    return key if key in known else None


# --- writing -------------------------------------------------------------------------------------


def suite_data(suite: Suite) -> dict[str, Any]:
    """Return the fields of a suite that differ from their defaults, without its cases."""
    writers: dict[str, Callable[[Any], Any]] = {"gate": _record_data, "simulation": _simulation}
    given = changed(suite, ("name",))  # without one, it is called as its file
    if not isinstance(suite.judge_model, str):
        given.pop("judge_model", None)
    return {name: writers.get(name, plain)(given[name]) for name in SUITE_FIELDS if name in given}


def _record_data(record: Gate | UserSimulation) -> dict[str, Any]:
    return {name: plain(value) for name, value in changed(record).items()}


def _simulation(simulation: UserSimulation) -> dict[str, Any]:
    for name in ("model", "persona"):
        what = f"simulation: {name}= has a value that files cannot hold"
        require_type(getattr(simulation, name), str | None, what, help="use a name or a text")
    return _record_data(simulation)


def case_data(case: FluentCase) -> dict[str, Any]:
    """Return a case as plain data."""
    return _Writer(case).fields(case, CASE_FIELDS)


class _Writer:
    def __init__(self, case: FluentCase) -> None:
        self._case = case
        self._writers: dict[str, Callable[[Any], Any]] = {
            "input": self._input,
            "expected_trajectory": lambda given: [self._call(each) for each in given],
            "expected_response_contains": self._contains,
            "state_assertions": lambda given: self._each("state_assertions", given, CALL),
            "simulation": _simulation,
            "mock_tool_outputs": lambda given: self._each("mock_tool_outputs", given, CALL, RAISE),
            "initial_state": lambda _: self._plain("initial_state", initial_state(case)),
        }

    def fields(self, of: FluentCase | Turn, names: Iterable[str]) -> dict[str, Any]:
        """Return the fields that are set."""
        made: dict[str, Any] = {}
        given = changed(of)
        for name in (each for each in names if each in given):
            write = self._writers.get(name) or partial(self._plain, name)
            made[name] = write(given[name])
        return made

    def _input(self, given: Any) -> Any:
        if isinstance(given, list | tuple):
            return [self._turn(each) for each in cast("list[Any]", given)]
        return [self._turn(given)] if isinstance(given, Turn) else self._turn(given)

    def _turn(self, given: Any) -> Any:
        if isinstance(given, Turn):
            return {"input": self._turn(given.input), **self.fields(given, TURN_FIELDS[1:])}
        if isinstance(given, str):
            return self._plain("input", given)
        from adk_fluent.eval._files._cases_adk import content_data  # noqa: PLC0415  # slow

        return content_data(given)

    def _call(self, given: str | ToolCall) -> Any:
        if isinstance(given, str):
            return self._plain("expected_trajectory", given)
        made: dict[str, Any] = {"tool": given.name}
        if given.args is not None:
            made["args"] = {
                name: self._value(f"expected_trajectory: argument {name!r}", value, name, (CALL,))
                for name, value in given.args.items()
            }
        return made

    def _contains(self, given: Any) -> Any:
        if isinstance(given, list | tuple):
            return [self._contains(each) for each in cast("list[Any]", given)]
        if not isinstance(given, re.Pattern):
            return self._plain("expected_response_contains", given)
        pattern = cast("re.Pattern[str]", given)
        letters = "".join(letter for letter, flag in _FLAGS.items() if pattern.flags & flag)
        return {REGEX: pattern.pattern, **({"flags": letters} if letters else {})}

    def _each(self, field: str, given: Mapping[Any, Any], *markers: str) -> dict[str, Any]:
        return {
            key_of(ref): self._value(f"{field}[{key_of(ref)!r}]", value, ref, markers)
            for ref, value in given.items()
        }

    def _value(self, field: str, value: Any, ref: Any, markers: tuple[str, ...]) -> Any:
        """A value, a function, or a mock; a value that looks like a marker is escaped."""
        if RAISE in markers and isinstance(value, list | tuple):
            each = cast("list[Any]", value)
            return [self._value(field, item, ref, markers) for item in each]
        if RAISE in markers and isinstance(value, Exception):
            kind, args = type(value), value.args
            own = getattr(builtins, kind.__name__, None) is kind
            if not own or len(args) > 1 or not all(isinstance(each, str) for each in args):
                raise self._unwritable(field, kind, "use a built-in exception with a text")
            return {RAISE: self._plain(field, ": ".join((kind.__name__, *args)))}
        if callable(value):
            return {CALL: self._reference(field, value)}
        encode = None if isinstance(ref, str) else getattr(ref, "encode", None)
        made = self._plain(field, value if encode is None else encode(value))
        return {LITERAL: made} if _marker(made, LITERAL, *markers) else made

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

    def _plain(self, field: str, value: Any) -> Any:
        """A value as JSON holds it."""
        if storage_fault(value) is not None:
            raise self._unwritable(field, value, "use texts, numbers, lists and mappings of texts")
        return json_safe(value)

    def _unwritable(self, field: str, value: Any, help: str) -> EvalError:
        what = f"{field} has a value that files cannot hold"
        return self._case.error(what, found=describe(value), help=help)


# --- reading -------------------------------------------------------------------------------------


class Reader:
    """Reads cases out of one file."""

    def __init__(self, source: Source, registry: Registry | None = None) -> None:
        self.source = source
        self._registry = registry or {}
        self._readers: dict[str, Callable[[At, Any], Any]] = {
            "simulation": lambda at, value: self._record(at, value, UserSimulation, "a simulation"),
            "gate": lambda at, value: self._record(at, value, Gate, "a gate"),
            **dict.fromkeys(_TEXTS, self._text),
            "rubrics": lambda at, value: _each_of(at, value, self._text) or value,
            "tags": lambda at, value: _each_of(at, value, self._text) or value,
            "expected_trajectory": self._calls,
            "expected_response_contains": self._contains,
            "state_assertions": lambda at, value: self._each(at, value, CALL),
            "mock_tool_outputs": lambda at, value: self._each(at, value, CALL, RAISE),
        }

    def fields(self, at: At, value: Any, names: Collection[str], what: str) -> dict[str, Any]:
        """Return the fields of a suite, case or turn; null fields are left out.

        Args:
            at: Its place.
            value: The mapping.
            names: The fields that it may have.
            what: What it is, such as ``a case``.
        """
        given = self.source.mapping(at, value)
        made = {name: each for name, each in given.items() if each is not None}
        self.source.mapping(at, made, names, what)
        for name in self._readers.keys() & made.keys():
            made[name] = self._readers[name]((*at, name), made[name])
        return made

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
        known: dict[str, FluentCase] = {}
        for n, case in enumerate(cases):
            with self.source.naming((*at, n, field)):
                check_case(case, known)
        return tuple(known.values())

    def case(self, at: At, value: Any) -> FluentCase:
        """Return a case."""
        fields = self.fields(at, value, CASE_FIELDS, "a case")
        if "input" in fields:
            given, place = fields["input"], (*at, "input")
            fields["input"] = _each_of(place, given, self._turn) or self._message(place, given)
        return self.build(at, fields)

    def build(self, at: At, fields: Mapping[str, Any]) -> FluentCase:
        """Return the case with these fields."""
        self._check_input(at, fields, "a case")
        with self.source.naming(at):
            return FluentCase(**fields, location=(self.source.path, self.source.line_of(at) or 1))

    def _check_input(self, at: At, fields: Mapping[str, Any], what: str) -> None:
        if "input" not in fields:
            raise self.source.error(at, f"{what} has no input", help="give input:")

    def _turn(self, at: At, value: Any) -> Any:
        if not isinstance(value, Mapping) or "parts" in value:
            return self._message(at, value)
        fields = self.fields(at, value, TURN_FIELDS, "a turn")
        self._check_input(at, fields, "a turn")
        return Turn(**{**fields, "input": self._message((*at, "input"), fields["input"])})

    def _text(self, at: At, value: Any) -> Any:
        """A value in the place of a text; what YAML reads as something else is refused."""
        if isinstance(value, bool | int | float | date):
            help = 'write a text such as yes, on or 1.0 in quotes: "yes"'
            raise self.source.error(at, "expected a text", found=describe(value), help=help)
        return value

    def _message(self, at: At, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return self._text(at, value)
        from adk_fluent.eval._files._cases_adk import read_content  # noqa: PLC0415  # slow

        return read_content(self.source, at, cast("Mapping[str, Any]", value))

    def _calls(self, at: At, value: Any) -> Any:
        """Tool calls; what is no list is refused by the case."""
        return _each_of(at, value, self._call) or value

    def _call(self, at: At, value: Any) -> Any:
        """A tool call: a name, or ``{tool: name, args: {...}}``."""
        if not isinstance(value, Mapping):
            return self._text(at, value)
        given = self.source.mapping(at, value, ("tool", "args"), "a tool call")
        args = self._each((*at, "args"), given.get("args"), CALL)
        with self.source.naming(at):
            return ToolCall(given.get("tool") or "", args)

    def _contains(self, at: At, value: Any) -> Any:
        """Texts and patterns, or one of them."""
        if not isinstance(value, Mapping):
            return _each_of(at, value, self._contains) or self._text(at, value)
        given = self.source.mapping(at, value)
        text, letters = given.get(REGEX), given.get("flags", "")
        try:
            flags = re.NOFLAG
            for letter in letters:
                flags |= _FLAGS[letter]
            return re.compile(cast("str", text), flags)
        except (re.error, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            help = f'{{regex: "T-[0-9]+", flags: {"".join(_FLAGS)}}}'
            raise self.source.error(at, f"invalid pattern: {error}", help=help) from error

    def _each(self, at: At, value: Any, *known: str) -> Any:
        """A mapping of values, of which each may be marked; mocks may be lists of such."""
        if not isinstance(value, Mapping):
            return value
        pairs = cast("Mapping[str, Any]", value).items()
        return {key: self._value((*at, key), each, known) for key, each in pairs}

    def _value(self, at: At, value: Any, known: tuple[str, ...]) -> Any:
        """A value, or a list of answers of a mock."""
        answers = _each_of(at, value, partial(self._marked, known)) if RAISE in known else None
        return answers or self._marked(known, at, value)

    def _marked(self, known: tuple[str, ...], at: At, value: Any) -> Any:
        """A value, or what ``{call: ...}``, ``{raise: ...}`` or ``{literal: ...}`` stands for."""
        key = _marker(value, *known, LITERAL)
        if key is None or key == LITERAL:
            return value if key is None else value[key]
        name = value[key]
        if not isinstance(name, str):
            raise self.source.error((*at, key), "expected a text", found=describe(name))
        if key == CALL:
            if not callable(found := self._registry.get(name)):
                what = f"the registry has no function {name!r}"
                found = "files never import code"
                help = did_you_mean(name, self._registry, f"registry={{{name!r}: ...}}")
                raise self.source.error((*at, CALL), what, found=found, help=help)
            return found
        kind, _, message = name.partition(":")
        exception = getattr(builtins, kind.strip(), None)
        if isinstance(exception, type) and issubclass(exception, Exception):
            try:
                return exception(message.strip()) if message else exception()
            except TypeError:  # such as UnicodeDecodeError
                pass
        what = f"{kind!r} is not a built-in exception with a message"
        raise self.source.error((*at, RAISE), what, help='such as {raise: "ValueError: no order"}')


def _each_of(at: At, value: Any, read: Callable[[At, Any], Any]) -> list[Any] | None:
    """What is read of each item of a list; None of what is no list."""
    if not isinstance(value, list):
        return None
    return [read((*at, n), each) for n, each in enumerate(cast("list[Any]", value))]
