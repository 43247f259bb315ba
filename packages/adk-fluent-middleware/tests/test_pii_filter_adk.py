"""Personal data around agents, over ADK's own Gemini and real HTTP, and on scripted models."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from google.genai import types
from kit import SSE, TWO_TOOLS, clerk, run_program, until
from pydantic import BaseModel

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import UsageError
from adk_fluent.middleware import PersonalDataError, PIIFilterMiddleware, pii_filter, retry
from adk_fluent.middleware._pii import Finding
from adk_fluent.protocol import Middleware, ModelReply
from adk_fluent.testing import Call, GeminiEmulator, ScriptedModel, Thought, reply, rule

if TYPE_CHECKING:
    from pathlib import Path

    from kit import Measured

    from adk_fluent.protocol import ModelCall, NextModel, NextTool, ToolCall

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]

ANN = "ann@example.com"
BOB = "bob@example.com"
CARD = "4111 1111 1111 1111"
KEY = b"a key for tests only"


def placeholders(**options: Any) -> PIIFilterMiddleware:
    return pii_filter(strategy="placeholder", key=KEY, **options)


def everything(result: Any) -> str:
    """All that a run has said, written and stored."""
    return json.dumps([each.to_dict() for each in result], default=str) + repr(
        [each.raw for each in result]
    )


def fragments(result: Any) -> list[str]:
    return [each.content for each in result if each.is_partial and each.content]


async def watch(pipeline: Any, shown: list[str | None], config: ExecutionConfig) -> None:
    """Take down what a user is shown, also of a run that fails."""
    async for event in pipeline.stream("hi", config=config):
        shown.append(event.content)  # noqa: PERF401  # what came before an error counts


class Kept:
    """A session, and all that is stored of it."""

    def __init__(self) -> None:
        from google.adk.sessions.in_memory_session_service import InMemorySessionService

        self.service: Any = InMemorySessionService()

    async def run(self, pipeline: Any, *messages: str) -> Any:
        result: Any = None
        for message in messages:
            result = await pipeline.run(
                message, session_id="s", user_id="u", session_service=self.service
            )
        return result

    def __str__(self) -> str:
        return repr(self.service.sessions)


def returned(result: Any) -> dict[str, Any]:
    return {each.tool_name: each.result for event in result for each in event.tool_responses}


# --- what every middleware here is tried in ------------------------------------------------------


async def test_happy(metrics: Measured) -> None:
    """Neither the model nor the user is shown an address; what is stored has none, either."""
    with GeminiEmulator(f"I wrote to {BOB}.") as gemini:
        agent = Agent("clerk", gemini.model()).instruct(f"You work for {BOB}.")
        pipeline = agent.middleware(pii_filter())
        result = await pipeline.run(f"Write to {ANN}")
        (request,) = gemini.requests
    assert result.text == "I wrote to [EMAIL]."
    assert "Write to [EMAIL]" in request.prompt
    assert "You work for [EMAIL]." in request.system
    assert "example.com" not in json.dumps(request.body) + everything(result)
    assert metrics("adk_fluent.pii.findings", adk_fluent__pii__kind="email") == 3


@pytest.mark.parametrize("size", [1, 2, 5, 100])
async def test_streamed(size: int) -> None:
    """An address in many pieces is never shown, what is before it at once, and all in order."""
    whole = f"Write to {ANN} or call +49 30 901820. Bye"
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    with GeminiEmulator(reply(chunks=pieces)) as gemini:
        result = await clerk(gemini, pii_filter()).run("hi", config=SSE)
    assert result.text == "Write to [EMAIL] or call [PHONE]. Bye"
    assert "".join(fragments(result)) == result.text
    assert len(fragments(result)) >= min(5, len(pieces))
    assert "example" not in everything(result)
    assert "901820" not in everything(result)


async def test_parallel_tools() -> None:
    """Arguments and results, of several tools at once, by value and with their types."""
    seen: list[Any] = []

    async def search(
        word: str, tags: list[str], limit: int, deep: dict[str, Any]
    ) -> dict[str, Any]:
        await asyncio.sleep(0)
        seen.append((word, tags, limit, deep))
        return {"found": [f"{word} at {BOB}"], "count": 2, "raw": {"ok": True, "none": None}}

    async def weather(city: str) -> str:
        seen.append(city)
        return f"sun for {BOB}"

    args: dict[str, Any] = {"word": ANN, "tags": ["a", ANN], "limit": 3, "deep": {"to": [ANN, 1.5]}}
    model = ScriptedModel(reply(Call("search", args), Call("weather", {"city": ANN})), "done")
    pipeline = Agent("a", model).tool(search).tool(weather).middleware(pii_filter())
    result = await pipeline.run("hi")
    assert len(seen) == 2
    assert "[EMAIL]" in seen
    assert ("[EMAIL]", ["a", "[EMAIL]"], 3, {"to": ["[EMAIL]", 1.5]}) in seen
    assert returned(result) == {
        "search": {"found": ["[EMAIL] at [EMAIL]"], "count": 2, "raw": {"ok": True, "none": None}},
        "weather": {"result": "sun for [EMAIL]"},
    }
    calls = {each.tool_name: each for event in result for each in event.tool_calls}
    assert calls["search"].args["limit"] == 3
    ids = {each.tool_name: each.call_id for event in result for each in event.tool_responses}
    assert {name: each.call_id for name, each in calls.items()} == ids
    assert "example" not in everything(result) + repr(model.calls)


async def test_cancelled() -> None:
    """Nothing that was held back comes out when somebody cancels."""
    shown: list[str] = []

    class Notes:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            emit = call.sink.forward

            async def noted(response: Any) -> None:
                shown.append(response.content.parts[0].text)
                if emit is not None:
                    await emit(response)

            call.sink.forward = noted
            return await next(call)

    model = ScriptedModel(reply(chunks=["To ann@exa", "mple.com"], pause=60))
    pipeline = Agent("a", model).middleware(Notes()).middleware(pii_filter())
    running = asyncio.ensure_future(pipeline.run("hi", config=SSE))
    await until(lambda: bool(shown))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert shown == ["To "]


async def test_error_after_the_first_partial() -> None:
    """What was held back of an answer that breaks is not shown; the error is the model's."""
    chunks = ["Write to ", "ann@exam", "ple.c"]
    shown: list[str | None] = []
    model = ScriptedModel(reply(chunks=chunks, raises=ConnectionError("reset")), "again")
    pipeline = Agent("a", model).middleware(retry(backoff_base=0.0)).middleware(pii_filter())
    with pytest.raises(ConnectionError, match="reset"):
        await watch(pipeline, shown, SSE)
    assert "".join(each or "" for each in shown) == "Write to "
    assert len(model.calls) == 1


