"""What peers say, as it is shown to people."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 300  # characters


def shown(text: str) -> str:
    """What a peer said, short, on one line, and without what would move a cursor."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
