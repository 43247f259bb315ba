"""What answers in the place of tools, wherever they are called and whatever stands around."""

from __future__ import annotations

import asyncio
import functools
import threading
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock, MagicMock

import pytest
from eval_programs import (
    agent,
    calling,
    case,
    desk,
    lookup,
    model_of,
    outcome_of,
    passes,
    report_of,
    results_in,
    says,
    scripted,
    sequence,
    suite_of,
)
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import errors

from adk_fluent import Agent
from adk_fluent.eval import EvalError, FluentCase, Status, Turn
from adk_fluent.testing import Asked, Call, reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from adk_fluent.protocol import NextTool, ToolCall

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]

A1 = Call("lookup", {"order": "A1"})


def never(order: str = "", amount: int = 0) -> str:
    """A tool that must not be called."""
    raise AssertionError("the tool itself was called")


def ours(*calls: Any, tools: tuple[Any, ...] = (never,)) -> Agent:
    return desk(*(calls or (Call("never", {"order": "A1"}),)), tools=tools)


def adks(*calls: Any, tools: tuple[Any, ...] = (never,)) -> LlmAgent:
    given = calls or (Call("never", {"order": "A1"}),)
    return LlmAgent(name="desk", model=says(calling(*given)), tools=list(tools))


BOTH = pytest.mark.parametrize("build", [ours, adks], ids=["ours", "ADK's"])


class FlapError(Exception):
    """An error that cannot be made of its text again."""

    def __init__(self, tool: str, *, after: int) -> None:
        super().__init__(f"{tool} flaps after {after}")
        self.after = after


# --- values --------------------------------------------------------------------------------------

VALUES: dict[str, tuple[Any, Any]] = {
    "dict": ({"status": "lost"}, {"status": "lost"}),
    "text": ("lost", {"result": "lost"}),
    "number": (7, {"result": 7}),
    "a list": ([[1, 2]], {"result": [1, 2]}),
    "an empty list": ([[]], {"result": []}),
    "None": (None, {"result": None}),
    "None in a list": ([None], {"result": None}),
    "false": (False, {"result": False}),
    "zero": (0, {"result": 0}),
    "no text": ("", {"result": ""}),
    "no keys": ({}, {}),
    "tuple": (("lost",), {"result": "lost"}),
}


@BOTH
@pytest.mark.parametrize("kind", VALUES)
async def test_values(kind: str, build: Callable[..., Any]) -> None:
    mock, response = VALUES[kind]
    program = build()
    outcome = await passes(
        program, mock_tool_outputs={"never": mock}, expected_trajectory=["never"]
    )
    [use] = outcome.tool_uses
    assert use.response == response
    assert (use.mocked, use.error, use.agent) == (True, "", "desk")
    told = [part.function_response for part in model_of(program).calls[-1].raw.contents[-1].parts]
    assert [each.response for each in told] == [response]


