"""The undo log: who wrote what, in commit order, while something may still be discarded.

A *scope* is open while an attempt of a fallback or a branch of a fork runs. Every write committed
while any scope is open is logged under the innermost one, the latest per key, with a sequence
number. To discard scopes means: for each key they wrote, the last write that is not theirs counts
again, and where there is none, the value from before the first scope opened. No log is ever handed
around: a cancelled branch leaves its writes where they are, below its scope.

All of it is plain data in the journal, so a run can restart in the middle of anything:
``journal["scopes"][id] = {"in": parent id or None, "w": {key: [number, value]}, "t": touched}``,
``"own": 1`` where the scope works on a snapshot of its own, and ``"x": [[path, said]]`` where
somebody above wants what was said (a text, or the data of an answer in a list of one); and
``journal["base"] = {key: value before}``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from adk_fluent.protocol import Data

#: Keys with these prefixes outlive the session and are never undone.
PERMANENT = ("user:", "app:")


def differs(one: Any, other: Any) -> bool:
    """Whether two state values differ; values that cannot be compared do."""
    if one is other:
        return False
    try:
        return bool(one != other)
    except Exception:  # noqa: BLE001  # a foreign __eq__ or __bool__ decides nothing here
        return True


class Isolation:
    """What a branch sees that works on a snapshot: its own writes over the state at its start."""

    __slots__ = ("base", "fixed", "writes")

    def __init__(self, base: dict[str, Any], fixed: Mapping[str, Any]) -> None:
        self.base: dict[str, Any] = base
        self.fixed: Mapping[str, Any] = fixed
        self.writes: dict[str, Any] = dict(fixed)


class Scope:
    """An attempt or a branch that is still open."""

    __slots__ = ("children", "data", "id", "isolation", "parent")

    def __init__(
        self, id: str, data: dict[str, Any], parent: Scope | None, isolation: Isolation | None
    ) -> None:
        self.id: str = id
        self.data: dict[str, Any] = data
        self.parent: Scope | None = parent
        self.isolation: Isolation | None = isolation
        self.children: dict[str, Scope] = {}

    @property
    def writes(self) -> dict[str, list[Any]]:
        """Key to [sequence number, value], the latest write of this very scope."""
        return self.data["w"]

    def subtree(self) -> Iterator[Scope]:
        """This scope and every open one below it."""
        todo: list[Scope] = [self]
        while todo:
            here = todo.pop()
            yield here
            todo.extend(here.children.values())

    @property
    def touched(self) -> bool:
        """Whether anything was committed or shown that would have to be discarded."""
        return any(scope.data["t"] for scope in self.subtree())

    def final(self) -> dict[str, list[Any]]:
        """The latest write of each key in this scope and below."""
        out: dict[str, list[Any]] = {}
        for scope in self.subtree():
            for key, entry in scope.writes.items():
                if key not in out or out[key][0] < entry[0]:
                    out[key] = entry
        return out

    def take_over(self, writes: Mapping[str, list[Any]]) -> None:
        """Writes of a scope below are this one's from here on."""
        mine = self.writes
        for key, entry in writes.items():
            if key not in mine or mine[key][0] < entry[0]:
                mine[key] = entry

    @property
    def listens(self) -> bool:
        """Whether somebody wants to know what is said in it."""
        return "x" in self.data

    def say(self, path: str, said: str | Data) -> None:
        """Keep a text, or the data of an answer, as long as the scope is not discarded."""
        self.data["x"].append([path, said])

    @property
    def said(self) -> list[tuple[str, str | Data]]:
        """What was said in this scope and below, with its position."""
        return [(path, said) for s in self.subtree() for path, said in s.data.get("x", ())]

    def path(self) -> str:
        """The ids from the outermost scope to this one, dotted."""
        ids: list[str] = []
        here: Scope | None = self
        while here is not None:
            ids.append(here.id)
            here = here.parent
        return ".".join(reversed(ids))


