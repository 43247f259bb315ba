"""Two that go on with one run: at most one does, and the other leaves no trace in the journal."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

import pytest
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.sessions.base_session_service import BaseSessionService
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.genai import types

from adk_fluent import Agent, Resource, gate
from adk_fluent.backends import _owner
from adk_fluent.backends._owner import Holder
from adk_fluent.backends.adk._session._stamps import stamp_of
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.sessions.base_session_service import ListSessionsResponse
    from google.adk.sessions.session import Session

    from adk_fluent.builders import Builder, State

pytestmark = pytest.mark.adk

WHERE: Any = {"app_name": "adk_fluent_app", "user_id": "user", "session_id": "s"}
TAKEN = "somebody else goes on with this run"
GOES_ON = "is still going on in this session"


class Flag(asyncio.Event):
    """An event that nobody waits for without end, so that a test fails rather than hangs."""

    async def wait(self) -> Literal[True]:
        async with asyncio.timeout(120):
            return await super().wait()


class Slow(InMemorySessionService):
    """Looks at no stale session, as some services do not, and may hold one event back.

    It may also answer once with a session as it was before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.holds: str | None = None
        self.before: Session | None = None
        self.held, self.opens = Flag(), Flag()

    async def get_session(self, **kwargs: Any) -> Session | None:
        before, self.before = self.before, None
        return before or await super().get_session(**kwargs)

    async def append_event(self, session: Session, event: Event) -> Event:
        if self.holds is not None and (stamp_of(event) or {}).get("why") == self.holds:
            self.holds = None
            self.held.set()
            await self.opens.wait()
        return await super().append_event(session, event)


class Hooked(BaseSessionService):
    """Another service, where something happens before or after some events are written.

    Args:
        service: The other one.
    """

    def __init__(self, service: BaseSessionService) -> None:
        self._service = service
        self.before: dict[str, Callable[[], Awaitable[object]]] = {}
        self.after: dict[str, Callable[[], Awaitable[object]]] = {}

    async def create_session(self, **kwargs: Any) -> Session:
        return await self._service.create_session(**kwargs)

    async def get_session(self, **kwargs: Any) -> Session | None:
        return await self._service.get_session(**kwargs)

    async def list_sessions(self, **kwargs: Any) -> ListSessionsResponse:
        return await self._service.list_sessions(**kwargs)

    async def delete_session(self, **kwargs: Any) -> None:
        await self._service.delete_session(**kwargs)

    async def append_event(self, session: Session, event: Event) -> Event:
        why = (stamp_of(event) or {}).get("why", "")
        if why in self.before:
            await self.before[why]()
        written = await self._service.append_event(session=session, event=event)
        if why in self.after:
            await self.after[why]()
        return written


class Desk:
    """One run that waits at its first gate."""

    def __init__(self, service: BaseSessionService | None = None) -> None:
        self.service: Any = service or Slow()
        self.calls: list[str] = []
        self.reached, self.goes_on = Flag(), Flag()

    def pipeline(self) -> Builder:
        async def pay(state: Any) -> dict[str, int]:
            self.calls.append("pay")
            self.reached.set()
            await self.goes_on.wait()
            return {"paid": 1}

        def send(state: Any) -> dict[str, int]:
            self.calls.append("send")
            return {"sent": 1}

        return gate(name="one") >> pay >> gate(name="two") >> send

    async def options(self) -> tuple[Any, dict[str, Any]]:
        options: dict[str, Any] = {"session_id": "s", "session_service": self.service}
        paused = await self.pipeline().run("hi", **options)
        return paused.pending[0].answer(True), options


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine nobody counts as gone for being slow, so nobody else takes their run."""
    monkeypatch.setattr(_owner, "MOMENT", float("inf"))


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if every run were in a process of its own, and the service kept events of one id."""

    def take(self: Holder, _: str) -> str:
        return self.name

    monkeypatch.setattr(Holder, "take", take)


async def together(barrier: asyncio.Barrier, *runs: Awaitable[Any]) -> list[Any]:
    """What runs that meet at a barrier give or raise; who ends lets nobody wait there."""

    async def one(run: Awaitable[Any]) -> Any:
        try:
            return await run
        finally:
            await barrier.abort()

    return await asyncio.gather(*map(one, runs), return_exceptions=True)


