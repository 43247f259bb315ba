"""What an agent's model is shown, picked apart."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from adk_fluent.testing import Asked

ORDER: Final = re.compile(r"\bA\d{3}\b")

_EMAIL: Final = re.compile(r"[\w.]+@[\w.]+\w")
_CALL: Final = re.compile(r"^\[call (\w+) ", re.MULTILINE)
_RESULT: Final = re.compile(r"^\[result (\w+) (.*)\]$", re.MULTILINE)
_WORDS: Final = ("headphones", "keyboard", "battery", "bluetooth", "opening", "shipping", "screen")


@dataclass(slots=True)
class Shown:
    """What an agent's model is shown.

    Attributes:
        told: The instruction.
        said: What the user said, message by message.
        called: The tools that it has called since the last message.
        results: What they returned, the last time that each was called.
    """

    told: str
    said: list[str] = field(default_factory=list[str])
    called: list[str] = field(default_factory=list[str])
    results: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    @classmethod
    def of(cls, asked: Asked) -> Shown:
        shown = cls(asked.system)
        for turn in asked.turns:
            if turn.role == "model":
                shown.called += _CALL.findall(turn.text)
            elif found := _RESULT.findall(turn.text):
                shown.results |= {name: json.loads(text) for name, text in found}
            else:
                shown.said.append(turn.text)
                shown.called, shown.results = [], {}
        return shown

    @property
    def now(self) -> str:
        """What the user said last."""
        return self.said[-1] if self.said else ""

    @property
    def order(self) -> str | None:
        return self._of_instruction(r"The order is (\w+)") or self._newest(ORDER)

    @property
    def email(self) -> str | None:
        if "Take the e-mail address from the message" in self.told:
            return self._newest(_EMAIL)
        return self._of_instruction(rf"The customer is ({_EMAIL.pattern})")

    @property
    def is_german(self) -> bool:
        return "Answer in de." in self.told

    @property
    def is_angry(self) -> bool:
        return "The customer is angry." in self.told

    @property
    def query(self) -> str:
        """What to search for: all that is known, and one word when that has found nothing."""
        words = [word for word in re.findall(r"\w+", self.now.lower()) if word in _WORDS]
        if "search_docs" in self.called:
            words = words[-1:]
        return " ".join(words) or "help"

    def result(self, tool: str, key: str) -> Any:
        """A value that a tool returned; None if it did not."""
        return self.results.get(tool, {}).get(key)

    def rest(self, pattern: str) -> str:
        """What the instruction says behind some words, to the end of the line."""
        return self._of_instruction(rf"{pattern}(.*)") or ""

    def _of_instruction(self, pattern: str) -> str | None:
        found = re.search(pattern, self.told)
        return found[1] if found else None

    def _newest(self, pattern: re.Pattern[str]) -> str | None:
        return next(
            (found[0] for text in reversed(self.said) if (found := pattern.search(text))), None
        )
