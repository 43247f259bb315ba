"""Who may ask, and how much: the same for every transport."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from a2a.auth.user import User
from starlette.authentication import BaseUser
from starlette.requests import Request

from adk_fluent.extend import LOG, is_loopback
from adk_fluent.serve._auth import principal_fault

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from adk_fluent.serve._auth import Authenticator
    from adk_fluent.serve._limits import Limits

#: Whose requests are that come without authentication, which only this machine may send.
ANONYMOUS: Final = "anonymous"
_MANY: Final = 10_000  # principals whose rate is remembered


class RefusedError(Exception):
    """A request is not answered.

    Attributes:
        status: The HTTP status.
        headers: Headers of the answer.
    """

    def __init__(self, status: int, says: str, **headers: str) -> None:
        super().__init__(says)
        self.status = status
        self.headers = {key.replace("_", "-"): value for key, value in headers.items()}


class Principal(BaseUser, User):
    """Who asks, as Starlette and the SDK want to know it."""

    def __init__(self, name: str) -> None:
        self._name = name

    @property
    def is_authenticated(self) -> bool:
        """Always true: no other request comes here."""
        return True

    @property
    def user_name(self) -> str:
        """The principal."""
        return self._name

    @property
    def display_name(self) -> str:
        """The principal."""
        return self._name


class Gate:
    """Lets in what may be answered, and counts it.

    Args:
        auth: Finds the principal; None serves this machine alone, as `ANONYMOUS`.
        limits: What is too much.
    """

    def __init__(self, auth: Authenticator | None, limits: Limits) -> None:
        self._auth = auth
        self._limits = limits
        self._answering: Counter[str] = Counter()
        self._rates: dict[str, tuple[float, float]] = {}

    def check_client(self, scope: MutableMapping[str, Any]) -> None:
        """Refuse who does not come from this machine, where nobody else is served.

        Raises:
            RefusedError: It is not answered.
        """
        client = scope.get("client")
        if self._auth is None and (client is None or not is_loopback(client[0])):
            raise RefusedError(403, "Without auth= only this machine is served")

    async def enter(self, scope: MutableMapping[str, Any], entered: list[str]) -> str:
        """The principal of a request, which is counted until `leave`.

        Args:
            scope: The request, as one of HTTP.
            entered: Where the principal is put as soon as it is counted.

        Raises:
            RefusedError: It is not answered.
        """
        self.check_client(scope)
        principal = ANONYMOUS if self._auth is None else await self._principal(self._auth, scope)
        self._count(principal)
        self._answering[principal] += 1
        entered.append(principal)
        return principal

    def leave(self, entered: list[str]) -> None:
        """A request is answered."""
        for principal in entered:
            self._answering[principal] -= 1
            if not self._answering[principal]:
                del self._answering[principal]

    async def _principal(self, auth: Authenticator, scope: MutableMapping[str, Any]) -> str:
        challenge = str(getattr(auth, "challenge", "Bearer"))
        try:
            principal = await auth(Request(scope))
        except Exception:  # noqa: BLE001  # of somebody's own function
            LOG.exception("the authentication of a request failed")
            raise RefusedError(500, "Internal error") from None
        if principal is None:
            raise RefusedError(401, "Authentication is required", www_authenticate=challenge)
        if (fault := principal_fault(principal)) is not None:
            LOG.error("auth= returned a principal that %s", fault)
            raise RefusedError(500, "Internal error")
        return principal

    def _count(self, principal: str) -> None:
        """Take one request of what a principal may send."""
        limits, now = self._limits, asyncio.get_running_loop().time()
        if self._answering[principal] >= limits.open_requests:
            raise RefusedError(429, "Too many open requests: try again later", retry_after="1")
        left, then = self._rates.pop(principal, (float(limits.burst), now))
        left = min(float(limits.burst), left + (now - then) * limits.requests_per_second)
        if len(self._rates) >= _MANY:  # the first is the one that was not seen for longest
            del self._rates[next(iter(self._rates))]
        self._rates[principal] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if left < 1:
            wait = max(1, round((1 - left) / limits.requests_per_second))
            raise RefusedError(429, "Too many requests: try again later", retry_after=str(wait))