async def test_concurrent() -> None:
    """Runs share no placeholders: what one of them has, another cannot bring back."""
    shared = placeholders()
    ours = next(iter((await _tags(shared, ANN)).split()))
    models = [ScriptedModel(lambda asked: f"{asked.prompt.split()[-1]} {ours}") for _ in range(8)]

    async def one(n: int) -> str:
        result = await Agent("a", models[n]).middleware(shared).run(f"I am u{n}@example.com")
        return result.text

    texts = await asyncio.gather(*(one(n) for n in range(8)))
    assert texts == [f"u{n}@example.com {ours}" for n in range(8)]
    asked = {model.calls[0].prompt for model in models}
    assert len(asked) == 8
    assert all(each.startswith("I am <EMAIL_") for each in asked)


async def _tags(middleware: PIIFilterMiddleware, text: str) -> str:
    """What a model is given for a text."""
    model = ScriptedModel("ok")
    await Agent("a", model).middleware(middleware).run(text)
    return model.calls[0].prompt


async def test_what_is_found_again_in_a_run_counts_once(metrics: Measured) -> None:
    model = ScriptedModel(Call("search", {"word": "x"}), "done")

    def search(word: str) -> str:
        """Look something up."""
        return word

    pipeline = Agent("a", model).instruct(f"You are {BOB}").tool(search).middleware(pii_filter())
    await pipeline.run("hi")
    assert len(model.calls) == 2
    assert metrics("adk_fluent.pii.findings") == 1


# --- placeholders --------------------------------------------------------------------------------


async def test_models_see_placeholders_and_tools_and_users_do_not() -> None:
    sent: list[tuple[str, str]] = []

    def send(to: str, text: str) -> str:
        """Send a mail."""
        sent.append((to, text))
        return f"sent to {to}, copy to {BOB}"

    def call(asked: Any) -> Any:
        tag = asked.prompt.split()[-1]
        return Call("send", {"to": tag, "text": f"Hello {tag}!"})

    def answer(asked: Any) -> str:
        return asked.prompt

    model = ScriptedModel(call, answer)
    pipeline = Agent("a", model).tool(send).writes("said").middleware(placeholders())
    result = await pipeline.run(f"Write to {ANN}")
    assert sent == [(ANN, f"Hello {ANN}!")]
    assert ANN in result.text
    assert BOB in result.text
    assert result.state["said"] == result.text
    (called,) = [each for event in result for each in event.tool_calls]
    assert called.args == {"to": ANN, "text": f"Hello {ANN}!"}
    assert "EMAIL_" not in everything(result)
    assert "example" not in repr([(each.prompt, each.turns, each.system) for each in model.calls])


@pytest.mark.parametrize("size", [1, 3, 7, 100])
async def test_placeholders_in_pieces_are_restored(size: int) -> None:
    def say(asked: Any) -> Any:
        text = f"To {asked.prompt.split()[-1]}, and <b>that</b> EMAIL_x <EMAIL_00000000> is it"
        return reply(chunks=[text[at : at + size] for at in range(0, len(text), size)])

    with GeminiEmulator(rules=[rule("Write", reply=say)]) as gemini:
        result = await clerk(gemini, placeholders()).run(f"Write to {ANN}", config=SSE)
    assert result.text == f"To {ANN}, and <b>that</b> EMAIL_x <EMAIL_00000000> is it"
    assert "".join(fragments(result)) == result.text


