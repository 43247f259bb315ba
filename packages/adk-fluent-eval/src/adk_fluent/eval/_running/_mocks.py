"""Mocks of tools."""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.eval._arguments import did_you_mean
from adk_fluent.eval._errors import EvalError
from adk_fluent.extend import describe, error_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.protocol import NextTool, ToolCall


#: Parameters by which a mock asks for more than the arguments of the call.
_CONTEXT: Final = frozenset({"tool_context", "ctx"})
_ARGS: Final = "args"
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Mocks:
    """The mocks of one run of a case; a stand-in for `adk_fluent.backends.adk.replace_tools`.

    Attributes:
        mocked: Ids of the calls that a mock answered.
        errors: Call id to the error of the call, mocked or not.
        problems: Errors of the mocks themselves, even if the pipeline recovers from them.
    """

    def __init__(self, mocks: Mapping[str, Any]) -> None:
        self._mocks = mocks
        self._used: dict[str, int] = {}
        self.mocked: set[str] = set()
        self.errors: dict[str, str] = {}
        self.problems: list[str] = []

    async def __call__(self, call: ToolCall, next: NextTool) -> Any:
        """Answer a call, or pass it to the tool."""
        id = call.call_id or ""
        try:
            if call.name not in self._mocks:
                return await next(call)
            self.mocked.add(id)
            return await self._answer(call, self._mocks[call.name])
        except Exception as error:
            self.errors.setdefault(id, error_line(error))
            raise
        except SystemExit as error:
            what = f"tool {call.name!r} called exit({error.code!r})"
            help = "raise an Exception instead"
            raise EvalError(what, node=call.agent or None, help=help) from None

    async def _answer(self, call: ToolCall, mock: Any) -> Any:
        if isinstance(mock, list | tuple):
            answers = cast("Sequence[Any]", mock)
            at = self._used.get(call.name, 0)
            self._used[call.name] = at + 1
            if at >= len(answers):
                has = f"its mock has {len(answers)} answers"
                what = f"tool {call.name!r} was called {at + 1} times, {has}"
                raise self._problem(call, what, help="give an answer for each call, or a function")
            mock = answers[at]
        if isinstance(mock, Exception):
            raise mock.with_traceback(None)
        if not callable(mock):
            return copy.deepcopy(mock)  # no run changes the answer of another
        made: Any = mock(**self._arguments(call, mock))
        return await made if inspect.isawaitable(made) else made

    def _arguments(self, call: ToolCall, mock: Any) -> dict[str, Any]:
        """The arguments that a mock function takes."""
        try:
            signature = inspect.signature(mock)
        except (TypeError, ValueError):
            return dict(call.args)
        parameters = signature.parameters.values()
        names = {each.name for each in parameters if each.kind in _BY_NAME}
        given = {name: call.ctx for name in names & _CONTEXT if name not in call.args}
        if _ARGS in names and _ARGS not in call.args:
            given[_ARGS] = dict(call.args)
        takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
        given |= {name: value for name, value in call.args.items() if takes_all or name in names}
        try:
            signature.bind(**given)
        except TypeError as error:
            what = f"the mock of tool {call.name!r} cannot be called: {error}"
            found = f"arguments {', '.join(call.args)}" if call.args else "no arguments"
            help = "take the call's arguments by name, or args= for all of them as a dict"
            raise self._problem(call, what, found=found, help=help) from None
        return given

    def _problem(self, call: ToolCall, what: str, **details: str) -> EvalError:
        error = EvalError(what, node=call.agent or None, **details)
        self.problems.append(error_line(error))
        return error


def check_mocks(case: FluentCase) -> None:
    """Check the mocks of a case."""
    for tool, mock in (case.mock_tool_outputs or {}).items():
        answers = answers_of(mock)
        if not answers:
            what = f"the mock of tool {tool!r} has no answers"
            help = "a list has one answer for each call; [[]] answers one call with []"
            raise case.error(what, found="an empty list", help=help)
        for each in answers:
            if fault := _fault(each):
                what = f"the mock of tool {tool!r} {fault[0]}"
                raise case.error(what, found=describe(each), help=fault[1])


def _fault(answer: object) -> tuple[str, str] | None:
    """What is wrong with an answer, and what to do; None if nothing is."""
    if isinstance(answer, type) and issubclass(answer, BaseException):
        return "is an exception class", f'give an instance: {answer.__name__}("why")'
    if isinstance(answer, BaseException) and not isinstance(answer, Exception):
        return "would end the program", "give an Exception"
    given = cast("Any", answer)
    called: Any = given if inspect.isroutine(given) else type(given).__dict__.get("__call__")
    generates = inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called)
    if generates or isinstance(answer, Iterator | AsyncIterator):
        return "is a generator, which one run would use up", "give a list, an answer for each call"
    for each in _parameters(given) if callable(given) else ():
        if each.kind is each.POSITIONAL_ONLY and each.default is each.empty:
            return f"takes {each.name!r} by position", "remove the /"
    try:
        copy.deepcopy(given)
    except Exception as error:  # noqa: BLE001  # of whatever object
        what = f"cannot be copied for each run: {error_line(error)}"
        return what, "give a function: lambda: ..."
    return None


def answers_of(mock: Any) -> Sequence[Any]:
    """Return the answers of a mock: of a list one for each call."""
    return cast("Sequence[Any]", mock) if isinstance(mock, list | tuple) else [mock]


def check_arguments(case: FluentCase, tool: str, known: Sequence[str]) -> None:
    """Check that a mock function asks for arguments that its tool has."""
    for answer in answers_of((case.mock_tool_outputs or {})[tool]):
        for each in _parameters(answer) if callable(answer) else ():
            name, needed = each.name, each.kind in _BY_NAME and each.default is each.empty
            if needed and name not in (*known, *_CONTEXT, _ARGS):
                what = f"the mock of tool {tool!r} takes {name!r}, which the tool does not"
                found = f"the tool takes {', '.join(known) or 'no arguments'}"
                help = did_you_mean(name, known, "or take args=, a dict of all")
                raise case.error(what, found=found, help=help)


def _parameters(function: Any) -> Sequence[inspect.Parameter]:
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ()
