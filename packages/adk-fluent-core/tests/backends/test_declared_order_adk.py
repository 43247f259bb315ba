"""What branches said stands in declared order in prompts, whichever of them was done first."""

from __future__ import annotations

import asyncio
from itertools import permutations
from typing import TYPE_CHECKING, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent import Agent, FanOut, Loop, gate, map_over
from adk_fluent.backends._declared_order import in_declared_order
from adk_fluent.config import ExecutionConfig
from adk_fluent.testing import Call, ScriptedModel, mock_backend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.builders import Builder

pytestmark = pytest.mark.adk

NAMES = ("a", "b", "c")


class Turns:
    """Lets branches be done in an order of the test's."""

    def __init__(self, order: Iterable[str]) -> None:
        self._order = list(order)
        self._done: list[str] = []
        self._change = asyncio.Condition()

    async def hold(self, name: str) -> None:
        """Wait for one's turn."""
        async with self._change:
            await self._change.wait_for(lambda: self._order[len(self._done)] == name)

    async def tell(self, name: str) -> None:
        """Be done."""
        async with self._change:
            self._done.append(name)
            if len(self._done) == len(self._order):
                self._done.clear()
            self._change.notify_all()

    def around(self, name: str, body: Builder) -> Builder:
        """A branch that begins when it is its turn, and is then done."""

        async def hold(state: Any) -> None:
            await self.hold(name)

        async def tell(state: Any) -> None:
            await self.tell(name)

        return hold >> body >> tell


def agent(name: str) -> Agent:
    return Agent(name).mock([f"{name} says {n}" for n in range(9)])


def flat(turns: Turns) -> Builder:
    return FanOut(*(turns.around(name, agent(name)) for name in NAMES))


def with_tools(turns: Turns) -> Builder:
    def look(what: str) -> str:
        """Look."""
        return f"seen {what}"

    def calling(name: str) -> Agent:
        return Agent(name).mock([Call("look", {"what": name}), f"{name} is done"] * 3).tool(look)

    return FanOut(*(turns.around(name, calling(name)) for name in NAMES))


def nested(turns: Turns) -> Builder:
    inner = FanOut(*(turns.around(name, agent(name)) for name in NAMES[:2]))
    return FanOut(inner, turns.around("c", agent("c")))


def steps(turns: Turns) -> Builder:
    """Branches of several steps, whose events alternate."""
    first = [turns.around(name, agent(name)) >> agent(f"{name}2") for name in NAMES]
    return FanOut(*first)


def looped(turns: Turns) -> Builder:
    return Loop("l", flat(turns), max=2)


ARRANGED: dict[str, Callable[[Turns], Builder]] = {
    each.__name__: each for each in (flat, with_tools, nested, steps, looped)
}
ORDERS = list(permutations(NAMES))


async def prompts(
    arrange: Callable[[Turns], Builder], order: Iterable[str], **options: Any
) -> list[Any]:
    """What the agent after the branches is sent, now and in the next turn of the session."""
    model = ScriptedModel(default="done")
    pipeline = arrange(Turns(order)) >> Agent("z", model).instruct("Sum up.")
    given: dict[str, Any] = {"session_id": "s", **options}
    for message in ("hello", "again"):
        await pipeline.run(message, **given)
    return [tuple(turn.text for turn in call.turns) for call in model.calls]


@pytest.mark.parametrize("arranged", ARRANGED)
async def test_the_next_agent_is_sent_the_same(
    arranged: str, request: pytest.FixtureRequest
) -> None:
    full = request.config.option.full
    arrange = ARRANGED[arranged]
    declared = await prompts(arrange, NAMES)
    others = ORDERS[1:] if arranged == "flat" and full else [("c", "b", "a"), ("b", "c", "a")]
    for order in others:
        assert await prompts(arrange, order) == declared
    sent = "\n".join(declared[0])
    assert sent.index("a says" if arranged != "with_tools" else "a is done") < sent.index("c ")


@pytest.mark.parametrize("mode", ["none", "sse"])
@pytest.mark.parametrize("history", ["transcript", "input"])
async def test_whatever_it_sees_of_it(
    history: Literal["transcript", "input"], mode: Literal["none", "sse"]
) -> None:
    async def sent(order: Iterable[str]) -> list[str]:
        model = ScriptedModel("done")
        pipeline = flat(Turns(order)) >> Agent("z", model).history(history)
        await pipeline.run("hello", config=ExecutionConfig(streaming_mode=mode))
        return [turn.text for turn in model.calls[0].turns]

    assert await sent(("c", "a", "b")) == await sent(NAMES)


