"""A part of a pipeline, run alone: with what stands around it, and without what comes before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eval_programs import (
    adk_agent,
    agent,
    calling,
    case,
    desk,
    lookup,
    loop,
    outcome_of,
    passes,
    report_of,
    says,
    sequence,
    suite_of,
)
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.agent_tool import AgentTool
from google.adk.version import __version__ as adk_version

from adk_fluent import (
    Agent,
    Fallback,
    FanOut,
    Loop,
    Pipeline,
    Resource,
    Route,
    map_over,
    race,
    timeout,
)
from adk_fluent.config import ExecutionConfig
from adk_fluent.eval import EvalError, Status, Turn
from adk_fluent.ir import AppNode
from adk_fluent.testing import Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adk_fluent.builders import State
    from adk_fluent.protocol import ModelCall, ModelReply, NextModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]

GRAPHS = not adk_version.startswith("1.")


def boom(name: str) -> Agent:
    """An agent that must not run."""
    return agent(name, AssertionError(f"{name} ran"))


def part(name: str = "part") -> Agent:
    return agent(name, "done", writes="answer")


#: Where a part can stand.
PLACES: dict[str, Callable[[Any], Any]] = {
    "pipeline": lambda it: boom("a") >> it >> boom("z"),
    "pipeline in a pipeline": lambda it: boom("a") >> Pipeline("inner", boom("b"), it) >> boom("z"),
    "fan out": lambda it: boom("a") >> FanOut("f", boom("b"), it),
    "loop": lambda it: Loop("l", boom("a") >> it, max=3),
    "route": lambda it: (
        boom("a").writes("k") >> Route("k").eq("x", boom("b")).eq("y", it).otherwise(boom("c"))
    ),
    "the rest of a route": lambda it: (
        boom("a").writes("k") >> Route("k").eq("x", boom("b")).otherwise(it)
    ),
    "fallback": lambda it: boom("a") // it,
    "race": lambda it: race(boom("a"), it),
    "timeout": lambda it: boom("a") >> timeout(it, 5),
    "map over": lambda it: boom("a") >> map_over("items", it),
    "deep": lambda it: boom("a") >> Loop("l", FanOut("f", boom("b"), boom("c") // it), max=2),
    "the whole": lambda it: it,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("as_ir", [False, True], ids=["builder", "ir"])
async def test_an_agent_wherever_it_stands(place: str, as_ir: bool) -> None:
    program = PLACES[place](part())
    outcome = await passes(
        program.to_ir() if as_ir else program,
        target_node="part",
        expected_response_contains="done",
        state_assertions={"answer": "done", "part.answer": "done"},
    )
    assert outcome.target_node == "part"
    assert [step.author for step in outcome.turns[0].steps] == ["part"] * 2  # says, and writes


def double(state: State) -> dict[str, Any]:
    return {"twice": state["n"] * 2}


#: Parts that are no agents.
PARTS: dict[str, tuple[Callable[[], Any], str, dict[str, Any], Any]] = {
    "function": (lambda: boom("a") >> double >> boom("z"), "double", {"n": 2}, {"twice": 4}),
    "sub-pipeline": (
        lambda: boom("a") >> Pipeline("inner", double, part()) >> boom("z"),
        "inner",
        {"n": 3},
        {"twice": 6, "answer": "done"},
    ),
    "route": (
        lambda: boom("a").writes("k") >> Route("k", name="way").eq("x", boom("b")).eq("y", part()),
        "way",
        {"k": "y"},
        {"answer": "done"},
    ),
    "loop": (lambda: boom("a") >> Loop("again", double, max=2), "again", {"n": 1}, {"twice": 2}),
    "map over": (
        lambda: boom("a") >> map_over("items", part(), name="each", output_key="all"),
        "each",
        {"items": [1, 2]},
        {"all": ["done", "done"]},
    ),
    "fan out": (
        lambda: boom("a") >> FanOut("both", agent("p", writes="x"), double),
        "both",
        {"n": 1},
        {"twice": 2},
    ),
    "fallback": (
        lambda: boom("z") >> Fallback("safe", agent("a", ValueError("no")), part()),
        "safe",
        {},
        {"answer": "done"},
    ),
}


@pytest.mark.parametrize("kind", PARTS)
async def test_any_part(kind: str) -> None:
    make, name, state, expected = PARTS[kind]
    await passes(make(), target_node=name, initial_state=state, state_assertions=expected)


async def test_agents_that_are_tools_and_those_handed_over_to() -> None:
    boss = Agent("boss", says(AssertionError("boss ran"))).agent_tool(desk())
    host = Agent("host", says(AssertionError("host ran"))).delegates(part())
    program = boss >> host
    await passes(
        program, target_node="desk", expected_trajectory=["lookup"], expected_response_contains="A1"
    )
    await passes(program, target_node="part", expected_response_contains="done")


# --- what is kept --------------------------------------------------------------------------------


class Notes:
    """A middleware that notes which agents ask a model."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        self.asked.append(call.agent)
        return await next(call)


