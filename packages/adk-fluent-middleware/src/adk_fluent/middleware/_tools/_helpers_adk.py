"""How a model is asked for help."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from google.adk.models.llm_request import LlmRequest
from google.genai import types

from adk_fluent.extend import request_model
from adk_fluent.middleware._spent import tell_spent
from adk_fluent.protocol import ModelCall

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm
    from pydantic import BaseModel

    from adk_fluent.protocol import ToolCall


async def ask(
    call: ModelCall | ToolCall,
    model: BaseLlm,
    system: str,
    text: str,
    schema: type[BaseModel] | None = None,
) -> str:
    """What a model says to a text.

    Args:
        call: The call for whose sake it is asked.
        model: The model; no middleware stands around this request, but those next to models.
        system: What it is told to do.
        text: What it is asked.
        schema: What it answers with, as JSON; None for any JSON.

    Raises:
        ValueError: It says nothing, or says that it cannot.
    """
    config = types.GenerateContentConfig(
        system_instruction=system, temperature=0.0, response_mime_type="application/json"
    )
    contents = [types.Content(role="user", parts=[types.Part(text=text)])]
    request = LlmRequest(model=model.model, contents=contents, config=config)
    if schema is not None:
        request.set_output_schema(schema)
    said = ""
    asked = ModelCall(request, call.ctx, model, call.agent, call.node, run=call.run, path=call.path)
    responses = (await request_model(asked)).responses
    tell_spent(request, responses)
    for response in responses:
        if response.error_code:
            raise ValueError(f"{response.error_code}: {response.error_message or ''}")
        parts = response.content.parts or () if response.content else ()
        said += "".join(part.text or "" for part in parts if not part.thought)
    if not said.strip():
        raise ValueError("it said nothing")
    return said


def loads(said: str) -> Any:
    """JSON as models write it: some put it in a fence.

    Raises:
        ValueError: It is none.
    """
    text = said.strip()
    if text.startswith("```"):
        text = text.partition("\n")[2].rpartition("```")[0]
    return json.loads(text)


def told(contents: list[types.Content], limit: int) -> str:
    """The end of a conversation as a text.

    Args:
        contents: The conversation.
        limit: Characters that it takes at most.
    """
    lines: list[str] = []
    left = limit
    for content in reversed(contents):
        for part in reversed(content.parts or ()):
            line = _line(content.role or "user", part)[:left]
            left -= len(line)
            if line:
                lines.append(line)
        if left <= 0:
            break
    return "\n".join(reversed(lines))


def _line(role: str, part: types.Part) -> str:
    if part.thought:
        return ""
    if part.function_call is not None:
        return f"{role} calls {part.function_call.name}: {_json(part.function_call.args)}"
    if part.function_response is not None:
        return f"{part.function_response.name} returns: {_json(part.function_response.response)}"
    return f"{role}: {part.text}" if part.text else ""


def _json(value: Any) -> str:
    return json.dumps(value or {}, ensure_ascii=False, default=str)
