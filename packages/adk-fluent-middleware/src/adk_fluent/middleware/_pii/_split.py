"""Where a streamed text can be cut, so that each piece tells what is in it.

A *break* is a place that no pattern reaches over: most of all a space between words, but not the
one between two groups of a number. What comes before the last break is complete; the rest is held
back. Whether a place is a break depends on the run that it ends and on the character after it, not
on how the text came in. Private keys have breaks in them; `PrivateKeys` holds them back besides.
"""

from __future__ import annotations

import re
from typing import Final, Protocol

from adk_fluent.middleware._pii._fold import Folded
from adk_fluent.middleware._pii._patterns import IN_RUN, open_private_key

#: A space is none between digits, nor between groups of four in what begins like an IBAN.
_IBAN_SO_FAR: Final = re.compile(r"[A-Za-z]{2}\d{2}(?: [A-Za-z0-9]{4}){0,8}\Z", re.ASCII)
_OUTSIDE: Final = re.compile(rf"[^{IN_RUN}]")
#: What numbers of JSON are made of, and what else stands there without quotes for Python.
_IN_NUMBERS: Final = frozenset("0123456789+-.eE")
_NAMES: Final = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
#: No pattern looks further back to tell whether a space is a break: an IBAN in groups of four.
_LOOK_BACK: Final = 64


class Splitter(Protocol):
    """Cuts a text that comes in pieces."""

    def feed(self, text: str) -> str:
        """What is complete now that this came in."""
        ...

    def end(self) -> str:
        """The rest."""
        ...


class _Held:
    """What is held back; long runs are put together once, not with each piece."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._tail = ""

    def feed(self, text: str) -> str:
        """What is complete now that this came in."""
        window = self._tail + text
        self._held.append(text)
        cut = self._last_break(window, len(self._tail))
        if cut == 0:
            self._tail = window[-_LOOK_BACK:]
            return ""
        whole = "".join(self._held)
        at = len(whole) - len(window) + cut
        self._held = [whole[at:]]
        self._tail = window[cut:][-_LOOK_BACK:]
        return whole[:at]

    def end(self) -> str:
        """The rest."""
        rest = "".join(self._held)
        self._held, self._tail = [], ""
        return rest

    def _last_break(self, window: str, known: int) -> int:
        """Where the last break in the end of the text is; 0 when there is none.

        Args:
            window: The end of the text.
            known: How much of it had come before, and no break in it.
        """
        raise NotImplementedError


class Runs(_Held):
    """Cuts at breaks."""

    def _last_break(self, window: str, known: int) -> int:
        read = Folded(window)
        text = read.text
        first = max(0, len(Folded(window[:known]).text) - 1)  # what came last was not decided
        for at in range(len(text) - 1, first - 1, -1):
            if _OUTSIDE.match(text, at) is None:
                continue
            if text[at] == "<":  # it may begin a placeholder
                if at:
                    return read.start(at)
                continue
            if text[at] == " " and (at + 1 == len(text) or _holds(text, at)):
                continue
            return read.end(at + 1)
        return 0


def _holds(text: str, at: int) -> bool:
    """Whether the space at a place is within a number."""
    if at == 0:
        return False
    before, after = text[at - 1], text[at + 1]
    if before in "0123456789)" and after in "0123456789(":
        return True
    if not (after.isascii() and after.isalnum()):
        return False
    return _IBAN_SO_FAR.search(text, max(0, at - _LOOK_BACK), at) is not None


class Lines(_Held):
    """Cuts after each line."""

    def _last_break(self, window: str, known: int) -> int:
        return window.rfind("\n") + 1


class Whole(_Held):
    """Cuts nowhere."""

    def _last_break(self, window: str, known: int) -> int:
        return 0


class PrivateKeys:
    """Cuts where another does, but within no private key.

    Args:
        splitter: The other.
    """

    def __init__(self, splitter: Splitter) -> None:
        self._splitter = splitter
        self._held = ""
        self._read = ""

    def feed(self, text: str) -> str:
        """What is complete now that this came in."""
        ready = self._splitter.feed(text)
        if not ready:
            return ""
        self._held += ready
        self._read += Folded(ready).text
        if "-----BEGIN" in self._read and open_private_key(self._read):
            return ""
        done, self._held, self._read = self._held, "", ""
        return done

    def end(self) -> str:
        """The rest."""
        rest = self._held + self._splitter.end()
        self._held, self._read = "", ""
        return rest


class JsonScalars(_Held):
    """Cuts JSON behind its values, so that none is ever in two pieces."""

    def __init__(self) -> None:
        super().__init__()
        self._quoted = False
        self._escaped = False

    def feed(self, text: str) -> str:
        """What is complete now that this came in."""
        cut = 0
        for at, each in enumerate(text):
            if self._escaped:
                self._escaped = False
            elif self._quoted and each == "\\":
                self._escaped = True
            elif each == '"':
                self._quoted = not self._quoted
            elif not self._quoted and each in ",{}[]":
                cut = at + 1
        if cut == 0:
            self._held.append(text)
            return ""
        whole = "".join((*self._held, text[:cut]))
        self._held = [text[cut:]]
        return whole


class JsonSoFar:
    """Holds a text back as long as it may become JSON, which is to stay JSON.

    It need not tell all that is not JSON, only never take JSON for something else: whether it has
    become some is found out when it is whole.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        self._depth = 0
        self._begun = False
        self._quoted = False
        self._escaped = False
        self._word = ""
        self._is_behind_value = False

    def feed(self, text: str) -> str | None:
        """None as long as it is held back, and then all of it."""
        self._held.append(text)
        return None if all(map(self._may_be, text)) else self.end()

    def end(self) -> str:
        """All of it."""
        return "".join(self._held)

    def _may_be(self, each: str) -> bool:
        """Whether it may go on being JSON with a character."""
        if self._quoted:
            self._in_text(each)
            return True
        if each.isspace():
            self._word = ""
            return True
        if self._depth == 0:  # it is over, or begins
            is_first = not self._begun and each in "{["
            self._begun, self._depth = True, 1
            return is_first
        if each in "{[":
            self._depth += 1
        elif each in "]}":
            self._depth -= 1
        elif each not in ",:":
            return self._in_value(each)
        self._word, self._is_behind_value = "", each in "]}"
        return True

    def _in_text(self, each: str) -> None:
        if self._escaped:
            self._escaped = False
        elif each == "\\":
            self._escaped = True
        elif each == '"':
            self._quoted = False

    def _in_value(self, each: str) -> bool:
        """Whether a value may go on or begin; none begins behind another one."""
        if self._is_behind_value and not self._word:
            return False
        self._is_behind_value = True
        if each == '"':
            self._quoted = True
            return not self._word
        self._word = (self._word + each)[-_LOOK_BACK:]
        return each in _IN_NUMBERS or any(name.startswith(self._word) for name in _NAMES)
