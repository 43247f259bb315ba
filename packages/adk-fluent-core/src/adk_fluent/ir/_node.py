"""The base of every IR node, and the few iterative algorithms everything else is written with.

A node is a frozen, slotted dataclass. Fields made with `child()` hold nodes; all others hold data.
Nothing here recurses: 20 000 nested nodes walk, hash, compare, pickle and print.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform, overload

from adk_fluent.ir._record import Schema, build, child, field, record, replaced
from adk_fluent.ir._ref import Location
from adk_fluent.ir._state import Contract
from adk_fluent.ir._values import ExecutionBoundary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Self

N = TypeVar("N", bound="Node")
T = TypeVar("T")


@dataclass_transform(frozen_default=True, field_specifiers=(field, child))
def node(cls: type[N]) -> type[N]:
    """Make a class an IR node: frozen, slotted, with its child and data fields known."""
    return build(cls)


@record
class Node:
    """One step of a pipeline: data, never behaviour. Rewriting returns a new node.

    Attributes:
        name: Unique among agents of a pipeline; composites may share a name.
        description: What it is for, told to agents that may call it or transfer to it.
        boundary: Where this part runs when the pipeline is distributed (spec section 9).
        contract: What it promises about state.
        location: The builder call that made it; not part of equality or hashes.
    """

    __slots__ = ("__weakref__",)

    #: The wheel whose layer runs this node; named by the error when it is absent.
    layer: ClassVar[str] = "core"
    __record__: ClassVar[Schema]

    name: str
    description: str | None = field(default=None, kw_only=True)
    boundary: ExecutionBoundary | None = field(default=None, kw_only=True)
    contract: Contract | None = field(default=None, kw_only=True)
    location: Location | None = field(default=None, kw_only=True, compare=False)

    @property
    def children(self) -> tuple[Node, ...]:
        """The nodes directly below this one, in declared order."""
        schema = self.__record__
        names = schema.children
        if len(names) == 1:
            return held_by(self, names[0])
        if not any(schema.links(self)):  # an agent by itself, as most are
            return ()
        return tuple([below for name in names for below in held_by(self, name)])

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same node over other children; as many as it has now, in the same order.

        Raises:
            ValueError: The number of children differs.
        """
        have = self.children
        if len(children) != len(have):
            raise ValueError(
                f"{_label(self)} has {len(have)} children, but {len(children)} were given"
            )
        return replaced(self, spread(self, children))

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return replaced(self, changes)

    def data(self) -> tuple[Any, ...]:
        """The values that take part in equality, children left out."""
        return self.__record__.data(self)

    def shape(self) -> tuple[int, ...]:
        """How many children each child field holds (-1: none); tells `()` from an absent child."""
        below: list[_Held] = [getattr(self, name) for name in self.__record__.children]
        return tuple([-1 if v is None else len(v) if isinstance(v, tuple) else 1 for v in below])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        todo: list[tuple[Node, Node]] = [(self, other)]
        seen: set[tuple[int, int]] = set()  # a shared part is compared once, not once a place
        while todo:
            a, b = todo.pop()
            if a is b:
                continue
            if type(a) is not type(b) or a.data() != b.data() or a.shape() != b.shape():
                return False
            below = a.children
            if below and (pair := (id(a), id(b))) not in seen:
                seen.add(pair)
                todo.extend(zip(below, b.children, strict=True))
        return True

    def __hash__(self) -> int:
        def combine(node: Node, below: tuple[int, ...]) -> int:
            schema = node.__record__
            return hash((type(node).__name__, schema.key(node), node.shape(), below))

        return fold(self, combine)

    def __reduce__(self) -> tuple[Any, ...]:
        return (from_rows, (to_rows(self),))


#: What a child field holds.
_Held = Node | tuple[Node, ...] | None


def children(root: Node) -> tuple[Node, ...]:
    """The nodes directly below `root`, in declared order."""
    return root.children


def held_by(here: Node, name: str) -> tuple[Node, ...]:
    """The nodes in one child field."""
    held: _Held = getattr(here, name)
    return held if isinstance(held, tuple) else () if held is None else (held,)


def walk(root: Node) -> Iterator[Node]:
    """Yield every occurrence of every node, parents first, in declared order."""
    todo = [root]
    while todo:
        here = todo.pop()
        yield here
        below = here.children
        if below:
            todo.extend(reversed(below))


