"""What is wrong with the documentation, all of it at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class DocsError(Exception):
    """The site cannot be built as it should be; the message is for the person at the terminal.

    Attributes:
        problems: What is wrong, one thing each, with its place.
    """

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(self.problems))
