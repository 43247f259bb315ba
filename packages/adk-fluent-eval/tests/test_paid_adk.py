"""Nothing that was paid for is thrown away, and nothing is paid for that is known to be wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eval_programs import adk_agent, agent, case, model_of, report_of, sequence, suite_of
from google.adk.apps.app import App
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool

from adk_fluent import FanOut
from adk_fluent.errors import UsageError
from adk_fluent.eval import (
    EvalError,
    FluentCase,
    FluentEvalReport,
    FluentEvalSuite,
    FluentJudge,
    Gate,
    PrebuiltMetrics,
    Status,
    UserSimulation,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adk_fluent.eval._running._progress import Progress

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]


def well(actual_response: str) -> float:
    """A judge who likes everything."""
    return 1.0


async def told_late(progress: Progress) -> None:
    """A function that nobody would wait for."""


#: An option with what it cannot be, and what is said of it.
WRONG: list[tuple[str, Any, str]] = [
    ("baseline", "main.json", r"FluentEvalReport\.load\(path\)"),
    ("baseline", 3, "is no report"),
    ("progress", "loud", "is no function"),
    ("progress", told_late, "without async"),
    ("cache", "answers", r"ResponseCache\(folder\)"),
    ("session_service", InMemorySessionService, "is no session service"),
    ("session_service", "sqlite:///x", "is no session service"),
    ("artifact_service", InMemorySessionService(), "is no artifact service"),
    ("memory_service", {}, "is no memory service"),
    ("results_manager", "folder", "is no manager of results"),
    ("journal", 3, "is no path"),
    ("journal", "", "is no path"),
    ("fail_fast", "yes", "neither True nor False"),
    ("fail_fast", None, "neither True nor False"),
    ("parallelism", 1.5, "parallelism"),
    ("timeout_s", "10", "timeout_s"),
    ("plugins", "mine", "takes a list"),
    ("plugins", 3, "takes a list"),
    ("filter_tags", 3, "takes a list"),
    ("filter_tags", [3], "takes texts"),
    ("case_ids", "a", "is one text"),
    ("case_ids", [["a"]], "takes texts"),
]


@pytest.mark.parametrize(("name", "value", "says"), WRONG)
async def test_a_wrong_option_costs_nothing(name: str, value: Any, says: str) -> None:
    program = agent("a")
    with pytest.raises(EvalError, match=says) as caught:
        await report_of(program, case(id="a"), **{name: value})
    assert name in caught.value.what
    assert not model_of(program).calls


async def test_what_can_be_gone_through_once_is_enough() -> None:
    cases = [case(id="a", tags=["x"]), case(id="b", tags=["x"]), case(id="c", tags=["y"])]
    suite = suite_of(agent("a"), *cases)
    nothing: Any = iter([])
    report = await suite.run(
        case_ids=(each for each in "abc"), filter_tags=iter(["x"]), plugins=nothing
    )
    assert [each.id for each in report.outcomes] == ["a", "b"]
    models = [model_of(agent(name)).model_copy(update={"model": name}) for name in ("m", "n")]
    matrix = await suite.matrix(models, case_ids=iter("c"))
    assert [len(matrix[name].outcomes) for name in ("m", "n")] == [1, 1]


async def test_progress_that_raises_is_a_note_and_is_told_no_more() -> None:
    told: list[int] = []

    def progress(each: Progress) -> None:
        told.append(each.done)
        if each.done == 2:
            raise RuntimeError("the bar broke")

    cases = [case(id=name) for name in "abcd"]
    report = await report_of(agent("a"), *cases, progress=progress, parallelism=1)
    assert report.pass_rate == 1.0
    assert (len(report.outcomes), told) == (4, [1, 2])
    assert report.notes == (
        "progress= was told nothing after case 'b': it raised RuntimeError: the bar broke",
    )


async def test_a_results_manager_that_raises_is_a_note() -> None:
    class Full:
        def save_eval_set_result(self, *_: Any) -> None:
            raise OSError("no space left")

    manager: Any = Full()
    report = await report_of(agent("a"), case(), results_manager=manager)
    assert report.ok
    assert report.notes == (
        "results_manager= has not got the results: it raised OSError: no space left",
    )


# --- what is run ---------------------------------------------------------------------------------


async def test_of_fewer_cases_than_shards_the_last_are_empty() -> None:
    program = agent("a")
    suite = suite_of(program, case(id="a"), case(id="b"))
    parts = [await suite.run(shard=(which, 4)) for which in range(1, 5)]
    assert [[each.id for each in part.outcomes] for part in parts] == [["a"], ["b"], [], []]
    assert FluentEvalReport.merge(*parts).ok
    assert [each async for each in suite.stream(shard=(4, 4))] == []
    with pytest.raises(EvalError, match="no case is left to run"):
        await suite_of(program, case(id="a", tags=["x"]), case(id="b")).run(
            filter_tags=["x"], case_ids=["b"], shard=(4, 4)
        )


async def test_an_empty_shard_has_a_journal(tmp_path: Path) -> None:
    for _ in range(2):
        report = await report_of(agent("a"), case(id="a"), shard=(2, 2), journal=tmp_path / "j")
        assert not report.outcomes


async def test_what_is_skipped_need_expect_nothing() -> None:
    program = agent("a")
    report = await report_of(program, FluentCase("Hi", id="later", skip="no words yet"), case())
    assert [each.status for each in report.outcomes] == [Status.SKIPPED, Status.PASSED]
    with pytest.raises(EvalError, match="it expects nothing"):
        await report_of(program, FluentCase("Hi", id="later"), case())


async def test_a_function_that_cannot_make_the_pipeline_is_named() -> None:
    def shop() -> Any:
        raise LookupError("no menu")

    with pytest.raises(EvalError) as caught:
        await report_of(shop, case())
    assert "the function that makes the pipeline raised" in caught.value.what
    assert caught.value.found == "shop(): LookupError: no menu"
    assert isinstance(caught.value.__cause__, LookupError)


async def test_what_says_enough_by_itself_is_left_as_it_is() -> None:
    def shop() -> Any:
        raise UsageError("no menu", help="print one")

    with pytest.raises(UsageError) as caught:
        await report_of(shop, case())
    assert type(caught.value) is UsageError


# --- a part of a name ----------------------------------------------------------------------------


def twins(name: str = "clerk") -> tuple[Any, Any]:
    return agent(name, "one"), agent(name, "two")


def adk_twins() -> tuple[Any, Any]:
    return adk_agent("clerk", "one"), adk_agent("clerk", "two")


SEVERAL: list[Callable[[], Any]] = [
    lambda: twins()[0] >> agent("b") >> twins()[1],
    lambda: FanOut("f", twins()[0], agent("b") >> twins()[1]),
    lambda: sequence("s", adk_twins()[0], sequence("t", adk_twins()[1])),
    lambda: App(
        name="shop", root_agent=adk_agent("r", tools=[AgentTool(each) for each in adk_twins()])
    ),
    lambda: agent("clerk") >> sequence("s", adk_agent("clerk")),
    lambda: lambda: twins()[0] >> twins()[1],
]


@pytest.mark.parametrize("make", SEVERAL)
def test_a_part_of_which_there_are_several_is_not_chosen(make: Callable[[], Any]) -> None:
    with pytest.raises(EvalError) as caught:
        suite_of(make(), case(id="x", target_node="clerk")).check()
    assert caught.value.what == (
        "case 'x': target_node='clerk' is the name of 2 parts of the pipeline"
    )
    assert "Agent" in (caught.value.found or "")
    assert caught.value.location is not None


def test_the_same_part_in_several_places_is_one() -> None:
    clerk, other = agent("clerk"), adk_agent("clerk")
    for program in (
        clerk >> agent("b") >> clerk,
        FanOut("f", clerk >> agent("b"), agent("c") >> clerk),
        agent("b") >> other,
        App(name="shop", root_agent=sequence("s", other)),
    ):
        suite_of(program, case(target_node="clerk")).check()


# --- gates ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gate", "says"),
    [
        (Gate(min_tag_pass_rate={"bilingg": 1.0}), "did you mean 'billing'"),
        (Gate(min_tag_pass_rate={"zzz": 1.0}), "tags: billing"),
        (Gate(min_metric={"adk_fluent_respons": 0.5}), "did you mean 'adk_fluent_response'"),
        (Gate(min_metric={"politenes": 0.5}), "did you mean 'politeness'"),
        (Gate(min_metric={"safety_v1": 0.5}), "the suite has not"),
        (Gate(min_metric={"response_match_score": 0.5}), "the suite has not"),
    ],
)
async def test_a_gate_of_what_there_is_not_costs_nothing(gate: Gate, says: str) -> None:
    program = agent("a")
    judge = FluentJudge("politeness", fn=well)
    suite = suite_of(program, case(tags=["billing"]), custom_judges=[judge], gate=gate)
    with pytest.raises(EvalError) as caught:
        await suite.run()
    assert says in str(caught.value)
    assert not model_of(program).calls


async def test_a_gate_may_ask_for_what_other_cases_have() -> None:
    gate = Gate(
        min_tag_pass_rate={"talk": 0.5},
        min_metric={"politeness": 0.5, "adk_fluent_response": 0.5},
        min_pass_rate=0,
    )
    suite = suite_of(
        agent("a"),
        case(tags=["talk"], id="a"),
        case(id="b"),
        custom_judges=[FluentJudge("politeness", fn=well)],
        gate=gate,
    )
    suite.check(case_ids=["b"])
    suite.check(shard=(2, 2))


# --- notes ---------------------------------------------------------------------------------------


async def notes_of(*cases: Any, **fields: Any) -> tuple[str, ...]:
    suite = FluentEvalSuite("s", agent("a"), cases, **fields)
    return (await suite.run()).notes


async def test_what_no_metric_looks_at_is_noted() -> None:
    played = UserSimulation(script=["Thanks"], success_criteria="It is thanked.")
    assert await notes_of(
        *(case(id=name, reference_response="a") for name in "abc"),
        case(id="d", rubrics=["It is short."]),
        case(id="e", simulation=played),
        case(id="f"),
    ) == (
        (
            "3 cases have a reference_response that no metric looks at: "
            "add response_match_score or final_response_match_v2"
        ),
        (
            "1 case has rubrics that no metric looks at: "
            "add rubric_based_final_response_quality_v1 or rubric_based_tool_use_quality_v1"
        ),
        (
            "1 case has success_criteria that no metric looks at: "
            "add per_turn_user_simulator_quality_v1 or multi_turn_task_success_v1"
        ),
    )


async def test_what_a_metric_or_a_function_looks_at_is_not_noted() -> None:
    referring = case(reference_response="a")
    assert await notes_of(referring, metrics=[PrebuiltMetrics.RESPONSE_MATCH_SCORE]) == ()
    judge = FluentJudge("own", fn=well)
    assert await notes_of(case(rubrics=["It is short."]), custom_judges=[judge]) == ()
    assert await notes_of(case()) == ()
