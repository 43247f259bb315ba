"""A suite with one model after the other, and in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from eval_judges import HAS_EXTRA, NO_EXTRA, judge
from eval_programs import agent, case, desk, says, scripted
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.models import registry
from google.adk.models.base_llm import BaseLlm
from google.adk.models.registry import LLMRegistry
from google.adk.tools.agent_tool import AgentTool
from google.adk.version import __version__ as adk_version

from adk_fluent import Agent
from adk_fluent.eval import (
    EvalError,
    EvalFileError,
    FluentCase,
    FluentEvalReport,
    FluentEvalSuite,
    ResponseCache,
    Status,
    UserSimulation,
)
from adk_fluent.testing import Asked, Call, reply

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterator
    from pathlib import Path

    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

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


@pytest.fixture
def asked() -> Iterator[list[str | None]]:
    """A class of models for the names ``echo-...``; the names that they were asked by."""
    names: list[str | None] = []

    class Echo(BaseLlm):
        @classmethod
        def supported_models(cls) -> list[str]:
            return ["echo-.*"]

        async def generate_content_async(
            self, llm_request: LlmRequest, stream: bool = False
        ) -> AsyncGenerator[LlmResponse, None]:
            names.append(llm_request.model)
            async for each in says(f"I am {self.model}").generate_content_async(llm_request):
                yield each

    LLMRegistry.register(Echo)
    yield names
    registry._llm_registry_dict.pop("echo-.*")
    LLMRegistry.resolve.cache_clear()


def own() -> ScriptedModel:
    """A model of a pipeline, which nobody should ask."""
    return says(AssertionError("the pipeline's own model was asked"))


def named(name: str, answer: Any = "hm") -> ScriptedModel:
    """A model with a name."""
    return scripted(default=answer, model=name)


# --- models --------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
async def test_each_model_answers_in_the_place_of_all(asked: list[str | None], engine: Any) -> None:
    pipeline = Agent("a", own()).writes("k") >> Agent("b", own())
    third = named("third", "I am third")
    suite = FluentEvalSuite("s", pipeline, [case(id="a")])
    found = await suite.matrix(["echo-1", "echo-2", third], engine=engine)
    assert list(found) == ["echo-1", "echo-2", "third"]
    for name, report in found.items():
        outcome = report.outcomes[0]
        assert outcome.status is Status.PASSED, outcome.reasons
        assert outcome.response == f"I am {name}"
        assert (report.model, outcome.model) == (name, name)
    assert asked == ["echo-1", "echo-1", "echo-2", "echo-2"]
    assert [each.model for each in third.calls] == ["third", "third"]
    assert [row.model for row in found.table()] == list(found)


def _tree(model: Any) -> Any:
    inner = LlmAgent(name="inner", model=model, description="Knows.")
    return LlmAgent(name="outer", model=model, tools=[AgentTool(inner)])


def _inherited(model: Any) -> Any:
    inner = LlmAgent(name="inner", description="Knows.")  # has its parent's model
    return LlmAgent(name="outer", model=model, sub_agents=[inner])


def _workflow(model: Any) -> Any:
    from google.adk.workflow import START, Workflow

    first, second = (
        LlmAgent(name=name, model=model, mode="single_turn", instruction="Help.")
        for name in ("outer", "inner")
    )
    return Workflow(name="flow", edges=[(START, first), (first, second)])


PIPELINES: dict[str, tuple[Callable[[Any], Any], list[str]]] = {
    "agent tool": (_tree, ["outer", "inner", "outer"]),
    "sub-agent": (_inherited, ["outer", "inner"]),
    "app": (lambda model: App(name="app", root_agent=_tree(model)), ["outer", "inner", "outer"]),
    "factory": (lambda model: lambda: _tree(model), ["outer", "inner", "outer"]),
    "builder": (
        lambda model: Agent("outer", model).agent_tool(Agent("inner", model).description("Knows.")),
        ["outer", "inner", "outer"],
    ),
    "several": (lambda model: Agent("outer", model) | Agent("inner", model), ["inner", "outer"]),
    **({"workflow": (_workflow, ["outer", "inner"])} if GRAPHS else {}),
}


@pytest.mark.parametrize("kind", PIPELINES)
@pytest.mark.parametrize("by_name", [False, True])
async def test_models_of_whatever_runs_are_replaced(kind: str, by_name: bool) -> None:
    make, agents = PIPELINES[kind]

    def answer(asked: Asked) -> Any:
        if asked.agent == "outer" and not asked.turns[-1].text.startswith("[result"):
            if "inner" in asked.tools:
                return Call("inner", {"request": "What?"})
            if "transfer_to_agent" in asked.tools:
                return Call("transfer_to_agent", {"agent_name": "inner"})
        return "done"

    other = named("other", answer)
    pipeline = make("gemini-2.5-flash" if by_name else own())
    report = await FluentEvalSuite("s", pipeline, [case()]).run(model=other)
    assert report.ok, report.outcomes[0].reasons
    found = [each.agent for each in other.calls]
    assert (sorted(map(str, found)) if kind == "several" else found) == agents
    assert {each.model for each in other.calls} == {"other"}


async def test_judges_and_played_users_stay_who_they_are() -> None:
    user, judging = named("user", "</finished>"), judge()
    cases = [FluentCase("Hi", id="a", reference_response="x", simulation=UserSimulation(user))]
    suite = FluentEvalSuite(
        "s",
        Agent("a", own()),
        cases,
        ["final_response_match_v2"],
        judge_model=judging,
        judge_samples=2,
    )
    for model, report in (await suite.matrix([named("m-1"), named("m-2")])).items():
        assert report.ok, report.outcomes[0].reasons
        assert report.outcomes[0].model == model
    assert len(user.calls) == 2
    assert len(judging.calls) == 4


async def test_after_a_matrix_agents_have_their_own_models_again() -> None:
    mine = says("mine")
    suite = FluentEvalSuite("s", Agent("a", mine), [case()])
    await suite.matrix([named("m-1", "theirs")])
    assert not mine.calls
    assert (await suite.run()).outcomes[0].response == "mine"
    built = LlmAgent(name="a", model=mine)
    suite = FluentEvalSuite("s", built, [case()])
    assert (await suite.run(model=named("m-1", "theirs"))).outcomes[0].response == "theirs"
    assert (await suite.run()).outcomes[0].response == "mine"
    assert built.model is mine


async def test_each_model_has_a_journal_and_answers_of_its_own(tmp_path: Path) -> None:
    suite = FluentEvalSuite("s", Agent("a", own()), [case(id="a"), case("Ho", id="b")])
    models = [named("m/1", "one"), named("m 1", "two")]
    cache = ResponseCache(tmp_path / "answers")
    first = await suite.matrix(models, journal=tmp_path / "run.jsonl", cache=cache)
    journals = [each.name for each in _files(tmp_path) if each.suffix == ".jsonl"]
    assert len(journals) == 2
    assert all(each.startswith("run.m_1-") for each in journals)
    assert len(_files(tmp_path / "answers")) == 4
    again = await suite.matrix(models, journal=tmp_path / "run.jsonl")
    assert [len(each.calls) for each in models] == [2, 2]
    for name, report in again.items():
        assert report.outcomes == first[name].outcomes
        assert report.model == name


async def test_a_journal_that_is_broken_is_told_before_any_model_is_asked(tmp_path: Path) -> None:
    suite = FluentEvalSuite("s", Agent("a", own()), [case(id="a")])
    models = [named("one"), named("two")]
    await suite.matrix(models, journal=tmp_path / "run.jsonl")
    (tmp_path / "run.one.jsonl").unlink()
    broken = tmp_path / "run.two.jsonl"
    broken.write_bytes(broken.read_bytes() + b"{}\n")
    with pytest.raises(EvalFileError, match="the journal is broken") as caught:
        await suite.matrix(models, journal=tmp_path / "run.jsonl")
    assert caught.value.path == str(broken)
    assert [len(each.calls) for each in models] == [1, 1]
    broken.unlink()
    await suite.matrix(models, journal=tmp_path / "run.jsonl")  # nobody holds the others


async def test_a_journal_that_somebody_uses_is_told_before_any_model_is_asked(
    tmp_path: Path,
) -> None:
    suite = FluentEvalSuite("s", Agent("a", own()), [case(id="a"), case("Ho", id="b")])
    models = [named("one"), named("two")]
    going = suite.stream(model=named("two"), journal=tmp_path / "run.two.jsonl", parallelism=1)
    await anext(going)
    with pytest.raises(EvalFileError, match="another run is using the journal"):
        await suite.matrix(models, journal=tmp_path / "run.jsonl")
    await going.aclose()
    assert [len(each.calls) for each in models] == [0, 0]


async def test_journals_of_a_matrix_are_kept_from_others_until_its_end(tmp_path: Path) -> None:
    suite = FluentEvalSuite("s", Agent("a", own()), [case(id="a")])
    refused: list[str] = []

    def answer(asked: Asked) -> str:
        try:
            suite.check(model=named("two"), journal=tmp_path / "run.two.jsonl")
        except EvalFileError as error:
            refused.append(error.what)
        return "hm"

    await suite.matrix([named("one", answer), named("two")], journal=tmp_path / "run.jsonl")
    assert refused == ["another run is using the journal"]
    suite.check(model=named("two"), journal=tmp_path / "run.two.jsonl")


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())


async def test_models_are_told_apart_by_their_answers() -> None:
    def sometimes(asked: Asked) -> str:
        return "yes" if asked.number % 2 else "no"

    suite = FluentEvalSuite("s", Agent("a", own()), [case(expected_response_contains="yes")])
    models = [named("good", "yes"), named("bad", "no"), named("so-so", sometimes)]
    found = await suite.matrix(models, num_runs=4, parallelism=1)
    assert [row.pass_rate for row in found.table()] == [1.0, 0.0, 0.5]
    assert found.best == "good"
    assert not found.ok
    assert found.compare("bad", "good").regressed


@pytest.mark.parametrize(
    ("models", "message"),
    [
        ([], "is empty"),
        ("echo-1", "one text, not a list"),
        (["echo-1", "echo-1"], "there twice"),
        (["echo-1", "nobody-1"], "cannot be had"),
        ([""], "names of models, or BaseLlms"),
        ([7], "names of models, or BaseLlms"),
        ([None], "names of models, or BaseLlms"),
    ],
)
async def test_models_that_are_none_are_told_before_any_is_asked(
    asked: list[str | None], models: Any, message: str
) -> None:
    suite = FluentEvalSuite("s", Agent("a", own()), [case()])
    with pytest.raises(EvalError, match=message):
        await suite.matrix(models)
    assert not asked


async def test_two_models_of_one_name_are_told() -> None:
    suite = FluentEvalSuite("s", Agent("a", own()), [case()])
    with pytest.raises(EvalError, match="there twice") as caught:
        await suite.matrix([named("m", "one"), named("m", "two")])
    assert "different names" in (caught.value.help or "")


async def test_a_model_that_fails_does_not_end_the_others() -> None:
    suite = FluentEvalSuite("s", Agent("a", own()), [case()])
    found = await suite.matrix([named("bad", reply(status=400)), named("good")])
    assert [each.outcomes[0].status for each in found.values()] == [Status.ERROR, Status.PASSED]


# --- shards --------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", [1, 2, 3, 5])
async def test_shards_are_the_whole_and_nothing_twice(of: int) -> None:
    cases = [case(f"say {at}", id=f"c{at}", tags=[f"t{at % 2}"]) for at in range(5)]
    suite = FluentEvalSuite("s", agent("a"), cases)
    whole = await suite.run(num_runs=2)
    parts = [await suite.run(num_runs=2, shard=(which, of)) for which in range(1, of + 1)]
    keys = [each.key for part in parts for each in part.outcomes]
    assert sorted(keys) == sorted(each.key for each in whole.outcomes)
    merged = FluentEvalReport.merge(*parts)
    assert sorted(each.key for each in merged.outcomes) == sorted(keys)
    assert not merged.missing_shards
    assert merged.pass_rate == whole.pass_rate
    assert merged.ok
    assert {key: each.passed for key, each in merged.per_tag.items()} == {
        key: each.passed for key, each in whole.per_tag.items()
    }


async def test_a_shard_that_is_missing_is_told() -> None:
    suite = FluentEvalSuite("s", agent("a"), [case(f"say {at}", id=f"c{at}") for at in range(6)])
    parts = [await suite.run(shard=(which, 3)) for which in (1, 3)]
    merged = FluentEvalReport.merge(*parts)
    assert tuple(merged.missing_shards) == (2,)
    assert not merged.ok


@pytest.mark.parametrize("shard", [(0, 3), (4, 3), (1,), "1/3", [1, 3], (1.0, 3), (1, 0)])
async def test_a_shard_that_is_none_is_refused(shard: Any) -> None:
    with pytest.raises(EvalError, match="shard"):
        await FluentEvalSuite("s", desk(), [case()]).run(shard=shard)
