"""Random conversations: whatever is edited or summarised, Gemini takes what is left of them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_fluent.middleware import context_editing, summarization
from adk_fluent.middleware._context._history import cuts, pairs, turns
from adk_fluent.middleware._context._summaries import digest
from adk_fluent.protocol import ModelCall, ModelReply
from adk_fluent.testing import GeminiRequest
from adk_fluent.testing._gemini._checks import complaint

if TYPE_CHECKING:
    from collections.abc import Sequence

pytestmark = pytest.mark.adk
#: More examples with ``--full``.
FULL = settings.get_current_profile_name() == "full"

_TEXTS: Final = st.text("abc ", min_size=1, max_size=60)
_TOOLS: Final = st.sampled_from(["search", "weather"])


def said(role: str, *parts: Any) -> types.Content:
    """Parts as somebody's; texts as parts."""
    made = [types.Part(text=each) if isinstance(each, str) else each for each in parts]
    return types.Content(role=role, parts=made)


def parts_of(content: types.Content) -> list[Any]:
    assert content.parts
    return list(content.parts)


def request_of(contents: Sequence[types.Content]) -> LlmRequest:
    return LlmRequest(model="m", contents=list(contents), config=types.GenerateContentConfig())


def accepted(contents: Sequence[types.Content]) -> None:
    """Fail if Gemini would refuse a conversation, or if the user does not begin it."""
    plain = [each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in contents]
    request = GeminiRequest(0, "POST", "/", "m", "generateContent", {}, {"contents": plain})
    assert complaint(request) is None, plain
    assert contents[0].role == "user"
    assert not any(part.function_response for part in parts_of(contents[0]))


def unanswered(contents: Sequence[types.Content]) -> list[types.Content]:
    """What the model has not answered yet."""
    at = max((at for at, each in enumerate(contents) if each.role == "model"), default=-1)
    return list(contents[at + 1 :])


@st.composite
def exchanges(draw: Any) -> list[types.Content]:
    """Calls of tools, one or several at once, and their results; with or without ids."""
    many, with_ids = draw(st.integers(1, 3)), draw(st.booleans())
    calls: list[Any] = []
    results: list[Any] = []
    for _ in range(many):
        name, text = draw(_TOOLS), draw(_TEXTS)
        id = f"call-{draw(st.integers(0, 10**9))}" if with_ids else None
        signature = draw(st.sampled_from([None, b"signed"]))
        call = types.FunctionCall(name=name, args={"q": text}, id=id)
        calls.append(types.Part(function_call=call, thought_signature=signature))
        result = types.FunctionResponse(name=name, response={"result": text}, id=id)
        results.append(types.Part(function_response=result))
    order = draw(st.permutations(results)) if with_ids else results
    thought = draw(st.sampled_from([[], [types.Part(text="hm", thought=True)]]))
    return [said("model", *thought, *calls), said("user", *order)]


@st.composite
def whole_turns(draw: Any) -> list[types.Content]:
    """What the user says, and what the agent does about it, up to its answer."""
    image = types.Part(inline_data=types.Blob(data=b"png", mime_type="image/png"))
    asked = [said("user", draw(_TEXTS), *draw(st.sampled_from([[], [image]])))]
    if draw(st.booleans()):
        asked.append(said("user", "For context:", draw(_TEXTS)))
    done = draw(st.lists(exchanges(), max_size=3))
    thought = draw(st.sampled_from([[], [types.Part(text="hm", thought=True)]]))
    answer = said("model", *thought, draw(_TEXTS))
    return [*asked, *(each for pair in done for each in pair), answer]


@st.composite
def conversations(draw: Any) -> list[types.Content]:
    """Conversations that a model is asked to go on with: after a question, or after results."""
    before = draw(st.lists(whole_turns(), max_size=5))
    last = draw(whole_turns())
    ends = [at for at in range(1, len(last) + 1) if last[at - 1].role != "model"]
    made = [each for turn in before for each in turn] + last[: draw(st.sampled_from(ends))]
    accepted(made)
    return made


def plain(contents: Sequence[types.Content]) -> list[Any]:
    return [each.model_dump() for each in contents]


# --- edits ---------------------------------------------------------------------------------------

EDITS: Final = st.fixed_dictionaries(
    {
        "trigger_tokens": st.sampled_from([None, 0, 20, 100]),
        "keep": st.integers(0, 3),
        "clear_at_least": st.sampled_from([0, 10, 50]),
        "clear_inputs": st.booleans(),
        "placeholder": st.just("-"),
        "max_turns": st.one_of(st.none(), st.integers(1, 3)),
        "media_turns": st.one_of(st.none(), st.integers(1, 3)),
        "drop_thoughts": st.booleans(),
    }
)


async def edited(contents: Sequence[types.Content], **options: Any) -> list[types.Content]:
    sent: list[types.Content] = []

    async def model(call: ModelCall) -> ModelReply:
        sent.extend(call.request.contents)
        return ModelReply()

    call = ModelCall(request_of(contents), agent="a")
    await context_editing(**options).wrap_model_call(call, model)
    return sent


@settings(max_examples=120 if FULL else 12)
@given(contents=conversations(), options=EDITS)
def test_gemini_takes_every_edited_conversation(contents: Any, options: Any) -> None:
    before = plain(contents)
    sent = asyncio.run(edited(contents, **options))
    accepted(sent)
    assert plain(contents) == before
    last = unanswered(contents)
    assert all(one is other for one, other in zip(sent[-len(last) :], last, strict=True))


