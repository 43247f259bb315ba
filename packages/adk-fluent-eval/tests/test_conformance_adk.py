"""Both engines over the same suites: what they come to is the same, as are ADK's own results."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from eval_judges import HAS_EXTRA, NO_EXTRA, judge
from eval_programs import ANYTHING, agent, desk, lookup, says, scripted
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.version import __version__ as adk_version
from google.genai import types

from adk_fluent import Agent, FanOut, Pipeline
from adk_fluent.eval import (
    EvalError,
    FluentCase,
    FluentEvalSuite,
    FluentJudge,
    ResponseCache,
    Rubric,
    ToolCall,
    Turn,
    UserSimulation,
)
from adk_fluent.testing import Asked, Call, Thought, reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from google.adk.evaluation.eval_result import EvalCaseResult

    from adk_fluent.eval import CaseOutcome, FluentEvalReport

pytestmark = [
    pytest.mark.adk,
    pytest.mark.skipif(not HAS_EXTRA, reason=NO_EXTRA),
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so of what tests use
]

GRAPHS = not adk_version.startswith("1.")
POLITE, SHORT = "It is polite.", "It is short."
ROUGE, MATCH = "response_match_score", "final_response_match_v2"
QUALITY, TOOL_USE = (
    "rubric_based_final_response_quality_v1",
    "rubric_based_tool_use_quality_v1",
)
GROUNDED, PLAYED = "hallucinations_v1", "per_turn_user_simulator_quality_v1"
WHOLE = "rubric_based_multi_turn_trajectory_quality_v1"
INFORMS = ["tool_call_count_v1", "inference_call_count_v1", "token_usage_v1"]


def suite(pipeline: Any, *cases: FluentCase, **fields: Any) -> FluentEvalSuite:
    """A suite of some cases."""
    return FluentEvalSuite("s", pipeline, cases, **fields)


def _judging() -> Any:
    return judge(lambda prompt: "bad" not in prompt, {POLITE: True, SHORT: False}, why="so it is")


# --- the suites ----------------------------------------------------------------------------------


def single_turn() -> FluentEvalSuite:
    """One question, one answer."""
    return suite(
        desk(),
        FluentCase("Where is A1?", id="good", expected_response_contains="shipped"),
        FluentCase("Where is A1?", id="bad", expected_response_contains=["lost", "shipped"]),
        FluentCase("Where is A1?", id="pattern", expected_response_contains=re.compile("A[0-9]")),
        metrics=INFORMS,
    )


def several_turns() -> FluentEvalSuite:
    """A conversation, of which each turn has expectations of its own."""
    turns = [
        Turn("one", expected_response_contains="1", expected_trajectory=[]),
        Turn("two", reference_response="2"),
        Turn("three", expected_response_contains="4"),
    ]
    return suite(
        agent("a", lambda asked: str(len([t for t in asked.turns if t.role == "user"]))),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType, reportUnknownMemberType, reportUnknownVariableType]
        FluentCase(turns, id="a"),
        FluentCase(["one", "two"], id="b", reference_response="2"),
        metrics=[ROUGE, *INFORMS],
    )


def trajectories() -> FluentEvalSuite:
    """Calls of tools, compared in every way."""
    calls = [Call("lookup", {"order": "A1"}), Call("lookup", {"order": "A2"})]
    expectations: list[Any] = [
        [],
        ["lookup"],
        ["lookup", "lookup"],
        [ToolCall("lookup", {"order": "A2"})],
        [ToolCall("lookup", {"order": "A2"}), ToolCall("lookup", {"order": "A1"})],
    ]
    return suite(
        desk(*calls),
        *(
            FluentCase(
                "Where?",
                id=f"{match}-{at}",
                expected_trajectory=each,
                trajectory_match=match,
            )
            for match in ("exact", "in_order", "any_order", "subset", "f1")
            for at, each in enumerate(expectations)
        ),
        thresholds={"tool_trajectory_avg_score": 0.5},
    )


def parallel_calls() -> FluentEvalSuite:
    """Several calls in one answer."""
    both = reply(Call("lookup", {"order": "A1"}), Call("lookup", {"order": "A2"}))
    case = FluentCase("Where?", id="a", expected_trajectory=["lookup", "lookup"])
    return suite(desk(both), case, metrics=INFORMS)


def _fails_at_two(asked: Asked) -> Any:
    return ValueError("no two") if asked.prompt == "two" else "fine"


def failing_runs() -> FluentEvalSuite:
    """Models and agents that raise, or report an error."""

    def answer(asked: Asked) -> Any:
        match asked.prompt:
            case "raise":
                return RuntimeError("the model is gone")
            case "report":
                return reply(error_code="SAFETY", error_message="not safe")
            case _:
                return _fails_at_two(asked)

    return suite(
        Agent("a", says(answer)),
        FluentCase("raise", id="raises", expected_response_contains="x"),
        FluentCase("report", id="reports", expected_response_contains="x"),
        FluentCase(["one", "two", "three"], id="later", expected_response_contains="x"),
        FluentCase("fine", id="fine", expected_response_contains="fine"),
        FluentCase("raise", id="expected", expected_response_contains="x", xfail="known"),
        FluentCase("fine", id="wrong", expected_response_contains="fine", xfail="known"),
        FluentCase("fine", id="skipped", expected_response_contains="x", skip="not now"),
        metrics=INFORMS,
    )


def failing_tools() -> FluentEvalSuite:
    """A tool that raises."""

    def lookup(order: str) -> str:
        """Look an order up."""
        msg = f"no order {order}"
        raise LookupError(msg)

    case = FluentCase("Where?", id="a", expected_trajectory=["lookup"])
    return suite(desk(tools=(lookup,)), case)


def silent_answers() -> FluentEvalSuite:
    """Answers that say nothing, or nothing aloud."""

    def answer(asked: Asked) -> Any:
        empty = LlmResponse(
            content=types.Content(role="model", parts=[types.Part(text="")]),
            finish_reason=types.FinishReason.STOP,  # by this events of ADK 1.x tell a model's
        )
        thought = reply(Thought("I think"), "I say")
        return {"empty": empty, "thought": thought}.get(asked.prompt, "fine")

    return suite(
        Agent("a", says(answer)),
        FluentCase("empty", id="empty", expected_response_contains=ANYTHING),
        FluentCase("empty", id="nothing", reference_response="something"),
        FluentCase("thought", id="thought", expected_response_contains="think"),
        FluentCase(["empty", "fine"], id="turns", expected_response_contains="fine"),
        metrics=[ROUGE, *INFORMS],
    )


def references() -> FluentEvalSuite:
    """Answers compared with references, of all turns and of some."""
    return suite(
        Agent("a", says(lambda asked: f"{asked.prompt} is fine")),  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]
        FluentCase("one", id="a", reference_response="one is fine"),
        FluentCase("one", id="b", reference_response="bad luck"),
        FluentCase(["one", Turn("two", reference_response="two is fine"), "three"], id="c"),
        FluentCase(
            [Turn("one", reference_response="x"), Turn("two", reference_response="bad")], id="d"
        ),
        metrics=[ROUGE, MATCH],
        judge_model=_judging(),
        judge_samples=3,
    )


def rubrics() -> FluentEvalSuite:
    """Rubrics of cases, of turns, and of both."""
    return suite(
        desk(instruct="Be kind."),
        FluentCase("one", id="a", rubrics=[POLITE]),
        FluentCase(["one", "two"], id="b", rubrics=[POLITE, Rubric(SHORT, "short")]),
        FluentCase(["one", Turn("two", rubrics=[POLITE]), "three"], id="c"),
        FluentCase(["one", Turn("two", rubrics=[SHORT])], id="d", rubrics=[POLITE]),
        metrics=[QUALITY, TOOL_USE, *([WHOLE] if GRAPHS else [])],
        judge_model=_judging(),
        judge_samples=2,
    )


def facts() -> FluentEvalSuite:
    """Answers held against what the agents knew."""
    return suite(
        desk(instruct="Be kind."),
        FluentCase("one", id="a"),
        FluentCase(["one", "this is bad"], id="b"),
        metrics=[GROUNDED],
        judge_model=_judging(),
    )


def judges_that_fail() -> FluentEvalSuite:
    """Judges that raise, talk nonsense, or forget something."""

    def answer(prompt: str) -> Any:
        return None if "nonsense" in prompt else True

    return suite(
        agent("a", lambda asked: asked.prompt),  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]
        FluentCase("fine", id="a", reference_response="fine", rubrics=[POLITE]),
        FluentCase("nonsense", id="b", reference_response="fine", rubrics=[POLITE]),
        FluentCase(
            [Turn("x", reference_response="x"), Turn("nonsense", reference_response="x")],
            id="c",
            rubrics=[POLITE],
        ),
        metrics=[MATCH, QUALITY, GROUNDED],
        judge_model=judge(answer, {POLITE: True}),
        judge_samples=2,
    )


def _broken() -> float:
    msg = "no idea"
    raise RuntimeError(msg)


def _look(invocations: list[Any], expected: list[Any] | None) -> tuple[float, str]:
    return len(invocations) / 10, f"{len(expected or [])} expected"


def own_judges() -> FluentEvalSuite:
    """Metrics of one's own."""
    return suite(
        desk(),
        FluentCase(["one", "two"], id="a"),
        custom_judges=[
            FluentJudge("yes", lambda: True),
            FluentJudge("less", lambda: 0.25, threshold=0.2, lower_is_better=True),
            FluentJudge("broken", _broken),
            FluentJudge("look", _look, threshold=0.1),
        ],
    )


