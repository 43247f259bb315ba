"""What a middleware's ``wrap_*`` hooks are given and give back.

The onion is in coroutine style: ``reply = await next(call)`` runs everything inside, and streamed
fragments pass by on their own (`ModelCall.emit`). What ADK owns (requests, responses, tools,
contexts, messages) is passed through as it is and typed `Any`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adk_fluent.protocol._usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.ir import AgentNode, ExecutionConfig, Node, RemoteAgentNode


@dataclass(slots=True, eq=False)
class Sink:
    """Where fragments go, shared by a call and every changed copy of it.

    Attributes:
        forward: Takes one fragment; None drops it.
        emitted: A fragment was sent.
    """

    forward: Callable[[Any], Awaitable[None]] | None = field(default=None, repr=False)
    emitted: bool = False


@dataclass(slots=True, eq=False)
class ModelCall:
    """A model is about to be called; change the request in place, or pass on a changed copy.

    Attributes:
        request: ADK's LlmRequest.
        ctx: ADK's Context.
        model: The BaseLlm that will be called.
        agent: Name of the agent that calls it.
        node: The agent's node, when it was built here.
        stream: Fragments are wanted.
        iteration: How often this agent called its model before, in this run of it.
        run: Id of the run; it stays the same when a paused run is resumed.
        path: Position of the step in which it is called; see `AgentEvent.path`.
        sink: Where fragments go.
    """

    request: Any
    ctx: Any = None
    model: Any = None
    agent: str = ""
    node: AgentNode | None = None
    stream: bool = False
    iteration: int = 0
    run: str = ""
    path: str = ""
    sink: Sink = field(default_factory=Sink, repr=False)

    @property
    def emitted(self) -> bool:
        """Whether a fragment was sent on; a call must not be started again after that."""
        return self.sink.emitted

    def heard_by(self, forward: Callable[[Any], Awaitable[None]]) -> ModelCall:
        """A copy of the call, to pass on, whose fragments go to `forward`; `emit` sends them on."""
        return ModelCall(
            self.request,
            self.ctx,
            self.model,
            self.agent,
            self.node,
            self.stream,
            self.iteration,
            self.run,
            self.path,
            Sink(forward, self.sink.emitted),
        )

    async def emit(self, response: Any) -> None:
        """Send a fragment (an LlmResponse with ``partial=True``) on to the user."""
        self.sink.emitted = True
        if self.sink.forward is not None:
            await self.sink.forward(response)


@dataclass(slots=True, eq=False)
class ModelReply:
    """What a model said.

    Attributes:
        responses: ADK's LlmResponses that are no fragments, in order.
        asked: A model was asked for it; False where what stands in its place has answered, such as
            one that keeps answers. Nothing is charged for that.
    """

    responses: list[Any] = field(default_factory=list[Any])
    asked: bool = True

    @property
    def final(self) -> Any:
        """The last response, None when there is none."""
        return self.responses[-1] if self.responses else None

    @property
    def text(self) -> str:
        """What it says, without thoughts and tool calls."""
        contents = (getattr(each, "content", None) for each in self.responses)
        parts = (part for each in contents if each is not None for part in each.parts or ())
        return "".join(each.text for each in parts if each.text and not each.thought)

    @property
    def usage(self) -> Usage | None:
        """Tokens of the call; None when the model did not say."""
        return Usage.last(
            Usage.from_genai(getattr(each, "usage_metadata", None)) for each in self.responses
        )


@dataclass(slots=True, eq=False)
class ToolCall:
    """A tool is about to be called; what `next` returns is the tool's result, whatever that is.

    Attributes:
        name: The tool's name, with its toolset's prefix.
        args: Its arguments.
        ctx: ADK's Context (ToolContext).
        tool: The BaseTool.
        call_id: Identity of the call.
        agent: Name of the agent that calls it.
        node: The agent's node, when it was built here.
        long_running: Its result comes later; None is not a failure.
        run: Id of the run.
    """

    name: str
    args: dict[str, Any] = field(default_factory=dict[str, Any])
    ctx: Any = None
    tool: Any = None
    call_id: str | None = None
    agent: str = ""
    node: AgentNode | None = None
    long_running: bool = False
    run: str = ""


@dataclass(slots=True, eq=False)
class RemoteCall:
    """An agent elsewhere is about to be asked over the network, for a step of the pipeline.

    Attributes:
        agent: Name of the step.
        asked: What it is asked, as data that JSON can hold; changing it changes nothing.
        ctx: ADK's InvocationContext.
        node: The step's node.
        run: Id of the run.
        sink: Where fragments go.
    """

    agent: str
    asked: dict[str, Any] = field(default_factory=dict[str, Any])
    ctx: Any = None
    node: RemoteAgentNode | None = None
    run: str = ""
    sink: Sink = field(default_factory=Sink, repr=False)

    async def emit(self, event: Any) -> None:
        """Send a fragment (an ADK Event with ``partial=True``) on to the user."""
        self.sink.emitted = True
        if self.sink.forward is not None:
            await self.sink.forward(event)


@dataclass(slots=True, eq=False)
class RemoteReply:
    """What an agent elsewhere has answered.

    Attributes:
        events: ADK's Events of the step that are no fragments, in order, with what they write.
    """

    events: list[Any] = field(default_factory=list[Any])


@dataclass(slots=True, eq=False)
class AgentCall:
    """A step of the pipeline is about to run: an agent, or an arrangement of steps.

    Attributes:
        name: The step's name.
        node: Its node; None for an agent that was not built here.
        ctx: ADK's Context.
        state: Session state as the step sees it, read-only.
        path: Its position; see `AgentEvent.path`.
        iteration: Iteration of the nearest loop around it, from 0.
        resumed: It goes on after a pause; it was begun in an earlier call.
        run: Id of the run.
    """

    name: str
    node: Node | None = None
    ctx: Any = None
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    path: str = ""
    iteration: int = 0
    resumed: bool = False
    run: str = ""


@dataclass(slots=True, eq=False)
class RunCall:
    """A run is about to begin.

    Attributes:
        message: The user's message, a `google.genai` Content.
        ctx: ADK's InvocationContext.
        root: What runs.
        config: How it runs.
        app_name: The app.
        user_id: The user.
        session_id: The session.
        invocation_id: Identity of this call.
        resumed: It goes on after a pause.
        run: Id of the run.
        said: What the user said, before any middleware changed it; None if the run goes on, or does
            not begin with the user.
    """

    message: Any = None
    ctx: Any = None
    root: Node | None = None
    config: ExecutionConfig | None = None
    app_name: str = ""
    user_id: str = ""
    session_id: str = ""
    invocation_id: str = ""
    resumed: bool = False
    run: str = ""
    said: Any = None


@dataclass(slots=True, eq=False)
class AgentReply:
    """What a step or a run amounts to; its events were handed on while it ran.

    A hook that returns one of its own without calling `next` answers in the step's place: the text
    is said and the state written.

    Attributes:
        text: The answer.
        state_delta: State it wrote.
        paused: It is not done but waits for an answer from outside.
    """

    text: str = ""
    state_delta: dict[str, Any] = field(default_factory=dict[str, Any])
    paused: bool = False


#: What a `WrapModelCall` calls to go on: the next middleware, or the model.
NextModel = Callable[[ModelCall], Awaitable[ModelReply]]
#: What a `WrapToolCall` calls to go on: the next middleware, or the tool.
NextTool = Callable[[ToolCall], Awaitable[Any]]
#: What a `WrapRemoteCall` calls to go on: the next middleware, or the agent elsewhere.
NextRemote = Callable[[RemoteCall], Awaitable[RemoteReply]]
#: What a `WrapAgent` calls to go on: the next middleware, or the agent.
NextAgent = Callable[[AgentCall], Awaitable[AgentReply]]
#: What a `WrapRun` calls to go on: the next middleware, or the run.
NextRun = Callable[[RunCall], Awaitable[AgentReply]]
