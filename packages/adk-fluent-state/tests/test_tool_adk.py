"""Tools that take bound state by annotation."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest
from google.adk.sessions.state import State
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK resolves it

from adk_fluent import Agent
from adk_fluent.errors import UsageError
from adk_fluent.ir import content_hash
from adk_fluent.state import SchemaError, SessionScoped, StateSchema, UserScoped, field, tool
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]")]


class Desk(StateSchema):
    intent: SessionScoped[str]
    ticket: SessionScoped[str | None]


class User(StateSchema):
    tier: UserScoped[str] = field(default="free")


@tool
def plain(query: str, state: Desk, count: int = 3) -> str:
    """Open a ticket.

    Args:
        query: What it is about.
        count: How many.
    """
    state.ticket = f"{state.intent}/{query}/{count}"
    return state.ticket


@tool
async def waits(query: str, *, state: Desk) -> dict[str, Any]:
    """Open a ticket."""
    await asyncio.sleep(0)
    return {"ticket": plain(query, state)}


@tool
def with_context(tool_context: ToolContext, query: str, state: Desk, user: User) -> str:
    """Open a ticket."""
    return plain(f"{query}-{user.tier}-{tool_context.state['intent']}", state=state)


@tool
async def streams(query: str, state: Desk) -> AsyncIterator[str]:
    """Open tickets."""
    yield plain(query, state)
    yield "end"


@tool
def anything(state: Desk, **more: Any) -> str:
    """Open a ticket."""
    return plain(str(sorted(more)), state)


@tool
def nothing_else(state: Desk) -> str:
    """Look."""
    return state.intent


class Office:
    def __init__(self, name: str) -> None:
        self.name = name

    @tool
    def method(self, query: str, state: Desk) -> str:
        """Open a ticket."""
        return plain(f"{self.name}-{query}", state)

    @staticmethod
    @tool
    def static(query: str, state: Desk) -> str:
        """Open a ticket."""
        return plain(query, state)


OFFICE = Office("north")
TOOLS: list[tuple[Any, dict[str, Any], list[str], Any]] = [
    (plain, {"query": "q"}, ["query", "count"], "pen/q/3"),
    (plain, {"query": "q", "count": 4}, ["query", "count"], "pen/q/4"),
    (waits, {"query": "q"}, ["query"], {"ticket": "pen/q/3"}),
    (with_context, {"query": "q"}, ["query"], "pen/q-free-pen/3"),
    (nothing_else, {}, [], "pen"),
    (OFFICE.method, {"query": "q"}, ["query"], "pen/north-q/3"),
    (Office.static, {"query": "q"}, ["query"], "pen/q/3"),
]


def untyped(function: Any) -> Any:
    """For a call as ADK makes it, or one that is wrong on purpose."""
    return function


class Context:
    """As much of ADK's context as its FunctionTool looks at."""

    tool_confirmation = None

    def __init__(self) -> None:
        self.state = State({"intent": "pen"}, {})


@pytest.mark.parametrize(("function", "args", "shown", "answer"), TOOLS)
async def test_adk_gives_the_state_and_the_model_does_not_see_it(
    function: Any, args: dict[str, Any], shown: list[str], answer: Any
) -> None:
    made = FunctionTool(function)
    assert made.name == function.__name__
    assert "ticket" in made.description or made.name == "nothing_else"
    declaration: Any = made._get_declaration()
    told = declaration.model_dump(mode="json", exclude_none=True)
    parameters: Any = told.get("parameters", told.get("parameters_json_schema", {}))
    assert list(parameters.get("properties", [])) == shown
    context: Any = Context()
    assert await made.run_async(args=dict(args), tool_context=context) == answer
    if made.name != "nothing_else":
        assert context.state["ticket"] == (answer["ticket"] if made.name == "waits" else answer)


async def test_a_missing_argument_is_told_to_the_model_as_ever() -> None:
    context: Any = Context()
    told = await FunctionTool(plain).run_async(args={}, tool_context=context)
    assert "query" in told["error"]
    assert "state" not in told["error"]


async def test_a_model_cannot_pass_the_state() -> None:
    context: Any = Context()
    args = {"query": "q", "state": {"intent": "forged"}}
    assert await FunctionTool(plain).run_async(args=args, tool_context=context) == "pen/q/3"


@pytest.mark.parametrize("function", [plain, waits, with_context, OFFICE.method])
def test_in_a_pipeline(function: Any) -> None:
    model = ScriptedModel(reply(Call(function.__name__, {"query": "q"})), "done")
    agent = Agent("clerk", model).tool(function)
    result = asyncio.run(agent.run("hi", state=Desk.initial(intent="pen")))
    assert result.text == "done"
    assert str(Desk.bind(result).ticket).startswith("pen/")


def test_with_a_resource_and_a_confirmation() -> None:
    @tool
    def stored(query: str, store: list[str], state: Desk) -> str:
        """Store it."""
        store.append(plain(query, state))
        return "ok"

    store: list[str] = []
    model = ScriptedModel(reply(Call("stored", {"query": "q"})), "done")
    agent = Agent("clerk", model).tool(stored).inject(store=store)
    assert asyncio.run(agent.run("hi", state={"intent": "pen"})).text == "done"
    assert store == ["pen/q/3"]


async def test_a_long_running_tool() -> None:
    context: Any = Context()
    made = LongRunningFunctionTool(plain)
    assert await made.run_async(args={"query": "q"}, tool_context=context) == "pen/q/3"


