"""The ADK agent of a remote agent: a wrapper of ADK's own `RemoteA2aAgent`."""

from __future__ import annotations

import asyncio
import json
import uuid
import warnings
from contextlib import AsyncExitStack, aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.a2a.agent.config import (
    A2aRemoteAgentConfig,
    ParametersConfig,
    RequestInterceptor,
)
from google.adk.a2a.converters.part_converter import (
    convert_a2a_part_to_genai_part,
    convert_genai_part_to_a2a_part,
)
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.remote_a2a_agent import RemoteA2aAgent
from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.genai import types
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.struct_pb2 import Value
from pydantic import PrivateAttr

from a2a.client import ClientConfig, ClientFactory
from a2a.client.client import ClientCallContext
from a2a.types import Part, TaskState
from adk_fluent.a2a._agent_card import GRPC
from adk_fluent.a2a._asking import asking_of, responses_to
from adk_fluent.a2a._auth_adk import Credentials
from adk_fluent.a2a._cards_adk import BINDINGS, Cards, uses_grpc
from adk_fluent.a2a._exchange_adk import WAITING, Exchange, Tries
from adk_fluent.a2a._failures_adk import failure
from adk_fluent.a2a._grpc import open_channel
from adk_fluent.a2a._history import KEY, Asked, asked_in, context_of, spoken
from adk_fluent.a2a._http import http_client
from adk_fluent.a2a._trace import TRACE
from adk_fluent.a2a._values import inputs_of, outputs_of, plain
from adk_fluent.backends import RuleTable
from adk_fluent.errors import UsageError
from adk_fluent.extend import (
    DURABLE_RUN,
    answer_of,
    ask_remote,
    effect_key,
    give_output,
    report_refusal,
)
from adk_fluent.ir import UNSET, RemoteAgentNode
from adk_fluent.protocol import RemoteCall

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    import httpx
    from google.adk.agents.invocation_context import InvocationContext

    from a2a.client import Client
    from a2a.types import AgentCard, Message
    from adk_fluent.backends.adk import CompileContext
    from adk_fluent.extend import Answer

# which parts of ADK are experimental is our business, not that of our users
warnings.filterwarnings("ignore", r"\[EXPERIMENTAL\].*A2A", UserWarning)

RULES: Final[RuleTable[BaseAgent, CompileContext]] = RuleTable("agents")

_TYPE: Final = "adk_type"  # ADK's mark of data parts that stand for calls of tools
_INPUTS: Final = "adk_fluent_inputs"  # ours, of the data part with the inputs
# The calls with which ADK asks for something.
_REQUEST_INPUT: Final = "adk_request_input"
_REQUEST_CREDENTIAL: Final = "adk_request_credential"


