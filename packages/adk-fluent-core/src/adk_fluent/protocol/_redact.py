"""Credentials, taken out of plain data before it is kept or shown."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, cast

from adk_fluent._copies import copied

#: Names under which ADK, OAuth 2, HTTP and others keep credentials, as `Redactor` spells them.
SECRET_KEYS: Final = frozenset(
    {
        "accesskey",
        "accesskeyid",
        "accesstoken",
        "accesstokens",
        "accountkey",
        "additionalheaders",
        "apikey",
        "apikeys",
        "apisecret",
        "apitoken",
        "authcode",
        "authkey",
        "authorization",
        "authresponseuri",
        "authtoken",
        "bearer",
        "clientassertion",
        "clientsecret",
        "codeverifier",
        "connectionstring",
        "cookie",
        "cookies",
        "credential",
        "credentials",
        "csrftoken",
        "cvc",
        "cvv",
        "dbpass",
        "dbpassword",
        "dsn",
        "encryptionkey",
        "idtoken",
        "jwt",
        "masterkey",
        "otp",
        "passcode",
        "passphrase",
        "passwd",
        "password",
        "passwords",
        "pgpassword",
        "privatekey",
        "privatekeyid",
        "pwd",
        "refreshtoken",
        "refreshtokens",
        "secret",
        "secretkey",
        "secrets",
        "securitytoken",
        "sessiontoken",
        "setcookie",
        "sharedaccesskey",
        "signingkey",
        "smtppass",
        "sshkey",
        "subscriptionkey",
        "token",
        "userpass",
        "userpassword",
        "xapikey",
    }
)

#: Keys that end like one of a credential and are none: pages, text, what holds more.
_HARMLESS: Final = frozenset(
    {
        "authcredential",
        "defaultcredential",
        "continuationtoken",
        "nexttoken",
        "pagetoken",
        "synctoken",
        "bostoken",
        "clstoken",
        "eostoken",
        "firsttoken",
        "lasttoken",
        "masktoken",
        "padtoken",
        "pertoken",
        "septoken",
        "specialtoken",
        "stoptoken",
        "unktoken",
    }
)

#: What may follow the name of a credential: in which form it is.
_FORMS: Final = frozenset({"b64", "base64", "hash", "header", "json", "pem", "value"})
#: Between the words of a key; `apiKey` and `APIKey` have two.
_BETWEEN: Final = re.compile(r"[\W_]+|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
#: Under which keys a header or variable has its name, and under which its value.
_NAMES: Final = ("name", "key")
_VALUE: Final = "value"
#: No name of a credential has more words, nor is it longer.
_WORDS: Final = 6
_LENGTH: Final = 128


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes credentials out of plain data (mappings, lists, scalars), by the keys they stand under.

    Headers and variables may also be a list of pairs, or mappings with a ``name`` and a ``value``.

    ::

        Redactor().redact({"user": "ann", "oauth2": {"clientSecret": "x"}})
        # {'user': 'ann', 'oauth2': {}}

    A key holds a credential if its last words name one: ``OPENAI_API_KEY``, ``x-api-key`` and
    ``userApiKey`` do, and so do ``api_key_2`` and ``api_key_header``. ``max_tokens``,
    ``token_count``, ``primary_key`` and ``next_page_token`` do not.

    Attributes:
        keys: The names of credentials, in small letters without ``_`` and ``-``: ``apikey`` is also
            ``api_key``, ``apiKey`` and ``Api-Key``.
    """

    keys: Collection[str] = SECRET_KEYS

    def hides(self, key: object) -> bool:
        """Whether what stands under a key is a credential."""
        if not isinstance(key, str):
            return False
        if key.replace("_", "").replace("-", "").lower() in self.keys:
            return True
        ends = _ends(key[-_LENGTH:])
        return any(each in self.keys for each in ends) and _HARMLESS.isdisjoint(ends)

    def redact(self, value: Any) -> Any:
        """The data without keys that hold credentials, and without what stands under them.

        Args:
            value: Plain data, nested as deeply as may be; it is not changed.

        Returns:
            A copy in dicts and lists, scalars and other objects as they are.
        """
        return copied(value, _empty, self._kept)

    def _kept(self, part: Any) -> Any:
        """A mapping or list without what it has of credentials itself."""
        if isinstance(part, Mapping):
            rows = cast("Mapping[Any, Any]", part)
            named = _VALUE in rows and any(self.hides(rows.get(name)) for name in _NAMES)
            return {
                key: each
                for key, each in rows.items()
                if not (self.hides(key) or (named and key == _VALUE))
            }
        if all(map(_is_pair, part)):
            return [each for each in part if not self.hides(each[0])]
        return part


@lru_cache(maxsize=4096)
def _ends(key: str) -> tuple[str, ...]:
    """The last words of a key, the last two, the last three, ..., each put together."""
    words = [each.lower() for each in _BETWEEN.split(key) if each]
    while words:
        last = words.pop()
        name = last if last in _FORMS else last.rstrip("0123456789")
        if name and name not in _FORMS:
            words.append(name)
            break
    return tuple("".join(words[-n:]) for n in range(1, min(len(words), _WORDS) + 1))


def _is_pair(part: Any) -> bool:
    """Whether it is a name and what is given to it, as headers often are."""
    return isinstance(part, list | tuple) and len(cast("list[Any]", part)) == 2


def _empty(part: Any) -> dict[Any, Any] | list[Any] | None:
    """What a copy of a mapping or list begins with; None for what has no parts."""
    if isinstance(part, Mapping):
        return {}
    return [] if isinstance(part, list | tuple) else None