def played_users() -> FluentEvalSuite:
    """Users who are played, from a script and by a model."""

    def user(asked: Asked) -> str:
        return "</finished>" if "answer 2" in asked.prompt else "Go on."

    def answer(asked: Asked) -> str:
        return f"answer {len([each for each in asked.turns if each.role == 'user'])}"

    return suite(
        Agent("a", says(answer)).tool(lookup),
        FluentCase(
            "Hi", id="script", simulation=UserSimulation(script=["two", "three"]), max_tokens=9999
        ),
        FluentCase("Hi", id="model", simulation=UserSimulation(says(user)), max_tokens=9999),
        FluentCase(
            "Hi",
            id="limit",
            simulation=UserSimulation(says("more"), max_turns=2),
            expected_response_contains="answer 2",
            expected_trajectory=["lookup"],
            trajectory_match="subset",
        ),
        FluentCase(
            "Hi",
            id="compared",
            simulation=UserSimulation(script=["two"]),
            reference_response="answer 2",
        ),
        FluentCase(
            "Hi", id="fails", simulation=UserSimulation(says(ValueError("gone"))), max_tokens=9999
        ),
        metrics=[PLAYED, ROUGE, MATCH],
        judge_model=_judging(),
        judge_samples=2,
    )


def targets() -> FluentEvalSuite:
    """Parts of a pipeline."""
    return suite(
        agent("a", writes="k") >> agent("b", instruct="Say {k}.") >> agent("c"),
        FluentCase("Hi", id="all", expected_response_contains="c"),
        FluentCase("Hi", id="first", target_node="a", expected_response_contains="a"),
        FluentCase(
            "Hi",
            id="second",
            target_node="b",
            initial_state={"k": "v"},
            expected_response_contains="b",
        ),
    )