class UndoLog:
    """The open scopes of one run.

    Args:
        journal: Where the data lies; gets the keys ``scopes``, ``base`` and ``seq``.
        state: The live state.
    """

    def __init__(self, journal: dict[str, Any], state: Mapping[str, Any]) -> None:
        self._state = state
        self._journal = journal
        self._before: dict[str, Any] = {}
        self.open: dict[str, Scope] = {}
        journal.setdefault("scopes", {})
        journal.setdefault("base", {})
        journal.setdefault("seq", 0)
        if journal["scopes"]:  # a restart: what is not in `base` was not written yet
            self._before = {**state, **journal["base"]}
        for id, data in journal["scopes"].items():
            self._open(Scope(id, data, self.open.get(data["in"]), None))

    # --- opening and closing -------------------------------------------------------------------

    def enter(
        self, id: str, parent: Scope | None, isolation: Isolation | None, *, listen: bool = False
    ) -> Scope:
        """Open a scope, or find it again after a restart.

        Args:
            id: Its id.
            parent: The scope it is inside of.
            isolation: The snapshot it works on.
            listen: Keep what is said in it; scopes inside it do so by themselves.
        """
        scope = self.open.get(id)
        if scope is not None:
            self._replay(scope, isolation)
            return scope
        if not self.open:
            self._before = dict(self._state)
        data: dict[str, Any] = {"in": None if parent is None else parent.id, "w": {}, "t": 0}
        if isolation is not (None if parent is None else parent.isolation):
            data["own"] = 1
        if listen or (parent is not None and parent.listens):
            data["x"] = []
        self._journal["scopes"][id] = data
        return self._open(Scope(id, data, parent, isolation))

    def _open(self, scope: Scope) -> Scope:
        self.open[scope.id] = scope
        if scope.parent is not None:
            scope.parent.children[scope.id] = scope
        return scope

    def _replay(self, scope: Scope, isolation: Isolation | None) -> None:
        """Give a scope its snapshot back, with what was written on it before a restart."""
        if isolation is None or "own" not in scope.data:
            return
        entries: list[tuple[str, list[Any]]] = []
        todo = [scope]
        while todo:
            here = todo.pop()
            here.isolation = isolation
            entries.extend(here.writes.items())
            todo.extend(each for each in here.children.values() if "own" not in each.data)
        for key, (_, value) in sorted(entries, key=lambda entry: entry[1][0]):
            isolation.writes[key] = value

    def settle(self, scope: Scope, keys: Container[str] | None = None) -> None:
        """Close a scope that succeeded: its writes are now its parent's, or those to some keys."""
        parent = scope.parent
        if parent is not None:
            final = scope.final()
            parent.take_over(
                final if keys is None else {key: final[key] for key in final if key in keys}
            )
            parent.data["t"] |= scope.touched
            if parent.listens:
                parent.data["x"].extend([path, said] for path, said in scope.said)
        self.drop(scope)

    def drop(self, scope: Scope) -> None:
        """Close a scope and forget what it wrote."""
        scopes = self._journal["scopes"]
        for gone in list(scope.subtree()):
            scopes.pop(gone.id, None)
            self.open.pop(gone.id, None)
        if scope.parent is not None:
            scope.parent.children.pop(scope.id, None)
        if not scopes:
            self._journal["base"].clear()
            self._before = {}

    # --- writing -------------------------------------------------------------------------------

    def record(self, scope: Scope, delta: Mapping[str, Any]) -> None:
        """Log a committed write."""
        seq = self._journal["seq"] = self._journal["seq"] + 1
        base, writes, before = self._journal["base"], scope.writes, self._before
        for key, value in delta.items():
            if key not in base:
                base[key] = before.get(key)
            writes[key] = [seq, value]
        if scope.isolation is not None:
            scope.isolation.writes.update(delta)

    # --- undoing -------------------------------------------------------------------------------

    def compensation(self, scopes: Iterable[Scope]) -> dict[str, Any]:
        """The write that takes shared state back to what it is without these scopes.

        A key that somebody wrote outside the log since then stays as it is.
        """
        gone = {s.id for scope in scopes for s in scope.subtree()}
        keys = {key for id in gone for key in self.open[id].writes}
        keys = {key for key in keys if not key.startswith(PERMANENT)}
        last = self._latest(keys, (s for s in self.open.values()))
        rest = self._latest(keys, (s for s in self.open.values() if s.id not in gone))
        out: dict[str, Any] = {}
        for key in sorted(keys):
            now, back = self._state.get(key), self._value(key, rest)
            if differs(now, back) and not differs(now, last[key][1]):
                out[key] = back
        return out

    def discard(self, scopes: list[Scope]) -> None:
        """Close scopes whose writes were compensated; readers on a snapshot forget them too."""
        for scope in scopes:
            self._keep_permanent(scope)
        gone = {s.id for scope in scopes for s in scope.subtree()}
        readers = {s.parent.isolation for s in scopes if s.parent is not None}
        for isolation in readers:
            if isolation is None:  # shared state: the compensating event has restored it
                continue
            mine = (self.open[id] for id in gone)
            keys = {key for s in mine if s.isolation is isolation for key in s.writes}
            keys = {key for key in keys if not key.startswith(PERMANENT)}
            rest = self._latest(
                keys,
                (s for s in self.open.values() if s.id not in gone and s.isolation is isolation),
            )
            for key in keys:
                if key in rest:
                    isolation.writes[key] = rest[key][1]
                elif key in isolation.fixed:
                    isolation.writes[key] = isolation.fixed[key]
                else:
                    isolation.writes.pop(key, None)
        for scope in scopes:
            self.drop(scope)

    def _keep_permanent(self, scope: Scope) -> None:
        """What is never undone belongs to the scope above from here on."""
        parent = scope.parent
        if parent is None:
            return
        kept = {key: entry for key, entry in scope.final().items() if key.startswith(PERMANENT)}
        parent.take_over(kept)
        if parent.isolation is not None:
            parent.isolation.writes.update({key: parent.writes[key][1] for key in kept})

    def isolate(
        self, view: Mapping[str, Any], outer: Isolation | None, siblings: Iterable[str]
    ) -> dict[str, Any]:
        """The state at the start of a fork, also after a restart in the middle of it."""
        start = dict(view)
        data: dict[str, dict[str, Any]] = self._journal["scopes"]
        below = _below(data, siblings)
        keys = {key for id in below for key in data[id]["w"]}
        if keys:
            rest = self._latest(
                keys,
                (
                    s
                    for s in self.open.values()
                    if s.id not in below and (outer is None or s.isolation is outer)
                ),
            )
            for key in keys:
                start[key] = (
                    self._value(key, rest)
                    if outer is None or key in rest
                    else outer.fixed.get(key, outer.base.get(key))
                )
        return start

    def _latest(self, keys: set[str], scopes: Iterator[Scope]) -> dict[str, list[Any]]:
        out: dict[str, list[Any]] = {}
        for scope in scopes:
            for key in scope.writes.keys() & keys:
                entry = scope.writes[key]
                if key not in out or out[key][0] < entry[0]:
                    out[key] = entry
        return out

    def _value(self, key: str, rest: Mapping[str, list[Any]]) -> Any:
        return rest[key][1] if key in rest else self._journal["base"].get(key)


def _below(scopes: Mapping[str, Mapping[str, Any]], roots: Iterable[str]) -> set[str]:
    """The ids of these scopes and of all below them, from the journal alone."""
    todo = [id for id in roots if id in scopes]
    kids: dict[str, list[str]] = {}
    for id, data in scopes.items() if todo else ():
        if data["in"] is not None:
            kids.setdefault(data["in"], []).append(id)
    out: set[str] = set()
    while todo:
        id = todo.pop()
        out.add(id)
        todo.extend(kids.get(id, ()))
    return out
