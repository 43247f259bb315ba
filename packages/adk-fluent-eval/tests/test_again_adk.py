"""Parts of suites, other models, kept answers, resumed runs, and services that refuse."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from eval_desk import answer, desk, look_up, run
from google.adk.agents.llm_agent import LlmAgent
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool

from adk_fluent import Agent, Middleware
from adk_fluent.backends.adk import to_runner
from adk_fluent.eval import (
    EvalError,
    EvalFileError,
    FluentCase,
    FluentEvalSuite,
    FluentJudge,
    MetricStatus,
    ResponseCache,
    Status,
    ToolCall,
)
from adk_fluent.eval._running import _pace
from adk_fluent.testing import ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from adk_fluent.protocol import ModelCall, ModelReply, NextModel

pytestmark = pytest.mark.adk

CASES = [FluentCase(f"order {n}", id=f"c{n}", expected_trajectory=["look_up"]) for n in range(5)]


def never(_: Any) -> str:
    raise AssertionError


def test_shards_are_disjoint_and_complete() -> None:
    suite = FluentEvalSuite("s", desk(), CASES)
    parts = [suite.run_sync(shard=(n, 2)) for n in (1, 2)]
    assert [[each.id for each in part.outcomes] for part in parts] == [
        ["c0", "c2", "c4"],
        ["c1", "c3"],
    ]
    assert parts[1].notes == ["shard 2 of 2"]


# --- models --------------------------------------------------------------------------------------


def test_a_matrix_runs_every_model_in_place_of_the_pipelines() -> None:
    inner = LlmAgent(name="inner", model=ScriptedModel(default=never), description="Helps.")
    native = LlmAgent(
        name="native",
        model=ScriptedModel(default=never),
        tools=[look_up, AgentTool(inner)],
        output_key="answer",
    )
    case = FluentCase("my order", id="a", expected_trajectory=["look_up"])
    good, bad = ScriptedModel(default=answer, model="good"), ScriptedModel("no", model="bad")
    for pipeline in (desk(answer=never), native):
        suite = FluentEvalSuite("s", pipeline, [case, FluentCase("hi", id="b", max_tokens=9999)])
        bad = ScriptedModel(default="no", model="bad")
        matrix = asyncio.run(suite.matrix([bad, good]))
        assert list(matrix) == ["bad", "good"]
        assert [each.pass_rate for each in matrix.values()] == [0.5, 1.0]
        assert "every model was replaced by good" in matrix["good"].notes
        table = matrix.to_markdown()
        assert "| bad   | 50%" in table


@pytest.mark.parametrize(
    ("models", "options", "what"),
    [
        ([], {}, "models= is empty"),
        (["no-such-model"], {}, "model= cannot be used"),
        ([ScriptedModel(model="m"), ScriptedModel(model="m")], {}, "two models have the same name"),
        (["gemini-2.5-flash"], {"journal": "j"}, "takes no model= and no journal="),
    ],
)
def test_a_matrix_is_checked_before_any_model_call(models: Any, options: Any, what: str) -> None:
    suite = FluentEvalSuite("s", desk(answer=never), CASES)
    with pytest.raises(EvalError, match=what):
        asyncio.run(suite.matrix(models, **options))


# --- kept answers --------------------------------------------------------------------------------


async def rate(actual_response: str, ask: Any) -> float:
    return float(await ask(f"rate {actual_response}"))


def test_answers_are_recorded_once_and_replayed_without_a_model(tmp_path: Path) -> None:
    def suite(answer: Any, judge: Any) -> FluentEvalSuite:
        judges = [FluentJudge("rate", rate, model=ScriptedModel(default=judge))]
        return FluentEvalSuite("s", desk(answer=answer), CASES[:2], custom_judges=judges)

    recorded = suite(answer, "0.75").run_sync(cache=tmp_path, num_runs=2)
    assert recorded.ok, recorded.to_markdown()
    assert len(list(tmp_path.glob("*.json"))) == 2 * 2 * 3
    replay = ResponseCache(tmp_path, "replay")
    nowhere = suite(never, never).run_sync(cache=ResponseCache(tmp_path / "no", "replay"))
    assert "there is no such folder" in str(nowhere.outcomes[0].error)
    again = suite(never, never).run_sync(cache=replay, num_runs=2)
    assert [each.response for each in again.outcomes] == ["it is shipped"] * 4
    assert again.per_metric["rate"].mean == 0.75
    assert again.tokens == recorded.tokens

    third = suite(never, never).run_sync(cache=replay, num_runs=3).outcome("c0", 3)
    assert third.status is Status.ERROR
    assert "no answer is kept for a model call" in str(third.error)
    changed = desk(answer=never).instruct("Be brief.")
    outcome = FluentEvalSuite("s", changed, CASES[:1]).run_sync(cache=replay).outcomes[0]
    assert "no answer is kept" in str(outcome.error)
    fresh = suite("anew", "1").run_sync(cache=ResponseCache(tmp_path, "record"))
    assert [each.response for each in fresh.outcomes] == ["anew"] * 2


class Asked(Middleware):
    """Notes which answers a model was asked for."""

    def __init__(self) -> None:
        self.asked: list[bool] = []

    async def wrap_model_request(self, call: ModelCall, next: NextModel) -> ModelReply:
        reply = await next(call)
        self.asked.append(reply.asked)
        return reply


def test_a_kept_answer_is_told_from_that_of_a_model(tmp_path: Path) -> None:
    seen = Asked()
    for _ in range(2):
        assert run(CASES[0], desk().middleware(seen), cache=tmp_path).passed
    assert seen.asked == [True, True, False, False]


def test_errors_are_not_kept_and_broken_answers_are_named(tmp_path: Path) -> None:
    case = FluentCase("hi", id="a", expected_response_contains="good")
    failing = Agent("a", ScriptedModel(reply(error_code="SAFETY"), default="x"))
    assert run(case, failing, cache=tmp_path).status is Status.ERROR
    assert not list(tmp_path.iterdir())
    assert run(case, cache=tmp_path).passed
    [file] = tmp_path.iterdir()
    file.write_text('{"responses": 3}', "utf-8")
    assert "not an answer that this version kept" in str(run(case, cache=tmp_path).error)


def test_a_full_disk_costs_the_kept_answer_and_not_the_case(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    report = FluentEvalSuite("s", desk(), CASES[:1]).run_sync(cache=tmp_path / "file")
    assert report.ok
    assert "the file cannot be written" in report.notes[0]


class Again(Middleware):
    """Asks a model that failed once more."""

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        try:
            return await next(call)
        except ConnectionError:
            return await next(call)


def test_kept_answers_are_below_middlewares(tmp_path: Path) -> None:
    failed: list[str] = []

    def once(asked: Any) -> Any:
        if not failed:
            failed.append(asked.prompt)
            raise ConnectionError
        return answer(asked)

    case = CASES[0]
    assert run(case, desk(answer=once).middleware(Again()), cache=tmp_path).passed
    replay = ResponseCache(tmp_path, "replay")
    assert run(case, desk(answer=never).middleware(Again()), cache=replay).passed


# --- resuming ------------------------------------------------------------------------------------


def test_a_journal_resumes_what_is_done(tmp_path: Path) -> None:
    journal, asked = tmp_path / "j.jsonl", list[str]()

    def counted(request: Any) -> Any:
        asked.append(request.prompt)
        if "order 3" in request.prompt and len(asked) < 99:
            raise ValueError("no model")
        return answer(request)

    suite = FluentEvalSuite("s", desk(answer=counted), CASES)
    first = suite.run_sync(journal=journal, case_ids=["c0", "c1", "c3"])
    assert [each.status for each in first.outcomes] == ["passed", "passed", "error"]
    with journal.open("a", encoding="utf-8") as file:
        # another process began at the same time, and was killed
        file.write(f"{journal.read_text('utf-8').splitlines()[0]}\n")
        file.write('{"digest": "cut off')
    asked.clear()
    asked.extend(["x"] * 100)
    second = suite.run_sync(journal=journal)
    assert second.ok
    # an error is run again, and what was never run
    assert {each for each in asked if each.startswith("order")} == {"order 2", "order 3", "order 4"}
    assert len(second.case_results) == 5
    assert second.outcome("c0").session_id == first.outcome("c0").session_id

    asked.clear()
    asked.extend(["x"] * 100)
    changed = [FluentCase("order 0", id="c0", expected_trajectory=[]), *CASES[1:]]
    FluentEvalSuite("s", desk(answer=counted), changed).run_sync(journal=journal)
    assert {each for each in asked if each.startswith("order")} == {"order 0"}
    asked.clear()
    asked.extend(["x"] * 100)
    suite.pipeline = desk(answer=counted).instruct("Be kind.")
    suite.run_sync(journal=journal)
    assert {each for each in asked if each.startswith("order")} == {f"order {n}" for n in range(5)}


def mocks(second: Exception) -> dict[str, Any]:
    return {"look_up": [{"status": "on its way"}, second]}


@pytest.mark.parametrize(
    ("field", "kept", "changed"),
    [
        ("expected_response_contains", re.compile("way"), re.compile("lost")),
        ("mock_tool_outputs", mocks(KeyError("a")), mocks(KeyError("b"))),
    ],
)
def test_a_journal_has_no_verdict_of_a_changed_case(
    tmp_path: Path, field: str, kept: Any, changed: Any
) -> None:
    def outcome(value: Any) -> Any:
        fields: dict[str, Any] = {field: value}
        case = FluentCase("order 1", ["look_up"], id="a", **fields)
        return FluentEvalSuite("s", desk(), [case]).run_sync(journal=tmp_path / "j").outcomes[0]

    first = outcome(kept)
    assert first.status is not Status.ERROR, first.reasons
    assert outcome(kept).session_id == first.session_id
    assert outcome(changed).session_id != first.session_id


def test_a_journal_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    FluentEvalSuite("one", desk(), CASES[:1]).run_sync(journal=tmp_path / "j")
    suite = FluentEvalSuite("two", desk(answer=never), CASES)
    (tmp_path / "other").write_text('{"precious": 1}', "utf-8")
    for name in ("j", "other"):
        with pytest.raises(EvalFileError, match="not a journal of this suite"):
            suite.run_sync(journal=tmp_path / name)
    assert (tmp_path / "other").read_text("utf-8") == '{"precious": 1}'
    lines = (tmp_path / "j").read_text("utf-8").splitlines(keepends=True)
    (tmp_path / "j").write_text(lines[0] + "{broken\n" + lines[1], "utf-8")
    with pytest.raises(EvalFileError, match="invalid JSON") as caught:
        FluentEvalSuite("one", desk(), CASES).run_sync(journal=tmp_path / "j")
    assert caught.value.line == 2
    report = FluentEvalSuite("s", desk(), CASES[:1]).run_sync(journal=tmp_path / "j" / "x")
    assert report.ok
    assert "the journal cannot be written" in report.notes[0]


HOLDER = """
import sys
from adk_fluent.eval._running._kept import Journal
with Journal(sys.argv[1], "s").held():
    print("at work", flush=True)
    sys.stdin.read()
