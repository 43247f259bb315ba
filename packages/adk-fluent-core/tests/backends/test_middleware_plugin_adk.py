"""The plugin called by hand, and how a stack gets into an App."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin

from adk_fluent import Agent
from adk_fluent.backends.adk import ADKBackend
from adk_fluent.backends.adk._hooks._plugin import MiddlewarePlugin
from adk_fluent.config import ExecutionConfig
from adk_fluent.ir import AgentNode
from adk_fluent.protocol import Middleware

pytestmark = pytest.mark.adk


class Empty:
    pass


class Before:
    def __init__(self, log: list[str], tag: str, says: Any = None) -> None:
        self.log, self.tag, self.says = log, tag, says

    async def before_model(self, ctx: Any, request: Any) -> Any:
        self.log.append(self.tag)
        return self.says


def test_every_object_with_a_hook_is_a_middleware_and_an_empty_one_is() -> None:
    assert isinstance(Empty(), Middleware)
    assert isinstance(Before([], "x"), Middleware)
    hooks = {"on_user_message", "before_run", "after_run", "on_event", "before_agent"}
    hooks |= {"after_agent", "before_model", "after_model", "on_model_error", "before_tool"}
    assert hooks | {"after_tool", "on_tool_error", "close"} <= set(dir(Middleware))


def test_it_is_a_plugin_of_adks() -> None:
    assert isinstance(MiddlewarePlugin("test", []), BasePlugin)


async def test_hooks_are_asked_in_order() -> None:
    log: list[str] = []
    plugin: Any = MiddlewarePlugin("test", [Before(log, "one"), Before(log, "two")])
    assert await plugin.before_model_callback(callback_context=None, llm_request=None) is None
    assert log == ["one", "two"]


async def test_the_first_that_says_something_decides() -> None:
    log: list[str] = []
    stack = [Before(log, "one", "intercepted"), Before(log, "two")]
    plugin: Any = MiddlewarePlugin("test", stack)
    said = await plugin.before_model_callback(callback_context=None, llm_request=None)
    assert (said, log) == ("intercepted", ["one"])


async def test_hooks_that_nobody_has_are_left_out() -> None:
    plugin: Any = MiddlewarePlugin("test", [Before([], "one", "result")])
    assert await plugin.after_model_callback(callback_context=None, llm_response=None) is None


async def test_hooks_get_names_and_errors() -> None:
    got: dict[str, Any] = {}

    class Takes:
        async def before_agent(self, ctx: Any, agent_name: str) -> None:
            got["agent"] = agent_name

        async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> None:
            got["tool"] = (tool_name, args)

        async def on_model_error(self, ctx: Any, request: Any, error: Exception) -> None:
            got["error"] = error

    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

    plugin: Any = MiddlewarePlugin("test", [Takes()])
    await plugin.before_agent_callback(agent=Named("my_agent"), callback_context=None)
    await plugin.before_tool_callback(
        tool=Named("search"), tool_args={"q": "hello"}, tool_context=None
    )
    error = ValueError("x")
    await plugin.on_model_error_callback(callback_context=None, llm_request=None, error=error)
    assert got == {"agent": "my_agent", "tool": ("search", {"q": "hello"}), "error": error}


async def test_who_only_looks_at_events_puts_none_in_their_place() -> None:
    seen: list[Event] = []

    class Looks(Middleware):
        def see_event(self, ctx: Any, event: Event, /) -> None:
            seen.append(event)

    plugin: Any = MiddlewarePlugin("test", [Looks()])
    event = Event(author="a")
    assert await plugin.on_event_callback(invocation_context=None, event=event) is None
    assert seen == [event]


async def test_all_are_closed_also_when_one_fails() -> None:
    closed: list[str] = []

    class Closes:
        def __init__(self, tag: str, error: Exception | None = None) -> None:
            self.tag, self.error = tag, error

        async def before_run(self, ctx: Any) -> None: ...

        async def close(self) -> None:
            closed.append(self.tag)
            if self.error is not None:
                raise self.error

    await MiddlewarePlugin("test", [Closes("one"), Closes("two")]).close()
    with pytest.raises(OSError, match="first"):
        await MiddlewarePlugin("test", [Closes("three", OSError("first")), Closes("four")]).close()
    assert closed == ["one", "two", "three", "four"]


def test_a_stack_gets_into_the_app() -> None:
    assert ExecutionConfig().middlewares == ()
    backend, node = ADKBackend(), AgentNode("test")
    assert backend.compile(node).app.plugins == []
    config = ExecutionConfig(middlewares=(Before([], "one"),))
    [plugin] = backend.compile(node, config).app.plugins
    assert isinstance(plugin, MiddlewarePlugin)
    [plugin] = Agent("test").to_app(config).plugins
    assert isinstance(plugin, MiddlewarePlugin)


async def test_its_order_is_kept_and_stacks_are_merged() -> None:
    log: list[str] = []
    config = ExecutionConfig(middlewares=(Before(log, "three"),))
    agent = Agent("test").middleware(Before(log, "one")).middleware(Before(log, "two"))
    for pipeline in (agent, agent >> Agent("b")):
        plugin: Any = pipeline.to_app(config).plugins[0]
        await plugin.before_model_callback(callback_context=None, llm_request=None)
    assert log == ["one", "two", "three"] * 2


def test_adding_one_gives_the_builder_back() -> None:
    agent, empty = Agent("test"), Empty()
    given: Any = empty  # a type checker takes nothing without a hook
    assert agent.middleware(given) is agent
