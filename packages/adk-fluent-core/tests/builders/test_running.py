"""Running: what reaches a backend, what is kept between runs, sync and async."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from contextlib import nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Pipeline
from adk_fluent._words import describe
from adk_fluent.builders import _execution
from adk_fluent.contracts import ContractReport
from adk_fluent.errors import ContractError, UsageError
from adk_fluent.ir import ExecutionConfig, Node
from adk_fluent.protocol import AgentEvent, BackendBase
from adk_fluent.testing import mock_backend

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


class Echo(BackendBase[Node]):
    """Answers with the prompt in capitals, and remembers what it was asked to do."""

    def __init__(self) -> None:
        self.compiled: list[tuple[Node, ExecutionConfig | None]] = []
        self.asked: list[dict[str, Any]] = []
        self.loops: list[asyncio.AbstractEventLoop] = []
        self.who: list[str] = []
        self.running = self.most = 0
        self.closed = False

    def compile(self, node: Node, config: ExecutionConfig | None = None) -> Node:
        self.compiled.append((node, config))
        return node

    async def stream(
        self, compiled: Node, prompt: Any, **kwargs: Any
    ) -> AsyncGenerator[AgentEvent, None]:
        self.asked.append(kwargs)
        self.loops.append(asyncio.get_running_loop())
        self.who.append(WHO.get())
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0.01 if prompt == "slow" else 0)
            if prompt == "bad":
                raise OSError("broken")
            yield AgentEvent(compiled.name, content=prompt.upper(), is_final=True)
            yield AgentEvent(compiled.name, content="", is_final=False)
        finally:
            self.running -= 1
            self.closed = True


class TestAsync:
    async def test_run_gives_the_events(self) -> None:
        echo = Echo()
        result = await Agent("a").run("hi", backend=echo, user_id="u", state={"n": 1})
        assert result.text == "HI"
        assert [event.author for event in result] == ["a", "a"]
        assert echo.asked == [{"user_id": "u", "state": {"n": 1}}]

    async def test_stream_gives_each_event_and_can_be_closed_early(self) -> None:
        echo = Echo()
        events = Agent("a").stream("hi", backend=echo)
        first = await anext(events)
        assert (first.content, echo.closed) == ("HI", False)
        await events.aclose()
        assert echo.closed

    async def test_branches_that_somebody_else_cancels_do_not_wait_for_who_reads(self) -> None:
        """So asyncio.run ends when an error keeps a stream alive that nobody reads on."""
        before = asyncio.all_tasks()
        a, b, c, d = (Agent(name).mock(name) for name in "abcd")
        events = ((a | ((b | c) >> d)) >> Agent("e").mock("e")).stream("hi", backend=mock_backend())
        await anext(events)
        branches = asyncio.all_tasks() - before
        for each in branches:
            each.cancel()
        _, waiting = await asyncio.wait(branches, timeout=5)
        await events.aclose()
        assert not waiting

    async def test_ask_and_map(self) -> None:
        echo, agent = Echo(), Agent("a")
        assert await agent.ask_async("hi", backend=echo) == "HI"
        answers = await agent.map_async(["slow", "x", "slow", "y"], concurrency=2, backend=echo)
        assert answers == ["SLOW", "X", "SLOW", "Y"]
        assert echo.most == 2

    async def test_map_of_nothing(self) -> None:
        assert await Agent("a").map_async([], backend=Echo()) == []

    async def test_the_first_failure_of_a_map_ends_the_others(self) -> None:
        echo = Echo()
        with pytest.raises(OSError, match="broken"):
            await Agent("a").map_async(["slow", "bad", "slow", "slow"], concurrency=2, backend=echo)
        assert echo.running == 0
        assert len(echo.asked) == 2

    async def test_sync_calls_are_refused_in_a_running_loop(self) -> None:
        agent = Agent("a")
        line = self.test_sync_calls_are_refused_in_a_running_loop.__code__.co_firstlineno
        with pytest.raises(UsageError) as caught:
            agent.ask("hi", backend=Echo())
        assert str(caught.value) == (
            "ask() cannot wait inside a running event loop\n"
            f"  where: {__file__}:{line + 4}\n"
            "  help: write: await ask_async(...)"
        )
        with pytest.raises(UsageError, match="write: await map_async"):
            agent.map(["hi"], backend=Echo())

    async def test_what_is_given_as_none_is_not_passed_on(self) -> None:
        echo = Echo()
        await Agent("a").run("hi", backend=echo, session_id=None, state=None, config=None)
        assert echo.asked == [{}]


class TestSync:
    def test_ask_and_map(self) -> None:
        echo = Echo()
        assert Agent("a").ask("hi", backend=echo) == "HI"
        assert Agent("a").map(iter(["x", "y"]), backend=echo) == ["X", "Y"]

    def test_errors_keep_their_type(self) -> None:
        with pytest.raises(OSError, match="broken"):
            Agent("a").ask("bad", backend=Echo())
        with pytest.raises(OSError, match="broken"):
            Agent("a").map(["x", "bad"], backend=Echo())

    def test_all_calls_of_a_thread_share_one_loop(self) -> None:
        echo, agent = Echo(), Agent("a")
        agent.ask("x", backend=echo)
        agent.map(["y"], backend=echo)
        assert echo.loops[0] is echo.loops[1]

    def test_each_thread_has_its_own_loop_which_is_closed_after_it(self) -> None:
        echo, agent = Echo(), Agent("a")
        agent.ask("x", backend=echo)
        thread = threading.Thread(target=agent.ask, args=("x",), kwargs={"backend": echo})
        thread.start()
        thread.join()
        del thread
        gc.collect()
        assert len(set(echo.loops)) == 2
        assert [loop.is_closed() for loop in echo.loops] == [False, True]

    def test_context_variables_are_seen(self) -> None:
        echo = Echo()
        Agent("a").ask("x", backend=echo)
        token = WHO.set("me")
        Agent("a").ask("x", backend=echo)
        WHO.reset(token)
        assert echo.who == ["nobody", "me"]


class TestCompiledOnce:
    def test_for_one_pipeline_and_config(self) -> None:
        echo, agent = Echo(), Agent("a")
        one = ExecutionConfig(max_llm_calls=1)
        for config in (None, one, None, ExecutionConfig(max_llm_calls=1)):
            agent.ask("x", backend=echo, config=config)
        assert [config for _, config in echo.compiled] == [None, one]

    def test_again_when_the_pipeline_changed(self) -> None:
        echo, agent = Echo(), Agent("a")
        agent.ask("x", backend=echo)
        agent.instruct("new").ask("x", backend=echo)
        assert len(echo.compiled) == 2
        assert echo.compiled[1][0] is agent.build()

    def test_for_each_backend(self) -> None:
        one, other, agent = Echo(), Echo(), Agent("a")
        agent.map(["x", "y"], backend=one)
        agent.map(["x", "y"], backend=other)
        assert (len(one.compiled), len(other.compiled)) == (1, 1)

    def test_a_bounded_number_is_kept(self) -> None:
        echo, agent = Echo(), Agent("a")
        configs = [ExecutionConfig(max_llm_calls=n) for n in range(_execution.KEPT + 1)]
        for config in configs:
            agent.ask("x", backend=echo, config=config)
        agent.ask("x", backend=echo, config=configs[-1])
        assert len(echo.compiled) == len(configs)
        agent.ask("x", backend=echo, config=configs[0])
        assert len(echo.compiled) == len(configs) + 1

    def test_a_clone_keeps_nothing_of_the_original(self) -> None:
        echo, agent = Echo(), Agent("a")
        agent.ask("x", backend=echo)
        agent.clone().ask("x", backend=echo)
        assert len(echo.compiled) == 2


class TestChecks:
    def test_check_gives_a_report(self) -> None:
        report = (Agent("a") >> Agent("b")).check()
        assert isinstance(report, ContractReport)
        assert report.ok

    def test_validate_returns_the_builder_or_raises(self) -> None:
        good = Pipeline("p", Agent("a"), Agent("b"))
        assert good.validate() is good
        twice = Agent("a").instruct("x") >> Agent("a").instruct("y")
        with pytest.raises(ContractError, match="two different agents are called"):
            twice.validate()


class TestOptions:
    """What no backend can make anything of is refused before anything runs."""

    @pytest.mark.parametrize(
        ("option", "value", "says"),
        [
            ("user_id", 3, "user_id= takes a text that is not empty"),
            ("session_id", "", "session_id= takes a text that is not empty"),
            ("config", {"max_llm_calls": 3}, "config= takes an ExecutionConfig"),
            ("session_service", "sqlite", "session_service= takes a session service of ADK"),
            ("session_service", Echo, "session_service= takes a session service of ADK"),
            ("backend", "adk", "backend= takes something that compiles and streams"),
            ("backend", Echo, "backend= takes something that compiles and streams"),
        ],
    )
    def test_wrong_values(self, option: str, value: Any, says: str) -> None:
        options: Any = {"backend": Echo(), option: value}
        with pytest.raises(UsageError, match=says) as caught:
            Agent("a").ask("x", **options)
        assert caught.value.found == describe(value)
        assert str(caught.value.location).startswith(__file__)

    @pytest.mark.parametrize("messages", ["abc", b"abc", {"a": 1}, 3])
    def test_one_message_is_no_list_of_messages(self, messages: Any) -> None:
        with pytest.raises(UsageError, match="takes several messages"):
            Agent("a").map(messages, backend=Echo())

    def test_a_failure_tells_which_message_it_was(self) -> None:
        agent = Agent("a").mock(lambda prompt: 1 / 0 if prompt == "bad" else "ok")
        with pytest.raises(ZeroDivisionError) as caught:
            agent.map(["good", "bad"], backend=mock_backend())
        assert "in message 1 of map(...)" in caught.value.__notes__


@pytest.mark.parametrize(
    ("says", "is_told"),
    [("can't create new thread at interpreter shutdown", False), ("loop is running", True)],
)
def test_a_python_that_ends_without_threads_ends_quietly(
    monkeypatch: pytest.MonkeyPatch, says: str, is_told: bool
) -> None:
    """As 3.12.1 does where something has used the threads of the event loop."""

    def close(_: object) -> None:
        raise RuntimeError(says)

    monkeypatch.setattr(asyncio.Runner, "close", close)
    loop = _execution._Loop()
    with pytest.raises(RuntimeError, match=says) if is_told else nullcontext():
        _execution._close(loop.runner, os.getpid())
    monkeypatch.undo()
