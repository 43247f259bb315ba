from __future__ import annotations

import json
import re
import shlex
import time
from datetime import date
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.evaluation.eval_case import (
    EvalCase,
    IntermediateData,
    Invocation,
    SessionInput,
)
from google.adk.evaluation.eval_config import get_eval_metrics_from_config
from google.adk.evaluation.eval_metrics import LlmAsAJudgeCriterion, ToolTrajectoryCriterion
from google.adk.evaluation.eval_set import EvalSet
from google.adk.evaluation.local_eval_sets_manager import (
    LocalEvalSetsManager,
    load_eval_set_from_file,
)
from google.genai.types import Blob, Content, FunctionCall, Part

from adk_fluent import Agent
from adk_fluent.eval import (
    EvalError,
    EvalFileError,
    EvalFileWarning,
    FluentCase,
    FluentEvalSuite,
    FluentJudge,
    Rubric,
    ToolCall,
    Turn,
    UserSimulation,
)
from adk_fluent.eval._files._content import SuiteData
from adk_fluent.eval._files._eval_case_adk import invocation_of
from adk_fluent.eval._files._evalset_adk import (
    read_eval_set,
    to_eval_case,
    to_eval_config,
    to_eval_set,
    write_eval_set,
)
from adk_fluent.eval._files._json_lines import JsonLines
from adk_fluent.eval._files._table import dump_jsonl, load_jsonl
from adk_fluent.eval._files._yaml import dump_yaml, load_yaml
from adk_fluent.eval._running._simulator_adk import scenario_of
from adk_fluent.ir import StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.adk

REGISTRY = {"shlex:quote": shlex.quote}


def _text(content: Content | None) -> str:
    assert content is not None
    assert content.parts is not None
    return content.parts[0].text or ""


def _case(made: SuiteData, number: int = 0) -> FluentCase:
    return made.cases[number]


# --- a case as ADK has it ----------------------------------------------------------------------


def test_a_case_of_several_turns() -> None:
    case = FluentCase(
        [Turn("one", expected_trajectory=[], rubrics=["short"]), "two"],
        expected_trajectory=["look", ToolCall("note", {"n": 1, "sure": shlex.quote})],
        reference_response="done",
        initial_state={"user:tier": "gold"},
        state_assertions={"intent": "bill", "step.intent": "x", "sure": shlex.quote},
        rubrics=["kind", Rubric("clear", "clarity")],
        id="several",
    )
    made = to_eval_case(case, app_name="desk")
    assert made.eval_id == "several"
    assert made.session_input == SessionInput(
        app_name="desk", user_id="several", state={"user:tier": "gold"}
    )
    assert made.conversation is not None
    one, two = made.conversation
    assert (_text(one.user_content), one.user_content.role) == ("one", "user")
    assert one.intermediate_data == IntermediateData(tool_uses=[])
    assert one.final_response is None
    assert [each.rubric_id for each in one.rubrics or ()] == ["turn_1_rubric_1"]
    assert two.intermediate_data == IntermediateData(
        tool_uses=[FunctionCall(name="look", args={}), FunctionCall(name="note", args={"n": 1})]
    )
    assert _text(two.final_response) == "done"
    assert [each.rubric_id for each in made.rubrics or ()] == ["rubric_1", "clarity"]
    assert made.final_session_state == {"intent": "bill"}


def test_what_is_not_expected_is_not_there() -> None:
    made = to_eval_case(FluentCase("hi", id="a"))
    assert made.conversation is not None
    assert made.conversation[0].intermediate_data is None
    assert made.conversation[0].final_response is None
    assert made.session_input is not None  # or ADK would look for the session in another app
    assert made.session_input.app_name == "adk_fluent"


def test_users_who_are_played() -> None:
    played = to_eval_case(
        FluentCase(
            "hi",
            simulation=UserSimulation("m", persona="You are angry.", success_criteria="A refund."),
        )
    )
    scenario = played.conversation_scenario
    assert scenario is not None
    assert scenario.starting_prompt == "hi"
    assert scenario.conversation_plan == "You are angry.\nA refund."
    scripted = to_eval_case(
        FluentCase(
            "hi",
            reference_response="bye",
            simulation=UserSimulation(script=["b", "c"], starting_prompt="a"),
        )
    )
    assert scripted.conversation is not None
    assert [_text(each.user_content) for each in scripted.conversation] == ["a", "b", "c"]
    assert _text(scripted.conversation[-1].final_response) == "bye"


def test_a_user_who_is_played_has_one_scenario_in_files_and_in_runs() -> None:
    played = UserSimulation("m", persona="You are angry.")
    made = to_eval_case(FluentCase("hi", simulation=played))
    assert made.conversation_scenario == scenario_of(played, "hi")


def test_arguments_are_as_json_has_them() -> None:
    call = ToolCall("book", {"day": date(2026, 1, 2), "seats": (1, 2), "sure": shlex.quote})
    made = invocation_of(Turn("hi", expected_trajectory=[call]), 1)
    assert made.intermediate_data == IntermediateData(
        tool_uses=[FunctionCall(name="book", args={"day": "2026-01-02", "seats": [1, 2]})]
    )


def test_rubrics_are_of_files() -> None:
    turn = Turn("hi", rubrics=["kind"])
    assert invocation_of(turn, 1).rubrics is None
    made = to_eval_case(FluentCase([turn]))
    assert made.conversation is not None
    assert made.conversation[0].rubrics


def test_what_a_user_cannot_say() -> None:
    case = FluentCase("hi")
    case.input = [object()]  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(EvalError, match="a user says texts"):
        to_eval_case(case)