def several_runs() -> FluentEvalSuite:
    """Cases that are run more than once."""
    model = says(lambda asked: "yes" if asked.number % 2 else "no")  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType]
    case = FluentCase("Hi", id="a", expected_response_contains="yes")
    return suite(Agent("a", model), case, num_runs=4)


def budgets() -> FluentEvalSuite:
    """What runs may take."""
    return suite(
        desk(),
        FluentCase("Hi", id="a", max_tokens=1),
        FluentCase("Hi", id="b", max_tool_calls=0),
        FluentCase("Hi", id="c", max_tokens=9999, max_tool_calls=1, max_latency_s=600),
    )


def media() -> FluentEvalSuite:
    """Messages that are more than text."""
    image = types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x89PNG"))
    return suite(
        agent("a"),
        FluentCase(
            types.Content(role="user", parts=[types.Part(text="Look"), image]),
            id="a",
            expected_response_contains="a",
        ),
    )


def pipelines() -> Any:
    """Whatever runs."""
    inner = lambda: LlmAgent(name="inner", model=says("hm"), description="Knows.")  # noqa: E731
    made: dict[str, Callable[[], Any]] = {
        "adk": lambda: LlmAgent(name="a", model=says("a"), tools=[lookup]),
        "tree": lambda: LlmAgent(name="a", model=_handing_over(), sub_agents=[inner()]),
        "app": lambda: App(name="app", root_agent=LlmAgent(name="a", model=says("a"))),
        "named": lambda: Pipeline("p", agent("a"), agent("b")),
        "fan out": lambda: FanOut("f", agent("a"), agent("b")),
        "factory": lambda: desk,
    }
    if GRAPHS:
        made["workflow"] = _workflow
    return made


def _handing_over() -> Any:
    def answer(asked: Asked) -> Any:
        if asked.agent == "a":
            return Call("transfer_to_agent", {"agent_name": "inner"})
        return "hm"

    return says(answer)


