"""What answers in the place of tools, as a case says."""

from __future__ import annotations

import copy
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._words import describe
from adk_fluent.errors import nearest_name
from adk_fluent.eval._checks._same import told
from adk_fluent.eval._errors import EvalError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.protocol import NextTool, ToolCall

#: By these names a mock that is a function asks for more than the arguments of the call.
_CONTEXT: Final = frozenset({"tool_context", "ctx"})
_ALL: Final = "args"
_LIST: Final = "give a list, which has one answer for each call"
_BY_NAME: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Instead:
    """The mocks of one run of a case: each run begins with all of its answers.

    Attributes:
        mocked: Ids of the calls that were answered here.
        errors: Id of a call to what it raised, mocked or not.
        problems: What is wrong with the mocks themselves, whatever the pipeline made of it.
    """

    def __init__(self, mocks: Mapping[str, Any]) -> None:
        self._mocks = mocks
        self._used: dict[str, int] = {}
        self.mocked: set[str] = set()
        self.errors: dict[str, str] = {}
        self.problems: list[str] = []

    def note_error(self, call_id: str | None, error: BaseException) -> None:
        """Note what a call of a tool raised; that it was ended is no fault of its own."""
        if isinstance(error, Exception):
            self.errors.setdefault(call_id or "", told(error))

    async def __call__(self, call: ToolCall, next: NextTool) -> Any:
        """Answer a call, or let it through to the tool.

        Raises:
            EvalError: It ended the program; asyncio would end all other cases with it.
            Exception: What the tool raised, or what was put in its place.
        """
        try:
            if call.name not in self._mocks:
                return await next(call)
            self.mocked.add(call.call_id or "")
            return await self._mocked(call)
        except SystemExit as error:
            raise EvalError(
                f"tool {call.name!r} ends the program",
                found=f"exit({'' if error.code is None else error.code!r})",
                node=call.agent or None,
                help="raise an Exception instead",
            ) from None

    async def _mocked(self, call: ToolCall) -> Any:
        try:
            return await self._answer(call, self._mocks[call.name])
        except Exception as error:
            self.note_error(call.call_id, error)
            raise

    async def _answer(self, call: ToolCall, mock: Any) -> Any:
        if isinstance(mock, list | tuple):
            mock = self._next(call, cast("Sequence[Any]", mock))
        if isinstance(mock, Exception):
            raise mock.with_traceback(None)  # itself: a copy might say something else
        if not callable(mock):
            return copy.deepcopy(mock)  # whoever changes it changes no other run
        made: Any = mock(**self._given(call, mock))
        return await made if inspect.isawaitable(made) else made

    def _next(self, call: ToolCall, answers: Sequence[Any]) -> Any:
        at = self._used.get(call.name, 0)
        self._used[call.name] = at + 1
        if at < len(answers):
            return answers[at]
        times = f"{at + 1} times, and is mocked for {len(answers)}"
        raise self._problem(
            call,
            f"tool {call.name!r} was called {times}",
            help="give an answer for each call, or a function that answers them all",
        )

    def _given(self, call: ToolCall, mock: Any) -> dict[str, Any]:
        """The arguments that a function takes: those of the call, and what else it asks for."""
        try:
            signature = inspect.signature(mock)
        except (TypeError, ValueError):
            return dict(call.args)
        parameters = signature.parameters.values()
        names = {each.name for each in parameters if each.kind in _BY_NAME}
        given = {name: call.ctx for name in names if name in _CONTEXT and name not in call.args}
        if _ALL in names and _ALL not in call.args:
            given[_ALL] = dict(call.args)
        takes_all = any(each.kind is each.VAR_KEYWORD for each in parameters)
        given |= {name: value for name, value in call.args.items() if takes_all or name in names}
        try:
            signature.bind(**given)
        except TypeError as error:
            missing = str(error).rpartition("'")[0].rpartition("'")[2]
            near = None if missing in call.args else nearest_name(missing, call.args)
            raise self._problem(
                call,
                f"the mock of tool {call.name!r} cannot be called: {error}",
                found=f"arguments {', '.join(call.args)}" if call.args else "no arguments",
                help=f"did you mean {near!r}?"
                if near
                else "take what the call has by name, or args= for all of it as a dict",
            ) from None
        return given

    def _problem(self, call: ToolCall, what: str, **details: str) -> EvalError:
        """What is wrong with a mock: noted, for whatever stands around the call may hide it."""
        error = EvalError(what, node=call.agent or None, **details)
        self.problems.append(told(error))
        return error


def check_mocks(case: FluentCase) -> None:
    """Look at the mocks of a case before anything runs.

    Raises:
        EvalError: One of them is no answer.
    """
    for tool, mock in (case.mock_tool_outputs or {}).items():
        answers = answers_of(mock)
        if not answers:
            raise case.error(
                f"the mock of tool {tool!r} has no answer",
                found="an empty list",
                help="a list has one answer for each call; [[]] answers one call with a list",
            )
        for each in answers:
            _check_answer(case, tool, each)


def _check_answer(case: FluentCase, tool: str, answer: object) -> None:
    is_function = callable(answer)
    if isinstance(answer, type) and issubclass(answer, BaseException):
        raise case.error(
            f"the mock of tool {tool!r} is the class {answer.__name__}",
            help=f'give what is raised: {answer.__name__}("why")',
        )
    if isinstance(answer, BaseException):
        if not isinstance(answer, Exception):
            raise case.error(
                f"the mock of tool {tool!r} ends the program",
                found=describe(answer),
                help="give an Exception",
            )
    elif is_function:
        _check_function(case, tool, answer)
    elif isinstance(answer, Iterator | AsyncIterator):
        raise case.error(
            f"the mock of tool {tool!r} is an iterator, which one run of a case would use up",
            found=describe(cast("object", answer)),
            help=_LIST,
        )
    else:
        _check_value(case, tool, answer)


def _check_function(case: FluentCase, tool: str, function: Any) -> None:
    called = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004  # of any object
    for each in (function, called):
        if inspect.isgeneratorfunction(each) or inspect.isasyncgenfunction(each):
            raise case.error(
                f"the mock of tool {tool!r} is a generator, and a tool has one answer",
                found=describe(function),
                help=_LIST,
            )
    for each in _parameters(function):
        if each.kind is each.POSITIONAL_ONLY and each.default is each.empty:
            raise case.error(
                f"the mock of tool {tool!r} takes {each.name!r} by its place",
                found=describe(function),
                help="calls of tools have their arguments by name: leave out the /",
            )


def needed_by(function: Any) -> list[str]:
    """The arguments without which a function that is a mock cannot be called."""
    return [
        each.name
        for each in _parameters(function)
        if each.kind in _BY_NAME and each.default is each.empty
        if each.name not in _CONTEXT and each.name != _ALL
    ]


def _parameters(function: Any) -> Sequence[inspect.Parameter]:
    """What a function takes; nothing where nobody can tell."""
    try:
        return tuple(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ()


def answers_of(mock: Any) -> Sequence[Any]:
    """The answers of a mock: a list has one for each call."""
    return cast("Sequence[Any]", mock) if isinstance(mock, list | tuple) else [mock]


def _check_value(case: FluentCase, tool: str, value: object) -> None:
    try:
        copy.deepcopy(value)
    except Exception as error:  # of whatever the value is
        raise case.error(
            f"the mock of tool {tool!r} cannot be copied for each run",
            found=told(error),
            help="give a function that makes it: lambda: ...",
        ) from error
