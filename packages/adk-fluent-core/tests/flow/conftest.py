from __future__ import annotations

import asyncio
import copy
import json
from collections import Counter
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import pytest

from adk_fluent.backends._dict_leaf import DictLeaf
from adk_fluent.flow import ARRANGEMENTS, Enclosed, Engine, Facts, Position, promises_of
from adk_fluent.flow._position import ENDED, open_up
from adk_fluent.ir import (
    AgentNode,
    ExpectNode,
    FallbackNode,
    FunctionNode,
    LoopNode,
    MapOverNode,
    Match,
    Node,
    ParallelNode,
    RaceNode,
    Ref,
    RouteNode,
    SequenceNode,
    TapNode,
    TimeoutNode,
    TransferNode,
    TransformNode,
    walk,
)
from adk_fluent.protocol import AgentEvent, AgentReply, ErrorInfo, Pending, final_text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from typing import TypeAlias

    from adk_fluent.flow import Around, Strand
    from adk_fluent.ir import Predicate

    State: TypeAlias = Mapping[str, Any]
    Act: TypeAlias = Callable[["Turn"], AsyncGenerator[AgentEvent, None]]
    #: What a leaf writes to a key; a function computes it from state.
    Value: TypeAlias = Callable[[State], object] | str | int | list[Any] | dict[str, Any] | None
    Testing: TypeAlias = Callable[[State], object] | Match


class Hooks:
    """Stands around the steps of some names, or around all."""

    has_steps = True

    def __init__(self, call: Callable[[Enclosed[Any]], Awaitable[AgentReply]], *names: str) -> None:
        self._call, self._names = call, names

    def encloses(self, node: Node) -> bool:
        if self._names:
            return node.name in self._names
        return type(node) in ARRANGEMENTS or isinstance(node, AgentNode)

    async def call(self, step: Enclosed[Any]) -> AgentReply:
        return await self._call(step)

    def ended(self, *, paused: bool) -> None:
        pass


async def passes(step: Enclosed[Any]) -> AgentReply:
    return await step.go_on()


#: Stands around every step and lets it be as it is.
ALL = Hooks(passes)


class BoomError(Exception):
    """What failing leaves raise."""


@dataclass
class Turn:
    """What an agent of the bench is given."""

    leaf: BenchLeaf
    node: Node
    strand: Strand
    answers: Mapping[str, Any]

    @property
    def state(self) -> Mapping[str, Any]:
        return self.strand.state

    def event(self, text: str | None = None, **fields: Any) -> AgentEvent:
        final = text is not None and not fields.get("is_partial")
        return self.leaf.event(
            self.node, self.strand, **{"content": text, "is_final": final, **fields}
        )


