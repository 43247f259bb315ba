"""The emulator under ADK's own Gemini class and Google's own client."""

from __future__ import annotations

import asyncio
import copy
import gc
import threading
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.genai import Client, errors, types

from adk_fluent import Agent, testing
from adk_fluent.errors import UsageError
from adk_fluent.protocol import Usage, classify
from adk_fluent.testing import (
    Asked,
    Call,
    GeminiEmulator,
    Reply,
    Script,
    ScriptedModel,
    Thought,
    reply,
    rule,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse

pytestmark = [
    pytest.mark.adk,
    # 1.x says so when it streams
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

MODEL = "gemini-2.5-flash"
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
TAKEN = (
    *("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT"),
    *("GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_API_VERSION"),
)


def request(*contents: types.Content | str, **config: Any) -> LlmRequest:
    made = [
        each
        if isinstance(each, types.Content)
        else types.Content(role="user", parts=[types.Part(text=each)])
        for each in contents or ("hi",)
    ]
    return LlmRequest(model=MODEL, contents=made, config=types.GenerateContentConfig(**config))


async def answer(
    model: BaseLlm, asked: LlmRequest | None = None, *, stream: bool = False
) -> list[LlmResponse]:
    async with aclosing(model.generate_content_async(asked or request(), stream=stream)) as answers:
        return [each async for each in answers]


def text(response: LlmResponse) -> str:
    parts = response.content.parts if response.content else None
    return "".join(part.text or "" for part in parts or () if not part.thought)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing leads to the real Gemini, and nothing that is left open goes unnoticed."""
    for name in TAKEN:
        monkeypatch.delenv(name, raising=False)
    yield
    gc.collect()


@pytest.fixture
async def gemini() -> AsyncIterator[GeminiEmulator]:
    async with GeminiEmulator() as emulator:
        yield emulator


def follow(gemini: GeminiEmulator, *replies: Any, **more: Any) -> None:
    gemini.script = Script(*replies, **more)


def echo(asked: Asked) -> str:
    return f"{asked.system}{asked.prompt}"


# --- what arrives --------------------------------------------------------------------------------


async def test_text_calls_thoughts_and_parts(gemini: GeminiEmulator) -> None:
    data = bytes(range(240, 256)) + b"\x00\xfb\xff"
    image = types.Part(inline_data=types.Blob(data=data, mime_type="image/png"))
    signed = types.Part(text="deep", thought=True, thought_signature=b"\xfe\xff")
    follow(gemini, reply(Thought("hm"), signed, "so", Call("f", {"x": [1, "ä"]}, id="c1"), image))
    [got] = await answer(gemini.model())
    assert got.content is not None
    assert got.content.parts is not None
    hm, deep, so, call, picture = got.content.parts
    assert (hm.text, hm.thought, so.text, so.thought) == ("hm", True, "so", None)
    assert (deep.text, deep.thought_signature) == ("deep", b"\xfe\xff")
    assert call.function_call is not None
    assert (call.function_call.name, call.function_call.args) == ("f", {"x": [1, "ä"]})
    assert call.function_call.id == "c1"
    assert picture.inline_data is not None
    assert picture.inline_data.data == data
    assert got.finish_reason is types.FinishReason.STOP


@STREAMED
async def test_usage_with_cached_and_thought_tokens(gemini: GeminiEmulator, stream: bool) -> None:
    usage = Usage(prompt=100, cached=40, output=9, thoughts=5, tool=2, audio=30, image_output=4)
    follow(gemini, reply(chunks=["a", "b", "c"], usage=usage))
    *pieces, whole = await answer(gemini.model(), stream=stream)
    assert Usage.from_genai(whole.usage_metadata) == usage
    told = [Usage.from_genai(piece.usage_metadata) for piece in pieces]
    assert Usage.last(told) == (usage if stream else None)


async def test_a_stream_arrives_in_pieces_and_then_as_a_whole(gemini: GeminiEmulator) -> None:
    follow(gemini, reply(chunks=["a ", "b ", "c"]))
    got = await answer(gemini.model(), stream=True)
    assert [(text(each), each.partial) for each in got] == [
        ("a ", True),
        ("b ", True),
        ("c", True),
        ("a b c", False),
    ]
    assert gemini.requests[0].action == "streamGenerateContent"


async def test_a_stream_arrives_while_it_is_made(gemini: GeminiEmulator) -> None:
    follow(gemini, reply(chunks=["a", "b"], pause=3600))
    async with aclosing(gemini.model().generate_content_async(request(), stream=True)) as answers:
        assert text(await anext(answers)) == "a"


@STREAMED
@pytest.mark.parametrize(
    ("bad", "code"),
    [
        (reply(error_code="SAFETY", error_message="no"), "SAFETY"),
        (reply(error_code="PROHIBITED_CONTENT"), "PROHIBITED_CONTENT"),
        (reply(finish_reason="RECITATION"), "RECITATION"),
        (reply(error_code="MALFORMED_FUNCTION_CALL"), "MALFORMED_FUNCTION_CALL"),
    ],
)
async def test_what_is_blocked(gemini: GeminiEmulator, bad: Reply, code: str, stream: bool) -> None:
    follow(gemini, bad)
    *_, got = await answer(gemini.model(), stream=stream)
    assert (got.error_code, got.error_message) == (code, bad.error_message)
    assert got.content is None


# --- what is raised ------------------------------------------------------------------------------


@STREAMED
@pytest.mark.parametrize("code", [400, 401, 403, 404, 429, 500, 503])
async def test_an_http_status_is_an_error_of_googles_client(
    gemini: GeminiEmulator, code: int, stream: bool
) -> None:
    bad = reply(status=code, error_message="why", retry_after=2.5)
    follow(gemini, bad)
    with pytest.raises(errors.APIError) as caught:
        await answer(gemini.model(), stream=stream)
    error = caught.value
    assert isinstance(error, errors.ServerError if code >= 500 else errors.ClientError)
    assert (error.code, error.message) == (code, "why")
    assert classify(error) == ("retriable" if code in (429, 500, 503) else "permanent")
    scripted = ScriptedModel(bad)
    with pytest.raises(errors.APIError) as expected:
        await answer(scripted)
    assert str(error).endswith(str(expected.value))  # details and status; ADK puts advice before


async def test_an_error_in_the_middle_of_a_stream(gemini: GeminiEmulator) -> None:
    follow(gemini, reply(chunks=["a", "b"], status=503, error_message="overloaded"))
    answers = gemini.model().generate_content_async(request(), stream=True)
    async with aclosing(answers):
        assert [text(await anext(answers)), text(await anext(answers))] == ["a", "b"]
        with pytest.raises(errors.ServerError, match="overloaded") as caught:
            await anext(answers)
    assert caught.value.code == 503


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (reply("fine"), ("completed", "")),
        (reply("cut o", finish_reason="MAX_TOKENS"), ("truncated", "clerk")),
        (reply(error_code="SAFETY", error_message="no"), ("failed", "clerk")),
    ],
)
async def test_what_becomes_of_a_run(
    gemini: GeminiEmulator, said: Reply, told: tuple[str, str]
) -> None:
    gemini.script = Script(default=said)
    result = await Agent("clerk", gemini.model()).run("hi")
    assert (result.status, result.step) == told


@STREAMED
@pytest.mark.parametrize("fault", ["truncated", "bad_json", "html"])
async def test_what_is_no_json(gemini: GeminiEmulator, fault: Any, stream: bool) -> None:
    follow(gemini, reply("x" * 100, fault=fault))
    with pytest.raises(ValueError, match=r"JSON|Expecting|Unterminated") as caught:
        await answer(gemini.model(), stream=stream)
    assert classify(caught.value) == ("retriable" if fault == "truncated" else "permanent")


@STREAMED
async def test_an_answer_that_breaks_off_may_come_the_next_time(
    gemini: GeminiEmulator, stream: bool
) -> None:
    follow(gemini, reply(chunks=["a", "b"], fault="cut"))
    with pytest.raises(Exception, match=r"incomplete|not completed|complete message") as caught:
        await answer(gemini.model(), stream=stream)
    assert classify(caught.value) == "retriable"


async def test_a_page_of_a_proxy_with_a_status(gemini: GeminiEmulator) -> None:
    follow(gemini, reply(status=503, fault="html"))
    with pytest.raises(errors.ServerError, match="This page comes from a proxy") as caught:
        await answer(gemini.model())
    assert classify(caught.value) == "retriable"


async def test_an_empty_answer_holds_nothing(gemini: GeminiEmulator) -> None:
    follow(gemini, reply("x", fault="empty"), reply("x", fault="empty"))
    [got] = await answer(gemini.model())
    assert text(got) == ""
    assert await answer(gemini.model(), stream=True) == []


async def test_a_key_that_is_rejected_and_a_model_that_is_not_there() -> None:
    async with GeminiEmulator(
        default="hi", keys=["good"], denied=["poor"], models=[MODEL]
    ) as gemini:
        assert text((await answer(gemini.model()))[0]) == "hi"
        for key, code, says in (("bad", 400, "API key not valid"), ("poor", 403, "blocked")):
            gemini.key = key
            with pytest.raises(errors.ClientError, match=says) as caught:
                await answer(gemini.model())
            assert caught.value.code == code
        gemini.key = "good"
        asked = request()
        asked.model = "gemini-9"
        with pytest.raises(errors.ClientError, match="models/gemini-9 is not found") as caught:
            await answer(gemini.model("gemini-9"), asked)
        assert caught.value.code == 404


async def test_what_gemini_refuses_is_refused(gemini: GeminiEmulator) -> None:
    follow(gemini, default="never")
    result = types.FunctionResponse(name="f", response={})
    orphan = types.Content(role="user", parts=[types.Part(function_response=result)])
    with pytest.raises(errors.ClientError, match="immediately after a function call") as caught:
        await answer(gemini.model(), request(orphan))
    assert caught.value.code == 400
    assert gemini.calls == ()


# --- time ----------------------------------------------------------------------------------------


async def test_googles_client_tries_again_when_told_to(gemini: GeminiEmulator) -> None:
    follow(gemini, reply(status=503), reply(status=429, retry_after=0.1), "at last")
    retry = types.HttpRetryOptions(attempts=3, initial_delay=0.01, max_delay=0.02, jitter=0.01)
    [got] = await answer(gemini.model(retry_options=retry))
    assert text(got) == "at last"
    assert len(gemini.requests) == 3


async def test_a_request_that_is_cancelled_is_abandoned(gemini: GeminiEmulator) -> None:
    follow(gemini, "first", reply("late", latency=3600))
    model = gemini.model()
    await answer(model)  # the client is slow to be made
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1):
            await answer(model)
    async with asyncio.timeout(10):
        while not gemini.abandoned:  # noqa: ASYNC110  # it happens in another thread
            await asyncio.sleep(0.01)
    assert [each.number for each in gemini.abandoned] == [1]


async def test_silence_ends_with_the_clients_patience(gemini: GeminiEmulator) -> None:
    follow(gemini, TimeoutError())
    with pytest.raises(Exception, match=r".*") as caught:
        await answer(gemini.model(), request(http_options=types.HttpOptions(timeout=200)))
    assert classify(caught.value) == "retriable"


async def test_requests_at_the_same_time(gemini: GeminiEmulator) -> None:
    together = asyncio.Barrier(10)

    async def late(asked: Asked) -> str:
        await together.wait()  # until all have been asked
        return echo(asked)

    follow(gemini, default=late)
    model = gemini.model()
    got = await asyncio.gather(*(answer(model, request(str(n))) for n in range(10)))
    assert [text(each) for [each] in got] == [str(n) for n in range(10)]


# --- models that are bound -----------------------------------------------------------------------


async def test_the_environment_is_enough(
    gemini: GeminiEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_GENAI_USE_ENTERPRISE", "true")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    for name, value in gemini.env.items():
        monkeypatch.setenv(name, value)
    follow(gemini, default="hi")
    for stream in (False, True):
        *_, got = await answer(Gemini(model=MODEL), stream=stream)
        assert text(got) == "hi"
    client: Any = Client()
    count = await client.aio.models.count_tokens(model=MODEL, contents="12345678")
    assert count.total_tokens == 2
    assert [each.path for each in gemini.requests] == [
        f"/v1beta/models/{MODEL}:{action}"
        for action in ("generateContent", "streamGenerateContent", "countTokens")
    ]


async def test_a_model_is_bound_whatever_the_environment_says(
    gemini: GeminiEmulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "GOOGLE_API_KEY": "real",
        "GEMINI_API_KEY": "real",
        "GOOGLE_GENAI_USE_VERTEXAI": "true",
        "GOOGLE_GENAI_USE_ENTERPRISE": "true",
        "GOOGLE_CLOUD_PROJECT": "real",
        "GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "http_proxy": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    follow(gemini, default="hi")
    for stream in (False, True):
        *_, got = await answer(gemini.model(), stream=stream)
        assert text(got) == "hi"
    client: Any = gemini.model().api_client
    assert client.models.generate_content(model=MODEL, contents="sync").text == "hi"
    assert len(gemini.requests) == 3


def test_a_model_may_be_used_in_one_loop_after_another() -> None:
    with GeminiEmulator(default="hi") as gemini:
        model = gemini.model()
        for _ in range(3):
            [got] = asyncio.run(answer(model))
            assert text(got) == "hi"


def test_a_model_may_be_used_in_many_threads() -> None:
    with GeminiEmulator(default=echo) as gemini:
        model = gemini.model()
        got: dict[str, str] = {}

        def ask(name: str) -> None:
            got[name] = text(asyncio.run(answer(model, request(name)))[0])

        threads = [threading.Thread(target=ask, args=(str(n),)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert got == {str(n): str(n) for n in range(8)}


async def test_a_model_is_adks_gemini_with_fields_of_yours(gemini: GeminiEmulator) -> None:
    model = gemini.model("gemini-2.5-pro", retry_options=types.HttpRetryOptions(attempts=1))
    assert isinstance(model, Gemini)
    assert model.model == "gemini-2.5-pro"
    assert model.retry_options is not None
    follow(gemini, default="hi")
    for twin in (copy.copy(model), copy.deepcopy(model), model.model_copy(update={"model": MODEL})):
        [got] = await answer(twin)
        assert text(got) == "hi"
    assert gemini.key not in repr(model)


# --- as a ScriptedModel does ---------------------------------------------------------------------

SCRIPTED = [
    "plain",
    reply(chunks=["a", "b", "c"]),
    reply(Thought("hm"), "so"),
    reply("so", Call("f", {"x": 1}, id="c1"), Call("g", id="c2")),
    reply("cut", finish_reason="MAX_TOKENS"),
    reply("x", usage=Usage(prompt=9, cached=4, output=2, thoughts=1)),
]


@STREAMED
@pytest.mark.parametrize("scripted", SCRIPTED)
async def test_one_script_gives_the_same_with_a_scripted_model(
    gemini: GeminiEmulator, scripted: Any, stream: bool
) -> None:
    follow(gemini, scripted)
    *pieces, whole = await answer(gemini.model(), stream=stream)
    *expected_pieces, expected = await answer(ScriptedModel(scripted), stream=stream)
    assert facts(whole) == facts(expected)
    assert "".join(map(text, pieces)) == "".join(map(text, expected_pieces))
    assert {each.partial for each in pieces} == {each.partial for each in expected_pieces}


@pytest.mark.parametrize("bad", [reply(error_code="SAFETY"), reply(finish_reason="RECITATION")])
async def test_one_script_is_blocked_as_a_scripted_model_is(
    gemini: GeminiEmulator, bad: Reply
) -> None:
    follow(gemini, bad)
    [got], [expected] = await answer(gemini.model()), await answer(ScriptedModel(bad))
    assert facts(got) == facts(expected)
    assert got.content == expected.content is None


def facts(response: LlmResponse) -> dict[str, Any]:
    told = response.model_dump(exclude_none=True, exclude={"model_version"})
    return {name: value for name, value in told.items() if value is not False}


async def test_both_understand_a_request_alike(gemini: GeminiEmulator) -> None:
    def call(name: str) -> types.Part:
        return types.Part(function_call=types.FunctionCall(name=name, args={"x": "ä", "n": 1.5}))

    def result(name: str) -> types.Part:
        return types.Part(
            function_response=types.FunctionResponse(name=name, response={"y": ["ä"]})
        )

    blob = types.Blob(data=b"12345", mime_type="image/png")
    file = types.FileData(file_uri="gs://a/b", mime_type="text/csv")
    contents = [
        types.Content(role="user", parts=[types.Part(text="look"), types.Part(inline_data=blob)]),
        types.Content(role="model", parts=[types.Part(text="hm", thought=True), call("f")]),
        types.Content(role="user", parts=[result("f"), types.Part(file_data=file)]),
        types.Content(role="model", parts=[call("f"), call("g")]),
        types.Content(role="user", parts=[result("f"), result("g")]),
    ]
    asked = request(
        *contents,
        system_instruction='Be kind. Your internal name is "bob".',
        temperature=0.5,
        max_output_tokens=7,
    )
    scripted = ScriptedModel("ok", model=MODEL)
    follow(gemini, "ok")
    await answer(scripted, asked.model_copy(deep=True))
    await answer(gemini.model(), asked)
    [over_http], [direct] = gemini.calls, scripted.calls
    assert over_http.turns == direct.turns
    assert over_http.prompt == direct.prompt
    assert (over_http.system, over_http.agent, over_http.model) == (
        *(direct.system, "bob"),
        direct.model,
    )
    assert gemini.requests[0].config == {"temperature": 0.5, "maxOutputTokens": 7}


async def test_rules_for_models_and_agents_hold_for_both(gemini: GeminiEmulator) -> None:
    script = Script(rules=[rule("hi", model=MODEL, agent="bob", reply="bob")], default="else")
    gemini.script = script
    asked = request(system_instruction='Your internal name is "bob".')
    for model in (gemini.model(), ScriptedModel(script=script, model=MODEL)):
        [got] = await answer(model, asked.model_copy(deep=True))
        assert text(got) == "bob"


async def test_a_scripted_model_has_no_connection(gemini: GeminiEmulator) -> None:
    with pytest.raises(UsageError, match="no connection for fault='cut' to happen to"):
        await answer(ScriptedModel(reply("x", fault="cut")))


# --- context caching -----------------------------------------------------------------------------


async def test_contents_are_cached_by_googles_client(gemini: GeminiEmulator) -> None:
    follow(gemini, default=echo)
    client = gemini.model().api_client
    made = await client.aio.caches.create(
        model=MODEL,
        config=types.CreateCachedContentConfig(
            contents=[types.Content(role="user", parts=[types.Part(text="a book")])],
            system_instruction="Read.",
            ttl="60s",
        ),
    )
    assert made.name == "cachedContents/0"
    assert made.usage_metadata is not None
    assert made.usage_metadata.total_token_count == 3
    assert made.expire_time is not None
    [got] = await answer(gemini.model(), request("what?", cached_content=made.name))
    assert text(got) == "Read.a book\nwhat?"
    assert (await client.aio.caches.get(name=made.name)).name == made.name
    await client.aio.caches.delete(name=made.name)
    with pytest.raises(errors.ClientError, match="CachedContent not found"):
        await answer(gemini.model(), request("what?", cached_content=made.name))


def test_every_public_name_is_there() -> None:
    assert ScriptedModel is testing.ScriptedModel
    assert all(getattr(testing, name) is not None for name in testing.__all__)