@BOTH
async def test_what_a_tool_returns_is_of_one_run(build: Callable[..., Any]) -> None:
    def grow(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> None:
        tool_response["items"].append("more")

    mock = {"items": ["one"]}
    program: Any = build()
    if isinstance(program, Agent):
        program.after_tool(grow)
    else:
        program.after_tool_callback = grow
    report = await report_of(
        program, case(mock_tool_outputs={"never": mock}), num_runs=3, parallelism=1
    )
    assert [each.tool_uses[0].response for each in report.outcomes] == [
        {"items": ["one", "more"]}
    ] * 3
    assert mock == {"items": ["one"]}


async def test_tools_that_are_not_mocked_are_called() -> None:
    program = desk(A1, Call("never"), tools=(lookup, never))
    outcome = await passes(program, mock_tool_outputs={"never": "mocked"})
    assert [(use.name, use.mocked, use.response) for use in outcome.tool_uses] == [
        ("lookup", False, {"order": "A1", "status": "shipped"}),
        ("never", True, {"result": "mocked"}),
    ]


# --- functions -----------------------------------------------------------------------------------


def _by_name(order: str) -> str:
    return f"by name {order}"


def _all_as_a_dict(args: dict[str, Any]) -> str:
    return f"all {sorted(args.items())}"


def _everything(**given: Any) -> str:
    return f"everything {sorted(given.items())}"


def _nothing() -> str:
    return "nothing"


async def _later(order: str) -> str:
    await asyncio.sleep(0)
    return f"later {order}"


def _with_default(order: str, note: str = "none") -> str:
    return f"{order} {note}"


def _writes(order: str, tool_context: Any) -> str:
    tool_context.state["seen"] = order
    return f"{tool_context.agent_name} {order}"


def _ctx_and_all(ctx: Any, **given: Any) -> str:
    return f"{ctx.agent_name} {sorted(given)}"


def _got(order: str) -> dict[str, Any]:
    return {"got": order}


def _about(request: str) -> str:
    return f"about {request}"


def _whatever(*args: Any, **given: Any) -> str:
    return f"{list(args)} {sorted(given.items())}"


def _with_amount(order: str, amount: int) -> dict[str, int]:
    return {"n": amount}


def _misspelt(ordre: str) -> str:
    return ordre


def _unnamed(order: str, /) -> str:
    return order


def _of_a_zone(zone: str) -> str:
    return zone


def _of_an_invoice(invoice: str) -> str:
    return invoice


def _asked(request: str) -> str:
    return request


def _one_by_one(order: str) -> Iterator[str]:
    yield order


async def _one_by_one_later(order: str) -> AsyncIterator[str]:
    yield order


class OneByOne:
    def __call__(self, order: str) -> Iterator[str]:
        yield order


def _odd(args: str, ctx: str) -> str:
    return f"{args}-{ctx}"


def _kept(tool: Any, args: Any, tool_context: Any) -> dict[str, Any]:
    return {"kept": "answer"}


class Callable_:  # noqa: N801  # it is what it is about
    def __call__(self, order: str) -> str:
        return f"object {order}"


FUNCTIONS: list[tuple[Any, str]] = [
    (_by_name, "by name A1"),
    (_all_as_a_dict, "all [('amount', 3), ('order', 'A1')]"),
    (_everything, "everything [('amount', 3), ('order', 'A1')]"),
    (_nothing, "nothing"),
    (_later, "later A1"),
    (_with_default, "A1 none"),
    (_writes, "desk A1"),
    (_ctx_and_all, "desk ['amount', 'order']"),
    (Callable_(), "object A1"),
    (_with_amount, "{'n': 3}"),
    (_whatever, "[] [('amount', 3), ('order', 'A1')]"),
    (functools.partial(_with_default, note="partly"), "A1 partly"),
    (MagicMock(return_value="from a double"), "from a double"),
    (AsyncMock(return_value="from an async double"), "from an async double"),
]


@BOTH
@pytest.mark.parametrize(("mock", "answer"), FUNCTIONS, ids=lambda each: str(each)[:12])
async def test_functions(mock: Any, answer: str, build: Callable[..., Any]) -> None:
    program = build(Call("never", {"order": "A1", "amount": 3}))
    outcome = await passes(
        program, mock_tool_outputs={"never": mock}, expected_response_contains=answer
    )
    assert outcome.tool_uses[0].mocked
    assert outcome.state == ({"seen": "A1"} if mock is _writes else {})


async def test_a_double_is_told_the_arguments() -> None:
    double = MagicMock(return_value="ok")
    await passes(ours(), mock_tool_outputs={"never": double})
    double.assert_called_once_with(order="A1")


async def test_a_tool_whose_arguments_have_those_names() -> None:
    def odd(args: str, ctx: str) -> str:
        """A tool."""
        raise AssertionError

    program = desk(Call("odd", {"args": "a", "ctx": "c"}), tools=(odd,))
    await passes(
        program,
        mock_tool_outputs={"odd": _odd},
        expected_response_contains="a-c",
    )


@BOTH
@pytest.mark.parametrize("hidden", [False, True], ids=["raised", "made good"])
async def test_a_function_that_wants_what_the_call_has_not(
    build: Callable[..., Any], hidden: bool
) -> None:
    def recover(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, Any]:
        return {"made": "good"}

    program: Any = build()
    if hidden and isinstance(program, Agent):
        program.on_tool_error(recover)
    elif hidden:
        program.on_tool_error_callback = recover
    outcome = await outcome_of(program, mock_tool_outputs={"never": _with_amount})
    assert outcome.status is Status.ERROR
    assert outcome.error is not None
    assert "the mock of tool 'never' cannot be called: missing a required argument" in outcome.error
    assert "help: take what the call has by name" in outcome.error
    assert outcome.tool_uses[0].error.startswith("EvalError: the mock of tool")


# --- sequences -----------------------------------------------------------------------------------


@BOTH
async def test_one_answer_for_each_call(build: Callable[..., Any]) -> None:
    call = Call("never", {"order": "A1"})
    mock = ["first", _by_name, {"n": 3}]
    report = await report_of(
        build(call, call, call),
        case(
            expected_response_contains="first by name A1 {'n': 3}",
            mock_tool_outputs={"never": mock},
        ),
        num_runs=3,
    )
    assert [each.reasons for each in report.outcomes] == [[]] * 3  # each run from the start


async def test_sequences_go_on_in_the_next_turn() -> None:
    outcome = await passes(
        ours(),
        [Turn("one", expected_response_contains="first"), "two"],
        mock_tool_outputs={"never": ["first", "second"]},
        expected_response_contains="second",
    )
    assert [use.response for use in outcome.tool_uses] == [
        {"result": "first"},
        {"result": "second"},
    ]


async def test_sequences_of_several_tools() -> None:
    def other() -> str:
        """Another tool."""
        raise AssertionError

    program = desk(Call("never"), Call("other"), Call("never"), tools=(never, other))
    await passes(
        program,
        mock_tool_outputs={"never": [1, 2], "other": ["o"]},
        expected_response_contains="1 o 2",
    )


class Again:
    """A middleware that calls a tool again that failed, and makes good what still fails."""

    def __init__(self, times: int = 3, instead: Any = None) -> None:
        self.times = times
        self.instead = instead
        self.calls = 0

    async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
        for left in reversed(range(self.times)):
            self.calls += 1
            try:
                return await next(call)
            except Exception:
                if not left:
                    if self.instead is None:
                        raise
                    return self.instead
        raise AssertionError


@pytest.mark.parametrize("hidden", [False, True], ids=["raised", "made good"])
async def test_more_calls_than_answers_never_pass(hidden: bool) -> None:
    program = ours(Call("never"), Call("never")).middleware(
        Again(1, {"made": "good"} if hidden else None)
    )
    outcome = await outcome_of(program, mock_tool_outputs={"never": ["only one"]})
    assert outcome.status is Status.ERROR
    assert outcome.error is not None
    assert "tool 'never' was called 2 times, and is mocked for 1" in outcome.error
    assert "help: give an answer for each call, or a function" in outcome.error
    assert [bool(use.error) for use in outcome.tool_uses] == [False, True]


async def test_parallel_calls_take_the_answers_in_order() -> None:
    both = reply(Call("never", {"order": "A"}), Call("never", {"order": "B"}))
    outcome = await passes(
        ours(both),
        mock_tool_outputs={"never": ["first", "second"]},
        expected_trajectory=["never"] * 2,
    )
    assert [(use.args["order"], use.response) for use in outcome.tool_uses] == [
        ("A", {"result": "first"}),
        ("B", {"result": "second"}),
    ]


# --- exceptions ----------------------------------------------------------------------------------

RAISED: dict[str, Exception] = {
    "plain": ValueError("boom"),
    "odd": FlapError("never", after=3),
    "of the service": errors.ClientError(404, {"error": {"code": 404, "message": "gone"}}),
    "of the system": TimeoutError("too late"),
}


@BOTH
@pytest.mark.parametrize("kind", RAISED)
async def test_an_exception_is_raised_by_the_tool(kind: str, build: Callable[..., Any]) -> None:
    error = RAISED[kind]
    outcome = await outcome_of(build(), mock_tool_outputs={"never": error})
    assert outcome.status is Status.ERROR
    assert outcome.error == f"{type(error).__name__}: {error}"
    [use] = outcome.tool_uses
    assert (use.error, use.mocked, use.response) == (outcome.error, True, None)


@BOTH
async def test_a_function_that_raises(build: Callable[..., Any]) -> None:
    def fails(order: str) -> str:
        raise FlapError(order, after=1)

    outcome = await outcome_of(build(), mock_tool_outputs={"never": fails})
    assert outcome.error == "FlapError: A1 flaps after 1"


async def test_what_retries_meets_the_next_answer() -> None:
    again = Again()
    report = await report_of(
        ours().middleware(again),
        case(
            mock_tool_outputs={"never": [ConnectionError("reset"), ConnectionError("reset"), "ok"]},
            expected_response_contains="ok",
            expected_trajectory=["never"],
        ),
        num_runs=2,
    )
    assert [each.reasons for each in report.outcomes] == [[], []]
    assert again.calls == 6
    assert report.outcomes[0].tool_uses[0].response == {"result": "ok"}
    assert "ConnectionError" in report.outcomes[0].tool_uses[0].error  # what it had raised before


async def test_an_exception_that_is_made_good_is_no_error() -> None:
    program = ours().middleware(Again(1, {"made": "good"}))
    outcome = await passes(program, mock_tool_outputs={"never": ValueError("boom")})
    assert outcome.tool_uses[0].response == {"made": "good"}
    assert outcome.tool_uses[0].error == "ValueError: boom"


# --- whatever stands around ----------------------------------------------------------------------


@BOTH
async def test_callbacks_see_the_answer_as_the_tools(build: Callable[..., Any]) -> None:
    log: list[Any] = []

    def before(tool: Any, args: dict[str, Any], tool_context: Any) -> None:
        log.append(("before", tool.name, dict(args)))
        args["order"] = "B2"

    def after(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> Any:
        log.append(("after", tool_response))
        return {"checked": tool_response}

    def failed(tool: Any, args: Any, tool_context: Any, error: Exception) -> Any:
        log.append(("failed", str(error)))
        return {"made": "good"}

    program: Any = build()
    if isinstance(program, Agent):
        program.before_tool(before).after_tool(after).on_tool_error(failed)
    else:
        program.before_tool_callback = before
        program.after_tool_callback = after
        program.on_tool_error_callback = failed
    mock: list[Any] = [_got, ValueError("boom")]
    outcome = await passes(
        program, ["one", "two"], mock_tool_outputs={"never": mock}, expected_trajectory=["never"]
    )
    assert log[:2] == [("before", "never", {"order": "A1"}), ("after", {"got": "B2"})]
    assert log[3] == ("failed", "boom")
    first, second = outcome.tool_uses
    assert (first.response, first.mocked, first.error) == ({"checked": {"got": "B2"}}, True, "")
    assert second.error == "ValueError: boom"
    assert second.response is not None


async def test_a_callback_that_answers_itself_needs_no_mock() -> None:
    program = ours().before_tool(_kept)
    outcome = await passes(program, mock_tool_outputs={"never": "mocked"})
    [use] = outcome.tool_uses
    assert (use.response, use.mocked) == ({"kept": "answer"}, False)


async def test_a_tool_that_has_to_be_approved_asks_before_the_mock() -> None:
    program = ours(tools=(FunctionTool(never, require_confirmation=True),))
    outcome = await outcome_of(program, mock_tool_outputs={"never": "mocked"})
    assert outcome.status is Status.ERROR
    assert "it waits for an answer to confirmation 'never' of desk" in (outcome.error or "")
    assert not any(use.mocked for use in outcome.tool_uses)


# --- wherever the tool is ------------------------------------------------------------------------


async def test_tools_of_an_agent_that_is_a_tool() -> None:
    inner = ours()
    boss = Agent("boss", says(calling(Call("desk", {"request": "A1"})))).agent_tool(inner)
    await passes(boss, mock_tool_outputs={"never": "lost"}, expected_response_contains="lost")


async def test_tools_of_an_agent_that_is_a_tool_of_adks() -> None:
    boss = LlmAgent(
        name="boss",
        model=says(calling(Call("desk", {"request": "A1"}))),
        tools=[AgentTool(agent=adks())],
    )
    await passes(boss, mock_tool_outputs={"never": "lost"}, expected_response_contains="lost")


@pytest.mark.parametrize("built", ["ours", "ADK's"])
async def test_the_agent_that_is_a_tool_itself(built: str) -> None:
    inner_model = says(AssertionError("it ran"))
    call = says(calling(Call("desk", {"request": "A1"})))
    if built == "ours":
        program: Any = Agent("boss", call).agent_tool(Agent("desk", inner_model))
    else:
        inner = LlmAgent(name="desk", model=inner_model)
        program = LlmAgent(name="boss", model=call, tools=[AgentTool(agent=inner)])
    await passes(
        program,
        mock_tool_outputs={"desk": _about},
        expected_response_contains="about A1",
    )
    assert inner_model.calls == ()


async def test_tools_of_agents_in_a_tree() -> None:
    root = LlmAgent(
        name="root",
        model=says(calling(Call("transfer_to_agent", {"agent_name": "desk"}))),
        sub_agents=[adks()],
    )
    await passes(root, mock_tool_outputs={"never": "lost"}, expected_response_contains="lost")
    line = sequence("s", adks())
    await passes(agent("a") >> line, mock_tool_outputs={"never": "lost"})


class Shelf(BaseToolset):
    """A toolset: what it holds is known when it runs."""

    async def get_tools(self, readonly_context: Any = None) -> Any:
        return [FunctionTool(never)]

    async def close(self) -> None:
        pass


@BOTH
async def test_tools_of_a_toolset(build: Callable[..., Any]) -> None:
    program = build(tools=(Shelf(),))
    outcome = await passes(
        program, mock_tool_outputs={"never": "lost"}, expected_response_contains="lost"
    )
    assert outcome.tool_uses[0].mocked


@BOTH
async def test_long_running_tools(build: Callable[..., Any]) -> None:
    program = build(tools=(LongRunningFunctionTool(never),))
    outcome = await passes(
        program, mock_tool_outputs={"never": {"ticket": 7}}, expected_response_contains="7"
    )
    assert outcome.tool_uses[0].response == {"ticket": 7}


@BOTH
async def test_a_long_running_tool_whose_mock_says_nothing_still_waits(
    build: Callable[..., Any],
) -> None:
    program = build(tools=(LongRunningFunctionTool(never),))
    outcome = await outcome_of(program, mock_tool_outputs={"never": None})
    assert outcome.status is Status.ERROR
    assert "it waits for an answer to tool 'never' of desk" in (outcome.error or "")


# --- cases apart ---------------------------------------------------------------------------------


@BOTH
async def test_cases_that_run_at_the_same_time_have_their_own(build: Callable[..., Any]) -> None:
    async def slowly(order: str) -> str:
        await asyncio.sleep(0.01)
        return "from a function"

    mocks: list[Any] = ["one", "two", slowly, ["four"], {"five": 5}, None]
    answers = ["one", "two", "from a function", "four", "{'five': 5}", "None"]
    cases = [
        FluentCase(
            "Hi",
            id=str(number),
            mock_tool_outputs={"never": mock},
            expected_response_contains=answer,
        )
        for number, (mock, answer) in enumerate(zip(mocks, answers, strict=True))
    ]
    report = await report_of(build(), *cases, num_runs=3)
    assert [each.reasons for each in report.outcomes] == [[]] * 18


@BOTH
async def test_a_case_without_mocks_calls_the_tool(build: Callable[..., Any]) -> None:
    program = build(A1, tools=(lookup,))
    report = await report_of(
        program,
        case("Hi", id="mocked", mock_tool_outputs={"lookup": "lost"}),
        case("Hi", id="real", expected_response_contains="shipped"),
        num_runs=2,
    )
    assert [[use.mocked for use in each.tool_uses] for each in report.outcomes] == [
        [True],
        [True],
        [False],
        [False],
    ]
    assert report.pass_rate == 1.0


# --- what cannot be ------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("field", ["mock_tool_outputs", "expected_trajectory"])
async def test_a_tool_that_is_not_there(build: Callable[..., Any], field: str) -> None:
    program = build(A1, tools=(lookup,))
    value: Any = {"lokup": 1} if field == "mock_tool_outputs" else ["lookup", "lokup"]
    with pytest.raises(EvalError) as caught:
        await outcome_of(program, id="x", **{field: value})
    error = caught.value
    verb = "mocks" if field == "mock_tool_outputs" else "expects a call of"
    assert error.what == f"case 'x': it {verb} tool 'lokup', and the pipeline has none of that name"
    assert error.found == "tools: lookup"
    assert error.help == "did you mean 'lookup'?"
    assert error.location is not None
    assert model_of(program).calls == ()


async def test_a_pipeline_without_tools() -> None:
    with pytest.raises(EvalError) as caught:
        await outcome_of(agent("a"), mock_tool_outputs={"lookup": 1})
    assert caught.value.found == "no tools"


async def test_tools_that_are_known_when_it_runs_are_not_asked_for_before() -> None:
    await passes(ours(tools=(Shelf(),)), mock_tool_outputs={"never": 1, "perhaps": 2})


BAD: list[tuple[Any, str, str]] = [
    ([], "has no answer", "[[]] answers one call with a list"),
    (ValueError, "is the class ValueError", 'ValueError("why")'),
    (["a", KeyError], "is the class KeyError", 'KeyError("why")'),
    (KeyboardInterrupt(), "ends the program", "give an Exception"),
    (SystemExit, "is the class SystemExit", "SystemExit"),
    (threading.Lock(), "cannot be copied for each run", "give a function that makes it"),
    ([{"in": threading.Lock()}], "cannot be copied for each run", "lambda: ..."),
    (_one_by_one, "is a generator", "give a list"),
    (["a", functools.partial(_one_by_one)], "is a generator", "give a list"),
    (_one_by_one_later, "is a generator", "give a list"),
    (OneByOne(), "is a generator", "give a list"),
    (_one_by_one("a"), "is an iterator", "give a list"),
    (_one_by_one_later("a"), "is an iterator", "give a list"),
    (iter(["a", "b"]), "is an iterator", "give a list"),
    (_unnamed, "takes 'order' by its place", "leave out the /"),
    (_misspelt, "asks for 'ordre', which the tool does not take", "did you mean 'order'?"),
    (["a", _misspelt], "asks for 'ordre', which the tool does not take", "'order'?"),
    (_of_a_zone, "asks for 'zone'", "take what the tool takes, by name"),
]


@pytest.mark.parametrize(("mock", "what", "help"), BAD, ids=lambda each: str(each)[:20])
async def test_what_is_no_answer(mock: Any, what: str, help: str) -> None:
    model = says("x")
    program = Agent("desk", model).tool(never)
    suite = suite_of(program, case(id="x", mock_tool_outputs={"never": mock}))
    with pytest.raises(EvalError) as caught:
        await suite.run()
    assert what in caught.value.what
    assert help in (caught.value.help or "")
    assert caught.value.location is not None
    assert model.calls == ()


async def test_what_a_tool_takes_in_all() -> None:
    """By several agents, or under names of its own; and what nobody can tell is not asked."""

    def takes_more(order: str, **more: str) -> str:
        raise AssertionError

    def of_two(order: str) -> str:
        raise AssertionError

    def other(invoice: str) -> str:
        raise AssertionError

    other.__name__ = "of_two"
    call = Call("takes_more", {"order": "A1", "zone": "north"})
    await passes(
        ours(call, tools=(takes_more,)),
        mock_tool_outputs={"takes_more": _of_a_zone},
        expected_response_contains="north",
    )
    two = agent("a", "x", tool=of_two) >> agent("b", "y", tool=other)
    suite_of(two, case(mock_tool_outputs={"of_two": _of_an_invoice})).check()
    inner = ours(tools=(AgentTool(LlmAgent(name="inner", model=says("x"))),))
    suite_of(inner, case(mock_tool_outputs={"inner": _asked})).check()
    with pytest.raises(EvalError, match="the tool takes request"):
        suite_of(inner, case(mock_tool_outputs={"inner": _misspelt})).check()
    with pytest.raises(EvalError, match="the tool takes nothing"):
        suite_of(ours(tools=(_nothing,)), case(mock_tool_outputs={"_nothing": _misspelt})).check()


# --- with another model --------------------------------------------------------------------------


async def test_mocks_with_another_model_in_place() -> None:
    def answer(asked: Asked) -> Any:
        return results_in(asked)[0] if results_in(asked) else Call("never")

    own = says(AssertionError("it was asked"))
    outcome = await outcome_of(
        Agent("desk", own).tool(never),
        options={"model": scripted(default=answer, model="other")},
        mock_tool_outputs={"never": "lost"},
        expected_response_contains="lost",
    )
    assert outcome.reasons == []
    assert outcome.model == "other"
