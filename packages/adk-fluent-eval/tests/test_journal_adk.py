"""Runs of suites that were interrupted, and go on where they were."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from eval_programs import case, says, scripted
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.events.event import Event
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.version import __version__ as adk_version
from google.genai import types

from adk_fluent import Agent
from adk_fluent.backends.adk import to_app
from adk_fluent.eval import EvalFileError, FluentCase, FluentEvalSuite, FluentJudge, Status
from adk_fluent.eval._journal._pipeline_adk import digest_of_pipeline
from adk_fluent.protocol import Money
from adk_fluent.testing import Asked, Call, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from google.adk.agents.invocation_context import InvocationContext

    from adk_fluent.eval import FluentEvalReport

pytestmark = pytest.mark.adk

SUITE = """
import os, sys, time
from adk_fluent import Agent
from adk_fluent.backends.adk import to_app
from adk_fluent.eval import FluentCase, FluentEvalSuite
from adk_fluent.testing import ScriptedModel, reply

def answer(asked):
    with open("asked", "a") as file:
        file.write(asked.prompt + chr(10))
    return reply("echo " + asked.prompt, latency=float(os.environ["LATENCY"]))

cases = [
    FluentCase(f"say {n}", id=f"c{n}", expected_response_contains=f"{n}", metadata={"n": n})
    for n in range(12)
]
cases.append(FluentCase("say no", id="no", expected_response_contains="yes"))
suite = FluentEvalSuite("s", Agent("a", ScriptedModel(default=answer)), cases, num_runs=2)
report = suite.run_sync(journal="run.jsonl", parallelism=2)
report.save("report.json")
"""


def start(folder: Path, latency: float) -> subprocess.Popen[bytes]:
    """The suite in a process of its own."""
    (folder / "suite.py").write_text(SUITE)
    environment = {**os.environ, "LATENCY": str(latency)}
    return subprocess.Popen([sys.executable, "suite.py"], cwd=folder, env=environment)


def lines(folder: Path) -> list[str]:
    """The whole lines of the journal, but for the first."""
    path = folder / "run.jsonl"
    return path.read_text().split("\n")[1:-1] if path.exists() else []


def without_accidents(folder: Path) -> list[dict[str, Any]]:
    """The outcomes of a report, without what is never twice the same."""
    outcomes: list[dict[str, Any]] = json.loads((folder / "report.json").read_text())["outcomes"]
    for outcome in outcomes:
        for each in (outcome, *outcome["turns"]):
            for name in ("session_id", "user_id", "duration_s", "invocation_id"):
                each.pop(name, None)
    return outcomes


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_run_that_was_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    killed.mkdir()
    whole.mkdir()
    process = start(killed, 0.15)
    deadline = time.monotonic() + 120
    while len(lines(killed)) < 6:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = len(lines(killed))
    assert 6 <= done < 26
    with (killed / "run.jsonl").open("ab") as file:
        file.write(b'{"case":"half a li')
    asked = len((killed / "asked").read_text().splitlines())

    assert start(killed, 0).wait() == 0
    assert len(lines(killed)) == 26
    assert len((killed / "asked").read_text().splitlines()) == asked + 26 - done

    assert start(whole, 0).wait() == 0
    assert without_accidents(killed) == without_accidents(whole)


# --- within one process --------------------------------------------------------------------------


def echo(asked: Asked) -> str:
    """Says what it is told."""
    return asked.prompt


async def run(
    path: Path, *cases: FluentCase, model: Any = None, **options: Any
) -> FluentEvalReport:
    """A run of a suite with a journal."""
    fields = {
        name: options.pop(name) for name in ("custom_judges", "thresholds") if name in options
    }
    pipeline = Agent("a", says(echo) if model is None else model)
    return await FluentEvalSuite("s", pipeline, cases, **fields).run(journal=path, **options)


CASES = [case(f"say {n}", id=f"c{n}") for n in range(4)]


async def test_what_is_done_is_told_as_done(tmp_path: Path) -> None:
    seen: list[Any] = []
    first = await run(tmp_path / "j", *CASES[:2])
    model = says(echo)
    report = await run(tmp_path / "j", *CASES, model=model, progress=seen.append)
    assert len(model.calls) == 2
    assert [each.id for each in report.outcomes] == ["c0", "c1", "c2", "c3"]
    assert report.outcomes[:2] == first.outcomes
    assert [each.resumed for each in seen] == [True, True, False, False]
    assert [each.done for each in seen] == [1, 2, 3, 4]
    assert {each.total for each in seen} == {4}


async def test_more_runs_go_on_from_fewer(tmp_path: Path) -> None:
    model = says(echo)
    await run(tmp_path / "j", *CASES, model=model, num_runs=2)
    report = await run(tmp_path / "j", *CASES, model=model, num_runs=3)
    assert len(model.calls) == 12
    assert [each.key for each in report.outcomes][:3] == [("c0", 1), ("c0", 2), ("c0", 3)]


async def test_what_raised_is_run_again(tmp_path: Path) -> None:
    broken = await run(tmp_path / "j", *CASES, model=says(ValueError("no")))
    assert {each.status for each in broken.outcomes} == {Status.ERROR}
    assert (await run(tmp_path / "j", *CASES)).ok
    model = says(echo)
    assert (await run(tmp_path / "j", *CASES, model=model)).ok
    assert not model.calls


async def test_what_changed_is_run_again(tmp_path: Path) -> None:
    await run(tmp_path / "j", *CASES)
    model = says(echo)
    changed = FluentCase("say 1", id="c1", expected_response_contains="1")
    report = await run(tmp_path / "j", CASES[0], changed, *CASES[2:], model=model)
    assert report.ok
    assert [each.prompt for each in model.calls] == ["say 1"]


@pytest.mark.parametrize(
    "options",
    [
        {"custom_judges": [FluentJudge("j", lambda: True)]},
        {"thresholds": {"tool_trajectory_avg_score": 0.5}},
        {"model": says("x")},
        {"timeout_s": 77.0},
    ],
)
async def test_a_run_of_another_kind_is_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    cases = [*CASES, case("x", id="calls", expected_trajectory=[])]
    await run(tmp_path / "j", *cases)
    model = says(echo)
    fields = {name: options[name] for name in ("custom_judges", "thresholds") if name in options}
    suite = FluentEvalSuite("s", Agent("a", model), cases, **fields)
    with pytest.raises(EvalFileError, match="of another run"):
        await suite.run(
            journal=tmp_path / "j", model=options.get("model"), timeout_s=options.get("timeout_s")
        )
    assert not model.calls


class Longer:
    """A condition, or a judge, that is an object."""

    def __init__(self, least: int, held: Any = None) -> None:
        self.least = least
        self.held = held

    def __call__(self, actual_response: Any) -> bool:
        return len(str(actual_response)) > self.least


def _over(least: int) -> Any:
    def inner(value: Any) -> bool:
        return len(str(value)) > least

    def outer(value: Any) -> bool:
        return inner(value)

    return outer


def _longer(value: Any, least: int) -> bool:
    return len(str(value)) > least


def _answer(text: str) -> str:
    return text


HIDDEN: dict[str, Callable[[int], FluentCase]] = {
    "partial": lambda n: case(id="h", state_assertions={"k": partial(_longer, least=n)}),
    "object": lambda n: case(id="h", state_assertions={"k": Longer(n)}),
    "closure over a closure": lambda n: case(id="h", state_assertions={"k": _over(n)}),
    "answer": lambda n: case(id="h", mock_tool_outputs={"t": partial(_answer, "x" * n)}),
    "long pattern": lambda n: case(
        id="h", expected_response_contains=re.compile("x|" * 300 + f"done{{{n}}}|done")
    ),
}


def _calling(asked: Asked) -> Any:
    return "done" if asked.turns[-1].text.startswith("[result") else Call("t")


async def _hidden(path: Path, given: FluentCase, **fields: Any) -> tuple[int, FluentEvalReport]:
    def t() -> str:
        return "called"

    model = says(_calling)
    pipeline = Agent("a", model).tool(t).writes("k")
    report = await FluentEvalSuite("s", pipeline, [given], **fields).run(journal=path)
    return len(model.calls), report


@pytest.mark.parametrize("kind", HIDDEN)
async def test_what_changed_unseen_is_run_again(tmp_path: Path, kind: str) -> None:
    made = HIDDEN[kind]
    first, report = await _hidden(tmp_path / "j", made(1))
    assert report.outcomes[0].error is None
    assert first > 0
    assert (await _hidden(tmp_path / "j", made(1)))[0] == 0
    asked, report = await _hidden(tmp_path / "j", made(2))
    assert asked == first
    assert not report.notes


async def test_another_judge_is_refused(tmp_path: Path) -> None:
    def judges(least: int) -> list[FluentJudge]:
        return [FluentJudge("j", Longer(least))]

    for asked in (2, 0):
        found = await _hidden(tmp_path / "j", case(id="h"), custom_judges=judges(1))
        assert found[0] == asked
    with pytest.raises(EvalFileError, match="of another run"):
        await _hidden(tmp_path / "j", case(id="h"), custom_judges=judges(2))


async def test_what_nobody_can_tell_is_run_again_and_said_once(tmp_path: Path) -> None:
    def unsure(id: str) -> FluentCase:
        return case(id=id, state_assertions={"k": Longer(1, memoryview(b"x"))})

    suite = FluentEvalSuite(
        "s",
        Agent("a", says(echo)).writes("k"),
        [unsure("u1"), CASES[0], unsure("u2")],
        num_runs=2,
    )
    first = await suite.run(journal=tmp_path / "j")
    seen: list[Any] = []
    again = await suite.run(journal=tmp_path / "j", progress=seen.append)
    assert [each.outcome.key for each in seen if each.resumed] == [("c0", 1), ("c0", 2)]
    taken, note = again.notes
    assert taken.startswith("2 runs taken over")
    assert "case 'u1' and 1 other is run again" in note
    assert "state_assertions (memoryview)" in note
    assert not first.notes


async def test_all_is_run_again_for_a_judge_whom_nobody_can_tell(tmp_path: Path) -> None:
    reports: list[FluentEvalReport] = []
    for _ in range(2):
        judges = [FluentJudge("j", Longer(1, memoryview(b"x")))]
        asked, report = await _hidden(tmp_path / "j", case(id="h"), custom_judges=judges)
        assert asked == 2
        reports.append(report)
    assert not reports[0].notes
    (note,) = reports[1].notes
    assert "every case is run again" in note
    assert "judge 'j' (memoryview)" in note


async def test_a_condition_that_asks_another_module_is_run_again_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scoring = ModuleType("scoring")
    monkeypatch.setitem(sys.modules, "scoring", scoring)

    async def asked(source: str) -> int:
        exec(source, vars(scoring))  # as if the module had been written anew
        made: dict[str, Any] = {"__name__": "conditions", "scoring": scoring}
        exec("def judge(value): return scoring.grade(value)", made)
        model = says(echo)
        judged = case(id="h", state_assertions={"k": made["judge"]})
        await run(tmp_path / "j", judged, model=model)
        return len(model.calls)

    assert await asked("def grade(value): return value is None") == 1
    assert await asked("def grade(value): return value is None") == 0
    assert await asked("def grade(value): return value is not None") == 1


async def test_another_price_book_is_refused(tmp_path: Path) -> None:
    class Book:
        def __init__(self, dollars: int) -> None:
            self.dollars = dollars

        def price(self, model: str, usage: Any, at: Any, *, tier: str | None = None) -> Any:
            return Money.of(self.dollars)

    first = await run(tmp_path / "j", *CASES, prices=Book(1))
    model = says(echo)
    again = await run(tmp_path / "j", *CASES, prices=Book(1), model=model)
    assert not model.calls
    assert [each.cost_usd for each in again.outcomes] == [each.cost_usd for each in first.outcomes]
    with pytest.raises(EvalFileError, match="of another run") as caught:
        await run(tmp_path / "j", *CASES, prices=Book(2))
    assert '{"prices": "Book ' in (caught.value.found or "")


async def test_a_suite_is_checked_with_its_journal(tmp_path: Path) -> None:
    suite = FluentEvalSuite("s", Agent("a", says(echo)), CASES)
    suite.check(journal=tmp_path / "j")
    assert not (tmp_path / "j").exists()
    await suite.run(journal=tmp_path / "j")
    suite.check(journal=tmp_path / "j")
    with pytest.raises(EvalFileError, match="of another run"):
        suite.check(journal=tmp_path / "j", timeout_s=7)
    suite.check(timeout_s=7)


async def test_results_of_a_run_that_went_on_are_those_of_one_that_did_not(tmp_path: Path) -> None:
    whole = await run(tmp_path / "whole", *CASES, num_runs=2)
    await run(tmp_path / "part", *CASES[2:], num_runs=2)
    parts = await run(tmp_path / "part", *CASES, num_runs=2)
    for mine, other in zip(parts.outcomes, whole.outcomes, strict=True):
        assert mine.key == other.key
        assert (mine.status, mine.scores, mine.state) == (other.status, other.scores, other.state)
        assert mine.tokens == other.tokens
        assert mine.response == other.response
    assert parts.pass_rate == whole.pass_rate
    assert parts.per_metric == whole.per_metric
    assert [each.eval_id for each in parts.case_results] == [
        each.eval_id for each in whole.case_results
    ]


async def test_whoever_fails_fast_goes_on_after_it(tmp_path: Path) -> None:
    bad = case("bad", id="bad", expected_response_contains="good")
    first = await run(tmp_path / "j", CASES[0], bad, *CASES[1:], fail_fast=True, parallelism=1)
    assert [each.id for each in first.outcomes] == ["c0", "bad"]
    model = says(echo)
    again = await run(tmp_path / "j", CASES[0], bad, *CASES[1:], model=model)
    assert len(again.outcomes) == 5
    assert len(model.calls) == 3


async def test_who_fails_fast_minds_what_was_taken_over(tmp_path: Path) -> None:
    bad = case("bad", id="bad", expected_response_contains="good")
    await run(tmp_path / "j", CASES[0], bad)
    model = says(echo)
    again = await run(tmp_path / "j", CASES[0], bad, *CASES[1:], model=model, fail_fast=True)
    assert not model.calls
    assert [each.id for each in again.outcomes] == ["c0", "bad"]
    assert again.interrupted
    assert again.notes == (
        f"2 runs taken over from the journal {tmp_path / 'j'}",
        "it was stopped after the first case that did not pass",
    )


async def test_an_expected_failure_that_broke_is_run_again(tmp_path: Path) -> None:
    known = case("Hi", id="x", expected_response_contains="y", xfail="a bug")
    broken = await run(tmp_path / "j", known, model=says(ValueError("no")))
    assert broken.outcomes[0].status is Status.ERROR
    model = says(echo)
    again = await run(tmp_path / "j", known, model=model)
    assert again.outcomes[0].status is Status.XFAILED
    assert len(model.calls) == 1


def _shout(text: str) -> str:
    return text.upper()


def _whisper(text: str) -> str:
    return text.lower()


class Mine(BaseAgent):
    """An agent of the user's."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        yield Event(author=self.name, content=types.Content(parts=[types.Part(text="one")]))