@pytest.mark.usefixtures("apart")
async def test_a_claim_that_comes_late_takes_nothing_back() -> None:
    desk = Desk()
    answer, options = await desk.options()
    desk.service.holds = "claim"
    late = asyncio.ensure_future(desk.pipeline().resume(answer, **options))
    await desk.service.held.wait()  # it has read that the run waits at the first gate
    desk.goes_on.set()
    first = await desk.pipeline().resume(answer, **options)
    desk.service.opens.set()
    with pytest.raises(SessionError, match=TAKEN):
        await late
    last = await desk.pipeline().resume(first.pending[0].answer(True), **options)
    assert last.state["sent"] == 1
    assert desk.calls == ["pay", "send"]


@pytest.mark.usefixtures("apart")
async def test_who_lost_a_run_and_tries_again_at_once_does_not_run_it_beside_the_winner() -> None:
    desk = Desk()
    answer, options = await desk.options()
    desk.service.holds = "claim"
    late = asyncio.ensure_future(desk.pipeline().resume(answer, **options))
    await desk.service.held.wait()
    first = asyncio.ensure_future(desk.pipeline().resume(answer, **options))
    await desk.reached.wait()
    desk.service.opens.set()
    with pytest.raises(SessionError, match=TAKEN):
        await late
    with pytest.raises(SessionError, match=GOES_ON):
        await desk.pipeline().resume(answer, **options)
    desk.goes_on.set()
    assert [each.name for each in (await first).pending] == ["two"]
    assert desk.calls == ["pay"]


async def test_a_claim_of_somebody_who_died_right_after_it_does_not_lock_the_run() -> None:
    desk = Desk()
    answer, options = await desk.options()
    desk.service.holds = "journal"
    dies = asyncio.ensure_future(desk.pipeline().resume(answer, **options))
    await desk.service.held.wait()
    dies.cancel()
    with pytest.raises(asyncio.CancelledError):
        await dies
    assert desk.calls == []
    desk.goes_on.set()
    assert (await desk.pipeline().resume(answer, **options)).state["paid"] == 1
    assert desk.calls == ["pay"]


@pytest.mark.usefixtures("apart")
async def test_who_reads_that_somebody_has_taken_the_run_writes_nothing() -> None:
    desk = Desk()
    answer, options = await desk.options()
    desk.service.holds = "journal"
    first = asyncio.ensure_future(desk.pipeline().resume(answer, **options))
    await desk.service.held.wait()  # its claim is written
    stored = desk.service.sessions["adk_fluent_app"]["user"]["s"].events
    before = len(stored)
    with pytest.raises(SessionError, match=TAKEN):
        await desk.pipeline().resume(answer, **options)
    assert len(stored) == before
    desk.service.opens.set()
    desk.goes_on.set()
    assert (await first).state["paid"] == 1


async def test_who_comes_second_in_one_process_is_told_before_anything_is_written() -> None:
    desk = Desk()
    answer, options = await desk.options()
    desk.service.holds = "claim"
    first = asyncio.ensure_future(desk.pipeline().resume(answer, **options))
    await desk.service.held.wait()
    stored = desk.service.sessions["adk_fluent_app"]["user"]["s"].events
    before = len(stored)
    with pytest.raises(SessionError, match=TAKEN):
        await desk.pipeline().resume(answer, **options)
    assert len(stored) == before
    desk.service.opens.set()
    desk.goes_on.set()
    assert (await first).state["paid"] == 1


@pytest.mark.usefixtures("apart")
async def test_where_a_service_keeps_both_claims_both_may_be_told_and_neither_goes_on() -> None:
    service = Hooked(InMemorySessionService())
    desk = Desk(service)
    answer, options = await desk.options()
    barrier = asyncio.Barrier(2)
    service.before["claim"] = service.after["claim"] = barrier.wait
    resumed = (desk.pipeline().resume(answer, **options) for _ in range(2))
    came = await together(barrier, *resumed)
    assert [type(each) for each in came] == [SessionError, SessionError], came
    assert desk.calls == []


