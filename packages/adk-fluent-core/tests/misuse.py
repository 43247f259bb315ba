"""Mistakes as a table: a call, and the exact error it must be refused with, at its own line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.errors import AdkFluentError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

# what many errors advise
KEYS = 'pass a key such as "intent" or "user:tier", or a field of a StateSchema'
PREDICATE = 'pass fn(state) -> bool, such as lambda s: s["score"] > 3'
STEPS = "a step is a builder, a function over state, a built ADK agent or an IR node"


@dataclass
class Case:
    """A lambda that makes a mistake; its line is the one that the error must name."""

    call: Callable[[], Any]
    what: str
    found: str | None = None
    help: str | None = None
    error: type[AdkFluentError] = UsageError

    def __str__(self) -> str:
        return f"line {self.call.__code__.co_firstlineno}: {self.what}"

    def expected(self) -> tuple[type[AdkFluentError], str]:
        code = self.call.__code__
        lines = [self.what, f"  where: {code.co_filename}:{code.co_firstlineno}"]
        lines += [f"  found: {self.found}"] if self.found else []
        lines += [f"  help: {self.help}"] if self.help else []
        return self.error, "\n".join(lines)

    def raised(self) -> tuple[type[AdkFluentError], str]:
        with pytest.raises(AdkFluentError) as caught:
            self.call()
        return type(caught.value), str(caught.value)
