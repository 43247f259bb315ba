"""Push notifications: who may ask for them, where they may go, and that they arrive."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from a2a.types import (
    AuthenticationInfo,
    DeleteTaskPushNotificationConfigRequest,
    GetTaskPushNotificationConfigRequest,
    ListTaskPushNotificationConfigsRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError
from serve_kit import BINDINGS, Caller, calling, post, rpc, said, serving

from adk_fluent import Agent, gate
from adk_fluent.errors import UsageError
from adk_fluent.serve import BearerAuth, Limits, PushPolicy, _push_adk, _targets
from adk_fluent.serve._targets import TargetError, allowed, target_of
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping
    from pathlib import Path

    from adk_fluent.builders import State

pytestmark = pytest.mark.adk

HERE = PushPolicy(allow_private=True, timeout=5.0)


def asks() -> Any:
    return gate(message="Pay it?", name="ok") >> Agent("paid", ScriptedModel(default="done"))


@dataclass
class Receiver:
    """What came to an HTTP server, and what it answers: statuses in turn, then 200."""

    url: str = ""
    statuses: list[int] = field(default_factory=list[int])
    heads: list[str] = field(default_factory=list[str])
    bodies: list[Any] = field(default_factory=list[Any])
    came: asyncio.Condition = field(default_factory=asyncio.Condition)
    hold: asyncio.Event | None = None

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        body = json.loads(await reader.readexactly(length))
        if self.hold is not None:
            await self.hold.wait()
        status = self.statuses.pop(0) if self.statuses else 200
        more = "location: http://127.0.0.1:1/other\r\n" if status == 302 else ""
        writer.write(f"HTTP/1.1 {status} x\r\n{more}content-length: 0\r\n\r\n".encode())
        async with self.came:
            self.heads.append(head)
            self.bodies.append(body)
            self.came.notify_all()
        writer.close()

    async def wait(self, count: int) -> None:
        async with self.came:
            waiting = self.came.wait_for(lambda: len(self.bodies) >= count)
            await asyncio.wait_for(waiting, 5)

    @property
    def states(self) -> list[str]:
        states = [each["statusUpdate"]["status"]["state"] for each in self.bodies]
        return [each.removeprefix("TASK_STATE_").lower() for each in states]


@asynccontextmanager
async def receiving(*statuses: int, tls: ssl.SSLContext | None = None) -> AsyncGenerator[Receiver]:
    taken = Receiver(statuses=list(statuses))
    server = await asyncio.start_server(taken.take, "127.0.0.1", 0, ssl=tls)
    port = server.sockets[0].getsockname()[1]
    taken.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/hook?x=1"
    try:
        yield taken
    finally:
        server.close()


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits between tries, which take no time here."""
    made: list[float] = []

    async def pause(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr(_push_adk, "pause", pause)
    return made


async def wish(caller: Caller, task: str, url: str, **more: Any) -> TaskPushNotificationConfig:
    config = TaskPushNotificationConfig(task_id=task, url=url, **more)
    return await caller.client.create_task_push_notification_config(config, context=caller.context)


@pytest.mark.parametrize("binding", BINDINGS)
async def test_configs_are_set_read_listed_and_deleted_and_the_end_is_told(binding: str) -> None:
    async with (
        receiving() as hook,
        serving(asks(), push=HERE) as server,
        calling(server, binding) as caller,
    ):
        assert server._card is not None
        told = await caller.send("Pay.")
        id = told.task.id
        secret = AuthenticationInfo(scheme="Bearer", credentials="s3cret")
        made = await wish(caller, id, hook.url, id="c1", token="tok", authentication=secret)
        await wish(caller, id, hook.url + "2", id="c2")
        where: Any = {"task_id": id, "id": "c1"}
        found = await caller.client.get_task_push_notification_config(
            GetTaskPushNotificationConfigRequest(**where), context=caller.context
        )
        assert found == made
        await caller.client.delete_task_push_notification_config(
            DeleteTaskPushNotificationConfigRequest(task_id=id, id="c2"), context=caller.context
        )
        listed = await caller.client.list_task_push_notification_configs(
            ListTaskPushNotificationConfigsRequest(task_id=id), context=caller.context
        )
        assert [each.id for each in listed.configs] == ["c1"]
        await caller.send("yes", task=id)
        await hook.wait(1)
    assert hook.states == ["completed"]
    assert hook.bodies[0]["statusUpdate"]["taskId"] == id
    (head,) = hook.heads
    assert head.startswith("post /hook?x=1 http/1.1")
    for line in (
        "x-a2a-notification-token: tok",
        "authorization: bearer s3cret",
        "content-type: application/a2a+json",
    ):
        assert line in head
    assert "done" not in json.dumps(hook.bodies)  # the receiver reads the task for the answer


async def test_a_config_comes_with_a_message_and_each_wait_and_end_is_told_in_order() -> None:
    async with receiving() as hook, serving(asks(), push=HERE) as server:
        for_all = {"taskPushNotificationConfig": {"url": hook.url}}
        body = rpc("SendMessage", message=said("Pay."), configuration=for_all)
        task = (await post(server.url, body)).json()["result"]["task"]
        await hook.wait(1)
        async with calling(server) as caller:
            await caller.send("perhaps", task=task["id"])  # no answer: it is asked again
            await caller.cancel(task["id"])
        await hook.wait(3)
    assert hook.states == ["input_required", "input_required", "canceled"]


async def test_without_a_policy_a_message_with_a_config_is_refused_and_nothing_runs() -> None:
    model = ScriptedModel(default="x")
    async with serving(Agent("a", model)) as server:
        config = {"taskPushNotificationConfig": {"url": "https://example.com/"}}
        body = rpc("SendMessage", message=said("Go."), configuration=config)
        assert (await post(server.url, body)).json()["error"]["code"] == -32003
        async with httpx.AsyncClient() as http:
            card = (await http.get(server.card_url)).json()
    assert not model.calls
    assert not card["capabilities"].get("pushNotifications")


async def test_configs_survive_a_restart(tmp_path: Path) -> None:
    options: Any = {"task_store": f"sqlite:///{tmp_path}/tasks.db", "push": HERE}
    async with receiving() as hook:
        async with serving(asks(), **options) as server, calling(server) as caller:
            one, two = [(await caller.send("Pay.")).task.id for _ in range(2)]
            await wish(caller, one, hook.url)
            await wish(caller, two, hook.url)
        async with serving(asks(), **options) as server, calling(server) as caller:
            await caller.send("yes", task=one)
            await hook.wait(1)
            await caller.cancel(two)
            await hook.wait(2)
    assert hook.states == ["completed", "canceled"]


async def test_configs_are_their_principal_s() -> None:
    auth = BearerAuth({"a": "ann", "b": "bob"})
    async with (
        serving(asks(), auth=auth, push=HERE) as server,
        calling(server, authorization="Bearer a") as ann,
        calling(server, authorization="Bearer b") as bob,
    ):
        id = (await ann.send("Pay.")).task.id
        await wish(ann, id, "http://127.0.0.1:9/")
        client, context = bob.client, bob.context
        get = GetTaskPushNotificationConfigRequest(task_id=id, id=id)
        drop = DeleteTaskPushNotificationConfigRequest(task_id=id, id=id)
        several = ListTaskPushNotificationConfigsRequest(task_id=id)
        for reach in (
            wish(bob, id, "http://127.0.0.1:9/mine"),
            client.get_task_push_notification_config(get, context=context),
            client.list_task_push_notification_configs(several, context=context),
            client.delete_task_push_notification_config(drop, context=context),
        ):
            with pytest.raises(TaskNotFoundError):
                await reach
        found = await ann.client.list_task_push_notification_configs(several, context=ann.context)
        assert [each.url for each in found.configs] == ["http://127.0.0.1:9/"]


async def test_a_task_has_so_many_configs_and_they_go_with_it() -> None:
    policy = PushPolicy(allow_private=True, per_task=2)
    async with (
        serving(asks(), push=policy, limits=Limits(kept_tasks=1)) as server,
        calling(server) as caller,
    ):
        id = (await caller.send("Pay.")).task.id
        making = [wish(caller, id, "http://127.0.0.1:9/", id=f"c{at}") for at in range(4)]
        made = await asyncio.gather(*making, return_exceptions=True)
        assert sum(isinstance(each, InvalidParamsError) for each in made) == 2
        await caller.send("Another.")  # and the first task is dropped
        assert not server._stores.configs._push_notification_infos


# --- where they may go ---------------------------------------------------------------------------

REFUSED = [
    "http://example.com/",  # others can read it
    "ftp://example.com/",
    "https://user:pw@example.com/",
    "https://127.0.0.1/",
    "https://localhost/",
    "https://0x7f.1/",
    "https://2130706433/",
    "https://10.0.0.1/",
    "https://172.16.9.9/",
    "https://192.168.1.1/",
    "https://100.64.0.1/",
    "https://169.254.169.254/latest/meta-data",
    "https://168.63.129.16/",
    "https://100.100.100.200/",
    "https://0.0.0.0/",
    "https://224.0.0.1/",
    "https://255.255.255.255/",
    "https://[::1]/",
    "https://[::]/",
    "https://[fe80::1]/",
    "https://[fd00:ec2::254]/",
    "https://[ff02::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[::127.0.0.1]/",
    "https:///",
    "https://host with blank/",
    "https://example.com:99999/",
    "nothing",
    "",
]
#: Not even where private addresses are allowed.
NEVER = [
    "169.254.169.254",
    "168.63.129.16",
    "fd00:ec2::254",
    "224.0.0.1",
    "0.0.0.0",
    "fe80::1",
]


async def test_only_public_addresses_over_https_are_sent_to() -> None:
    policy = PushPolicy()
    for url in REFUSED:
        with pytest.raises(TargetError):
            await target_of(url, policy)
    assert (await target_of("https://8.8.8.8/x?y", policy)).url == "https://8.8.8.8:443/x?y"
    found = await target_of("https://[2606:4700::1]:8443/", policy)
    assert found.url == "https://[2606:4700::1]:8443/"
    private = PushPolicy(allow_private=True)
    for address in ("127.0.0.1", "10.1.2.3", "::1", "fd00::1"):
        assert allowed(ipaddress.ip_address(address), private)
    for address in NEVER:
        assert not allowed(ipaddress.ip_address(address), private)


async def test_a_refused_url_is_one_answer_and_tells_nothing() -> None:
    async with serving(asks(), push=PushPolicy()) as server, calling(server) as caller:
        id = (await caller.send("Pay.")).task.id
        for url in ("https://127.0.0.1/", "http://example.com/", "https://nowhere.invalid/"):
            with pytest.raises(InvalidParamsError, match=r"^Nothing is sent to such a URL$"):
                await wish(caller, id, url)
        with pytest.raises(InvalidParamsError, match="at most 4096 bytes"):
            await wish(caller, id, "https://8.8.8.8/" + "x" * 4096)
        with pytest.raises(InvalidParamsError, match="no header has"):
            await wish(caller, id, "https://8.8.8.8/", token="a\r\nhost: b")
        bad = AuthenticationInfo(scheme="Bearer x", credentials="y")
        with pytest.raises(InvalidParamsError, match="one word"):
            await wish(caller, id, "https://8.8.8.8/", authentication=bad)


async def test_a_name_that_is_rebound_is_not_followed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        receiving() as hook,
        serving(asks(), push=PushPolicy()) as server,
        calling(server) as caller,
    ):
        answers = [["93.184.216.34"], ["127.0.0.1"], ["93.184.216.34", "10.0.0.1"]]

        async def look_up(_host: str, _port: int) -> list[str]:
            return answers.pop(0)

        monkeypatch.setattr(_targets, "look_up", look_up)
        assert server._sender is not None
        id = (await caller.send("Pay.")).task.id
        port = hook.url.split(":")[2].split("/")[0]
        await wish(caller, id, f"https://rebind.test:{port}/")  # which is public now
        await caller.send("yes", task=id)
        await asyncio.gather(*server._sender._all)
        assert "its host is not one that is sent to" in caplog.text
        with pytest.raises(InvalidParamsError):
            await wish(caller, id, "https://rebind.test/")  # one of its addresses is private
    assert not hook.bodies
    assert not answers


