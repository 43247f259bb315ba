"""Bad input of each kind on each transport, while another principal's stream runs.

Hostile cards and directories are in `test_cards_adk` and `test_directory_adk`.
"""

from __future__ import annotations

import asyncio
import json
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc.aio
import httpx
import pytest
from a2a.types import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    Part,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value
from serve_kit import ALL, calling, post, rpc, said, serving

from adk_fluent import Agent, gate
from adk_fluent.ir import StateFieldRef
from adk_fluent.serve import BearerAuth, Limits, PushPolicy
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from adk_fluent.builders import State
    from adk_fluent.serve import A2AServer

pytestmark = pytest.mark.adk

AUTH = BearerAuth({"a": "ann", "b": "bob"})
LIMITS = Limits(body_bytes=50_000, depth=20, parts=5, requests_per_second=1e6)
#: Stands for the task of another, and for one's own.
THEIRS, OURS = "<theirs>", "<ours>"
#: What no answer has in it.
LEAKS = re.compile(
    r"Traceback|site-packages|File \"|line \d+|\b[A-Z]\w*Error\b|Exception|recursion|protobuf"
    r"|set_int|<class"
)
HOOKS = "/tasks/{taskId}/pushNotificationConfigs"
#: Each method: what its call of gRPC takes, and its verb and path.
METHODS: dict[str, tuple[Any, str, str]] = {
    "SendMessage": (SendMessageRequest, "POST", "/message:send"),
    "SendStreamingMessage": (SendMessageRequest, "POST", "/message:stream"),
    "GetTask": (GetTaskRequest, "GET", "/tasks/{id}"),
    "ListTasks": (ListTasksRequest, "GET", "/tasks"),
    "CancelTask": (CancelTaskRequest, "POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": (SubscribeToTaskRequest, "GET", "/tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": (TaskPushNotificationConfig, "POST", HOOKS),
    "GetTaskPushNotificationConfig": (
        GetTaskPushNotificationConfigRequest,
        "GET",
        HOOKS + "/{id}",
    ),
    "DeleteTaskPushNotificationConfig": (
        DeleteTaskPushNotificationConfigRequest,
        "DELETE",
        HOOKS + "/{id}",
    ),
    "ListTaskPushNotificationConfigs": (ListTaskPushNotificationConfigsRequest, "GET", HOOKS),
    "GetExtendedAgentCard": (GetExtendedAgentCardRequest, "GET", "/extendedAgentCard"),
}


class Error(NamedTuple):
    """How an error is told on each transport."""

    rpc: int
    rest: int
    grpc: str


INVALID = Error(-32602, 400, "INVALID_ARGUMENT")
NOT_FOUND = Error(-32001, 404, "NOT_FOUND")
NOT_SUPPORTED = Error(-32004, 400, "FAILED_PRECONDITION")


def sends(*parts: Any, **more: Any) -> dict[str, Any]:
    return {"message": said("x") | {"parts": list(parts) or [{"text": "x"}], **more}}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


OF_HOOK = {"taskId": THEIRS, "id": "h"}
CALLS: list[tuple[str, str, Any, Error]] = [
    ("no message", "SendMessage", {}, INVALID),
    ("no parts", "SendMessage", {"message": said("x") | {"parts": []}}, INVALID),
    ("no id", "SendMessage", sends(messageId=""), INVALID),
    ("no role", "SendMessage", sends(role="ROLE_UNSPECIFIED"), INVALID),
    ("an empty part", "SendStreamingMessage", sends({}), INVALID),
    ("many parts", "SendMessage", sends(*[{"text": "x"}] * 6), INVALID),
    ("a part by URL", "SendMessage", sends({"url": "gs://b/s"}), INVALID),
    ("bytes of no type", "SendMessage", sends({"raw": "AAAA"}), INVALID),
    (
        "bytes of a type that is not taken",
        "SendMessage",
        sends({"raw": "AA==", "mediaType": "image/png"}),
        Error(-32005, 400, "INVALID_ARGUMENT"),
    ),
    ("data that does not fit", "SendMessage", sends({"data": {"limit": "much"}}), INVALID),
    ("a text that no Postgres keeps", "SendMessage", sends({"text": "a\0b"}), INVALID),
    ("a context that no Postgres keeps", "SendMessage", sends(contextId="c\0"), INVALID),
    ("a long context", "SendMessage", sends(contextId="c" * 256), INVALID),
    ("another's task", "SendMessage", sends(taskId=THEIRS), NOT_FOUND),
    ("another's task", "SendStreamingMessage", sends(taskId=THEIRS), NOT_FOUND),
    ("another's task", "GetTask", {"id": THEIRS}, NOT_FOUND),
    ("another's task", "CancelTask", {"id": THEIRS}, NOT_FOUND),
    ("another's task", "SubscribeToTask", {"id": THEIRS}, NOT_FOUND),
    ("another's hook", "GetTaskPushNotificationConfig", OF_HOOK, NOT_FOUND),
    ("another's hook", "DeleteTaskPushNotificationConfig", OF_HOOK, NOT_FOUND),
    ("another's hooks", "ListTaskPushNotificationConfigs", {"taskId": THEIRS}, NOT_FOUND),
    (
        "a hook of another's task",
        "CreateTaskPushNotificationConfig",
        {**OF_HOOK, "url": "http://127.0.0.1:9/"},
        NOT_FOUND,
    ),
    (
        "no such hook",
        "GetTaskPushNotificationConfig",
        {"taskId": OURS, "id": "nothing"},
        NOT_FOUND,
    ),
    (
        "a hook for the metadata service",
        "CreateTaskPushNotificationConfig",
        {"taskId": OURS, "id": "h", "url": "http://169.254.169.254/"},
        INVALID,
    ),
    (
        "a hook that is no URL",
        "CreateTaskPushNotificationConfig",
        {"taskId": OURS, "id": "h", "url": "\n\u0000:"},
        INVALID,
    ),
    ("a task of another context", "SendMessage", sends(taskId=OURS, contextId="c"), INVALID),
    ("a negative length", "GetTask", {"id": OURS, "historyLength": -1}, INVALID),
    ("a large page", "ListTasks", {"pageSize": 1000}, INVALID),
    ("no such page", "ListTasks", {"pageToken": "nothing"}, INVALID),
    ("no extended card", "GetExtendedAgentCard", {}, NOT_SUPPORTED),
]


class World(NamedTuple):
    """A server, and a task of each of its two principals.

    Attributes:
        ids: What stands for a task, and its id.
        hold: Lets the stream of the other principal go on.
    """

    server: A2AServer
    channel: grpc.aio.Channel
    ids: dict[str, str]

    def of(self, params: Any) -> Any:
        """Parameters with the ids of this world."""
        text = json.dumps(params)
        for each, id in self.ids.items():
            text = text.replace(each, id)
        return json.loads(text)

    async def told(self, transport: str, method: str, params: Any) -> tuple[Any, str]:
        """Do something as ann; gives the error's code and all that came."""
        takes, verb, path = METHODS[method]
        params = self.of(params)
        if transport == "GRPC":
            return await self.grpc(method, ParseDict(params, takes()).SerializeToString())
        if transport == "JSONRPC":
            return _rpc(
                await post(self.server.url, rpc(method, **params), authorization="Bearer a")
            )
        url = self.server.url + path.format(**{"id": "", "taskId": "", **params})
        rest = {key: value for key, value in params.items() if f"{{{key}}}" not in path}
        headers = {"authorization": "Bearer a", "a2a-version": "1.0"}
        async with httpx.AsyncClient() as http:
            asked = http.build_request(
                verb,
                url,
                json=rest if verb == "POST" else None,
                params=None if verb == "POST" else rest,
                headers=headers,
                timeout=120,
            )
            response = await http.send(asked)
        return response.status_code, response.text

    async def grpc(self, method: str, body: bytes, **metadata: str) -> tuple[str, str]:
        """Call with bytes as they are."""
        given = {"authorization": "Bearer a", "a2a-version": "1.0"} | {
            key.replace("_", "-"): value for key, value in metadata.items()
        }
        channel: Any = self.channel
        made = channel.unary_stream(f"/lf.a2a.v1.A2AService/{method}")
        call = made(body, metadata=list(given.items()), timeout=120)
        answers: list[bytes] = []
        try:
            async for each in call:
                answers.append(each)  # noqa: PERF401  # what came stays, where it fails
        except grpc.aio.AioRpcError as error:
            return error.code().name, f"{error.details()} {error.trailing_metadata()}"
        return "OK", repr(answers)


def _rpc(response: httpx.Response) -> tuple[Any, str]:
    if response.headers["content-type"].startswith("text/event-stream"):
        return json.loads(response.text.partition("data: ")[2])["error"]["code"], response.text
    return response.json().get("error", {}).get("code"), response.text


@asynccontextmanager
async def world() -> AsyncGenerator[World]:
    """A server at which bob's stream runs all the time, and is whole at the end."""
    entered, go = asyncio.Event(), asyncio.Event()

    async def wait(state: State) -> Mapping[str, Any]:
        if state.get("hold"):
            entered.set()
            await go.wait()
        return {}

    asks = gate(lambda state: not state.get("hold"), message="Go on?")
    async with (
        serving(
            wait >> asks >> Agent("desk", ScriptedModel(default="Done.")),
            auth=AUTH,
            limits=LIMITS,
            inputs=["hold", StateFieldRef("limit", int)],
            push=PushPolicy(allow_private=True),
            grpc_port=0,
        ) as server,
        calling(server, authorization="Bearer a") as ann,
        calling(server, authorization="Bearer b") as bob,
        grpc.aio.insecure_channel(server.grpc_url.partition("//")[2]) as channel,
    ):
        hold = Part(data=ParseDict({"hold": True}, Value()))
        stream = asyncio.ensure_future(bob.send(hold))
        await entered.wait()
        (theirs,) = await bob.list()
        ours = (await ann.send("Go.")).task.id
        yield World(server, channel, {THEIRS: theirs.id, OURS: ours})
        assert not stream.done()
        assert {each.id for each in await ann.list()} == {ours}
        go.set()
        told = await stream
        assert (told.task.id, told.states, told.text) == (
            theirs.id,
            ["working", "completed"],
            "Done.",
        )


def assert_quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing went wrong here."""
    mine = [each for each in caplog.records if each.name == "adk_fluent"]
    assert not [each.message for each in mine if each.levelname == "ERROR"]


@pytest.mark.parametrize("transport", ALL)
async def test_bad_calls_are_protocol_errors(
    transport: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with world() as here:
        for kind, method, params, expected in CALLS:
            code, text = await here.told(transport, method, params)
            wanted = expected[ALL.index(transport)]
            assert code == wanted, (kind, method, text)
            assert LEAKS.search(text) is None, (kind, method, text)
            assert here.ids[THEIRS] not in text or THEIRS in json.dumps(params)
    assert_quiet(caplog)


#: Bodies that no client of the SDK sends: what is sent, to what path, and the status and code.
GO = rpc("SendMessage", message=said("Go."))


def rpc_with(data: bytes) -> bytes:
    """A message whose data is written so."""
    return json.dumps(rpc("SendMessage", **sends({"data": "@"}))).encode().replace(b'"@"', data)


BODIES: list[tuple[str, str, Any, int, int | None]] = [
    ("no JSON", "", b"{", 200, -32700),
    ("nothing", "", b"", 200, -32700),
    ("no UTF-8", "", b"\xff\xfe", 200, -32700),
    ("an array", "", b"[]", 200, -32600),
    ("a batch", "", [GO], 200, -32600),
    ("no request", "", {}, 200, -32600),
    ("another version of JSON-RPC", "", GO | {"jsonrpc": "1.0"}, 200, -32600),
    ("an id that is an object", "", GO | {"id": {}}, 200, -32600),
    ("no such method", "", rpc("Nothing"), 200, -32601),
    ("params of another kind", "", GO | {"params": "x"}, 200, -32600),
    ("a message of another kind", "", rpc("SendMessage", message="x"), 200, -32602),
    ("half a character", "", b'{"jsonrpc":"2.0","id":"\\ud800","method":"GetTask"}', 200, -32700),
    ("a long number", "", b'{"id":' + b"9" * 5000 + b"}", 200, -32700),
    ("no number", "", b'{"id":NaN}', 200, -32700),
    ("an infinite number", "", rpc_with(b"1e999"), 200, -32700),
    ("deep", "", b'{"params":' + b"[" * 20_000, 400, -32600),
    ("a string that does not end", "", b'["' + b'\\"' * 20_000, 200, -32700),
    ("too much", "", b'{"x":"' + b"x" * 60_000, 413, -32600),
    ("no JSON", "/message:send", b"{", 400, None),
    ("nothing", "/message:send", b"", 400, None),
    ("no UTF-8", "/message:stream", b"\xff\xfe", 400, None),
    ("an array", "/message:send", b"[]", 400, None),
    ("a message of another kind", "/message:send", {"message": "x"}, 400, None),
    ("half a character", "/message:send", b'{"message":{"messageId":"\\ud800"}}', 400, None),
    ("a long number", "/message:send", b'{"id":' + b"9" * 5000 + b"}", 400, None),
    ("deep", "/message:send", b"[" * 20_000, 400, None),
    ("too much", "/message:send", b'"' + b"x" * 60_000, 413, None),
    ("no such path", "/nothing", {}, 404, None),
]
HEADERS: list[tuple[str, dict[str, str], int, int | None]] = [
    ("a version that is to come", {"a2a_version": "9.9"}, 200, -32009),
    ("no version, which means 0.3", {"a2a_version": ""}, 200, -32009),
    ("what a page may send unasked", {"content_type": "text/plain"}, 415, -32600),
    ("nobody", {"authorization": ""}, 401, -32600),
]


async def test_bad_bodies_are_protocol_errors(caplog: pytest.LogCaptureFixture) -> None:
    async with world() as here:
        asked: list[tuple[str, str, Any, int, int | None, dict[str, str]]]
        asked = [(*each, {}) for each in BODIES]
        asked += [(kind, "", GO, status, code, given) for kind, given, status, code in HEADERS]
        for kind, path, body, status, code, given in asked:
            headers: dict[str, str] = {"authorization": "Bearer a", **given}
            response = await post(here.server.url + path, body, **headers)
            assert response.status_code == status, (kind, response.text)
            if code is not None:
                assert response.json()["error"]["code"] == code, (kind, response.text)
            assert LEAKS.search(response.text) is None, (kind, response.text)
    assert_quiet(caplog)


async def test_bad_bytes_over_grpc_are_protocol_errors(caplog: pytest.LogCaptureFixture) -> None:
    deep = ParseDict(sends({"data": nested(21)}), SendMessageRequest())
    large = ParseDict(sends({"text": "x" * 60_000}), SendMessageRequest())
    strange = ParseDict(sends({"data": 1}), SendMessageRequest())
    strange.message.parts[0].data.number_value = float("nan")
    cases: list[tuple[str, str, bytes, str, dict[str, str]]] = [
        ("no message", "ListTasks", b"\xff\xff\xff", "INVALID_ARGUMENT", {}),
        ("no UTF-8", "GetTask", b"\x12\x02\xff\xfe", "INVALID_ARGUMENT", {}),
        ("no message", "SendStreamingMessage", b"\xff\xff\xff", "INVALID_ARGUMENT", {}),
        ("no number", "SendMessage", strange.SerializeToString(), "INVALID_ARGUMENT", {}),
        ("deep", "SendMessage", deep.SerializeToString(), "INVALID_ARGUMENT", {}),
        ("too much", "SendMessage", large.SerializeToString(), "RESOURCE_EXHAUSTED", {}),
        ("no such method", "Nothing", b"", "UNIMPLEMENTED", {}),
        ("a version to come", "ListTasks", b"", "FAILED_PRECONDITION", {"a2a_version": "9.9"}),
        ("no version", "ListTasks", b"", "FAILED_PRECONDITION", {"a2a_version": ""}),
        ("nobody", "ListTasks", b"", "UNAUTHENTICATED", {"authorization": ""}),
    ]
    async with world() as here:
        for kind, method, body, code, given in cases:
            told, text = await here.grpc(method, body, **given)
            assert told == code, (kind, text)
            assert LEAKS.search(text) is None, (kind, text)
    assert_quiet(caplog)