@settings(max_examples=50 if FULL else 10)
@given(contents=conversations(), trigger=st.sampled_from([0, 20, 100]), keep=st.integers(0, 3))
def test_what_is_cleared_once_stays_cleared(contents: Any, trigger: int, keep: int) -> None:
    """A longer conversation never brings a result back."""
    options: Any = {"trigger_tokens": trigger, "keep": keep, "clear_at_least": 5}
    cleared: set[tuple[int, int]] = set()
    asked = [at for at in range(1, len(contents)) if contents[at].role == "model"]
    for end in (*asked, len(contents)):
        sent = asyncio.run(edited(contents[:end], **options, placeholder="-"))
        now = {
            (at, number)
            for at, content in enumerate(sent)
            for number, part in enumerate(parts_of(content))
            if part is not contents[at].parts[number]
        }
        assert cleared <= now
        cleared = now


# --- summaries -----------------------------------------------------------------------------------

SUMMARIES: Final = st.fixed_dictionaries(
    {
        "trigger_tokens": st.integers(2, 120),
        "keep": st.integers(1, 8),
        "trigger_contents": st.one_of(st.none(), st.integers(9, 20)),
    }
)


class Summarised:
    """A conversation that goes on, with one state, and what the model was sent of it."""

    def __init__(self, inside: Any = None, **options: Any) -> None:
        self.middleware = summarization(**options)
        self.inside = inside
        self.state: dict[str, Any] = {}
        self.read: list[str] = []

    async def ask(self, contents: Sequence[types.Content]) -> list[types.Content]:
        sent: list[types.Content] = []

        async def model(call: ModelCall) -> ModelReply:
            accepted(call.request.contents)
            text = "".join(each.text or "" for each in call.request.contents[0].parts)
            if text.endswith("Write the summary now."):
                self.read.append(text)
                return ModelReply([LlmResponse(content=said("model", f"sum {len(self.read)}"))])
            sent.extend(call.request.contents)
            return ModelReply([LlmResponse(content=said("model", "ok"))])

        async def within(call: ModelCall) -> ModelReply:
            return await self.inside.wrap_model_call(call, model)

        ctx = SimpleNamespace(state=self.state, session=None)
        llm = SimpleNamespace(model="m")
        call = ModelCall(request_of(contents), ctx, llm, agent="a")
        await self.middleware.wrap_model_call(call, within if self.inside else model)
        return sent


@settings(max_examples=120 if FULL else 12)
@given(contents=conversations(), options=SUMMARIES)
def test_gemini_takes_every_summarised_conversation(contents: Any, options: Any) -> None:
    before = plain(contents)
    going_on = Summarised(**options)
    asked = [at for at in range(1, len(contents)) if contents[at].role == "model"]
    for end in (*asked, len(contents)):
        sent = asyncio.run(going_on.ask(contents[:end]))
        accepted(sent)
        last = unanswered(contents[:end])
        assert all(one is other for one, other in zip(sent[-len(last) :], last, strict=True))
        question = contents[turns(contents[:end])[-1].start]
        assert any(each is question for each in sent)
    assert plain(contents) == before


@settings(max_examples=50 if FULL else 10)
@given(contents=conversations())
def test_every_content_is_sent_or_read_by_who_summarises(contents: Any) -> None:
    going_on = Summarised(trigger_tokens=20, keep=2)
    sent = asyncio.run(going_on.ask(contents))
    told = "\n".join(going_on.read)
    for content in contents:
        if not any(each is content for each in sent):
            for part in parts_of(content):
                assert part.thought or (part.text or "") in told
                if part.function_response is not None:
                    assert part.function_response.response["result"] in told


@settings(max_examples=50 if FULL else 10)
@given(contents=conversations(), options=EDITS)
def test_edits_inside_leave_summaries_valid(contents: Any, options: Any) -> None:
    """Each summary goes on from the one before, whatever is cleared meanwhile."""
    going_on = Summarised(context_editing(**options), trigger_tokens=60, keep=4)
    asked = [at for at in range(1, len(contents)) if contents[at].role == "model"]
    for end in (*asked, len(contents)):
        accepted(asyncio.run(going_on.ask(contents[:end])))
    for number, text in enumerate(going_on.read[1:], 1):
        assert text.startswith(f"<summary>\nsum {number}\n</summary>")


# --- what both know of a conversation ------------------------------------------------------------


@settings(max_examples=50 if FULL else 10)
@given(contents=conversations())
def test_a_cut_parts_no_call_from_its_result(contents: Any) -> None:
    of_calls = [(call[0], result[0]) for call, result in pairs(contents)]
    assert len(of_calls) == sum(bool(p.function_call) for c in contents for p in c.parts)
    for at in cuts(contents):
        assert all((call < at) == (result < at) for call, result in of_calls)


@settings(max_examples=50 if FULL else 10)
@given(contents=conversations())
def test_a_stored_conversation_is_known_again(contents: Any) -> None:
    stored = [types.Content.model_validate_json(each.model_dump_json()) for each in contents]
    assert digest(stored) == digest(contents)
    assert digest(contents[1:]) != digest(contents)