async def test_the_next_run_of_a_session_has_the_same() -> None:
    prompts: list[str] = []

    def note(asked: Any) -> str:
        prompts.append(repr(asked.turns))
        return f"noted {asked.prompt.split()[-1]}"

    pipeline = Agent("a", ScriptedModel(default=note)).middleware(placeholders())
    kept = Kept()
    await kept.run(pipeline, f"I am {ANN}", f"Again {ANN}")
    assert "EMAIL_" not in str(kept)
    assert str(kept).count(ANN) >= 4
    assert "example" not in "".join(prompts)
    (tag,) = {
        word.strip("<>'\"),.") for each in prompts for word in each.split() if "EMAIL_" in word
    }
    assert tag.startswith("EMAIL_")


async def test_tools_may_be_left_with_placeholders() -> None:
    given: list[str] = []

    def foreign(to: str) -> str:
        """Somebody else's."""
        given.append(to)
        return "ok"

    def own(to: str) -> str:
        """Ours."""
        given.append(to)
        return "ok"

    def call(asked: Any) -> Any:
        tag = asked.prompt.split()[-1]
        return reply(Call("foreign", {"to": tag}), Call("own", {"to": tag}))

    pipeline = Agent("a", ScriptedModel(call, "done")).tool(foreign).tool(own)
    await pipeline.middleware(placeholders(tools=["own"])).run(f"Write to {ANN}")
    (tag,) = set(given) - {ANN}
    assert tag.startswith("<EMAIL_")
    assert ANN in given


# --- blocking ------------------------------------------------------------------------------------


async def test_a_message_that_is_blocked_reaches_nobody(caplog: pytest.LogCaptureFixture) -> None:
    model = ScriptedModel(default="hi")
    pipeline = Agent("a", model).middleware(pii_filter(strategy={"email": "block"}))
    kept = Kept()
    with caplog.at_level(logging.DEBUG, "adk_fluent"), pytest.raises(PersonalDataError) as caught:
        await kept.run(pipeline, f"I am {ANN}")
    assert caught.value.kinds == ("email",)
    assert not model.calls
    assert "example" not in f"{caught.value!r} {caught.value}" + caplog.text
    assert "I am [EMAIL]" in str(kept)
    assert "example" not in str(kept)


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_answer_that_is_blocked_is_not_shown(streamed: bool) -> None:
    model = ScriptedModel(reply(chunks=["Write ", f"to {ANN[:5]}", f"{ANN[5:]} now"]))
    pipeline = Agent("a", model).middleware(pii_filter(strategy="block"))
    shown: list[str | None] = []
    with pytest.raises(PersonalDataError):
        await watch(pipeline, shown, SSE if streamed else ExecutionConfig())
    assert "example" not in repr(shown)
    assert bool(shown) == streamed


async def test_a_tool_whose_arguments_are_blocked_is_not_called() -> None:
    called: list[str] = []

    def send(to: str) -> str:
        """Send."""
        called.append(to)
        return "sent"

    model = ScriptedModel(Call("send", {"to": ANN}), "done")
    pipeline = Agent("a", model).tool(send).middleware(pii_filter(strategy="block"))
    with pytest.raises(PersonalDataError):
        await pipeline.run("hi")
    assert not called


# --- what it keeps -------------------------------------------------------------------------------


async def test_media_identities_and_signatures_stay() -> None:
    picture = types.Part(inline_data=types.Blob(data=ANN.encode(), mime_type="image/png"))
    thought = types.Part(text=f"about {ANN}", thought=True, thought_signature=b"signed")
    requests: list[Any] = []

    class Notes:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            requests.append(call.request)
            return await next(call)

    model = ScriptedModel(reply(thought, Call("search", {"word": ANN})), "done")
    message = types.Content(role="user", parts=[types.Part(text=f"This is {ANN}"), picture])

    def search(word: str) -> str:
        """Look something up."""
        return word

    pipeline = Agent("a", model).tool(search).middleware(pii_filter()).middleware(Notes())
    result = await pipeline.run(message)
    sent = requests[-1].contents[0].parts
    assert sent[0].text == "This is [EMAIL]"
    assert sent[1].inline_data == picture.inline_data
    parts = [part for each in result for part in each.raw.content.parts if each.raw.content]
    (kept,) = [part for part in parts if part.thought]
    assert (kept.text, kept.thought_signature) == ("about [EMAIL]", b"signed")
    assert message.parts is not None
    assert message.parts[0].text == f"This is {ANN}"  # the caller's own is not changed


def _files(model: ScriptedModel) -> list[Any]:
    return [
        part
        for content in model.calls[0].raw.contents
        for part in content.parts
        if part.inline_data or part.file_data
    ]


