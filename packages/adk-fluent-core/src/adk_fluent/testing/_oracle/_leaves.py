"""Random leaves and predicates, and what they may do at their place in a random pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from adk_fluent.ir import (
    ExpectNode,
    FunctionNode,
    Match,
    Node,
    Predicate,
    Ref,
    TapNode,
    TransformNode,
)
from adk_fluent.testing._oracle._behaviours import Check, Says, Step, agent
from adk_fluent.testing._oracle._merging import SHARED, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

ITEMS: Final = "l0"
START: Final[dict[str, Any]] = {
    "t1": "start",
    "n1": 3,
    "j1": {"a": 1, "b": {"c": [1, 2]}},
    ITEMS: ["u", 7, {"ä": "→"}],
}
_TEXTS: Final = ("", "yes", "no", "ä→漢🙂", "two\n\nparts", "{t1} \\ '\"")
_JSON: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    2.5,
    2**40,
    "",
    "ü\n",
    [],
    [1, ["x", {"é": 2}]],
    {},
    {"a": 2},
    {"b": {"d": "ß"}},
)
_LISTS: Final[tuple[Any, ...]] = (None, [], ["one"], [1, "two", {"k": 3}], ["x", "x"])


class Place(NamedTuple):
    """What a part may do, given what stands around it.

    Attributes:
        keys: What it reads and writes, and nobody beside it.
        items: Items of maps around it, which it reads.
        fails: It may fail.
        attempt: It stands in a fallback or race, where a reported error is a failure.
        loop: Whether it may end a loop; None: there is none.
        shared: Others run beside it and write `SHARED`.
        times: How often it runs, at most.
    """

    keys: tuple[str, ...]
    items: tuple[str, ...] = ()
    fails: bool = False
    attempt: bool = False
    loop: bool | None = None
    shared: bool = False
    times: int = 1

    def of(self, kinds: str) -> list[str]:
        """Its keys that hold such values."""
        return [key for key in self.keys if kind_of(key) in kinds]

    def cut(self) -> Place:
        """The place in something that may be ended from outside: nothing that is never undone."""
        return self._replace(keys=tuple(key for key in self.keys if not key.startswith("user:")))

    def surely(self) -> Place:
        """The place of a part that comes to its end."""
        return self._replace(fails=False, loop=None if self.loop is None else False)

    @property
    def reads(self) -> list[str]:
        return [*self.keys, *self.items, ITEMS]


class Leaves:
    """Makes leaves and predicates.

    Args:
        choose: Gives a random integer between two, both included; the lower the simpler.
        plain: Agents have neither tools that write nor callbacks.
    """

    def __init__(self, choose: Callable[[int, int], int], *, plain: bool) -> None:
        self.choose = choose
        self.plain = plain
        self.made = 0

    # --- choosing ------------------------------------------------------------------------------

    def one_of(self, options: Sequence[T]) -> T:
        return options[self.choose(0, len(options) - 1)]

    def happens(self, percent: int) -> bool:
        return self.choose(0, 99) >= 100 - percent

    def maybe(self, value: T, percent: int = 50) -> T | None:
        return value if self.happens(percent) else None

    def ticks(self) -> int:
        return max(0, self.choose(-2, 4))

    def waits(self) -> int | None:
        """Ticks of an async function, or None for one that is not."""
        return self.ticks() if self.happens(40) else None

    def name(self, kind: str) -> str:
        self.made += 1
        return f"{kind}{self.made}"

    # --- leaves --------------------------------------------------------------------------------

    def leaf(self, place: Place) -> Node:
        kinds = [self.agent] * 5 + [self.function] * 4 + [self.transform] * 2
        return self.one_of([*kinds, self.tap, self.expect])(place)

    def agent(self, place: Place) -> Node:
        endings: list[Any] = ["answers"] * 20
        if place.fails:
            endings += ["raises"] * 3
        if place.fails or not place.attempt:
            endings += ["reports"] * 2
        if place.loop is not False:
            endings += ["leaves"] * (4 if place.loop else 1)
        reads = [*place.of("t"), *place.items]
        ends = self.one_of(endings)
        # after a turn without an answer, it could not tell its tool's old result from a new one
        calls = not self.plain and (ends != "reports" or place.attempt)
        keeps = self.kept(place) if calls and self.happens(25) else ()
        says = Says(
            self.name("a"),
            self.one_of(_TEXTS[bool(keeps) :]),
            reads=self.one_of(reads) if reads and self.happens(60) else None,
            pieces=self.choose(1, 3),
            ticks=self.ticks(),
            ends=ends,
            notes=self.kept(place) if not self.plain and self.happens(15) else (),
            keeps=keeps,
            built=not self.plain and ends != "reports" and self.happens(25),
        )
        # versions of ADK differ in what they write when a tool ends the turn
        writes = ends != "leaves" and (ends != "reports" or place.fails) and self.happens(75)
        return agent(says, self.key(place, "t") if writes else None)

    def kept(self, place: Place) -> tuple[tuple[str, Any], ...]:
        """What a tool or a callback writes."""
        key = self.key(place, "tnjl")
        if key is None:
            return ()
        values: dict[str, Sequence[Any]] = {"t": _TEXTS, "n": range(4), "j": _JSON, "l": _LISTS}
        return ((key, self.one_of(values[kind_of(key)])),)

    def function(self, place: Place) -> Node:
        name = self.name("f")
        return FunctionNode(name, Ref(self.step(name, place), name))

    def transform(self, place: Place) -> Node:
        name, keys = self.name("s"), place.keys
        if self.happens(30) and keys:
            gone = (self.one_of(keys), *([self.one_of(keys)] if self.happens(30) else ()))
            return TransformNode(name, semantics="delete_keys", affected_keys=gone)
        if self.happens(10) and keys and not place.shared:
            kept = (self.one_of(keys),)
            return TransformNode(name, semantics="replace_session", affected_keys=kept)
        fn = Ref(self.step(name, place), name)
        if place.shared or not self.happens(30):
            return TransformNode(name, fn)
        everything = any(key.startswith("user:") for key in keys) and self.happens(50)
        scope = "all" if everything else "session"
        return TransformNode(name, fn, semantics="replace_session", scope=scope)

    def tap(self, place: Place) -> Node:
        name = self.name("v")
        return TapNode(name, Ref(self.step(name, place), name))

    def expect(self, place: Place) -> Node:
        name = self.name("e")
        if place.fails:
            return ExpectNode(name, self.test(place), f"{name} has to hold")
        always = Match("eq", "absent", None) if self.happens(50) else self.check(place, modulus=1)
        return ExpectNode(name, always)

    def step(self, name: str, place: Place, *, fails: bool | None = None) -> Step:
        """A function; one that does not fail writes to a key, most of the time."""
        if self.happens(20) and place.fails if fails is None else fails:
            return Step(name, ticks=self.waits(), ends=self.one_of(["raises", "misreturns"]))
        key = self.key(place, "tnjl")
        if key is None or self.happens(5):
            return Step(name, ticks=self.waits(), ends="ignores")
        kind, ticks = kind_of(key), self.waits()
        if kind == "n":
            return Step(name, counts=(key,), ticks=ticks)
        if kind == "t" or (kind == "j" and self.happens(30)):
            return Step(name, tags=((key, self.one_of(place.reads)),), ticks=ticks)
        values = _JSON if kind == "j" else _LISTS
        return Step(name, writes=((key, self.one_of(values)),), ticks=ticks)

    def key(self, place: Place, kinds: str) -> str | None:
        """A key to write to, if there is one."""
        if place.shared and "t" in kinds and self.happens(35):
            return SHARED
        keys = place.of(kinds)
        return self.one_of(keys) if keys else None

    def bad(self, place: Place) -> Node:
        """A leaf that fails."""
        name = self.name("b")
        if self.happens(50):
            endings: list[Any] = ["raises", "reports"] if place.attempt else ["raises"]
            return agent(Says(name, "", pieces=2, ticks=self.ticks(), ends=self.one_of(endings)))
        if self.happens(30):
            return ExpectNode(name, Match("gt", "absent", 0), f"{name} never holds")
        return FunctionNode(name, Ref(self.step(name, place, fails=True), name))

    def hanging(self, place: Place) -> Node:
        """An agent that never ends, unless it is ended."""
        says = Says(
            self.name("h"),
            "too late",
            ticks=self.ticks(),
            ends="hangs",
            keeps=self.kept(place.cut()) if not self.plain and self.happens(25) else (),
            clings=self.happens(25),
            built=not self.plain and self.happens(25),
        )
        return agent(says, self.key(place.cut(), "t") if self.happens(50) else None)

    # --- predicates ----------------------------------------------------------------------------

    def test(self, place: Place) -> Predicate:
        key = self.one_of(place.reads)
        kind = kind_of(key)
        if self.happens(50):
            return self.check(place)
        if kind == "n" and self.happens(70):
            return Match(self.one_of(["gt", "lt"]), key, self.choose(1, 5))
        if kind == "t" and self.happens(70):
            return Match("contains", key, self.one_of(["a", "→", "yes", ""]))
        if kind == "l" and self.happens(70):
            return Match("contains", key, self.one_of(["one", 7, "x"]))
        if place.fails and self.happens(40):  # what cannot be compared raises
            return Match(self.one_of(["gt", "lt", "contains"]), key, self.one_of([1, "x"]))
        operator = "ne" if self.happens(20) else "eq"
        return Match(operator, key, self.one_of([None, "", "yes", True, 0, 4, 2.5]))

    def check(self, place: Place, modulus: int | None = None) -> Predicate:
        modulus = self.choose(1, 3) if modulus is None else modulus
        name = self.name("p")
        check = Check(
            name,
            self.one_of(place.reads),
            modulus,
            self.choose(0, modulus - 1),
            ticks=self.waits(),
            raises=place.fails and self.happens(10),
        )
        return Ref(check, name)