class Other(BaseAgent):
    """Another one."""

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        yield Event(author=self.name, content=types.Content(parts=[types.Part(text="two")]))


Other.__qualname__ = "Mine"


def _adk(**fields: Any) -> LlmAgent:
    told: dict[str, Any] = {"name": "a", "model": "m", "instruction": "Be kind.", **fields}
    return LlmAgent(**told)


def _by(text: str, seconds: int = 1) -> Any:
    def instruction(context: Any) -> str:
        return text * seconds

    return instruction


PIPELINES: dict[str, Callable[[], Any]] = {
    "a builder": lambda: Agent("a", "m").instruct("Be kind."),
    "another instruction": lambda: Agent("a", "m").instruct("Be rude."),
    "another model": lambda: Agent("a", "n").instruct("Be kind."),
    "a model of its own": lambda: Agent("a", says("x")).instruct("Be kind."),
    "a model of its own of another name": lambda: Agent("a", scripted(model="n")),
    "a tool": lambda: Agent("a", "m").instruct("Be kind.").tool(_shout),
    "a tool of ADK's": lambda: Agent("a", "m").instruct("Be kind.").tool(FunctionTool(_shout)),
    "another of ADK's": lambda: Agent("a", "m").instruct("Be kind.").tool(FunctionTool(_whisper)),
    "two": lambda: Agent("a", "m").instruct("Be kind.") >> Agent("b", "m"),
    "adk": _adk,
    "adk, compiled": lambda: to_app((Agent("a", says("x")) >> _adk(name="c")).to_ir()),
    "adk, compiled otherwise": lambda: to_app(
        (Agent("a", says("x")) >> _adk(name="c", output_key="k")).to_ir()
    ),
    "adk, another name": lambda: _adk(name="b"),
    "adk, another instruction": lambda: _adk(instruction="Be rude."),
    "adk, an instruction that is a function": lambda: _adk(instruction=_by("a")),
    "adk, the same function with another text": lambda: _adk(instruction=_by("b")),
    "adk, another model": lambda: _adk(model="n"),
    "adk, a model of its own": lambda: _adk(model=scripted(model="m")),
    "adk, a model of its own of another name": lambda: _adk(model=scripted(model="n")),
    "adk, described": lambda: _adk(description="x"),
    "adk, a tool": lambda: _adk(tools=[_shout]),
    "adk, another tool": lambda: _adk(tools=[_whisper]),
    "adk, a tool object": lambda: _adk(tools=[FunctionTool(_shout)]),
    "adk, an agent as a tool": lambda: _adk(tools=[AgentTool(_adk(name="t"))]),
    "adk, another as a tool": lambda: _adk(tools=[AgentTool(_adk(name="t", instruction="x"))]),
    "adk, an output key": lambda: _adk(output_key="k"),
    "adk, colder": lambda: _adk(generate_content_config={"temperature": 0.0}),
    "adk, warmer": lambda: _adk(generate_content_config={"temperature": 0.9}),
    "adk, a schema": lambda: _adk(output_schema=types.Content),
    "adk, below": lambda: _adk(sub_agents=[_adk(name="b")]),
    "adk, another below": lambda: _adk(sub_agents=[_adk(name="b", instruction="x")]),
    "adk, in IR": lambda: Agent("z", "m") >> _adk(),
    "adk, another in IR": lambda: Agent("z", "m") >> _adk(instruction="x"),
    "an app": lambda: App(name="app", root_agent=_adk()),
    "another app": lambda: App(name="app", root_agent=_adk(instruction="x")),
    "an agent of the user's": lambda: Mine(name="a"),
    "with other code": lambda: Other(name="a"),
}