async def test_files_that_are_text_are_filtered() -> None:
    files = [
        types.Blob(data=f"name,mail\nann,{ANN}".encode(), mime_type="text/csv; charset=utf-8"),
        types.Blob(data=json.dumps({"to": [ANN], "n": 1}).encode(), mime_type="application/json"),
        types.Blob(data=b"nothing here", mime_type="text/plain", display_name=f"{ANN}.txt"),
        types.Blob(data=f"\xff {ANN}".encode("latin-1"), mime_type="text/plain"),
        types.Blob(data=ANN.encode(), mime_type="application/pdf"),
    ]
    uri = types.FileData(file_uri=f"https://x.io/u?mail={ANN}", mime_type="text/plain")
    parts = [types.Part(text="see"), *(types.Part(inline_data=each) for each in files)]
    message = types.Content(role="user", parts=[*parts, types.Part(file_data=uri)])
    before = message.model_copy(deep=True)
    for stored in (True, False):
        model = ScriptedModel("ok")
        await Agent("a", model).middleware(pii_filter(stored=stored)).run(message)
        sent = _files(model)
        assert sent[0].inline_data.data == b"name,mail\nann,[EMAIL]"
        assert sent[0].inline_data.mime_type == files[0].mime_type
        assert json.loads(sent[1].inline_data.data) == {"to": ["[EMAIL]"], "n": 1}
        assert sent[2].inline_data.data == b"nothing here"
        assert sent[2].inline_data.display_name == "[EMAIL]"
        assert [each.inline_data for each in sent[3:5]] == files[3:]
        assert sent[5].file_data.file_uri == "https://x.io/u?mail=[EMAIL]"
        assert message == before  # the caller's own is not changed


async def test_files_that_tools_return_are_filtered() -> None:
    from adk_fluent.middleware._pii._content_adk import filtered

    csv = types.FunctionResponseBlob(data=ANN.encode(), mime_type="text/csv")
    part = types.FunctionResponsePart(inline_data=csv)
    answer = types.FunctionResponse(name="read", response={"n": 1}, parts=[part])
    content = types.Content(role="user", parts=[types.Part(function_response=answer)])
    made: Any = await filtered(content, pii_filter()._filter.inbound())
    assert made.parts[0].function_response.parts[0].inline_data.data == b"[EMAIL]"
    assert csv.data == ANN.encode()


async def test_a_file_with_what_is_blocked_reaches_nobody() -> None:
    file = types.Part.from_bytes(data=ANN.encode(), mime_type="text/plain")
    model = ScriptedModel("ok")
    pipeline = Agent("a", model).middleware(pii_filter(strategy="block"))
    with pytest.raises(PersonalDataError):
        await pipeline.run(types.Content(role="user", parts=[file]))
    assert not model.calls


async def test_files_have_placeholders_for_models() -> None:
    file = types.Part.from_bytes(data=ANN.encode(), mime_type="text/plain")
    model = ScriptedModel(lambda asked: _files(model)[0].inline_data.data.decode())
    result = (
        await Agent("a", model)
        .middleware(placeholders())
        .run(types.Content(role="user", parts=[file]))
    )
    assert b"<EMAIL_" in _files(model)[0].inline_data.data
    assert result.text == ANN


async def test_thoughts_and_answers_are_streams_of_their_own() -> None:
    pieces = (Thought("Is it ann@exa"), Thought("mple.com ? "), "It is ann@exa", "mple.com")
    with GeminiEmulator(reply(*pieces)) as gemini:
        result = await clerk(gemini, pii_filter()).run("hi", config=SSE)
    assert "example" not in everything(result)
    assert result.text == "It is [EMAIL]"


async def test_what_is_held_back_comes_before_what_follows_it() -> None:
    from google.adk.models.llm_response import LlmResponse

    from adk_fluent.middleware._pii._content_adk import Parts
    from adk_fluent.middleware._pii._filter import Detectors, Filter

    parts = Parts(Filter(Detectors(("email",), {}, ()), {}, "redact", KEY).outbound())
    given = [
        types.Part(text="Hm, so", thought=True),
        types.Part(text="Yes, ann@exa"),
        types.Part(text="mple.com"),
        types.Part(function_call=types.FunctionCall(name="x", args={"to": ANN})),
        types.Part(text="do"),
        types.Part(text="ne"),
    ]
    shown: list[list[Any]] = []
    for each in given:
        content = types.Content(role="model", parts=[each])
        made = await parts.fragment(LlmResponse(content=content, partial=True))
        shown.append(_said(made))
    shown.append(_said(await parts.end()))
    assert shown == [
        [("Hm, ", True)],
        [("so", True), ("Yes, ", False)],
        [],
        [("[EMAIL]", False), {"to": "[EMAIL]"}],
        [],
        [],
        [("done", False)],
    ]


def _said(response: Any) -> list[Any]:
    return [
        each.function_call.args if each.text is None else (each.text, bool(each.thought))
        for each in (response.content.parts if response is not None else ())
    ]


