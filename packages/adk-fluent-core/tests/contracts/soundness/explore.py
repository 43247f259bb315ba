"""Every way in which a small pipeline can run: which readers find no value, and on which keys.

It is a search over all configurations: what each part is about to do, and who wrote which key. A
predicate may go either way, unless it compares a key that has no value; an agent may fail where a
failure is survived; branches take turns in any order. It shares no code with the analysis.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from adk_fluent.ir import (
    UNSET,
    AgentNode,
    Effects,
    ExpectNode,
    FallbackNode,
    FunctionNode,
    GateNode,
    LoopNode,
    MapOverNode,
    Match,
    MiddlewareNode,
    Node,
    ParallelNode,
    Predicate,
    RaceNode,
    Ref,
    RouteNode,
    SequenceNode,
    StateFieldRef,
    TapNode,
    TimeoutNode,
    TransferNode,
    TransformNode,
    declared_effects,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

LASTING = ("user:", "app:")
#: Who wrote a key: the path of an open attempt or branch, or None before it all began.
Owner = tuple[int, ...] | None
#: Of each key, who wrote it, and whether it has a value since; the last one counts.
Store = tuple[tuple[tuple[Owner, bool], ...], ...]
#: How a part ends.
OK, LEFT, FAILED = "ok", "left", "failed"


class TooManyError(Exception):
    """There are too many ways."""


class Miss(NamedTuple):
    """A reader that found no value."""

    node: str
    key: str
    required: bool


class Next(NamedTuple):
    """What may come next: what is left to do, or how it ended, and state then."""

    term: Any
    end: str | None
    store: Store


@dataclass(frozen=True)
class Around:
    """What stands around a part.

    Attributes:
        path: Where it is.
        scope: Who owns what it writes.
        attempt: Whether a failure is survived.
        loop: Whether there is a loop that may be left.
    """

    path: tuple[int, ...] = ()
    scope: tuple[int, ...] = ()
    attempt: bool = False
    loop: bool = False

    def at(
        self, index: int, *, scope: bool = False, attempt: bool = False, loop: bool = False
    ) -> Around:
        """What stands around a part inside."""
        path = (*self.path, index)
        inside = path if scope else self.scope
        return Around(path, inside, self.attempt or attempt, self.loop or loop)


class Explorer:
    """All ways of one pipeline.

    Args:
        root: The pipeline.
        inputs: Keys that have a value at the start.
        most: Configurations at most.
        free: Whether everything may fail, and a comparison may go either way even if its key has
            no value.
    """

    def __init__(
        self, root: Node, inputs: frozenset[str], most: int, *, free: bool = False
    ) -> None:
        self._free = free
        self.nodes: list[Node] = []
        self._index: dict[int, int] = {}
        todo = [root]
        while todo:
            node = todo.pop()
            if id(node) not in self._index:
                self._index[id(node)] = len(self.nodes)
                self.nodes.append(node)
                todo.extend(node.children)
        self._named = {node.name: node for node in self.nodes}
        self.keys = sorted({key for node in self.nodes for key in _keys(node)} | inputs)
        self.misses: set[Miss] = set()
        self._most = most
        self._start: Store = tuple(((None, True),) if key in inputs else () for key in self.keys)
        self._root = root

    def run(self) -> set[Miss]:
        """The misses of all ways.

        Raises:
            TooManyError: There are too many.
        """
        first = (self._enter(self._root), self._start)
        seen, todo = {first}, [first]
        while todo:
            term, store = todo.pop()
            for each in self._steps(term, store, Around()):
                if each.end is None and (after := (each.term, each.store)) not in seen:
                    seen.add(after)
                    todo.append(after)
            if len(seen) > self._most:
                raise TooManyError
        return self.misses

    # --- state -----------------------------------------------------------------------------------

    def _has(self, store: Store, key: str) -> bool:
        entries = store[self.keys.index(key)]
        return bool(entries) and entries[-1][1]

    def _write(self, store: Store, key: str, present: bool, scope: tuple[int, ...]) -> Store:
        def change(entries: tuple[tuple[Owner, bool], ...]) -> tuple[tuple[Owner, bool], ...]:
            return (*(each for each in entries if each[0] != scope), (scope, present))

        def of(known: str) -> Any:
            return change if known == key else None

        return self._over_keys(store, of)

    def _over_keys(self, store: Store, of: Any) -> Store:
        made: list[Any] = []
        for key, entries in zip(self.keys, store, strict=True):
            change = of(key)
            made.append(entries if change is None else change(entries))
        return tuple(made)

    def _settle(self, store: Store, scope: tuple[int, ...], parent: tuple[int, ...]) -> Store:
        """What was written in a scope is now its parent's."""

        def change(entries: Any) -> Any:
            if not any(_in(owner, scope) for owner, _ in entries):
                return entries
            found = [(parent if _in(owner, scope) else owner, value) for owner, value in entries]
            last = {owner: at for at, (owner, _) in enumerate(found)}
            return tuple(each for at, each in enumerate(found) if last[each[0]] == at)

        def of(_: str) -> Any:
            return change

        return self._over_keys(store, of)

    def _discard(self, store: Store, scope: tuple[int, ...], parent: tuple[int, ...]) -> Store:
        """What was written in a scope did not happen, but for what outlives the session."""
        lasting = self._settle(store, scope, parent)
        made: list[Any] = []
        for key, entries, kept in zip(self.keys, store, lasting, strict=True):
            left = tuple(each for each in entries if not _in(each[0], scope))
            made.append(kept if key.startswith(LASTING) else left)
        return tuple(made)

    def _view(self, store: Store) -> Store:
        """State as it is now, as the start of something apart."""
        return tuple(((None, True),) if each and each[-1][1] else () for each in store)

    def _written(self, store: Store) -> list[tuple[str, bool]]:
        """What was written apart."""
        return [
            (key, entries[-1][1])
            for key, entries in zip(self.keys, store, strict=True)
            if entries and entries[-1][0] is not None
        ]

    # --- steps -----------------------------------------------------------------------------------

    def _enter(self, node: Node) -> Any:
        return ("begin", self._index[id(node)])

    def _read(self, node: Node, refs: Any, store: Store) -> None:
        for ref in refs:
            if not self._has(store, ref.key):
                self.misses.add(Miss(node.name, ref.key, ref.default is UNSET))

    def _test(self, node: Node, test: Predicate | None, store: Store) -> tuple[bool, ...]:
        """How a predicate may turn out."""
        if isinstance(test, Match) and not self._has(store, test.key):
            self.misses.add(Miss(node.name, test.key, False))
            return (True, False) if self._free else (test.operator == "ne",)
        return (True, False)

    def _steps(self, term: Any, store: Store, around: Around) -> Iterator[Next]:
        kind = term[0]
        node = self.nodes[int(term[1])]
        contract = node.contract if node is not self._root else None
        if kind == "begin" and contract is not None:
            self._read(node, contract.inputs or (), store)
        for each in getattr(self, f"_{kind}")(node, term, store, around):
            if each.end is OK and contract is not None:
                self._read(node, contract.outputs or (), each.store)
            yield each

    def _begin(  # noqa: C901, PLR0912, PLR0915  # a row for each kind of node
        self, node: Node, term: Any, store: Store, around: Around
    ) -> Iterator[Next]:
        here = term[1]
        if around.attempt and (self._free or isinstance(node, AgentNode | FunctionNode)):
            yield Next(None, FAILED, store)
        match node:
            case AgentNode():
                yield from self._go(("hooks", here, "before_agent", 0, None), store)
            case TransferNode():
                outcomes = (True,)
                if node.condition is not None:
                    outcomes = self._test(node, node.condition, store)
                if True in outcomes:
                    target = self._enter(self._named[node.target])
                    yield from self._go(("transfer", here, target), store)
                if False in outcomes:
                    yield Next(None, OK, store)
            case FunctionNode() | TapNode():
                self._read(node, node.effects.reads, store)
                yield Next(("act", here), None, store)
            case TransformNode():
                yield Next(None, OK, self._transformed(node, store, around))
            case ExpectNode():
                outcomes = self._test(node, node.predicate, store)
                if True in outcomes:
                    yield Next(None, OK, store)
                if False in outcomes:
                    yield Next(None, FAILED, store)
            case GateNode():
                outcomes = (True,)
                if node.predicate is not None:
                    outcomes = self._test(node, node.predicate, store)
                for asks in outcomes:
                    key = node.key or node.name
                    after = self._write(store, key, True, around.scope) if asks else store
                    yield Next(None, OK, after)
            case SequenceNode():
                yield from self._go(("seq", here, 0, self._enter(node.steps[0])), store)
            case LoopNode():
                yield from self._go(("loop", here, 0, self._enter(node.body)), store)
            case RouteNode():
                yield from self._routed(node, 0, store)
            case FallbackNode():
                yield from self._go(("fallback", here, 0, self._enter(node.attempts[0])), store)
            case ParallelNode(merge="wait_all"):
                yield from self._go(
                    ("parallel", here, tuple(self._enter(each) for each in node.branches)), store
                )
            case RaceNode() | ParallelNode():
                view = self._view(store)
                yield from self._go(
                    ("race", here, tuple((self._enter(each), view) for each in node.branches)),
                    store,
                )
            case MapOverNode():
                if not self._has(store, node.list_key):
                    self.misses.add(Miss(node.name, node.list_key, False))
                    yield Next(None, OK, self._write(store, node.output_key, True, around.scope))
                    return
                view = self._view(store)
                for count in (0, 1, 2):
                    term = ("map", here, count, None, view, view, (), OK)
                    yield from self._go(term, store)
            case TimeoutNode() | MiddlewareNode():
                yield Next(self._enter(node.body), None, store)
            case _:
                raise AssertionError(node)

    def _go(self, term: Any, store: Store) -> Iterator[Next]:
        yield Next(term, None, store)

    def _act(self, node: Node, term: Any, store: Store, around: Around) -> Iterator[Next]:
        if around.attempt:
            yield Next(None, FAILED, store)
        if isinstance(node, AgentNode):
            for ref in (*node.writes_keys, *node.tool_writes):
                store = self._write(store, ref.key, True, around.scope)
            yield from self._go(("hooks", term[1], "after_agent", 0, OK), store)
            return
        assert isinstance(node, FunctionNode | TapNode)
        for each in self._effects(node.effects, store, around):
            yield Next(None, OK, each)

    def _effects(self, effects: Effects, store: Store, around: Around) -> list[Store]:
        """State after a function that has written, perhaps not all that it may."""
        stores = [store]
        for ref in effects.may_write:
            stores += [self._write(each, ref.key, True, around.scope) for each in stores]
        for ref in effects.writes:
            stores = [self._write(each, ref.key, True, around.scope) for each in stores]
        return stores

    def _called(self, node: Node, fn: Ref, store: Store, around: Around) -> list[Store]:
        """State after a tool or a callback."""
        effects = declared_effects(fn.value)
        assert effects is not None
        self._read(node, effects.reads, store)
        return self._effects(effects, store, around)

    def _hooks(self, node: Any, term: Any, store: Store, around: Around) -> Iterator[Next]:
        """Callbacks before or after an agent: one that answers leaves out those behind it."""
        _, here, when, at, end = term
        hooks = dict(node.callbacks).get(when, ())
        if at < len(hooks):
            for each in (store, *self._called(node, hooks[at], store, around)):
                yield from self._go(("hooks", here, when, at + 1, end), each)
        elif end is not None:
            yield Next(None, end, store)
        else:
            self._read(node, node.reads_keys, store)
            yield from self._go(("calls", here, None), store)

    def _calls(self, node: Any, term: Any, store: Store, around: Around) -> Iterator[Next]:
        """An agent calls what it has, any number of times, or is done."""
        _, here, inner = term
        if inner is not None:
            yield from getattr(self, f"_calls_{inner[0]}")(here, inner, store, around)
            return
        yield from self._go(("act", here), store)
        functions = [tool.tool for tool in node.tools]
        for when, hooks in node.callbacks:
            functions += hooks if when not in ("before_agent", "after_agent") else ()
        for fn in functions:
            if getattr(fn.value, "leaves", False):  # and owes nothing then
                end = LEFT if around.loop else OK
                yield from self._go(("hooks", here, "after_agent", 0, end), store)
                continue
            for each in self._called(node, fn, store, around):
                yield from self._go(("calls", here, None), each)
        for at, each in enumerate(node.agent_tools):
            session = ("agent", at, self._enter(each), self._view(store))
            yield from self._go(("calls", here, session), store)
        for at, each in enumerate(node.delegates):
            yield from self._go(("calls", here, ("delegate", at, self._enter(each))), store)

    def _calls_agent(self, here: int, inner: Any, store: Store, around: Around) -> Iterator[Next]:
        """An agent that is a tool, in a session of its own; what it wrote comes back at its end."""
        _, at, term, own = inner
        inside = Around((*around.path, at), (at,), around.attempt)
        for each in self._steps(term, own, inside):
            if each.end is None:
                session = ("agent", at, each.term, each.store)
                yield from self._go(("calls", here, session), store)
            elif each.end is FAILED:
                yield Next(None, FAILED, store)
            else:
                after = store
                for key, present in self._written(each.store):
                    after = self._write(after, key, present, around.scope)
                yield from self._go(("calls", here, None), after)

    def _calls_delegate(
        self, here: int, inner: Any, store: Store, around: Around
    ) -> Iterator[Next]:
        """An agent that was handed over to: it has the last word, or hands back."""
        _, at, term = inner
        for each in self._steps(term, store, around.at(at)):
            if each.end is None:
                yield from self._go(("calls", here, ("delegate", at, each.term)), each.store)
            elif each.end is FAILED:
                yield each
            else:
                yield from self._go(("hooks", here, "after_agent", 0, each.end), each.store)
                if each.end is OK:
                    yield from self._go(("begin", here), each.store)

    def _transfer(self, node: Any, term: Any, store: Store, around: Around) -> Iterator[Next]:
        _, here, inner = term
        for each in self._steps(inner, store, around.at(0)):
            if each.end is None:
                yield from self._go(("transfer", here, each.term), each.store)
            else:
                yield each

    def _transformed(  # noqa: C901, PLR0912  # a row for each kind of transform
        self, node: TransformNode, store: Store, around: Around
    ) -> Store:
        before, scope = store, around.scope
        if node.semantics == "delete_keys":
            for key in node.affected_keys or ():
                store = self._write(store, key, False, scope)
            return store
        if node.semantics == "replace_session":
            for key in self.keys:
                if key not in (node.affected_keys or ()) and StateFieldRef(key).scope == "session":
                    store = self._write(store, key, False, scope)
            return store
        function: Any = node.fn.value if node.fn else None
        kind = type(function).__name__
        if kind == "Assign":
            for ref in node.effects.writes:
                store = self._write(store, ref.key, True, scope)
        elif kind == "Rename":
            moved = [(old, new) for old, new in function.names if self._has(before, old)]
            for old, _ in function.names:
                if not self._has(before, old):
                    self.misses.add(Miss(node.name, old, False))
            for old, _ in moved:
                store = self._write(store, old, False, scope)
            for _, new in moved:
                store = self._write(store, new, True, scope)
        elif kind == "Combine":
            for key in function.keys:
                if not self._has(before, key):
                    self.misses.add(Miss(node.name, key, False))
            if any(self._has(before, key) for key in function.keys):
                store = self._write(store, function.into, True, scope)
        else:
            raise AssertionError(kind)
        return store

    def _routed(self, node: RouteNode, at: int, store: Store) -> Iterator[Next]:
        """Tests in order; the first that holds decides."""
        if at == len(node.tests):
            if node.default is None:
                yield Next(None, OK, store)
            else:
                yield Next(self._enter(node.default), None, store)
            return
        outcomes = self._test(node, node.tests[at], store)
        if True in outcomes:
            yield Next(self._enter(node.branches[at]), None, store)
        if False in outcomes:
            yield from self._routed(node, at + 1, store)

    def _seq(self, node: Any, term: Any, store: Store, around: Around) -> Iterator[Next]:
        _, here, at, inner = term
        for each in self._steps(inner, store, around.at(at)):
            if each.end is None:
                yield Next(("seq", here, at, each.term), None, each.store)
            elif each.end is OK and at + 1 < len(node.steps):
                after = ("seq", here, at + 1, self._enter(node.steps[at + 1]))
                yield Next(after, None, each.store)
            else:
                yield each

    def _loop(self, node: Any, term: Any, store: Store, around: Around) -> Iterator[Next]:
        _, here, count, inner = term
        for each in self._steps(inner, store, around.at(0, loop=True)):
            if each.end is None:
                yield Next(("loop", here, count, each.term), None, each.store)
            elif each.end is LEFT:
                yield Next(None, OK, each.store)
            elif each.end is OK:
                outcomes: tuple[bool, ...] = (False,)
                if node.until is not None:
                    outcomes = self._test(node, node.until, each.store)
                if True in outcomes or count + 1 == node.max_iterations:
                    yield Next(None, OK, each.store)
                if False in outcomes and count + 1 < node.max_iterations:
                    after = ("loop", here, count + 1, self._enter(node.body))
                    yield Next(after, None, each.store)
            else:
                yield each

    def _fallback(self, node: Any, term: Any, store: Store, around: Around) -> Iterator[Next]:
        _, here, at, inner = term
        inside = around.at(at, scope=True, attempt=True)
        for each in self._steps(inner, store, inside):
            if each.end is None:
                yield Next(("fallback", here, at, each.term), None, each.store)
            elif each.end is not FAILED:
                settled = self._settle(each.store, inside.scope, around.scope)
                yield Next(None, each.end, settled)
            else:
                undone = self._discard(each.store, inside.scope, around.scope)
                if at + 1 < len(node.attempts):
                    after = ("fallback", here, at + 1, self._enter(node.attempts[at + 1]))
                    yield Next(after, None, undone)
                else:
                    yield Next(None, FAILED, undone)

    def _parallel(self, node: Any, term: Any, store: Store, around: Around) -> Iterator[Next]:
        _, here, terms = term
        for at, inner in enumerate(terms):
            if isinstance(inner, str):  # it has ended
                continue
            for each in self._steps(inner, store, around.at(at, scope=True)):
                if each.end is FAILED:
                    yield Next(None, FAILED, each.store)
                    continue
                now = each.term if each.end is None else each.end
                after = (*terms[:at], now, *terms[at + 1 :])
                if all(isinstance(each, str) for each in after):
                    end = LEFT if LEFT in after else OK
                    yield Next(None, end, self._joined(len(after), each.store, around))
                else:
                    yield Next(("parallel", here, after), None, each.store)

    def _joined(self, count: int, store: Store, around: Around) -> Store:
        """The last branch in declared order that wrote a key counts."""
        scopes = [around.at(at, scope=True).scope for at in range(count)]
        made: list[Any] = []
        for entries in store:
            last = None
            for scope in scopes:
                mine = [value for owner, value in entries if _in(owner, scope)]
                last = mine[-1] if mine else last
            left = tuple(
                each for each in entries if not any(_in(each[0], scope) for scope in scopes)
            )
            if last is not None:
                left = (*(each for each in left if each[0] != around.scope), (around.scope, last))
            made.append(left)
        return tuple(made)

    def _race(self, node: Any, term: Any, store: Store, around: Around) -> Iterator[Next]:
        _, here, pairs = term
        for at, (inner, own) in enumerate(pairs):
            if inner == FAILED:
                continue
            inside = Around((*around.path, at), (at,), True, around.loop)
            for each in self._steps(inner, own, inside):
                if each.end is None:
                    now: Any = (each.term, each.store)
                elif each.end is FAILED:
                    now = (FAILED, each.store)
                else:
                    yield Next(None, each.end, self._won(at, each.store, pairs, store, around))
                    continue
                after = (*pairs[:at], now, *pairs[at + 1 :])
                if all(inner == FAILED for inner, _ in after):
                    yield Next(None, FAILED, self._won(-1, (), after, store, around))
                else:
                    yield Next(("race", here, after), None, store)

    def _won(self, winner: int, own: Store, pairs: Any, store: Store, around: Around) -> Store:
        """What the winner wrote counts, and of the others what outlives the session."""
        for at, (_, other) in enumerate(pairs):
            for key, present in self._written(own if at == winner else other):
                if at == winner or key.startswith(LASTING):
                    store = self._write(store, key, present, around.scope)
        return store

    def _map_over(self, node: Any, store: Store, around: Around, written: Any) -> Store:
        for key, present in written:
            if key != node.item_key:
                store = self._write(store, key, present, around.scope)
        return self._write(store, node.output_key, True, around.scope)

    def _map_items(self, view: Store, key: str) -> Store:
        """State as an item of a map finds it."""

        def given(_: Any) -> Any:
            return ((None, True),)

        def of(known: str) -> Any:
            return given if known == key else None

        return self._over_keys(view, of)

    def _is_item(self, node: Any, store: Store) -> bool:
        """Whether the result is the item itself."""
        return node.result_key == node.item_key and self._has(store, node.item_key)

    # the items of a map work apart from each other, so one after the other is all there is to see
    def _map(self, node: Any, term: Any, store: Store, around: Around) -> Iterator[Next]:
        _, here, left, inner, own, view, written, end = term
        if inner is None:
            if left == 0:
                yield Next(None, end, self._map_over(node, store, around, written))
                return
            own = self._map_items(view, node.item_key)
            after = ("map", here, left - 1, self._enter(node.body), own, view, written, end)
            yield Next(after, None, store)
            return
        inside = Around((*around.path, left), (left,), around.attempt, around.loop)
        for each in self._steps(inner, own, inside):
            if each.end is None:
                after = ("map", here, left, each.term, each.store, view, written, end)
                yield Next(after, None, store)
            elif each.end is FAILED:
                yield Next(None, FAILED, store)
            else:
                made = self._written(each.store)
                if node.result_key is not None:
                    found = (node.result_key, True) in made
                    if not found and not self._is_item(node, each.store):
                        self.misses.add(Miss(node.name, node.result_key, True))
                now, ends = (*written, *made), LEFT if LEFT in (end, each.end) else OK
                yield Next(("map", here, left, None, view, view, now, ends), None, store)


