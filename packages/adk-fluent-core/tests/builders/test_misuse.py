"""Mistakes when building: each is refused at once, with what, where, what was found and help."""
# ruff: noqa: PLW0108  # the line of each lambda is the line that the error must name

from __future__ import annotations

import functools
from enum import Enum
from typing import TYPE_CHECKING, Any

import pytest
from misuse import KEYS, PREDICATE, STEPS, Case

import adk_fluent
from adk_fluent.errors import AdkFluentError, BuildError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable

Agent: Any = adk_fluent.Agent  # Any: a type checker finds these mistakes by itself
Pipeline: Any = adk_fluent.Pipeline
FanOut: Any = adk_fluent.FanOut
Fallback: Any = adk_fluent.Fallback
Loop: Any = adk_fluent.Loop
Route: Any = adk_fluent.Route
expect: Any = adk_fluent.expect
map_over: Any = adk_fluent.map_over
race: Any = adk_fluent.race
tap: Any = adk_fluent.tap
timeout: Any = adk_fluent.timeout
until: Any = adk_fluent.until

a: Any = Agent("a")
b: Any = Agent("b")


def fn(state: Any) -> dict[str, Any]:
    return {}


def gen(state: Any) -> Any:
    yield {}


async def agen(state: Any) -> Any:
    yield {}


async def coro(state: Any) -> dict[str, Any]:
    return {}


unnamed: Callable[[Any], Any] = lambda x: x  # noqa: E731  # a function without a name


class Tool:
    pass


REPLIES = (
    'pass "text", ["first", "second"], lambda prompt: "text", or a reply or Script of '
    "adk_fluent.testing"
)

KEPT = "a key that ADK and adk-fluent keep for themselves"


class Colour(Enum):
    RED = "red"