async def test_a_tool_may_stream_and_take_anything() -> None:
    desk = Desk.bind({"intent": "pen"})
    assert [each async for each in streams("q", desk)] == ["pen/q/3", "end"]
    context: Any = Context()
    assert [each async for each in untyped(streams)(query="q", tool_context=context)] == [
        "pen/q/3",
        "end",
    ]
    assert anything(state=desk, a=1) == "pen/['a']/3"
    assert untyped(anything)(tool_context=context, a=1) == "pen/['a']/3"
    assert inspect.isasyncgenfunction(streams)
    assert inspect.iscoroutinefunction(waits)


def test_it_is_called_directly_with_state() -> None:
    desk = Desk.bind({"intent": "pen"})
    assert plain("q", desk) == plain("q", state=desk) == plain(query="q", state=desk) == "pen/q/3"
    assert OFFICE.method("q", desk) == "pen/north-q/3"
    context: Any = Context()
    assert with_context(context, "q", desk, User.bind({"user:tier": "gold"})) == "pen/q-gold-pen/3"
    assert untyped(with_context)(context, "q") == "pen/q-free-pen/3"
    with pytest.raises(UsageError, match=r"plain was called without state") as caught:
        untyped(plain)("q")
    assert "state=Desk.bind({})" in str(caught.value)


def test_it_is_copied_and_pickled_as_a_function() -> None:
    assert pickle.loads(pickle.dumps(plain)) is plain
    assert copy.copy(plain) is copy.deepcopy(plain) is plain
    again = pickle.loads(pickle.dumps(OFFICE.method))
    assert again("q", Desk.bind({"intent": "pen"})) == "pen/north-q/3"
    assert plain.__doc__ is not None
    assert inspect.getdoc(plain) == inspect.cleandoc(plain.__doc__)
    assert (plain.__name__, plain.__module__) == ("plain", __name__)


def test_tools_are_told_apart_by_their_source() -> None:
    def one(query: str, state: Desk) -> str:
        """Look."""
        return state.intent

    def other(query: str, state: Desk) -> str:
        """Look."""
        return f"{state.intent}!"

    other.__name__, other.__qualname__ = one.__name__, one.__qualname__
    made = [Agent("a").tool(tool(each)).to_ir() for each in (one, one, other)]
    hashes = [content_hash(each) for each in made]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_schema_may_be_local() -> None:
    class Local(StateSchema):
        count: SessionScoped[int] = field(default=0)

    @tool
    def counts(state: Local) -> int:
        """Count."""
        state.count += 1
        return state.count

    context: Any = Context()
    assert asyncio.run(FunctionTool(counts).run_async(args={}, tool_context=context)) == 1
    assert context.state["count"] == 1


def test_the_annotation_may_say_more() -> None:
    @tool
    def noted(query: str, state: Annotated[Desk, "where it is kept"]) -> str:
        """Open a ticket."""
        return plain(query, state)

    context: Any = Context()
    made = FunctionTool(noted)
    assert asyncio.run(made.run_async(args={"query": "q"}, tool_context=context)) == "pen/q/3"


FULL = """Look.

    state: not of a section

    Args:
        query: What it is about.
            state: in the words about it
        state (Desk): Where
            it is

            kept.

        count (int, optional): How many.
        user: Who.

    Returns:
        state: as it is
    """
WITHOUT = """Look.

    state: not of a section

    Args:
        query: What it is about.
            state: in the words about it
        count (int, optional): How many.

    Returns:
        state: as it is
    """


@pytest.mark.parametrize(
    ("doc", "shown"),
    [
        (FULL, WITHOUT),
        (inspect.cleandoc(FULL), inspect.cleandoc(WITHOUT)),  # as Python 3.13 has it
        ("Look.\n\n    Args:\n        state: It.\n    ", "Look.\n    "),
        (
            "Look.\n\nKeyword Args:\n    user: It.\n\nReturns:\n    It.",
            "Look.\n\nReturns:\n    It.",
        ),
        ("Look.\n\nArgs:\n\nstate: It.", "Look.\n\nArgs:\n\nstate: It."),
        (None, None),
    ],
)
def test_the_model_is_told_nothing_of_the_state(doc: str | None, shown: str | None) -> None:
    def look(query: str, count: int, state: Desk, *, user: User) -> str:
        return query

    look.__doc__ = doc
    assert tool(look).__doc__ == shown
    if shown is not None:
        assert FunctionTool(tool(look)).description == inspect.cleandoc(shown)


def test_what_takes_no_state_is_refused() -> None:
    with pytest.raises(SchemaError, match="no parameter of bare is annotated with a StateSchema"):

        @tool
        def bare(query: str) -> str:
            """Look."""
            return query

    with pytest.raises(SchemaError, match="the parameter state of odd may be something") as caught:

        @tool
        def odd(user: User, state: Optional[Desk] = None) -> str:  # noqa: UP045
            """Look."""
            return ""

    assert "Desk" in str(caught.value.found)
    assert caught.value.help == "write `state: Desk`: a call by a model always has state"

    with pytest.raises(SchemaError, match="'Nowhere', not defined here"):

        @tool
        def unknown(state: Nowhere) -> str:  # noqa: F821  # pyright: ignore[reportUndefinedVariable, reportUnknownParameterType]
            """Look."""
            return ""

    def forgotten(query: str, state: Desk) -> str:
        return query

    with pytest.raises(UsageError, match="the parameter state of the function forgotten") as missed:
        Agent("clerk").tool(forgotten)
    assert "put @tool of adk_fluent.state above" in str(missed.value)
    assert Agent("clerk").tool(tool(forgotten)).to_ir()

    with pytest.raises(UsageError, match="@tool stands above a function"):
        untyped(tool)(OFFICE)
