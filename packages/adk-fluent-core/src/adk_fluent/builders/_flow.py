"""The operators, and the arrangements they make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, cast, get_args, overload

from adk_fluent._arguments import one_of
from adk_fluent._words import article, describe
from adk_fluent.builders._base import BuilderBase
from adk_fluent.builders._branching import branch
from adk_fluent.builders._operands import (
    Operand,
    as_node,
    as_predicate,
    is_mapping,
    passengers,
    positive,
)
from adk_fluent.builders._types import Out_co, Value
from adk_fluent.builders._until import Until
from adk_fluent.errors import BuildError, UsageError
from adk_fluent.ir import (
    EdgeSemantics,
    FallbackNode,
    LoopNode,
    Merge,
    Node,
    ParallelNode,
    Predicate,
    RaceNode,
    Ref,
    SequenceNode,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from adk_fluent.builders._base import AgentLike, Branches, StepLike
    from adk_fluent.builders._types import PredicateLike, StepFunction

#: Types of errors: one, or several.
ErrorTypes: TypeAlias = "type[Exception] | Sequence[type[Exception]]"
_SEQUENCE: Final = "pipeline"
MERGES: Final[tuple[Merge, ...]] = get_args(Merge)


class Builder(BuilderBase[Out_co]):
    """Anything that can stand in a pipeline, with the operators that put things together.

    Every operator takes snapshots of both sides and returns something new. A function over state
    or an ADK agent may stand on either side.
    """

    __slots__ = ()

    @overload
    def __rshift__(self, other: StepFunction | Silent) -> Pipeline[Out_co]: ...
    @overload
    def __rshift__(self, other: Builder[Value]) -> Pipeline[Value]: ...
    @overload
    def __rshift__(self, other: AgentLike | Branches) -> Pipeline: ...
    def __rshift__(self, other: StepLike | Branches) -> Pipeline:
        """Then: ``a >> b``; with a dict, a branch for each value of the key written last."""
        return Pipeline._joined(self, other)  # pyright: ignore[reportPrivateUsage]  # same module

    def __rrshift__(self, other: StepLike) -> Pipeline[Out_co]:
        """Then: ``fn >> a``."""
        return Pipeline._joined(other, self)  # pyright: ignore[reportPrivateUsage]  # same module

    def __or__(self, other: StepLike) -> FanOut:
        """At the same time: ``a | b``."""
        return FanOut._joined(self, other)  # pyright: ignore[reportPrivateUsage]  # same module

    def __ror__(self, other: StepLike) -> FanOut:
        """At the same time: ``fn | a``."""
        return FanOut._joined(other, self)  # pyright: ignore[reportPrivateUsage]  # same module

    @overload
    def __floordiv__(self, other: Builder[Value]) -> Fallback[Out_co | Value]: ...
    @overload
    def __floordiv__(self, other: StepLike) -> Fallback: ...
    def __floordiv__(self, other: StepLike) -> Fallback:
        """If that fails: ``a // b``."""
        return Fallback._joined(self, other)  # pyright: ignore[reportPrivateUsage]  # same module

    def __rfloordiv__(self, other: StepLike) -> Fallback:
        """If that fails: ``fn // a``."""
        return Fallback._joined(other, self)  # pyright: ignore[reportPrivateUsage]  # same module

    def __mul__(self, times: int | Until) -> Loop[Out_co]:
        """Again and again: ``a * 3`` or ``a * until(done, max=3)``."""
        if isinstance(times, Until):
            return Loop(self, until=times.predicate, max=times.max)
        hint = "write a * 3, or a * until(lambda state: ..., max=3)"
        return Loop(self, max=positive(times, "the number of times", whole=True, help=hint))


class Silent(Builder):
    """A step that is no agent, so that the answer stays what it was."""

    __slots__ = ()


