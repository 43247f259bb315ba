"""What of an authentication can be judged without its secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from adk_fluent.a2a._addresses import address_fault

if TYPE_CHECKING:
    from adk_fluent.ir import AuthConfig

_SCHEMES: Final = ("none", "bearer", "api_key", "oauth2")
_TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # of RFC 9110: a header's name


def auth_fault(auth: AuthConfig) -> tuple[str, str] | None:
    """Why a declared authentication cannot work, and what to do; None if it may."""
    if auth.scheme not in _SCHEMES:
        return f"there is no scheme {auth.scheme!r}", f"use one of {', '.join(_SCHEMES)}"
    if not auth.secret_env:
        return (
            f"{auth.scheme} without a secret",
            f'name the variable that holds it: AuthConfig("{auth.scheme}", "TOKEN")',
        )
    if not _TOKEN.fullmatch(auth.header):
        return f"{auth.header!r} is no name of a header", 'such as header="X-API-Key"'
    return _token_url_fault(auth.token_url) if auth.scheme == "oauth2" else None


def _token_url_fault(url: str | None) -> tuple[str, str] | None:
    if not url:
        return "oauth2 without a token_url", 'such as token_url="https://auth.example.com/token"'
    if (fault := address_fault(url)) is not None:
        return f"a token_url that {fault}", "the secret is sent there: give an https URL"
    return None