class BenchLeaf(DictLeaf):
    """Runs the act that a node's `mock` holds."""

    bench: Bench
    engine: Engine[AgentEvent] | None = None

    async def run(
        self, node: Node, strand: Strand, answers: Mapping[str, Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        self.bench.calls.append(node.name)
        act: Any = self.bench.people if not isinstance(node, AgentNode) else None
        if isinstance(node, AgentNode) and node.mock is not None:
            act = node.mock.value
        try:
            async with aclosing(act(Turn(self, node, strand, answers))) as events:
                async for event in events:
                    if self.engine is not None:
                        self.engine.keep(strand, node, event)
                    yield event
        finally:
            self.bench.closed.append(node.name)

    def facts(self, event: AgentEvent) -> Facts | None:
        facts = super().facts(event)
        if event.metadata.get("stop"):
            facts = facts or Facts()
            facts.stop = True
        return facts


@dataclass
class Ran:
    """How a run went."""

    engine: Engine[AgentEvent]
    events: list[AgentEvent] = field(default_factory=list[AgentEvent])

    @property
    def text(self) -> str:
        return final_text(self.events)

    @property
    def said(self) -> list[str]:
        return [e.content for e in self.events if e.content is not None]

    @property
    def wrote(self) -> list[dict[str, Any]]:
        return [e.state_delta for e in self.events if e.state_delta]

    @property
    def outcome(self) -> Any:
        return self.engine.outcome


@dataclass
class Save:
    """A position written down, with the state of that moment and the calls until then."""

    position: str
    state: dict[str, Any]
    calls: list[str]


class Bench:
    """Makes nodes and runs them on the engine alone. Every call of a leaf is in `calls`."""

    Boom = BoomError

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        self.calls: list[str] = []
        self.closed: list[str] = []
        self.people: Act | None = None
        self.around: Around | None = None
        self.last: Engine[AgentEvent] = cast("Any", None)

    # --- leaves --------------------------------------------------------------------------------

    def agent(self, name: str, act: Act) -> AgentNode:
        return AgentNode(name, mock=Ref(act))

    def say(self, name: str, text: str | None = None, ticks: int = 0, **writes: Value) -> AgentNode:
        """Says its name, or `text`; `writes` may be functions of state."""

        async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
            for _ in range(ticks):
                await asyncio.sleep(0)
            delta = {k: v(turn.state) if callable(v) else v for k, v in writes.items()}
            yield turn.event(name if text is None else text, state_delta=delta)

        return self.agent(name, act)

    def fails(
        self, name: str, error: Exception | None = None, ticks: int = 0, **writes: Any
    ) -> AgentNode:
        """Writes, then raises."""

        async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
            for _ in range(ticks):
                await asyncio.sleep(0)
            if writes:
                yield turn.event(state_delta=writes)
            raise BoomError(name) if error is None else error

        return self.agent(name, act)

    def reports(
        self, name: str, code: str = "SAFETY", message: str = "no", **fields: Any
    ) -> AgentNode:
        """Reports an error in an event."""

        async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
            yield turn.event(error=ErrorInfo(code, message), **fields)

        return self.agent(name, act)

    def hangs(self, name: str, **writes: Any) -> AgentNode:
        """Writes, then never ends."""

        async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
            if writes:
                yield turn.event(state_delta=writes)
            await asyncio.Event().wait()

        return self.agent(name, act)

    def escalates(self, name: str, **writes: Any) -> AgentNode:
        async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
            yield turn.event(escalate=True, state_delta=writes)

        return self.agent(name, act)

    def stops(self, name: str) -> AgentNode:
        """Refuses: nothing after it may run."""

        async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
            yield turn.event(metadata={"stop": True})

        return self.agent(name, act)

    def waits(self, name: str, *ids: str, **writes: Any) -> AgentNode:
        """Asks for an answer to each id (default: its name), then writes the answers by id."""
        asked = ids or (name,)

        async def act(turn: Turn) -> AsyncGenerator[AgentEvent, None]:
            if turn.answers:
                yield turn.event(f"{name} done", state_delta={**turn.answers, **writes})
            else:
                yield turn.event(pending=tuple(Pending(id, "tool") for id in asked))

        return self.agent(name, act)

    def fn(
        self, name: str, fn: Callable[[State], object] | None = None, **writes: Value
    ) -> FunctionNode:
        def run(state: State) -> object:
            self.calls.append(name)
            if fn is not None:
                return fn(state)
            return {k: v(state) if callable(v) else v for k, v in writes.items()}

        return FunctionNode(name, Ref(run, name))

    def mark(self, name: str) -> FunctionNode:
        """Appends its name to the key ``trail``."""
        return self.fn(name, trail=lambda s: (s.get("trail") or "") + name)

    # --- arrangements --------------------------------------------------------------------------

    def seq(self, *steps: Node, name: str = "seq") -> SequenceNode:
        return SequenceNode(name, steps)

    def par(self, *branches: Node, name: str = "par") -> ParallelNode:
        return ParallelNode(name, branches)

    def first(self, *branches: Node, name: str = "first") -> ParallelNode:
        return ParallelNode(name, branches, "first_complete")

    def race(self, *branches: Node, name: str = "race") -> RaceNode:
        return RaceNode(name, branches)

    def fallback(self, *attempts: Node, name: str = "fb") -> FallbackNode:
        return FallbackNode(name, attempts)

    def loop(
        self, body: Node, times: int = 10, until: Testing | None = None, name: str = "loop"
    ) -> LoopNode:
        return LoopNode(name, body, times, self.predicate(until))

    def route(self, *rules: tuple[Testing, Node], default: Node | None = None) -> RouteNode:
        tests = tuple(self.test(test) for test, _ in rules)
        return RouteNode("route", None, tests, tuple(node for _, node in rules), default)

    def timeout(self, body: Node, seconds: float = 60, name: str = "timeout") -> TimeoutNode:
        return TimeoutNode(name, body, seconds)

    def map(
        self,
        body: Node,
        key: str = "list",
        result: str | None = None,
        concurrency: int | None = None,
        name: str = "map",
    ) -> MapOverNode:
        return MapOverNode(name, key, body, "item", "results", result, concurrency)

    def expect(self, test: Testing, name: str = "expect") -> ExpectNode:
        return ExpectNode(name, self.test(test), "it must hold")

    def tap(self, fn: Callable[[State], object], name: str = "tap") -> TapNode:
        return TapNode(name, Ref(fn, name))

    def transform(self, fn: Callable[[State], object] | None, **fields: Any) -> TransformNode:
        return TransformNode("S", None if fn is None else Ref(fn, "S"), **fields)

    def transfer(self, target: str, when: Testing | None = None) -> TransferNode:
        return TransferNode("transfer", target, self.predicate(when))

    def test(self, test: Testing) -> Predicate:
        return test if isinstance(test, Match) else Ref(test, "test")

    def predicate(self, test: Testing | None) -> Predicate | None:
        return None if test is None else self.test(test)

    # --- running -------------------------------------------------------------------------------

    def engine(
        self,
        root: Node,
        position: Position | None = None,
        *,
        answers: Mapping[str, Any] | None = None,
        on_step: Any = None,
        limit: float | None = None,
        around: Around | None = None,
        keeps_failures: bool = False,
    ) -> Engine[AgentEvent]:
        leaf = BenchLeaf(self.state, root.name)
        leaf.bench = self
        self.last = Engine(
            root,
            leaf,
            position=position,
            answers=answers,
            on_step=on_step,
            limit=limit,
            around=around or self.around,
            keeps_failures=keeps_failures,
            promises=promises_of(root),
        )
        leaf.engine = self.last
        return self.last

    async def run(self, root: Node, **options: Any) -> Ran:
        """Run to the end, and see that no task is left."""
        engine = self.engine(root, **options)
        ran = Ran(engine)
        before = asyncio.all_tasks()
        try:
            async with asyncio.timeout(20), aclosing(engine.run()) as events:
                async for event in events:
                    self.commit(event)
                    ran.events.append(event)
        finally:
            assert asyncio.all_tasks() <= before
        if engine.pending:
            assert engine.position["strands"]["0"]
        else:
            self.clean(engine)
        return ran

    def clean(self, engine: Engine[AgentEvent]) -> None:
        """Nothing of a run that is over is left in its position."""
        assert not engine.log.open
        assert engine.position["strands"] == {"0": []}
        assert not engine.position["scopes"]
        assert not engine.position["base"]

    def commit(self, event: AgentEvent) -> None:
        if not event.is_partial:
            self.state.update(event.state_delta)

    async def reach(self, *names: str) -> None:
        """Wait until leaves of these names were called, and as often."""
        while Counter(names) - Counter(self.calls):  # noqa: ASYNC110  # no leaf knows of this
            await asyncio.sleep(0)

    async def error(self, root: Node, **options: Any) -> Exception:
        """Run, and return what it raises."""
        with pytest.raises(Exception) as caught:  # noqa: PT011  # the caller looks at it
            await self.run(root, **options)
        return caught.value

    @property
    def clean_state(self) -> dict[str, Any]:
        """State without what is None."""
        return {key: value for key, value in self.state.items() if value is not None}

    # --- restarting ----------------------------------------------------------------------------

    async def saves(self, root: Node) -> list[Save]:
        """Run, and write the position down after every step. The state at the start counts."""
        saves: list[Save] = []

        async def save(position: Position) -> None:
            saves.append(Save(json.dumps(position), copy.deepcopy(self.state), list(self.calls)))

        await self.run(root, on_step=save)
        return saves

    async def restarts(self, root: Node, *, every: int = 1) -> int:
        """Run; then go on from every saved step, with the same result and nothing done twice.

        Args:
            root: What runs.
            every: 2 goes on from every other one only, and so on.
        """
        start = copy.deepcopy(self.state)
        saves = await self.saves(root)
        end, once = self.clean_state, Counter(self.calls)
        for save in saves[::every]:
            self.state, self.calls = copy.deepcopy(save.state), []
            position = json.loads(save.position)
            await self.run(root, position=position)
            assert self.clean_state == end, save.position
            extra = Counter(save.calls) + Counter(self.calls)
            extra.subtract(once)
            allowed = Counter(self.in_flight(root, json.loads(save.position)))
            assert all(allowed[name] >= n >= 0 for name, n in extra.items()), (save, extra)
        self.state, self.calls = start, []
        return len(saves)

    def in_flight(self, root: Node, position: Position) -> list[str]:
        """The names of the leaves that a position stands at."""
        names: list[str] = []
        todo = [("0", root)]
        open_up(position)
        while todo:
            id, node = todo.pop()
            frames: list[dict[str, Any]] = position["strands"][id]
            for frame in frames[1:]:
                node = below(root, node, frame["c"])
            forked: dict[str, str] = frames[-1].get("strands", {})
            if not forked and ENDED not in frames[-1]:
                names.append(node.name)
            body_only = isinstance(node, MapOverNode)
            todo.extend(
                (child, node.children[0 if body_only else int(at)]) for at, child in forked.items()
            )
        return names


def below(root: Node, node: Node, at: int) -> Node:
    """The child of a node at a position; that of a transfer is its target."""
    if isinstance(node, TransferNode):
        return next(each for each in walk(root) if each.name == node.target)
    return node.children[at]


@pytest.fixture
def b() -> Bench:
    return Bench()


class Clock:
    """The event loop's clock, which stands still, so that no timer fires, until it is started."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self._time, self._stopped = loop.time, loop.time()
        self._started = False
        patch.setattr(loop, "time", self)

    def __call__(self) -> float:
        return self._time() if self._started else self._stopped

    def start(self) -> None:
        self._started = True


@pytest.fixture
async def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)