class Series(Builder[Out_co]):
    """Parts in order.

    The list of parts only ever grows. Builders made from each other by operators share it, each
    looking at its own part of it, so that a chain of n operators takes time and space of n.
    """

    __slots__ = ("_count", "_parts")

    #: What a part is called in messages.
    _part: ClassVar[str] = "step"

    def __init__(self, *args: Any) -> None:
        name, parts = (args[0], args[1:]) if args and isinstance(args[0], str) else (None, args)
        super().__init__(name)
        self._parts: list[Node] = []
        self._count = 0
        for part in parts:
            self._add(part)

    def _splice(self, node: Node) -> Sequence[Node]:
        """What to add for a part: its own parts, where that means the same."""
        return (node,)

    def _is_open(self) -> bool:
        """Whether something made of this and one more part is simply this, one part longer."""
        plain = self._boundary is self._contract is self._edge is self._description is None
        return plain and self._name is None and self._model is None and not self._scoped

    def _part_node(self, part: object) -> Node:
        return as_node(part, f"{article(self._part)} {self._part}")

    def _add(self, part: object) -> Self:
        self._append(self._splice(self._part_node(part)))
        return self._board(passengers(part))

    def _append(self, added: Sequence[Node]) -> None:
        parts, start = self._parts, self._count
        end = start + len(added)
        if len(parts) == start:
            parts.extend(added)
        # Someone who shares the list, perhaps in another thread, may have grown it first.
        if len(parts) < end or any(parts[start + i] is not node for i, node in enumerate(added)):
            parts = [*parts[:start], *added]
        self._parts, self._count = parts, end

    @classmethod
    def _joined(cls, left: object, right: object) -> Self:
        if type(left) is cls and left._is_open():  # noqa: SLF001  # one of ours
            new = left._fork()  # noqa: SLF001  # one of ours
        else:
            new = cls()
            new._add(left)
        return new._add(right)

    def _fork(self) -> Self:
        """A copy that shares the list of parts."""
        new = object.__new__(type(self))
        new._name = new._model = new._node = new._ir = new._runs = None
        new._boundary = new._contract = new._edge = new._description = None
        new._scoped = ()
        new._location, new._aboard = self._location, self._aboard
        new._parts, new._count = self._parts, self._count
        return new

    def _nodes(self) -> tuple[Node, ...]:
        if not self._count:
            raise BuildError(
                f"{type(self).__name__} {self.name!r} is empty",
                location=self._location,
                help=f"add {article(self._part)} {self._part} with .{self._part}(...)",
            )
        return tuple(self._parts[: self._count])


class Pipeline(Series[Out_co]):
    """Steps one after the other: ``a >> b``, or ``Pipeline("desk").step(a).step(b)``.

    A pipeline without a name melts into the pipeline it is put into; one with a name stays whole.
    """

    __slots__ = ("_edges",)
    _kind = _SEQUENCE

    @overload
    def __init__(self, name: str, /, *steps: StepLike) -> None: ...
    @overload
    def __init__(self, *steps: StepLike) -> None: ...
    def __init__(self, *args: Any) -> None:
        self._edges: dict[int, EdgeSemantics] = {}  # by position; most steps have none
        super().__init__(*args)

    def step(self, step: StepLike | Branches) -> Pipeline:
        """Add a step; a dict is a branch for each value of the key written last."""
        return self._add(step)

    def _append(self, added: Sequence[Node]) -> None:
        edge = _edge_of(added)
        super()._append(added if edge is None else added[0].children)
        if edge is not None:
            self._edges[self._count - 1] = edge

    def _fork(self) -> Self:
        new = super()._fork()
        new._edges = self._edges.copy() if self._edges else {}  # noqa: SLF001  # one of ours
        return new

    def _part_node(self, part: object) -> Node:
        if not isinstance(part, Operand) and is_mapping(part):
            return branch((self._parts[i] for i in range(self._count - 1, -1, -1)), part)
        return as_node(part, "a step")

    def _splice(self, node: Node) -> Sequence[Node]:
        return _steps(node)

    def _freeze(self) -> Node:
        steps, edges = self._nodes(), self._edges
        flows = tuple(edges.get(at, EdgeSemantics()) for at in range(len(steps))) if edges else ()
        return SequenceNode(self.name, steps, flows, location=self._location)


class FanOut(Series[Out_co]):
    """Branches at the same time: ``a | b``, or ``FanOut("look_up").branch(a).branch(b)``.

    Args:
        *args: A name, if it has one; then the branches.
        merge: ``wait_all`` waits for every branch, ``first_complete`` keeps only the first to
            succeed, ``interleave`` forwards their output as it comes.
    """

    __slots__ = ("_merge",)
    _kind = "parallel"
    _part = "branch"

    @overload
    def __init__(self, name: str, /, *branches: StepLike, merge: Merge = ...) -> None: ...
    @overload
    def __init__(self, *branches: StepLike, merge: Merge = ...) -> None: ...
    def __init__(self, *args: Any, merge: Merge = "wait_all") -> None:
        self._merge: Merge = one_of(merge, MERGES, "merge")
        super().__init__(*args)

    def branch(self, branch: StepLike) -> Self:
        """Add a branch."""
        return self._add(branch)

    def _splice(self, node: Node) -> Sequence[Node]:
        if not isinstance(node, ParallelNode) or node.name != self._kind or _is_apart(node):
            return (node,)
        return node.branches if node.merge == self._merge == "wait_all" else (node,)

    def _is_open(self) -> bool:
        return super()._is_open() and self._merge == "wait_all"

    def _fork(self) -> Self:
        new = super()._fork()
        new._merge = self._merge  # noqa: SLF001  # one of ours
        return new

    def _freeze(self) -> Node:
        return ParallelNode(self.name, self._nodes(), self._merge, location=self._location)


