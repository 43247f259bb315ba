"""The base of every IR node, and the few iterative algorithms everything else is written with.

A node is a frozen, slotted dataclass. Fields made with `child()` hold nodes; all others hold data.
Nothing here recurses: 20 000 nested nodes walk, hash, compare, pickle and print.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass, field, fields
from dataclasses import replace as _replace_fields
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, dataclass_transform, overload

from adk_fluent.ir._ref import Location

if TYPE_CHECKING:
    from typing import Self

    from adk_fluent.ir._values import ExecutionBoundary

N = TypeVar("N", bound="Node")
REPR_DEPTH = 50


def child(**kwargs: Any) -> Any:
    """A dataclass field that holds a node, an optional node or a tuple of nodes."""
    return field(**kwargs, metadata={"child": True})


@dataclass_transform(frozen_default=True, field_specifiers=(field, child))
def node(cls: type[N]) -> type[N]:
    """Make a class an IR node: frozen, slotted, with its child and data fields known."""
    made = dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)
    own = fields(made)
    made._children = tuple(f.name for f in own if f.metadata.get("child"))  # pyright: ignore[reportPrivateUsage]
    made._data = tuple(f.name for f in own if f.compare and not f.metadata.get("child"))  # pyright: ignore[reportPrivateUsage]
    return made


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """One step of a pipeline: data, never behaviour. Rewriting returns a new node.

    Attributes:
        name: Unique among agents of a pipeline; composites may share a name.
        boundary: Where this part runs when the pipeline is distributed (spec section 9).
        location: The builder call that made it; not part of equality or hashes.
    """

    #: The wheel whose layer runs this node; named by the error when it is absent.
    layer: ClassVar[str] = "core"
    _children: ClassVar[tuple[str, ...]] = ()
    _data: ClassVar[tuple[str, ...]] = ("name", "boundary")

    name: str
    boundary: ExecutionBoundary | None = field(default=None, kw_only=True)
    location: Location | None = field(default=None, kw_only=True, compare=False)

    @property
    def children(self) -> tuple[Node, ...]:
        """The nodes directly below this one, in declared order."""
        names = self._children
        if not names:
            return ()
        if len(names) == 1:
            value = getattr(self, names[0])
            return value if type(value) is tuple else () if value is None else (value,)
        out: list[Node] = []
        for name in names:
            value = getattr(self, name)
            if type(value) is tuple:
                out.extend(value)
            elif value is not None:
                out.append(value)
        return tuple(out)

    def with_children(self, children: tuple[Node, ...]) -> Self:
        """The same node over other children; as many as it has now, in the same order.

        Raises:
            ValueError: The number of children differs.
        """
        have = self.children
        if len(children) != len(have):
            raise ValueError(
                f"{type(self).__name__} {self.name!r} has {len(have)} children, given {len(children)}"
            )
        changes: dict[str, Any] = {}
        rest = list(children)
        for name in self._children:
            value = getattr(self, name)
            if type(value) is tuple:
                count = len(value)  # pyright: ignore[reportUnknownArgumentType]
                changes[name] = tuple(rest[:count])
                del rest[:count]
            elif value is not None:
                changes[name] = rest.pop(0)
        return _replace_fields(self, **changes)

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return _replace_fields(self, **changes)

    def data(self) -> tuple[Any, ...]:
        """The values that take part in equality, children left out."""
        return tuple(getattr(self, name) for name in self._data)

    def shape(self) -> tuple[int, ...]:
        """How many children each child field holds (-1: none); tells `()` from an absent child."""
        values = (getattr(self, name) for name in self._children)
        return tuple(-1 if v is None else len(v) if type(v) is tuple else 1 for v in values)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Node):
            return NotImplemented
        todo: list[tuple[Node, Node]] = [(self, other)]
        while todo:
            a, b = todo.pop()
            if a is b:
                continue
            if type(a) is not type(b) or a.data() != b.data() or a.shape() != b.shape():
                return False
            todo.extend(zip(a.children, b.children, strict=True))
        return True

    def __hash__(self) -> int:
        def combine(node: Node, below: tuple[int, ...]) -> int:
            return hash((type(node).__name__, node.data(), node.shape(), below))

        return fold(self, combine)

    def __repr__(self) -> str:
        return _render(self, REPR_DEPTH)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_from_rows, (_to_rows(self),))


def children(root: Node) -> tuple[Node, ...]:
    """The nodes directly below `root`, in declared order."""
    return root.children


def walk(root: Node) -> Iterator[Node]:
    """Yield every occurrence of every node, parents first, in declared order."""
    todo = [root]
    while todo:
        here = todo.pop()
        yield here
        below = here.children
        if below:
            todo.extend(reversed(below))


T = TypeVar("T")


def fold(root: Node, combine: Callable[[Node, tuple[T, ...]], T]) -> T:
    """Compute a value bottom-up: `combine(node, values of its children)`; shared nodes once."""
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
            todo.extend(missing)
            continue
        memo[id(here)] = combine(here, tuple(memo[id(c)] for c in below))
        todo.pop()
    return memo[id(root)]


def map(root: Node, fn: Callable[[Node], Node]) -> Node:  # noqa: A001  # the IR's own map
    """Rewrite bottom-up: `fn` sees each node after its children; nodes left alone are shared."""

    def rewrite(here: Node, below: tuple[Node, ...]) -> Node:
        same = all(a is b for a, b in zip(here.children, below, strict=True))
        return fn(here if same else here.with_children(below))

    return fold(root, rewrite)


@overload
def find(root: Node, what: type[N]) -> N | None: ...
@overload
def find(root: Node, what: str | Callable[[Node], bool]) -> Node | None: ...
def find(root: Node, what: Any) -> Node | None:
    """The first node of that type, with that name, or for which the predicate holds; else None."""
    if isinstance(what, str):
        return next((n for n in walk(root) if n.name == what), None)
    if isinstance(what, type):
        return next((n for n in walk(root) if isinstance(n, what)), None)
    return next((n for n in walk(root) if what(n)), None)


def replace(root: Node, target: Node | str, new: Node) -> Node:
    """Put `new` at every place where `target` stands (the very node, or nodes of that name).

    Raises:
        LookupError: `target` does not occur below `root`.
    """
    hits = 0

    def swap(here: Node, below: tuple[Node, ...]) -> Node:
        nonlocal hits
        if here is target or here.name == target:
            hits += 1
            return new
        same = all(a is b for a, b in zip(here.children, below, strict=True))
        return here if same else here.with_children(below)

    result = fold(root, swap)
    if not hits:
        wanted = repr(target) if isinstance(target, str) else f"{type(target).__name__} {target.name!r}"
        raise LookupError(f"{wanted} does not occur below {type(root).__name__} {root.name!r}")
    return result


def _render(root: Node, depth: int) -> str:
    """Source text that builds the node again; below `depth` levels it is elided."""

    def value_text(value: Any, level: int) -> str:
        if isinstance(value, Node):
            return node_text(value, level - 1) if level else "..."
        if type(value) is tuple:
            inner = ", ".join([value_text(v, level) for v in value])  # pyright: ignore[reportUnknownVariableType]
            return f"({inner},)" if len(value) == 1 else f"({inner})"  # pyright: ignore[reportUnknownArgumentType]
        return repr(value)

    def node_text(here: Node, level: int) -> str:
        parts = [repr(here.name)]
        for f in fields(here):
            if f.name in ("name", "location"):
                continue
            value = getattr(here, f.name)
            if not _is_default(f, value):
                parts.append(f"{f.name}={value_text(value, level)}")
        return f"{type(here).__name__}({', '.join(parts)})"

    return node_text(root, depth)


def _is_default(spec: Field[Any], value: Any) -> bool:
    return value is spec.default or (value == spec.default and type(value) is type(spec.default))


#: One row a node: its class, its data (in field order) and, a child field, rows of its children.
Row = tuple[type["Node"], dict[str, Any], dict[str, int | None | tuple[int, ...]]]


def _to_rows(root: Node) -> list[Row]:
    rows: list[Row] = []

    def add(here: Node, below: tuple[int, ...]) -> int:
        data = {f.name: getattr(here, f.name) for f in fields(here) if not f.metadata.get("child")}
        rest, links = list(below), dict[str, int | None | tuple[int, ...]]()
        for name in here._children:  # pyright: ignore[reportPrivateUsage]
            value = getattr(here, name)
            if type(value) is tuple:
                count = len(value)  # pyright: ignore[reportUnknownArgumentType]
                links[name] = tuple(rest[:count])
                del rest[:count]
            else:
                links[name] = None if value is None else rest.pop(0)
        rows.append((type(here), data, links))
        return len(rows) - 1

    fold(root, add)
    return rows


def _from_rows(rows: list[Row]) -> Node:
    made: list[Node] = []
    for kind, data, links in rows:
        below: dict[str, Any] = {
            name: None if at is None else made[at] if isinstance(at, int) else tuple(made[i] for i in at)
            for name, at in links.items()
        }
        made.append(kind(**data, **below))
    return made[-1]
