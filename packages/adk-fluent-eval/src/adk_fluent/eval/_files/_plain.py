"""Cases as plain data: what YAML, JSON lines and the block in ADK's files share."""

from __future__ import annotations

import builtins
import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._words import describe
from adk_fluent.eval._cases._case import FluentCase, Rubric, ToolCall, Turn
from adk_fluent.eval._cases._state import asserted_state, initial_state
from adk_fluent.eval._files._marked import CALL, FLAGS, LITERAL, RAISE, REGEX, marker

if TYPE_CHECKING:
    from adk_fluent.eval._cases._simulation import UserSimulation
    from adk_fluent.eval._errors import EvalError

#: Values may hold others this deep; deeper ones hold themselves, or cannot be read again.
_DEPTH: Final = 100

#: Fields of a case that are written as they are.
_AS_THEY_ARE: Final = (
    *("target_node", "max_cost_usd", "max_tokens", "max_latency_s", "max_tool_calls"),
    *("timeout_s", "skip", "xfail"),
)


def case_data(case: FluentCase) -> dict[str, Any]:
    """A case as plain data, fields that say nothing left out.

    Raises:
        EvalError: A field holds something that cannot be written.
    """
    return _Writer(case).case()


def turn_data(case: FluentCase, turn: Turn) -> dict[str, Any]:
    """What is expected of a turn of a case as plain data.

    Raises:
        EvalError: A field holds something that cannot be written.
    """
    return _Writer(case).expected(turn)


def call_data(case: FluentCase, call: str | ToolCall) -> str | dict[str, Any]:
    """A call of a tool that a case expects, as plain data."""
    return _Writer(case).tool_call("expected_trajectory", call)


def checked(case: FluentCase, field: str, value: Any) -> Any:
    """A value of a field of a case, as plain data.

    Raises:
        EvalError: It is not plain.
    """
    return _Writer(case).plain(field, value)


