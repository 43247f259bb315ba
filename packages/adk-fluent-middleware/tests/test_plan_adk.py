"""The tests of the plan of middlewares, as the plan has them but for the modules of two names.

`ExecutionConfig` is in `adk_fluent.config` here, and `AgentNode` in `adk_fluent.ir`. Imports are in
order, and a `return None` at an end is left out. What stands below the line at the end is ours.
"""
from __future__ import annotations

import pytest

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

"""Tests for the Middleware protocol and _MiddlewarePlugin adapter."""
import pytest

from adk_fluent.middleware import Middleware

# --- Protocol tests ---

def test_middleware_is_runtime_checkable():
    """Middleware should be a runtime-checkable Protocol."""
    class Conforming:
        pass  # All methods optional — empty class conforms

    class HasBeforeModel:
        async def before_model(self, ctx, request):
            return None

    assert isinstance(Conforming(), Middleware)
    assert isinstance(HasBeforeModel(), Middleware)


def test_middleware_protocol_has_expected_methods():
    """Protocol should define all lifecycle hooks."""
    members = [m for m in dir(Middleware) if not m.startswith("_")]
    expected = {
        "on_user_message", "before_run", "after_run", "on_event",
        "before_agent", "after_agent",
        "before_model", "after_model", "on_model_error",
        "before_tool", "after_tool", "on_tool_error",
        "close",
    }
    assert expected.issubset(set(members)), f"Missing: {expected - set(members)}"

# --- _MiddlewarePlugin adapter tests ---

import asyncio

from adk_fluent.middleware import _MiddlewarePlugin


def test_middleware_plugin_is_base_plugin():
    from google.adk.plugins.base_plugin import BasePlugin
    plugin = _MiddlewarePlugin(name="test", stack=[])
    assert isinstance(plugin, BasePlugin)


def test_middleware_plugin_runs_stack_in_order():
    """Middleware should execute in registration order."""
    call_log = []

    class MW1:
        async def before_model(self, ctx, request):
            call_log.append("mw1")

    class MW2:
        async def before_model(self, ctx, request):
            call_log.append("mw2")

    plugin = _MiddlewarePlugin(name="test", stack=[MW1(), MW2()])

    async def run():
        result = await plugin.before_model_callback(
            callback_context=None, llm_request=None
        )
        return result

    result = asyncio.run(run())
    assert call_log == ["mw1", "mw2"]
    assert result is None  # No short-circuit


def test_middleware_plugin_short_circuits_on_non_none():
    """First non-None return should stop the chain."""
    call_log = []

    class MW1:
        async def before_model(self, ctx, request):
            call_log.append("mw1")
            return "intercepted"

    class MW2:
        async def before_model(self, ctx, request):
            call_log.append("mw2")  # Should NOT be reached

    plugin = _MiddlewarePlugin(name="test", stack=[MW1(), MW2()])

    async def run():
        return await plugin.before_model_callback(
            callback_context=None, llm_request=None
        )

    result = asyncio.run(run())
    assert call_log == ["mw1"]
    assert result == "intercepted"


def test_middleware_plugin_skips_unimplemented_hooks():
    """Middleware without a hook should be silently skipped."""
    class OnlyBeforeModel:
        async def before_model(self, ctx, request):
            return "result"

    plugin = _MiddlewarePlugin(name="test", stack=[OnlyBeforeModel()])

    async def run():
        # after_model not implemented — should return None
        result = await plugin.after_model_callback(
            callback_context=None, llm_response=None
        )
        return result

    result = asyncio.run(run())
    assert result is None


def test_middleware_plugin_before_agent_passes_agent_name():
    """before_agent should extract agent name from ADK agent object."""
    captured = {}

    class NameCapture:
        async def before_agent(self, ctx, agent_name):
            captured["name"] = agent_name

    plugin = _MiddlewarePlugin(name="test", stack=[NameCapture()])

    class FakeAgent:
        name = "my_agent"

    async def run():
        return await plugin.before_agent_callback(
            agent=FakeAgent(), callback_context=None
        )

    asyncio.run(run())
    assert captured["name"] == "my_agent"


def test_middleware_plugin_before_tool_passes_tool_name():
    """before_tool should extract tool name from ADK tool object."""
    captured = {}

    class ToolCapture:
        async def before_tool(self, ctx, tool_name, args):
            captured["name"] = tool_name
            captured["args"] = args

    plugin = _MiddlewarePlugin(name="test", stack=[ToolCapture()])

    class FakeTool:
        name = "search"

    async def run():
        return await plugin.before_tool_callback(
            tool=FakeTool(), tool_args={"q": "hello"}, tool_context=None
        )

    asyncio.run(run())
    assert captured["name"] == "search"
    assert captured["args"] == {"q": "hello"}


