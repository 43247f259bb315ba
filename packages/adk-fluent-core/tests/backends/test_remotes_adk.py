"""Calls of agents elsewhere, and what stands around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from google.adk.agents.base_agent import BaseAgent
from google.adk.events.event import Event
from google.genai import types

from adk_fluent import Agent, Pipeline
from adk_fluent.errors import UsageError
from adk_fluent.extend import ask_remote
from adk_fluent.protocol import NextRemote, RemoteCall, RemoteReply
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.agents.invocation_context import InvocationContext

pytestmark = pytest.mark.adk


class Far(BaseAgent):
    """Asks somebody who is not there, and says how often."""

    asked: ClassVar[list[RemoteCall]] = []
    fails: bool = False

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event]:
        async for event in ask_remote(RemoteCall(self.name, {"q": 1}, ctx), self._ask):
            yield event

    async def _ask(self, call: RemoteCall) -> AsyncGenerator[Event]:
        self.asked.append(call)
        if self.fails:
            raise ConnectionError("nobody is there")
        for text, partial in (("so", True), ("so it is", None)):
            yield said(call, text, partial=partial)


@pytest.fixture(autouse=True)
def nobody_was_asked() -> None:
    Far.asked.clear()


def said(call: RemoteCall, text: str, *, partial: bool | None = None) -> Event:
    content = types.Content(role="model", parts=[types.Part(text=text)])
    made = Event(author=call.agent, invocation_id=call.ctx.invocation_id, content=content)
    made.partial = partial
    if not partial:
        made.actions.state_delta["far"] = text
    return made


def by_heart(call: RemoteCall) -> RemoteReply:
    return RemoteReply([said(call, "by heart")])


class Around:
    def __init__(self, *, instead: Any = None) -> None:
        self.seen: list[Any] = []
        self.instead = instead

    async def wrap_remote_call(self, call: RemoteCall, next: NextRemote) -> RemoteReply:
        self.seen.append((call.agent, call.asked, bool(call.run)))
        if self.instead is not None:
            return self.instead(call)
        reply = await next(call)
        self.seen.append([event.content.parts[0].text for event in reply.events])
        return reply


async def test_a_hook_stands_around_it_and_fragments_pass_by() -> None:
    far, around = Far(name="far"), Around()
    after = Agent("after", ScriptedModel(default="thanks")).instruct("Thank for {far}.")
    result = await (Pipeline(far) >> after).middleware(around).run("Go")
    assert [(each.author, each.content, each.is_partial) for each in result] == [
        ("far", "so", True),
        ("far", "so it is", False),
        ("after", "thanks", False),
    ]
    assert around.seen == [("far", {"q": 1}, True), ["so it is"]]
    assert result.state["far"] == "so it is"


async def test_a_hook_answers_in_its_place() -> None:
    far = Far(name="far")
    around = Around(instead=by_heart)
    result = await Pipeline(far).middleware(around).run("Go")
    assert (result.text, result.state["far"], Far.asked) == ("by heart", "by heart", [])


async def test_what_a_hook_gives_has_to_be_a_reply() -> None:
    around = Around(instead=lambda _: [])  # pyright: ignore[reportUnknownLambdaType]
    with pytest.raises(UsageError, match="wrap_remote_call of Around returns a RemoteReply"):
        await Pipeline(Far(name="far")).middleware(around).run("Go")


@pytest.mark.parametrize("hooked", [False, True])
async def test_its_error_is_that_of_the_step(hooked: bool) -> None:
    pipeline = Pipeline(Far(name="far", fails=True))
    with pytest.raises(ConnectionError, match="nobody is there"):
        await (pipeline.middleware(Around()) if hooked else pipeline).run("Go")


@pytest.mark.parametrize("observes", [False, True])
async def test_what_a_hook_raises_stops_the_run_unless_it_observes(observes: bool) -> None:
    def breaks(_: RemoteCall) -> RemoteReply:
        raise LookupError("mine")

    around: Any = Around(instead=breaks)
    around.observer = observes
    pipeline = Pipeline(Far(name="far")).middleware(around)
    if observes:
        assert (await pipeline.run("Go")).text == "so it is"
    else:
        with pytest.raises(LookupError, match="mine"):
            await pipeline.run("Go")


async def test_without_hooks_it_is_asked_by_itself() -> None:
    far = Far(name="far")
    result = await Pipeline(far).run("Go")
    assert [each.content for each in result] == ["so", "so it is"]
    assert [each.run for each in Far.asked] == [""]