class RemoteAgent(BaseAgent):
    """Asks an agent behind the A2A protocol.

    Attributes:
        node: What is known of it.
    """

    node: Any
    _answer: Answer | None = PrivateAttr(default=None)
    _cards: Cards = PrivateAttr()
    _credentials: Credentials = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Prepare what outlives a run."""
        super().model_post_init(context)
        self._answer = answer_of(self.node)
        self._cards = Cards(self.node)
        self._credentials = Credentials(self.node)

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        asked = asked_in(ctx, self.name)
        parts = _answer_parts(asked) if asked else self._parts(ctx)
        context = asked.context if asked else context_of(ctx, self.name)
        said = {
            "parts": [MessageToDict(each) for each in parts],
            "context_id": context,
            "task_id": asked.task if asked else None,
        }
        call = RemoteCall(self.name, said, ctx, self.node)
        message = partial(_Message, parts, context, asked)
        async with aclosing(ask_remote(call, partial(self._ask, message))) as events:
            async for event in events:
                yield event

    async def _ask(
        self, message: Callable[[Mapping[str, str]], _Message], call: RemoteCall
    ) -> AsyncGenerator[Event, None]:
        """Send the message; all that crosses the network does so here."""
        ctx: InvocationContext = call.ctx
        node: RemoteAgentNode = self.node
        tries = Tries(node, asyncio.get_running_loop().time() + node.timeout_seconds)
        http = await http_client()
        card, headers = await tries.run(lambda: self._prepare(http))
        TRACE.inject(headers)
        over_grpc = uses_grpc(card)
        config = ClientConfig(
            httpx_client=http,
            supported_protocol_bindings=[GRPC] if over_grpc else list(BINDINGS),
            grpc_channel_factory=open_channel if over_grpc else None,
        )
        try:
            client = ClientFactory(config).create(card)
        except ValueError as error:  # of versions of the protocol that the SDK does not know
            raise failure("CARD", node, "has no interface to ask", found=str(error)) from error
        exchange = Exchange(tries, client, self._credentials.forget)
        async with AsyncExitStack() as stack:
            if over_grpc:  # its channel is this task's alone
                stack.push_async_callback(client.close)
            following = self._follow(exchange, card, config, message(headers), ctx)
            events = await stack.enter_async_context(aclosing(following))
            async for event in events:
                yield event

    async def _follow(
        self,
        exchange: Exchange,
        card: AgentCard,
        config: ClientConfig,
        message: _Message,
        ctx: InvocationContext,
    ) -> AsyncGenerator[Event, None]:
        """Let ADK's agent do the task, and tell what comes of it."""
        node: RemoteAgentNode = self.node
        remote = _inner(self.name, card, config, exchange, message)
        async with aclosing(remote._run_async_impl(ctx)) as events:  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # hooks of ours stand around this agent, and none around that one
            async for event in events:
                if exchange.error is not None:
                    break
                if event.error_message:
                    raise failure(
                        "PROTOCOL",
                        node,
                        "gave an answer that ADK cannot read",
                        found=event.error_message,
                    )
                if (progress := self._progress(event, exchange)) is not None:
                    yield progress
        if (refusal := exchange.refusal) is not None:
            yield self._refused(ctx, exchange, refusal)
            return
        if exchange.error is not None:
            raise exchange.error
        answer = self._question if exchange.state in WAITING else self._end
        yield answer(ctx, exchange)

    async def _prepare(self, http: httpx.AsyncClient) -> tuple[AgentCard, dict[str, str]]:
        """The card, and the headers of requests."""
        headers = await self._credentials.headers(http)
        return await self._cards.get(http, headers), headers

    def _parts(self, ctx: InvocationContext) -> list[Part]:
        """What a new task begins with: the conversation, and the declared inputs.

        Raises:
            StateKeyError: State lacks an input.
        """
        node: RemoteAgentNode = self.node
        parts = [
            made
            for part in spoken(ctx, self.name, node.history)
            for made in _listed(convert_genai_part_to_a2a_part(part))
        ]
        if node.reads_keys or node.input_schema is not None:
            parts.append(_data_part(inputs_of(node, ctx.session.state)))
        if not parts:
            raise UsageError(
                f"{self.name} is sent nothing",
                node=node,
                found=f"history={node.history!r}, no inputs, and nothing was said",
                help="give it inputs=, or let somebody speak before",
            )
        return parts

    def _progress(self, event: Event, exchange: Exchange) -> Event | None:
        """An event of ADK's as a fragment, which is shown and not kept; None if it is the end."""
        working = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)
        if exchange.task is None or event.content is None or exchange.state not in working:
            return None
        event.content.parts = _plain(event.content.parts or [])
        if not event.content.parts:
            return None
        event.partial = True
        event.custom_metadata = {KEY: _ids(exchange)}
        event.long_running_tool_ids = None
        event.actions = EventActions()
        return event

    def _end(self, ctx: InvocationContext, exchange: Exchange) -> Event:
        """The answer as one event, with what it writes.

        Raises:
            OutputInvalidError: It does not fit what was declared.
        """
        text, data, parts = _read(exchange)
        delta, output = outputs_of(self.node, self._answer, text, data)
        if data is not None and not text:
            parts = [types.Part(text=json.dumps(data)), *parts]
        event = self._event(ctx, exchange, parts)
        event.actions.state_delta.update(delta)
        if output is not UNSET:
            give_output(event, output)
        return event

    def _question(self, ctx: InvocationContext, exchange: Exchange) -> Event:
        """What the agent wants to know before it goes on, as a question that pauses the run."""
        text, data, _ = _read(exchange)
        calls = _calls(exchange)
        asks = asking_of(self.name, text, data, calls)
        id = f"a2a-{uuid.uuid4()}"
        args: dict[str, Any] = {"name": asks.name, "message": asks.message}
        if exchange.state == TaskState.TASK_STATE_AUTH_REQUIRED:
            name = _REQUEST_CREDENTIAL
            args["authConfig"] = {"message": text, "data": data}
        else:
            name = _REQUEST_INPUT
            args |= {"interruptId": id, "payload": asks.payload, "response_schema": asks.schema}
        call = types.FunctionCall(id=id, name=name, args=args)
        waiting = [{"id": each["id"], "name": each["name"]} for each in calls]
        parts = [types.Part(function_call=call)]
        event = self._event(ctx, exchange, parts, question=id, calls=waiting)
        event.long_running_tool_ids = {id}
        return event

    def _refused(self, ctx: InvocationContext, exchange: Exchange, says: str) -> Event:
        """A person's refusal over there, which ends this run as one at a gate here does."""
        event = self._event(ctx, exchange, [])
        event.content = types.Content(role=None, parts=[types.Part(text=says)])  # for no prompt
        report_refusal(event)
        return event

    def _event(
        self, ctx: InvocationContext, exchange: Exchange, parts: list[types.Part], **ids: Any
    ) -> Event:
        return Event(
            author=self.name,
            invocation_id=ctx.invocation_id,
            branch=ctx.branch,
            content=types.Content(role="model", parts=parts) if parts else None,
            custom_metadata={KEY: {**_ids(exchange), **ids}},
        )


# --- ADK's agent -------------------------------------------------------------------------------


