"""Answers as bytes, and as answers again: ADK's LlmResponses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import BaseModel, ConfigDict

from adk_fluent.protocol import ModelReply, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: Where a response says that no model was called for it.
MARK: Final = "adk_fluent_cache"


class _Entry(BaseModel):
    """What is kept: plain JSON, since a file may have been written by anybody."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64", extra="forbid")

    format: Literal[1]
    key: str
    responses: list[LlmResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Which answers may be given again.

    Attributes:
        tool_calls: Those that call tools.
        grounded: Those that rest on a search.
        require_stop: Only those that say that they are complete.
    """

    tool_calls: bool
    grounded: bool
    require_stop: bool

    def allow(self, responses: Sequence[LlmResponse]) -> bool:
        """Whether a model would say this again, had it nothing but the request to go by."""
        finished = any(each.finish_reason == types.FinishReason.STOP for each in responses)
        said = [part for each in responses for part in _parts(each)]
        return (
            all(self._is_whole(each) for each in responses)
            and (finished or not self.require_stop)
            and any(_says_something(part) for part in said)
            and (self.tool_calls or not any(part.function_call for part in said))
        )

    def _is_whole(self, response: LlmResponse) -> bool:
        broken = (
            response.error_code
            or response.error_message
            or response.interrupted
            or response.partial
            or response.finish_reason not in (None, types.FinishReason.STOP)
        )
        # of the Interactions API: the service keeps the conversation, and has to be told of it
        elsewhere = response.interaction_id or getattr(response, "environment_id", None)
        return not (broken or elsewhere or (_is_grounded(response) and not self.grounded))


def encode(key: str, responses: Sequence[LlmResponse]) -> bytes:
    """Answers as bytes, for one key.

    Raises:
        ValueError: There is something in them that is no data.
    """
    entry = _Entry(format=1, key=key, responses=[_portable(each) for each in responses])
    # not `exclude_unset`: genai's ModelContent has a role that nobody has set
    made = entry.model_dump_json(exclude_none=True, warnings=False).encode()
    decode(key, made)  # what cannot be read must not be kept
    return made


def decode(key: str, kept: bytes) -> list[LlmResponse]:
    """The answers, made anew.

    Raises:
        ValueError: The bytes are no answers, or those of another key.
    """
    entry = _Entry.model_validate_json(kept)
    if entry.key != key:
        raise ValueError("of another key")
    return entry.responses


def used(responses: Sequence[LlmResponse]) -> Usage:
    """The tokens that a model took for them."""
    return Usage.last(Usage.from_genai(each.usage_metadata) for each in responses) or Usage()


def replayed(responses: Sequence[LlmResponse], result: str) -> ModelReply:
    """The answers as those of no model: they say so, and took no tokens."""
    for each in responses:
        each.usage_metadata = _nothing()
        each.custom_metadata = {**(each.custom_metadata or {}), MARK: result}
    return ModelReply(list(responses))


def _nothing() -> types.GenerateContentResponseUsageMetadata:
    """No tokens, said in so many words: ADK 2.x warns of an answer that says nothing about them.

    The prompt is left out. ADK takes its size from the last answer that tells it, for compaction.
    """
    return types.GenerateContentResponseUsageMetadata(candidates_token_count=0, total_token_count=0)


def fragments(responses: Sequence[LlmResponse]) -> Iterator[LlmResponse]:
    """What is streamed of an answer: its text, at once; calls come with the whole answer."""
    for each in responses:
        texts = [part.model_copy() for part in _parts(each) if part.text]
        if texts:
            content = types.Content(role="model", parts=texts)
            marked = {MARK: (each.custom_metadata or {}).get(MARK)}
            yield LlmResponse(content=content, partial=True, custom_metadata=marked)


def _portable(response: LlmResponse) -> LlmResponse:
    """A copy without what belongs to one conversation: ids of calls, and the provider's cache."""
    changes: dict[str, Any] = {"cache_metadata": None}
    if response.content is not None:
        parts = [_without_id(part) for part in _parts(response)]
        changes["content"] = response.content.model_copy(update={"parts": parts})
    return response.model_copy(update=changes)


def _without_id(part: types.Part) -> types.Part:
    if part.function_call is None:
        return part
    call = part.function_call.model_copy(update={"id": None})  # ADK gives each call a new one
    return part.model_copy(update={"function_call": call})


def _parts(response: LlmResponse) -> list[types.Part]:
    return (response.content and response.content.parts) or []


def _says_something(part: types.Part) -> bool:
    said = part.model_dump(exclude_none=True, exclude={"thought_signature"})
    return not part.thought and any(said.values())


def _is_grounded(response: LlmResponse) -> bool:
    grounds = response.grounding_metadata
    return grounds is not None and bool(grounds.model_dump(exclude_none=True))
