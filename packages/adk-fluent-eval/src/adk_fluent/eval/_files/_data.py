"""Cases as plain data, as YAML and the eval sets of ADK hold it."""

from __future__ import annotations

import builtins
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.eval._cases._case import FluentCase, initial_state
from adk_fluent.eval._cases._simulation import UserSimulation
from adk_fluent.eval._cases._turn import ToolCall, Turn, key_of
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._gate import Gate
from adk_fluent.eval._values import plain
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from adk_fluent.eval._files._source import Source

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
_DEFAULT: Final = Gate()
_DEPTH: Final = 100
_UNCHANGED: Final = (
    *("target_node", "max_cost_usd", "max_tokens", "max_latency_s", "max_tool_calls"),
    *("timeout_s", "skip", "xfail", "tags", "metadata", "answers"),
)


@dataclass(frozen=True)
class SuiteData:
    """A suite as files hold it: without its pipeline and judges.

    Attributes:
        fields: Arguments of `FluentEvalSuite`.
        cases: The cases.
        source: The file it was read from.
    """

    fields: dict[str, Any]
    cases: tuple[FluentCase, ...]
    source: Source | None = None


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
    if (gate := made.pop("gate", _DEFAULT)) != _DEFAULT:
        made["gate"] = {
            name: plain(value)
            for name in Gate.__dataclass_fields__
            if (value := getattr(gate, name)) != getattr(_DEFAULT, name)
        }
    if (simulation := made.pop("simulation", None)) is not None:
        made["simulation"] = simulation_data(simulation)
    return made


def simulation_data(simulation: UserSimulation) -> dict[str, Any]:
    """Return how a user is simulated as plain data."""
    made = {
        name: getattr(simulation, name)
        for name, each in UserSimulation.__dataclass_fields__.items()
        if getattr(simulation, name) != each.default
    }
    for name in ("model", "persona"):
        if not isinstance(made.get(name, ""), str):
            raise EvalError(
                f"simulation: {name}= has a value that files cannot hold",
                found=describe(made[name]),
                help="use a name or a text",
            )
    return made | ({"script": list(made["script"])} if "script" in made else {})


def case_data(case: FluentCase) -> dict[str, Any]:
    """Return a case as plain data."""
    return _Writer(case).case()


class _Writer:
    def __init__(self, case: FluentCase) -> None:
        self._case = case

    def case(self) -> dict[str, Any]:
        case = self._case
        made: dict[str, Any] = {} if case.id is None else {"id": case.id}
        made["input"] = self._input(case.input)
        made |= self.expectations(case)
        if case.simulation is not None:
            made["simulation"] = simulation_data(case.simulation)
        if case.trajectory_match != "exact":
            made["trajectory_match"] = case.trajectory_match
        if case.mock_tool_outputs is not None:
            made["mock_tool_outputs"] = {
                tool: self._mock(f"mock_tool_outputs[{tool!r}]", value)
                for tool, value in case.mock_tool_outputs.items()
            }
        if case.initial_state is not None:
            made["initial_state"] = self.plain("initial_state", initial_state(case))
        for name in _UNCHANGED:
            if (value := getattr(case, name)) is not None and value not in ((), [], {}):
                made[name] = self.plain(name, value)
        return made

    def expectations(self, of: FluentCase | Turn) -> dict[str, Any]:
        made: dict[str, Any] = {}
        if of.expected_trajectory is not None:
            made["expected_trajectory"] = [self._call(each) for each in of.expected_trajectory]
        if of.rubrics:
            made["rubrics"] = self.plain("rubrics", of.rubrics)
        if of.reference_response is not None:
            made["reference_response"] = self.plain("reference_response", of.reference_response)
        if of.expected_response_contains is not None:
            made["expected_response_contains"] = self._contains(of.expected_response_contains)
        if of.state_assertions is not None:
            made["state_assertions"] = {
                key_of(ref): self._expected(f"state_assertions[{key_of(ref)!r}]", value, ref)
                for ref, value in of.state_assertions.items()
            }
        return made

    def _input(self, given: Any) -> Any:
        if isinstance(given, list | tuple):
            return [self._turn(each) for each in cast("Sequence[Any]", given)]
        return [self._turn(given)] if isinstance(given, Turn) else self._message(given)

    def _turn(self, given: Any) -> Any:
        if not isinstance(given, Turn):
            return self._message(given)
        return {"input": self._message(given.input), **self.expectations(given)}

    def _message(self, given: Any) -> Any:
        if isinstance(given, str):
            return self.plain("input", given)
        from adk_fluent.eval._files._eval_case_adk import content_data  # noqa: PLC0415  # slow

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

    def plain(self, field: str, value: Any, depth: int = 0) -> Any:
        """Return a value as JSON holds it."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            text = str.__str__(value)  # of a StrEnum
            if text.isascii() or not re.search("[\ud800-\udfff]", text):
                return text
        elif isinstance(value, int):
            return int(value)
        elif isinstance(value, float) and math.isfinite(value):
            return float(value)
        elif depth < _DEPTH and isinstance(value, Mapping):
            pairs = cast("Mapping[Any, Any]", value).items()
            if all(isinstance(key, str) for key, _ in pairs):
                return {str(key): self.plain(field, each, depth + 1) for key, each in pairs}
        elif depth < _DEPTH and isinstance(value, list | tuple):
            return [self.plain(field, each, depth + 1) for each in cast("Sequence[Any]", value)]
        raise self._unwritable(field, value, "use texts, numbers, lists and mappings of texts")

    def _unwritable(self, field: str, value: Any, help: str) -> EvalError:
        return self._case.error(
            f"{field} has a value that files cannot hold", found=describe(value), help=help
        )