def _in(owner: Owner, scope: tuple[int, ...]) -> bool:
    """Whether something was written in a scope, or below it."""
    return owner is not None and bool(scope) and owner[: len(scope)] == scope


def _keys(node: Node) -> Iterator[str]:  # noqa: C901, PLR0912  # a row for each kind of node
    if node.contract is not None:
        refs = (*(node.contract.inputs or ()), *(node.contract.outputs or ()))
        yield from (ref.key for ref in refs)
    match node:
        case AgentNode():
            yield from (r.key for r in (*node.reads_keys, *node.writes_keys, *node.tool_writes))
            hooks = (hook for _, hooks in node.callbacks for hook in hooks)
            for fn in (*hooks, *(tool.tool for tool in node.tools)):
                effects = declared_effects(fn.value)
                if effects is not None:
                    refs = (*effects.reads, *effects.writes, *effects.may_write)
                    yield from (ref.key for ref in refs)
        case FunctionNode() | TapNode() | TransformNode():
            effects = node.effects
            refs = (*effects.reads, *effects.writes, *effects.may_write)
            yield from (ref.key for ref in refs)
            if isinstance(node, TransformNode):
                yield from node.affected_keys or ()
        case RouteNode():
            yield from (test.key for test in node.tests if isinstance(test, Match))
        case LoopNode(until=Match(key=key)) | ExpectNode(predicate=Match(key=key)):
            yield key
        case GateNode():
            yield node.key or node.name
            if isinstance(node.predicate, Match):
                yield node.predicate.key
        case TransferNode(condition=Match(key=key)):
            yield key
        case MapOverNode():
            yield from (node.list_key, node.item_key, node.output_key)
            yield from () if node.result_key is None else (node.result_key,)
        case _:
            return
