"""Answers of models: asked for once, replayed ever after, also where nobody could ask."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from eval_judges import HAS_EXTRA, NO_EXTRA, judge
from eval_programs import case, desk, lookup, says, scripted
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.agent_tool import AgentTool
from google.adk.version import __version__ as adk_version
from google.genai import types

from adk_fluent import Agent
from adk_fluent.eval import (
    EvalError,
    EvalFileError,
    FluentCase,
    FluentEvalSuite,
    ResponseCache,
    Status,
    UserSimulation,
)
from adk_fluent.eval._running._cache import Kept
from adk_fluent.eval._running._models_adk import Answers, Recording
from adk_fluent.testing import Asked, Call, Reply, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from adk_fluent.testing import ScriptedModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so of what tests use
]

GRAPHS = not adk_version.startswith("1.")
ENGINES = [
    "light",
    pytest.param(
        "local",
        marks=pytest.mark.skipif(not (HAS_EXTRA and GRAPHS), reason=f"{NO_EXTRA}, or runs no App"),
    ),
]


def dead() -> ScriptedModel:
    """A model that nobody can ask."""
    return says(ConnectionError("there is no network"))


def number() -> ScriptedModel:
    """A model that never says the same twice."""
    return says(_number)


def _number(asked: Asked) -> str:
    return f"answer {asked.number}"


def _slowly(asked: Asked) -> Reply:
    return reply(_number(asked), latency=0.01)


def _echo(asked: Asked) -> Reply:
    return reply(asked.prompt, latency=0.001)


def hi(id: str = "a") -> FluentCase:
    """A case that every answer fits."""
    return case("Hi", id=id)


async def run(pipeline: Any, cache: ResponseCache, *cases: FluentCase, **options: Any) -> Any:
    """A run of a suite with a cache."""
    suite = FluentEvalSuite("s", pipeline, cases or [hi()])
    return await suite.run(cache=cache, **options)


def files(folder: Path) -> list[Path]:
    """The answers that are kept."""
    return sorted(folder.rglob("*.json"))


# --- record once, replay ever after --------------------------------------------------------------


PROGRAM = """
import sys
from eval_cache_desk import suite
from adk_fluent.eval import ResponseCache
report = suite(sys.argv[2]).run_sync(cache=ResponseCache(sys.argv[1], sys.argv[3]), num_runs=2)
for each in report.outcomes:
    print(each.id, each.run, each.status, each.replayed, each.response, each.reasons)
"""
DESK = """
from adk_fluent import Agent
from adk_fluent.eval import FluentCase, FluentEvalSuite
from adk_fluent.testing import Call, ScriptedModel

def lookup(order: str) -> dict:
    "Look an order up."
    return {"status": "shipped"}

def suite(how):
    def answer(asked):
        if how == "dead":
            raise ConnectionError("there is no network")
        if asked.turns[-1].text.startswith("[result"):
            return "It is shipped."
        return Call("lookup", {"order": "A1"})
    agent = Agent("desk", ScriptedModel(default=answer)).instruct("Help.").tool(lookup)
    cases = [
        FluentCase("Where is A1?", id="a", expected_trajectory=["lookup"]),
        FluentCase("Is A1 shipped?", id="b", expected_response_contains="shipped"),
    ]
    return FluentEvalSuite("desk", agent, cases)