class _Writer:
    """Writes one case.

    Args:
        case: The case.
    """

    def __init__(self, case: FluentCase) -> None:
        self._case = case

    def case(self) -> dict[str, Any]:
        case = self._case
        made: dict[str, Any] = {}
        if case.id is not None:
            made["id"] = self.plain("id", case.id)
        made["input"] = self._input(case.input)
        made |= self.expected(case)
        if case.trajectory_match != "exact":
            made["trajectory_match"] = case.trajectory_match
        if case.mock_tool_outputs is not None:
            made["mock_tool_outputs"] = self._mocks(case.mock_tool_outputs)
        if case.initial_state is not None:
            made["initial_state"] = self.plain("initial_state", initial_state(case))
        if case.tags:
            made["tags"] = self.plain("tags", case.tags)
        if case.metadata:
            made["metadata"] = self.plain("metadata", case.metadata)
        if case.simulation is not None:
            made["simulation"] = self._simulation(case.simulation)
        for name in _AS_THEY_ARE:
            if (value := getattr(case, name)) is not None:
                made[name] = self.plain(name, value)
        return made

    def expected(self, of: FluentCase | Turn) -> dict[str, Any]:
        """What is expected of a turn, or of the last one."""
        made: dict[str, Any] = {}
        if of.expected_trajectory is not None:
            made["expected_trajectory"] = [
                self.tool_call("expected_trajectory", each) for each in of.expected_trajectory
            ]
        if of.reference_response is not None:
            made["reference_response"] = self.plain("reference_response", of.reference_response)
        if of.expected_response_contains is not None:
            made["expected_response_contains"] = self._contains(of.expected_response_contains)
        if of.state_assertions is not None:
            made["state_assertions"] = {
                self.plain("state_assertions", key): self._expectation(
                    f"state_assertions[{key!r}]", value
                )
                for key, value in asserted_state(self._case, of.state_assertions).items()
            }
        if of.rubrics:
            made["rubrics"] = [self._rubric(each) for each in of.rubrics]
        return made

    # --- fields --------------------------------------------------------------------------------

    def _input(self, given: Any) -> Any:
        if isinstance(given, Turn):
            return [self._turn(given)]
        if isinstance(given, list | tuple):
            return [self._turn(each) for each in cast("Sequence[Any]", given)]
        return self._message(given)

    def _turn(self, given: Any) -> Any:
        if not isinstance(given, Turn):
            return self._message(given)
        return {"input": self._message(given.input), **self.expected(given)}

    def _message(self, given: Any) -> Any:
        if isinstance(given, str):
            return self.plain("input", given)
        from adk_fluent.eval._files._native_adk import content_data  # noqa: PLC0415  # slow

        return self.plain("input", content_data(given))

    def tool_call(self, field: str, given: str | ToolCall) -> str | dict[str, Any]:
        call = ToolCall.of(given)
        if isinstance(given, str):
            return self.plain(field, given)
        made: dict[str, Any] = {"tool": self.plain(field, call.name)}
        if call.args is not None:
            made["args"] = {
                self.plain(field, name): self._expectation(
                    f"{field}: argument {name!r} of {call.name}", value
                )
                for name, value in call.args.items()
            }
        return made

    def _contains(self, given: Any) -> Any:
        if isinstance(given, list | tuple):
            return [self._contains(each) for each in cast("Sequence[Any]", given)]
        if not isinstance(given, re.Pattern):
            return self.plain("expected_response_contains", given)
        pattern = cast("re.Pattern[str]", given)
        # re.UNICODE is what a pattern of text has anyway
        letters = "".join(letter for letter, flag in FLAGS.items() if pattern.flags & flag)
        made = {REGEX: self.plain("expected_response_contains", pattern.pattern)}
        return {**made, "flags": letters} if letters else made

    def _mocks(self, given: Mapping[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for tool, value in given.items():
            field = f"mock_tool_outputs[{tool!r}]"
            several = isinstance(value, list | tuple)
            made[self.plain("mock_tool_outputs", tool)] = (
                [self._mock(field, each) for each in cast("Sequence[Any]", value)]
                if several
                else self._mock(field, value)
            )
        return made

    def _mock(self, field: str, value: Any) -> Any:
        if isinstance(value, BaseException):
            return {RAISE: self._raised(field, type(value), value.args)}
        if isinstance(value, type) and issubclass(value, BaseException):
            return {RAISE: self._raised(field, value, ())}
        return self._expectation(field, value, RAISE)

    def _expectation(self, field: str, value: Any, *markers: str) -> Any:
        """A value or a function, so that a value that looks like a function stays a value."""
        if callable(value):
            return {CALL: self._reference(field, value)}
        made = self.plain(field, value)
        return {LITERAL: made} if marker(made, CALL, LITERAL, *markers) else made

    def _rubric(self, given: str | Rubric) -> Any:
        if isinstance(given, Rubric):
            made = {"text": given.text, **({"id": given.id} if given.id else {})}
            return self.plain("rubrics", made)
        return self.plain("rubrics", given)

    def _simulation(self, given: UserSimulation) -> dict[str, Any]:
        model, persona = given.model, given.persona
        if model is not None and not isinstance(model, str):
            raise self._unwritable("simulation: model", model, "give the model by its name")
        if persona is not None and not isinstance(persona, str):
            from adk_fluent.eval._files._native_adk import persona_data  # noqa: PLC0415  # slow

            persona = persona_data(persona)
        replaced = {"model": model, "persona": persona}
        made = {
            each.name: replaced.get(each.name, getattr(given, each.name)) for each in fields(given)
        }
        usual = {each.name: each.default for each in fields(given)}
        return {
            key: self.plain(f"simulation: {key}", value)
            for key, value in made.items()
            if value != usual[key]
        }

    # --- values --------------------------------------------------------------------------------

    def plain(self, field: str, value: Any, depth: int = 0) -> Any:
        """A value as JSON has it."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            text = str.__str__(value)  # an enum's text
            if not _is_text(text):
                raise self._unwritable(field, value, "it holds half of a surrogate pair")
            return text
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float) and math.isfinite(value):
            return float(value)
        if depth < _DEPTH and isinstance(value, Mapping):
            return self._plain_mapping(field, cast("Mapping[Any, Any]", value), depth + 1)
        if depth < _DEPTH and isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            return [self.plain(field, each, depth + 1) for each in items]
        raise self._unwritable(field, value, "give texts, numbers, lists and mappings of texts")

    def _plain_mapping(self, field: str, value: Mapping[Any, Any], depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        for key, each in value.items():
            if not isinstance(key, str):
                raise self._unwritable(field, key, "files name things by texts")
            made[self.plain(field, key)] = self.plain(field, each, depth)
        return made

    def _reference(self, field: str, function: Callable[..., Any]) -> str:
        """The name of a function of a module, as ``module:qualname``."""
        if isinstance(function, FunctionType | BuiltinFunctionType | type):
            module, name = function.__module__ or "", function.__qualname__
            found: Any = sys.modules.get(module)
            for step in name.split("."):
                found = getattr(found, step, None)
            if found is function and module != "__main__":
                return f"{module}:{name}"
        raise self._unwritable(field, function, "give it a name in a module, or leave it out")

    def _raised(self, field: str, kind: type[BaseException], args: tuple[Any, ...]) -> str:
        own = getattr(builtins, kind.__name__, None) is kind and issubclass(kind, Exception)
        if not own or not (args == () or (len(args) == 1 and isinstance(args[0], str))):
            raise self._unwritable(
                field, kind, "raise one of Python's own exceptions with a text, or leave it out"
            )
        return self.plain(field, f"{kind.__name__}: {args[0]}" if args else kind.__name__)

    def _unwritable(self, field: str, value: Any, help: str) -> EvalError:
        return self._case.error(f"{field} cannot be written", found=describe(value), help=help)


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