async def test_on_the_mock_backend() -> None:
    async def sent(arrange: Callable[[Turns], Builder], order: Iterable[str]) -> Any:
        backend = mock_backend({"z": "done"})
        pipeline = arrange(Turns(order)) >> Agent("z")
        await pipeline.run("hello", backend=backend)
        return next(each.turns for each in backend.calls if each.agent == "z")

    for arrange in ARRANGED.values():
        assert await sent(arrange, ("c", "b", "a")) == await sent(arrange, NAMES)


async def test_items_of_a_map_stand_in_the_order_of_their_list() -> None:
    async def sent(order: list[int]) -> list[str]:
        turns, model = Turns(map(str, order)), ScriptedModel("done")

        async def hold(state: Any) -> None:
            await turns.hold(str(state["item"]))

        async def tell(state: Any) -> None:
            await turns.tell(str(state["item"]))

        answers = ScriptedModel(default=lambda asked: f"item {asked.system.split('Do ')[1][0]}")
        body = hold >> Agent("a", answers).instruct("Do {item}") >> tell
        mapped = map_over("items", body, item_key="item", output_key="all", concurrency=3)
        await (mapped >> Agent("z", model)).run("hello", state={"items": [1, 2, 3]})
        return [turn.text for turn in model.calls[0].turns]

    declared = await sent([1, 2, 3])
    assert await sent([3, 1, 2]) == declared
    assert ["item 1" in declared[1], "item 2" in declared[2]] == [True, True]


async def test_events_keep_their_times_and_the_session_its_order(
    service: BaseSessionService,
) -> None:
    given: dict[str, Any] = {"session_service": service, "session_id": "s"}
    result = await (flat(Turns(("c", "b", "a"))) >> Agent("z").mock("done")).run("hi", **given)
    said = [event.author for event in result if event.content]
    assert said == ["c", "b", "a", "z"]
    times = [event.timestamp for event in result]
    assert times == sorted(times)
    kept = await service.get_session(app_name="adk_fluent_app", user_id="user", session_id="s")
    assert kept is not None
    assert [each.author for each in kept.events if each.content][1:] == said


async def test_after_a_pause_in_a_branch(sqlite: BaseSessionService) -> None:
    """What is said after the answer stands after it; what was said before, in declared order."""

    async def sent(order: Iterable[str], id: str) -> list[str]:
        turns, model = Turns(order), ScriptedModel("done")
        asked = agent("b") >> gate(message="ok?", name="ok") >> agent("b2")
        branches = [agent("a"), asked, agent("c")]
        fork = FanOut(*map(turns.around, NAMES, branches))
        pipeline = fork >> Agent("z", model)
        given: dict[str, Any] = {"session_service": sqlite, "session_id": id}
        first = await pipeline.run("hi", **given)
        await pipeline.resume(first.pending[0].answer(True), **given)
        return [turn.text for turn in model.calls[0].turns]

    assert await sent(("c", "a", "b"), "one") == await sent(("a", "c", "b"), "two")


PATHS = st.lists(st.sampled_from(["s0", "s1", "p0", "p1", "p12", "m2", "l3"]), max_size=3)


@given(st.lists(st.none() | PATHS.map(".".join), max_size=12))
def test_nothing_is_lost_and_branches_are_brought_together(paths: list[str | None]) -> None:
    events = list(enumerate(paths))

    def place(event: tuple[int, str | None]) -> tuple[str, str] | None:
        return None if event[1] is None else ("run", event[1])

    made = in_declared_order(events, place)
    assert sorted(made, key=lambda each: each[0]) == events
    assert in_declared_order(made, place) == made
    plain = [each for each in events if "p" not in (each[1] or "") and "m" not in (each[1] or "")]
    assert [each for each in made if each in plain] == plain
    users = [at for at, (_, path) in enumerate(made) if path is None]
    assert users == [at for at, (_, path) in enumerate(events) if path is None]
    tops = [path.split(".")[0] for _, path in made if path]
    for fork in "pm":
        if not users and all(each[0] == fork for each in tops):
            assert [int(each[1:]) for each in tops] == sorted(int(each[1:]) for each in tops)
