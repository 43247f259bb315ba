"""Random pipelines do the same wherever they run: on the engine alone, on the mock backend, and
on ADK by `ask`, `run`, `stream` and a Runner of ADK's own, with sessions in memory and in SQLite.

What they should do is told by `adk_fluent.testing._oracle`: final state, answer, errors, and the
order of calls. 24 run on the engine, 24 on the mock backend and 24 spread over the ways to run on
ADK, each in memory and on SQLite. With ``--full`` every way runs 2 000.
"""

from __future__ import annotations

import asyncio
import gc
import itertools
import re
import sys
import warnings
import zlib
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from adk_fluent import ir
from adk_fluent.backends._dict_leaf import DictLeaf
from adk_fluent.backends.mock import mock_backend
from adk_fluent.builders._running import Running
from adk_fluent.errors import AgentReportedError
from adk_fluent.flow import RULES, Engine, promises_of
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    ExecutionConfig,
    FallbackNode,
    FunctionNode,
    GateNode,
    LoopNode,
    MapOverNode,
    Match,
    MiddlewareNode,
    ParallelNode,
    RaceNode,
    Ref,
    RemoteAgentNode,
    RouteNode,
    SequenceNode,
    TimeoutNode,
    TransformNode,
    verify,
    walk,
)
from adk_fluent.protocol import AgentEvent, ErrorInfo, final_text, kept_events
from adk_fluent.testing import Asked, Call, ScriptedModel, Turn
from adk_fluent.testing._oracle import (
    KINDS,
    Program,
    Says,
    Step,
    _behaviours,
    act,
    agent,
    meaning,
    programs,
    recorded,
    shown,
)

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        AsyncIterable,
        Awaitable,
        Callable,
        Iterator,
        Mapping,
    )
    from pathlib import Path

    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.flow import Strand
    from adk_fluent.ir import Node

    class Examine(Protocol):
        def __call__(
            self, way: Callable[[Program], Ran], one_in: int = ..., *, plain: bool = ...
        ) -> None: ...