def test_whatever_a_pipeline_says_makes_it_another() -> None:
    digests = {name: digest_of_pipeline(make()) for name, make in PIPELINES.items()}
    assert len(set(digests.values())) == len(digests), sorted(digests.items(), key=lambda x: x[1])
    assert {name: digest_of_pipeline(make()) for name, make in PIPELINES.items()} == digests


@pytest.mark.skipif(adk_version.startswith("1."), reason="google-adk 1.x has no graphs")
def test_whatever_a_graph_says_makes_it_another() -> None:
    from google.adk.workflow import START, Workflow

    def graph(*steps: Any) -> Any:
        return Workflow(name="w", edges=[(START, *steps)])

    made = [
        lambda: graph(_adk()),
        lambda: graph(_adk(instruction="x")),
        lambda: graph(_shout),
        lambda: graph(_whisper),
        lambda: graph(_shout, _whisper),
        lambda: graph(_whisper, _shout),
    ]
    digests = [digest_of_pipeline(each()) for each in made]
    assert len(set(digests)) == len(digests)
    assert [digest_of_pipeline(each()) for each in made] == digests


@pytest.mark.parametrize("is_factory", [False, True])
async def test_a_journal_passes_no_pipeline_that_was_never_run(
    tmp_path: Path, *, is_factory: bool
) -> None:
    async def go(instruction: str, model: Any) -> FluentEvalReport:
        pipeline: Any = Agent("a", model).instruct(instruction)
        suite = FluentEvalSuite("s", (lambda: pipeline) if is_factory else pipeline, CASES)
        return await suite.run(journal=tmp_path / "j")

    await go("Be kind.", says(echo))
    model = says(echo)
    with pytest.raises(EvalFileError, match="the pipeline has changed since"):
        await go("Be rude.", model)
    assert (await go("Be kind.", model)).ok
    assert not model.calls