"""


def test_what_one_process_asked_another_replays(tmp_path: Path) -> None:
    (tmp_path / "eval_cache_desk.py").write_text(DESK)
    (tmp_path / "program.py").write_text(PROGRAM)

    def go(how: str, mode: str) -> str:
        made = subprocess.run(
            [sys.executable, "program.py", "answers", how, mode],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        )
        return made.stdout

    first = go("alive", "auto")
    assert first.count(" passed 0 ") == 4
    assert len(files(tmp_path / "answers")) == 8
    again = go("dead", "replay")
    assert again == first.replace(" passed 0 ", " passed 2 ")


@pytest.mark.parametrize("engine", ENGINES)
async def test_nothing_is_asked_twice(tmp_path: Path, engine: str) -> None:
    cache, model = ResponseCache(tmp_path), number()
    first = await run(Agent("a", model), cache, engine=engine)
    again = await run(Agent("a", model), cache, engine=engine)
    assert len(model.calls) == 1
    assert [each.response for each in (*first.outcomes, *again.outcomes)] == ["answer 0"] * 2
    assert [each.replayed for each in (*first.outcomes, *again.outcomes)] == [0, 1]
    assert first.outcomes[0].tokens == again.outcomes[0].tokens
    assert [each.parent.name for each in files(tmp_path)] == [files(tmp_path)[0].stem[:2]]


async def test_both_engines_ask_the_same(tmp_path: Path) -> None:
    if not (HAS_EXTRA and GRAPHS):
        pytest.skip(NO_EXTRA)
    cache = ResponseCache(tmp_path)
    await run(desk(), cache, engine="light")
    report = await run(desk(), ResponseCache(tmp_path, "replay"), engine="local")
    assert report.outcomes[0].replayed == 2


async def test_each_run_has_answers_of_its_own(tmp_path: Path) -> None:
    cache, model = ResponseCache(tmp_path), number()
    first = await run(Agent("a", model), cache, num_runs=3)
    assert len({each.response for each in first.outcomes}) == 3
    again = await run(Agent("a", dead()), ResponseCache(tmp_path, "replay"), num_runs=3)
    assert [each.response for each in again.outcomes] == [each.response for each in first.outcomes]


async def test_cases_that_ask_the_same_have_answers_of_their_own(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path)
    slow = says(_slowly)
    cases = [hi(id=f"c{at}") for at in range(20)]
    first = await run(Agent("a", slow), cache, *cases, parallelism=20)
    assert len(slow.calls) == 20
    assert len({each.response for each in first.outcomes}) == 20
    again = await run(Agent("a", dead()), ResponseCache(tmp_path, "replay"), *cases)
    assert [each.response for each in again.outcomes] == [each.response for each in first.outcomes]
    assert len(files(tmp_path)) == 20


async def test_a_case_with_another_id_asks_anew(tmp_path: Path) -> None:
    cache, model = ResponseCache(tmp_path), number()
    await run(Agent("a", model), cache, hi(id="old"))
    renamed = await run(Agent("a", model), cache, hi(id="new"))
    assert renamed.outcomes[0].replayed == 0
    assert [renamed.outcomes[0].response, len(model.calls)] == ["answer 1", 2]


async def test_many_cases_record_at_once(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path)
    echo = says(_echo)
    cases = [
        FluentCase(f"say {at}", id=f"c{at}", expected_response_contains=f"{at}") for at in range(50)
    ]
    assert (await run(Agent("a", echo), cache, *cases, parallelism=25)).ok
    again = await run(Agent("a", dead()), ResponseCache(tmp_path, "replay"), *cases, parallelism=25)
    assert again.ok
    assert len(files(tmp_path)) == 50


@pytest.mark.parametrize("how", ["instruction", "tool", "message", "model", "temperature"])
async def test_what_is_asked_otherwise_is_asked_anew(tmp_path: Path, how: str) -> None:
    model = number()
    await run(LlmAgent(name="a", model=model, instruction="Be kind."), ResponseCache(tmp_path))
    changed = LlmAgent(name="a", model=model, instruction="Be kind.")
    cases: list[FluentCase] = []
    if how == "instruction":
        changed.instruction = "Be brief."
    elif how == "tool":
        changed.tools = [lookup]
    elif how == "message":
        cases = [case("Ho")]
    elif how == "model":
        changed.model = scripted(default="x", model="other")
    else:
        changed.generate_content_config = types.GenerateContentConfig(temperature=0.5)
    report = await run(changed, ResponseCache(tmp_path), *cases)
    assert report.outcomes[0].replayed == 0
    assert len(files(tmp_path)) == 2


async def test_the_file_says_who_answered_what(tmp_path: Path) -> None:
    await run(Agent("a", says("my answer")), ResponseCache(tmp_path))
    told = files(tmp_path)[0].read_text("utf-8")
    data = json.loads(told)
    assert data["adk_fluent"] == {"kind": "model-response", "schema": 1}
    assert (data["agent"], data["model"]) == ("a", "scripted")
    assert "my answer" in told
    assert '"Hi"' not in told  # what was asked is not kept


async def test_everything_of_an_answer_is_kept(tmp_path: Path) -> None:
    answer = LlmResponse(
        content=types.Content(
            role="model",
            parts=[
                types.Part(text="I think", thought=True, thought_signature=b"\x00\xff sig"),
                types.Part(text="Grüße 😀"),
                types.Part(inline_data=types.Blob(mime_type="image/png", data=b"\x89PNG\x00\xfe")),
            ],
        ),
        finish_reason=types.FinishReason.STOP,
        usage_metadata=types.GenerateContentResponseUsageMetadata(
            prompt_token_count=3, candidates_token_count=4, thoughts_token_count=5
        ),
        model_version="m-1",
        custom_metadata={"k": [1, 2]},
    )
    cache = ResponseCache(tmp_path)

    async def ask(request: LlmRequest) -> list[LlmResponse]:
        return [answer]

    request = LlmRequest(model="m")
    first = await Answers(Recording(cache), "c", 1).of(request, "m", "a", ask)
    again = await Answers(Recording(cache), "c", 1).of(request, "m", "a", ask)
    assert first == [answer]
    assert again == first
    assert again[0] is not answer


class Chatty(BaseLlm):
    """A model that sends fragments before the whole, whether anybody wants them or not."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        for text, partial in (("Hel", True), ("lo", True), ("Hello", False)):
            content = types.Content(role="model", parts=[types.Part(text=text)])
            yield LlmResponse(content=content, partial=partial)