class Customer(BaseModel):
    name: str
    mail: str
    notes: list[str]
    age: int


@pytest.mark.parametrize("strategy", ["redact", "mask", "hash", "placeholder"])
@pytest.mark.parametrize("streamed", [False, True])
async def test_answers_of_a_schema_stay_valid(strategy: Any, streamed: bool) -> None:
    value = {"name": 'A "B"', "mail": ANN, "notes": [f"x\n{ANN}\\", CARD], "age": 41}
    text = json.dumps(value, indent=1)
    chunks = [text[at : at + 3] for at in range(0, len(text), 3)]
    with GeminiEmulator(reply(chunks=chunks) if streamed else text) as gemini:
        pipeline = Agent("a", gemini.model()).output_schema(Customer).writes("customer")
        pipeline = pipeline.middleware(pii_filter(strategy=strategy, key=KEY))
        result = await pipeline.run(f"I am {ANN}", config=SSE if streamed else ExecutionConfig())
    customer = result.state["customer"]
    assert customer["name"] == 'A "B"'
    assert customer["age"] == 41
    assert (ANN in repr(customer)) == (strategy == "placeholder")
    assert json.loads(result.text) == customer
    if streamed:
        assert json.loads("".join(fragments(result))) == customer


async def test_arguments_that_come_in_pieces() -> None:
    """Gemini can stream arguments; each of them is a text of its own."""
    from adk_fluent.middleware._pii._content_adk import Parts
    from adk_fluent.middleware._pii._filter import Detectors, Filter

    def piece(path: str, text: str, *, more: bool, call_more: bool, name: str | None = None) -> Any:
        arg = types.PartialArg(json_path=path, string_value=text, will_continue=more)
        call = types.FunctionCall(name=name, partial_args=[arg], will_continue=call_more)
        content = types.Content(role="model", parts=[types.Part(function_call=call)])
        return response(content)

    def response(content: Any) -> Any:
        from google.adk.models.llm_response import LlmResponse

        return LlmResponse(content=content, partial=True)

    change = Filter(Detectors(("email",), {}, ()), {}, "redact", KEY).outbound()
    parts = Parts(change)
    made = [
        await parts.fragment(
            piece("$.to", "write ann@exa", more=True, call_more=True, name="send")
        ),
        await parts.fragment(piece("$.to", "mple.com x", more=True, call_more=True)),
        await parts.fragment(piece("$.cc", "bob@example.com", more=False, call_more=True)),
        await parts.fragment(piece("$.to", "yz", more=True, call_more=False)),
    ]
    told: dict[str, str] = {}
    shown: list[Any] = made
    for each in shown:
        for arg in each.content.parts[0].function_call.partial_args:
            told[arg.json_path] = told.get(arg.json_path, "") + (arg.string_value or "")
    assert told == {"$.to": "write [EMAIL] xyz", "$.cc": "[EMAIL]"}
    assert "exa" not in repr(made)
    alone = Parts(change, tools=lambda name: name != "send")
    first = piece("$.to", "to bob@exa", more=True, call_more=True, name="send")
    assert await alone.fragment(first) == first


# --- which way past it there is ------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["redact", "placeholder"])
@pytest.mark.parametrize("is_inside", [True, False])
async def test_calls_that_another_middleware_makes_are_filtered(
    strategy: Any, is_inside: bool
) -> None:
    """Such as one that has a model summarise the conversation, and goes on with what it wrote."""

    class Summary:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            said = [part.text for each in call.request.contents for part in each.parts]
            asked = call.request.model_copy(update={"contents": [content(f"Sum up: {said}")]})
            summary = (await next(replace(call, request=asked))).final.content.parts[0].text
            call.request.contents = [content(f"So far: {summary}")]
            return await next(call)

    def content(text: str) -> types.Content:
        return types.Content(role="user", parts=[types.Part(text=text)])

    model = ScriptedModel(
        rules=[rule("Sum up", reply=lambda asked: asked.prompt.removeprefix("Sum up: "))],
        default=lambda asked: f"{asked.prompt}. Or ask {BOB}",
    )
    filter, pipeline = pii_filter(strategy=strategy), Agent("a", model)
    members: list[Any] = [filter, Summary()] if is_inside else [Summary(), filter]
    for each in members:
        pipeline = pipeline.middleware(each)
    result = await pipeline.run(f"I am {ANN}")
    assert len(model.calls) == 2
    assert "example" not in repr([(each.prompt, each.turns) for each in model.calls])
    shown = f"So far: ['I am {ANN}']. Or ask {BOB}"
    hidden = "So far: ['I am [EMAIL]']. Or ask [EMAIL]"
    assert result.text == (shown if strategy == "placeholder" else hidden)


