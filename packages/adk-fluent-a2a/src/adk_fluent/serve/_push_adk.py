"""Push notifications: who asked for them, and their delivery."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter, OrderedDict
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import httpx
from a2a.server.context import ServerCallContext
from a2a.server.tasks import PushNotificationConfigStore, PushNotificationSender
from a2a.types import TaskState, TaskStatusUpdateEvent
from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import to_stream_response
from google.protobuf.json_format import MessageToDict

from adk_fluent.extend import LOG, public_address
from adk_fluent.serve._gate import Principal
from adk_fluent.serve._logs import log_failure
from adk_fluent.serve._targets import TargetError, UnknownHostError, target_of

if TYPE_CHECKING:
    from a2a.types import TaskPushNotificationConfig

    from adk_fluent.serve._limits import PushPolicy

#: Whose request it is, and whose task what runs in its context tells of.
PRINCIPAL: Final[ContextVar[str]] = ContextVar("adk_fluent_serve_principal", default="")

#: The states that are told: a task waits for its client, or is over.
_TOLD: Final = frozenset(
    {
        TaskState.TASK_STATE_INPUT_REQUIRED,
        TaskState.TASK_STATE_AUTH_REQUIRED,
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)
_WAITS: Final = (TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED)
_REMEMBERED: Final = 10_000  # tasks whose end was told
_AT_ONCE: Final = 20  # deliveries of one principal
_WAITING: Final = 1_000  # notifications of one principal
_LONGEST: Final = 4096  # bytes of a config
_LONGEST_ID: Final = 255  # as the SDK's column
#: How a wait between tries is made.
pause: Final = asyncio.sleep


class Sender(PushNotificationSender):
    """Delivers notifications in the background, those of one task in their order.

    Each names the task's new state; the receiver reads the task for the rest. What cannot be
    delivered is logged and given up.

    Args:
        policy: Where they may go.
        configs: Who asked for them.
    """

    def __init__(self, policy: PushPolicy, configs: PushNotificationConfigStore) -> None:
        self._policy = policy
        self._configs = configs
        self._client: httpx.AsyncClient | None = None
        self._last: dict[str, asyncio.Task[None]] = {}
        self._all: set[asyncio.Task[None]] = set()
        self._waiting: Counter[str] = Counter()
        self._gates: dict[str, asyncio.Semaphore] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    # --- configs -------------------------------------------------------------------------------

    async def check(self, config: TaskPushNotificationConfig) -> None:
        """Refuse a config that cannot be used.

        Raises:
            InvalidParamsError: It is too large, or sends where nothing is sent.
        """
        if config.ByteSize() > _LONGEST or len(config.id) > _LONGEST_ID:
            raise InvalidParamsError(f"A push config has at most {_LONGEST} bytes")
        said = (config.token, config.authentication.scheme, config.authentication.credentials)
        if not all(each.isascii() and each.isprintable() for each in said):
            raise InvalidParamsError("A token or credentials have characters that no header has")
        if " " in config.authentication.scheme:
            raise InvalidParamsError("The scheme of an authentication is one word")
        try:
            await target_of(config.url, self._policy)
        except TargetError as error:
            place = public_address(config.url)
            LOG.warning("a push config with the URL %s was refused: %s", place, error)
            raise InvalidParamsError("Nothing is sent to such a URL") from None

    # --- notifications -------------------------------------------------------------------------

    async def send_notification(self, task_id: str, event: Any) -> None:
        """Take a notification, which is delivered later; most events need none."""
        if isinstance(event, TaskStatusUpdateEvent):
            self.tell(PRINCIPAL.get(), event)

    def tell(self, principal: str, event: TaskStatusUpdateEvent) -> None:
        """Deliver the state of a principal's task later; the end of one is told once."""
        id, state = event.task_id, event.status.state
        if state not in _TOLD or id in self._ended:
            return
        if self._waiting[principal] >= _WAITING:
            LOG.warning("a push notification of task %s was dropped: too many wait", id)
            return
        if state not in _WAITS:
            self._ended[id] = None
            if len(self._ended) > _REMEMBERED:
                self._ended.popitem(last=False)
        body = json.dumps(MessageToDict(to_stream_response(event))).encode()
        self._waiting[principal] += 1
        here = asyncio.create_task(self._after(self._last.get(id), principal, id, body))
        self._last[id] = here
        self._all.add(here)
        here.add_done_callback(lambda _: self._done(id, principal, here))

    def _done(self, id: str, principal: str, here: asyncio.Task[None]) -> None:
        self._all.discard(here)
        if self._last.get(id) is here:
            del self._last[id]
        self._waiting[principal] -= 1
        if not self._waiting[principal]:
            del self._waiting[principal]
            self._gates.pop(principal, None)

    async def _after(
        self, before: asyncio.Task[None] | None, principal: str, id: str, body: bytes
    ) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            context = ServerCallContext(user=Principal(principal))
            configs = await self._configs.get_info(id, context)
            await asyncio.gather(*(self._deliver(principal, each, body) for each in configs))
        except Exception as error:  # noqa: BLE001  # of the store: a task does not fail by it
            log_failure(f"push notifications of task {id} could not be sent", error)

    async def _deliver(
        self, principal: str, config: TaskPushNotificationConfig, body: bytes
    ) -> None:
        gate = self._gates.setdefault(principal, asyncio.Semaphore(_AT_ONCE))
        for left in reversed(range(self._policy.attempts)):
            async with gate:
                fault, again = await self._try(config, body)
            if fault is None:
                return
            if not again or not left:
                place = public_address(config.url)
                LOG.warning(
                    "a push notification of task %s to %s failed: %s", config.task_id, place, fault
                )
                return
            delay = 2 ** (self._policy.attempts - 1 - left)
            await pause(delay * (1 - 0.5 * random.random()))  # noqa: S311  # guards nothing

    async def _try(
        self, config: TaskPushNotificationConfig, body: bytes
    ) -> tuple[str | None, bool]:
        """Send once; gives what went wrong, and whether it may go better another time."""
        headers = {"content-type": "application/a2a+json", "connection": "close"}
        if config.token:
            headers["x-a2a-notification-token"] = config.token
        if config.authentication.scheme and config.authentication.credentials:
            scheme, secret = config.authentication.scheme, config.authentication.credentials
            headers["authorization"] = f"{scheme} {secret}"
        try:
            async with asyncio.timeout(self._policy.timeout):
                target = await target_of(config.url, self._policy)
                headers["host"] = target.host
                # nothing of the answer but its status is read
                async with self._http().stream(
                    "POST",
                    target.url,
                    content=body,
                    headers=headers,
                    extensions={"sni_hostname": target.name},
                ) as response:
                    status = response.status_code
        except TargetError as error:
            return str(error), isinstance(error, UnknownHostError)
        except (httpx.HTTPError, TimeoutError, OSError) as error:
            return f"{type(error).__name__}: {error}", True
        if 200 <= status < 300:
            return None, False
        return f"HTTP status {status}", status in (408, 425, 429) or status >= 500

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(
                verify=httpx.create_ssl_context(),  # knows SSL_CERT_FILE
                trust_env=False,  # a proxy would look the address up again
                follow_redirects=False,
                timeout=self._policy.timeout,
                # a connection is of one name: another at the same address needs its own
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
            )
        return self._client

    async def close(self, seconds: float) -> None:
        """Deliver what waits, as far as there is time, and close."""
        if self._all:
            _, late = await asyncio.wait(list(self._all), timeout=seconds)
            for each in late:
                each.cancel()
            if late:
                LOG.warning("%d push notifications were given up: the server stops", len(late))
                await asyncio.gather(*late, return_exceptions=True)
        if self._client is not None:
            await self._client.aclose()
            self._client = None