async def test_fragments_are_no_answers_to_keep(tmp_path: Path) -> None:
    first = await run(Agent("a", Chatty(model="c")), ResponseCache(tmp_path))
    assert first.outcomes[0].response == "Hello"
    assert len(json.loads(files(tmp_path)[0].read_text())["responses"]) == 1
    again = await run(Agent("a", Chatty(model="c")), ResponseCache(tmp_path, "replay"))
    assert again.outcomes[0].response == "Hello"


# --- whatever runs -------------------------------------------------------------------------------


def _inner(model: BaseLlm) -> LlmAgent:
    return LlmAgent(name="inner", model=model, description="Knows things.")


def _agent_tool(model: ScriptedModel) -> Any:
    return LlmAgent(name="outer", model=model, tools=[AgentTool(_inner(model))])


def _workflow(model: ScriptedModel) -> Any:
    from google.adk.workflow import START, Workflow

    first, second = (
        LlmAgent(name=name, model=model, mode="single_turn", instruction="Help.")
        for name in ("first", "second")
    )
    return Workflow(name="flow", edges=[(START, first), (first, second)])


def _answers(asked: Asked) -> Any:
    if asked.agent == "outer" and not asked.turns[-1].text.startswith("[result"):
        return Call("inner", {"request": "What?"})
    return f"{asked.agent} says so"