FEW, MANY = 24, 2_000
LEAST = 10  # examples at a time: the first ones that hypothesis draws are small
WAYS = 4  # to run on ADK, among which they are spread; each in memory and on SQLite
SETTINGS = settings(
    phases=[Phase.generate, Phase.shrink],
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
STORES = ["memory", "sqlite"]
ENOUGH = 50  # examples, for every kind of node to occur
PLENTY = 500  # and every trait
TRAITS = {
    *("answers", "leaves", "hangs", "reports", "streamed", "clings"),  # agents
    *("returns", "ignores", "misreturns", "raises", "sync", "async"),  # functions
    *("merge", "replace_session", "delete_keys"),
    *("wait_all", "interleave", "first_complete"),
    *("result", "answer", "all at once", "some at once"),  # maps
    *("in time", "late"),
    *("matched", "checked", "the rest", "nothing"),  # routes
    *("until", "shared", "merges all", "merges here"),
}
MORE = {"notes", "keeps", "built"}  # of agents; the mock backend has none of these
SECONDS = 120  # for one pipeline; far more than any takes
PLAIN = ExecutionConfig(max_llm_calls=100_000, contracts="off")  # mistakes have a meaning, too
STREAMED = ExecutionConfig(max_llm_calls=100_000, streaming_mode="sse", contracts="off")


@dataclass
class Ran:
    """What was seen of a run; None where the way it ran does not show it."""

    events: list[AgentEvent] = field(default_factory=list[AgentEvent])
    states: list[Mapping[str, Any]] = field(default_factory=list["Mapping[str, Any]"])
    calls: list[str] = field(default_factory=list[str])
    text: str | None = None
    error: Exception | None = None

    async def follow(self, events: AsyncIterable[AgentEvent]) -> None:
        async for event in events:
            self.events.append(event)
        self.text = final_text(self.events)

    def wrong(self, program: Program) -> list[str]:
        """What differs from what it should be."""
        with recorded():
            wanted = meaning(program.root, program.state, act)
        found = [wanted.error_differs(self.error), wanted.calls_differ(self.calls)]
        found += [wanted.state_differs(state) for state in self.states]
        if not wanted.fails and self.error is None:
            assert self.text is not None
            found.append(wanted.text_differs(self.text))
            if self.events:
                errors = (each.error for each in kept_events(self.events))
                told = [(each.code, each.message) for each in errors if each]
                found.append(wanted.reports_differ(told))
        return [each for each in found if each is not None]


async def ran(program: Program, way: Callable[[Program, Ran], Awaitable[None]]) -> Ran:
    """Run a pipeline, note what it calls and how it ends, and see that nothing is left running."""
    seen = Ran()
    before = asyncio.all_tasks()
    with recorded() as seen.calls:
        limit = asyncio.timeout(SECONDS)
        try:
            async with limit:
                await way(program, seen)
        except Exception as error:  # noqa: BLE001  # compared with what should be raised
            seen.error = error
    assert not limit.expired(), "it never ends"
    assert asyncio.all_tasks() <= before
    return seen


# --- the engine alone ----------------------------------------------------------------------------


class PlainLeaf(DictLeaf):
    """Follows the scripts of agents, with nothing but Python."""

    async def run(
        self, node: Node, strand: Strand, answers: Mapping[str, Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        assert isinstance(node, AgentNode)
        assert node.mock is not None
        says: Says = node.mock.value
        if says.notes:
            yield self.event(node, strand, state_delta=dict(says.notes))
        reply = await says.answer(self.asked(node, strand, ""))
        if says.keeps:
            yield self.event(node, strand)
            yield self.event(node, strand, state_delta=dict(says.keeps))
            reply = await says.answer(self.asked(node, strand, "[result keep]"))
        for chunk in reply.chunks:
            yield self.event(node, strand, content=chunk, is_partial=True)
        if reply.raises is not None:
            raise reply.raises
        if reply.error_code is not None:
            error = ErrorInfo(reply.error_code, reply.error_message or "")
            yield self.event(node, strand, error=error, is_final=True)
            return
        if any(isinstance(part, Call) for part in reply.parts):
            yield self.event(node, strand, content=reply.text)
            yield self.event(node, strand, escalate=True, is_final=True)
            return
        written = {ref.key: reply.text for ref in node.writes_keys}
        yield self.event(node, strand, content=reply.text, is_final=True, state_delta=written)

    def asked(self, node: AgentNode, strand: Strand, prompt: str) -> Asked:
        system = re.sub(r"{(.+)\?}", lambda key: shown(strand.state, key[1]), str(node.instruction))
        return Asked(turns=(Turn("user", prompt),), system=system, agent=node.name)


async def on_the_engine(program: Program, seen: Ran) -> None:
    state = dict(program.state)
    leaf = PlainLeaf(state, program.root.name, "run")
    engine = Engine(program.root, leaf, promises=promises_of(program.root))

    async def committed() -> AsyncGenerator[AgentEvent, None]:
        async with aclosing(engine.run()) as events:
            async for event in events:
                leaf.commit(event)
                yield event

    seen.states.append(state)
    await seen.follow(committed())
    assert not engine.log.open
    assert engine.position["strands"] == {"0": []}
    assert not engine.position["scopes"]


async def on_mock(program: Program, seen: Ran) -> None:
    backend = mock_backend()
    compiled = backend.compile(program.root, STREAMED)
    try:
        await seen.follow(backend.stream(compiled, "go", state=program.state))
    finally:
        seen.states.extend(session.state for session in backend._sessions.values())


# --- ADK -----------------------------------------------------------------------------------------


class Pipe(Running):
    """IR with the methods of builders."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node
        self._runs = None

    def to_ir(self) -> Node:
        return self._node


def built(root: Node) -> Node:
    """The pipeline, some of its agents built by hand."""
    from google.adk.agents.llm_agent import LlmAgent

    def build(node: Node) -> Node:
        if not isinstance(node, AgentNode) or node.mock is None or not node.mock.value.built:
            return node
        fields: dict[str, Any] = {
            "name": node.name,
            "model": ScriptedModel(script=node.mock.value),
            "instruction": node.instruction,
            "tools": [spec.tool.value for spec in node.tools],
            "output_key": node.writes_keys[0].key if node.writes_keys else None,
            **{f"{name}_callback": [fn.value for fn in fns] for name, fns in node.callbacks},
        }
        return AdkAgentNode(node.name, Ref(LlmAgent(**fields), node.name))

    return ir.map(root, build)


class OnAdk:
    """Runs on ADK, each in a session of its own, which is read back afterwards."""

    app = PLAIN.app_name

    def __init__(self, service: BaseSessionService) -> None:
        self.service = service
        self.count = 0

    def options(self, program: Program) -> dict[str, Any]:
        self.count += 1
        return {
            "user_id": f"user {self.count}",
            "session_id": f"session {self.count}",
            "session_service": self.service,
            "state": program.state,
        }

    async def read_back(self, seen: Ran, options: Mapping[str, Any]) -> None:
        ids = {key: options[key] for key in ("user_id", "session_id")}
        session = await self.service.get_session(app_name=self.app, **ids)
        assert session is not None
        seen.states.append(session.state)
        await self.service.delete_session(app_name=self.app, **ids)

    async def run(self, program: Program, seen: Ran) -> None:
        options = self.options(program)
        try:
            result = await Pipe(built(program.root)).run("go", config=PLAIN, **options)
            seen.states.append(result.state)
            seen.events, seen.text = list(result), result.text
        finally:
            await self.read_back(seen, options)

    async def stream(self, program: Program, seen: Ran) -> None:
        options = self.options(program)
        try:
            await seen.follow(Pipe(built(program.root)).stream("go", config=STREAMED, **options))
        finally:
            await self.read_back(seen, options)

    async def to_app(self, program: Program, seen: Ran) -> None:
        from google.adk.runners import Runner
        from google.genai import types

        from adk_fluent.backends.adk._session._events import to_agent_event

        options = self.options(program)
        ids = {key: options[key] for key in ("user_id", "session_id")}
        await self.service.create_session(app_name=self.app, state=program.state, **ids)
        runner = Runner(app=Pipe(built(program.root)).to_app(PLAIN), session_service=self.service)
        message = types.Content(role="user", parts=[types.Part(text="go")])

        async def translated() -> AsyncGenerator[AgentEvent, None]:
            async with aclosing(runner.run_async(new_message=message, **ids)) as events:
                async for event in events:
                    yield to_agent_event(event)

        try:
            await seen.follow(translated())
        finally:
            await self.read_back(seen, options)

    def ask(self, program: Program) -> Ran:
        """Not async, and on an event loop of its own."""
        seen, options = Ran(), self.options(program)
        with recorded() as seen.calls:
            try:
                seen.text = Pipe(built(program.root)).ask("go", config=PLAIN, **options)
            except AgentReportedError as error:
                if error.what.startswith("there is no answer: "):
                    seen.text = ""  # a run that came to its end; `ask` has no other way to tell
                else:
                    seen.error = error
            except Exception as error:  # noqa: BLE001  # compared with what should be raised
                seen.error = error
        asyncio.run(self.read_back(seen, options))
        return seen


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # clients of earlier tests close themselves in whatever loop runs, or never
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(params=STORES)
def on_adk(request: pytest.FixtureRequest, tmp_path: Path) -> OnAdk:
    if request.param == "memory":
        from google.adk.sessions.in_memory_session_service import InMemorySessionService

        return OnAdk(InMemorySessionService())
    from google.adk.sessions.sqlite_session_service import SqliteSessionService

    return OnAdk(SqliteSessionService(str(tmp_path / "sessions.db")))


# --- random pipelines ----------------------------------------------------------------------------


@pytest.fixture
def examine(request: pytest.FixtureRequest) -> Examine:
    """Runs all the examples, or one in so many, and compares each with the reference."""
    option = request.config.option
    name: str = request.node.name
    for store in STORES:  # the same programs in each
        name = name.replace(store, "")
    begin = zlib.crc32(name.encode()) ^ option.seed

    def examine(way: Callable[[Program], Ran], one_in: int = 1, *, plain: bool = False) -> None:
        met: set[object] = set()
        passed: set[int] = set()
        examples = option.examples or (MANY if option.full else FEW)
        count = examples if option.full else max(1, examples // one_in)

        def agrees(program: Program) -> None:
            text = hash(repr(program))
            if text not in passed:  # hypothesis likes to repeat itself
                wrong = way(program).wrong(program)
                assert not wrong, "\n".join(wrong)
                passed.add(text)
                met.update(traits(program))

        for turn in itertools.count(begin):
            if len(passed) >= count:
                break
            more = settings(SETTINGS, max_examples=max(count - len(passed), LEAST))
            seed(turn)(more(given(programs(plain=plain))(agrees)))()
        assert count < ENOUGH or met >= KINDS
        assert count < PLENTY or met == KINDS | TRAITS | (set() if plain else MORE)

    return examine


def traits(program: Program) -> Iterator[object]:
    """What occurs in a program: kinds of nodes, and what there is of each."""
    seen: set[int] = set()
    for node in walk(program.root):
        yield type(node)
        if id(node) in seen:
            yield "shared"
        seen.add(id(node))
        if node.contract is not None:
            yield "merges all" if node.contract.outputs else "merges here"
        match node:
            case AgentNode(mock=Ref(value=Says() as says)):
                yield says.ends
                yield from ["streamed"] if says.pieces > 1 else []
                yield from (each for each in (*MORE, "clings") if getattr(says, each))
            case FunctionNode(fn=Ref(value=Step() as step)):
                yield step.ends
                yield "sync" if step.ticks is None else "async"
            case TransformNode():
                yield node.semantics
            case ParallelNode():
                yield node.merge
            case MapOverNode():
                yield "answer" if node.result_key is None else "result"
                yield "all at once" if node.concurrency is None else "some at once"
            case TimeoutNode():
                yield "late" if node.seconds < 1 else "in time"
            case RouteNode():
                yield from ("matched" if isinstance(t, Match) else "checked" for t in node.tests)
                yield "nothing" if node.default is None else "the rest"
            case LoopNode(until=until) if until is not None:
                yield "until"
            case _:
                continue


def test_every_kind_the_engine_runs_has_a_meaning() -> None:
    apart = {AdkAgentNode, GateNode, RemoteAgentNode, MiddlewareNode}
    assert RULES.keys() - apart == KINDS


def test_a_program_is_legal_and_its_repr_makes_it_again() -> None:
    @settings(max_examples=100, deadline=None, derandomize=True, database=None)
    @given(programs())
    def check(program: Program) -> None:
        assert verify(program.root) == ()
        names = {**vars(ir), **vars(_behaviours), "Program": Program}
        exec(repr(program), names)
        again: Any = names["program"]
        assert repr(again) == repr(program)
        with recorded():
            assert meaning(again.root, again.state, act) == meaning(
                program.root, program.state, act
            )

    check()


def test_on_the_engine_alone(examine: Examine, loop: asyncio.Runner) -> None:
    examine(lambda program: loop.run(ran(program, on_the_engine)))


def test_on_the_mock_backend(examine: Examine, loop: asyncio.Runner) -> None:
    examine(lambda program: loop.run(ran(program, on_mock)), plain=True)


@pytest.mark.adk
@pytest.mark.parametrize("way", ["run", "stream", "to_app"])
def test_on_adk(examine: Examine, loop: asyncio.Runner, on_adk: OnAdk, way: str) -> None:
    examine(lambda program: loop.run(ran(program, getattr(on_adk, way))), WAYS)


@pytest.mark.adk
def test_asked_on_adk(examine: Examine, on_adk: OnAdk) -> None:
    examine(on_adk.ask, WAYS)


def test_errors_stay_chained_while_another_one_is_handled(loop: asyncio.Runner) -> None:
    names = "abc"
    attempts = [FunctionNode(name, Ref(Step(name, ends="raises"), name)) for name in names]

    async def handling(program: Program, seen: Ran) -> None:
        try:
            raise KeyError("what the caller is busy with")
        except KeyError:
            await on_the_engine(program, seen)

    for root in (FallbackNode("root", tuple(attempts)), RaceNode("root", tuple(attempts))):
        program = Program(root, {})
        assert loop.run(ran(program, handling)).wrong(program) == []


# --- deep and wide -------------------------------------------------------------------------------


def count(at: int) -> Node:
    """A step that counts up one of a few keys."""
    name = f"f{at}"
    return FunctionNode(name, Ref(Step(name, counts=(f"n{at % 7}",)), name))


def deep(depth: int) -> Program:
    """Arrangements of all kinds, one in the other, each with a step before it."""
    here: Node = agent(Says("a", "done", reads="i0"), "t1")
    for at in range(depth):
        name = f"x{at}"
        around: dict[int, Callable[[Node], Node]] = {
            0: lambda body, name=name: LoopNode(name, body, 1),
            1: lambda body, name=name: RouteNode(name, default=body),
            2: lambda body, name=name: FallbackNode(name, (body,)),
            3: lambda body, name=name: TimeoutNode(name, body, 600),
            4: lambda body, name=name: ParallelNode(name, (body,)),
            5: lambda body, name=name: RaceNode(name, (body,)),
            6: lambda body, name=name: MapOverNode(name, "one", body, "i0", name, "t1"),
        }
        here = around[at % 7](SequenceNode(f"q{at}", (count(at), here)))
    return Program(here, {"one": ["it"]})


def write(at: int) -> Node:
    """A step that writes its number to one of a few keys."""
    name = f"f{at}"
    return FunctionNode(name, Ref(Step(name, ((f"j{at % 7}", at),)), name))


def wide(width: int, *, parallel: bool) -> Program:
    """Many functions and some agents, in a row or at the same time."""
    steps = [
        agent(Says(f"a{at}", f"answer {at}"), f"t{at % 7}") if at % 100 == 0 else write(at)
        for at in range(width)
    ]
    kind = ParallelNode if parallel else SequenceNode
    return Program(kind("root", tuple(steps)), {})


LARGE = {
    "deep": lambda: deep(500),
    "long": lambda: wide(10_000, parallel=False),
    "wide": lambda: wide(10_000, parallel=True),
}


@pytest.mark.parametrize(
    "shape", ["deep", *(pytest.param(each, marks=pytest.mark.full) for each in ("long", "wide"))]
)
def test_large_ones_on_the_engine(shape: str, loop: asyncio.Runner) -> None:
    program = LARGE[shape]()
    seen = loop.run(ran(program, on_the_engine))
    assert compared(program, seen) == []


@pytest.mark.full
@pytest.mark.adk
@pytest.mark.parametrize("shape", LARGE)
def test_large_ones_on_adk(shape: str, loop: asyncio.Runner) -> None:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    program = LARGE[shape]()
    seen = loop.run(ran(program, OnAdk(InMemorySessionService()).run))
    assert compared(program, seen) == []


def compared(program: Program, seen: Ran) -> list[str]:
    """What is wrong, by a reference that may recurse; what ran may not."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        return seen.wrong(program)
    finally:
        sys.setrecursionlimit(limit)