class Fallback(Series[Out_co]):
    """The first attempt that succeeds: ``a // b``, or ``Fallback("reply").attempt(a).attempt(b)``.

    What a failed attempt wrote is undone. A mistake in a function of state (a `TypeError`,
    `KeyError`, `NameError` or `AttributeError` that it raises) is raised, unless `on` names it.

    Args:
        *args: A name, if it has one; then the attempts.
        on: Types of errors after which the next attempt is tried; every other one is raised.

    Raises:
        UsageError: `on` has something that is no type of exceptions, or nothing.
    """

    __slots__ = ("_on",)
    _kind = "fallback"
    _part = "attempt"

    @overload
    def __init__(self, name: str, /, *attempts: StepLike, on: ErrorTypes | None = ...) -> None: ...
    @overload
    def __init__(self, *attempts: StepLike, on: ErrorTypes | None = ...) -> None: ...
    def __init__(self, *args: Any, on: ErrorTypes | None = None) -> None:
        self._on: tuple[Ref, ...] = () if on is None else _error_types(on)
        super().__init__(*args)

    def attempt(self, attempt: StepLike) -> Fallback:
        """Add what is tried when everything before it has failed."""
        return self._add(attempt)

    def _splice(self, node: Node) -> Sequence[Node]:
        if not isinstance(node, FallbackNode) or node.name != self._kind or _is_apart(node):
            return (node,)
        return node.attempts if node.on == self._on == () else (node,)

    def _is_open(self) -> bool:
        return super()._is_open() and not self._on

    def _fork(self) -> Self:
        new = super()._fork()
        new._on = self._on  # noqa: SLF001  # one of ours
        return new

    def _freeze(self) -> Node:
        return FallbackNode(self.name, self._nodes(), self._on, location=self._location)


class Race(Series[Out_co]):
    """Branches at the same time, of which the first to succeed counts; made by `race`."""

    __slots__ = ()
    _kind = "race"
    _part = "branch"

    def branch(self, branch: StepLike) -> Race:
        """Add a branch."""
        return self._add(branch)

    def _freeze(self) -> Node:
        return RaceNode(self.name, self._nodes(), location=self._location)


class Loop(Series[Out_co]):
    """Steps again and again: ``body * 3``, or ``Loop("polish").step(a).until(done).max(3)``.

    It ends when the predicate holds, when an agent escalates, or after `max` iterations.

    Args:
        *args: A name, if it has one; then the steps.
        until: A function of state, sync or async, tested after each iteration.
        max: Iterations at most.
    """

    __slots__ = ("_max", "_until")
    _kind = "loop"

    @overload
    def __init__(
        self, name: str, /, *steps: StepLike, until: PredicateLike | None = ..., max: int = ...
    ) -> None: ...
    @overload
    def __init__(
        self, *steps: StepLike, until: PredicateLike | None = ..., max: int = ...
    ) -> None: ...
    def __init__(self, *args: Any, until: PredicateLike | None = None, max: int = 10) -> None:
        self._until: Predicate | None = None if until is None else as_predicate(until, "until")
        self._max: int = positive(max, "max", whole=True)
        super().__init__(*args)

    def step(self, step: StepLike) -> Loop:
        """Add a step to what is repeated."""
        return self._add(step)

    def until(self, predicate: PredicateLike) -> Self:
        """End when this holds; it is tested after each iteration."""
        self._until = as_predicate(predicate, "until(...)")
        return self._changed()

    def max(self, iterations: int) -> Self:
        """End after this many iterations at the latest."""
        self._max = positive(iterations, "max", whole=True)
        return self._changed()

    def _splice(self, node: Node) -> Sequence[Node]:
        return _steps(node)

    def _freeze(self) -> Node:
        steps, here = self._nodes(), self._location
        body = steps[0] if len(steps) == 1 else SequenceNode(_SEQUENCE, steps, location=here)
        return LoopNode(self.name, body, self._max, self._until, location=here)


def _error_types(types: object) -> tuple[Ref, ...]:
    """Types of errors, as the IR holds them."""
    found: Sequence[object] = (types,)
    if isinstance(types, tuple | list):
        found = cast("Sequence[object]", types)
    for each in found or (None,):
        if not (isinstance(each, type) and issubclass(each, Exception)):
            raise UsageError(
                "on= takes types of exceptions",
                found=describe(each) if found else "none",
                help="on=(ConnectionError, TimeoutError); leave it out for every error",
            )
    return tuple(Ref.to(each) for each in found)


def _is_apart(node: Node) -> bool:
    """Whether more than its parts is said of it."""
    return not (node.boundary is node.contract is node.description is None)


def _edge_of(added: Sequence[Node]) -> EdgeSemantics | None:
    """The edge behind one step that `stream_to` has set it for."""
    node = added[0] if len(added) == 1 else None
    if not isinstance(node, SequenceNode) or node.name != _SEQUENCE or _is_apart(node):
        return None
    return node.edge_semantics[0] if len(node.edge_semantics) == 1 else None


def _steps(node: Node) -> Sequence[Node]:
    """The steps of a sequence that nothing sets apart, else the node itself."""
    if not isinstance(node, SequenceNode) or node.name != _SEQUENCE or _is_apart(node):
        return (node,)
    return (node,) if node.edge_semantics else node.steps