async def test_the_middlewares_around_it_are_kept() -> None:
    whole, around, own, beside = Notes(), Notes(), Notes(), Notes()
    inner = (boom("a") >> part().middleware(own, scope="agent")).middleware(around, scope="agent")
    other = boom("b").middleware(beside, scope="agent")
    program = (other >> inner).middleware(whole)
    await passes(program, target_node="part")
    asked = [each.asked for each in (whole, around, own, beside)]
    assert asked == [["part"], ["part"], ["part"], []]


async def test_a_middleware_of_the_part_itself() -> None:
    own = Notes()
    program = boom("a") >> part().middleware(own, scope="agent")
    await passes(program, target_node="part")
    assert own.asked == ["part"]


async def test_the_resources_are_kept() -> None:
    log: list[str] = []

    def books() -> Iterator[str]:
        log.append("open")
        yield "books"
        log.append("close")

    def read(state: State, shelf: str) -> dict[str, Any]:
        return {"read": shelf}

    def find(order: str, shelf: str) -> str:
        """Find an order."""
        return f"{order} in {shelf}"

    clerk = Agent("clerk", says(calling(Call("find", {"order": "A1"})))).tool(find)
    program = (boom("a") >> read >> clerk).inject(shelf=Resource(books))
    await passes(program, target_node="read", state_assertions={"read": "books"})
    await passes(program, target_node="clerk", expected_response_contains="A1 in books")
    assert log == ["open", "close"] * 2


async def test_initial_state_stands_for_what_comes_before() -> None:
    """What the steps before would have written is not asked for by the contracts of the part."""
    first = boom("classify").writes("intent")

    def answer(asked: Any) -> str:
        return asked.system

    second = agent("reply", answer).instruct("Reply about {intent}.").reads("intent")
    outcome = await passes(
        first >> second,
        target_node="reply",
        initial_state={"intent": "billing"},
        expected_response_contains="Reply about billing.",
    )
    assert outcome.state == {"intent": "billing"}
    promises = first >> second.clone().contract(inputs=["tier"])
    given = {"intent": "billing", "tier": "gold"}
    await passes(promises, target_node="reply", initial_state=given)
    app = AppNode("p", promises.to_ir(), execution=ExecutionConfig(app_name="shop"))
    await passes(app, target_node="reply", initial_state=given)
    missing = await outcome_of(first >> second, target_node="reply")
    assert missing.status is Status.ERROR
    assert "intent" in (missing.error or "")


async def test_mocks_and_what_is_expected_of_a_part() -> None:
    program = boom("a") >> desk(writes="answer") >> boom("z")
    outcome = await passes(
        program,
        [Turn("Where is A1?", expected_trajectory=["lookup"]), "And now?"],
        target_node="desk",
        mock_tool_outputs={"lookup": ["lost", "found"]},
        expected_trajectory=["lookup"],
        expected_response_contains="found",
        state_assertions={"answer": "found", "desk.answer": "found"},
    )
    assert [use.mocked for use in outcome.tool_uses] == [True, True]