async def test_code_that_models_run_and_errors_that_they_report_are_filtered() -> None:
    code = types.Part(
        executable_code=types.ExecutableCode(code=f"send('{ANN}')", language=types.Language.PYTHON)
    )
    output = types.Part(
        code_execution_result=types.CodeExecutionResult(
            outcome=types.Outcome.OUTCOME_OK, output=f"sent to {ANN}"
        )
    )
    result = (
        await Agent("a", ScriptedModel(reply(code, output, "ok")))
        .middleware(pii_filter())
        .run("hi")
    )
    assert "example" not in everything(result)
    assert "sent to [EMAIL]" in everything(result)
    failed = ScriptedModel(reply(error_code="SAFETY", error_message=f"because of {ANN}"))
    result = await Agent("a", failed).middleware(pii_filter()).run("hi")
    assert [each.message for each in result.errors] == ["because of [EMAIL]"]


@pytest.mark.parametrize("as_parts", [True, False])
async def test_instructions_of_every_form_are_filtered(as_parts: bool) -> None:
    part = types.Part(text=f"You are {BOB}")
    system: Any = ["Hello", part] if as_parts else types.Content(role="user", parts=[part])
    seen: list[Any] = []

    class Sets:
        async def before_model(self, ctx: Any, request: Any) -> None:
            request.config.system_instruction = system

    class Sees:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            seen.append(call.request.config.system_instruction)
            call.request.config.system_instruction = "x"
            return await next(call)

    pipeline = Agent("a", ScriptedModel("ok"))
    await pipeline.middleware(Sets()).middleware(pii_filter()).middleware(Sees()).run("hi")
    assert "You are [EMAIL]" in repr(seen)
    assert "example" not in repr(seen)
    assert part.text == f"You are {BOB}"


async def test_texts_that_follow_each_other_are_one() -> None:
    parts = [types.Part(text=each) for each in ("to ann@exa", "mple.com", " now")]
    result = await Agent("a", ScriptedModel(reply(*parts))).middleware(pii_filter()).run("hi")
    assert result.text == "to [EMAIL] now"


async def test_arguments_that_hooks_put_in_are_filtered() -> None:
    class Fills:
        async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> None:
            args["word"] = ANN

    words: list[str] = []

    def search(word: str) -> str:
        """Look something up."""
        words.append(word)
        return "ok"

    model = ScriptedModel(Call("search", {"word": "x"}), "done")
    pipeline = Agent("a", model).tool(search).middleware(pii_filter()).middleware(Fills())
    await pipeline.run("hi")
    assert words == ["[EMAIL]"]


async def test_those_outside_see_what_the_user_sees() -> None:
    seen: list[Any] = []

    class Log:
        async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
            reply = await next(call)
            seen.append((repr(call.request.contents), reply.final.content))
            return reply

        async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
            result = await next(call)
            seen.append((call.args, result))
            return result

    def search(word: str) -> str:
        """Look something up."""
        return f"{word} {BOB}"

    model = ScriptedModel(Call("search", {"word": ANN}), f"it is {BOB}")
    pipeline = Agent("a", model).tool(search).middleware(Log()).middleware(pii_filter())
    await pipeline.run(f"I am {ANN}")
    assert len(seen) == 3
    assert "example" not in repr(seen)


async def test_what_hooks_answer_instead_of_models_and_tools_is_filtered() -> None:
    class Answers:
        async def before_model(self, ctx: Any, request: Any) -> Any:
            from google.adk.models.llm_response import LlmResponse

            if not model.calls:
                return None
            part = types.Part(text=f"ask {BOB}")
            return LlmResponse(content=types.Content(role="model", parts=[part]))

        async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> Any:
            return {"found": BOB}

    def search(word: str) -> str:
        """Look something up."""
        return word

    model = ScriptedModel(Call("search", {"word": "x"}))
    pipeline = Agent("a", model).tool(search).middleware(pii_filter()).middleware(Answers())
    result = await pipeline.run("hi")
    assert result.text == "ask [EMAIL]"
    assert returned(result) == {"search": {"found": "[EMAIL]"}}


async def test_history_that_is_there_already_is_filtered_for_models() -> None:
    """Of a session that was begun without it, with calls and results of tools."""

    def search(word: str) -> dict[str, str]:
        """Look something up."""
        return {"found": BOB}

    kept = Kept()
    model = ScriptedModel(Call("search", {"word": ANN}), f"it is {BOB}", "hello")
    plain = Agent("a", model).tool(search)
    await kept.run(plain, f"I am {ANN}")
    with GeminiEmulator("hello") as gemini:
        again = Agent("a", gemini.model()).tool(search).middleware(pii_filter())
        await kept.run(again, "hi")
        (request,) = gemini.requests
    assert "example" not in json.dumps(request.body)
    assert json.dumps(request.body).count("[EMAIL]") == 4


async def test_what_an_agent_writes_to_state_is_filtered() -> None:
    with GeminiEmulator(f"it is {BOB}", "done") as gemini:
        first = Agent("a", gemini.model()).writes("who")
        second = Agent("b", gemini.model()).instruct("Greet {who}.")
        result = await (first >> second).middleware(pii_filter()).run("hi")
        assert gemini.requests[1].system.startswith("Greet it is [EMAIL].")
    assert result.state["who"] == "it is [EMAIL]"