PIPELINES: dict[str, tuple[Callable[[Any], Any], int]] = {
    "agent": (lambda model: LlmAgent(name="a", model=model), 1),
    "builder": (lambda model: Agent("a", model) >> Agent("b", model), 2),
    "app": (lambda model: App(name="app", root_agent=LlmAgent(name="a", model=model)), 1),
    "agent tool": (_agent_tool, 3),
    "builder's agent tool": (
        lambda model: Agent("outer", model).agent_tool(Agent("inner", model).description("K.")),
        3,
    ),
    **({"workflow": (_workflow, 2)} if GRAPHS else {}),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", PIPELINES)
async def test_answers_of_whatever_runs_are_kept(tmp_path: Path, kind: str, engine: str) -> None:
    make, calls = PIPELINES[kind]
    model = scripted(default=_answers)
    first = await run(make(model), ResponseCache(tmp_path), hi(), engine=engine)
    assert first.ok, first.outcomes[0].reasons
    assert len(model.calls) == calls
    again = await run(make(dead()), ResponseCache(tmp_path, "replay"), hi(), engine=engine)
    assert again.ok, again.outcomes[0].reasons
    assert again.outcomes[0].replayed == calls
    assert again.outcomes[0].response == first.outcomes[0].response


async def test_judges_and_played_users_are_replayed_too(tmp_path: Path) -> None:
    """Or nothing could be evaluated where nobody can ask."""

    def suite(model: Any, user: Any, judging: Any) -> FluentEvalSuite:
        one = FluentCase("Hi", id="a", reference_response="x")
        return FluentEvalSuite(
            "s",
            Agent("a", model),
            [one],
            ["final_response_match_v2"],
            simulation=UserSimulation(user, max_turns=3),
            judge_model=judging,
            judge_samples=3,
        )

    user, judging = scripted("Go on.", "</finished>"), judge()
    first = await suite(number(), user, judging).run(cache=ResponseCache(tmp_path))
    assert first.ok, first.outcomes[0].reasons
    assert first.outcomes[0].replayed == 0
    gone = judge(rules=[])
    gone.script._default = ConnectionError("gone")
    again = await suite(dead(), dead(), gone).run(cache=ResponseCache(tmp_path, "replay"))
    assert again.ok, again.outcomes[0].reasons
    assert again.outcomes[0].replayed == len(user.calls) + len(judging.calls) + 2
    assert again.outcomes[0].stop_reason == "stop_signal"


async def test_a_judge_whose_answers_are_not_kept_passes_nothing(tmp_path: Path) -> None:
    def suite(model: Any) -> FluentEvalSuite:
        one = FluentCase("Hi", id="a", reference_response="x")
        metrics = ["final_response_match_v2"] if model is not None else ["response_match_score"]
        return FluentEvalSuite("s", Agent("a", says("x")), [one], metrics, judge_model=model)

    await suite(None).run(cache=ResponseCache(tmp_path))
    report = await suite(judge()).run(cache=ResponseCache(tmp_path, "replay"))
    assert report.outcomes[0].status is Status.ERROR
    assert "no answer is kept" in report.outcomes[0].reasons[0]


# --- what goes wrong -----------------------------------------------------------------------------


async def test_what_was_never_asked_is_an_error_of_its_case(tmp_path: Path) -> None:
    await run(Agent("a", says("x")), ResponseCache(tmp_path), hi(id="a"))
    model = says("y")
    cases = [hi(id="a"), case("Something else", id="b")]
    report = await run(Agent("a", model), ResponseCache(tmp_path, "replay"), *cases)
    assert [each.status for each in report.outcomes] == [Status.PASSED, Status.ERROR]
    reason = report.outcomes[1].reasons[0]
    assert "no answer is kept for what a model is asked" in reason
    assert "record again with mode='auto'" in reason
    assert not model.calls


@pytest.mark.parametrize(
    "answer", [ValueError("no"), reply(error_code="SAFETY"), reply(status=500)]
)
async def test_errors_are_not_kept(tmp_path: Path, answer: Any) -> None:
    report = await run(Agent("a", says(answer)), ResponseCache(tmp_path))
    assert report.outcomes[0].status is Status.ERROR
    assert not files(tmp_path)
    assert (await run(Agent("a", says("x")), ResponseCache(tmp_path))).ok


async def test_who_asks_again_after_an_error_is_replayed_without_it(tmp_path: Path) -> None:
    async def twice(answers: Answers, ask: Any) -> list[LlmResponse]:
        try:
            return await answers.of(LlmRequest(model="m"), "m", "a", ask)
        except ConnectionError:
            return await answers.of(LlmRequest(model="m"), "m", "a", ask)

    tries = iter([ConnectionError("lost"), LlmResponse(model_version="1")])

    async def ask(request: LlmRequest) -> list[LlmResponse]:
        found = next(tries)
        if isinstance(found, Exception):
            raise found
        return [found]

    async def never(request: LlmRequest) -> list[LlmResponse]:
        raise AssertionError

    cache = ResponseCache(tmp_path)
    assert (await twice(Answers(Recording(cache), "c", 1), ask))[0].model_version == "1"
    answers = Answers(Recording(ResponseCache(tmp_path, "replay")), "c", 1)
    assert (await twice(answers, never))[0].model_version == "1"
    assert answers.replayed == 1


async def test_the_same_asked_several_times_in_a_run_has_several_answers(tmp_path: Path) -> None:
    counts = iter("123")

    async def ask(request: LlmRequest) -> list[LlmResponse]:
        await asyncio.sleep(0)
        return [LlmResponse(model_version=next(counts))]

    async def three(mode: Any) -> list[str | None]:
        answers = Answers(Recording(ResponseCache(tmp_path, mode)), "c", 1)
        found = await asyncio.gather(
            *(answers.of(LlmRequest(model="m"), "m", "a", ask) for _ in range(3))
        )
        return [each[0].model_version for each in found]

    assert await three("auto") == ["1", "2", "3"]
    assert await three("replay") == ["1", "2", "3"]


async def test_recording_asks_for_everything_anew_and_replays_the_same(tmp_path: Path) -> None:
    model = number()
    await run(Agent("a", model), ResponseCache(tmp_path))
    cases = [hi(id="a"), hi(id="b")]
    report = await run(Agent("a", model), ResponseCache(tmp_path, "record"), *cases, parallelism=1)
    assert [each.response for each in report.outcomes] == ["answer 1", "answer 2"]
    again = await run(Agent("a", dead()), ResponseCache(tmp_path, "replay"), *cases)
    assert [each.response for each in again.outcomes] == ["answer 1", "answer 2"]


_HEAD = b'{"adk_fluent": {"kind": "model-response", "schema": 1}'
_KEPT = _HEAD + b', "agent": "a", "model": "m", "responses": '


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read"),
        (b"{", "cannot be read"),
        (b"\xff\xfe", "cannot be read"),
        (b"[]", "something else"),
        (b'{"adk_fluent": {"kind": "model-response", "schema": 1}}', "something else"),
        (b'{"adk_fluent": {"kind": "eval-report", "schema": 1}}', "something else"),
        (b'{"adk_fluent": {"kind": "model-response", "schema": 7}}', "schema 7"),
        (
            _KEPT + b'[{"nonsense": 1}]}',
            "responses[0].nonsense",
        ),
        (
            _KEPT + b"[1]}",
            "responses[0]",
        ),
    ],
)
async def test_a_broken_file_is_an_error_of_its_case(
    tmp_path: Path, content: bytes, message: str
) -> None:
    await run(Agent("a", says("x")), ResponseCache(tmp_path))
    files(tmp_path)[0].write_bytes(content)
    model = says("x")
    report = await run(Agent("a", model), ResponseCache(tmp_path))
    assert report.outcomes[0].status is Status.ERROR
    assert message in report.outcomes[0].reasons[0]
    assert str(files(tmp_path)[0]) in report.outcomes[0].reasons[0]
    assert not model.calls
    assert files(tmp_path)[0].read_bytes() == content