async def test_tools_beside_the_part_are_not_there() -> None:
    other = Agent("other", says("x")).tool(len)
    program = other >> desk()
    with pytest.raises(EvalError) as caught:
        await outcome_of(program, target_node="desk", mock_tool_outputs={"len": 1})
    assert caught.value.found == "tools: lookup"


async def test_several_parts_in_one_suite() -> None:
    program = agent("a", "A") >> agent("b", "B") >> agent("c", "C")
    cases = [
        case("Hi", id=str(name), target_node=name, expected_response_contains=answer)
        for name, answer in (("a", "A"), (None, "C"), ("b", "B"), ("c", "C"))
    ]
    report = await report_of(program, *cases, num_runs=2)
    assert [each.reasons for each in report.outcomes] == [[]] * 8
    assert [each.target_node for each in report.outcomes] == [
        name for name in ("a", "", "b", "c") for _ in range(2)
    ]


# --- trees of ADK's ------------------------------------------------------------------------------


def fails(name: str, **fields: Any) -> LlmAgent:
    """An agent of ADK's that must not run."""
    return adk_agent(name, AssertionError(f"{name} ran"), **fields)


async def test_an_agent_of_a_tree() -> None:
    """It has no parent: it cannot hand over to those that were around it."""
    seen: list[Any] = []

    def answer(asked: Any) -> str:
        seen.append(asked)
        return "done"

    leaf = adk_agent("part", answer, output_key="answer")
    root = fails("root", sub_agents=[fails("other"), leaf])
    outcome = await passes(root, target_node="part", state_assertions={"part.answer": "done"})
    assert outcome.response == "done"
    assert seen[0].tools == ()  # no transfer_to_agent
    assert leaf.parent_agent is root  # the tree is what it was
    assert root.sub_agents[1] is leaf


TREES: dict[str, Callable[[LlmAgent], Any]] = {
    "sequence": lambda it: sequence("s", fails("a"), it),
    "deep": lambda it: sequence("s", loop("l", it)),
    "tool": lambda it: fails("a", tools=[AgentTool(agent=it)]),
    "app": lambda it: App(name="shop", root_agent=fails("a", sub_agents=[it])),
    "the whole": lambda it: it,
}


@pytest.mark.parametrize("kind", TREES)
async def test_wherever_it_stands_in_a_tree(kind: str) -> None:
    it = LlmAgent(name="part", model=says(calling(Call("lookup", {"order": "A1"}))), tools=[lookup])
    await passes(
        TREES[kind](it),
        target_node="part",
        mock_tool_outputs={"lookup": "lost"},
        expected_trajectory=["lookup"],
        expected_response_contains="lost",
    )


async def test_an_arrangement_of_a_tree() -> None:
    inner = sequence("inner", adk_agent("a"), adk_agent("b"))
    root = sequence("s", fails("z"), inner)
    outcome = await passes(root, target_node="inner", expected_response_contains="b")
    assert [step.author for step in outcome.turns[0].steps if step.text] == ["a", "b"]
    assert inner.parent_agent is root
    assert all(each.parent_agent is inner for each in inner.sub_agents)


async def test_an_app_keeps_its_plugins() -> None:
    class Log(BasePlugin):
        runs = 0

        async def before_run_callback(self, *, invocation_context: Any) -> None:
            self.runs += 1

    log = Log(name="log")
    app = App(name="shop", root_agent=fails("a", sub_agents=[adk_agent("part")]), plugins=[log])
    await passes(app, target_node="part")
    assert log.runs == 1


async def test_an_agent_of_adk_in_a_pipeline_of_ours() -> None:
    program = boom("a") >> adk_agent("part", "done") >> boom("z")
    await passes(program, target_node="part", expected_response_contains="done")