@pytest.mark.usefixtures("apart")
async def test_where_a_service_keeps_events_apart_by_their_ids_one_goes_on(
    store: BaseSessionService,
) -> None:
    service = Hooked(store)
    desk = Desk(service)
    answer, options = await desk.options()
    desk.goes_on.set()
    barrier = asyncio.Barrier(2)
    service.before["claim"] = barrier.wait
    resumed = (desk.pipeline().resume(answer, **options) for _ in range(2))
    came = await together(barrier, *resumed)
    told = [each for each in came if isinstance(each, SessionError)]
    assert [TAKEN in str(each) for each in told] == [True], came
    session = await store.get_session(**WHERE)
    assert session is not None
    said = [event for event in session.events if event.author == "user"]
    assert [bool(event.get_function_responses()) for event in said] == [False, True]
    assert desk.calls == ["pay"]


async def test_who_dies_before_the_first_step_is_followed_by_the_next(
    store: BaseSessionService,
) -> None:
    service = Hooked(store)
    desk = Desk(service)
    answer, options = await desk.options()
    reached = Flag()

    async def halts() -> None:
        reached.set()
        await asyncio.Event().wait()

    service.before["journal"] = halts
    for _ in range(2):
        dies = asyncio.ensure_future(desk.pipeline().resume(answer, **options))
        await reached.wait()
        reached.clear()
        dies.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dies
    service.before.clear()
    assert desk.calls == []
    desk.goes_on.set()
    assert (await desk.pipeline().resume(answer, **options)).state["paid"] == 1
    assert desk.calls == ["pay"]


