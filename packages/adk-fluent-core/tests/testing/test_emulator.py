"""The emulator of Gemini's REST API as any HTTP client sees it; no google.* in here."""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adk_fluent.errors import UsageError
from adk_fluent.protocol import Usage
from adk_fluent.testing import (
    Asked,
    Call,
    GeminiEmulator,
    Script,
    ScriptExhaustedError,
    Thought,
    Turn,
    reply,
    rule,
)
from adk_fluent.testing._gemini._http import BODY_LIMIT
from adk_fluent.testing._gemini._server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator

WORDS = (
    *("contents", "parts", "role", "text", "thought", "functionCall", "functionResponse", "name"),
    *("args", "response", "inlineData", "data", "mimeType", "systemInstruction", "tools"),
    *("functionDeclarations", "generationConfig", "cachedContent", "system_instruction"),
)
FLASH = "/v1beta/models/gemini-2.5-flash"
GENERATE = f"{FLASH}:generateContent"
STREAM = f"{FLASH}:streamGenerateContent?alt=sse"

pytestmark = pytest.mark.filterwarnings("error:unclosed:ResourceWarning")  # the emulator's own


class Got(NamedTuple):
    """A response, read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, str, str]:
        """Code, status and message; the shape is Google's, and the code is the status's."""
        error = self.json["error"]
        assert self.json.keys() == {"error"}
        assert error.keys() - {"details"} == {"code", "message", "status"}
        assert error["code"] == self.status
        assert self.headers["Content-Type"] == "application/json; charset=UTF-8"
        return error["code"], error["status"], error["message"]

    @property
    def events(self) -> list[Any]:
        *events, end = self.body.decode().split("\r\n\r\n")
        assert end == ""
        return [json.loads(event.removeprefix("data: ")) for event in events]


def says(text: str = "hi", **more: Any) -> dict[str, Any]:
    return {"contents": [{"role": "user", "parts": [{"text": text}]}], **more}


def send(
    gemini: GeminiEmulator,
    path: str = GENERATE,
    body: Any = None,
    *,
    method: str = "POST",
    key: str | None = "k",
    timeout: float = 10,
) -> Got:
    """Send a request, and read the response; JSON of the body unless it is bytes."""
    port = int(gemini.url.rpartition(":")[2])
    data = body if isinstance(body, bytes) else json.dumps(says() if body is None else body)
    headers = {"Content-Type": "application/json", **({} if key is None else _key(key))}
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)) as connection:
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        return Got(response.status, dict(response.getheaders()), response.read())


def _key(key: str) -> dict[str, str]:
    return {"x-goog-api-key": key}


def raw(gemini: GeminiEmulator, data: bytes, *, shut: bool = False) -> bytes:
    """What comes back for these very bytes; and, if it is shut, nothing more."""
    with socket.create_connection(("127.0.0.1", int(gemini.url.rpartition(":")[2])), 10) as sock:
        with suppress(ConnectionError):
            sock.sendall(data)
            if shut:
                sock.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: sock.recv(65536), b""))


def text(body: Any) -> str:
    parts = body["candidates"][0]["content"].get("parts", [])
    return "".join(part.get("text", "") for part in parts)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """No thread, and no socket that is found unclosed later: warnings are errors."""
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) == before
    gc.collect()


@pytest.fixture(scope="module")
def alive() -> Iterator[GeminiEmulator]:
    """An emulator that has seen everything."""
    with GeminiEmulator(default="hi") as gemini:
        yield gemini


# --- answers -------------------------------------------------------------------------------------


def test_a_text_in_geminis_shape() -> None:
    usage = Usage(prompt=100, cached=40, output=9, thoughts=5, tool=2, audio=30, image_output=4)
    with GeminiEmulator("plain", reply(Thought("hm"), "so", usage=usage)) as gemini:
        plain, told = send(gemini), send(gemini)
    assert plain.status == 200
    assert plain.headers["Content-Type"] == "application/json; charset=UTF-8"
    assert plain.json == {
        "candidates": [
            {
                "content": {"parts": [{"text": "plain"}], "role": "model"},
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2, "totalTokenCount": 3},
        "modelVersion": "gemini-2.5-flash",
        "responseId": "emulator-0",
    }
    assert told.json["candidates"][0]["content"]["parts"] == [
        {"text": "hm", "thought": True},
        {"text": "so"},
    ]
    assert told.json["usageMetadata"] == {
        "promptTokenCount": 100,
        "candidatesTokenCount": 9,
        "totalTokenCount": 116,
        "cachedContentTokenCount": 40,
        "thoughtsTokenCount": 5,
        "toolUsePromptTokenCount": 2,
        "promptTokensDetails": [
            {"modality": "TEXT", "tokenCount": 70},
            {"modality": "AUDIO", "tokenCount": 30},
        ],
        "candidatesTokensDetails": [
            {"modality": "TEXT", "tokenCount": 5},
            {"modality": "IMAGE", "tokenCount": 4},
        ],
    }


def test_parallel_calls_and_the_turn_after_their_results() -> None:
    calls = reply(Call("a", {"x": 1}), Call("b", id="b1"))
    with GeminiEmulator(calls, lambda asked: asked.prompt) as gemini:
        called = send(gemini).json["candidates"][0]["content"]
        results: list[dict[str, Any]] = [
            {"functionResponse": {"name": "a", "response": {"result": "é"}}},
            {"functionResponse": {"name": "b", "response": {}}},
        ]
        told = send(gemini, body={"contents": [*says()["contents"], called, _user(*results)]})
        [_, last] = gemini.requests
    assert called["parts"] == [
        {"functionCall": {"name": "a", "args": {"x": 1}}},
        {"functionCall": {"name": "b", "args": {}, "id": "b1"}},
    ]
    assert text(told.json) == '[result a {"result": "é"}]\n[result b {}]'
    assert [each["name"] for each in last.results] == ["a", "b"]
    assert last.turns[1] == Turn("model", '[call a {"x": 1}]\n[call b {}]')


def _user(*parts: Any) -> dict[str, Any]:
    return {"role": "user", "parts": list(parts)}


def test_a_stream_of_events() -> None:
    usage = Usage(prompt=10, output=9, thoughts=3)
    streamed = reply(Call("f"), chunks=["a", "b"], usage=usage)
    with GeminiEmulator(streamed, "whole", reply(), latency=0) as gemini:
        got, whole, empty = (send(gemini, STREAM) for _ in range(3))
        assert all(each.stream for each in gemini.requests)
    assert got.headers["Content-Type"] == "text/event-stream"
    assert got.headers["Transfer-Encoding"] == "chunked"
    first, second, last = got.events
    assert [text(first), text(second), text(last)] == ["a", "b", ""]
    assert last["candidates"][0]["content"]["parts"] == [
        {"functionCall": {"name": "f", "args": {}}}
    ]
    assert [each["candidates"][0].get("finishReason") for each in got.events] == [
        None,
        None,
        "STOP",
    ]
    told = [each["usageMetadata"]["totalTokenCount"] for each in got.events]
    assert told == [14, 18, 22]  # each tells all so far
    assert [text(each) for each in whole.events] == ["whole"]
    assert empty.events[0]["candidates"][0]["finishReason"] == "STOP"


def test_without_events_a_stream_is_an_array() -> None:
    with GeminiEmulator(reply(chunks=["a", "b"]), "c") as gemini:
        two, one = (send(gemini, f"{FLASH}:streamGenerateContent") for _ in range(2))
    assert [text(each) for each in two.json] == ["a", "b"]
    assert [text(each) for each in one.json] == ["c"]


def test_blocked_prompts_and_answers_that_end_badly() -> None:
    with GeminiEmulator(
        reply(error_code="SAFETY", error_message="no"),
        reply(error_code="MALFORMED_FUNCTION_CALL", error_message="what?"),
        reply(finish_reason="RECITATION"),
        reply("cut o", finish_reason="MAX_TOKENS"),
    ) as gemini:
        blocked, malformed, recited, cut = (send(gemini).json for _ in range(4))
    assert "candidates" not in blocked
    assert blocked["promptFeedback"] == {"blockReason": "SAFETY", "blockReasonMessage": "no"}
    assert blocked["usageMetadata"]["promptTokenCount"] == 1
    assert malformed["candidates"] == [
        {"finishReason": "MALFORMED_FUNCTION_CALL", "index": 0, "finishMessage": "what?"}
    ]
    assert recited["candidates"] == [{"finishReason": "RECITATION", "index": 0}]
    assert text(cut) == "cut o"
    assert cut["candidates"][0]["finishReason"] == "MAX_TOKENS"


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (503, "UNAVAILABLE"),
        (418, "UNKNOWN"),
        (599, "UNKNOWN"),
    ],
)
def test_errors_in_googles_shape(code: int, status: str) -> None:
    busy = reply(status=code, error_message="busy", retry_after=2.5)
    with GeminiEmulator(reply(status=code), busy, busy) as gemini:
        plain, told, streamed = send(gemini), send(gemini), send(gemini, STREAM)
    assert plain.error == (code, status, f"scripted {status}")
    assert "Retry-After" not in plain.headers
    for each in (told, streamed):
        assert each.error == (code, status, "busy")
        assert each.headers["Retry-After"] == "3"
        assert each.json["error"]["details"] == [
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2.5s"}
        ]


def test_an_error_in_the_middle_of_a_stream_is_an_event() -> None:
    with GeminiEmulator(reply(chunks=["a", "b"], status=503)) as gemini:
        got = send(gemini, STREAM)
    assert got.status == 200
    a, b, error = got.events
    assert text(a) + text(b) == "ab"
    assert "finishReason" not in b["candidates"][0]
    assert error["error"]["code"] == 503
    assert got.body.rpartition(b"data: ")[2].startswith(b'{"error"')  # google-genai looks for it


def test_counting_tokens_asks_no_script() -> None:
    with GeminiEmulator() as gemini:
        got = send(gemini, f"{FLASH}:countTokens", says("12345678"))
    assert got.json == {"totalTokens": 2}
    assert gemini.calls == ()


def test_cached_contents() -> None:
    cached = says("a book", model="models/gemini-2.5-flash", ttl="60s") | {
        "systemInstruction": {"parts": [{"text": 'Your internal name is "reader".'}]},
        "tools": [{"functionDeclarations": [{"name": "look_up"}]}],
    }
    with GeminiEmulator(default=lambda asked: f"{asked.agent}: {asked.prompt}") as gemini:
        made = send(gemini, "/v1beta/cachedContents", cached).json
        path = f"/v1beta/{made['name']}"
        assert send(gemini, path, method="GET").json == made
        answer = send(gemini, body=says("what of it?", cachedContent=made["name"])).json
        used = gemini.requests[-1]
        assert send(gemini, path, method="DELETE").json == {}
        gone = send(gemini, body=says(cachedContent=made["name"]))
        assert send(gemini, path, method="DELETE").status == 403
        assert send(gemini, path, method="PUT").status == 405
        assert send(gemini, "/v1beta/cachedContents", says(ttl="soon")).status == 400
    assert made["name"] == "cachedContents/0"
    assert made["usageMetadata"]["totalTokenCount"] > 3
    made_at, ends_at = made["createTime"], made["expireTime"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", made_at)
    assert made_at < ends_at
    assert text(answer) == "reader: a book\nwhat of it?"
    assert used.tools == ("look_up",)
    assert [content["parts"][0]["text"] for content in used.contents] == ["a book", "what of it?"]
    assert gone.error == (
        *(403, "PERMISSION_DENIED"),
        "CachedContent not found (or permission denied)",
    )


# --- who asks, and whom --------------------------------------------------------------------------


def test_keys_are_looked_at_when_told_to() -> None:
    with GeminiEmulator(default="hi") as trusting:
        assert send(trusting, key=None).status == 200
    with GeminiEmulator(default="hi", keys=["good", "also"], denied=["poor"]) as gemini:
        assert gemini.key == "good"
        assert {send(gemini, key=key).status for key in ("good", "also")} == {200}
        assert send(gemini, f"{GENERATE}?key=also", key=None).status == 200
        bad, poor, none = (send(gemini, key=key) for key in ("bad", "poor", None))
        streamed = send(gemini, STREAM, key="bad")
        assert len(gemini.calls) == 3
    for each in (bad, streamed):
        assert each.error == (
            *(400, "INVALID_ARGUMENT"),
            "API key not valid. Please pass a valid API key.",
        )
        assert each.json["error"]["details"][0]["reason"] == "API_KEY_INVALID"
    assert poor.error[:2] == (403, "PERMISSION_DENIED")
    assert poor.json["error"]["details"][0]["reason"] == "API_KEY_SERVICE_BLOCKED"
    assert none.error[:2] == (403, "PERMISSION_DENIED")
    assert "unregistered callers" in none.error[2]


def test_a_denied_key_alone_leaves_all_others_valid() -> None:
    with GeminiEmulator(default="hi", denied=["poor"]) as gemini:
        assert [send(gemini, key=key).status for key in ("any", "poor")] == [200, 403]


def test_models_are_looked_at_when_told_to() -> None:
    with GeminiEmulator(default="hi", models=["gemini-2.5-flash"]) as gemini:
        assert send(gemini).status == 200
        got = send(gemini, "/v1beta/models/gemini-9:generateContent")
    assert got.error[:2] == (404, "NOT_FOUND")
    assert got.error[2].startswith(
        "models/gemini-9 is not found for API version v1beta, or is not supported for "
        "generateContent."
    )


def test_rules_know_the_model_the_agent_and_the_request() -> None:
    asks: dict[str, Any] = {
        "systemInstruction": {"parts": [{"text": 'Your internal name is "bob".'}]}
    }
    warm = rule(lambda asked: asked.raw.config.get("temperature") == 1, reply="warm")
    with GeminiEmulator(
        rules=[
            warm,
            rule(model="gemini-2.5-pro", reply="pro"),
            rule(agent="bob", reply="bob"),
        ],
        default="else",
    ) as gemini:
        pro = send(gemini, "/v1beta/models/gemini-2.5-pro:generateContent")
        bob, other = send(gemini, body=says(**asks)), send(gemini)
        hot = send(gemini, body=says(generationConfig={"temperature": 1}))
        assert [each.model for each in gemini.of(model="gemini-2.5-pro")] == ["gemini-2.5-pro"]
        assert [each.number for each in gemini.of(agent="bob")] == [1]
        assert gemini.of(agent="bob", model="gemini-2.5-pro") == []
    assert [text(each.json) for each in (pro, bob, other, hot)] == ["pro", "bob", "else", "warm"]


# --- what is remembered --------------------------------------------------------------------------


def test_a_request_is_plain_data() -> None:
    body: dict[str, Any] = {
        "systemInstruction": {"role": "user", "parts": [{"text": "Be kind."}, {"text": "Help."}]},
        "contents": [
            _user({"text": "look"}, {"inlineData": {"mimeType": "image/png", "data": "AQIDBAU="}}),
            {
                "role": "model",
                "parts": [
                    {"text": "thinking", "thought": True},
                    {"functionCall": {"name": "f", "args": {"x": "ä"}}},
                ],
            },
            _user({"functionResponse": {"name": "f", "response": {"result": 1}}}),
            _user(
                {"fileData": {"mimeType": "text/csv", "fileUri": "gs://a/b"}},
                {"executableCode": {"code": "1"}},
            ),
        ],
        "tools": [
            {"googleSearch": {}},
            {"functionDeclarations": [{"name": "f", "description": "F"}]},
        ],
        "generationConfig": {"temperature": 0.5},
    }
    with GeminiEmulator("ok") as gemini:
        send(gemini, f"{GENERATE}?key=hidden", body, key="secret")
        [request] = gemini.requests
    assert (request.number, request.method, request.path) == (0, "POST", GENERATE)
    assert (request.model, request.action, request.stream) == (
        *("gemini-2.5-flash", "generateContent"),
        False,
    )
    assert request.body == body
    assert request.headers["content-type"] == "application/json"
    assert "secret" not in repr(request)
    assert "hidden" not in repr(request)
    assert request.system == "Be kind.\nHelp."
    assert request.contents == body["contents"]
    assert request.tools == ("f",)
    assert request.declarations == {"f": {"name": "f", "description": "F"}}
    assert request.config == {"temperature": 0.5}
    assert request.agent is None
    assert request.turns == (
        Turn("user", "look\n[image/png 5 bytes]"),
        Turn("model", '[call f {"x": "ä"}]'),
        Turn("user", '[result f {"result": 1}]'),
        Turn("user", "[text/csv gs://a/b]\n[executable_code]"),
    )
    assert request.prompt == '[result f {"result": 1}]\n[text/csv gs://a/b]\n[executable_code]'
    assert gemini.calls[0].raw == request
    assert json.loads(json.dumps(request.body)) == body


def test_names_with_underscores_are_understood_as_google_does() -> None:
    body = {
        "system_instruction": {"parts": [{"text": "Be kind."}]},
        "contents": [_user({"inline_data": {"mime_type": "image/png", "data": "AQID"}})],
        "generation_config": {"temperature": 1},
        "tools": [{"function_declarations": [{"name": "f"}]}],
    }
    with GeminiEmulator("ok") as gemini:
        assert send(gemini, body=body).status == 200
        [request] = gemini.requests
    assert (request.system, request.tools) == ("Be kind.", ("f",))
    assert request.config == {"temperature": 1}
    assert request.prompt == "[image/png 3 bytes]"


def test_another_script_may_take_over() -> None:
    with GeminiEmulator("one") as gemini:
        first = text(send(gemini).json)
        gemini.script = Script("two")
        assert (first, text(send(gemini).json)) == ("one", "two")
        assert len(gemini.requests) == 2
        assert len(gemini.calls) == 1
    assert Script("s").calls == ()
    with pytest.raises(UsageError, match="a script brings its replies"):
        GeminiEmulator("x", script=Script("y"))


# --- what Gemini refuses -------------------------------------------------------------------------


def _model(*parts: Any) -> dict[str, Any]:
    return {"role": "model", "parts": list(parts)}


_CALL: dict[str, Any] = {"functionCall": {"name": "f", "args": {}}}
_RESULT: dict[str, Any] = {"functionResponse": {"name": "f", "response": {}}}
_TEXT = {"text": "x"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "must be a JSON object"),
        (b"", "must be a JSON object"),
        (b"[]", "must be a JSON object"),
        (b"\xff\xfe", "must be a JSON object"),
        (b"[" * 100_000, "must be a JSON object"),
        (b'{"contents": ' + b"9" * 5000 + b"}", "must be a JSON object"),
        ({}, "contents is not specified"),
        ({"contents": []}, "contents is not specified"),
        ({"contents": "hi"}, "Invalid value at 'contents', 'hi'"),
        ({"contents": ["hi"]}, "Invalid value at 'contents', not all are objects"),
        ({"contents": [{"role": "user"}]}, "contents[0].parts: contents.parts must not be empty"),
        ({"contents": [{"parts": "x"}]}, "contents.parts must not be empty"),
        ({"contents": [_user(_TEXT), _user("x")]}, "contents[1].parts: required oneof field"),
        ({"contents": [_user({})]}, "required oneof field"),
        ({"contents": [{"role": "system", "parts": [_TEXT]}]}, "Please use a valid role"),
        ({"contents": [{"role": 1, "parts": [_TEXT]}]}, "Please use a valid role"),
        (says(systemInstruction=["x"]), "Invalid value at 'systemInstruction'"),
        (says(generationConfig=3), "Invalid value at 'generationConfig', 3"),
        (says(tools={}), "Invalid value at 'tools'"),
        (says(tools=[3]), "Invalid value at 'tools', not all are objects"),
        ({"contents": [_user(_TEXT), _user(_RESULT)]}, "function response turn comes immediately"),
        ({"contents": [_model(_CALL), _user(_RESULT)]}, "function call turn comes immediately"),
        (
            {"contents": [_user(_TEXT), _model(_CALL, _CALL), _user(_RESULT)]},
            "the number of function response parts is equal",
        ),
        (
            {"contents": [_user(_TEXT), _model(_CALL), _user(_TEXT), _user(_RESULT)]},
            "the number of function response parts is equal",
        ),
        (
            says(tools=[{"functionDeclarations": [{"name": "f"}, {"name": "f"}]}]),
            "Duplicate function declaration found: f",
        ),
        (
            says(tools=[{}, {"functionDeclarations": [{"name": "1 f"}]}]),
            "tools[1].function_declarations[0].name: Invalid function name",
        ),
        (says(tools=[{"functionDeclarations": [{}, {}]}]), "Duplicate"),
        (says(cachedContent="cachedContents/9"), "CachedContent not found"),
        (says(cachedContent=9), "CachedContent not found"),
    ],
)
def test_what_gemini_refuses(body: Any, message: str) -> None:
    with GeminiEmulator(default="never") as gemini:
        got = send(gemini, body=body)
        counted = send(gemini, f"{FLASH}:countTokens", body)
        assert gemini.calls == ()
        assert send(gemini, body=says()).status == 200
    code = 403 if "CachedContent" in message else 400
    assert got.error[0] == counted.error[0] == code
    assert message in got.error[2]


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", GENERATE, 405),
        ("DELETE", GENERATE, 405),
        ("BREW", GENERATE, 405),
        ("POST", "/", 404),
        ("POST", "/v1beta/models/gemini-2.5-flash", 404),
        ("POST", "/v1beta/models/a/b:generateContent", 404),
        ("POST", "/v1beta/models/..%2F..%2Fx:generateContent", 404),
        ("POST", "/v9/models/gemini-2.5-flash:generateContent", 404),
        ("GET", "/v1beta/models", 404),
        ("POST", f"{FLASH}:embedContent", 501),
        ("POST", "/v1beta/interactions", 404),
        ("GET", "/v1beta/cachedContents", 405),
        ("POST", f"{FLASH}%3AgenerateContent", 200),
        ("POST", "/v1/models/gemini-2.5-flash:generateContent", 200),
        ("POST", "/v1alpha/models/gemini-2.5-flash:generateContent", 200),
        ("POST", "/v1beta/tunedModels/mine:generateContent", 200),
    ],
)
def test_paths_and_methods(method: str, path: str, code: int) -> None:
    with GeminiEmulator(default="hi") as gemini:
        got = send(gemini, path, method=method)
        assert got.status == code
        assert code == 200 or got.error[0] == code
        [request] = gemini.requests
    assert (request.method, code != 200 or request.model is not None) == (method, True)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\r\n\r\n", 400),
        (b"hello\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"GET / HTTP/2\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\xfc\r\n\r\n", 400),
        (b"GET http://[ HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n folded: x\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: \xb2\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n", 400),
        (b"x" * 1_000_000, 400),
    ],
)
def test_what_is_no_request(data: bytes, code: int) -> None:
    with GeminiEmulator(default="hi") as gemini:
        got = raw(gemini, data)
        assert send(gemini).status == 200
        assert len(gemini.requests) == 1
    head, _, body = got.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % code)
    assert json.loads(body)["error"]["code"] == code


def test_a_body_that_is_too_large_is_refused_to_a_client_that_sends_all_of_it() -> None:
    with GeminiEmulator(default="hi") as gemini:
        got = send(gemini, body=b" " * (BODY_LIMIT + 1))
        assert got.error == (
            *(400, "INVALID_ARGUMENT"),
            f"Request payload size exceeds the limit: {BODY_LIMIT} bytes.",
        )
        largest = json.dumps(says("x" * 1_000_000)).encode().ljust(BODY_LIMIT)
        assert send(gemini, body=largest).status == 200


def test_a_client_that_waits_for_leave_to_send() -> None:
    body = json.dumps(says()).encode()
    head = (
        f"POST {GENERATE} HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with GeminiEmulator("hi") as gemini:
        port = int(gemini.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), 10) as sock:
            sock.sendall(head.encode())
            assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
            sock.sendall(body)
            assert b"".join(iter(lambda: sock.recv(65536), b"")).startswith(b"HTTP/1.1 200 OK")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(), inner, max_size=5)
    ),
    max_leaves=30,
)


@settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(body=JSON, near=JSON)
def test_any_json_is_answered_or_refused(alive: GeminiEmulator, body: Any, near: Any) -> None:
    for each in (body, says(systemInstruction=near, tools=[near]), {"contents": [_user(near)]}):
        got = send(alive, STREAM, json.dumps(each).encode())
        assert got.status == 200 or got.error[0] in {400, 403}
        request = alive.requests[-1]
        assert request.asked.turns == request.turns
        assert set(request.tools) == set(request.declarations)
        assert isinstance(request.results, list)
        assert alive.of(agent="nobody") == []
    assert alive.failures == alive.abandoned == ()


@settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.binary()
    | st.builds(b"%b %b HTTP/1.1\r\n%b: %b\r\n\r\n%b".__mod__, st.tuples(*[st.binary()] * 5))
    | st.binary().map(b"POST /v1beta/models/x:generateContent HTTP/1.1\r\n%b\r\n\r\n".__mod__)
)
def test_any_bytes_are_answered_or_dropped(alive: GeminiEmulator, data: bytes) -> None:
    got = raw(alive, data, shut=True)
    assert got == b"" or re.match(rb"HTTP/1\.1 \d\d\d ", got)
    assert send(alive).status == 200
    assert alive.failures == ()


def test_halves_of_characters_are_no_reason_to_fail() -> None:
    with GeminiEmulator(default=lambda asked: asked.prompt) as gemini:
        assert text(send(gemini, body=says("a\ud800b")).json) == "a?b"


# --- faults --------------------------------------------------------------------------------------


def test_whole_answers_that_go_wrong() -> None:
    with GeminiEmulator(
        *(reply("x" * 100, fault=fault) for fault in ("truncated", "bad_json", "html", "empty")),
        *(reply("x" * 100, fault=fault) for fault in ("disconnect", "cut")),
        reply(status=503, fault="html"),
    ) as gemini:
        truncated, bad, page, empty = (send(gemini) for _ in range(4))
        with pytest.raises(http.client.RemoteDisconnected):
            send(gemini)
        with pytest.raises(http.client.IncompleteRead) as cut:
            send(gemini)
        proxy = send(gemini)
        assert gemini.abandoned == ()
    assert [each.status for each in (truncated, bad, page, empty)] == [200] * 4
    for each in (truncated, bad):
        assert each.body.startswith(b'{"candidates')
        with pytest.raises(json.JSONDecodeError):
            _ = each.json
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert page.body.startswith(b"<!DOCTYPE html>")
    assert empty.body == b""
    assert cut.value.partial == truncated.body.replace(b"emulator-0", b"emulator-5")
    assert (proxy.status, proxy.headers["Content-Type"]) == (503, "text/html; charset=utf-8")


def test_streams_that_go_wrong() -> None:
    faults = ("truncated", "bad_json", "html", "empty", "cut", "disconnect")
    with GeminiEmulator(*(reply(chunks=["a", "b"], fault=fault) for fault in faults)) as gemini:
        truncated, bad, page, empty = (send(gemini, STREAM) for _ in range(4))
        with pytest.raises(http.client.IncompleteRead) as cut:
            send(gemini, STREAM)
        with pytest.raises(http.client.RemoteDisconnected):
            send(gemini, STREAM)
    for got in (truncated.body, bad.body, cut.value.partial):
        first, rest = got.split(b"\r\n\r\n", 1)
        assert text(json.loads(first.removeprefix(b"data: "))) == "a"
        with pytest.raises(json.JSONDecodeError):
            json.loads(rest.removeprefix(b"data: "))
    assert page.body.startswith(b"<!DOCTYPE html>")
    assert (empty.status, empty.body) == (200, b"")


def test_exceptions_are_what_a_client_sees_of_them() -> None:
    class OverloadedError(Exception):
        code = 503
        message = "overloaded"

    lost = ConnectionResetError("gone")
    with GeminiEmulator(
        lost, reply(chunks=["a"], raises=lost), reply(chunks=["a"], raises=lost), OverloadedError()
    ) as gemini:
        with pytest.raises(http.client.RemoteDisconnected):
            send(gemini)
        with pytest.raises(http.client.IncompleteRead) as cut:
            send(gemini, STREAM)
        with pytest.raises(http.client.RemoteDisconnected):
            send(gemini)  # not streamed, so it had not begun
        assert send(gemini).error == (503, "UNAVAILABLE", "overloaded")
    assert text(json.loads(cut.value.partial.split(b"\r\n\r\n")[0][6:])) == "a"


def test_a_timeout_is_silence() -> None:
    with GeminiEmulator(TimeoutError(), reply(chunks=["a"], raises=TimeoutError())) as gemini:
        for path in (GENERATE, STREAM):
            with pytest.raises(TimeoutError):
                send(gemini, path, timeout=0.2)
        assert _soon(lambda: [each.number for each in gemini.abandoned] == [0, 1])


def _soon(holds: Any) -> bool:
    ends = time.monotonic() + 10
    while not holds() and time.monotonic() < ends:
        time.sleep(0.01)
    return holds()


def test_only_an_emulator_has_a_connection() -> None:
    with pytest.raises(UsageError, match="there is no such fault"):
        reply("x", fault="broken")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="belongs to a status"):
        reply("x", retry_after=1)
    with pytest.raises(UsageError, match="belongs to an error"):
        reply("x", error_message="why")


# --- time ----------------------------------------------------------------------------------------


def test_parallel_requests_are_answered_in_parallel() -> None:
    together = asyncio.Barrier(20)

    async def answer(asked: Asked) -> str:
        await together.wait()  # until all have been asked
        return asked.prompt

    with GeminiEmulator(default=answer) as gemini, ThreadPoolExecutor(20) as pool:

        def ask(number: int) -> str:
            return text(send(gemini, body=says(str(number))).json)

        assert list(pool.map(ask, range(20))) == [str(n) for n in range(20)]


def test_an_answer_comes_after_its_latency() -> None:
    with GeminiEmulator(default="late", latency=0.3) as gemini:
        began = time.perf_counter()
        assert text(send(gemini).json) == "late"
        assert time.perf_counter() - began >= 0.3


def test_pauses_between_chunks() -> None:
    with GeminiEmulator(reply(chunks=["a", "b", "c"], pause=0.05)) as gemini:
        began = time.perf_counter()
        send(gemini, STREAM)
        assert time.perf_counter() - began >= 0.1


def test_a_stream_arrives_as_it_is_sent() -> None:
    with GeminiEmulator(reply(chunks=["a", "b"], pause=3600)) as gemini:
        port = int(gemini.url.rpartition(":")[2])
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
            connection.request("POST", STREAM, json.dumps(says()))
            first = connection.getresponse().readline()
    assert text(json.loads(first[6:])) == "a"


# --- from start to end ---------------------------------------------------------------------------


def test_clients_that_hang_do_not_keep_it_from_stopping() -> None:
    gemini = GeminiEmulator(default="late", latency=3600).start()
    port = int(gemini.url.rpartition(":")[2])
    silent, half, waiting = (socket.create_connection(("127.0.0.1", port)) for _ in range(3))
    with silent, half, waiting:
        half.sendall(b"POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nx")
        body = json.dumps(says()).encode()
        waiting.sendall(
            f"POST {GENERATE} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        assert _soon(lambda: len(gemini.calls) == 1)
        gemini.close()  # or it raises
        for sock in (silent, half, waiting):
            with suppress(ConnectionError):
                assert sock.recv(1) == b""
    gemini.close()
    assert repr(gemini) == "<GeminiEmulator stopped, 1 requests>"
    with pytest.raises(ConnectionError), socket.create_connection(("127.0.0.1", port)):
        pytest.fail("it still listens")


def test_a_client_that_reads_nothing_does_not_keep_it_from_stopping() -> None:
    big = reply(chunks=["x" * 1_000_000] * 50)
    body = json.dumps(says()).encode()
    with GeminiEmulator(big) as gemini:
        port = int(gemini.url.rpartition(":")[2])
        sock = socket.create_connection(("127.0.0.1", port))
        sock.sendall(
            f"POST {STREAM} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        assert _soon(lambda: len(gemini.calls) == 1)
        time.sleep(0.1)
    sock.close()


def test_it_runs_only_while_it_is_entered() -> None:
    gemini = GeminiEmulator(default="hi")
    for use in (lambda: gemini.url, lambda: gemini.env):
        with pytest.raises(UsageError, match="the emulator does not run"):
            use()
    with gemini as entered:
        assert entered is gemini
        assert gemini.start() is gemini
        assert repr(gemini) == f"<GeminiEmulator {gemini.url}, 0 requests>"
        assert send(gemini).status == 200
    with gemini:  # and again
        assert send(gemini).status == 200
    assert len(gemini.requests) == 2


async def test_it_can_be_entered_in_a_running_loop() -> None:
    async with GeminiEmulator("hi") as gemini:
        got = await asyncio.to_thread(send, gemini)
    assert text(got.json) == "hi"


def test_a_port_of_its_own() -> None:
    with GeminiEmulator() as one:
        port = int(one.url.rpartition(":")[2])
        with pytest.raises(OSError, match=r"address already in use|only one usage"):
            GeminiEmulator(port=port).start()
    with GeminiEmulator(port=port) as again:
        assert again.url == f"http://127.0.0.1:{port}"


def test_the_environment_leads_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "example.com, 127.0.0.1")
    monkeypatch.setenv("no_proxy", "example.com")
    with GeminiEmulator(keys=["mine"]) as gemini:
        assert gemini.env == {
            "GOOGLE_GEMINI_BASE_URL": gemini.url,
            "GOOGLE_API_KEY": "mine",
            "GOOGLE_GENAI_USE_ENTERPRISE": "false",
            "GOOGLE_GENAI_USE_VERTEXAI": "false",
            "NO_PROXY": "example.com,127.0.0.1",
            "no_proxy": "example.com,127.0.0.1",
        }


@pytest.mark.parametrize("name", ["keys", "denied", "models"])
def test_one_text_is_no_list(name: str) -> None:
    with pytest.raises(UsageError, match=f"{name}= takes a list of texts"):
        GeminiEmulator(**{name: "gemini"})  # pyright: ignore[reportArgumentType]


# --- scripts that fail ---------------------------------------------------------------------------


def test_a_prompt_that_nothing_answers_is_raised_at_the_end() -> None:
    got: list[Got] = []
    with pytest.raises(ScriptExhaustedError, match="no reply for call 2"), GeminiEmulator("a") as g:
        got += [send(g), send(g), send(g)]
    assert [each.status for each in got] == [200, 400, 400]
    assert "ScriptExhaustedError: the script has no reply for call 2" in got[1].error[2]
    assert len(g.failures) == 2


def _divides(asked: Asked) -> float:
    return asked.number / 0


def _fails(asked: Asked) -> str:
    pytest.fail("not this")


def _exits(asked: Asked) -> str:
    sys.exit("enough")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (_divides, ZeroDivisionError),
        (_fails, pytest.fail.Exception),
        (_exits, SystemExit),
        (len, TypeError),
        (Call("f", {"x": object()}), TypeError),
        (ValueError("no way to send it"), UsageError),
        (reply(3.5), UsageError),
    ],
)
def test_what_fails_in_a_script_is_raised_at_the_end(
    answer: Any, error: type[BaseException]
) -> None:
    def use() -> None:
        with GeminiEmulator(answer, "ok") as gemini:
            assert send(gemini, STREAM).error[:2] == (400, "INVALID_ARGUMENT")
            assert send(gemini).status == 200

    with pytest.raises(error):
        use()


def test_a_failing_test_is_told_that_the_script_failed_before() -> None:
    with pytest.raises(AssertionError) as caught, GeminiEmulator() as gemini:
        assert send(gemini).status == 200
    assert any("script failed before: ScriptExhausted" in note for note in caught.value.__notes__)


def test_a_function_that_does_not_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adk_fluent.testing._gemini._server._PATIENCE", 0.1)
    stuck = threading.Event()

    def wait(asked: Any) -> str:
        stuck.wait()
        return "late"

    gemini = GeminiEmulator(wait).start()
    with suppress(TimeoutError):
        send(gemini, timeout=0.2)
    server = gemini._server
    with pytest.raises(UsageError, match="a function of its script still runs"):
        gemini.close()
    stuck.set()
    assert server is not None
    server._thread.join()


# --- importing -----------------------------------------------------------------------------------


def test_importing_it_imports_little() -> None:
    code = (
        "import sys; before = set(sys.modules); import adk_fluent.testing as t; "
        "new = set(sys.modules) - before; print('http.server' in new, 'asyncio' in new); "
        "t.GeminiEmulator(); new = set(sys.modules) - before; "
        "print({m.split('.')[0] for m in new} & {'google', 'pydantic', 'pytest'})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["False False", "set()"]


def test_a_connection_that_was_not_served_yet_is_closed_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its task is cancelled before it begins."""
    closed: list[bool] = []
    accept = Server._accept

    def accept_and_cancel(
        server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        accept(server, reader, writer)
        (task,) = server._tasks
        task.cancel()
        task.add_done_callback(lambda _: closed.append(writer.transport.is_closing()))

    monkeypatch.setattr(Server, "_accept", accept_and_cancel)
    with GeminiEmulator("x") as gemini:
        port = int(gemini.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as client:
            assert client.recv(1) == b""
    assert closed == [True]