async def test_a_step_below_an_agent_of_adk_in_a_pipeline_of_ours() -> None:
    tree = fails("root", sub_agents=[adk_agent("part", "done")])
    await passes(boom("a") >> tree, target_node="part", expected_response_contains="done")


# --- graphs --------------------------------------------------------------------------------------


@pytest.mark.skipif(not GRAPHS, reason="google-adk 1.x has no graphs")
class TestGraphs:
    def graph(self, *steps: Any) -> Any:
        from google.adk.workflow import START, Workflow

        return Workflow(name="w", edges=[(START, *steps)])

    @pytest.mark.parametrize("in_app", [False, True])
    async def test_an_agent(self, in_app: bool) -> None:
        graph = self.graph(fails("a"), adk_agent("part", "done", output_key="answer"))
        program = App(name="shop", root_agent=graph) if in_app else graph
        outcome = await passes(
            program,
            [Turn("Hi"), "Ho"],
            target_node="part",
            expected_response_contains="done",
            state_assertions={"answer": "done"},
        )
        assert [turn.response for turn in outcome.turns] == ["done", "done"]

    async def test_a_function(self) -> None:
        async def mark(ctx: Any) -> str:
            ctx.state["marked"] = True
            return "marked it"

        outcome = await passes(
            self.graph(fails("a"), mark), target_node="mark", state_assertions={"marked": True}
        )
        assert outcome.target_node == "mark"

    async def test_a_graph_in_a_graph(self) -> None:
        from google.adk.workflow import START, Workflow

        inner = Workflow(name="inner", edges=[(START, adk_agent("part", "done"))])
        whole = self.graph(fails("a"), inner)
        await passes(whole, target_node="inner", expected_response_contains="done")
        await passes(whole, target_node="part", expected_response_contains="done")

    async def test_an_unknown_name(self) -> None:
        with pytest.raises(EvalError) as caught:
            await outcome_of(self.graph(fails("a"), adk_agent("part")), target_node="prat")
        assert caught.value.help == "did you mean 'part'?"
        assert caught.value.found == "a, part, w"

    async def test_tools_of_agents_in_a_graph_are_known(self) -> None:
        answer = says(calling(Call("lookup", {"order": "A1"})))
        graph = self.graph(LlmAgent(name="part", model=answer, tools=[lookup]))
        await passes(graph, mock_tool_outputs={"lookup": 1}, expected_trajectory=["lookup"])
        with pytest.raises(EvalError) as caught:
            await outcome_of(graph, mock_tool_outputs={"lokup": 1})
        assert caught.value.help == "did you mean 'lookup'?"

    async def test_tools_of_other_steps_are_not(self) -> None:
        def step(node_input: Any) -> str:
            return "done"

        await passes(self.graph(adk_agent("a"), step), mock_tool_outputs={"perhaps": 1})


# --- names that are not there --------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: boom("classify") >> boom("reply"),
        lambda: sequence("s", fails("classify"), fails("reply")),
        lambda: App(name="shop", root_agent=fails("reply", sub_agents=[fails("classify")])),
        lambda: lambda: boom("classify") >> boom("reply"),
    ],
    ids=["ours", "ADK's", "app", "factory"],
)
async def test_a_name_that_is_not_there(make: Callable[[], Any]) -> None:
    suite = suite_of(make(), case("Hi", id="x", target_node="clasify"), case("Ho", id="y"))
    with pytest.raises(EvalError) as caught:
        suite.check()
    error = caught.value
    assert error.what == "case 'x': the pipeline has no step 'clasify'"
    assert error.help == "did you mean 'classify'?"
    assert "reply" in (error.found or "")
    assert error.location is not None
    with pytest.raises(EvalError, match="no step 'clasify'"):
        await suite.run()


async def test_a_resource_is_no_step() -> None:
    program = (agent("a") >> double).inject(shelf="books")
    with pytest.raises(EvalError, match="no step 'shelf'"):
        await outcome_of(program, target_node="shelf")
