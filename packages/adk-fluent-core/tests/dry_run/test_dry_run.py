"""What `dry_run` says would happen, and that it is what happens."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random
from typing import TYPE_CHECKING, Any

import ir_strategies
import pytest
from hypothesis import given

from adk_fluent import (
    Agent,
    Loop,
    Pipeline,
    Route,
    expect,
    map_over,
    race,
    tap,
    timeout,
    transfer,
    until,
)
from adk_fluent.backends.dry_run import Count, DryRun, DryRunBackend, dry_run
from adk_fluent.backends.mock import mock_backend
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UsageError
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    AppNode,
    ExecutionBoundary,
    LoopNode,
    Match,
    MiddlewareNode,
    ModelCandidate,
    ModelSelectorNode,
    Node,
    ParallelNode,
    Ref,
    RemoteAgentNode,
    RetryConfig,
    RouteNode,
    SequenceNode,
    walk,
)
from adk_fluent.protocol import Compiler

if TYPE_CHECKING:
    from collections.abc import Callable


def good(state: Any) -> bool:
    return True


def search(query: str) -> str:
    """Search."""
    return query


a, b, c = (Agent(name, f"model-{name}") for name in "abc")


def models(pipeline: Any, **settings: Any) -> dict[str, str]:
    config = ExecutionConfig(**settings) if settings else None
    return {name: str(count) for name, count in dry_run(pipeline, config).models.items()}


# --- how often models are called -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("pipeline", "calls"),
    [
        (a, {"model-a": "1"}),
        (a >> b >> a, {"model-a": "2", "model-b": "1"}),
        (a | b, {"model-a": "1", "model-b": "1"}),
        (race(a, b), {"model-a": "0 to 1", "model-b": "0 to 1"}),
        (race(a, a >> b), {"model-a": "1 to 2", "model-b": "0 to 1"}),
        (a // b, {"model-a": "0 to 1", "model-b": "0 to 1"}),
        (a // (a >> b), {"model-a": "1 to 2", "model-b": "0 to 1"}),
        (a * 3, {"model-a": "3"}),
        ((a >> b * 2) * 3, {"model-a": "3", "model-b": "6"}),
        (a * until(good, max=4), {"model-a": "1 to 4"}),
        (a.clone().tool(search), {"model-a": "1 or more"}),
        (a.clone().tool(search) >> b, {"model-a": "1 or more", "model-b": "1"}),
        ((a.clone().tool(search) >> b) * 3, {"model-a": "1 or more", "model-b": "0 to 3"}),
        (
            Loop("l", a.clone().tool(search) * 2 >> b),
            {"model-a": "10 or more", "model-b": "10"},
        ),
        (a.clone().agent_tool(b), {"model-a": "1 or more", "model-b": "any number"}),
        (a.clone().delegates(b), {"model-a": "1 or more", "model-b": "any number"}),
        (a.clone().before_model(search), {"model-a": "0 to 1"}),
        (map_over("rows", a), {"model-a": "any number"}),
        (timeout(a, 3) >> tap(print) >> expect(good, "no"), {"model-a": "1"}),
        (Route("k").eq(1, a).eq(2, a >> b), {"model-a": "0 to 1", "model-b": "0 to 1"}),
        (Route("k").eq(1, a).otherwise(a >> b), {"model-a": "1", "model-b": "0 to 1"}),
        (Route("k").eq(1, a * 3).otherwise(a), {"model-a": "1 to 3"}),
        (Pipeline("p", a, transfer("a")), {"model-a": "2"}),
        (Pipeline("p", a, transfer("a", when=good)), {"model-a": "1 to 2"}),
        (Agent("x").mock("hello") >> a, {"model-a": "1"}),
        (Agent("x"), {"ADK's default": "1"}),
    ],
)
def test_models(pipeline: Any, calls: dict[str, str]) -> None:
    assert models(pipeline) == calls


def test_the_default_model_of_the_configuration_counts() -> None:
    assert models(Agent("x"), default_model="flash") == {"flash": "1"}
    app = AppNode("app", AgentNode("x"), execution=ExecutionConfig(default_model="pro"))
    assert models(app) == {"pro": "1"}
    assert models(app, default_model="flash") == {"flash": "1"}


def test_a_selector_calls_one_of_its_models() -> None:
    candidates = (ModelCandidate("m", 1, 1, 1), ModelCandidate("n", 1, 1, 1))
    chosen = ModelSelectorNode("s", candidates=candidates, fallback_model="o")
    assert models(AgentNode("x", selector=chosen)) == dict.fromkeys("mno", "0 to 1")
    only = ModelSelectorNode("s", candidates=candidates[:1])
    assert models(AgentNode("x", selector=only)) == {"m": "1"}


def test_a_branch_of_a_parallel_that_takes_the_first() -> None:
    first = ParallelNode("p", (a.to_ir(), b.to_ir()), "first_complete")
    assert models(first) == {"model-a": "0 to 1", "model-b": "0 to 1"}


def test_remote_agents() -> None:
    remote = RemoteAgentNode("far", "https://x.example", fallback=a.to_ir())
    report = dry_run(SequenceNode("p", (remote, LoopNode("l", remote, 2))))
    assert {name: str(count) for name, count in report.remotes.items()} == {"far": "2 to 3"}
    assert models(remote) == {"model-a": "0 to 1"}
    again = remote.replace(retry=RetryConfig(max_attempts=5))
    assert str(dry_run(again).remotes["far"]) == "1 to 5"


def test_a_transfer_back_to_itself_is_found_and_adds_nothing() -> None:
    loop = Pipeline("p", a, transfer("p"))
    report = dry_run(loop)
    assert not report.ok
    assert str(report.models["model-a"]) == "1"


def test_all_calls_and_the_limit() -> None:
    report = dry_run(a >> b)
    assert (report.model_calls, report.max_llm_calls) == (Count(2, 2), 500)
    assert "in all: 2\n" in f"{report}\n"
    tool = dry_run(a.clone().tool(search))
    assert "in all: 1 or more; max_llm_calls ends a run after 500" in str(tool)
    assert "which max_llm_calls=3 does not allow" in str(
        dry_run(a * 4, ExecutionConfig(max_llm_calls=3))
    )
    assert "in all: 4" in str(dry_run(a * 4, ExecutionConfig(max_llm_calls=0)))
    assert dry_run(a, ExecutionConfig(max_llm_calls=0)).max_llm_calls is None


def test_counts() -> None:
    assert str(Count(1, 1)) == "1"
    assert str(Count(0, None)) == "any number"
    assert str(Count(10**15, 10**15) + Count(1, 1)) == f"{10**15} or more"
    assert Count(0, None) * Count(0, 0) == Count(0, 0)


# --- what is in it -------------------------------------------------------------------------------


def test_steps_in_order() -> None:
    route = Route("k").eq(1, b).otherwise(c)
    helped = a.clone().agent_tool(Agent("h"))
    steps = dry_run(Pipeline("desk", helped, route, Loop("again", b, max=2))).steps
    assert [(each.depth, str(each), str(each.runs)) for each in steps] == [
        (0, "pipeline desk", "1"),
        (1, "agent a", "1"),
        (2, "may call: agent h", "any number"),
        (1, "route", "1"),
        (2, "k == 1: agent b", "0 to 1"),
        (2, "otherwise: agent c", "0 to 1"),
        (1, "loop again", "1"),
        (2, "agent b", "2"),
    ]


def test_tools_and_state() -> None:
    first = a.clone().tool(search).writes("draft")
    second = b.clone().tool(search).agent_tool(c).instruct("{draft} {topic}").writes("verdict")
    report = dry_run(first >> second >> Route("verdict").eq("no", c))
    assert report.tools == {"search": ("a", "b"), "c": ("b",)}
    assert report.writes == {"draft": ("a",), "verdict": ("b",)}
    assert report.reads == {"draft": ("b",), "topic": ("b",), "verdict": ("route",)}
    assert report.inputs == ("topic",)


def test_what_is_absent(absent: Callable[[str], None]) -> None:
    absent("a2a")
    remote = RemoteAgentNode("far", "https://x.example")
    wrapped = MiddlewareNode("m", remote, (Ref(good),))
    report = dry_run(wrapped)
    assert not report.ok
    assert report.absent == {"a2a": "pip install adk-fluent-a2a"}
    assert "pip install adk-fluent-a2a" in str(report)
    absent("distributed")
    here = dry_run(AgentNode("a", boundary=ExecutionBoundary()))
    assert here.ok
    assert here.absent == {"distributed": "pip install adk-fluent-distributed"}


def test_findings_of_the_checks() -> None:
    report = dry_run(Pipeline("p", Agent("a"), Agent("a", "other")))
    assert not report.ok
    assert "DuplicateName" in str(report.check.to_dict())


def test_what_cannot_be_seen_into_is_said() -> None:
    text = str(dry_run(AdkAgentNode("x", Ref(object(), "x"))))
    assert "unknown\n  x: it is an agent built by hand" in text


def test_the_text_as_a_whole() -> None:
    report = dry_run((a.writes("k") >> b.clone().reads("k")).named("desk") * 2)
    assert str(report) == (
        """\