"""


def test_a_journal_that_another_run_has_is_refused_until_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "j"
    suite = FluentEvalSuite("s", desk(), CASES[:1])
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline().strip() == b"at work"
        with pytest.raises(EvalFileError, match="another run is at work with this journal"):
            suite.run_sync(journal=path)
        other.kill()
    assert suite.run_sync(journal=path).ok
    assert suite.run_sync(journal=path).ok


@contextmanager
def largest_file(size: int) -> Generator[None]:
    """Let no file of this process grow beyond a size."""
    import resource  # not on Windows

    was = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, was[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, was)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of files are of POSIX")
def test_a_disk_that_is_full_for_a_while_spoils_no_journal(tmp_path: Path) -> None:
    """The kernel writes a part and refuses the rest, as it does on a full disk."""
    path = tmp_path / "j"
    asked = list[str]()

    def counted(request: Any) -> Any:
        asked.append(request.prompt)
        return answer(request)

    suite = FluentEvalSuite("s", desk(answer=counted), CASES[:4])
    for fits, ids in ((20, ["c0"]), (500, ["c1"])):  # within the first line, within an outcome
        with largest_file(fits):
            report = suite.run_sync(journal=path, case_ids=ids)
        assert report.ok
        assert "the journal cannot be written" in report.notes[0]
        assert not path.read_bytes()
    assert not suite.run_sync(journal=path, case_ids=["c2"]).notes
    kept = path.read_bytes()
    with largest_file(len(kept) + 40):
        assert suite.run_sync(journal=path, case_ids=["c3"]).notes
    assert path.read_bytes() == kept
    asked.clear()
    assert suite.run_sync(journal=path).ok
    assert {each for each in asked if each.startswith("order")} == {"order 0", "order 1", "order 3"}


@pytest.mark.parametrize("cut", [0, 1])
def test_a_journal_may_end_within_a_character(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "j"
    suite = FluentEvalSuite("größe", desk(), CASES[:1])
    suite.run_sync(journal=path)
    head, outcome, _ = path.read_bytes().split(b"\n")
    broken = (head, head + b"\n" + outcome + b"\n" + '{"é'.encode())[cut]
    end = broken.index("ö".encode()) + 1 if not cut else len(broken) - 1
    path.write_bytes(broken[:end])
    assert suite.run_sync(journal=path).ok
    assert path.read_bytes().startswith(head + b"\n" + (outcome if cut else b"{"))
    assert path.read_text("utf-8").count("\n") == 2


# --- services that refuse ------------------------------------------------------------------------


class BusyError(Exception):
    code = 429

    def __init__(self, seconds: int = 0) -> None:
        self.details = {"error": {"details": [{"retryDelay": f"{seconds}s"}]}}


def test_a_refused_run_is_repeated_alone_with_others_later() -> None:
    tries, inside, most = dict[str, int](), [0], [0]

    async def busy(asked: Any) -> Any:
        inside[0] += 1
        most[0] = max(most[0], inside[0])
        try:
            await asyncio.sleep(0)
            tries[asked.prompt] = tries.get(asked.prompt, 0) + 1
            if tries[asked.prompt] < 3:
                raise BusyError
            return "good"
        finally:
            inside[0] -= 1

    cases = [FluentCase(f"{n}", id=f"c{n}", expected_response_contains="good") for n in range(6)]
    suite = FluentEvalSuite("s", Agent("a", ScriptedModel(default=busy)), cases)
    assert suite.run_sync(parallelism=4).ok
    assert set(tries.values()) == {3}
    assert most[0] <= 4


def test_a_service_that_refuses_for_long_is_an_error_and_reported_codes_count(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_pace, "_FIRST_WAIT", 0.0)
    case = FluentCase("hi", id="a", expected_response_contains="good")
    model = ScriptedModel(reply(error_code="RESOURCE_EXHAUSTED"), reply(error_code="429"), "good")
    assert run(case, Agent("a", model)).passed

    def refuse(_: Any) -> str:
        raise BusyError(90_000)

    assert "BusyError" in str(run(case, Agent("a", ScriptedModel(default=refuse))).error)
    model = ScriptedModel(default=reply(error_code="SAFETY"))
    assert run(case, Agent("a", model)).status is Status.ERROR


def test_a_refused_judge_asks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pace, "_FIRST_WAIT", 0.0)
    model = ScriptedModel(reply(error_code="429"), "0.9")
    judges = [FluentJudge("rate", rate, model=model)]
    [outcome] = FluentEvalSuite("s", desk(), [CASES[0]], custom_judges=judges).run_sync().outcomes
    assert outcome.scores[-1].status is MetricStatus.PASSED
    assert outcome.eval_calls == 2


def test_the_limit_halves_and_grows_again() -> None:
    pace = _pace.Pace(8)
    assert pace.refused(BusyError(), 1, 0.0)
    assert pace.refused(BusyError(), 1, -1.0)  # went on together with the first
    assert pace.limit == 4
    for _ in range(40):
        pace.succeeded()
    assert pace.limit == 8
    assert not pace.refused(BusyError(), _pace.TRIES, 0.0)


async def test_who_waits_is_not_woken_by_every_run_that_ends() -> None:
    class Counted(_pace.Pace):
        asked = 0

        @property
        def limit(self) -> int:
            self.asked += 1
            return super().limit

    async def one(pace: Counted) -> None:
        async with pace.turn():
            await asyncio.sleep(0)

    pace = Counted(10)
    await asyncio.gather(*(one(pace) for _ in range(500)))
    assert pace.asked < 500 * 12


# --- sessions ------------------------------------------------------------------------------------


async def test_a_case_is_captured_from_a_session() -> None:
    service = InMemorySessionService()
    runner = to_runner(desk().to_ir(), session_service=service)
    session = await service.create_session(
        app_name=runner.app_name, user_id="u", state={"tier": "gold"}
    )
    from google.genai import types

    for text in ("good day", "my order"):
        message = types.Content(role="user", parts=[types.Part(text=text)])
        async for _ in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            pass
    held = await service.get_session(app_name=runner.app_name, user_id="u", session_id=session.id)
    assert held is not None
    case = FluentCase.from_session(held, id="kept", tags=["seen"])
    first, second = case.turns
    assert (first.input, first.expected_trajectory) == ("good day", [])
    assert first.reference_response == "good morning"
    assert (second.input, second.reference_response) == ("my order", "it is shipped")
    assert second.expected_trajectory == [ToolCall("look_up", {"order": "A1"})]
    assert (case.id, case.tags, case.initial_state) == ("kept", ["seen"], {"tier": "gold"})
    metrics = ["response_match_score"]
    report = await FluentEvalSuite("s", desk(), [case], metrics).run()
    assert report.ok, report.to_markdown()
    assert json.loads(report.to_json())["outcomes"][0]["id"] == "kept"
    with pytest.raises(EvalError, match="the user says nothing"):
        FluentCase.from_session(session)
    with pytest.raises(EvalError, match=r"takes a Session[\s\S]*of a Recording: replay"):
        FluentCase.from_session(3)  # pyright: ignore[reportArgumentType]


async def test_a_case_of_a_session_begins_with_what_the_pipeline_has_written_over() -> None:
    service = InMemorySessionService()
    pipeline = Agent("a", ScriptedModel(default="new")).writes("topic")
    done = await pipeline.run("hi", state={"topic": "old"}, session_service=service)
    session = await service.get_session(
        app_name=done.app_name, user_id=done.user_id, session_id=done.session_id
    )
    assert session is not None
    assert session.state["topic"] == "new"
    assert FluentCase.from_session(session).initial_state == {"topic": "old"}
