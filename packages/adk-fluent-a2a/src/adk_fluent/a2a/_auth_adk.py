"""Credentials of requests: read from the environment when they are sent, and kept nowhere else."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import httpx

from adk_fluent.a2a._failures_adk import failure
from adk_fluent.a2a._schemes import auth_fault
from adk_fluent.errors import CredentialsError
from adk_fluent.extend import public_address

if TYPE_CHECKING:
    from adk_fluent.ir import AuthConfig, RemoteAgentNode

_EARLY = 30.0  # seconds before its end at which a token is not used any more


class Credentials:
    """The headers that authenticate the requests to one remote agent.

    Args:
        node: The remote agent.
    """

    def __init__(self, node: RemoteAgentNode) -> None:
        self._node = node
        self._token = ""
        self._until = 0.0

    async def headers(self, client: httpx.AsyncClient) -> dict[str, str]:
        """The headers; an OAuth token is fetched, and used until it expires.

        Raises:
            CredentialsError: The variable that holds the secret is not set.
            RemoteError: The token endpoint gave no token.
        """
        auth = self._node.auth
        if auth is None or auth.scheme == "none":
            return {}
        if (fault := auth_fault(auth)) is not None:
            raise CredentialsError(
                f"{self._node.name} cannot authenticate",
                node=self._node,
                found=fault[0],
                help=fault[1],
            )
        secret = self._secret(auth)
        if auth.scheme == "api_key":
            return {auth.header: secret}
        if auth.scheme == "oauth2":
            secret = await self._oauth(auth, secret, client)
        return {auth.header: f"Bearer {secret}"}

    def forget(self) -> None:
        """Fetch a new token next time: the agent has refused this one."""
        self._until = 0.0

    def _secret(self, auth: AuthConfig) -> str:
        name = auth.secret_env or ""
        secret = os.environ.get(name, "").strip()
        if not secret:
            raise CredentialsError(
                f"{self._node.name} needs a secret ({auth.scheme}), and there is none",
                node=self._node,
                found=f"the variable {name} is not set",
                help=f"set {name}",
            )
        if not (secret.isascii() and secret.isprintable()):  # httpx would quote it in its error
            raise CredentialsError(
                f"{self._node.name} has a secret that no header can hold",
                node=self._node,
                found=f"{name} has a character that is not printable ASCII, such as a line break",
                help=f"correct {name}",
            )
        return secret

    async def _oauth(self, auth: AuthConfig, secret: str, client: httpx.AsyncClient) -> str:
        """A token of the client credentials grant (RFC 6749, 4.4)."""
        if time.monotonic() < self._until:
            return self._token
        name, _, password = secret.partition(":")
        if not password:
            raise CredentialsError(
                f"{self._node.name} cannot fetch an OAuth token",
                node=self._node,
                found=f"{auth.secret_env} has no colon",
                help=f"put client_id:client_secret into {auth.secret_env}",
            )
        place = auth.token_url or ""
        data = {"grant_type": "client_credentials"}
        if auth.scopes:
            data["scope"] = " ".join(auth.scopes)
        try:
            response = await client.post(place, data=data, auth=(name, password))
            response.raise_for_status()
            answer: Any = response.json()
            self._token = str(answer["access_token"])
            self._token.encode("ascii")
            lasts = float(answer.get("expires_in", 300))
        except httpx.HTTPError as error:
            status = getattr(getattr(error, "response", None), "status_code", None)
            raise failure(
                "HTTP" if status else "CONNECT",
                self._node,
                f"got no token from {public_address(place)}",
                found=str(error),
                retriable=status is None or status == 429 or status >= 500,
                status=status,
            ) from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise failure("HTTP", self._node, "has a token endpoint without tokens") from error
        self._until = time.monotonic() + lasts - _EARLY
        return self._token
