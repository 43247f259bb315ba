"""Random pipelines over scripted leaves, in every kind of node the engine runs.

All that a pipeline does is determined, whatever the timing: branches that run at the same time
read keys of their own only and share one that they write; of the branches of a race all but one
hang or fail; what can fail beside others is undone, or told apart by the reference.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast

from adk_fluent.ir import (
    FallbackNode,
    LoopNode,
    MapOverNode,
    Node,
    OnError,
    ParallelNode,
    RaceNode,
    Ref,
    RouteNode,
    SequenceNode,
    TimeoutNode,
    TransferNode,
    fold,
    import_path,
)
from adk_fluent.testing._oracle._leaves import ITEMS, START, Leaves, Place
from adk_fluent.testing._oracle._merging import KEYS, SHARED, keeps_merging, names_merged

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import SearchStrategy

_SHORT: Final = 0.02  # seconds, for what never ends
_LONG: Final = 60.0
_MOST_TIMES: Final = 12  # that one leaf runs
_MOST_NAMES: Final = 60
_DEPTH: Final = 4


class Program:
    """A pipeline and the state it starts from. Its repr is text that makes it again.

    Attributes:
        root: The pipeline.
        state: State at the start.
    """

    def __init__(self, root: Node, state: dict[str, Any]) -> None:
        self.root = root
        self.state = state

    def __repr__(self) -> str:
        return f"{source(self.root)}\nprogram = Program({self.root.name}, {self.state!r})"


def generate(choose: Callable[[int, int], int], *, plain: bool = False) -> Program:
    """A random pipeline.

    Args:
        choose: Gives a random integer between two, both included; the lower the simpler.
        plain: Agents have neither tools that write nor callbacks.
    """
    return _Programs(choose, plain=plain).program()


def programs(*, plain: bool = False) -> SearchStrategy[Program]:
    """Random pipelines, as a strategy of hypothesis.

    Args:
        plain: Agents have neither tools that write nor callbacks.
    """
    from hypothesis import strategies as st  # noqa: PLC0415  # only tests have it

    @st.composite
    def made(draw: st.DrawFn) -> Program:
        return generate(lambda low, high: draw(st.integers(low, high)), plain=plain)

    return made()


def source(root: Node) -> str:
    """A pipeline as Python statements, one a node; names of nodes have to be identifiers."""
    lines: list[str] = []

    def write(here: Node, below: tuple[str, ...]) -> str:
        given = [repr(here.name)]
        for name, spec in here.__record__.fields.items():
            value = getattr(here, name)
            if name != "name" and not spec.is_default(value):
                given.append(f"{name}={_written(value)}")
        lines.append(f"{here.name} = {type(here).__name__}({', '.join(given)})")
        return here.name

    fold(root, write)
    return "\n".join(lines)


def _written(value: Any) -> str:
    if isinstance(value, Node):
        return value.name
    if isinstance(value, tuple):
        parts = cast("tuple[Any, ...]", value)
        return f"({''.join(f'{_written(each)}, ' for each in parts)})"
    if isinstance(value, Ref) and import_path(value.value) is None:
        return f"Ref({value.value!r}, {value.name!r})"
    return repr(value)


class _Programs(Leaves):
    """Makes one pipeline."""

    def program(self) -> Program:
        place = Place((*KEYS, SHARED), fails=self.happens(30))
        parts = [self.part(_DEPTH, place) for _ in range(self.choose(1, 3))]
        root = parts[0] if len(parts) == 1 else SequenceNode("root", tuple(parts))
        if root.contract is None and self.happens(30):
            keys = [key for key in (*KEYS, SHARED) if self.happens(40)]
            root = root.replace(contract=names_merged(keys))
        return Program(root, {k: v for k, v in START.items() if not self.happens(10)})

    def part(self, depth: int, place: Place) -> Node:
        kinds = [
            *[self.one_leaf] * 2,
            *[self.sequence] * 5,
            *[self.parallel, self.fallback, self.race, self.map] * 3,
            *[self.loop, self.route, self.timeout] * 2,
        ]
        if depth < 1 or self.made > _MOST_NAMES:
            return self.leaf(place)
        made = self.one_of(kinds)(depth - 1, place)
        if not self.happens(10):
            return made
        return made.replace(contract=keeps_merging(self.one_of(["off", "error"])))

    def one_leaf(self, depth: int, place: Place) -> Node:
        return self.leaf(place)

    # --- one after the other -------------------------------------------------------------------

    def sequence(self, depth: int, place: Place) -> Node:
        steps: list[Node] = []
        for _ in range(self.choose(1, 4)):
            if steps and self.happens(12):
                steps.append(self.one_of(steps))
            elif steps and self.happens(12):
                steps.append(self.transfer(steps, place))
            else:
                steps.append(self.part(depth, place))
        return SequenceNode(self.name("q"), tuple(steps))

    def transfer(self, steps: list[Node], place: Place) -> Node:
        targets = [step.name for step in steps if not isinstance(step, TransferNode)]
        condition = self.test(place) if self.happens(50) else None
        return TransferNode(self.name("x"), self.one_of(targets), condition)

    def loop(self, depth: int, place: Place) -> Node:
        times = self.choose(1, 3) if place.times * 3 <= _MOST_TIMES else 1
        body = self.part(depth, place._replace(loop=True, times=place.times * times))
        until = self.test(place) if self.happens(50) else None
        return LoopNode(self.name("l"), body, times, until)

    def route(self, depth: int, place: Place) -> Node:
        tests = tuple(self.test(place) for _ in range(self.choose(0, 2)))
        branches = tuple(self.part(depth, place) for _ in tests)
        default: Node | None = None
        if branches and self.happens(20):
            default = self.one_of(branches)
        elif not branches or self.happens(50):
            default = self.part(depth, place)
        return RouteNode(self.name("r"), self.one_of(place.reads), tests, branches, default)

    def fallback(self, depth: int, place: Place) -> Node:
        place = place._replace(attempt=True)
        attempts = [
            self.followed(self.part(depth, place._replace(fails=True)), place, 50)
            for _ in range(self.choose(0, 2))
        ]
        if attempts and self.happens(15):
            attempts.append(self.one_of(attempts))
        return FallbackNode(self.name("o"), (*attempts, self.part(depth, place)))

    def followed(self, part: Node, place: Place, percent: int) -> Node:
        """The part, maybe with something that fails behind it."""
        if not self.happens(percent):
            return part
        return SequenceNode(self.name("q"), (part, self.bad(place)))

    # --- at the same time ----------------------------------------------------------------------

    def parallel(self, depth: int, place: Place) -> Node:
        if place.fails:
            place = place.cut()
        count = self.choose(1, 3)
        keys = [key for key in place.keys if key != SHARED]
        places = [place._replace(keys=tuple(keys[at::count]), shared=True) for at in range(count)]
        if place.fails and self.happens(25):
            bad = self.followed(self.part(depth, places[0].surely()), place, 100)
            branches = [bad, *(self.hanging(each) for each in places[1:])]
        else:
            branches = [self.part(depth, each) for each in places]
        merge: Literal["wait_all", "interleave"] = "interleave" if self.happens(20) else "wait_all"
        return ParallelNode(self.name("y"), tuple(branches), merge)

    def race(self, depth: int, place: Place) -> Node:
        loses = place.fails and self.happens(25)
        place = place.cut()._replace(attempt=True)
        count = self.choose(1, 3)
        winner = count if loses else self.choose(0, count - 1)
        branches: list[Node] = []
        for at in range(count):
            if at == winner:
                branches.append(self.part(depth, place._replace(fails=False)))
                continue
            last = self.bad(place) if loses or self.happens(50) else self.hanging(place)
            if self.happens(70):
                before = self.part(depth, place.surely()._replace(fails=True))
                last = SequenceNode(self.name("q"), (before, last))
            branches.append(last)
        name = self.name("w")
        if self.happens(40):
            return ParallelNode(name, tuple(branches), "first_complete")
        return RaceNode(name, tuple(branches))

    def map(self, depth: int, place: Place) -> Node:
        times = place.times * 3
        if times > _MOST_TIMES:
            return self.part(depth, place)
        on_error: OnError = "skip" if self.happens(30) else "raise"
        if place.fails:
            place = place.cut()
        item = self.name("i")
        within = place._replace(items=(*place.items, item), times=times)
        if on_error == "skip":
            within = within._replace(fails=True, attempt=True)
        body = self.part(depth, within)
        if on_error == "skip":
            body = self.followed(body, within, 30)
        outputs = place.of("lj") or [self.name("l")]
        return MapOverNode(
            self.name("m"),
            self.one_of([ITEMS, *place.of("lj" if place.fails else "l")]),
            body,
            item,
            self.one_of(outputs),
            self.one_of([None, *place.of("tnj"), item]) if self.happens(65) else None,
            self.maybe(self.choose(1, 3)),
            on_error,
        )

    def timeout(self, depth: int, place: Place) -> Node:
        name = self.name("d")
        if not self.happens(30):
            return TimeoutNode(name, self.part(depth, place), _LONG)
        hanging = self.hanging(place._replace(attempt=True))
        if self.happens(70):
            before = self.part(depth, place.cut().surely()._replace(attempt=True))
            hanging = SequenceNode(self.name("q"), (before, hanging))
        late = TimeoutNode(name, hanging, _SHORT)
        if place.fails:
            return late
        return FallbackNode(self.name("o"), (late, self.part(depth, place._replace(attempt=True))))
