"""What detectors find, and what is made of findings that overlap."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, Protocol, TypeAlias

from adk_fluent.errors import UsageError
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterable

#: How much of a text a detector has to see to tell what is in it: a run of what hangs together,
#: such as the groups of a number; a line; or all of it. Streams are held back for that long.
Scope = Literal["run", "line", "text"]

_KIND: Final = re.compile(r"[a-z][a-z0-9_]{0,63}")


class Finding(NamedTuple):
    """Personal data in a text: of what kind it is and where it stands, never the data itself.

    A plain ``(kind, start, end)`` will do, too.

    Attributes:
        kind: Such as ``"email"``: small letters, digits and underscores.
        start: Where it begins.
        end: Where the text goes on after it.
    """

    kind: str
    start: int
    end: int


#: What a detector returns, or awaits.
Found: TypeAlias = "Iterable[tuple[str, int, int]]"


class Detector(Protocol):
    """Finds personal data in a text; a function, async or not, will do.

    It may have an attribute ``scope``: ``"line"``, which is what it is taken for, or ``"text"`` if
    it has to see all of a text at once. It is called in the event loop and must not block that.
    """

    def __call__(self, text: str, /) -> Found | Awaitable[Found]:
        """What is in a text."""
        ...


def check_kind(kind: str) -> str:
    """The name of a kind, if it is one.

    Raises:
        UsageError: It is none.
    """
    if _KIND.fullmatch(kind) is None:
        raise UsageError(
            "this cannot be the name of a kind of personal data",
            found=describe(kind),
            help="small letters, digits and underscores, such as 'staff_id'",
        )
    return kind


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Findings in order, those that overlap made one.

    One spans all of them, so that no end of a shorter one is left in clear, and is of the kind of
    the longest; of two that are as long, of the one that was found first.
    """
    made: list[Finding] = []
    longest = 0
    for each in sorted(findings, key=lambda found: found.start):
        length = each.end - each.start
        if made and each.start < made[-1].end:
            last = made[-1]
            kind = each.kind if length > longest else last.kind
            longest = max(longest, length)
            made[-1] = Finding(kind, last.start, max(last.end, each.end))
        else:
            made.append(each)
            longest = length
    return made