dry run of loop: nothing was executed

steps
  loop             1
    pipeline desk  2
      agent a      2
      agent b      2

model calls
  model-a  2
  model-b  2
  in all: 4

state
  k: written by a

Found nothing wrong."""
    )


def test_json() -> None:
    report = dry_run(a.clone().tool(search))
    data = json.loads(report.to_json())
    assert data == report.to_dict()
    assert data["models"] == {"model-a": {"at_least": 1, "at_most": None}}
    assert data["steps"][0]["runs"] == {"at_least": 1, "at_most": 1}
    assert data["check"]["ok"] is True


# --- what it does not do -------------------------------------------------------------------------


def test_it_is_a_compiler() -> None:
    backend = DryRunBackend()
    assert isinstance(backend, Compiler)
    assert backend.compile(a.to_ir()) == dry_run(a)


@pytest.mark.parametrize("thing", [42, "a", None, Agent])
def test_what_is_no_pipeline_is_refused(thing: Any) -> None:
    with pytest.raises(UsageError, match=r"dry_run\(\.\.\.\) takes a pipeline"):
        dry_run(thing)


def test_a_configuration_without_meaning_is_refused() -> None:
    with pytest.raises(UsageError, match="timeout_seconds"):
        dry_run(a, ExecutionConfig(timeout_seconds=-1))


def test_nothing_is_executed_and_adk_not_imported() -> None:
    code = (
        "import sys\n"
        "from adk_fluent import Agent, Route, expect, tap\n"
        "from adk_fluent.backends.dry_run import dry_run\n"
        "def fail(state): raise SystemExit('it ran')\n"
        "p = Agent('a').mock(fail) >> fail >> tap(fail) >> expect(fail, 'no') >> "
        "Route('k').when(fail, Agent('b').before_model(fail))\n"
        "print(dry_run(p))\n"
        "assert not {'google', 'pydantic'} & {m.partition('.')[0] for m in sys.modules}\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "agent b" in done.stdout


# --- any pipeline --------------------------------------------------------------------------------


@ir_strategies.laws
@given(ir_strategies.graphs())
def test_any_legal_ir(root: Node) -> None:
    report = dry_run(root)
    assert json.loads(report.to_json())["name"] == root.name
    assert len(report.steps) + report.more_steps <= sum(1 for _ in walk(root))
    for count in (report.model_calls, *report.models.values(), *report.remotes.values()):
        assert count.at_most is None or 0 <= count.at_least <= count.at_most


def random_pipeline(random: Random, depth: int, number: list[int]) -> Node:
    """A random pipeline whose run the mock backend decides by a random state."""
    if depth == 0 or random.random() < 0.2:
        number[0] += 1
        agent = Agent(f"a{number[0]}", f"m{random.randint(1, 3)}")
        return agent.to_ir()
    parts = tuple(random_pipeline(random, depth - 1, number) for _ in range(random.randint(1, 3)))
    key = random.choice("kl")
    match random.randint(0, 4):
        case 0:
            return ParallelNode("both", parts)
        case 1:
            done = Match("eq", key, random.randint(0, 3)) if random.random() < 0.5 else None
            return LoopNode("loop", parts[0], 3, done)
        case 2:
            tests = tuple(Match("eq", key, at) for at in range(len(parts)))
            return RouteNode("route", key, tests, parts)
        case 3:
            return map_over("rows", parts[0]).to_ir()
        case _:
            return SequenceNode("pipeline", parts)


@pytest.mark.parametrize("seed", range(60))
async def test_a_real_run_stays_within_the_bounds(seed: int) -> None:
    random = Random(seed)
    root = random_pipeline(random, 3, [0])
    backend = mock_backend({n.name: lambda _: "ok" for n in walk(root) if isinstance(n, AgentNode)})
    state = {"k": random.randint(0, 3), "l": random.randint(0, 3), "rows": [1, 2]}
    await backend.run(backend.compile(root), "go", state=state)
    of = {n.name: str(n.model) for n in walk(root) if isinstance(n, AgentNode)}
    made = [of[str(call.agent)] for call in backend.calls]
    report: DryRun = dry_run(root)
    assert set(made) <= set(report.models)
    for model, count in report.models.items():
        calls = made.count(model)
        assert count.at_least <= calls
        assert count.at_most is None or calls <= count.at_most


def test_nothing_recurses() -> None:
    report = dry_run(ir_strategies.chain(5_000))
    assert len(report.steps) == 1_000
    assert report.more_steps == 5_001
    assert report.models["m"].at_most is None
    assert max(len(line) for line in str(report).splitlines()) < 500


def test_parts_that_share_their_parts() -> None:
    here: Node = AgentNode("a", "m")
    for i in range(40):
        here = ParallelNode(f"p{i}", (here, here))
    report = dry_run(here)
    assert report.models == {"m": Count(2**40, 2**40)}
    assert len(report.steps) + report.more_steps == 2**41 - 1