@pytest.mark.parametrize("how", ["ends the call", "fails"])
async def test_who_took_a_run_and_was_kept_from_it_keeps_nobody_else_from_it(
    store: BaseSessionService, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plugin comes between. Not even what it raised is forgotten, as a logger may keep it."""
    kept: list[BaseException | None] = []
    comes_between = True

    class Between(BasePlugin):
        async def before_run_callback(
            self, *, invocation_context: InvocationContext
        ) -> types.Content | None:
            if not comes_between:
                return None
            if how == "fails":
                raise ConnectionError
            return types.Content(role="model", parts=[types.Part(text="not now")])

    desk = Desk(store)
    answer, _ = await desk.options()
    desk.goes_on.set()
    app = desk.pipeline().to_app(plugins=[Between(name="between")])
    runner = Runner(app=app, session_service=store)
    yes: Any = {"approved": True}
    given = types.FunctionResponse(id=answer.id, name="adk_request_input", response=yes)
    message = types.Content(role="user", parts=[types.Part(function_response=given)])

    async def answers() -> list[Event]:
        run = runner.run_async(user_id="user", session_id="s", new_message=message)
        return [event async for event in run]

    async def kept_from_it() -> None:
        try:
            await answers()
            kept.append(None)
        except RuntimeError as error:
            kept.append(error)

    await kept_from_it()
    await kept_from_it()
    await asyncio.ensure_future(kept_from_it())
    monkeypatch.setattr(_owner, "MOMENT", 0.0)
    await asyncio.ensure_future(kept_from_it())
    assert [TAKEN in str(each) for each in (kept[0], kept[1], kept[3])] == [False] * 3
    assert desk.calls == []
    comes_between = False
    await answers()
    assert desk.calls == ["pay"]


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")
async def test_however_often_a_run_failed_to_start_it_can_be_gone_on_with(
    store: BaseSessionService,
) -> None:
    up = True

    def connect() -> str:
        if not up:
            raise ConnectionError
        return "it"

    def fails_once(state: Any, db: str) -> dict[str, str]:
        if not tried:
            tried.append(db)
            raise KeyError
        return {"from": db}

    tried: list[str] = []
    pipeline = (Agent("a").mock("A") >> fails_once).inject(db=Resource(connect))
    options: Any = {"session_id": "s", "session_service": store}
    options["config"] = ExecutionConfig(resumable=True)
    with pytest.raises(KeyError):
        await pipeline.run("go", **options)
    up = False
    for _ in range(25):
        with pytest.raises(ConnectionError):
            await pipeline.resume(**options)
    up = True
    assert (await pipeline.resume(**options)).state["from"] == "it"


async def test_what_others_write_meanwhile_keeps_nobody_from_taking_a_run(
    store: BaseSessionService,
) -> None:
    """Services refuse to write to a session that somebody wrote to since it was loaded."""
    service = Hooked(store)
    desk = Desk(service)
    answer, options = await desk.options()
    desk.goes_on.set()

    async def writes() -> None:
        service.before.clear()
        session = await store.get_session(**WHERE)
        assert session is not None
        actions = EventActions(state_delta={"theirs": 1})
        await store.append_event(session, Event(author="other", actions=actions))

    service.before["claim"] = writes
    result = await desk.pipeline().resume(answer, **options)
    assert result.state["paid"] == 1
    session = await store.get_session(**WHERE)
    assert session is not None
    assert (session.state["paid"], session.state["theirs"]) == (1, 1)


async def test_a_run_that_is_gone_on_with_again_after_a_rewind_is_taken_again(
    store: BaseSessionService,
) -> None:
    desk = Desk(store)
    answer, options = await desk.options()
    desk.goes_on.set()
    first = await desk.pipeline().pending(**options)
    for time in range(1, 4):
        paused = await desk.pipeline().resume(answer, **options)
        assert [each.name for each in paused.pending] == ["two"]
        assert len(desk.calls) == time
        await desk.pipeline().rewind(
            session_id="s",
            session_service=store,
            before_invocation_id=paused.invocation_id,
        )
        if await desk.pipeline().pending(**options) != first:
            break  # 2.x: the answer belongs to the call it answers, and that is gone


@pytest.mark.parametrize("answered", [True, False])
async def test_nothing_is_written_to_a_session_while_its_run_goes_on(answered: bool) -> None:
    desk = Desk()
    answer, options = await desk.options()
    first = asyncio.ensure_future(desk.pipeline().resume(answer, **options))
    await desk.reached.wait()
    stored = desk.service.sessions["adk_fluent_app"]["user"]["s"].events
    before = len(stored)
    part = types.Part(text="and?")
    if answered:
        given = types.FunctionResponse(id=answer.id, name="adk_request_input", response={})
        part = types.Part(function_response=given)
    message = types.Content(role="user", parts=[part])
    runner = desk.pipeline().to_runner(session_service=desk.service)
    with pytest.raises(RuntimeError, match=GOES_ON):  # as ADK tells of what a plugin raises
        await anext(runner.run_async(user_id="user", session_id="s", new_message=message))
    with pytest.raises(SessionError, match=GOES_ON):
        await desk.pipeline().run("and?", **options)
    assert len(stored) == before
    desk.goes_on.set()
    paused = await first
    last = await desk.pipeline().resume(paused.pending[0].answer(True), **options)
    assert (last.state["sent"], desk.calls) == (1, ["pay", "send"])


async def test_who_looked_a_moment_too_early_is_told_by_the_same_error() -> None:
    desk = Desk()
    answer, options = await desk.options()
    before = await desk.service.get_session(**WHERE)
    first = asyncio.ensure_future(desk.pipeline().resume(answer, **options))
    await desk.reached.wait()
    desk.service.before = before
    with pytest.raises(SessionError, match=GOES_ON):
        await desk.pipeline().resume(answer, **options)
    desk.goes_on.set()
    assert (await first).state["paid"] == 1
    assert desk.calls == ["pay"]


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")
async def test_a_run_that_somebody_else_has_ended_meanwhile_is_not_begun_anew() -> None:
    service, calls = Slow(), list[str]()

    def fails_once(state: Any) -> dict[str, int]:
        calls.append("step")
        if len(calls) == 1:
            raise ConnectionError
        return {"done": 1}

    pipeline = Agent("a").mock("A") >> fails_once
    options: Any = {"session_id": "s", "session_service": service}
    options["config"] = ExecutionConfig(resumable=True)
    with pytest.raises(ConnectionError):
        await pipeline.run("go", **options)
    before = await service.get_session(**WHERE)
    await pipeline.resume(**options)
    service.before = before
    with pytest.raises(SessionError, match="the run of session 's' is over"):
        await pipeline.resume(**options)
    assert calls == ["step", "step"]


async def test_what_a_plugin_appends_before_a_run_is_no_earlier_run() -> None:
    class Greets(BasePlugin):
        async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
            hello = Event(author="greeter", invocation_id=invocation_context.invocation_id)
            await invocation_context.session_service.append_event(
                session=invocation_context.session, event=hello
            )

    def step(_: State) -> dict[str, int]:
        return {"done": 1}

    pipeline = Agent("a").mock("A") >> step
    runner = Runner(app=pipeline.to_app(plugins=[Greets(name="greets")]), session_service=Slow())
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id="u")
    message = types.Content(role="user", parts=[types.Part(text="hi")])
    run = runner.run_async(user_id="u", session_id=session.id, new_message=message)
    deltas = [event.actions.state_delta async for event in run]
    assert {"done": 1} in deltas