def test_middleware_plugin_on_model_error_passes_error():
    """on_model_error should pass the exception object."""
    captured = {}

    class ErrorCapture:
        async def on_model_error(self, ctx, request, error):
            captured["error"] = error

    plugin = _MiddlewarePlugin(name="test", stack=[ErrorCapture()])

    err = ValueError("test error")

    async def run():
        return await plugin.on_model_error_callback(
            callback_context=None, llm_request=None, error=err
        )

    asyncio.run(run())
    assert captured["error"] is err


def test_middleware_plugin_close_calls_all():
    """close() should call close() on all middleware, not short-circuit."""
    closed = []

    class MW1:
        async def close(self):
            closed.append("mw1")

    class MW2:
        async def close(self):
            closed.append("mw2")

    plugin = _MiddlewarePlugin(name="test", stack=[MW1(), MW2()])

    asyncio.run(plugin.close())
    assert closed == ["mw1", "mw2"]

"""Tests for middleware wiring through ExecutionConfig → ADKBackend → App."""
import pytest

from adk_fluent.backends.adk import ADKBackend
from adk_fluent.config import ExecutionConfig
from adk_fluent.ir import AgentNode


def test_execution_config_has_middlewares_field():
    cfg = ExecutionConfig()
    assert cfg.middlewares == ()


def test_execution_config_accepts_middleware_tuple():
    class LogMW:
        pass

    cfg = ExecutionConfig(middlewares=(LogMW(),))
    assert len(cfg.middlewares) == 1


def test_backend_compile_without_middleware():
    """Compile without middleware should produce App with no plugins."""
    backend = ADKBackend()
    node = AgentNode(name="test")
    app = backend.compile(node)
    # App should have no plugins (or empty list)
    plugins = getattr(app, "plugins", []) or []
    assert len(plugins) == 0


def test_backend_compile_with_middleware():
    """Compile with middleware should produce App with a _MiddlewarePlugin."""
    from adk_fluent.middleware import _MiddlewarePlugin

    class LogMW:
        async def before_model(self, ctx, request):
            return None

    backend = ADKBackend()
    node = AgentNode(name="test")
    cfg = ExecutionConfig(middlewares=(LogMW(),))
    app = backend.compile(node, config=cfg)

    plugins = getattr(app, "plugins", []) or []
    assert len(plugins) == 1
    assert isinstance(plugins[0], _MiddlewarePlugin)


def test_backend_compile_middleware_preserves_stack_order():
    """Middleware stack order should be preserved in the plugin."""
    call_log = []

    class MW1:
        async def before_model(self, ctx, request):
            call_log.append("mw1")

    class MW2:
        async def before_model(self, ctx, request):
            call_log.append("mw2")

    backend = ADKBackend()
    node = AgentNode(name="test")
    cfg = ExecutionConfig(middlewares=(MW1(), MW2()))
    app = backend.compile(node, config=cfg)

    plugin = app.plugins[0]

    async def run():
        await plugin.before_model_callback(
            callback_context=None, llm_request=None
        )

    asyncio.run(run())
    assert call_log == ["mw1", "mw2"]


def test_to_app_with_middleware():
    """to_app() should wire middleware through to App.plugins."""
    from adk_fluent import Agent
    from adk_fluent.middleware import _MiddlewarePlugin

    class LogMW:
        async def before_model(self, ctx, request):
            return None

    cfg = ExecutionConfig(middlewares=(LogMW(),))
    app = Agent("test").to_app(config=cfg)

    plugins = getattr(app, "plugins", []) or []
    assert len(plugins) == 1
    assert isinstance(plugins[0], _MiddlewarePlugin)

"""Tests for builder .middleware() method."""
import pytest

from adk_fluent import Agent


def test_middleware_method_returns_self():
    class LogMW:
        pass

    a = Agent("test")
    result = a.middleware(LogMW())
    assert result is a


def test_middleware_method_chainable():
    class MW1:
        pass
    class MW2:
        pass

    a = Agent("test").middleware(MW1()).middleware(MW2())
    assert len(a._middlewares) == 2


def test_middleware_flows_through_to_app():
    from adk_fluent.middleware import _MiddlewarePlugin

    class LogMW:
        async def before_model(self, ctx, request):
            return None

    app = Agent("test").middleware(LogMW()).to_app()
    plugins = getattr(app, "plugins", []) or []
    assert len(plugins) == 1
    assert isinstance(plugins[0], _MiddlewarePlugin)


