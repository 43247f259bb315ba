"""Who asks: each way to find the principal of a request."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from adk_fluent.errors import UsageError
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.requests import Request

#: Finds the principal of a request; None refuses it. A principal is a text without blanks at its
#: ends, of at most 255 characters.
Authenticator: TypeAlias = "Callable[[Request], Awaitable[str | None]]"

#: Characters of a principal: task stores keep no more.
LONGEST: Final = 255
_BEARER: Final = "bearer"


def principal_fault(principal: object) -> str | None:
    """Why something cannot be a principal; None if it can."""
    if not isinstance(principal, str):
        return f"is {describe(principal)}"
    if not principal or principal != principal.strip() or not principal.isprintable():
        return "is empty, has blanks at its ends or has control characters"
    return None if len(principal) <= LONGEST else f"has more than {LONGEST} characters"


class _Secrets:
    """Secrets and whose they are. Of a secret only the digest is kept and compared."""

    def __init__(self, secrets: object, role: str) -> None:
        if not isinstance(secrets, Mapping) or not secrets:
            raise UsageError(
                f"{role} takes a mapping of secrets to principals",
                found=describe(secrets),
                help=f'such as {role[:-5]}({{os.environ["TOKEN"]: "ann"}})',
            )
        self._whose: dict[bytes, str] = {}
        for secret, principal in cast("Mapping[object, object]", secrets).items():
            if not isinstance(secret, str) or not secret or not secret.isascii():
                raise UsageError(
                    f"{role} takes secrets of ASCII characters",
                    found="another one",  # never the secret itself
                    help="such as secrets.token_urlsafe(32)",
                )
            if (fault := principal_fault(principal)) is not None:
                raise UsageError(f"a principal of {role} {fault}", help="give a name such as 'ann'")
            self._whose[_digest(secret)] = cast("str", principal)

    def get(self, secret: str) -> str | None:
        return self._whose.get(_digest(secret))


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


class BearerAuth:
    """Bearer tokens, as in ``Authorization: Bearer ...``.

    Args:
        tokens: Each token and its principal.

    Raises:
        UsageError: It is not such a mapping.
    """

    #: The header ``WWW-Authenticate`` of a refusal.
    challenge = "Bearer"

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = _Secrets(tokens, "BearerAuth(...)")

    async def __call__(self, request: Request) -> str | None:
        """Return the principal of the request's token."""
        token = _bearer(request)
        return None if token is None else self._tokens.get(token)

    def security_scheme(self) -> tuple[str, Any]:
        """Return the name and the ``a2a.types.SecurityScheme`` for a card."""
        from a2a.types import HTTPAuthSecurityScheme, SecurityScheme  # noqa: PLC0415  # slow

        return _BEARER, SecurityScheme(
            http_auth_security_scheme=HTTPAuthSecurityScheme(scheme="Bearer")
        )


class ApiKeyAuth:
    """API keys in a header.

    Args:
        keys: Each key and its principal.
        header: The header that carries it.

    Raises:
        UsageError: It is not such a mapping.
    """

    #: The header ``WWW-Authenticate`` of a refusal.
    challenge = "ApiKey"

    def __init__(self, keys: Mapping[str, str], *, header: str = "X-API-Key") -> None:
        self._keys = _Secrets(keys, "ApiKeyAuth(...)")
        self._header = header

    async def __call__(self, request: Request) -> str | None:
        """Return the principal of the request's key."""
        key = request.headers.get(self._header)
        return None if key is None else self._keys.get(key)

    def security_scheme(self) -> tuple[str, Any]:
        """Return the name and the ``a2a.types.SecurityScheme`` for a card."""
        from a2a.types import APIKeySecurityScheme, SecurityScheme  # noqa: PLC0415  # slow

        scheme = APIKeySecurityScheme(location="header", name=self._header)
        return "api_key", SecurityScheme(api_key_security_scheme=scheme)


class JwtAuth:
    """Bearer tokens that are signed JWTs. Needs the extra ``jwt``.

    A token needs a signature of one of the algorithms, an expiry, and the audience. ``alg: none``
    is refused.

    Args:
        key: The public key (PEM), or the secret of an HMAC algorithm; or a function of the token
            that returns it, such as ``lambda token: jwks.get_signing_key_from_jwt(token).key`` with
            a ``jwt.PyJWKClient``.
        audience: Whom tokens are for: this server.
        issuer: Who issues them; None accepts any issuer that has the key.
        algorithms: Algorithms of signatures.
        claim: The claim that names the principal.

    Raises:
        UsageError: PyJWT is not installed, or the algorithms are not ones of signatures.
    """

    #: The header ``WWW-Authenticate`` of a refusal.
    challenge = "Bearer"

    def __init__(
        self,
        key: str | bytes | Callable[[str], Any],
        *,
        audience: str,
        issuer: str | None = None,
        algorithms: Collection[str] = ("RS256", "ES256"),
        claim: str = "sub",
    ) -> None:
        try:
            import jwt  # noqa: PLC0415  # of an extra
            from jwt.algorithms import get_default_algorithms  # noqa: PLC0415
        except ImportError as error:
            raise UsageError(
                "JwtAuth(...) needs PyJWT, which is not installed",
                help="pip install 'adk-fluent-a2a[jwt]'",
            ) from error
        given = [algorithms] if isinstance(algorithms, str) else list(algorithms)
        known = set[str](get_default_algorithms()) - {"none"}
        unknown = [each for each in given if each not in known]
        if not given or unknown:
            raise UsageError(
                "JwtAuth(algorithms=...) takes algorithms of signatures",
                found=", ".join(map(str, unknown)) if given else "none",
                help=f"one of {', '.join(sorted(known))}; ES256 and RS256 need cryptography",
            )
        self._jwt = jwt
        self._key = key
        self._claim = claim
        self._checks: dict[str, Any] = {
            "algorithms": given,
            "audience": audience,
            "issuer": issuer,
            "options": {"require": ["exp", claim]},
        }

    async def __call__(self, request: Request) -> str | None:
        """Return the principal that the request's token names."""
        token = _bearer(request)
        if token is None:
            return None
        key = self._key
        try:
            if callable(key):  # it may ask an address for the issuer's keys
                key = await asyncio.to_thread(key, token)
            claims = self._jwt.decode(token, key, **self._checks)
        except self._jwt.PyJWKClientConnectionError:
            raise  # which is no fault of the token
        except self._jwt.PyJWTError:
            return None
        principal = claims.get(self._claim)
        return principal if principal_fault(principal) is None else None

    def security_scheme(self) -> tuple[str, Any]:
        """Return the name and the ``a2a.types.SecurityScheme`` for a card."""
        from a2a.types import HTTPAuthSecurityScheme, SecurityScheme  # noqa: PLC0415  # slow

        scheme = HTTPAuthSecurityScheme(scheme="Bearer", bearer_format="JWT")
        return _BEARER, SecurityScheme(http_auth_security_scheme=scheme)


def _bearer(request: Request) -> str | None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() or None if scheme.lower() == _BEARER else None