async def test_agents_without_a_pipeline_of_ours_are_filtered_too() -> None:
    """The plugin asks all hooks but `wrap_*` there."""
    from google.adk.agents.llm_agent import LlmAgent
    from google.adk.agents.run_config import (
        RunConfig,
        StreamingMode,  # pyright: ignore[reportPrivateImportUsage]  # where every version has it
    )
    from google.adk.apps.app import App
    from google.adk.runners import InMemoryRunner

    from adk_fluent.backends.adk import MiddlewarePlugin

    def search(word: str) -> dict[str, str]:
        """Look something up."""
        words.append(word)
        return {"found": BOB}

    words: list[str] = []
    chunks = ["it is ", "bob@exam", "ple.com ", "indeed"]
    model: Any = ScriptedModel(Call("search", {"word": ANN}), reply(chunks=chunks))
    agent = LlmAgent(name="a", model=model, tools=[search], instruction=f"You are {ANN}")
    app = App(name="app", root_agent=agent, plugins=[MiddlewarePlugin(stack=[pii_filter()])])
    runner = InMemoryRunner(app=app)
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=f"I am {ANN}")])
    events = [
        each
        async for each in runner.run_async(
            user_id="u",
            session_id=session.id,
            new_message=message,
            run_config=RunConfig(streaming_mode=StreamingMode.SSE),
        )
    ]
    assert words == ["[EMAIL]"]
    assert "bob" not in repr(events)
    assert "ann" not in repr(events) + repr([(each.system, each.turns) for each in model.calls])
    assert any(each.partial and each.content for each in events)
    assert events[-1].content is not None
    assert "".join(each.text or "" for each in events[-1].content.parts or ()).startswith("it is [")


# --- options -------------------------------------------------------------------------------------


async def test_each_way_may_be_left_open() -> None:
    model = ScriptedModel(f"to {BOB}")
    result = await Agent("a", model).middleware(pii_filter(inbound=False)).run(f"I am {ANN}")
    assert (model.calls[0].prompt, result.text) == (f"I am {ANN}", "to [EMAIL]")

    model = ScriptedModel(f"to {BOB}")
    result = await Agent("a", model).middleware(pii_filter(outbound=False)).run(f"I am {ANN}")
    assert (model.calls[0].prompt, result.text) == ("I am [EMAIL]", f"to {BOB}")

    with GeminiEmulator(*TWO_TOOLS) as gemini:
        named = pii_filter(tools=["search"], patterns={"city": "Rome", "word": "^x$"})
        result = await clerk(gemini, named).run("hi")
    assert returned(result) == {
        "search": {"result": "found [WORD]"},
        "weather": {"result": "sun in Rome"},
    }


async def test_the_message_may_be_stored_as_it_is() -> None:
    model = ScriptedModel(default="ok")
    as_it_is, filtered = Kept(), Kept()
    await as_it_is.run(Agent("a", model).middleware(pii_filter(stored=False)), f"I am {ANN}")
    await filtered.run(Agent("a", model).middleware(pii_filter()), f"I am {ANN}")
    assert ANN in str(as_it_is)
    assert "I am [EMAIL]" in str(filtered)
    assert "example" not in str(filtered)
    assert [each.prompt for each in model.calls] == ["I am [EMAIL]"] * 2


async def test_only_kinds_that_are_asked_for_are_found() -> None:
    model = ScriptedModel(default="ok")
    middleware = pii_filter(kinds=["credit_card"])
    await Agent("a", model).middleware(middleware).run(f"{ANN} {CARD}")
    assert model.calls[0].prompt == f"{ANN} [CREDIT_CARD]"


async def test_detectors_of_ones_own_hold_a_stream_back_for_a_line() -> None:
    async def names(text: str) -> list[Finding]:
        at = text.find("Ann Lee")
        return [Finding("name", at, at + 7)] if at >= 0 else []

    chunks = ["Hello An", "n Lee, it", " is\nfine ", "now"]
    with GeminiEmulator(reply(chunks=chunks)) as gemini:
        result = await clerk(gemini, pii_filter(detectors=[names])).run("hi", config=SSE)
    assert fragments(result) == ["Hello [NAME], it is\n", "fine now"]


async def test_hashes_are_the_same_with_the_same_key() -> None:
    async def seen(**options: Any) -> str:
        return await _tags(pii_filter(strategy="hash", **options), ANN)

    assert await seen(key=KEY) == await seen(key=KEY)
    assert len({await seen(key=KEY), await seen(), await seen()}) == 3