async def test_the_address_that_was_checked_is_the_one_that_is_sent_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", _certificate(tmp_path, "hooks.test"))
    asked: list[str] = []

    async def look_up(host: str, _port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    monkeypatch.setattr(_targets, "look_up", look_up)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    async with (
        receiving(tls=tls) as hook,
        serving(asks(), push=HERE) as server,
        calling(server) as caller,
    ):
        id = (await caller.send("Pay.")).task.id
        url = hook.url.replace("127.0.0.1", "hooks.test")
        await wish(caller, id, url)
        await caller.send("yes", task=id)
        await hook.wait(1)
    assert asked == ["hooks.test"] * 2  # when it was set, and once for the delivery
    assert f"host: {url.split('/')[2]}" in hook.heads[0]


def _certificate(folder: Path, name: str) -> str:
    from datetime import UTC, datetime, timedelta

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(pem, *plain))
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    return str(folder / "cert.pem")


# --- delivery ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statuses", "tries"),
    [([503, 429], 3), ([500] * 9, 4), ([302], 1), ([404], 1)],
    ids=["again", "given up", "no redirect", "refused"],
)
async def test_a_delivery_is_tried_again_a_few_times(
    statuses: list[int], tries: int, waits: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    async with (
        receiving(*statuses) as hook,
        serving(asks(), push=HERE) as server,
        calling(server) as caller,
    ):
        id = (await caller.send("Pay.")).task.id
        await wish(caller, id, hook.url, token="s3cret")
        assert (await caller.send("yes", task=id)).state == "completed"
        await hook.wait(tries)
    assert len(hook.bodies) == tries
    assert all(2**at / 2 <= each <= 2**at for at, each in enumerate(waits))
    assert ("failed: HTTP status" in caplog.text) is (tries != 3)
    assert "s3cret" not in caplog.text
    assert "x=1" not in caplog.text  # a query may be a secret, too


async def test_a_receiver_that_hangs_holds_up_nothing_and_is_given_up_at_the_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("adk_fluent.serve._server_adk._QUIET_SECONDS", 0.1)
    policy = PushPolicy(allow_private=True, timeout=60.0)
    async with receiving() as hook:
        hook.hold = asyncio.Event()
        async with serving(asks(), push=policy) as server, calling(server) as caller:
            id = (await caller.send("Pay.")).task.id
            await wish(caller, id, hook.url)
            assert (await caller.send("yes", task=id)).state == "completed"
        hook.hold.set()
    assert "given up: the server stops" in caplog.text


async def test_what_ends_at_the_stop_is_told_still() -> None:
    async with receiving() as hook:
        entered = asyncio.Event()

        async def wait(state: State) -> Mapping[str, Any]:
            entered.set()
            await asyncio.Event().wait()
            return {}

        async with serving(wait >> Agent("a", ScriptedModel()), push=HERE) as server:
            config = {"taskPushNotificationConfig": {"url": hook.url}, "returnImmediately": True}
            await post(server.url, rpc("SendMessage", message=said("Go."), configuration=config))
            await entered.wait()
        assert hook.states == ["failed"]


@pytest.mark.parametrize(
    "given", [{"allow_private": "yes"}, {"timeout": 0}, {"attempts": 1.5}, {"per_task": -1}]
)
def test_a_policy_that_cannot_be_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"PushPolicy\("):
        PushPolicy(**given)