class Configs(PushNotificationConfigStore):
    """A store of configs that keeps so many for each task.

    Args:
        store: Where they are kept.
        per_task: How many.
    """

    def __init__(self, store: PushNotificationConfigStore, per_task: int) -> None:
        self._store = store
        self._per_task = per_task
        self._one = asyncio.Lock()  # from the count until it is kept

    async def set_info(
        self,
        task_id: str,
        notification_config: TaskPushNotificationConfig,
        context: ServerCallContext,
    ) -> TaskPushNotificationConfig | None:
        """Keep a config, in the place of one of the same id."""
        async with self._one:
            known = await self._store.get_info(task_id, context)
            id = notification_config.id or task_id
            if sum(each.id != id for each in known) >= self._per_task:
                raise InvalidParamsError(f"A task has at most {self._per_task} push configs")
            return await self._store.set_info(task_id, notification_config, context)

    async def get_info(
        self, task_id: str, context: ServerCallContext
    ) -> list[TaskPushNotificationConfig]:
        """The configs of a principal's task."""
        return await self._store.get_info(task_id, context)

    async def delete_info(
        self, task_id: str, context: ServerCallContext, config_id: str | None = None
    ) -> None:
        """Drop one config of a task, or all."""
        await self._store.delete_info(task_id, context, config_id)
