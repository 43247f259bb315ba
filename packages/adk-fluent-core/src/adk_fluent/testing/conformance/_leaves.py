"""The kinds of steps that hold no others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

from adk_fluent.builders import S, expect, tap
from adk_fluent.testing.conformance._parts import Part

if TYPE_CHECKING:
    from collections.abc import Mapping


class Leaf(Protocol):
    """Makes the account of a step, given its name."""

    def __call__(self, name: str, /) -> Part:
        """Make it."""
        ...


def says(name: str) -> Part:
    """An agent."""
    line = f". {name} {name.upper()!r}"
    return Part(build=lambda p: p.agent(name), calls=(name,), events=(line,), text=name.upper())


def writes(name: str) -> Part:
    """An agent that writes its answer to the key ``k``."""
    text = name.upper()
    delta = {"k": text}
    return Part(
        build=lambda p: p.agent(name, writes="k"),
        calls=(name,),
        events=(f". {name} {text!r} {delta}",),
        text=text,
        writes=delta,
    )


def native(name: str) -> Part:
    """An agent that was built with ADK."""
    line = f". {name} {name.upper()!r}"
    return Part(build=lambda p: p.native(name), calls=(name,), events=(line,), text=name.upper())


def function(name: str, delta: Mapping[str, Any] | None = None, *, later: bool = False) -> Part:
    """A function of state."""
    wrote = {"k": 1} if delta is None else dict(delta)
    return Part(
        build=lambda p: p.fn(name, wrote, later=later),
        calls=(name,),
        events=(f". {name}@root {wrote}",),
        writes=wrote,
    )


def async_function(name: str) -> Part:
    """An async function of state."""
    return function(name, later=True)


def transform(name: str) -> Part:
    """A change to state."""
    return Part(
        build=lambda _: S.set(k=1).named(name),
        events=(f". {name}@root {{'k': 1}}",),
        writes={"k": 1},
    )


def looks(name: str, *, later: bool = False) -> Part:
    """A tap."""
    return Part(build=lambda p: tap(p.fn(name, later=later)), calls=(name,))


def async_looks(name: str) -> Part:
    """An async tap."""
    return looks(name, later=True)


def expects(name: str, *, later: bool = False) -> Part:
    """An expectation that holds."""
    return Part(
        build=lambda p: expect(p.test(name, later=later), "it must hold", name=name), calls=(name,)
    )


def async_expects(name: str) -> Part:
    """An async expectation that holds."""
    return expects(name, later=True)


#: Steps that come to their end.
LEAVES: Final[Mapping[str, Leaf]] = {
    "agent": writes,
    "function": function,
    "async function": async_function,
    "transform": transform,
    "tap": looks,
    "async tap": async_looks,
    "expect": expects,
    "async expect": async_expects,
    "native agent": native,
}

#: The capability that each of them, and each arrangement, stands for.
LEAF_CAPABILITIES: Final[Mapping[str, str]] = {
    "agent": "agent",
    "function": "function",
    "async function": "function",
    "transform": "transform",
    "tap": "tap",
    "async tap": "tap",
    "expect": "expect",
    "async expect": "expect",
    "native agent": "native agent",
}