def test_spans_of_adk_have_nothing_of_the_conversation(tmp_path: Path) -> None:
    pytest.importorskip("opentelemetry.sdk.trace")
    program = f"""
        import asyncio
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

        exporter, provider = InMemorySpanExporter(), TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)

        from adk_fluent import Agent
        from adk_fluent.middleware import pii_filter
        from adk_fluent.testing import Call, GeminiEmulator

        def search(word: str) -> str:
            return {BOB!r}

        with GeminiEmulator(Call("search", {{"word": {ANN!r}}}), "it is " + {BOB!r}) as gemini:
            pipeline = Agent("a", gemini.model()).tool(search).middleware(pii_filter())
            asyncio.run(pipeline.run("I am " + {ANN!r}))
        print([dict(each.attributes or {{}}) for each in exporter.get_finished_spans()])
    """
    said = run_program(
        program,
        tmp_path,
        ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS="true",
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="SPAN_ONLY",
    )
    assert "[EMAIL]" in said  # content is kept
    assert "@example" not in said


async def test_models_of_a_part_are_given_what_is_filtered() -> None:
    inside, outside = ScriptedModel("ok"), ScriptedModel("ok")
    part = Agent("a", inside).middleware(pii_filter(), scope="agent")
    result = await (part >> Agent("b", outside)).run(f"I am {ANN}")
    assert result.text == "ok"
    assert inside.calls[0].prompt == "I am [EMAIL]"
    assert ANN in repr(outside.calls)  # the message is stored as it was said


async def test_what_is_blocked_stops_a_part() -> None:
    model = ScriptedModel(default="ok")
    part = Agent("a", model).middleware(pii_filter(strategy="block"), scope="agent")
    with pytest.raises(PersonalDataError):
        await (part >> Agent("b", model)).run(f"I am {ANN}")
    assert not model.calls


async def test_placeholders_of_a_part_are_put_back() -> None:
    model = ScriptedModel(default=lambda asked: asked.prompt.removeprefix("I am "))
    part = Agent("a", model).middleware(placeholders(), scope="agent")
    result = await (part >> Agent("b").mock("B")).run(f"I am {ANN}")
    assert model.calls[0].prompt.startswith("I am <EMAIL_")
    assert next(each.content for each in result if each.content) == ANN


# --- what it is given ----------------------------------------------------------------------------


def test_it_is_a_middleware() -> None:
    assert isinstance(PIIFilterMiddleware(), Middleware)
    assert PIIFilterMiddleware().strategy == "redact"
    assert KEY.decode() not in repr(pii_filter(key=KEY))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"strategy": "delete"}, r"pii_filter\(strategy=\.\.\.\)"),
        ({"strategy": {"email": "x"}}, r"pii_filter\(strategy=\.\.\.\)"),
        ({"strategy": {"e-mail": "mask"}}, "a kind that nothing looks for"),
        ({"kinds": ["email", "name"]}, r"pii_filter\(kinds=\.\.\.\)"),
        ({"patterns": {"x": "("}}, "a pattern for 'x' that is none"),
        ({"patterns": {"X": "x"}}, "name of a kind"),
        ({"patterns": {"x": ""}}, r"pii_filter\(patterns=\.\.\.\)"),
        ({"tools": "search"}, r"pii_filter\(tools=\.\.\.\)"),
        ({"key": b"short"}, "16 bytes or more"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        pii_filter(**options)
    assert __file__ in str(caught.value)


# --- what is allowed -----------------------------------------------------------------------------


async def test_what_is_allowed_reaches_models_and_users() -> None:
    model = ScriptedModel(reply(chunks=["Write to supp", "ort@acme.com or ", ANN]))
    stack = pii_filter(allow=["support@acme.com"])
    agent = Agent("a", model).instruct(f"You are support@acme.com, not {ANN}.").middleware(stack)
    result = await agent.run(f"I am {BOB}", config=SSE)
    assert "You are support@acme.com, not [EMAIL]." in model.calls[0].system
    assert model.calls[0].prompt == "I am [EMAIL]"
    assert result.text == "".join(fragments(result)) == "Write to support@acme.com or [EMAIL]"


@pytest.mark.parametrize("allow", ["*", "**", " * "])
def test_to_allow_everything_is_refused(allow: str) -> None:
    with pytest.raises(UsageError, match="would let everything through"):
        pii_filter(allow=[allow])


def test_what_is_allowed_is_a_list() -> None:
    with pytest.raises(UsageError, match=r"pii_filter\(allow=\.\.\.\) cannot have this value"):
        pii_filter(allow="support@acme.com")


# --- JSON that nobody has asked for --------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 3, 7, 500])
async def test_json_is_the_same_in_a_stream_without_a_schema(size: int) -> None:
    text = '{"to": "ann@example.com", "n": 4111111111111111, "say": "\\u0061nn@example.com"}'
    model = ScriptedModel(reply(chunks=[text[at : at + size] for at in range(0, len(text), size)]))
    result = await Agent("a", model).middleware(pii_filter()).run("hi", config=SSE)
    assert result.text == "".join(fragments(result))
    assert json.loads(result.text) == {"to": "[EMAIL]", "n": "[CREDIT_CARD]", "say": "[EMAIL]"}
