"""What holds at one place of a function, whatever way led there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.contracts._effects._values import joined

if TYPE_CHECKING:
    from adk_fluent.contracts._effects._values import Value


class Facts:
    """What holds at one place.

    Attributes:
        env: What the names stand for that have been bound.
        safe: Keys that can be looked up without an error.
        given: Keys that were written on every way here, and whether the last value is None.
        held: Keys that hold something else than None.
    """

    __slots__ = ("env", "given", "held", "safe")

    def __init__(
        self,
        env: dict[str, Value] | None = None,
        safe: frozenset[str] = frozenset(),
        given: dict[str, int] | None = None,
        held: frozenset[str] = frozenset(),
    ) -> None:
        self.env: dict[str, Value] = env or {}
        self.safe: frozenset[str] = safe
        self.given: dict[str, int] = given or {}
        self.held: frozenset[str] = held

    def copy(self) -> Facts:
        """The same, to go another way from here."""
        return Facts(dict(self.env), self.safe, dict(self.given), self.held)

    def same(self, other: Facts) -> bool:
        """Whether the same holds."""
        mine = (self.safe, self.given, self.held, self.env)
        return mine == (other.safe, other.given, other.held, other.env)

    def take(self, other: Facts) -> None:
        """Go on as another way does."""
        self.env, self.safe, self.given, self.held = other.env, other.safe, other.given, other.held

    def holds(self, key: str) -> None:
        """From here on a key holds something else than None."""
        self.safe |= {key}
        self.held |= {key}


def meet(one: Facts | None, two: Facts | None) -> Facts | None:
    """What holds where two ways meet; None is a way that nothing takes.

    A name that is bound on one of them only is what it is there: on the other, using it fails.
    """
    if one is None or two is None:
        found = one or two
        return None if found is None else found.copy()
    env = {**one.env, **two.env}
    for name in one.env.keys() & two.env.keys():
        here, there = one.env[name], two.env[name]
        if here is not there:
            env[name] = joined(here, there)
    given = {key: none | two.given[key] for key, none in one.given.items() if key in two.given}
    return Facts(env, one.safe & two.safe, given, one.held & two.held)
