"""One typing protocol for each hook of a middleware: an object with one of them is a middleware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from adk_fluent.protocol._calls import (
        AgentCall,
        AgentReply,
        ModelCall,
        ModelReply,
        NextAgent,
        NextModel,
        NextRemote,
        NextRun,
        NextTool,
        RemoteCall,
        RemoteReply,
        RunCall,
        ToolCall,
    )
    from adk_fluent.protocol._event import AgentEvent


class OnUserMessage(Protocol):
    """Sees the user's message."""

    def on_user_message(self, ctx: Any, message: Any, /) -> Awaitable[Any]:
        """See `Middleware.on_user_message`."""
        ...


class BeforeRun(Protocol):
    """Acts before a run."""

    def before_run(self, ctx: Any, /) -> Awaitable[Any]:
        """See `Middleware.before_run`."""
        ...


class AfterRun(Protocol):
    """Acts after a run."""

    def after_run(self, ctx: Any, /) -> Awaitable[None]:
        """See `Middleware.after_run`."""
        ...


class OnRunError(Protocol):
    """Is told that a run failed."""

    def on_run_error(self, ctx: Any, error: Exception, /) -> Awaitable[None]:
        """See `Middleware.on_run_error`."""
        ...


class OnEvent(Protocol):
    """Sees each event."""

    def on_event(self, ctx: Any, event: AgentEvent, /) -> Awaitable[AgentEvent | None]:
        """See `Middleware.on_event`."""
        ...


class BeforeAgent(Protocol):
    """Acts before a step."""

    def before_agent(self, ctx: Any, agent_name: str, /) -> Awaitable[Any]:
        """See `Middleware.before_agent`."""
        ...


class AfterAgent(Protocol):
    """Acts after a step."""

    def after_agent(self, ctx: Any, agent_name: str, /) -> Awaitable[Any]:
        """See `Middleware.after_agent`."""
        ...


class OnAgentError(Protocol):
    """Is told that a step failed."""

    def on_agent_error(self, ctx: Any, agent_name: str, error: Exception, /) -> Awaitable[None]:
        """See `Middleware.on_agent_error`."""
        ...


class BeforeModel(Protocol):
    """Acts before a model call."""

    def before_model(self, ctx: Any, request: Any, /) -> Awaitable[Any]:
        """See `Middleware.before_model`."""
        ...


class AfterModel(Protocol):
    """Acts after a model call."""

    def after_model(self, ctx: Any, response: Any, /) -> Awaitable[Any]:
        """See `Middleware.after_model`."""
        ...


class OnModelError(Protocol):
    """Acts when a model call failed."""

    def on_model_error(self, ctx: Any, request: Any, error: Exception, /) -> Awaitable[Any]:
        """See `Middleware.on_model_error`."""
        ...


class BeforeTool(Protocol):
    """Acts before a tool call."""

    def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any], /) -> Awaitable[Any]:
        """See `Middleware.before_tool`."""
        ...


class AfterTool(Protocol):
    """Acts after a tool call."""

    def after_tool(
        self, ctx: Any, tool_name: str, args: dict[str, Any], result: Any, /
    ) -> Awaitable[Any]:
        """See `Middleware.after_tool`."""
        ...


class OnToolError(Protocol):
    """Acts when a tool call failed."""

    def on_tool_error(
        self, ctx: Any, tool_name: str, args: dict[str, Any], error: Exception, /
    ) -> Awaitable[Any]:
        """See `Middleware.on_tool_error`."""
        ...


class WrapRun(Protocol):
    """Stands around a run."""

    def wrap_run(self, call: RunCall, next: NextRun, /) -> Awaitable[AgentReply]:
        """See `Middleware.wrap_run`."""
        ...


class WrapAgent(Protocol):
    """Stands around a step."""

    def wrap_agent(self, call: AgentCall, next: NextAgent, /) -> Awaitable[AgentReply]:
        """See `Middleware.wrap_agent`."""
        ...


class WrapModelCall(Protocol):
    """Stands around a model call."""

    def wrap_model_call(self, call: ModelCall, next: NextModel, /) -> Awaitable[ModelReply]:
        """See `Middleware.wrap_model_call`."""
        ...


class WrapModelRequest(Protocol):
    """Stands next to the model, around each request that is sent to it."""

    def wrap_model_request(self, call: ModelCall, next: NextModel, /) -> Awaitable[ModelReply]:
        """See `Middleware.wrap_model_request`."""
        ...


class WrapRemoteCall(Protocol):
    """Stands around a call of an agent elsewhere."""

    def wrap_remote_call(self, call: RemoteCall, next: NextRemote, /) -> Awaitable[RemoteReply]:
        """See `Middleware.wrap_remote_call`."""
        ...


class WrapToolCall(Protocol):
    """Stands around a tool call."""

    def wrap_tool_call(self, call: ToolCall, next: NextTool, /) -> Awaitable[Any]:
        """See `Middleware.wrap_tool_call`."""
        ...
