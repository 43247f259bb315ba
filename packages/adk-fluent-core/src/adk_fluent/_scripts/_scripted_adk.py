"""A script as an ADK model. Importing this imports google.adk."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import errors, types
from pydantic import Field

from adk_fluent._scripts._live_adk import ScriptedConnection
from adk_fluent._scripts._replies import Answer, Asked, Call, Reply, Rule, Thought, Turn
from adk_fluent._scripts._script import Script
from adk_fluent._scripts._wire import agent_name, scripted_error, usage_body
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Sequence

    from google.adk.models.llm_request import LlmRequest

_Usage = types.GenerateContentResponseUsageMetadata


class ScriptedModel(BaseLlm):
    """A model that answers from a script, without a network, and records what it is asked.

    It behaves as ADK's Gemini does: streamed, a text comes as partial responses and then once more
    as a whole; errors of an HTTP status are genai's own. Copies share the script, its position and
    its record, so the model handed to an agent can be read after the run.

    Example:
        >>> model = ScriptedModel(rules=[rule("refund", reply="billing")], default="other")
        >>> agent = LlmAgent(name="classify", model=model)

    Args:
        *replies: Given one after the other, each once.
        rules: Tried first, in order.
        default: Given when nothing else is left.
        latency: Seconds before each reply that names none itself.
        model: The model's name.
        script: Follow this script instead of the arguments before.
    """

    script: Script = Field(exclude=True, repr=False)

    def __init__(
        self,
        *replies: Answer,
        rules: Sequence[Rule] = (),
        default: Answer | None = None,
        latency: float = 0.0,
        model: str = "scripted",
        script: Script | None = None,
    ) -> None:
        if script is None:
            script = Script(*replies, rules=rules, default=default, latency=latency)
        elif replies or rules or default is not None or latency:
            raise UsageError("a script brings its replies", help="give them to Script(...) instead")
        super().__init__(model=model, script=script)  # pyright: ignore[reportCallIssue]  # pydantic's own

    @property
    def calls(self) -> tuple[Asked, ...]:
        """What the script was asked so far, in order, also through other copies of this model."""
        return self.script.calls

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Answer one request from the script.

        Raises:
            ScriptExhaustedError: The script has no reply for it.
            Exception: Whatever the script raises.
        """
        reply = await self.script.answer(_asked(llm_request, stream))
        if reply.fault is not None:
            raise UsageError(
                f"a ScriptedModel has no connection for fault={reply.fault!r} to happen to",
                help="use GeminiEmulator; or reply(raises=ConnectionError('why'))",
            )
        if stream:
            for at, part in enumerate(_pieces(reply)):
                if at and reply.pause > 0:
                    await asyncio.sleep(reply.pause)
                yield _response([part], partial=True)
        error = _error(reply)
        if error is not None:
            raise error
        yield _whole(reply, stream)

    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncGenerator[ScriptedConnection, None]:
        """Open a live conversation, in which each turn of the user's takes one reply."""

        async def answers(said: list[types.Content]) -> AsyncGenerator[LlmResponse, None]:
            request = llm_request.model_copy(update={"contents": said})
            calls = False
            async with aclosing(self.generate_content_async(request, stream=True)) as responses:
                async for response in responses:
                    parts = (response.content and response.content.parts) or ()
                    calls = calls or any(part.function_call for part in parts)
                    yield response
            if not calls:  # else it waits for their results
                yield LlmResponse(turn_complete=True)

        connection = ScriptedConnection(answers)
        try:
            yield connection
        finally:
            await connection.close()


def _asked(request: LlmRequest, stream: bool) -> Asked:
    config = request.config
    system = _text(cast("Any", config).system_instruction)  # genai's type knows PIL, we do not
    agent = (config.labels or {}).get("adk_agent_name") or agent_name(system)
    config = config.model_copy()
    # the flow goes on to change these lists; what they hold was copied for this very request
    raw = request.model_copy(update={"contents": list(request.contents), "config": config})
    turns = [Turn(content.role or "user", _text(content)) for content in request.contents]
    return Asked(
        turns=tuple(turns),
        system=system,
        agent=agent,
        tools=tuple(_declared(config)),
        stream=stream,
        model=request.model,
        config=config,
        raw=raw,
    )