def test_a_case_costs_little_more_than_by_hand() -> None:
    cases = [
        FluentCase(
            "My bill is too high",
            expected_trajectory=["classify", ToolCall("ticket", {"n": 1})],
            reference_response="ok",
            initial_state={"tier": "gold"},
            id=f"case-{n}",
        )
        for n in range(300)
    ]

    def by_hand(name: str) -> EvalCase:
        said = Content(role="user", parts=[Part(text="My bill is too high")])
        uses = [FunctionCall(name="classify", args={}), FunctionCall(name="ticket", args={"n": 1})]
        turn = Invocation(
            invocation_id="turn-1",
            user_content=said,
            final_response=Content(role="model", parts=[Part(text="ok")]),
            intermediate_data=IntermediateData(tool_uses=uses),
        )
        session = SessionInput(app_name="adk_fluent", user_id=name, state={"tier": "gold"})
        return EvalCase(eval_id=name, conversation=[turn], session_input=session)

    def took(work: Callable[[], Any]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    assert to_eval_case(cases[0]) == by_hand("case-0")
    ratios = [
        took(lambda: [to_eval_case(case) for case in cases])
        / took(lambda: [by_hand(f"case-{n}") for n in range(300)])
        for _ in range(15)
    ]
    assert median(ratios) < 1.3


# --- a set -------------------------------------------------------------------------------------


def test_runs_are_cases_of_their_own() -> None:
    cases = tuple(FluentCase("hi", id=name) for name in ("a", "a__run2", "b"))
    made = to_eval_set(SuiteData("billing v2/é", cases, num_runs=2, app_name="desk"))
    assert made.eval_set_id == "billing_v2"
    assert made.name == "billing v2/é"
    ids = [case.eval_id for case in made.eval_cases]
    assert ids == ["a", "a__run2_", "a__run2", "a__run2__run2", "b", "b__run2"]
    users = {case.session_input.user_id for case in made.eval_cases if case.session_input}
    assert users == set(ids)
    assert {c.session_input.app_name for c in made.eval_cases if c.session_input} == {"desk"}


@pytest.mark.parametrize("name", ["", "///", "ünïcödé", "a" * 300, "a b"])
def test_ids_of_sets_are_as_adk_takes_them(name: str) -> None:
    made = to_eval_set(SuiteData(name, (FluentCase("a"),)))
    assert re.fullmatch(r"[a-zA-Z0-9_]+", made.eval_set_id)


def test_two_cases_of_one_id() -> None:
    data = SuiteData("s", (FluentCase("a", id="x"), FluentCase("b", id="x")))
    with pytest.raises(EvalError, match="two cases 'x'"):
        to_eval_set(data)


# --- files -------------------------------------------------------------------------------------


def _everything() -> SuiteData:
    picture = Part(inline_data=Blob(data=b"\xff\x00\xfe", mime_type="image/png"))
    return SuiteData(
        "all",
        (
            FluentCase(
                [
                    Turn(
                        "one",
                        expected_trajectory=[ToolCall("t", {"x": shlex.quote, "y": 2})],
                        expected_response_contains=["a", re.compile("b+", re.IGNORECASE)],
                        state_assertions={"k": shlex.quote},
                    ),
                    Content(role="user", parts=[Part(text="look"), picture]),
                ],
                id="everything",
                expected_trajectory=["a", "b"],
                trajectory_match="in_order",
                expected_response_contains="ok",
                reference_response="fine",
                mock_tool_outputs={"t": [1, ValueError("no")], "u": {"call": 1}, "v": shlex.quote},
                initial_state={"a": None, "b": {"c": [1]}},
                state_assertions={"intent": "bill", "step.intent": 1, "sure": shlex.quote},
                target_node="node",
                tags=["t"],
                metadata={"owner": "me"},
                rubrics=["kind", Rubric("clear", "clarity")],
                max_cost_usd=0.1,
                max_tokens=5,
                max_latency_s=1.5,
                max_tool_calls=2,
                timeout_s=9,
                skip="later",
                xfail="bug",
            ),
            FluentCase(
                "hi",
                id="played",
                simulation=UserSimulation("m", persona="p", success_criteria="s", max_turns=3),
                expected_trajectory=["a"],
                initial_state={"a": 1},
            ),
            FluentCase("hi", id="scripted", simulation=UserSimulation(script=["b"])),
        ),
        ("tool_trajectory_avg_score", "own"),
        {"own": 0.5},
        2,
        "What it is for.",
        "desk",
    )


def test_everything_survives(tmp_path: Path) -> None:
    file = tmp_path / "all.evalset.json"
    data = _everything()
    write_eval_set(data, file)
    made = read_eval_set(file, REGISTRY)
    for name in ("name", "metrics", "thresholds", "num_runs", "description", "app_name"):
        assert getattr(made, name) == getattr(data, name)
    everything, played, scripted = made.cases
    mocks = everything.mock_tool_outputs
    assert mocks is not None
    assert isinstance(mocks["t"][1], ValueError)
    wanted = data.cases[0].mock_tool_outputs
    assert wanted is not None
    assert (mocks["t"][0], mocks["u"], mocks["v"]) == (1, {"call": 1}, shlex.quote)
    everything.mock_tool_outputs = wanted
    assert everything == data.cases[0]
    assert [played, scripted] == list(data.cases[1:])
    assert everything.location is not None
    assert '"everything"' in file.read_text().split("\n")[everything.location[1] - 1]

    write_eval_set(made, tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == file.read_text()


class Day(StateFieldRef):
    """A typed reference, as the wheel for state has them."""

    def encode(self, value: date | None) -> str | None:
        if value is not None and not isinstance(value, date):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            raise TypeError("this is no date")
        return value and value.isoformat()


class Desk:
    due = Day("due")
    tier = StateFieldRef("user:tier")


def test_typed_state_is_written_as_it_is_stored(tmp_path: Path) -> None:
    case = FluentCase(
        [Turn("one", state_assertions={Desk.due: date(2026, 1, 2)}), "two"],
        id="typed",
        initial_state={Desk.due: date(2026, 1, 1), Desk.tier: "gold", "since": [1]},
        state_assertions={Desk.due: date(2026, 1, 3), Desk.tier: None, "sure": shlex.quote},
    )
    stored = {"due": "2026-01-01", "user:tier": "gold", "since": [1]}
    made = to_eval_case(case)
    assert made.session_input is not None
    assert made.session_input.state == stored
    assert made.final_session_state == {"due": "2026-01-03", "user:tier": None}
    file, data = tmp_path / "s.json", SuiteData("s", (case,))
    write_eval_set(data, file)
    (tmp_path / "s.yaml").write_text(dump_yaml(data))
    (tmp_path / "s.jsonl").write_text(dump_jsonl(data))
    for read in (
        read_eval_set(file, REGISTRY),
        load_yaml(tmp_path / "s.yaml", REGISTRY),
        load_jsonl(tmp_path / "s.jsonl", registry=REGISTRY),
    ):
        back = _case(read)
        assert back.initial_state == stored
        assert back.state_assertions == {
            "due": "2026-01-03",
            "user:tier": None,
            "sure": shlex.quote,
        }
        assert back.turns[0].state_assertions == {"due": "2026-01-02"}


@pytest.mark.parametrize(
    "case",
    [
        FluentCase("a", id="case-a", initial_state={Desk.due: "soon"}),
        FluentCase("a", id="case-a", state_assertions={Desk.due: "soon"}),
        FluentCase([Turn("a", state_assertions={Desk.due: "soon"})], id="case-a"),
    ],
)
def test_a_value_that_is_none_of_its_field_is_not_written(tmp_path: Path, case: FluentCase) -> None:
    file, data = tmp_path / "s.json", SuiteData("s", (case,))
    with pytest.raises(EvalError, match=r"'case-a'.*'due'") as caught:
        write_eval_set(data, file)
    assert "date" in (caught.value.found or "")
    assert not file.exists()
    with pytest.raises(EvalError, match=r"'case-a'.*'due'"):
        dump_yaml(data)


async def test_a_run_expects_what_the_file_says() -> None:
    seen: list[Invocation] = []

    def looks(expected: list[Invocation]) -> bool:
        seen.extend(expected)
        return True

    def look() -> None:
        """Look."""

    def note(on: str, s: str) -> None:
        """Note."""

    case = FluentCase(
        [Turn("one", rubrics=["kind"]), "two"],
        id="one",
        expected_trajectory=["look", ToolCall("note", {"on": date(2026, 1, 2), "s": shlex.quote})],
        reference_response="done",
    )
    judges = [FluentJudge("looks", looks)]
    desk = Agent("desk").mock("done").tool(look).tool(note)
    await FluentEvalSuite("s", desk, [case], custom_judges=judges).run()
    made = to_eval_case(case).conversation
    assert made is not None
    assert [each.model_copy(update={"rubrics": None}) for each in made] == seen


def test_adk_reads_our_file(tmp_path: Path) -> None:
    file = tmp_path / "all.evalset.json"
    write_eval_set(_everything(), file)
    made = load_eval_set_from_file(str(file), "other")
    assert made == to_eval_set(_everything())
    assert made.eval_cases[0].conversation is not None
    parts = made.eval_cases[0].conversation[1].user_content.parts or []
    assert parts[1].inline_data is not None
    assert parts[1].inline_data.data == b"\xff\x00\xfe"


def test_edits_of_the_conversation_count(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    write_eval_set(
        SuiteData("s", (FluentCase("hi", id="a", tags=["t"], expected_trajectory=["x"]),)), file
    )
    file.write_text(file.read_text().replace('"hi"', '"hello"').replace('"x"', '"y"'))
    case = _case(read_eval_set(file))
    assert (case.input, case.expected_trajectory, case.tags) == ("hello", ["y"], ["t"])


def test_a_run_that_was_edited_is_a_case(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    write_eval_set(SuiteData("s", (FluentCase("hi", id="a", tags=["t"]),), num_runs=3), file)
    raw = json.loads(file.read_text())
    raw["eval_cases"][1]["conversation"][0]["user_content"]["parts"][0]["text"] = "hello"
    file.write_text(json.dumps(raw))
    made = read_eval_set(file)
    assert [(case.name, case.input, case.tags) for case in made.cases] == [
        ("a", "hi", ["t"]),
        ("a__run2", "hello", ["t"]),
    ]
    assert made.num_runs == 3


def test_the_app_is_the_folder_of_the_agent(tmp_path: Path) -> None:
    folder = tmp_path / "desk"
    folder.mkdir()
    (folder / "agent.py").touch()
    data = SuiteData("s", (FluentCase("hi", id="a"),))
    for path, options, app in (
        (folder / "s.json", {}, "desk"),
        (folder / "s.json", {"app_name": "mine"}, "mine"),
        (tmp_path / "s.json", {}, "adk_fluent"),
    ):
        write_eval_set(data, path, **options)
        assert json.loads(path.read_text())["eval_cases"][0]["session_input"]["app_name"] == app


def test_what_cannot_be_written_leaves_the_files(tmp_path: Path) -> None:
    file, config = tmp_path / "s.json", tmp_path / "config.json"
    file.write_text("old")
    nameless: Callable[[int], bool] = lambda value: value > 1  # noqa: E731  # that is the point
    lambdas = FluentCase("a", id="case-a", state_assertions={"s": nameless})
    with pytest.raises(EvalError, match="give it a name in a module, or leave it out") as caught:
        write_eval_set(SuiteData("s", (lambdas,)), file, config)
    assert "'case-a'" in str(caught.value)
    for fields in ({"initial_state": {"a": object()}}, {"state_assertions": {"a": {1: 2}}}):
        with pytest.raises(EvalError, match="cannot be written"):
            write_eval_set(SuiteData("s", (FluentCase("a", **fields),)), file, config)  # pyright: ignore[reportArgumentType]
    assert file.read_text() == "old"
    assert not config.exists()
    blocked = tmp_path / "file" / "s.json"
    blocked.parent.touch()
    with pytest.raises(EvalFileError, match="cannot be written"):
        write_eval_set(SuiteData("s"), blocked)


# --- configurations ----------------------------------------------------------------------------


def _trajectory(*cases: FluentCase) -> ToolTrajectoryCriterion:
    config = to_eval_config(SuiteData("s", cases, ("tool_trajectory_avg_score",)))
    metric = get_eval_metrics_from_config(config)[0]
    assert metric.threshold == 1.0
    assert metric.criterion is not None
    return ToolTrajectoryCriterion.model_validate(metric.criterion.model_dump())


@pytest.mark.parametrize(
    ("modes", "match"),
    [
        (["exact"], "EXACT"),
        (["in_order"], "IN_ORDER"),
        (["any_order"], "ANY_ORDER"),
        (["any_order", "in_order"], "IN_ORDER"),
        (["any_order", "exact"], "EXACT"),
        (["subset"], "EXACT"),
        (["f1", "any_order"], "EXACT"),
    ],
)
def test_trajectories_are_compared_in_the_strictest_way(modes: list[Any], match: str) -> None:
    cases = [FluentCase("a", expected_trajectory=["x"], trajectory_match=mode) for mode in modes]
    assert _trajectory(*cases, FluentCase("b")).match_type.name == match


def test_arguments_count_where_every_call_names_some() -> None:
    named = FluentCase("a", expected_trajectory=[ToolCall("x", {"n": 1})])
    assert _trajectory(named).model_dump()["ignore_args"] is False
    assert _trajectory(named, FluentCase("a", expected_trajectory=["x"])).model_dump()[
        "ignore_args"
    ]


def test_arguments_do_not_count_where_a_function_looks_at_one() -> None:
    call = ToolCall("x", {"n": 1, "name": shlex.quote})  # ADK's file has the number alone
    case = FluentCase("a", expected_trajectory=[call])
    assert _trajectory(case).model_dump()["ignore_args"] is True


@pytest.mark.parametrize(
    ("case", "asked"),
    [
        (FluentCase("a", expected_trajectory=["x"]), True),
        (FluentCase("a", expected_trajectory=[]), True),
        (FluentCase([Turn("a", expected_trajectory=["x"]), "b"]), True),
        (FluentCase("a", expected_response_contains="b"), False),
        # ADK compares no calls of a user who is played
        (
            FluentCase("a", expected_trajectory=["x"], simulation=UserSimulation(script=["b"])),
            False,
        ),
    ],
)
def test_calls_that_are_expected_are_compared(case: FluentCase, *, asked: bool) -> None:
    data = SuiteData("s", (FluentCase("a", id="free"), case), ("response_match_score",))
    names = ["tool_trajectory_avg_score"] if asked else []
    assert list(to_eval_config(data).criteria) == [*names, "response_match_score"]


def test_the_threshold_of_calls_that_are_expected() -> None:
    cases = (FluentCase("a", expected_trajectory=["x"]),)
    for thresholds, wanted in (({}, 1.0), ({"tool_trajectory_avg_score": 0.5}, 0.5)):
        config = to_eval_config(SuiteData("s", cases, (), thresholds))
        metric = get_eval_metrics_from_config(config)[0]
        assert (metric.metric_name, metric.threshold) == ("tool_trajectory_avg_score", wanted)


def test_metrics_in_a_configuration(tmp_path: Path) -> None:
    file, config = tmp_path / "s.json", tmp_path / "test_config.json"
    data = SuiteData(
        "s",
        (FluentCase("a", rubrics=["kind"]), FluentCase("b", rubrics=["kind"])),
        (
            "tool_trajectory_avg_score",
            "response_match_score",
            "rubric_based_final_response_quality_v1",
            "token_usage_v1",
            "own_judge",
        ),
        {"response_match_score": 0.6},
    )
    write_eval_set(data, file, config)
    criteria = json.loads(config.read_text())["criteria"]
    assert criteria == {
        "tool_trajectory_avg_score": {
            "threshold": 1.0,
            "match_type": "EXACT",
            "ignore_args": True,
        },
        "response_match_score": 0.6,
        "rubric_based_final_response_quality_v1": {
            "threshold": 0.8,
            "rubrics": [{"rubric_id": "rubric_1", "rubric_content": {"text_property": "kind"}}],
        },
    }
    # they stand in the configuration, and ADK must not take them twice
    assert "type" not in json.loads(file.read_text())["eval_cases"][0]["rubrics"][0]


def test_rubrics_that_differ_have_the_types_of_the_metrics(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    both = ("rubric_based_final_response_quality_v1", "rubric_based_tool_use_quality_v1")
    cases = (FluentCase("a", id="a", rubrics=["kind"]), FluentCase("b", id="b"))
    write_eval_set(SuiteData("s", cases, both[:1]), file)
    (rubric,) = json.loads(file.read_text())["eval_cases"][0]["rubrics"]
    assert (rubric["rubric_id"], rubric["type"]) == ("rubric_1", "FINAL_RESPONSE_QUALITY")
    write_eval_set(SuiteData("s", cases, both), file)
    rubrics = json.loads(file.read_text())["eval_cases"][0]["rubrics"]
    assert len({each["rubric_id"] for each in rubrics}) == 2
    assert read_eval_set(file).cases == cases


# --- files of others ---------------------------------------------------------------------------


def _write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


SNAKE = {
    "eval_set_id": "set_1",
    "name": "The set",
    "description": "What for",
    "eval_cases": [
        {
            "eval_id": "one",
            "conversation": [
                {
                    "invocation_id": "i",
                    "user_content": {"parts": [{"text": "roll"}], "role": "user"},
                    "final_response": {"parts": [{"text": "a "}, {"text": "3"}], "role": "model"},
                    "intermediate_data": {
                        "tool_uses": [{"name": "roll", "args": {"sides": 6}}, {"name": "say"}],
                        "intermediate_responses": [],
                    },
                }
            ],
            "session_input": {"app_name": "dice", "user_id": "u", "state": {"a": 1}},
            "final_session_state": {"rolled": 3},
            "rubrics": [{"rubric_id": "r", "rubric_content": {"text_property": "polite"}}],
        }
    ],
}


def _camel(value: Any) -> Any:
    if isinstance(value, list):
        return [_camel(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return value
    return {
        re.sub("_(.)", lambda found: found[1].upper(), key): _camel(each)  # pyright: ignore[reportUnknownArgumentType]
        for key, each in value.items()  # pyright: ignore[reportUnknownVariableType]
    }


@pytest.mark.parametrize("value", [SNAKE, _camel(SNAKE)])
def test_a_set_of_others(tmp_path: Path, value: dict[str, Any]) -> None:
    made = read_eval_set(_write(tmp_path / "x.test.json", value))
    assert (made.name, made.description, made.app_name) == ("The set", "What for", "dice")
    assert made.metrics == ()
    case = _case(made)
    assert case == FluentCase(
        "roll",
        id="one",
        expected_trajectory=[ToolCall("roll", {"sides": 6}), "say"],
        reference_response="a 3",
        initial_state={"a": 1},
        state_assertions={"rolled": 3},
        rubrics=[Rubric("polite", "r")],
    )


def test_an_eval_set_in_memory() -> None:
    assert read_eval_set(EvalSet.model_validate(SNAKE)).cases[0].input == "roll"


def test_a_file_of_one_case(tmp_path: Path) -> None:
    made = read_eval_set(_write(tmp_path / "dice.test.json", SNAKE["eval_cases"][0]))
    assert (made.name, _case(made).name) == ("dice", "one")


def test_calls_in_events_are_expected(tmp_path: Path) -> None:
    value = json.loads(json.dumps(SNAKE))
    call: dict[str, Any] = {"functionCall": {"name": "roll", "args": {}}}
    value["eval_cases"][0]["conversation"][0]["intermediate_data"] = {
        "invocation_events": [{"author": "a", "content": {"parts": [call, {"text": "x"}]}}]
    }
    assert _case(read_eval_set(_write(tmp_path / "s.json", value))).expected_trajectory == ["roll"]


def test_old_lists_of_queries(tmp_path: Path) -> None:
    file = _write(
        tmp_path / "dice.test.json",
        [
            {"query": "hi", "expected_tool_use": [], "reference": ""},
            {
                "query": "roll twice",
                "expected_tool_use": [
                    {"tool_name": "roll", "tool_input": {"n": 6}, "mock_tool_output": 3},
                    {"tool_name": "roll", "tool_input": {}, "mock_tool_output": 4},
                    {"tool_name": "say", "mock_tool_output": {"ok": True}},
                ],
                "expected_intermediate_agent_responses": [],
                "reference": "3 and 4",
            },
        ],
    )
    _write(
        tmp_path / "test_config.json",
        {"criteria": {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}},
    )
    made = read_eval_set(file)
    assert made.metrics == ("tool_trajectory_avg_score", "response_match_score")
    assert made.thresholds == {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
    assert _case(made) == FluentCase(
        [Turn("hi", expected_trajectory=[]), "roll twice"],
        id="dice",
        expected_trajectory=[ToolCall("roll", {"n": 6}), "roll", "say"],
        reference_response="3 and 4",
        mock_tool_outputs={"roll": [3, 4], "say": {"ok": True}},
    )


def test_old_lists_of_cases(tmp_path: Path) -> None:
    session = {"state": {"a": 1}, "app_name": "dice", "user_id": "u"}
    file = _write(
        tmp_path / "x.evalset.json",
        [
            {"name": "one", "data": [{"query": "hi"}], "initial_session": session},
            {"name": "two", "data": [{"query": "bye"}], "initial_session": {}},
        ],
    )
    made = read_eval_set(file)
    assert (made.name, made.app_name) == ("x", "dice")
    assert made.cases == (
        FluentCase("hi", id="one", initial_state={"a": 1}),
        FluentCase("bye", id="two"),
    )


def test_a_configuration_says_how(tmp_path: Path) -> None:
    file = _write(tmp_path / "s.json", SNAKE)
    rubrics = [{"rubricId": "q", "rubricContent": {"textProperty": "clear"}}]
    config = _write(
        tmp_path / "mine.json",
        {
            "criteria": {
                "tool_trajectory_avg_score": {"threshold": 0.9, "matchType": "in-order"},
                "rubric_based_final_response_quality_v1": {"threshold": 0.5, "rubrics": rubrics},
            }
        },
    )
    made = read_eval_set(file, config_path=config)
    assert made.thresholds["tool_trajectory_avg_score"] == 0.9
    case = _case(made)
    assert case.trajectory_match == "in_order"
    assert case.rubrics == [Rubric("polite", "r"), Rubric("clear", "q")]


def test_the_block_wins_over_the_file_beside(tmp_path: Path) -> None:
    data = SuiteData("s", (FluentCase("hi", id="a"),), ("response_match_score",))
    write_eval_set(data, tmp_path / "s.json")
    config = _write(tmp_path / "test_config.json", {"criteria": {"safety_v1": 0.1}})
    assert read_eval_set(tmp_path / "s.json").metrics == ("response_match_score",)
    assert read_eval_set(tmp_path / "s.json", config_path=config).metrics == ("safety_v1",)


def _scenario(**more: Any) -> dict[str, Any]:
    scenario = {"starting_prompt": "hi", "conversation_plan": "get a refund", **more}
    return {"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation_scenario": scenario}]}


def test_scenarios_are_simulations(tmp_path: Path) -> None:
    file = _write(tmp_path / "s.json", _scenario())
    simulation = _case(read_eval_set(file)).simulation
    assert simulation == UserSimulation(
        "gemini-2.5-flash", success_criteria="get a refund", max_turns=20
    )
    _write(
        tmp_path / "test_config.json",
        {"criteria": {}, "userSimulatorConfig": {"model": "m", "maxAllowedInvocations": 3}},
    )
    simulation = _case(read_eval_set(file)).simulation
    assert simulation is not None
    assert (simulation.model, simulation.max_turns) == ("m", 3)


def test_personas(tmp_path: Path) -> None:
    module = "google.adk.evaluation.simulation.user_simulator_personas"
    personas = pytest.importorskip(module, reason="google-adk 1.25 has no personas")
    expert = _case(read_eval_set(_write(tmp_path / "s.json", _scenario(user_persona="EXPERT"))))
    assert expert.simulation is not None
    assert isinstance(expert.simulation.persona, personas.UserPersona)
    assert expert.simulation.persona.id == "EXPERT"
    data = SuiteData("s", (expert,))
    write_eval_set(data, tmp_path / "t.json")
    assert read_eval_set(tmp_path / "t.json").cases == (expert,)
    with pytest.raises(EvalFileError, match="persona"):
        read_eval_set(_write(tmp_path / "s.json", _scenario(user_persona="NOBODY")))


def test_fields_that_others_added_are_metadata(tmp_path: Path) -> None:
    if EvalCase.model_config.get("extra") != "allow":
        pytest.skip("google-adk 1.25 forbids them")
    value = json.loads(json.dumps(SNAKE))
    value["eval_cases"][0]["ticket"] = "T-1"
    assert _case(read_eval_set(_write(tmp_path / "s.json", value))).metadata == {"ticket": "T-1"}


# --- files that have no meaning ----------------------------------------------------------------


def _broken(**changes: Any) -> dict[str, Any]:
    """Our file, with a change of its block."""
    return {**SNAKE, "adk_fluent": {"schema": 1, "cases": {}, **changes}}


BROKEN_SETS: list[tuple[Any, str, str]] = [
    ("{", "", "broken JSON"),
    ('{"eval_cases": [], "eval_cases": []}', "", "twice"),
    ("3", "", "mapping"),
    ({"cases": []}, "", "eval_cases"),
    ({"eval_cases": [{"eval_id": "a", "conversation": []}]}, "eval_cases[0].conversation", ""),
    ({"eval_cases": [{"eval_id": "a"}]}, "eval_cases[0]", "conversation"),
    (
        {"eval_cases": [{"eval_id": "a", "conversation": [{"final_response": {}}]}]},
        "eval_cases[0].conversation[0].user_content",
        "required",
    ),
    (
        {
            "eval_cases": [
                {
                    "evalId": "a",
                    "conversation": [
                        {"userContent": {}, "intermediateData": {"toolUses": [{"name": 3}]}}
                    ],
                }
            ]
        },
        "eval_cases[0].conversation[0].intermediateData.toolUses[0].name",
        "",
    ),
    (
        {"eval_cases": [SNAKE["eval_cases"][0], SNAKE["eval_cases"][0]]},
        "eval_cases[1].id",
        "two cases 'one'",
    ),
    ([{"query": ""}], "[0].query", "empty"),
    ([{"query": "a"}, {"qery": "b"}], "[1].query", "text"),
    ([{"query": "a", "expected_tool_use": [{}]}], "[0].expected_tool_use[0].tool_name", ""),
    (
        [{"query": "a", "expected_tool_use": [{"tool_name": "t", "tool_input": 3}]}],
        "tool_input",
        "mapping",
    ),
    ([{"name": "a"}], "[0]", "list of {name, data}"),
    ([{"name": "a", "data": []}], "[0].data", "empty"),
    ([3], "[0]", "mapping"),
    (_broken(schema=2), "adk_fluent.schema", "upgrade"),
    (_broken(schema="1"), "adk_fluent.schema", "version"),
    ({**SNAKE, "adk_fluent": []}, "adk_fluent", "mapping"),
    (_broken(cases=[]), "adk_fluent.cases", "mapping"),
    (_broken(cases={"one": 3}), "adk_fluent.cases.one", "mapping"),
    (_broken(cases={"one": {"tgas": []}}), "adk_fluent.cases.one.tgas", "'tags'"),
    (_broken(cases={"one": {"turns": [{}, {}]}}), "adk_fluent.cases.one.turns", "2, and"),
    (_broken(cases={"one": {"max_tokens": "x"}}), "adk_fluent.cases.one.max_tokens", "number"),
    (_broken(num_runs=0), "adk_fluent.num_runs", "1 up"),
    (
        _broken(cases={"one": {"state_assertions": {"s": {"call": "os:system"}}}}),
        "adk_fluent.cases.one.state_assertions.s.call",
        "registry",
    ),
]


@pytest.mark.parametrize(("value", "field", "words"), BROKEN_SETS)
def test_sets_that_have_no_meaning(tmp_path: Path, value: Any, field: str, words: str) -> None:
    with pytest.raises(EvalFileError) as caught:
        read_eval_set(_write(tmp_path / "s.json", value))
    assert field in caught.value.field
    assert words in str(caught.value)
    assert str(tmp_path / "s.json") in str(caught.value)


BROKEN_CONFIGS: list[tuple[Any, str]] = [
    ([], ""),
    ({"criteria": {"a": "x"}}, "criteria.a"),
    ({"criteria": {"a": {}}}, "criteria.a.threshold"),
    (
        {"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "match_type": "sometimes"}}},
        "match_type",
    ),
    (
        {"criteria": {"tool_trajectory_avg_score": {"threshold": 1, "match_type": 7}}},
        "match_type",
    ),
    ({"criteria": {"a": {"threshold": 1, "rubrics": [{}]}}}, "rubrics[0]"),
    ({"user_simulator_config": {"model": 3}}, "user_simulator_config.model"),
]


@pytest.mark.parametrize(("value", "field"), BROKEN_CONFIGS)
def test_configurations_that_have_no_meaning(tmp_path: Path, value: Any, field: str) -> None:
    config = _write(tmp_path / "test_config.json", value)
    with pytest.raises(EvalFileError) as caught:
        read_eval_set(_write(tmp_path / "s.json", SNAKE))
    assert field in caught.value.field
    assert str(config) in str(caught.value)


def test_broken_json_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(EvalFileError) as caught:
        read_eval_set(_write(tmp_path / "s.json", '{\n "eval_cases": [\n  }\n'))
    assert caught.value.line == 3


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EvalFileError, match="cannot be read"):
        read_eval_set(tmp_path / "s.json")


# --- what is said of files ------------------------------------------------------------------------

_PLAIN: dict[str, Any] = {
    "eval_set_id": "s",
    "eval_cases": [
        {
            "eval_id": 'a "b" {',
            "conversation": [
                {
                    "invocation_id": "1",
                    "user_content": {"role": "user", "parts": [{"text": "hi, [you]"}]},
                }
            ],
        }
    ],
}


def _line(text: str, part: str) -> int:
    return text[: text.index(part)].count("\n") + 1


@pytest.mark.parametrize("indent", [1, None])
@pytest.mark.parametrize("one", [False, True])
def test_errors_of_adks_files_have_lines(tmp_path: Path, one: bool, indent: int | None) -> None:
    value = json.loads(json.dumps(_PLAIN))
    value["eval_cases"][0]["conversation"][0]["user_content"]["parts"].append({"text": [7]})
    text = json.dumps(value["eval_cases"][0] if one else value, indent=indent)
    file = tmp_path / "s.evalset.json"
    file.write_text(text, "utf-8")
    with pytest.raises(EvalFileError) as caught:
        read_eval_set(file)
    assert caught.value.field == "eval_cases[0].conversation[0].user_content.parts[1].text"
    assert caught.value.line == text[: text.rindex('"text"')].count("\n") + 1


def test_a_field_of_a_newer_adk_is_told(tmp_path: Path) -> None:
    value = json.loads(json.dumps(_PLAIN))
    value["eval_cases"][0]["conversation"][0]["hologram"] = {}
    text = json.dumps(value, indent=2)
    file = tmp_path / "s.evalset.json"
    file.write_text(text, "utf-8")
    with pytest.raises(EvalFileError, match="has no field 'hologram' there") as caught:
        read_eval_set(file)
    assert caught.value.line == _line(text, '"hologram"')
    assert "upgrade google-adk" in str(caught.value.help)


def test_errors_of_the_block_and_of_the_configuration_have_lines(tmp_path: Path) -> None:
    file, config = tmp_path / "s.evalset.json", tmp_path / "c.json"
    text = json.dumps({**_PLAIN, "adk_fluent": {"schema": 1, "metrics": 5}}, indent=2)
    file.write_text(text, "utf-8")
    with pytest.raises(EvalFileError) as caught:
        read_eval_set(file)
    assert caught.value.line == _line(text, '"metrics"')
    file.write_text(json.dumps(_PLAIN), "utf-8")
    text = json.dumps({"criteria": {"safety_v1": 1, "response_match_score": "x"}}, indent=2)
    config.write_text(text, "utf-8")
    with pytest.raises(EvalFileError) as caught:
        read_eval_set(file, config_path=config)
    assert caught.value.path == str(config)
    assert caught.value.line == _line(text, '"response_match_score"')


@pytest.mark.parametrize("indent", [None, 0, 3])
def test_lines_of_all_values(indent: int | None) -> None:
    text = json.dumps(
        {'a\n"}': [[], {}, [1, {"b": None, "c": [True, "],{"]}], "x"], "": {"é": -1.5e3}},
        indent=indent,
        ensure_ascii=False,
    )
    lines = JsonLines(f"\n{text}\n")
    ways = {
        ('a\n"}',),
        *((key, n) for key in ('a\n"}',) for n in range(4)),
        ('a\n"}', 2, 0),
        ('a\n"}', 2, 1),
        ('a\n"}', 2, 1, "b"),
        ('a\n"}', 2, 1, "c"),
        ('a\n"}', 2, 1, "c", 0),
        ('a\n"}', 2, 1, "c", 1),
        ("",),
        ("", "é"),
    }
    assert set(lines) == ways
    assert len(lines) == len(ways)
    assert lines["", "é"] == text[: text.index('"é"')].count("\n") + 2
    assert lines.get(("no",)) is None


def _exported(tmp_path: Path) -> tuple[Path, SuiteData]:
    agent = tmp_path / "desk"
    agent.mkdir()
    file = agent / "orders.evalset.json"
    cases = (
        FluentCase("where is A1?", id="where", expected_trajectory=["look_up"], tags=["orders"]),
        FluentCase("hello", id="hello", expected_response_contains="hi"),
        FluentCase("bye", id="bye", reference_response="bye"),
    )
    data = SuiteData("orders", cases)
    write_eval_set(data, file)
    return file, data


def test_a_block_that_adks_editor_left_out_is_told(tmp_path: Path) -> None:
    file, data = _exported(tmp_path)
    manager = LocalEvalSetsManager(str(tmp_path))
    case = manager.get_eval_case("desk", "orders", "hello")
    assert case is not None
    assert case.conversation
    case.conversation[0].user_content = Content(role="user", parts=[Part(text="good day")])
    manager.update_eval_case("desk", "orders", case)  # what `adk web` does
    with pytest.warns(EvalFileWarning, match="block 'adk_fluent' is gone.* ADK's own editors"):
        read = read_eval_set(file)
    cases = {each.name: each for each in read.cases}  # ADK 1.25 changes their order
    assert set(cases) == {each.name for each in data.cases}
    assert cases["hello"].input == "good day"
    assert cases["where"].expected_trajectory == ["look_up"]  # ADK has a field for it
    assert not cases["where"].tags
    other = json.loads(json.dumps(_PLAIN))
    file.write_text(json.dumps(other), "utf-8")  # of others: no reason to warn
    read_eval_set(file)


def test_a_block_with_cases_that_are_gone_is_told(tmp_path: Path) -> None:
    file, _ = _exported(tmp_path)
    value = json.loads(file.read_text("utf-8"))
    where, hello, _ = value["eval_cases"]
    where["eval_id"] = "where_is"
    value["eval_cases"] = [where, hello]  # the third has nothing in the block to be lost
    text = json.dumps(value, indent=2)
    file.write_text(text, "utf-8")
    with pytest.warns(EvalFileWarning) as told:
        read_eval_set(file)
    (each,) = told
    line = text[: text.rindex('"where"')].count("\n") + 1
    assert str(each.message) == (
        f"{file}:{line} (adk_fluent.cases.where): tags of a case that the file does not have; if "
        "it is called 'where_is' now, rename it here, too"
    )


def test_runs_of_cases_are_no_orphans(tmp_path: Path) -> None:
    file = tmp_path / "s.evalset.json"
    write_eval_set(SuiteData("s", (FluentCase("a", id="a", tags=["t"]),), num_runs=3), file)
    read_eval_set(file)
    value = json.loads(file.read_text("utf-8"))
    del value["eval_cases"][1:]
    file.write_text(json.dumps(value), "utf-8")
    read_eval_set(file)  # the case is there, with all that belongs to it


@pytest.mark.filterwarnings("ignore::adk_fluent.eval.EvalFileWarning")  # the block is gone
def test_who_judges_is_kept(tmp_path: Path) -> None:
    file, config = tmp_path / "s.evalset.json", tmp_path / "test_config.json"
    suite = FluentEvalSuite(
        "s",
        Agent("a").mock("x"),
        [FluentCase("Hi", reference_response="Hello", id="a")],
        ["final_response_match_v2", "response_match_score"],
        judge_model="gemini-x",
        judge_samples=3,
    )
    suite.to_eval_set_file(file, config_path=config)
    criteria = json.loads(config.read_text("utf-8"))["criteria"]
    options = {"judge_model": "gemini-x", "num_samples": 3}
    assert criteria["final_response_match_v2"]["judge_model_options"] == options
    assert criteria["response_match_score"] == 0.8
    asked = get_eval_metrics_from_config(to_eval_config(suite.to_data()))
    [judged] = [each for each in asked if each.metric_name == "final_response_match_v2"]
    assert judged.criterion is not None
    made = LlmAsAJudgeCriterion.model_validate(judged.criterion.model_dump())
    assert made.judge_model_options.judge_model == "gemini-x"
    for has_block in (True, False):
        if not has_block:
            value = json.loads(file.read_text("utf-8"))
            del value["adk_fluent"]
            file.write_text(json.dumps(value), "utf-8")
        again = FluentEvalSuite.from_eval_set(file, suite.pipeline)
        assert (again.judge_model, again.judge_samples) == ("gemini-x", 3)
    other = FluentEvalSuite.from_eval_set(file, suite.pipeline, judge_model="mine")
    assert (other.judge_model, other.judge_samples) == ("mine", 3)


@pytest.mark.parametrize("ignored", [True, False, None])
def test_arguments_that_a_configuration_ignores(tmp_path: Path, ignored: Any) -> None:
    def turn(number: int) -> dict[str, Any]:
        uses = [{"name": "find", "args": {"order": f"A{number}"}}]
        return {
            "invocation_id": str(number),
            "user_content": {"role": "user", "parts": [{"text": "hi"}]},
            "intermediate_data": {"tool_uses": uses},
        }

    cases = [
        {"eval_id": "one", "conversation": [turn(1)]},
        {"eval_id": "two", "conversation": [turn(1), turn(2)]},
    ]
    file, config = tmp_path / "s.evalset.json", tmp_path / "test_config.json"
    file.write_text(json.dumps({"eval_set_id": "s", "eval_cases": cases}), "utf-8")
    criterion: dict[str, Any] = {"threshold": 1}
    if ignored is not None:
        criterion["ignoreArgs"] = ignored
    config.write_text(json.dumps({"criteria": {"tool_trajectory_avg_score": criterion}}), "utf-8")
    calls = [
        call
        for case in read_eval_set(file).cases
        for turn in case.turns
        for call in turn.trajectory or ()
    ]
    assert [call.name for call in calls] == ["find"] * 3
    given = [{"order": "A1"}, {"order": "A1"}, {"order": "A2"}]
    assert [call.args for call in calls] == ([None] * 3 if ignored else given)
    criterion["ignoreArgs"] = "some"
    config.write_text(json.dumps({"criteria": {"tool_trajectory_avg_score": criterion}}), "utf-8")
    with pytest.raises(EvalFileError, match="ignore_args: is neither true nor false"):
        read_eval_set(file)


def test_a_suite_has_one_judge(tmp_path: Path) -> None:
    file, config = tmp_path / "s.evalset.json", tmp_path / "test_config.json"
    file.write_text(json.dumps(_PLAIN), "utf-8")
    criteria: dict[str, Any] = {
        "final_response_match_v2": {"threshold": 0.7, "judge_model_options": {"judge_model": "x"}},
        "hallucinations_v1": {"threshold": 0.5, "judge_model_options": {"num_samples": 2}},
    }
    config.write_text(json.dumps({"criteria": criteria}), "utf-8")
    with pytest.warns(EvalFileWarning, match="several judges") as told:
        data = read_eval_set(file)
    assert [str(each.message).rpartition(": ")[2] for each in told] == [
        "judge_model='x'",
        "judge_samples=2",
    ]
    assert data.judge_model is None
    criteria["hallucinations_v1"]["judge_model_options"] = {"num_samples": 0}
    config.write_text(json.dumps({"criteria": criteria}), "utf-8")
    with pytest.raises(EvalFileError, match="num_samples is no number from 1 up"):
        read_eval_set(file)


def test_what_a_configuration_says_of_judges_is_told(tmp_path: Path) -> None:
    file, config = tmp_path / "s.evalset.json", tmp_path / "test_config.json"
    file.write_text(json.dumps(_PLAIN), "utf-8")
    criteria = {
        "final_response_match_v2": {
            "threshold": 0.7,
            "judgeModelOptions": {
                "judge_model": "gemini-x",
                "numSamples": 3,
                "parallelismLimit": 2,
            },
        },
        "hallucinations_v1": {"threshold": 0.5, "evaluate_intermediate_nl_responses": True},
        "tool_trajectory_avg_score": {"threshold": 1, "match_type": "EXACT", "ignore_args": True},
        "mine": 0.25,
    }
    custom = {"mine": {"code_config": {"name": "shop.metrics.mine"}}}
    config.write_text(json.dumps({"criteria": criteria, "custom_metrics": custom}), "utf-8")
    with pytest.warns(EvalFileWarning) as told:
        data = read_eval_set(file)
    texts = [str(each.message).removeprefix(f"{config}:1 ") for each in told]
    criterion = "(criteria.final_response_match_v2"
    function = "the_function, threshold=0.25"
    for text, parts in zip(
        texts,
        [
            (f"{criterion}): ", "judge_model_options.parallelismLimit: not taken over"),
            ("(criteria.hallucinations_v1): ", "evaluate_intermediate_nl_responses: not taken"),
            (
                "(custom_metrics.mine): ",
                f"custom_judges=[FluentJudge('mine', {function})]",
            ),
        ],
        strict=True,
    ):
        assert text.startswith(parts[0])
        assert parts[1] in text
    assert data.metrics == tuple(criteria)
    assert (data.judge_model, data.judge_samples) == ("gemini-x", 3)
    assert "mine" not in data.thresholds  # a judge has its own
    with pytest.warns(EvalFileWarning):
        suite = FluentEvalSuite.from_eval_set(file, Agent("a").mock("x"))
    with pytest.raises(EvalError, match="there is no metric 'mine'"):
        suite.check()  # never left out silently


def test_our_own_configuration_is_no_reason_to_warn(tmp_path: Path) -> None:
    file, config = tmp_path / "s.evalset.json", tmp_path / "c.json"
    case = FluentCase("a", id="a", expected_trajectory=["t"], rubrics=["be kind"])
    metrics = ("rubric_based_final_response_quality_v1", "final_response_match_v2")
    write_eval_set(SuiteData("s", (case,), metrics), file, config)
    read_eval_set(file, config_path=config)