def _workflow() -> Any:
    from google.adk.workflow import START, Workflow

    first, second = (
        LlmAgent(name=name, model=says(name), mode="single_turn", instruction="Help.")
        for name in ("first", "second")
    )
    return Workflow(name="flow", edges=[(START, first), (first, second)])


SUITES: dict[str, Callable[[], FluentEvalSuite]] = {
    each.__name__: each
    for each in (
        single_turn,
        several_turns,
        trajectories,
        parallel_calls,
        failing_runs,
        failing_tools,
        silent_answers,
        references,
        rubrics,
        facts,
        judges_that_fail,
        own_judges,
        played_users,
        targets,
        several_runs,
        budgets,
        media,
    )
}


# --- suites that need an App, which ADK's service of google-adk 1.x does not run -----------------


def mocks() -> FluentEvalSuite:
    """Tools that cases answer for."""
    where: dict[str, Any] = {"input": "Where?", "expected_trajectory": ["lookup"]}
    answers: dict[str, Any] = {
        "value": {"status": "lost"},
        "text": "lost",
        "falsy": {},
        "none": None,
        "function": lambda order: {"order": order},  # pyright: ignore[reportUnknownLambdaType]
        "sequence": [{"status": "lost"}],
        "exception": ValueError("no"),
    }
    return suite(
        desk(),
        *(
            FluentCase(id=name, mock_tool_outputs={"lookup": each}, **where)
            for name, each in answers.items()
        ),
        FluentCase(id="real", **where),
        num_runs=2,
    )


def states() -> FluentEvalSuite:
    """What state holds."""
    return suite(
        agent("a", "v", writes="k") >> agent("b", "w", writes="l"),
        FluentCase("Hi", id="good", state_assertions={"k": "v", "b.l": "w", "absent": None}),
        FluentCase("Hi", id="bad", state_assertions={"k": "w", "a.l": "w"}),
        FluentCase(
            [Turn("Hi", state_assertions={"k": "v"}), "Ho"],
            id="turns",
            initial_state={"n": 1, "user:u": 2},
            state_assertions={"n": 1, "user:u": 2},
        ),
    )


class _Shouting(BasePlugin):
    """Changes what models say."""

    def __init__(self) -> None:
        super().__init__(name="shouting")

    async def after_model_callback(
        self, *, callback_context: Any, llm_response: LlmResponse
    ) -> LlmResponse:
        parts = [types.Part(text=part.text.upper()) for part in llm_response.content.parts]  # pyright: ignore[reportOptionalMemberAccess, reportOptionalIterable]
        content = types.Content(role="model", parts=parts)
        return llm_response.model_copy(update={"content": content})


APPS: dict[str, Callable[[], FluentEvalSuite]] = {each.__name__: each for each in (mocks, states)}


# --- what is the same ----------------------------------------------------------------------------


def told(outcome: CaseOutcome) -> dict[str, Any]:
    """An outcome without what is never twice the same."""
    plain: dict[str, Any] = {
        name: getattr(outcome, name)
        for name in outcome.__slots__
        if name not in {"session_id", "user_id", "duration_s", "turns"}
    }
    plain["turns"] = [
        {
            name: getattr(turn, name)
            for name in turn.__slots__
            if name not in {"invocation_id", "duration_s"}
        }
        for turn in outcome.turns
    ]
    for turn in outcome.turns:
        for use in turn.tool_uses:
            use.call_id = ""
    for score in outcome.scores:
        for finding in score.findings:
            if finding.what == "max_latency_s":
                finding.actual = None
    return plain


def native(result: EvalCaseResult) -> dict[str, Any]:
    """ADK's result without what is never twice the same, and what ADK's service alone has."""
    data: dict[str, Any] = result.model_dump(
        mode="json", exclude={"session_id", "user_id", "session_details", "eval_set_file"}
    )
    return _without_accidents(data)


#: Times and identities; criteria, which ADK's service of 1.x cuts down; details of 2.x's metrics.
_ACCIDENTS = frozenset(
    {
        "invocation_id",
        "creation_timestamp",
        "duration",
        "model_duration",
        "tool_duration",
        "id",
        "criterion",
        "token_usage_details",
        "duration_details",
    }
)