def test_middleware_with_explicit_config_merges():
    """Middleware from builder + config should both be included."""
    from adk_fluent.config import ExecutionConfig

    class MW1:
        async def before_model(self, ctx, request):
            return None

    class MW2:
        async def after_model(self, ctx, response):
            return None

    cfg = ExecutionConfig(middlewares=(MW2(),))
    app = Agent("test").middleware(MW1()).to_app(config=cfg)
    plugins = getattr(app, "plugins", []) or []
    assert len(plugins) == 1
    plugin = plugins[0]
    # Stack should have both MW1 (from builder) and MW2 (from config)
    assert len(plugin._stack) == 2


def test_middleware_preserved_through_operators():
    """Middleware should survive >> and | operators."""
    class LogMW:
        pass

    pipeline = Agent("a").middleware(LogMW()) >> Agent("b")
    # The pipeline should carry the middleware from its children
    assert hasattr(pipeline, "_middlewares")


def test_pipeline_to_app_with_middleware():

    class LogMW:
        async def before_model(self, ctx, request):
            return None

    app = (Agent("a").middleware(LogMW()) >> Agent("b")).to_app()
    plugins = getattr(app, "plugins", []) or []
    assert len(plugins) == 1

"""Tests for built-in middleware implementations."""
import pytest

from adk_fluent.middleware import RetryMiddleware, StructuredLogMiddleware

# --- RetryMiddleware ---

def test_retry_middleware_is_middleware():
    from adk_fluent.middleware import Middleware
    mw = RetryMiddleware()
    assert isinstance(mw, Middleware)


def test_retry_middleware_defaults():
    mw = RetryMiddleware()
    assert mw.max_attempts == 3
    assert mw.backoff_base == 1.0


def test_retry_middleware_custom_config():
    mw = RetryMiddleware(max_attempts=5, backoff_base=0.5)
    assert mw.max_attempts == 5
    assert mw.backoff_base == 0.5


def test_retry_middleware_on_model_error_returns_none():
    """Retry middleware returns None to let ADK retry."""
    mw = RetryMiddleware(max_attempts=3, backoff_base=0.0)

    async def run():
        result = await mw.on_model_error(
            ctx=None, request=None, error=ValueError("test")
        )
        return result

    result = asyncio.run(run())
    assert result is None  # Let ADK handle the retry


def test_retry_middleware_on_tool_error_returns_none():
    mw = RetryMiddleware(max_attempts=3, backoff_base=0.0)

    async def run():
        result = await mw.on_tool_error(
            ctx=None, tool_name="search", args={}, error=ValueError("test")
        )
        return result

    result = asyncio.run(run())
    assert result is None


# --- StructuredLogMiddleware ---

def test_structured_log_is_middleware():
    from adk_fluent.middleware import Middleware
    mw = StructuredLogMiddleware()
    assert isinstance(mw, Middleware)


def test_structured_log_captures_events():
    mw = StructuredLogMiddleware()

    async def run():
        await mw.before_model(ctx=None, request="test_request")
        await mw.after_model(ctx=None, response="test_response")
        await mw.before_agent(ctx=None, agent_name="agent1")
        await mw.after_agent(ctx=None, agent_name="agent1")

    asyncio.run(run())
    assert len(mw.log) == 4
    assert mw.log[0]["event"] == "before_model"
    assert mw.log[1]["event"] == "after_model"
    assert mw.log[2]["event"] == "before_agent"
    assert mw.log[2]["agent_name"] == "agent1"


def test_structured_log_never_short_circuits():
    """Log middleware should never return non-None (observation only)."""
    mw = StructuredLogMiddleware()

    async def run():
        r1 = await mw.before_model(ctx=None, request="req")
        r2 = await mw.after_model(ctx=None, response="resp")
        r3 = await mw.before_tool(ctx=None, tool_name="t", args={})
        r4 = await mw.after_tool(ctx=None, tool_name="t", args={}, result={})
        return [r1, r2, r3, r4]

    results = asyncio.run(run())
    assert all(r is None for r in results)


# --- Exports ---

def test_middleware_importable_from_top_level():
    from adk_fluent import Middleware, RetryMiddleware, StructuredLogMiddleware
    assert Middleware is not None
    assert RetryMiddleware is not None
    assert StructuredLogMiddleware is not None


# -------------------------------------------------------------------------------------------------


def test_the_sizes_of_the_plans_verification():
    log, retry = StructuredLogMiddleware(), RetryMiddleware()
    pipeline = Agent("a").middleware(retry).middleware(log) >> Agent("b")
    app = pipeline.to_app()
    assert (len(app.plugins), len(app.plugins[0]._stack)) == (1, 2)
    assert len(pipeline._middlewares) == 2