def _declared(config: types.GenerateContentConfig) -> Iterator[str]:
    """The names of the tools that a model is offered."""
    for tool in config.tools or ():
        if isinstance(tool, types.Tool):
            yield from (each.name or "" for each in tool.function_declarations or ())


def _text(content: Any) -> str:
    """A content, or what genai takes in its place, as plain text."""
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list):
        return "\n".join(_text(each) for each in content)  # pyright: ignore[reportUnknownVariableType]  # of Any
    if isinstance(content, types.Content):
        return "\n".join(text for text in map(_part_text, content.parts or ()) if text)
    return _part_text(content) if isinstance(content, types.Part) else str(content)


def _part_text(part: types.Part) -> str:
    if part.text is not None:
        return "" if part.thought else part.text
    if (call := part.function_call) is not None:
        return f"[call {call.name} {_json(call.args)}]"
    if (result := part.function_response) is not None:
        return f"[result {result.name} {_json(result.response)}]"
    if (blob := part.inline_data) is not None:
        return f"[{blob.mime_type} {len(blob.data or b'')} bytes]"
    if (file := part.file_data) is not None:
        return f"[{file.mime_type} {file.file_uri}]"
    named = part.model_dump(exclude_none=True)
    return f"[{' '.join(named)}]"


def _json(value: Any) -> str:
    return json.dumps(value or {}, default=str, ensure_ascii=False)


def _part(part: Any) -> types.Part:
    match part:
        case str():
            return types.Part(text=part)
        case Thought(text=text):
            return types.Part(text=text, thought=True)
        case Call(name=name, args=args, id=id):
            return types.Part(function_call=types.FunctionCall(name=name, args=dict(args), id=id))
        case types.Part():
            return part.model_copy(deep=True)  # ADK writes call ids into what it gets
        case _:
            raise UsageError(
                f"a scripted reply cannot hold a {type(part).__name__}",
                help="give a text, Thought, Call, a genai Part, or an LlmResponse of its own",
            )


def _pieces(reply: Reply) -> list[types.Part]:
    """What is streamed before the whole.

    Calls are not: without progressive streaming, ADK would run them twice.
    """
    parts = [*reply.chunks, *(reply.parts[1:] if reply.chunks else reply.parts)]
    return [_part(part) for part in parts if isinstance(part, (str, Thought)) and part]


def _whole(reply: Reply, stream: bool) -> LlmResponse:
    if len(reply.parts) == 1 and isinstance(reply.parts[0], LlmResponse):
        return reply.parts[0].model_copy(deep=True)
    usage = None if reply.usage is None else _Usage.model_validate(usage_body(reply.usage))
    if reply.error_code is not None:
        return LlmResponse(
            error_code=reply.error_code, error_message=reply.error_message, usage_metadata=usage
        )
    reason = types.FinishReason(reply.finish_reason)
    ended_well = reason is types.FinishReason.STOP
    if not (reply.parts or ended_well):
        return LlmResponse(error_code=reason, finish_reason=reason, usage_metadata=usage)
    response = _response([_part(part) for part in reply.parts], partial=False if stream else None)
    response.finish_reason, response.usage_metadata = reason, usage
    if stream and not ended_well:  # so does ADK's Gemini, streamed and only then
        response.error_code = reason
    return response


def _response(parts: list[types.Part], *, partial: bool | None) -> LlmResponse:
    return LlmResponse(content=types.Content(role="model", parts=parts), partial=partial)


def _error(reply: Reply) -> Exception | None:
    if reply.raises is not None:
        return reply.raises.with_traceback(None)  # one instance may be raised many times
    if reply.status is None:
        return None
    kind = errors.ServerError if reply.status >= 500 else errors.ClientError
    return kind(reply.status, scripted_error(reply, reply.status))
