"""Conversations as a model is told of them that writes a summary."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from google.adk.models.llm_request import LlmRequest
from google.genai import types

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def summary_request(
    request: LlmRequest, *, prompt: str, before: str, contents: Sequence[types.Content], limit: int
) -> LlmRequest:
    """What a model is asked for a summary.

    Args:
        request: The request that has grown too long.
        prompt: What it is told to do.
        before: The summary that this one goes on from; "" for none.
        contents: The conversation since.
        limit: Characters of one text; of a longer one the middle is left out.
    """
    given = request.config
    config = types.GenerateContentConfig(system_instruction=prompt)
    config.labels = None if given.labels is None else dict(given.labels)
    config.safety_settings = given.safety_settings
    if (http := given.http_options) is not None:  # models write headers of theirs into it
        config.http_options = http.model_copy(update={"headers": dict(http.headers or {})})
    parts = list(_joined(_told(before, contents, limit)))
    return LlmRequest(contents=[types.Content(role="user", parts=parts)], config=config)


def summary_content(text: str) -> types.Content:
    """A summary in the place of what it is of."""
    said = f"<summary of the conversation so far>\n{text}\n</summary>"
    return types.Content(role="user", parts=[types.Part(text=said)])


def _told(before: str, contents: Sequence[types.Content], limit: int) -> Iterator[str | types.Part]:
    if before:
        yield f"<summary>\n{before}\n</summary>"
    yield "<conversation>"
    for content in contents:
        for part in content.parts or ():
            yield from _told_of(part, content.role or "user", limit)
    yield "</conversation>"
    yield "Write the summary now."


def _told_of(part: types.Part, role: str, limit: int) -> Iterator[str | types.Part]:
    if part.thought and part.function_call is None:
        return
    if (call := part.function_call) is not None:
        yield _short(f"{role} calls {call.name}: {_json(call.args)}", limit)
    elif (result := part.function_response) is not None:
        yield _short(f"{result.name} returns: {_json(result.response)}", limit)
        for medium in result.parts or ():
            if (blob := medium.inline_data) is not None:
                data = types.Blob(data=blob.data, mime_type=blob.mime_type)
                yield types.Part(inline_data=data)
    elif part.inline_data is not None or part.file_data is not None:
        yield f"{role} gives:"
        yield types.Part(inline_data=part.inline_data, file_data=part.file_data)
    elif (code := part.executable_code) is not None:
        yield _short(f"{role} runs: {code.code}", limit)
    elif (ran := part.code_execution_result) is not None:
        yield _short(f"it prints: {ran.output}", limit)
    elif part.text:
        yield _short(f"{role}: {part.text}", limit)


def _short(text: str, limit: int) -> str:
    over = len(text) - limit
    if over <= 0:
        return text
    half = limit // 2
    return f"{text[:half]} [{over} characters left out] {text[len(text) - half :]}"


def _json(value: Any) -> str:
    return json.dumps(value or {}, ensure_ascii=False, default=str)


def _joined(told: Iterator[str | types.Part]) -> Iterator[types.Part]:
    """Texts that follow each other as one part."""
    texts: list[str] = []
    for each in told:
        if isinstance(each, str):
            texts.append(each)
            continue
        yield types.Part(text="\n\n".join(texts))
        texts = []
        yield each
    yield types.Part(text="\n\n".join(texts))
