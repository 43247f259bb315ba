"""The tables a backend is made of: rules for nodes, rules for values, passes over the IR.

A layer declares a table of the same shape in a module of its own and names it under a slot of its
`Layer`. The backend's table takes it in when it first meets a type it has no rule for, so that a
layer nobody needs is not imported.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar

from adk_fluent._logs import LOG
from adk_fluent._words import describe
from adk_fluent.errors import BuildError, MissingLayerError, UnsupportedNodeError, UsageError
from adk_fluent.ir import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from adk_fluent._registry import Offer
    from adk_fluent.errors import LayerError

N = TypeVar("N", bound=Node)
N_contra = TypeVar("N_contra", bound=Node, contravariant=True)
V = TypeVar("V")
V_contra = TypeVar("V_contra", contravariant=True)
T = TypeVar("T")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
C = TypeVar("C")
C_contra = TypeVar("C_contra", contravariant=True)
F = TypeVar("F")


class Rule(Protocol[N_contra, T, C_contra]):
    """Turns one node, whose children are done already, into what the target is made of."""

    def __call__(self, node: N_contra, children: tuple[T, ...], cx: C_contra, /) -> T: ...


class ValueRule(Protocol[V_contra, R_co, C_contra]):
    """Turns one value into what the target takes in its place."""

    def __call__(self, value: V_contra, cx: C_contra, /) -> R_co: ...


class Layers(Protocol):
    """Where tables find what other wheels add."""

    def require(self, name: str, what: str, node: Node) -> object:
        """Raise if a layer is not installed, or broken; `what` needs it."""
        ...

    def provided(self, slot: str) -> Iterable[tuple[Offer, Any]]:
        """What can be imported of a slot of the installed layers, in a stable order."""
        ...

    def watch(self, forget: Callable[[], None]) -> None:
        """Call a method when what is installed is looked at anew, as long as its object lives."""
        ...


class _NoLayers:
    def require(self, name: str, what: str, node: Node) -> None:
        raise MissingLayerError(
            f"{what} needs the layer {name!r}, which is not installed", layer=name, node=node
        )

    def provided(self, slot: str) -> Iterable[tuple[Offer, Any]]:
        return ()

    def watch(self, forget: Callable[[], None]) -> None:
        pass


#: For a table that nothing is ever added to.
NO_LAYERS: Final[Layers] = _NoLayers()


class _Additions:
    """Calls `take_in` once with each table the layers put into a slot; safe with threads.

    When what is installed is looked at anew, `leave_out` is called, and `take_in` at the next use.
    """

    def __init__(
        self,
        slot: str,
        layers: Layers,
        take_in: Callable[[Any, Offer | None], None],
        leave_out: Callable[[], None],
    ) -> None:
        self.slot, self.layers, self.take_in = slot, layers, take_in
        self._leave_out = leave_out
        self._lock, self._taken = RLock(), False
        layers.watch(self._forget)

    def _forget(self) -> None:
        with self._lock:
            self._taken = False
            self._leave_out()

    def take(self) -> None:
        if self._taken:
            return
        with self._lock:
            if not self._taken:
                for offer, table in tuple(self.layers.provided(self.slot)):  # all imported first
                    self.take_in(table, offer)
                self._taken = True


class _ByType(Generic[F]):
    """Type to function; what is found by way of a base class is remembered.

    Where core and a layer have a rule for one type, core's is used, and a warning logged. Where two
    layers have one, neither is used: a lookup raises.
    """

    def __init__(self, what: str, slot: str, label: str = "{}") -> None:
        self.what, self.slot, self.label = what, slot, label
        self.rules: dict[type, F] = {}
        self.found: dict[type, F] = {}
        self.offers: dict[type, Offer] = {}  # where the rules of layers come from
        self.rivals: dict[type, Offer] = {}  # second layers with a rule for a type

    def add(self, kind: type, rule: F, offer: Offer | None = None) -> None:
        if kind not in self.rules:
            self.rules[kind] = rule
            if offer is not None:
                self.offers[kind] = offer
        elif self.rules[kind] is not rule:
            if offer is None:
                raise BuildError(
                    f"{self.what} has a rule for {kind.__name__} already",
                    help="leave one of the two out",
                )
            if kind in self.offers:
                self.rivals.setdefault(kind, offer)
            else:
                _log_unused(self.clash(kind, offer))
        self.found.clear()

    def leave_out(self) -> None:
        """Forget what layers added."""
        self.rules = {kind: rule for kind, rule in self.rules.items() if kind not in self.offers}
        self.offers, self.rivals, self.found = {}, {}, {}

    def claims(self) -> dict[type, str]:
        """The types with a rule that no layer added, each as messages call it."""
        return {kind: self.name_of(kind) for kind in self.rules if kind not in self.offers}

    def name_of(self, kind: type) -> str:
        return self.label.format(kind.__name__)

    def clash(self, kind: type, offer: Offer) -> LayerError:
        return offer.clash(self.slot, self.name_of(kind), self.offers.get(kind))

    def base_of(self, kind: type, additions: _Additions) -> type | None:
        """The type itself or the nearest base class that has a rule."""
        # layers first: a rule of theirs for this very type beats one of ours for its base class
        if kind not in self.rules or kind in self.offers:  # the latter: a thread may be adding
            additions.take()
        return next((each for each in kind.__mro__ if each in self.rules), None)

    def find(self, kind: type, additions: _Additions) -> F | None:
        base = self.base_of(kind, additions)
        if base is None:
            return None
        if base in self.rivals:
            raise self.clash(base, self.rivals[base])
        rule = self.found[kind] = self.rules[base]
        return rule


def _log_unused(error: LayerError) -> None:
    LOG.warning("what a layer has is not used: %s", error)


class RuleTable(Generic[T, C]):
    """Node type to rule, for one target: `T` is what a rule makes, `C` the context it is given."""

    def __init__(self, target: str, slot: str = "", layers: Layers = NO_LAYERS) -> None:
        """Make an empty table.

        Args:
            target: The target's name, for messages.
            slot: Where layers put tables of their own.
            layers: Who knows them.
        """
        self.target = target
        self._by_type: _ByType[Rule[Any, T, C]] = _ByType(f"target {target!r}", slot)
        self._additions = _Additions(slot, layers, self._take_in, self._by_type.leave_out)

    def rule(self, kind: type[N]) -> Callable[[Rule[N, T, C]], Rule[N, T, C]]:
        """Make the decorated function the rule for `kind` and its subclasses."""

        def register(rule: Rule[N, T, C]) -> Rule[N, T, C]:
            self._by_type.add(kind, rule)
            return rule

        return register

    def include(self, other: RuleTable[T, C]) -> None:
        """Take in every rule of another table.

        Raises:
            BuildError: There is another rule for one of its types already.
        """
        self._take_in(other)

    def _take_in(self, other: RuleTable[T, C], offer: Offer | None = None) -> None:
        for kind, rule in other._by_type.rules.items():
            self._by_type.add(kind, rule, offer)

    def claims(self) -> Mapping[type, str]:
        """Return the node types with a rule that no layer added, each as messages call it."""
        return self._by_type.claims()

    def missing(self, kinds: Iterable[type[Node]]) -> tuple[type[Node], ...]:
        """The kinds that neither this table nor an installed layer has a rule for."""
        return tuple(kind for kind in kinds if self._by_type.base_of(kind, self._additions) is None)

    def rule_for(self, node: Node) -> Rule[Any, T, C]:
        """The rule that applies to a node.

        Raises:
            MissingLayerError: The node's layer is not installed.
            LayerError: Two layers have a rule for the node.
            UnsupportedNodeError: The target has no rule for the node.
        """
        table = self._by_type
        rule = table.found.get(type(node)) or table.find(type(node), self._additions)
        if rule is not None:
            return rule
        kind, layer = type(node).__name__, node.layer
        if layer != "core":
            self._additions.layers.require(layer, kind, node)
        known = ", ".join(sorted(each.__name__ for each in table.rules)) or "nothing"
        raise UnsupportedNodeError(
            f"target {self.target!r} has no rule for {kind}",
            node=node,
            help=f"use another target, or register a rule; it has rules for: {known}",
        )

    def __call__(self, root: Node, cx: C) -> T:
        """Apply the rules bottom-up, once for each occurrence of a node, without recursion.

        Raises:
            MissingLayerError: A node's layer is not installed.
            LayerError: Two layers have a rule for a node.
            UnsupportedNodeError: The target has no rule for a node.
        """
        todo: list[tuple[Node, int]] = [(root, -1)]
        done: list[T] = []
        while todo:
            node, count = todo.pop()
            if count < 0 and (below := node.children):
                todo.append((node, len(below)))
                todo.extend([(each, -1) for each in reversed(below)])
                continue
            children: tuple[T, ...] = ()
            if count > 0:
                children = tuple(done[-count:])
                del done[-count:]
            done.append(self.rule_for(node)(node, children, cx))
        return done[0]


@dataclass(frozen=True)  # no slots: with them, `Kind[int](...)` fails before Python 3.14
class Kind(Generic[R]):
    """What values are turned into, as in ``MODEL = Kind[BaseLlm]("model", "a name or a BaseLlm")``.

    Attributes:
        name: The word for it in messages.
        accepts: What a user may give, in words.
    """

    name: str
    accepts: str


class ValueTable(Generic[C]):
    """What is wanted and the type of what was given, to rule."""

    def __init__(self, slot: str = "values", layers: Layers = NO_LAYERS) -> None:
        """Make an empty table.

        Args:
            slot: Where layers put tables of their own.
            layers: Who knows them.
        """
        self._slot = slot
        self._kinds: dict[str, _ByType[ValueRule[Any, Any, C]]] = {}
        self._additions = _Additions(slot, layers, self._take_in, self._leave_out)

    def rule(
        self, kind: Kind[R], given: type[V]
    ) -> Callable[[ValueRule[V, R, C]], ValueRule[V, R, C]]:
        """Make the decorated function the rule for values of type `given` and its subclasses."""

        def register(rule: ValueRule[V, R, C]) -> ValueRule[V, R, C]:
            self._rules(kind.name).add(given, rule)
            return rule

        return register

    def include(self, other: ValueTable[C]) -> None:
        """Take in every rule of another table.

        Raises:
            BuildError: There is another rule for one of its types already.
        """
        self._take_in(other)

    def _take_in(self, other: ValueTable[C], offer: Offer | None = None) -> None:
        for name, table in other._kinds.items():
            for given, rule in table.rules.items():
                self._rules(name).add(given, rule, offer)

    def _leave_out(self) -> None:
        for table in self._kinds.values():
            table.leave_out()

    def claims(self) -> Mapping[tuple[str, type], str]:
        """Return what has a rule that no layer added, each as messages call it."""
        return {
            (name, given): text
            for name, table in self._kinds.items()
            for given, text in table.claims().items()
        }

    def __call__(self, kind: Kind[R], value: object, cx: C) -> R:
        """Turn a value into what is wanted.

        Raises:
            UsageError: No rule takes a value of this type.
            LayerError: Two layers have a rule for it.
        """
        table, given = self._rules(kind.name), type(value)
        rule = table.found.get(given) or table.find(given, self._additions)
        if rule is None:
            raise UsageError(
                f"cannot use {given.__qualname__} as a {kind.name}",
                found=describe(value),
                help=f"give {kind.accepts}",
            )
        return rule(value, cx)

    def _rules(self, name: str) -> _ByType[ValueRule[Any, Any, C]]:
        made = self._kinds.get(name)
        return made or self._kinds.setdefault(name, _ByType(name, self._slot, f"{{}} as {name}"))


@dataclass(frozen=True)
class Pass(Generic[C]):
    """One rewrite of the IR.

    Attributes:
        name: Unique in a list.
        run: Takes the root and the context, returns the new root (or the same).
        before: The pass it must come before; None is at the end.
    """

    name: str
    run: Callable[[Node, C], Node]
    before: str | None = None


class PassList(Generic[C]):
    """Rewrites of the IR, in the order in which they run."""

    def __init__(self, slot: str = "passes", layers: Layers = NO_LAYERS) -> None:
        """Make an empty list.

        Args:
            slot: Where layers put lists of their own.
            layers: Who knows them.
        """
        self._slot = slot
        self._passes: list[Pass[C]] = []
        self._offers: dict[str, Offer] = {}  # where the passes of layers come from
        self._additions = _Additions(slot, layers, self._take_in, self._leave_out)

    def add(self, step: Pass[C]) -> None:
        """Put a pass at the end, or before the one it names; the same pass again changes nothing.

        Raises:
            BuildError: The name is taken, or there is no pass to be before.
        """
        if step in self._passes:
            return
        names = [each.name for each in self._passes]
        if step.name in names:
            raise BuildError(f"there is a pass {step.name!r} already", help="give it another name")
        if step.before is not None and step.before not in names:
            raise BuildError(
                f"pass {step.name!r} wants to run before {step.before!r}, which does not exist",
                help=f"name one of: {', '.join(names)}",
            )
        at = len(names) if step.before is None else names.index(step.before)
        self._passes.insert(at, step)

    def include(self, other: PassList[C]) -> None:
        """Take in every pass of another list, in its order."""
        self._take_in(other)

    def _take_in(self, other: PassList[C], offer: Offer | None = None) -> None:
        for step in other._passes:
            taken = any(step.name == each.name for each in self._passes)
            if offer is not None and taken and step not in self._passes:
                _log_unused(offer.clash(self._slot, step.name, self._offers.get(step.name)))
                continue
            self.add(step)
            if offer is not None and not taken:
                self._offers[step.name] = offer

    def _leave_out(self) -> None:
        self._passes = [each for each in self._passes if each.name not in self._offers]
        self._offers = {}

    def claims(self) -> Mapping[str, str]:
        """Return the names of the passes that no layer added."""
        return {each.name: each.name for each in self._passes if each.name not in self._offers}

    def names(self) -> tuple[str, ...]:
        """Names of the passes, those of installed layers included, in order."""
        self._additions.take()
        return tuple(step.name for step in self._passes)

    def __call__(
        self, root: Node, cx: C, verify: Callable[[str, Node], None] | None = None
    ) -> Node:
        """Rewrite `root` by every pass in turn.

        Args:
            root: The IR to rewrite.
            cx: What each pass is given.
            verify: Called with the name of each pass and what it returned.
        """
        self._additions.take()
        for step in self._passes:
            root = step.run(root, cx)
            if verify is not None:
                verify(step.name, root)
        return root