def _without_accidents(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_accidents(each)
            for key, each in value.items()  # pyright: ignore[reportUnknownVariableType]
            if key not in _ACCIDENTS and each is not None
        }
    if isinstance(value, list):
        return [_without_accidents(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value


async def both(make: Callable[[], FluentEvalSuite], **options: Any) -> list[FluentEvalReport]:
    """A suite on both engines."""
    return [await make().run(engine=each, **options) for each in ("light", "local")]


def assert_same(light: FluentEvalReport, local: FluentEvalReport) -> None:
    """What they come to is the same."""
    assert [each.key for each in light.outcomes] == [each.key for each in local.outcomes]
    for ours, theirs in zip(light.outcomes, local.outcomes, strict=True):
        assert told(ours) == told(theirs)
    assert light.native_results.keys() == local.native_results.keys()
    for key, ours in light.native_results.items():
        mine, other = native(ours), native(local.native_results[key])
        turns = (each["eval_metric_result_per_invocation"] for each in (mine, other))
        for turn in zip(*turns, strict=True):
            here, there = (each["actual_invocation"] for each in turn)
            if "app_details" not in here:  # noted where somebody wants to know
                there.pop("app_details", None)
            if not GRAPHS:  # ADK's service of 1.x has no figures that only inform
                for each in turn:
                    each["eval_metric_results"] = [
                        result for result in each["eval_metric_results"] if "threshold" in result
                    ]
        assert mine == other
    assert light.failures == local.failures


@pytest.mark.parametrize("name", SUITES)
async def test_both_engines_come_to_the_same(name: str) -> None:
    light, local = await both(SUITES[name], parallelism=1)
    assert_same(light, local)
    assert (light.engine, local.engine) == ("light", "local")


@pytest.mark.parametrize("name", pipelines())
async def test_both_engines_run_whatever_runs(name: str) -> None:
    case = FluentCase(["Hi", "Ho"], id="a", expected_response_contains=ANYTHING)
    light, local = await both(lambda: suite(pipelines()[name](), case, metrics=INFORMS))
    assert_same(light, local)
    assert light.ok, light.outcomes[0].reasons


@pytest.mark.parametrize("name", APPS)
async def test_both_engines_run_apps(name: str) -> None:
    if not GRAPHS:
        word = {"mocks": "mock tools", "states": "nothing of state"}[name]
        await APPS[name]().run(engine="light")
        with pytest.raises(EvalError, match=word) as caught:
            await APPS[name]().run(engine="local")
        assert "runs no App" in (caught.value.help or "")
        return
    light, local = await both(APPS[name], parallelism=1)
    assert_same(light, local)


async def test_both_engines_have_plugins(tmp_path: Path) -> None:
    def made() -> FluentEvalSuite:
        case = FluentCase("Hi", id="a", expected_response_contains=re.compile("QUIET"))
        return suite(agent("a", "quiet"), case)

    for options in (
        {"plugins": [_Shouting()]},
        {"cache": ResponseCache(tmp_path), "plugins": [_Shouting()]},
        {"model": scripted(default="QUIET", model="other")},
    ):
        light = await made().run(engine="light", **options)  # pyright: ignore[reportArgumentType]
        assert light.ok, light.outcomes[0].reasons
        if GRAPHS:
            local = await made().run(engine="local", **options)  # pyright: ignore[reportArgumentType]
            light.outcomes[0].replayed = local.outcomes[0].replayed
            assert_same(light, local)
        else:
            with pytest.raises(EvalError, match="no place for plugins") as caught:
                await made().run(engine="local", **options)  # pyright: ignore[reportArgumentType]
            assert "runs no App" in (caught.value.help or "")


async def test_cases_at_once_come_to_the_same() -> None:
    def answer(asked: Asked) -> Any:
        return reply(asked.prompt, latency=0.001)

    def made() -> FluentEvalSuite:
        cases = [
            FluentCase(f"say {at}", id=f"c{at}", expected_response_contains=f"{at}")
            for at in range(20)
        ]
        return suite(Agent("a", says(answer)), *cases)

    assert_same(*await both(made, parallelism=10))


async def test_adks_own_metrics_stay_as_they_are() -> None:
    """In google-adk 1.x all registries share one mapping."""
    from google.adk.evaluation.metric_evaluator_registry import DEFAULT_METRIC_EVALUATOR_REGISTRY

    before = DEFAULT_METRIC_EVALUATOR_REGISTRY.get_registered_metrics()
    await own_judges().run(engine="local")
    assert DEFAULT_METRIC_EVALUATOR_REGISTRY.get_registered_metrics() == before


async def test_what_adks_service_says_to_its_log_is_in_the_outcome_instead(
    caplog: pytest.LogCaptureFixture,
) -> None:
    report = await failing_runs().run(engine="local")
    assert "the model is gone" in report.outcomes[0].reasons[0]
    assert "local_eval_service" not in caplog.text
