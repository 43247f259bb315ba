"""The lines of the values of a JSON file, found when an error asks for them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from adk_fluent.eval._files._place import At

_TOKENS: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+')


class JsonLines(Mapping["At", int]):
    """Way to line, for the values of a JSON text that was parsed already.

    Args:
        text: The text.
        known: Lines that are known without looking through all of it.
        way: From the way to a value as readers know it to the way in the text.
    """

    def __init__(
        self,
        text: str,
        known: Mapping[At, int] | None = None,
        way: Callable[[At], At] = lambda at: at,
    ) -> None:
        self._text = text
        self._known = known or {}
        self._way = way

    def __getitem__(self, at: At) -> int:
        known = self._known.get(at)
        return self._all[self._way(at)] if known is None else known

    def __iter__(self) -> Iterator[At]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def _all(self) -> dict[At, int]:
        return dict(_lines(self._text))


def _lines(text: str) -> Iterator[tuple[At, int]]:
    """Each way with its line: that of the key where the value has one."""
    at: list[str | int] = []  # the way to what is read; one step for each open bracket
    awaited = False  # a key, or an item of a list
    line, end = 1, 0
    for found in _TOKENS.finditer(text):
        line += text.count("\n", end, found.start())
        end = found.start()
        part = found[0]
        if awaited and part not in "]}":
            awaited = False
            if isinstance(at[-1], str):
                at[-1] = _unquoted(part)
            yield tuple(at), line
        if part in "{[":
            at.append("" if part == "{" else 0)
            awaited = True
        elif part in "}]":
            at.pop()
            awaited = False
        elif part == ",":
            last = at[-1]
            at[-1] = last + 1 if isinstance(last, int) else last
            awaited = True


def _unquoted(part: str) -> str:
    return cast("str", json.loads(part)) if "\\" in part else part[1:-1]
