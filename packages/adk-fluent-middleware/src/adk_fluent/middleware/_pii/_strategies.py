"""What is put in the place of personal data."""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from adk_fluent.middleware._pii._fold import Folded

if TYPE_CHECKING:
    from collections.abc import Iterator

#: What becomes of personal data of a kind.
Strategy = Literal["redact", "mask", "hash", "block", "placeholder"]

_SHOWN: Final = 4
#: Of what has fewer letters and digits, four would be too large a part.
_SHOWN_FROM: Final = 9
_DIGITS: Final = 8
#: As placeholders are written, and as models write them that leave the brackets out.
_TAG: Final = re.compile(
    r"(?:<|(?<![A-Za-z0-9_<]))([A-Z][A-Z0-9_]{0,63}_[0-9a-f]{8,64})(?![A-Za-z0-9_])>?"
)


def redact(kind: str) -> str:
    """The kind alone: ``[EMAIL]``."""
    return f"[{kind.upper()}]"


def mask(text: str) -> str:
    """Stars, but for the last four letters and digits of what has nine or more."""
    shown = _SHOWN if sum(each.isalnum() for each in text) >= _SHOWN_FROM else 0
    made: list[str] = []
    for each in reversed(text):
        if not each.isalnum():
            made.append(each)
        elif shown:
            shown -= 1
            made.append(each)
        else:
            made.append("*")
    return "".join(reversed(made))


def digest(key: bytes, kind: str, text: str) -> str:
    """64 hexadecimal digits that only who has the key can make of a text."""
    return hmac.new(key, f"{kind}\0{text}".encode("utf-8", "surrogatepass"), "sha256").hexdigest()


def hashed(key: bytes, kind: str, text: str) -> str:
    """The kind and a hash: ``[EMAIL:1f8a3c5e7b90]``, the same however the text is written."""
    plain = re.sub(r"[\s().-]", "", Folded(text).text.casefold())
    return f"[{kind.upper()}:{digest(key, kind, plain)[:12]}]"


class Placeholders:
    """Placeholders of one run, and what each of them stands for.

    They are made of a keyed hash, so that a text always has the same, and one that outlives its
    run (in a summary, say) never comes to stand for somebody else's data.

    Args:
        key: The key.
    """

    __slots__ = ("_key", "_values")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._values: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<{len(self._values)} placeholders>"

    def make(self, kind: str, text: str) -> str:
        """The placeholder of a text."""
        whole = digest(self._key, kind, text)
        for length in range(_DIGITS, len(whole) + 1):
            tag = f"{kind.upper()}_{whole[:length]}"
            if str(self._values.get(tag, text)) == text:
                self._values[tag] = text
                return f"<{tag}>"
        raise AssertionError("two texts have the same SHA-256")

    def means(self, placeholder: str, value: object) -> None:
        """Say that a placeholder stands for a value that is no text."""
        tag = placeholder[1:-1]
        if tag in self._values:
            self._values[tag] = value

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where placeholders of this run stand."""
        if self._values:
            for match in _TAG.finditer(text):
                if match[1] in self._values:
                    yield match.span()

    def restore(self, text: str) -> str:
        """A text with what its placeholders stand for."""
        if not self._values:
            return text
        return _TAG.sub(lambda match: str(self._values.get(match[1], match[0])), text)

    def value(self, text: str) -> Any:
        """What a text stands for that is nothing but a placeholder; None when it is not."""
        match = _TAG.fullmatch(text)
        return None if match is None else self._values.get(match[1])
