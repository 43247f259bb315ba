"""Versions: three numbers, and what a change to the public API asks of the next one."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, Self

Bump = Literal["major", "minor", "patch"]
BUMPS: Final[tuple[Bump, ...]] = ("major", "minor", "patch")

_FORM: Final = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)", re.ASCII)


class Version(NamedTuple):
    """A version; its order is that of its numbers."""

    major: int
    minor: int
    patch: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read ``X.Y.Z``; None for anything else."""
        found = _FORM.fullmatch(text)
        return cls(*map(int, found.groups())) if found else None

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    def bumped(self, bump: Bump) -> Version:
        """Give the version after this one."""
        match bump:
            case "major":
                return Version(self.major + 1, 0, 0)
            case "minor":
                return Version(self.major, self.minor + 1, 0)
            case "patch":
                return Version(self.major, self.minor, self.patch + 1)

    def next(self, *, breaking: bool, added: bool) -> Version:
        """Give the least version that may follow this one when its public API has changed so.

        While a package is 0.x, a minor release may break and a patch release may add.
        """
        early = self.major == 0
        if breaking:
            return self.bumped("minor" if early else "major")
        return self.bumped("minor" if added and not early else "patch")

    @property
    def bound(self) -> str:
        """What a layer asks of a core of this version: its minor series."""
        return f">={self.major}.{self.minor},<{self.major}.{self.minor + 1}"