class _Factory(ClientFactory):
    """Gives ADK the exchange in the place of a client."""

    def __init__(self, config: ClientConfig, exchange: Exchange) -> None:
        super().__init__(config)
        self._exchange = exchange

    def create(self, card: AgentCard, interceptors: Any = None) -> Client:
        return cast("Client", self._exchange)


def _inner(
    name: str,
    card: AgentCard,
    config: ClientConfig,
    exchange: Exchange,
    message: _Message,
) -> RemoteA2aAgent:
    """ADK's agent for one task; it makes the message and reads what comes."""
    return RemoteA2aAgent(
        name=name,
        agent_card=card,
        a2a_client_factory=_Factory(config, exchange),
        context_builder=message.build,
        config=A2aRemoteAgentConfig(
            request_interceptors=[RequestInterceptor(before_request=message.address)]
        ),
    )


class _Message:
    """What is sent, and where it belongs.

    Args:
        parts: Its parts.
        context: The context of the conversation there.
        asked: What it answers.
        headers: The headers of the request.
    """

    def __init__(
        self,
        parts: list[Part],
        context: str | None,
        asked: Asked | None,
        headers: Mapping[str, str],
    ) -> None:
        self._parts = parts
        self._context = context
        self._asked = asked
        self._headers = headers

    def build(
        self, ctx: InvocationContext, name: str, converter: object
    ) -> tuple[list[Part], str | None]:
        """The parts and the context, as ADK asks for them."""
        return self._parts, self._context

    async def address(
        self, ctx: InvocationContext, message: Message, parameters: ParametersConfig
    ) -> tuple[Message, ParametersConfig]:
        """Let the message say what it has to, and authenticate.

        ADK makes one of its own where a question is answered.
        """
        del message.parts[:]
        message.parts.extend(self._parts)
        message.context_id = self._context or ""
        message.task_id = "" if self._asked is None else self._asked.task
        message.message_id = _message_id() or message.message_id
        parameters.client_call_context = ClientCallContext(service_parameters=dict(self._headers))
        return message, parameters


def _message_id() -> str | None:
    """The id of a message that an engine sends again after a crash; None of any other."""
    run, key = DURABLE_RUN.get(), effect_key()
    return None if run is None or key is None else f"{key}#{run.call}"


# --- parts -------------------------------------------------------------------------------------


def _listed(parts: Part | list[Part] | None) -> list[Part]:
    return [] if parts is None else parts if isinstance(parts, list) else [parts]


def _data_part(values: Mapping[str, Any]) -> Part:
    part = Part(data=ParseDict(dict(values), Value()))
    part.metadata[_INPUTS] = True
    return part


def _answer_parts(asked: Asked) -> list[Part]:
    """What a person answered, as parts of a message."""
    value: Any = asked.value
    if asked.calls:  # ADK goes on with responses alone
        made = [
            types.Part(function_response=types.FunctionResponse(**each))
            for each in responses_to(asked.calls, value)
        ]
        return [part for each in made for part in _listed(convert_genai_part_to_a2a_part(each))]
    if isinstance(value, dict | list):
        return [Part(data=ParseDict(cast("dict[str, Any]", value), Value()))]
    return [Part(text=value if isinstance(value, str) else json.dumps(value))]


def _read(exchange: Exchange) -> tuple[str, dict[str, Any] | None, list[types.Part]]:
    """The text of an answer, its data parts merged, and all that is shown of it."""
    data: dict[str, Any] | None = None
    shown: list[types.Part] = []
    for part in exchange.parts:
        if part.WhichOneof("content") != "data":
            made = convert_a2a_part_to_genai_part(part)
            shown += [each for each in _plain([made] if made else []) if not each.thought]
        elif _TYPE not in part.metadata:
            data = {**(data or {}), **plain(MessageToDict(part.data))}
    return "".join(part.text or "" for part in shown), data, shown


def _calls(exchange: Exchange) -> list[dict[str, Any]]:
    """ADK's calls that wait for a response over there."""
    marked = [part for part in exchange.parts if _TYPE in part.metadata]
    made = [convert_a2a_part_to_genai_part(part) for part in marked]
    return [
        {"id": call.id, "name": call.name, "args": plain(call.args or {})}
        for each in made
        if each and (call := each.function_call) and call.id and call.name
    ]


def _plain(parts: list[types.Part]) -> list[types.Part]:
    """The parts without calls of tools, which were made and answered over there."""
    return [part for part in parts if part.text or part.inline_data or part.file_data]


def _ids(exchange: Exchange) -> dict[str, Any]:
    """What is known of a task, for an event."""
    source = exchange.message if exchange.message is not None else exchange.task
    return {
        "task_id": "" if exchange.task is None else exchange.task.id,
        "context_id": "" if source is None else source.context_id,
        "state": TaskState.Name(exchange.state).removeprefix("TASK_STATE_").lower(),
    }


@RULES.rule(RemoteAgentNode)
def _remote(
    node: RemoteAgentNode, children: tuple[BaseAgent, ...], cx: CompileContext
) -> BaseAgent:
    return RemoteAgent(name=cx.name_of(node), description=node.description or "", node=node)