async def test_an_answer_that_cannot_be_written_is_not_lost_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise EvalFileError("the file cannot be written", path="x", found="No space left on device")

    monkeypatch.setattr(ResponseCache, "write", full)
    report = await run(Agent("a", says("x")), ResponseCache(tmp_path / "answers"))
    assert report.outcomes[0].status is Status.PASSED, report.outcomes[0].reasons
    assert report.notes == (
        "answers of models are not all kept: the file cannot be written (No space left on device)",
    )


async def test_a_cache_that_cannot_be_read_is_an_error_of_its_case(tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    cache = ResponseCache(folder)
    folder.write_text("a file by now")
    report = await run(Agent("a", says("x")), cache)
    assert report.outcomes[0].status is Status.ERROR
    assert str(folder) in report.outcomes[0].reasons[0]
    assert folder.read_text() == "a file by now"


def test_a_cache_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(EvalFileError, match="this is a file"):
        ResponseCache(file)
    with pytest.raises(EvalFileError, match="there are no answers to replay"):
        ResponseCache(tmp_path / "nowhere", "replay")
    with pytest.raises(EvalError, match="no mode 'rewind'"):
        ResponseCache(tmp_path, "rewind")  # pyright: ignore[reportArgumentType]
    with pytest.raises(EvalError, match="a cache is a folder"):
        ResponseCache(7)  # pyright: ignore[reportArgumentType]
    ResponseCache(tmp_path / "made when it is needed")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_what_is_kept_is_read_as_it_was_written(tmp_path: Path) -> None:
    cache = ResponseCache(tmp_path)
    kept = Kept("a", "m", [{"text": "Grüße \ud800 \u2028"}])
    cache.write("abc.1.1", kept)
    assert cache.read("abc.1.1") == kept
    assert cache.read("abc.1.2") is None
    assert ResponseCache(tmp_path, "record").read("abc.1.1") is None
