"""Credentials, taken out of plain data before it is kept or shown."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from adk_fluent._copies import copied

#: Keys under which ADK, OAuth 2 and cloud providers keep credentials, as `Redactor` spells keys.
SECRET_KEYS: Final = frozenset(
    {
        "accesstoken",
        "additionalheaders",
        "apikey",
        "authcode",
        "authresponseuri",
        "clientsecret",
        "codeverifier",
        "idtoken",
        "password",
        "privatekey",
        "privatekeyid",
        "refreshtoken",
        "token",
    }
)


@dataclass(frozen=True, slots=True)
class Redactor:
    """Takes credentials out of plain data (mappings, lists, scalars), by the keys they stand under.

    ::

        Redactor().redact({"user": "ann", "oauth2": {"clientSecret": "x"}})
        # {'user': 'ann', 'oauth2': {}}

    Attributes:
        keys: The keys that hold credentials, in small letters without ``_`` and ``-``: ``apikey``
            is also ``api_key``, ``apiKey`` and ``Api-Key``.
    """

    keys: Collection[str] = SECRET_KEYS

    def hides(self, key: object) -> bool:
        """Whether what stands under a key is a credential."""
        if not isinstance(key, str):
            return False
        return key.replace("_", "").replace("-", "").lower() in self.keys

    def redact(self, value: Any) -> Any:
        """The data without keys that hold credentials, and without what stands under them.

        Args:
            value: Plain data, nested as deeply as may be; it is not changed.

        Returns:
            A copy in dicts and lists, scalars and other objects as they are.
        """
        return copied(value, _empty, lambda key: not self.hides(key))


def _empty(part: Any) -> dict[Any, Any] | list[Any] | None:
    """What a copy of a mapping or list begins with; None for what has no parts."""
    if isinstance(part, Mapping):
        return {}
    return [] if isinstance(part, list | tuple) else None