CASES = [
    Case(
        lambda: a.writes("user:_adk_x"),
        ".writes(...) does not take 'user:_adk_x'",
        found=KEPT,
        help="choose another key",
    ),
    Case(
        lambda: a.writes("_adk_x", via="tool"),
        ".writes(...) does not take '_adk_x'",
        found=KEPT,
        help="choose another key",
    ),
    Case(
        lambda: map_over("k", a, output_key="__session_metadata__"),
        "output_key does not take '__session_metadata__'",
        found=KEPT,
        help="choose another key",
    ),
    Case(
        lambda: Agent("my agent"),
        "'my agent' cannot name an Agent",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'my_agent'",
        error=BuildError,
    ),
    Case(
        lambda: Agent("2nd"),
        "'2nd' cannot name an Agent",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'agent_2nd'",
        error=BuildError,
    ),
    Case(
        lambda: Agent("user"),
        "'user' cannot name an Agent",
        found="a name that ADK and adk-fluent keep for themselves",
        help="choose another one, such as 'my_user'",
        error=BuildError,
    ),
    Case(
        lambda: Agent("_adk_x"),
        "'_adk_x' cannot name an Agent",
        found="a name that ADK and adk-fluent keep for themselves",
        help="choose another one, such as 'my_adk_x'",
        error=BuildError,
    ),
    Case(
        lambda: Agent(""),
        "'' cannot name an Agent",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'agent'",
        error=BuildError,
    ),
    Case(
        lambda: Agent(42),
        "the name of an Agent is a str",
        found="42",
        help='give it a name first: Agent("my_name", ...)',
    ),
    Case(
        lambda: Agent("x", instruction="Classify."),
        "Agent(...) takes a name and a model, and no 'instruction'",
        help="use .instruct(...)",
        error=UnknownNameError,
    ),
    Case(
        lambda: Agent("x", "m", tools=[fn]),
        "Agent(...) takes a name and a model, and no 'tools'",
        help="use .tool(...)",
        error=UnknownNameError,
    ),
    Case(
        lambda: Agent("x", planner=3),
        "Agent(...) takes a name and a model, and no 'planner'",
        help="use .planner(...)",
        error=UnknownNameError,
    ),
    Case(
        lambda: Agent("x", 42),
        ".model(...) takes a model name or an ADK model",
        found="42",
        help='pass a name such as "gemini-2.5-flash", or an instance of a BaseLlm',
    ),
    Case(
        lambda: Agent("x", ""),
        ".model(...) takes a model name or an ADK model",
        found="an empty str",
        help='pass a name such as "gemini-2.5-flash", or an instance of a BaseLlm',
    ),
    Case(
        lambda: a.model(None),
        ".model(...) takes a model name or an ADK model",
        found="None",
        help='pass a name such as "gemini-2.5-flash", or an instance of a BaseLlm',
    ),
    Case(
        lambda: a.instruct(42),
        ".instruct(...) takes text, or a function that gives it",
        found="42",
        help="a function gets ADK's ReadonlyContext and returns text; it may be async",
    ),
    Case(
        lambda: a.instruct(Tool),
        ".instruct(...) takes text, or a function that gives it",
        found="the class Tool",
        help="a function gets ADK's ReadonlyContext and returns text; it may be async",
    ),
    Case(lambda: a.static_instruct(3), ".static_instruct(...) takes text", found="3"),
    Case(lambda: a.description(None), ".description(...) takes text", found="None"),
    Case(
        lambda: a.history("all"),
        ".history(...) is one of 'transcript', 'own', 'input', 'none'",
        found="'all'",
        error=UnknownNameError,
    ),
    Case(
        lambda: a.history(3),
        ".history(...) is one of 'transcript', 'own', 'input', 'none'",
        found="3",
        error=UnknownNameError,
    ),
    Case(
        lambda: a.tool(42),
        ".tool(...) takes a function, an ADK tool or a toolset",
        found="42",
        help="pass the function itself; its name, signature and docstring are what the model sees",
    ),
    Case(
        lambda: a.tool(Tool),
        ".tool(...) takes a function, an ADK tool or a toolset",
        found="the class Tool",
        help="make one of it first: Tool(...)",
    ),
    Case(
        lambda: a.tool(b),
        ".tool(...) takes a function, an ADK tool or a toolset",
        found="an Agent",
        help="an agent that the model may call goes to .agent_tool(...)",
    ),
    Case(
        lambda: a.tool([fn]),
        ".tool(...) takes a function, an ADK tool or a toolset",
        found="a list",
        help="call .tool(...) once for each",
    ),
    Case(
        lambda: a.tool(fn, require_confirmation="yes"),
        ".tool(..., require_confirmation=...) takes True, False or a function",
        found="a str",
        help="the function gets the call's arguments and says whether a person must confirm",
    ),
    Case(
        lambda: a.tool(functools.partial(fn)),
        "a tool needs a name that the model can call",
        found="a partial",
        help="write it with def; its docstring tells the model what it does",
    ),
    Case(
        lambda: a.tool(unnamed),
        "a tool needs a name that the model can call",
        found="<lambda>",
        help="write it with def; its docstring tells the model what it does",
    ),
    Case(
        lambda: a.tool(agen),
        "a generator cannot be a tool",
        found="the function agen",
        help="return the whole result; do not yield",
    ),
    Case(
        lambda: Agent("x").tool(fn).tool(fn),
        "agent 'x' has a tool called 'fn' already",
        help="leave one of them out, or give it another name",
        error=BuildError,
    ),
    Case(
        lambda: Agent("x").tool(fn).agent_tool(Agent("fn")),
        "agent 'x' has a tool called 'fn' already",
        help="leave one of them out, or give it another name",
        error=BuildError,
    ),
    Case(lambda: a.writes(), ".writes(...) needs a state key at least", found="nothing"),
    Case(lambda: a.writes(""), ".writes(...) takes state keys", found="an empty str", help=KEYS),
    Case(lambda: a.writes(3), ".writes(...) takes state keys", found="3", help=KEYS),
    Case(
        lambda: a.writes("k", via="tools"),
        "via is one of 'answer', 'tool'",
        found="'tools'",
        help="did you mean 'tool'?",
        error=UnknownNameError,
    ),
    Case(lambda: a.reads(), ".reads(...) needs a state key at least", found="nothing"),
    Case(lambda: a.reads(3), ".reads(...) takes state keys", found="3", help=KEYS),
    Case(lambda: a.delegates(), ".delegates(...) needs an agent at least", found="nothing"),
    Case(
        lambda: a.delegates(fn),
        ".delegates(...) takes agents",
        found="the function fn",
        help="pass a builder, a built ADK agent or an IR node; functions go to .tool(...)",
    ),
    Case(
        lambda: a.agent_tool(42),
        ".agent_tool(...) takes agents",
        found="42",
        help="pass a builder, a built ADK agent or an IR node; functions go to .tool(...)",
    ),
    Case(
        lambda: a.before_model("log"),
        ".before_model(...) takes a function or a list of functions",
        found="a str",
        help="ADK calls it with keyword arguments; it may be async",
    ),
    Case(
        lambda: a.after_tool([fn, 3]),
        ".after_tool(...) takes a function or a list of functions",
        found="3",
        help="ADK calls it with keyword arguments; it may be async",
    ),
    Case(
        lambda: a.mock(42),
        ".mock(...) takes a reply, a list of replies or a function",
        found="42",
        help=REPLIES,
    ),
    Case(
        lambda: a.mock([]),
        ".mock(...) takes a reply, a list of replies or a function",
        found="nothing",
        help=REPLIES,
    ),
    Case(
        lambda: a.mock(["x", 3]),
        ".mock(...) takes a reply, a list of replies or a function",
        found="3",
        help=REPLIES,
    ),
    Case(
        lambda: a.configure(instruction="x"),
        ".configure(...) does not set 'instruction'",
        help="use .instruct(...)",
    ),
    Case(
        lambda: a.output_schema(3),
        ".output_schema(...) takes a type",
        found="3",
        help="pass a pydantic model class, not an instance",
    ),
    Case(
        lambda: a @ 3,
        ".output_schema(...) takes a type",
        found="3",
        help="pass a pydantic model class, not an instance",
    ),
    Case(
        lambda: a.middleware(42),
        "this is no middleware",
        found="int",
        help="pass an object with hooks such as before_model, after_tool or wrap_model_call",
    ),
    Case(
        lambda: a.middleware(Tool),
        "this is no middleware",
        found="the class Tool",
        help="pass an instance: Tool(...)",
    ),
    Case(
        lambda: a.named("x y"),
        "'x y' cannot name an Agent",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'x_y'",
        error=BuildError,
    ),
    Case(
        lambda: a.instuct("x"),
        "Agent 'a' has no method 'instuct'",
        help="did you mean 'instruct'?",
        error=UnknownNameError,
    ),
    Case(lambda: a.frobnicate(), "Agent 'a' has no method 'frobnicate'", error=UnknownNameError),
    Case(
        lambda: a.tap(fn),
        "Agent 'a' has no method 'tap'",
        help="write a >> tap(fn)",
        error=UnknownNameError,
    ),
    Case(
        lambda: a.resources(1),
        "Agent 'a' has no method 'resources'",
        help="use .inject(name=resource)",
        error=UnknownNameError,
    ),
    Case(
        lambda: (a >> b).instruct("x"),
        "Pipeline 'pipeline' has no method 'instruct'",
        help="it is a method of Agent",
        error=UnknownNameError,
    ),
    Case(
        lambda: a.returns(int),
        "Agent 'a' has no method 'returns'",
        help="for data as the answer write agent @ Schema, or use .output_schema(Schema)",
        error=UnknownNameError,
    ),
    Case(
        lambda: (a >> b).invoke("x"),
        "Pipeline 'pipeline' has no method 'invoke'",
        help="use .ask(message), or await .run(message)",
        error=UnknownNameError,
    ),
    Case(
        lambda: a.branch(b),
        "Agent 'a' has no method 'branch'",
        help="it is a method of FanOut and Race",
        error=UnknownNameError,
    ),
    Case(lambda: a >> 3, "3 cannot be a step", help=STEPS),
    Case(
        lambda: a >> "b",
        "a str cannot be a step",
        help='for an agent of that name write Agent("name")',
    ),
    Case(lambda: a >> None, "None cannot be a step", help=STEPS),
    Case(
        lambda: a >> [a, b],
        "a list cannot be a step",
        help="write a >> b for one after the other, a | b for both at the same time",
    ),
    Case(
        lambda: a >> Agent,
        "the class Agent cannot be a step",
        help="make one of it first: Agent(...)",
    ),
    Case(
        lambda: a >> coro({}),
        "a coroutine cannot be a step",
        help="pass the function itself, not what calling it gave",
    ),
    Case(
        lambda: a >> gen,
        "a generator cannot be a step",
        found="the function gen",
        help="return a mapping of state keys to values, or None; do not yield",
    ),
    Case(
        lambda: a >> agen,
        "a generator cannot be a step",
        found="the function agen",
        help="return a mapping of state keys to values, or None; do not yield",
    ),
    Case(lambda: 3 >> a, "3 cannot be a step", help=STEPS),
    Case(
        lambda: a | {"x": b},
        "a dict cannot be a branch",
        help="a dict of branches stands to the right of >>; elsewhere use Route(key)",
    ),
    Case(lambda: a // 3, "3 cannot be an attempt", help=STEPS),
    Case(
        lambda: a * 0,
        "the number of times is an int above 0",
        found="0",
        help="write a * 3, or a * until(lambda state: ..., max=3)",
    ),
    Case(
        lambda: a * -1,
        "the number of times is an int above 0",
        found="-1",
        help="write a * 3, or a * until(lambda state: ..., max=3)",
    ),
    Case(
        lambda: a * 2.5,
        "the number of times is an int above 0",
        found="2.5",
        help="write a * 3, or a * until(lambda state: ..., max=3)",
    ),
    Case(
        lambda: a * True,
        "the number of times is an int above 0",
        found="True",
        help="write a * 3, or a * until(lambda state: ..., max=3)",
    ),
    Case(
        lambda: a * fn,
        "the number of times is an int above 0",
        found="the function fn",
        help="write a * 3, or a * until(lambda state: ..., max=3)",
    ),
    Case(
        lambda: a >> {},
        "a dict of branches has none",
        help='write {"value": step, ...}',
        error=BuildError,
    ),
    Case(
        lambda: a >> {"x": b},
        "a dict of branches needs to know which state key it is about",
        found="no step that writes a key",
        help='declare it with .writes("key") on the step before, or use Route("key")',
        error=BuildError,
    ),
    Case(
        lambda: Agent("w").writes("k") >> {(1, 2): b},
        "a route compares with str, int, float, bool or None",
        found="a tuple",
        help="use .when(lambda state: ..., step) for any other test",
    ),
    Case(lambda: Agent("w").writes("k") >> {"x": 3}, "3 cannot be a branch", help=STEPS),
    Case(
        lambda: (Agent("v").writes("v") | Agent("w").writes("w")) >> {"x": b},
        "a dict of branches needs to know which state key it is about",
        found="branches that write v, w",
        help='declare it with .writes("key") on the step before, or use Route("key")',
        error=BuildError,
    ),
    Case(
        lambda: Pipeline().build(),
        "Pipeline 'pipeline' is empty",
        help="add a step with .step(...)",
        error=BuildError,
    ),
    Case(
        lambda: Pipeline("p").build(),
        "Pipeline 'p' is empty",
        help="add a step with .step(...)",
        error=BuildError,
    ),
    Case(
        lambda: FanOut() >> a,
        "FanOut 'parallel' is empty",
        help="add a branch with .branch(...)",
        error=BuildError,
    ),
    Case(
        lambda: Fallback("f").build(),
        "Fallback 'f' is empty",
        help="add an attempt with .attempt(...)",
        error=BuildError,
    ),
    Case(
        lambda: race().build(),
        "Race 'race' is empty",
        help="add a branch with .branch(...)",
        error=BuildError,
    ),
    Case(
        lambda: Route("k").build(),
        "route 'route' has no branches",
        help='add one with .eq("value", step) or .when(lambda state: ..., step)',
        error=BuildError,
    ),
    Case(
        lambda: Pipeline("p", "q"),
        "a str cannot be a step",
        help='for an agent of that name write Agent("name")',
    ),
    Case(
        lambda: FanOut(a, merge="first"),
        "merge is one of 'wait_all', 'first_complete', 'interleave'",
        found="'first'",
        error=UnknownNameError,
    ),
    Case(lambda: Loop(a, max=0), "max is an int above 0", found="0"),
    Case(lambda: Loop(a).max("3"), "max is an int above 0", found="a str"),
    Case(
        lambda: Loop(a).until("done"),
        "until(...) takes a function of state",
        found="a str",
        help=PREDICATE,
    ),
    Case(
        lambda: until("done"), "until(...) takes a function of state", found="a str", help=PREDICATE
    ),
    Case(lambda: until(fn, max=0), "max is an int above 0", found="0"),
    Case(lambda: Route(3), "Route(...) takes state keys", found="3", help=KEYS),
    Case(
        lambda: Route().eq("x", a),
        "route 'route' has no key to compare",
        help='write Route("key").eq(...), or use .when(lambda state: ..., step)',
        error=BuildError,
    ),
    Case(
        lambda: Route("k").eq([1], a),
        "a route compares with str, int, float, bool or None",
        found="a list",
        help="use .when(lambda state: ..., step) for any other test",
    ),
    Case(
        lambda: Route("k").eq(Colour.RED, a),
        "a route compares with str, int, float, bool or None",
        found="a Colour",
        help="state keeps the value of a member: compare with 'red'",
    ),
    Case(lambda: Route("k").gt(None, a), "greater and less need a number or text", found="None"),
    Case(lambda: Route("k").lt(True, a), "greater and less need a number or text", found="True"),
    Case(
        lambda: Route("k").when("x", a),
        ".when(...) takes a function of state",
        found="a str",
        help=PREDICATE,
    ),
    Case(
        lambda: Route("k").otherwise(a).otherwise(b),
        "route 'route' has an otherwise already",
        found="'a'",
        help="only one step can run when no test holds",
        error=BuildError,
    ),
    Case(lambda: Route("k").eq("x", 3), "3 cannot be a branch", help=STEPS),
    Case(
        lambda: tap(3),
        "tap(...) takes a function of state",
        found="3",
        help="pass fn(state), such as print; what it returns is not used",
    ),
    Case(
        lambda: tap(Tool),
        "tap(...) takes a function of state",
        found="the class Tool",
        help="pass fn(state), such as print; what it returns is not used",
    ),
    Case(
        lambda: expect("x"), "expect(...) takes a function of state", found="a str", help=PREDICATE
    ),
    Case(lambda: expect(fn, 3), "the message of expect(...) takes text", found="3"),
    Case(lambda: race(a, 3), "3 cannot be a branch", help=STEPS),
    Case(
        lambda: map_over("", a), "map_over(...) takes state keys", found="an empty str", help=KEYS
    ),
    Case(lambda: map_over("k", 3), "3 cannot be the body of map_over", help=STEPS),
    Case(lambda: map_over("k", a, concurrency=0), "concurrency is an int above 0", found="0"),
    Case(lambda: timeout(a, 0), "seconds is a number above 0", found="0"),
    Case(lambda: timeout(a, -1), "seconds is a number above 0", found="-1"),
    Case(lambda: timeout(a, "3"), "seconds is a number above 0", found="a str"),
    Case(
        lambda: timeout(5, a),
        "seconds is a number above 0",
        found="an Agent",
        help="timeout(agent, 5): first what is bounded, then the seconds",
    ),
    Case(lambda: timeout(a, float("nan")), "seconds is a number above 0", found="nan"),
    Case(lambda: timeout(3, 3), "3 cannot be the body of timeout", help=STEPS),
    Case(lambda: a.map(["x"], concurrency=0), "concurrency is an int above 0", found="0"),
    Case(
        lambda: a.instruct >> b,
        "the function instruct cannot be a step",
        help="call it: .instruct(...)",
    ),
    Case(
        lambda: Agent("x").tool(Agent),
        ".tool(...) takes a function, an ADK tool or a toolset",
        found="the class Agent",
        help="make one of it first: Agent(...)",
    ),
    Case(lambda: Agent("w").writes("k", 3), ".writes(...) takes state keys", found="3", help=KEYS),
    Case(lambda: Loop(a, until=3), "until takes a function of state", found="3", help=PREDICATE),
    Case(
        lambda: a.clone("x y"),
        "'x y' cannot name an Agent",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'x_y'",
        error=BuildError,
    ),
    Case(
        lambda: Pipeline("my pipe"),
        "'my pipe' cannot name a Pipeline",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'my_pipe'",
        error=BuildError,
    ),
    Case(
        lambda: race(a, b, name="x y"),
        "'x y' cannot name a Race",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'x_y'",
        error=BuildError,
    ),
    Case(
        lambda: Route("k", name=3),
        "the name of a Route is a str",
        found="3",
        help='give it a name first: Route("my_name", ...)',
    ),
    Case(
        lambda: Agent("x").delegates(a, fn),
        ".delegates(...) takes agents",
        found="the function fn",
        help="pass a builder, a built ADK agent or an IR node; functions go to .tool(...)",
    ),
    Case(
        lambda: a.agent_tool(a, a),
        "agent 'a' has a tool called 'a' already",
        help="leave one of them out, or give it another name",
        error=BuildError,
    ),
    Case(lambda: Agent("w").writes("k") >> {"x": None}, "None cannot be a branch", help=STEPS),
    Case(
        lambda: a // Tool,
        "the class Tool cannot be an attempt",
        help="make one of it first: Tool(...)",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_mistake_is_refused_with_an_exact_message(case: Case) -> None:
    assert case.raised() == case.expected()


def test_there_are_many_cases() -> None:
    assert len(CASES) >= 100


def test_a_usage_error_is_a_type_error_and_an_unknown_name_an_attribute_error() -> None:
    with pytest.raises(TypeError, match="3 cannot be a step"):
        _ = a >> 3
    with pytest.raises(AttributeError, match="did you mean 'instruct'"):
        a.instuct("x")
    assert not hasattr(a, "instuct")


def test_private_names_are_plain_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="'Agent' object has no attribute '_repr_html_'") as it:
        _ = a._repr_html_
    assert not isinstance(it.value, UnknownNameError)


def test_an_unknown_setting_of_with_is_named() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'nmae'"):
        a.with_(nmae="x")


def test_a_setter_that_refuses_changes_nothing() -> None:
    agent: Any = Agent("agent").tool(fn).writes("k")
    before = agent.build()
    for wrong in (
        lambda: agent.writes("x", 3),
        lambda: agent.delegates(a, fn),
        lambda: agent.agent_tool(b, b),
        lambda: agent.tool(fn),
        lambda: agent.named("x y"),
        lambda: agent.configure(timeout=1, instruction="x"),
        lambda: agent.configure(include_contents="none", timeout=-1),
        lambda: agent.before_model([fn, 3]),
    ):
        with pytest.raises(AdkFluentError):
            wrong()
    assert agent.build() == before


def test_an_attribute_that_is_no_setter_cannot_be_set() -> None:
    with pytest.raises(AttributeError):
        a.modle = "x"
