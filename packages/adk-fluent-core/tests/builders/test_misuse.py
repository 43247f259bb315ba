"""Mistakes when building: each is refused at once, with what, where, what was found and help."""
# ruff: noqa: PLW0108  # the line of each lambda is the line that the error must name

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import adk_fluent
from adk_fluent.errors import AdkFluentError, BuildError, UnknownNameError, UsageError

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


@dataclass
class Case:
    call: Callable[[], Any]
    error: type[AdkFluentError]
    what: str
    found: str | None = None
    help: str | None = None

    def __str__(self) -> str:
        return f"line {self.call.__code__.co_firstlineno}: {self.what}"


STEPS = "a step is a builder, a function over state, a built ADK agent or an IR node"
KEYS = 'pass a key such as "intent" or "user:tier", or a field of a StateSchema'
PREDICATE = 'pass fn(state) -> bool, such as lambda s: s["score"] > 3'
REPLIES = (
    'pass "text", ["first", "second"], lambda prompt: "text", or a reply or Script of '
    "adk_fluent.testing"
)

CASES = [
    Case(
        lambda: Agent("my agent"),
        BuildError,
        "'my agent' cannot name an Agent",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'my_agent'",
    ),
    Case(
        lambda: Agent("2nd"),
        BuildError,
        "'2nd' cannot name an Agent",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'agent_2nd'",
    ),
    Case(
        lambda: Agent("user"),
        BuildError,
        "'user' cannot name an Agent",
        found="a name that ADK and adk-fluent keep for themselves",
        help="choose another one, such as 'my_user'",
    ),
    Case(
        lambda: Agent("_adk_x"),
        BuildError,
        "'_adk_x' cannot name an Agent",
        found="a name that ADK and adk-fluent keep for themselves",
        help="choose another one, such as 'my_adk_x'",
    ),
    Case(
        lambda: Agent(""),
        BuildError,
        "'' cannot name an Agent",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'agent'",
    ),
    Case(
        lambda: Agent(42),
        UsageError,
        "the name of an Agent is a str",
        found="42",
        help='give it a name first: Agent("my_name", ...)',
    ),
    Case(
        lambda: Agent("x", 42),
        UsageError,
        ".model(...) takes a model name or an ADK model",
        found="42",
        help='pass a name such as "gemini-2.5-flash", or an instance of a BaseLlm',
    ),
    Case(
        lambda: Agent("x", ""),
        UsageError,
        ".model(...) takes a model name or an ADK model",
        found="an empty str",
        help='pass a name such as "gemini-2.5-flash", or an instance of a BaseLlm',
    ),
    Case(
        lambda: a.model(None),
        UsageError,
        ".model(...) takes a model name or an ADK model",
        found="None",
        help='pass a name such as "gemini-2.5-flash", or an instance of a BaseLlm',
    ),
    Case(
        lambda: a.instruct(42),
        UsageError,
        ".instruct(...) takes text, or a function that gives it",
        found="42",
        help="a function gets ADK's ReadonlyContext and returns text; it may be async",
    ),
    Case(
        lambda: a.instruct(Tool),
        UsageError,
        ".instruct(...) takes text, or a function that gives it",
        found="the class Tool",
        help="a function gets ADK's ReadonlyContext and returns text; it may be async",
    ),
    Case(
        lambda: a.static_instruct(3),
        UsageError,
        ".static_instruct(...) takes text",
        found="3",
    ),
    Case(
        lambda: a.description(None),
        UsageError,
        ".description(...) takes text",
        found="None",
    ),
    Case(
        lambda: a.history("all"),
        UnknownNameError,
        ".history(...) is one of 'transcript', 'own', 'input', 'none'",
        found="'all'",
    ),
    Case(
        lambda: a.history(3),
        UnknownNameError,
        ".history(...) is one of 'transcript', 'own', 'input', 'none'",
        found="3",
    ),
    Case(
        lambda: a.tool(42),
        UsageError,
        ".tool(...) takes a function, an ADK tool or a toolset",
        found="42",
        help="pass the function itself; its name, signature and docstring are what the model sees",
    ),
    Case(
        lambda: a.tool(Tool),
        UsageError,
        ".tool(...) takes a function, an ADK tool or a toolset",
        found="the class Tool",
        help="make one of it first: Tool(...)",
    ),
    Case(
        lambda: a.tool(b),
        UsageError,
        ".tool(...) takes a function, an ADK tool or a toolset",
        found="an Agent",
        help="an agent that the model may call goes to .agent_tool(...)",
    ),
    Case(
        lambda: a.tool([fn]),
        UsageError,
        ".tool(...) takes a function, an ADK tool or a toolset",
        found="a list",
        help="call .tool(...) once for each",
    ),
    Case(
        lambda: a.tool(unnamed),
        UsageError,
        "a tool needs a name that the model can call",
        found="<lambda>",
        help="write it with def; its docstring tells the model what it does",
    ),
    Case(
        lambda: Agent("x").tool(fn).tool(fn),
        BuildError,
        "agent 'x' has a tool called 'fn' already",
        help="leave one of them out, or give it another name",
    ),
    Case(
        lambda: Agent("x").tool(fn).agent_tool(Agent("fn")),
        BuildError,
        "agent 'x' has a tool called 'fn' already",
        help="leave one of them out, or give it another name",
    ),
    Case(
        lambda: a.writes(),
        UsageError,
        ".writes(...) needs a state key at least",
        found="nothing",
    ),
    Case(
        lambda: a.writes(""),
        UsageError,
        ".writes(...) takes state keys",
        found="an empty str",
        help=KEYS,
    ),
    Case(
        lambda: a.writes(3),
        UsageError,
        ".writes(...) takes state keys",
        found="3",
        help=KEYS,
    ),
    Case(
        lambda: a.writes("k", via="tools"),
        UnknownNameError,
        "via is one of 'answer', 'tool'",
        found="'tools'",
        help="did you mean 'tool'?",
    ),
    Case(
        lambda: a.reads(),
        UsageError,
        ".reads(...) needs a state key at least",
        found="nothing",
    ),
    Case(
        lambda: a.reads(3),
        UsageError,
        ".reads(...) takes state keys",
        found="3",
        help=KEYS,
    ),
    Case(
        lambda: a.delegates(),
        UsageError,
        ".delegates(...) needs an agent at least",
        found="nothing",
    ),
    Case(
        lambda: a.delegates(fn),
        UsageError,
        ".delegates(...) takes agents",
        found="the function fn",
        help="pass a builder, a built ADK agent or an IR node; functions go to .tool(...)",
    ),
    Case(
        lambda: a.agent_tool(42),
        UsageError,
        ".agent_tool(...) takes agents",
        found="42",
        help="pass a builder, a built ADK agent or an IR node; functions go to .tool(...)",
    ),
    Case(
        lambda: a.before_model("log"),
        UsageError,
        ".before_model(...) takes a function or a list of functions",
        found="a str",
        help="ADK calls it with keyword arguments; it may be async",
    ),
    Case(
        lambda: a.after_tool([fn, 3]),
        UsageError,
        ".after_tool(...) takes a function or a list of functions",
        found="3",
        help="ADK calls it with keyword arguments; it may be async",
    ),
    Case(
        lambda: a.mock(42),
        UsageError,
        ".mock(...) takes a reply, a list of replies or a function",
        found="42",
        help=REPLIES,
    ),
    Case(
        lambda: a.mock([]),
        UsageError,
        ".mock(...) takes a reply, a list of replies or a function",
        found="nothing",
        help=REPLIES,
    ),
    Case(
        lambda: a.mock(["x", 3]),
        UsageError,
        ".mock(...) takes a reply, a list of replies or a function",
        found="3",
        help=REPLIES,
    ),
    Case(
        lambda: a.configure(instruction="x"),
        UsageError,
        ".configure(...) does not set 'instruction'",
        help="use .instruct(...)",
    ),
    Case(
        lambda: a.output_schema(3),
        UsageError,
        ".output_schema(...) takes a type",
        found="3",
        help="pass a pydantic model class, not an instance",
    ),
    Case(
        lambda: a @ 3,
        UsageError,
        ".output_schema(...) takes a type",
        found="3",
        help="pass a pydantic model class, not an instance",
    ),
    Case(
        lambda: a.middleware(42),
        UsageError,
        "this is no middleware",
        found="int",
        help="pass an object with hooks such as before_model, after_tool or wrap_model_call",
    ),
    Case(
        lambda: a.middleware(Tool),
        UsageError,
        "this is no middleware",
        found="the class Tool",
        help="pass an instance: Tool(...)",
    ),
    Case(
        lambda: a.named("x y"),
        BuildError,
        "'x y' cannot name an Agent",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'x_y'",
    ),
    Case(
        lambda: a.instuct("x"),
        UnknownNameError,
        "Agent 'a' has no method 'instuct'",
        help="did you mean 'instruct'?",
    ),
    Case(
        lambda: a.frobnicate(),
        UnknownNameError,
        "Agent 'a' has no method 'frobnicate'",
    ),
    Case(
        lambda: (a >> b).instruct("x"),
        UnknownNameError,
        "Pipeline 'pipeline' has no method 'instruct'",
        help="it is a method of Agent",
    ),
    Case(
        lambda: a.branch(b),
        UnknownNameError,
        "Agent 'a' has no method 'branch'",
        help="it is a method of FanOut and Race",
    ),
    Case(
        lambda: a >> 3,
        UsageError,
        "3 cannot be a step",
        help=STEPS,
    ),
    Case(
        lambda: a >> "b",
        UsageError,
        "a str cannot be a step",
        help='for an agent of that name write Agent("name")',
    ),
    Case(
        lambda: a >> None,
        UsageError,
        "None cannot be a step",
        help=STEPS,
    ),
    Case(
        lambda: a >> [a, b],
        UsageError,
        "a list cannot be a step",
        help="write a >> b for one after the other, a | b for both at the same time",
    ),
    Case(
        lambda: a >> Agent,
        UsageError,
        "the class Agent cannot be a step",
        help="make one of it first: Agent(...)",
    ),
    Case(
        lambda: a >> coro({}),
        UsageError,
        "a coroutine cannot be a step",
        help="pass the function itself, not what calling it gave",
    ),
    Case(
        lambda: a >> gen,
        UsageError,
        "a generator cannot be a step",
        found="the function gen",
        help="return a mapping of state keys to values, or None; do not yield",
    ),
    Case(
        lambda: a >> agen,
        UsageError,
        "a generator cannot be a step",
        found="the function agen",
        help="return a mapping of state keys to values, or None; do not yield",
    ),
    Case(
        lambda: 3 >> a,
        UsageError,
        "3 cannot be a step",
        help=STEPS,
    ),
    Case(
        lambda: a | {"x": b},
        UsageError,
        "a dict cannot be a branch",
        help="a dict of branches stands to the right of >>; elsewhere use Route(key)",
    ),
    Case(
        lambda: a // 3,
        UsageError,
        "3 cannot be an attempt",
        help=STEPS,
    ),
    Case(
        lambda: a * 0,
        UsageError,
        "the number of times is an int above 0",
        found="0",
        help="write a * 3, or a * until(lambda state: ..., max=3)",
    ),
    Case(
        lambda: a * -1,
        UsageError,
        "the number of times is an int above 0",
        found="-1",
        help="write a * 3, or a * until(lambda state: ..., max=3)",
    ),
    Case(
        lambda: a * 2.5,
        UsageError,
        "the number of times is an int above 0",
        found="2.5",
        help="write a * 3, or a * until(lambda state: ..., max=3)",
    ),
    Case(
        lambda: a * True,
        UsageError,
        "the number of times is an int above 0",
        found="True",
        help="write a * 3, or a * until(lambda state: ..., max=3)",
    ),
    Case(
        lambda: a * fn,
        UsageError,
        "the number of times is an int above 0",
        found="the function fn",
        help="write a * 3, or a * until(lambda state: ..., max=3)",
    ),
    Case(
        lambda: a >> {},
        BuildError,
        "a dict of branches has none",
        help='write {"value": step, ...}',
    ),
    Case(
        lambda: a >> {"x": b},
        BuildError,
        "a dict of branches needs to know which state key it is about",
        found="no step that writes a key",
        help='declare it with .writes("key") on the step before, or use Route("key")',
    ),
    Case(
        lambda: Agent("w").writes("k") >> {(1, 2): b},
        UsageError,
        "a route compares with str, int, float, bool or None",
        found="a tuple",
        help="use .when(lambda state: ..., step) for any other test",
    ),
    Case(
        lambda: Agent("w").writes("k") >> {"x": 3},
        UsageError,
        "3 cannot be a branch",
        help=STEPS,
    ),
    Case(
        lambda: (Agent("v").writes("v") | Agent("w").writes("w")) >> {"x": b},
        BuildError,
        "a dict of branches needs to know which state key it is about",
        found="branches that write v, w",
        help='declare it with .writes("key") on the step before, or use Route("key")',
    ),
    Case(
        lambda: Pipeline().build(),
        BuildError,
        "Pipeline 'pipeline' is empty",
        help="add a step with .step(...)",
    ),
    Case(
        lambda: Pipeline("p").build(),
        BuildError,
        "Pipeline 'p' is empty",
        help="add a step with .step(...)",
    ),
    Case(
        lambda: FanOut() >> a,
        BuildError,
        "FanOut 'parallel' is empty",
        help="add a branch with .branch(...)",
    ),
    Case(
        lambda: Fallback("f").build(),
        BuildError,
        "Fallback 'f' is empty",
        help="add an attempt with .attempt(...)",
    ),
    Case(
        lambda: race().build(),
        BuildError,
        "Race 'race' is empty",
        help="add a branch with .branch(...)",
    ),
    Case(
        lambda: Route("k").build(),
        BuildError,
        "route 'route' has no branches",
        help='add one with .eq("value", step) or .when(lambda state: ..., step)',
    ),
    Case(
        lambda: Pipeline("p", "q"),
        UsageError,
        "a str cannot be a step",
        help='for an agent of that name write Agent("name")',
    ),
    Case(
        lambda: FanOut(a, merge="first"),
        UnknownNameError,
        "merge is one of 'wait_all', 'first_complete', 'interleave'",
        found="'first'",
    ),
    Case(
        lambda: Loop(a, max=0),
        UsageError,
        "max is an int above 0",
        found="0",
    ),
    Case(
        lambda: Loop(a).max("3"),
        UsageError,
        "max is an int above 0",
        found="a str",
    ),
    Case(
        lambda: Loop(a).until("done"),
        UsageError,
        "until(...) takes a function of state",
        found="a str",
        help=PREDICATE,
    ),
    Case(
        lambda: until("done"),
        UsageError,
        "until(...) takes a function of state",
        found="a str",
        help=PREDICATE,
    ),
    Case(
        lambda: until(fn, max=0),
        UsageError,
        "max is an int above 0",
        found="0",
    ),
    Case(
        lambda: Route(3),
        UsageError,
        "Route(...) takes state keys",
        found="3",
        help=KEYS,
    ),
    Case(
        lambda: Route().eq("x", a),
        BuildError,
        "route 'route' has no key to compare",
        help='write Route("key").eq(...), or use .when(lambda state: ..., step)',
    ),
    Case(
        lambda: Route("k").eq([1], a),
        UsageError,
        "a route compares with str, int, float, bool or None",
        found="a list",
        help="use .when(lambda state: ..., step) for any other test",
    ),
    Case(
        lambda: Route("k").gt(None, a),
        UsageError,
        "greater and less need a number or text",
        found="None",
    ),
    Case(
        lambda: Route("k").lt(True, a),
        UsageError,
        "greater and less need a number or text",
        found="True",
    ),
    Case(
        lambda: Route("k").when("x", a),
        UsageError,
        ".when(...) takes a function of state",
        found="a str",
        help=PREDICATE,
    ),
    Case(
        lambda: Route("k").otherwise(a).otherwise(b),
        BuildError,
        "route 'route' has an otherwise already",
        found="'a'",
        help="only one step can run when no test holds",
    ),
    Case(
        lambda: Route("k").eq("x", 3),
        UsageError,
        "3 cannot be a branch",
        help=STEPS,
    ),
    Case(
        lambda: tap(3),
        UsageError,
        "tap(...) takes a function of state",
        found="3",
        help="pass fn(state), such as print; what it returns is not used",
    ),
    Case(
        lambda: tap(Tool),
        UsageError,
        "tap(...) takes a function of state",
        found="the class Tool",
        help="pass fn(state), such as print; what it returns is not used",
    ),
    Case(
        lambda: expect("x"),
        UsageError,
        "expect(...) takes a function of state",
        found="a str",
        help=PREDICATE,
    ),
    Case(
        lambda: expect(fn, 3),
        UsageError,
        "the message of expect(...) takes text",
        found="3",
    ),
    Case(
        lambda: race(a, 3),
        UsageError,
        "3 cannot be a branch",
        help=STEPS,
    ),
    Case(
        lambda: map_over("", a),
        UsageError,
        "map_over(...) takes state keys",
        found="an empty str",
        help=KEYS,
    ),
    Case(
        lambda: map_over("k", 3),
        UsageError,
        "3 cannot be the body of map_over",
        help=STEPS,
    ),
    Case(
        lambda: map_over("k", a, concurrency=0),
        UsageError,
        "concurrency is an int above 0",
        found="0",
    ),
    Case(
        lambda: timeout(a, 0),
        UsageError,
        "seconds is a number above 0",
        found="0",
    ),
    Case(
        lambda: timeout(a, -1),
        UsageError,
        "seconds is a number above 0",
        found="-1",
    ),
    Case(
        lambda: timeout(a, "3"),
        UsageError,
        "seconds is a number above 0",
        found="a str",
    ),
    Case(
        lambda: timeout(a, float("nan")),
        UsageError,
        "seconds is a number above 0",
        found="nan",
    ),
    Case(
        lambda: timeout(3, 3),
        UsageError,
        "3 cannot be the body of timeout",
        help=STEPS,
    ),
    Case(
        lambda: a.map(["x"], concurrency=0),
        UsageError,
        "concurrency is an int above 0",
        found="0",
    ),
    Case(
        lambda: a.instruct >> b,
        UsageError,
        "the function instruct cannot be a step",
        help="call it: .instruct(...)",
    ),
    Case(
        lambda: Agent("x").tool(Agent),
        UsageError,
        ".tool(...) takes a function, an ADK tool or a toolset",
        found="the class Agent",
        help="make one of it first: Agent(...)",
    ),
    Case(
        lambda: Agent("w").writes("k", 3),
        UsageError,
        ".writes(...) takes state keys",
        found="3",
        help=KEYS,
    ),
    Case(
        lambda: Loop(a, until=3),
        UsageError,
        "until takes a function of state",
        found="3",
        help=PREDICATE,
    ),
    Case(
        lambda: a.clone("x y"),
        BuildError,
        "'x y' cannot name an Agent",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'x_y'",
    ),
    Case(
        lambda: Pipeline("my pipe"),
        BuildError,
        "'my pipe' cannot name a Pipeline",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'my_pipe'",
    ),
    Case(
        lambda: race(a, b, name="x y"),
        BuildError,
        "'x y' cannot name a Race",
        found="not an identifier",
        help="use letters, digits and underscores, such as 'x_y'",
    ),
    Case(
        lambda: Route("k", name=3),
        UsageError,
        "the name of a Route is a str",
        found="3",
        help='give it a name first: Route("my_name", ...)',
    ),
    Case(
        lambda: Agent("x").delegates(a, fn),
        UsageError,
        ".delegates(...) takes agents",
        found="the function fn",
        help="pass a builder, a built ADK agent or an IR node; functions go to .tool(...)",
    ),
    Case(
        lambda: a.agent_tool(a, a),
        BuildError,
        "agent 'a' has a tool called 'a' already",
        help="leave one of them out, or give it another name",
    ),
    Case(
        lambda: Agent("w").writes("k") >> {"x": None},
        UsageError,
        "None cannot be a branch",
        help=STEPS,
    ),
    Case(
        lambda: a // Tool,
        UsageError,
        "the class Tool cannot be an attempt",
        help="make one of it first: Tool(...)",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_mistake_is_refused_with_an_exact_message(case: Case) -> None:
    with pytest.raises(AdkFluentError) as caught:
        case.call()
    lines = [case.what, f"  where: {__file__}:{case.call.__code__.co_firstlineno}"]
    lines += [f"  found: {case.found}"] if case.found else []
    lines += [f"  help: {case.help}"] if case.help else []
    assert str(caught.value) == "\n".join(lines)
    assert type(caught.value) is case.error


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
