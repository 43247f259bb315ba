"""The tests of the plan of middlewares, adapted in module paths alone.

Those of `RetryMiddleware` and `StructuredLogMiddleware` call hooks by hand.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk.plugins.base_plugin import BasePlugin

import adk_fluent
from adk_fluent import Agent
from adk_fluent.backends.adk import ADKBackend
from adk_fluent.config import ExecutionConfig
from adk_fluent.ir import AgentNode
from adk_fluent.middleware import Middleware, RetryMiddleware, StructuredLogMiddleware
from adk_fluent.middleware import _MiddlewarePlugin as MiddlewarePlugin  # pyright: ignore[reportPrivateImportUsage]

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]


def plugin_of(*stack: Any) -> Any:
    return MiddlewarePlugin(name="test", stack=list(stack))


# --- task 1: the protocol ------------------------------------------------------------------------


def test_middleware_is_runtime_checkable() -> None:
    class Conforming:
        pass

    class HasBeforeModel:
        async def before_model(self, ctx: Any, request: Any) -> None:
            return None

    assert isinstance(Conforming(), Middleware)
    assert isinstance(HasBeforeModel(), Middleware)


def test_middleware_protocol_has_expected_methods() -> None:
    members = [m for m in dir(Middleware) if not m.startswith("_")]
    expected = {
        *("on_user_message", "before_run", "after_run", "on_event"),
        *("before_agent", "after_agent"),
        *("before_model", "after_model", "on_model_error"),
        *("before_tool", "after_tool", "on_tool_error"),
        "close",
    }
    assert expected.issubset(set(members)), f"Missing: {expected - set(members)}"


# --- task 2: the plugin --------------------------------------------------------------------------


def test_middleware_plugin_is_base_plugin() -> None:
    assert isinstance(plugin_of(), BasePlugin)


class Calls:
    def __init__(self, log: list[str], name: str, says: Any = None) -> None:
        self.log, self.name, self.says = log, name, says

    async def before_model(self, ctx: Any, request: Any) -> Any:
        self.log.append(self.name)
        return self.says

    async def close(self) -> None:
        self.log.append(self.name)


def test_middleware_plugin_runs_stack_in_order() -> None:
    call_log: list[str] = []
    plugin = plugin_of(Calls(call_log, "mw1"), Calls(call_log, "mw2"))
    result = asyncio.run(plugin.before_model_callback(callback_context=None, llm_request=None))
    assert call_log == ["mw1", "mw2"]
    assert result is None


def test_middleware_plugin_short_circuits_on_non_none() -> None:
    call_log: list[str] = []
    plugin = plugin_of(Calls(call_log, "mw1", "intercepted"), Calls(call_log, "mw2"))
    result = asyncio.run(plugin.before_model_callback(callback_context=None, llm_request=None))
    assert call_log == ["mw1"]
    assert result == "intercepted"


def test_middleware_plugin_skips_unimplemented_hooks() -> None:
    plugin = plugin_of(Calls([], "only before_model", "result"))
    result = asyncio.run(plugin.after_model_callback(callback_context=None, llm_response=None))
    assert result is None


def test_middleware_plugin_before_agent_passes_agent_name() -> None:
    captured: dict[str, Any] = {}

    class NameCapture:
        async def before_agent(self, ctx: Any, agent_name: str) -> None:
            captured["name"] = agent_name

    class FakeAgent:
        name = "my_agent"

    plugin = plugin_of(NameCapture())
    asyncio.run(plugin.before_agent_callback(agent=FakeAgent(), callback_context=None))
    assert captured["name"] == "my_agent"


def test_middleware_plugin_before_tool_passes_tool_name() -> None:
    captured: dict[str, Any] = {}

    class ToolCapture:
        async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> None:
            captured["name"] = tool_name
            captured["args"] = args

    class FakeTool:
        name = "search"

    plugin = plugin_of(ToolCapture())
    calling = plugin.before_tool_callback(
        tool=FakeTool(), tool_args={"q": "hello"}, tool_context=None
    )
    asyncio.run(calling)
    assert captured["name"] == "search"
    assert captured["args"] == {"q": "hello"}


def test_middleware_plugin_on_model_error_passes_error() -> None:
    captured: dict[str, Any] = {}

    class ErrorCapture:
        async def on_model_error(self, ctx: Any, request: Any, error: Exception) -> None:
            captured["error"] = error

    err = ValueError("test error")
    plugin = plugin_of(ErrorCapture())
    asyncio.run(plugin.on_model_error_callback(callback_context=None, llm_request=None, error=err))
    assert captured["error"] is err


def test_middleware_plugin_close_calls_all() -> None:
    closed: list[str] = []
    asyncio.run(plugin_of(Calls(closed, "mw1"), Calls(closed, "mw2")).close())
    assert closed == ["mw1", "mw2"]


# --- task 3: config and backend ------------------------------------------------------------------


class LogMW:
    async def before_model(self, ctx: Any, request: Any) -> None:
        return None


class MW2:
    async def after_model(self, ctx: Any, response: Any) -> None:
        return None


def plugins_of(app: Any) -> list[Any]:
    return getattr(app, "plugins", []) or []


def test_execution_config_has_middlewares_field() -> None:
    assert ExecutionConfig().middlewares == ()


def test_execution_config_accepts_middleware_tuple() -> None:
    assert len(ExecutionConfig(middlewares=(LogMW(),)).middlewares) == 1


def test_backend_compile_without_middleware() -> None:
    assert len(plugins_of(ADKBackend().compile(AgentNode(name="test")))) == 0


def test_backend_compile_with_middleware() -> None:
    cfg = ExecutionConfig(middlewares=(LogMW(),))
    plugins = plugins_of(ADKBackend().compile(AgentNode(name="test"), config=cfg))
    assert len(plugins) == 1
    assert isinstance(plugins[0], MiddlewarePlugin)


def test_backend_compile_middleware_preserves_stack_order() -> None:
    call_log: list[str] = []
    cfg = ExecutionConfig(middlewares=(Calls(call_log, "mw1"), Calls(call_log, "mw2")))
    plugin = plugins_of(ADKBackend().compile(AgentNode(name="test"), config=cfg))[0]
    asyncio.run(plugin.before_model_callback(callback_context=None, llm_request=None))
    assert call_log == ["mw1", "mw2"]


def test_to_app_with_middleware() -> None:
    app = Agent("test").to_app(config=ExecutionConfig(middlewares=(LogMW(),)))
    assert isinstance(plugins_of(app)[0], MiddlewarePlugin)
    assert len(app.plugins) == 1


# --- task 4: the builder -------------------------------------------------------------------------


def test_middleware_method_returns_self() -> None:
    a = Agent("test")
    assert a.middleware(LogMW()) is a


def test_middleware_method_chainable() -> None:
    a = Agent("test").middleware(LogMW()).middleware(MW2())
    assert len(a._middlewares) == 2


def test_middleware_flows_through_to_app() -> None:
    plugins = plugins_of(Agent("test").middleware(LogMW()).to_app())
    assert len(plugins) == 1
    assert isinstance(plugins[0], MiddlewarePlugin)


def test_middleware_with_explicit_config_merges() -> None:
    cfg = ExecutionConfig(middlewares=(MW2(),))
    plugins = plugins_of(Agent("test").middleware(LogMW()).to_app(config=cfg))
    assert len(plugins) == 1
    assert len(plugins[0]._stack) == 2


def test_middleware_preserved_through_operators() -> None:
    pipeline = Agent("a").middleware(LogMW()) >> Agent("b")
    assert hasattr(pipeline, "_middlewares")
    assert len(pipeline._middlewares) == 1


def test_pipeline_to_app_with_middleware() -> None:
    app = (Agent("a").middleware(LogMW()) >> Agent("b")).to_app()
    assert len(plugins_of(app)) == 1


# --- task 5: built-ins ---------------------------------------------------------------------------


def test_retry_middleware_is_middleware() -> None:
    assert isinstance(RetryMiddleware(), Middleware)


def test_retry_middleware_defaults() -> None:
    mw = RetryMiddleware()
    assert mw.max_attempts == 3
    assert mw.backoff_base == 1.0


def test_retry_middleware_custom_config() -> None:
    mw = RetryMiddleware(max_attempts=5, backoff_base=0.5)
    assert mw.max_attempts == 5
    assert mw.backoff_base == 0.5


def test_retry_middleware_on_model_error_returns_none() -> None:
    mw = RetryMiddleware(max_attempts=3, backoff_base=0.0)
    assert asyncio.run(mw.on_model_error(None, None, ValueError("test"))) is None


def test_retry_middleware_on_tool_error_returns_none() -> None:
    mw = RetryMiddleware(max_attempts=3, backoff_base=0.0)
    assert asyncio.run(mw.on_tool_error(None, "search", {}, ValueError("test"))) is None


def test_structured_log_is_middleware() -> None:
    assert isinstance(StructuredLogMiddleware(), Middleware)


def test_structured_log_captures_events() -> None:
    mw = StructuredLogMiddleware()

    async def run() -> None:
        await mw.before_model(None, "test_request")
        await mw.after_model(None, "test_response")
        await mw.before_agent(None, "agent1")
        await mw.after_agent(None, "agent1")

    asyncio.run(run())
    assert len(mw.log) == 4
    assert mw.log[0]["event"] == "before_model"
    assert mw.log[1]["event"] == "after_model"
    assert mw.log[2]["event"] == "before_agent"
    assert mw.log[2]["agent_name"] == "agent1"


def test_structured_log_never_short_circuits() -> None:
    mw = StructuredLogMiddleware()

    async def run() -> list[Any]:
        r1 = await mw.before_model(None, "req")
        r2 = await mw.after_model(None, "resp")
        r3 = await mw.before_tool(None, "t", {})
        r4 = await mw.after_tool(None, "t", {}, {})
        return [r1, r2, r3, r4]

    assert all(r is None for r in asyncio.run(run()))


def test_middleware_importable_from_top_level() -> None:
    for name in ("Middleware", "RetryMiddleware", "StructuredLogMiddleware"):
        assert getattr(adk_fluent, name) is not None


def test_the_sizes_of_the_plans_verification() -> None:
    app = (
        Agent("a").middleware(RetryMiddleware()).middleware(StructuredLogMiddleware()) >> Agent("b")
    ).to_app()
    assert (len(app.plugins), len(plugins_of(app)[0]._stack)) == (1, 2)