def distinct(root: Node) -> Iterator[Node]:
    """Yield every node once, where `walk` comes to it first."""
    todo, seen = [root], set[int]()
    while todo:
        here = todo.pop()
        if id(here) not in seen:
            seen.add(id(here))
            yield here
            todo.extend(reversed(here.children))


def fold(root: Node, combine: Callable[[Node, tuple[T, ...]], T]) -> T:
    """Compute a value bottom-up: `combine(node, values of its children)`; shared nodes once.

    Children are computed in declared order, so `combine` may count or make names.
    """
    memo: dict[int, T] = {}
    todo: list[Node] = [root]
    while todo:
        here = todo[-1]
        if id(here) in memo:
            todo.pop()
            continue
        below = here.children
        missing = [c for c in below if id(c) not in memo]
        if missing:
            todo.extend(reversed(missing))
            continue
        memo[id(here)] = combine(here, tuple([memo[id(c)] for c in below]))
    return memo[id(root)]


def map(root: Node, fn: Callable[[Node], Node]) -> Node:
    """Rewrite bottom-up: `fn` sees each node after its children; nodes left alone are shared."""
    return fold(root, lambda here, below: fn(_over(here, below)))


def _over(here: Node, below: tuple[Node, ...]) -> Node:
    """The node over these children; the very node when they are its own."""
    same = all(a is b for a, b in zip(here.children, below, strict=True))
    return here if same else here.with_children(below)


@overload
def find(root: Node, what: type[N]) -> N | None: ...
@overload
def find(root: Node, what: str | Callable[[Node], bool]) -> Node | None: ...
def find(root: Node, what: Any) -> Node | None:
    """The first node of that type, with that name, or for which the predicate holds; else None."""
    if isinstance(what, str):
        return next((n for n in distinct(root) if n.name == what), None)
    if isinstance(what, type):
        return next((n for n in distinct(root) if isinstance(n, what)), None)
    return next((n for n in distinct(root) if what(n)), None)


def replace(root: Node, target: Node | str, new: Node) -> Node:
    """Put `new` at every place where `target` stands (the very node, or nodes of that name).

    Raises:
        LookupError: `target` does not occur below `root`.
    """
    hits = 0

    def swap(here: Node, below: tuple[Node, ...]) -> Node:
        nonlocal hits
        if (here.name == target) if isinstance(target, str) else (here is target):
            hits += 1
            return new
        return _over(here, below)

    result = fold(root, swap)
    if not hits:
        wanted = repr(target) if isinstance(target, str) else _label(target)
        raise LookupError(f"{wanted} does not occur below {_label(root)}")
    return result


def _label(here: Node) -> str:
    return f"{type(here).__name__} {here.name!r}"


def spread(here: Node, flat: Sequence[T]) -> dict[str, T | tuple[T, ...] | None]:
    """One thing for each child, given back by child field, shaped like the field's value."""
    links: dict[str, T | tuple[T, ...] | None] = {}
    at = 0
    for name in here.__record__.children:
        held: _Held = getattr(here, name)
        if isinstance(held, tuple):
            links[name] = tuple(flat[at : at + len(held)])
            at += len(held)
        elif held is None:
            links[name] = None
        else:
            links[name] = flat[at]
            at += 1
    return links


#: A node by itself: its class, its data, and for each child field the rows of its children.
Row = tuple[type[Node], dict[str, Any], dict[str, int | tuple[int, ...] | None]]


def to_rows(root: Node) -> list[Row]:
    """A flat form of the graph: children come first, shared nodes once, the root last."""
    rows: list[Row] = []

    def add(here: Node, below: tuple[int, ...]) -> int:
        data: dict[str, Any] = {}
        for name, spec in here.__record__.fields.items():
            if not spec.child and not spec.is_default(value := getattr(here, name)):
                data[name] = value
        rows.append((type(here), data, spread(here, below)))
        return len(rows) - 1

    fold(root, add)
    return rows


def from_rows(rows: Iterable[Row]) -> Node:
    """The graph again."""
    made: list[Node] = []
    for kind, data, links in rows:
        below: dict[str, Any] = {}
        for name, at in links.items():
            if isinstance(at, tuple):
                below[name] = tuple([made[i] for i in at])
            else:
                below[name] = None if at is None else made[at]
        made.append(kind(**data, **below))
    return made[-1]
