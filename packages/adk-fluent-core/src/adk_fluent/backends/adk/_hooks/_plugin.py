"""The one plugin of ours. It is there only when there is something for it to do."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from adk_fluent.backends._resuming import check_free
from adk_fluent.backends._stack import Stack
from adk_fluent.backends.adk._caps import checks_answers
from adk_fluent.backends.adk._hooks._agents import is_flow
from adk_fluent.backends.adk._hooks._answered import settle_tool, tool_was_answered
from adk_fluent.backends.adk._hooks._calls import announce
from adk_fluent.backends.adk._hooks._chain import CALLER, attached, invocation_of
from adk_fluent.backends.adk._hooks._in_flow import tell_directly
from adk_fluent.backends.adk._hooks._line import speaks
from adk_fluent.backends.adk._hooks._sites import call_site, is_site, make_site
from adk_fluent.backends.adk._hooks._turns import held_back, turn_in
from adk_fluent.backends.adk._session._events import REQUEST_CONFIRMATION
from adk_fluent.backends.adk._session._facts import unsaid
from adk_fluent.backends.adk._session._patching import pass_event
from adk_fluent.backends.adk._waiting._confirmations import confirmation
from adk_fluent.backends.adk._waiting._journal import load
from adk_fluent.ir import AdkAgentNode, AgentNode, GateNode, RemoteAgentNode, walk
from adk_fluent.protocol import hooks_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.base_tool import BaseTool

    from adk_fluent.ir import Node

_WAITS: Final = (AdkAgentNode, GateNode, RemoteAgentNode)
NAME: Final = "adk_fluent"
#: A key of the ``__dict__`` of the context of a flow that runs, and so of every copy of it.
_RUNS: Final = "_adk_fluent_runs"
_STACK: Final = "_adk_fluent_stack"
#: The same of the context of an invocation in which a flow is about to run.
_OURS: Final = "_adk_fluent_ours"


class MiddlewarePlugin(BasePlugin):
    """Tells the call sites which call is whose, and makes sites of what compiling could not see.

    It also lets every answer in at the root of the pipeline. ADK hands the answer for a tool to the
    agent that called it, and what comes after that agent would never be run.

    Where no pipeline of ours runs, such as under agents built by hand, it asks the middlewares of
    its own stack whatever ADK asks a plugin; there is nothing then that `wrap_*` could stand
    around.

    Args:
        name: The plugin's name.
        stack: Middlewares, outermost first.
    """

    #: Whether it may say something when an agent of a pipeline is done.
    may_speak: ClassVar[bool] = False

    def __init__(self, name: str = NAME, stack: Sequence[Any] = ()) -> None:
        super().__init__(name=name)
        self._stack: list[Any] = list(stack)
        self._asked = Stack(self._stack)
        self._closes: list[Any] = list(stack)

    @property
    def stack(self) -> tuple[Any, ...]:
        """Its middlewares, outermost first."""
        return tuple(self._stack)

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        """Let nothing in while a run goes on, and bring answers to confirmations into one form.

        Whatever is written to a session that is at work makes most services refuse the next event
        of that run, after its step has been done; so who answers takes the run first. Every later
        agent can read the one form.
        """
        flow: Any = _flow_of(invocation_context)  # its module imports this one
        if flow is None:
            if self._is_asked(invocation_context):
                stack = self._stack_of(invocation_context)
                said = await stack.hand_in("on_user_message", invocation_context, user_message)
                if said is not None:
                    return said
        else:
            entry = load(invocation_context.session.state, flow.name)
            check_free(flow.plan.pipeline, entry)
            if entry is not None or any(
                part.function_response for part in user_message.parts or ()
            ):
                await flow.take(invocation_context, user_message)
            greeted = await flow.greeted(invocation_context, user_message)
            if greeted is not None:
                return await self._by_others(invocation_context, greeted)
        parts = [_plain_confirmation(part) for part in user_message.parts or ()]
        if parts == user_message.parts:
            return None
        return user_message.model_copy(update={"parts": parts})

    async def before_run_callback(
        self, *, invocation_context: InvocationContext
    ) -> types.Content | None:
        """Let the run begin at the outermost flow above the agent that ADK has chosen."""
        if self._stack and _flow_of(invocation_context) is None:
            return await self._before(invocation_context, "before_run")
        flow = flow_above(_asking(invocation_context) or invocation_context.agent)
        if flow is not None and flow is not invocation_context.agent:
            invocation_context.agent = flow
            invocation_context.branch = None
        if flow is not None:
            vars(invocation_context)[_OURS] = True
            tell_directly(invocation_context, self)
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Only where no flow runs: the flow asks its middlewares itself."""
        if self._is_asked(invocation_context):
            await self._stack_of(invocation_context).tell("after_run", invocation_context)

    async def on_run_error_callback(self, *, invocation_context: Any, error: Exception) -> None:
        """Only where no flow runs, and on 2.x."""
        if self._is_asked(invocation_context):
            asked = self._stack_of(invocation_context)
            await asked.tell("on_run_error", invocation_context, error)

    async def on_event_callback(
        self, *, invocation_context: InvocationContext, event: Event
    ) -> Event | None:
        """Only where no flow runs."""
        if not self._is_asked(invocation_context):
            return None
        unsaid(event)
        stack = self._stack_of(invocation_context)
        return event if await pass_event(stack, invocation_context, event) else None

    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: Any
    ) -> types.Content | None:
        """An agent that was not compiled here, such as one in a graph of ADK's, has no site yet.

        One that ADK has given the answer to a question of a flow's hands over to that flow.
        """
        ctx = invocation_of(callback_context)
        if self._is_asked(ctx):
            return await self._before(callback_context, "before_agent", agent.name)
        flow = _meant(agent, ctx)
        if flow is not None:
            callback_context.actions.transfer_to_agent = flow.name
            return types.Content(parts=[])  # of no role, so that no model is told of it
        self.begins(agent, callback_context)
        return None

    def begins(self, agent: BaseAgent, context: Any) -> None:
        """Make a call site of the model of an agent that is about to run, if that is needed."""
        if not isinstance(agent, LlmAgent):
            return
        ctx = invocation_of(context)
        if ctx.live_request_queue is None and is_site(agent.model):  # as compiled ones are
            return
        chain = attached(ctx)
        chain = None if chain is None else chain.of(agent.name)
        if ctx.live_request_queue is not None and speaks(agent.name, ctx, chain):
            _make_model_site(agent, getattr(agent, "canonical_live_model", None))
        elif chain is not None and chain.models:
            _make_model_site(agent)

    async def after_agent_callback(
        self, *, agent: BaseAgent, callback_context: Any
    ) -> types.Content | None:
        """Only where no flow runs."""
        return await self._after(callback_context, "after_agent", agent.name)

    async def on_agent_error_callback(
        self, *, agent: BaseAgent, callback_context: Any, error: Exception
    ) -> None:
        """Only where no flow runs, and on 2.x."""
        await self._after(callback_context, "on_agent_error", agent.name, error)

    async def before_model_callback(
        self, *, callback_context: Any, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """The request that comes next at a site is this agent's; not all of a turn is settled."""
        ctx = invocation_of(callback_context)
        if self._is_asked(ctx):
            return await self._before(callback_context, "before_model", llm_request)
        return self.asks(callback_context, llm_request)

    def asks(self, context: Any, request: LlmRequest) -> LlmResponse | None:
        """Announce what an agent is about to ask its model.

        Returns:
            What stands for the answer, where not all of the agent's turn is settled.
        """
        ctx = invocation_of(context)
        if ctx.live_request_queue is None:  # what is said in a live run has hooks of its own
            turn = turn_in(ctx.__dict__)
            if turn is not None and turn.holds(context.agent_name):
                return held_back()
            announce(request, context, ctx)
        return None

    async def after_model_callback(
        self, *, callback_context: Any, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Only where no flow runs: elsewhere the site of the call has asked."""
        if not self._is_asked(invocation_of(callback_context)):  # at once: it comes for each chunk
            return None
        return await self._after(callback_context, "after_model", llm_response)

    async def on_model_error_callback(
        self, *, callback_context: Any, llm_request: LlmRequest, error: Exception
    ) -> LlmResponse | None:
        """Only where no flow runs."""
        return await self._after(callback_context, "on_model_error", llm_request, error)

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any
    ) -> dict[str, Any] | None:
        """This is the very object that ADK will run."""
        ctx = invocation_of(tool_context)
        if self._is_asked(ctx):
            return await self._before(tool_context, "before_tool", tool.name, tool_args)
        told = tool.is_long_running and turn_in(ctx.__dict__) is not None  # whether it has run
        if not is_site(tool) and (told or attached(ctx) is not None):
            call_site(tool)
        return None

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, result: Any
    ) -> dict[str, Any] | None:
        """Where no flow runs; and where somebody else has answered, so that no site was reached."""
        if self._is_asked(invocation_of(tool_context)):
            return await self._after(tool_context, "after_tool", tool.name, tool_args, result)
        tool_was_answered(tool_context, tool)
        return await settle_tool(tool_context, tool, tool_args, result)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, error: Exception
    ) -> dict[str, Any] | None:
        """Only where no flow runs."""
        return await self._after(tool_context, "on_tool_error", tool.name, tool_args, error)

    def will_close(self, stack: Iterable[Any]) -> None:
        """Let it close these middlewares, too; they are asked by a flow."""
        self._closes += (each for each in stack if all(each is not one for one in self._closes))

    async def close(self) -> None:
        """Let every middleware close what it holds.

        Raises:
            Exception: What the first of those raised that could not; the others are closed.
        """
        caller = CALLER.get()
        if caller is not None and self in caller.plugins:  # ADK 1.x, after an agent that is a tool
            return
        errors: list[Exception] = []
        for each in self._closes:
            if "close" in hooks_of(each):
                try:
                    await each.close()
                except Exception as error:  # noqa: BLE001  # raised when all are closed
                    errors.append(error)
        if errors:
            raise errors[0]

    async def _by_others(self, ctx: InvocationContext, message: types.Content) -> types.Content:
        """What the plugins behind this one make of a message; ADK would ask none of them."""
        plugins = ctx.plugin_manager.plugins
        for other in plugins[plugins.index(self) + 1 :]:
            said = await other.on_user_message_callback(
                invocation_context=ctx, user_message=message
            )
            if said is not None:
                return said
        return message

    # --- where no flow runs --------------------------------------------------------------------

    def _is_asked(self, ctx: Any) -> bool:
        """Whether it is the plugin that asks: no pipeline of ours runs here."""
        if not self._stack or (ctx is not None and _OURS in ctx.__dict__):  # at each event
            return False
        return ctx is None or (attached(ctx) is None and _flow_of(ctx) is None)

    def _stack_of(self, ctx: Any) -> Stack:
        """The stack of the invocation that a context belongs to."""
        if ctx is None:
            return self._asked
        kept = cast("dict[str, Any]", ctx.__dict__)
        if _STACK not in kept:
            kept[_STACK] = Stack.begun(self._stack)
        return kept[_STACK]

    async def _before(self, context: Any, hook: str, *args: Any) -> Any:
        ctx = invocation_of(context)
        if not self._is_asked(ctx):
            return None
        said, _ = await self._stack_of(ctx).before(hook, context, *args)
        return said

    async def _after(self, context: Any, hook: str, *args: Any) -> Any:
        ctx = invocation_of(context)
        if not self._is_asked(ctx):
            return None
        stack = self._stack_of(ctx)
        ask = stack.recover if hook.startswith("on_") else stack.after
        return await ask(hook, context, *args)


def ensure_plugin(ctx: InvocationContext, stack: Sequence[Any]) -> None:
    """Install the plugin where the root agent runs under somebody else's App.

    Args:
        ctx: The context of a flow that runs.
        stack: Its middlewares, also those around parts of it.
    """
    vars(ctx)[_RUNS] = True
    manager = ctx.plugin_manager
    plugin = next((each for each in manager.plugins if isinstance(each, MiddlewarePlugin)), None)
    if plugin is None:
        plugin = MiddlewarePlugin()  # of no stack: the flow's is no business of its neighbours
        manager.register_plugin(plugin)
        # first, as in an App of ours; a list of its own, for another run may go through the old one
        manager.plugins = [plugin, *(each for each in manager.plugins if each is not plugin)]
        said = next((e for e in reversed(ctx.session.events) if e.author == "user"), None)
        if said is not None and said.content is not None:  # it came before the plugin did
            said.content.parts = [_plain_confirmation(part) for part in said.content.parts or ()]
    plugin.will_close(stack)
    tell_directly(ctx, plugin)


def can_pause(root: Node) -> bool:
    """Whether a run may have to wait for an answer, as far as can be seen."""
    return any(
        isinstance(node, _WAITS)
        or (isinstance(node, AgentNode) and (node.tools or node.agent_tools or node.delegates))
        for node in walk(root)
    )


def _make_model_site(agent: LlmAgent, model: BaseLlm | None = None) -> None:
    model = model or agent.canonical_model
    if not is_site(model):
        make_site(model)
        if agent.model and not isinstance(agent.model, BaseLlm):  # a name: made anew each time
            agent.model = model


def _flow_of(ctx: InvocationContext) -> BaseAgent | None:
    """The outermost flow that an invocation runs or is part of."""
    return flow_above(ctx.agent)


def _plain_confirmation(part: types.Part) -> types.Part:
    given = part.function_response
    if given is None or given.name != REQUEST_CONFIRMATION:
        return part
    plain = given.model_copy(update={"response": confirmation(given.response)})
    return part.model_copy(update={"function_response": plain})


def _asking(ctx: InvocationContext) -> BaseAgent | None:
    """The agent whose question the user has just answered."""
    events, agent = ctx.session.events, flow_above(ctx.agent) or ctx.agent
    ids = {each.id for each in events[-1].get_function_responses()} if events else set[str | None]()
    for event in reversed(events) if ids else ():
        if any(call.id in ids for call in event.get_function_calls()):
            return (
                agent.root_agent.find_agent(event.author) if isinstance(agent, BaseAgent) else None
            )
    return None


def _meant(agent: BaseAgent, ctx: InvocationContext) -> BaseAgent | None:
    """The flow that an answer is for which ADK has given to an agent beside, above or below it.

    Its graph runtime runs whom it has chosen, whatever `before_run_callback` says: the agent that
    asked, or one that spoke last and hands over.
    """
    if _RUNS in vars(ctx) or not isinstance(agent, LlmAgent) or not checks_answers(ctx):
        return None
    above = agent.parent_agent
    near = [*agent.sub_agents, *(() if above is None else (above, *above.sub_agents))]
    each, flow = _asking(ctx), None
    while each is not None:
        if flow_above(each, each) is not None and any(each.name == other.name for other in near):
            flow = each
        each = each.parent_agent
    return flow


@cache
def _is_agent(kind: type) -> bool:
    """Whether objects of a class are agents; asked at each event, and slow for pydantic's."""
    return issubclass(kind, BaseAgent)


def flow_above(agent: Any, top: BaseAgent | None = None) -> BaseAgent | None:
    """The outermost flow that an agent stands in or is; with `top` none that is above that."""
    flow: BaseAgent | None = None
    while agent is not None and _is_agent(cast("type[Any]", type(agent))):
        if is_flow(agent):
            flow = agent
        agent = None if agent is top else agent.parent_agent
    return flow