async def test_what_was_done_when_a_stream_was_closed_is_noted(tmp_path: Path) -> None:
    suite = FluentEvalSuite("s", Agent("a", says(echo)), CASES)
    stream = suite.stream(journal=tmp_path / "j", parallelism=1)
    await anext(stream)
    await stream.aclose()
    seen: list[Any] = []
    await run(tmp_path / "j", *CASES, progress=seen.append)
    assert sum(each.resumed for each in seen) >= 1


async def test_a_disk_that_is_full_costs_the_journal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []

    def full(file: int) -> None:
        synced.append(file)
        if len(synced) > 3:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    report = await run(tmp_path / "j", *CASES, parallelism=1)
    monkeypatch.undo()
    assert report.ok
    assert len(report.outcomes) == 4
    assert len(report.notes) == 1
    assert "from case 'c2' on" in report.notes[0]
    assert "No space left on device" in report.notes[0]
    seen: list[Any] = []
    await run(tmp_path / "j", *CASES, progress=seen.append)
    assert sum(each.resumed for each in seen) >= 2


async def test_a_disk_that_is_full_before_anything_ran_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    model = says(echo)
    with pytest.raises(EvalFileError, match="No space left on device"):
        await run(tmp_path / "j", *CASES, model=model)
    assert not model.calls


async def test_a_journal_is_read_by_another_google_adk(tmp_path: Path) -> None:
    """Nothing of ADK is in it."""
    await run(tmp_path / "j", *CASES[:1])
    assert adk_version not in (tmp_path / "j").read_text()


async def test_a_skipped_case_is_noted(tmp_path: Path) -> None:
    skipped = case("Hi", id="s", skip="not now")
    for _ in range(2):
        report = await run(tmp_path / "j", skipped, CASES[0])
        assert report.outcomes[0].status is Status.SKIPPED
        assert report.outcomes[0].note == "not now"


async def test_many_cases_at_once_are_noted_whole(tmp_path: Path) -> None:
    def slowly(asked: Asked) -> Any:
        return reply(asked.prompt * 500, latency=0.001)

    cases = [case(f"say {n}", id=f"c{n}") for n in range(60)]
    await run(tmp_path / "j", *cases, model=says(slowly), parallelism=30)
    model = says(echo)
    report = await run(tmp_path / "j", *cases, model=model)
    assert report.ok
    assert not model.calls
