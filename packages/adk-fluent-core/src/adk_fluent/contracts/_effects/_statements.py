"""Statements: the ways through a function."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.contracts._effects._expressions import Expressions
from adk_fluent.contracts._effects._facts import Facts, meet
from adk_fluent.contracts._effects._machine import Unclear
from adk_fluent.contracts._effects._values import (
    IS_NOT,
    Const,
    Fields,
    Live,
    Plain,
    Tracked,
    Value,
    joined,
    none_of,
    type_of,
)
from adk_fluent.errors import StateKeyError
from adk_fluent.ir import StateFieldRef, is_reserved_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.contracts._effects._log import Log
    from adk_fluent.contracts._effects._machine import Machine
    from adk_fluent.contracts._effects._names import Names
    from adk_fluent.contracts._effects._scope import Function, Scope

_RETURNS: Final = "returns {}"
#: Context managers that go on after an error.
_SWALLOWERS: Final = ("CancelScope", "move_on_after", "move_on_at", "raises", "suppress")


class Exit:
    """A way out of a block other than its end.

    Attributes:
        kind: ``return``, ``break`` or ``continue``.
        facts: What holds there.
        returned: What is returned, as keys and values.
    """

    __slots__ = ("facts", "kind", "returned")

    def __init__(self, kind: str, facts: Facts, returned: Fields | None = None) -> None:
        self.kind = kind
        self.facts = facts
        self.returned = returned


class Statements(Expressions):
    """A walk that understands whole functions.

    Args:
        names: What names mean outside.
        scope: Whose names are whose.
        log: Gets what is seen.
        around: Who walks through the function around this one.
        merges: Whether what the function returns is merged into state.
    """

    def __init__(
        self,
        names: Names,
        scope: Scope,
        log: Log,
        around: Machine | None = None,
        *,
        merges: bool = False,
    ) -> None:
        super().__init__(names, scope, log, around)
        self._merges = merges
        self._exits: list[Exit] = []
        self._finals: list[Sequence[ast.stmt]] = []

    # --- functions -------------------------------------------------------------------------------

    def run(self, function: Function, facts: Facts) -> None:
        """Walk through the function, and log what each way to its end leaves behind."""
        if self.scope.yields:
            self.unclear(function, "is a generator")
        if isinstance(function, ast.Lambda):
            self._exits.append(Exit("return", facts, self._returned(function.body, facts)))
        else:
            end = self.block(function.body, facts)
            if end is not None:
                self._gives(Const(None))
                self._exits.append(Exit("return", end, Fields({})))
        for each in self._exits:
            self._ends(each)

    def _ends(self, exit: Exit) -> None:
        given = dict(exit.facts.given)
        if exit.returned is not None:
            _check_keys(exit.returned)
            for key, (sure, value) in exit.returned.items.items():
                none = none_of(value)
                self.log.write(key, none, type_of(value))
                if sure:
                    given[key] = none
        self.log.returns(given)

    def body(
        self, node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef, facts: Facts
    ) -> Facts | None:
        """Walk through the body of a function inside."""
        if isinstance(node, ast.Lambda):
            self.plain(node.body, facts, _RETURNS)
            return facts
        end = self.block(node.body, facts)
        for each in self._exits:
            end = meet(end, each.facts)
        self._exits.clear()
        return end

    def block(self, body: Sequence[ast.stmt], facts: Facts | None) -> Facts | None:
        """Walk through statements; None: their end is not reached."""
        for each in body:
            if facts is None:
                return None
            self.spend()
            self.notice(facts)
            facts = self._statement(each, facts)
        if facts is not None:
            self.notice(facts)
        return facts

    def _statement(self, node: ast.stmt, facts: Facts) -> Facts | None:  # noqa: PLR0911, PLR0912, C901  # a row for each
        match node:
            case ast.Expr(value=value):
                if not isinstance(value, ast.Constant):
                    self._dropped(value, facts)
                return facts
            case ast.Return(value=value):
                if value is None:
                    self._gives(Const(None))
                returned = Fields({}) if value is None else self._returned(value, facts)
                self._exits.append(Exit("return", facts, returned))
                return None
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign() | ast.Delete():
                return self._assignment(node, facts)
            case ast.If(test=test, body=body, orelse=other):
                yes, no = self.test(test, facts)
                return meet(self.block(body, yes), self.block(other, no))
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._loop(node, facts)
            case ast.Try() | ast.TryStar():
                return self._try(node, facts)
            case ast.With() | ast.AsyncWith():
                return self._with_items(node.items, node.body, facts)
            case ast.Match():
                return self._match(node, facts)
            case ast.Raise():
                for each in (node.exc, node.cause):
                    if each is not None:
                        self.plain(each, facts)
                self.notice(facts)
                return None
            case ast.Assert(test=test, msg=message):
                yes, no = self.test(test, facts)
                if message is not None and no is not None:
                    self.plain(message, no)
                return yes
            case ast.Break() | ast.Continue():
                kind = "break" if isinstance(node, ast.Break) else "continue"
                self._exits.append(Exit(kind, facts))
                return None
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._definition(node, facts)
                return facts
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    name = alias.asname or alias.name.partition(".")[0]
                    self.bind(name, Plain(), facts, node)
                return facts
            case ast.Pass() | ast.Global() | ast.Nonlocal():
                return facts
            case _:
                return self.unclear(node, f"has {type(node).__name__}")

    def _dropped(self, node: ast.expr, facts: Facts) -> None:
        """An expression whose value nobody uses; ``state`` alone on a line does no harm."""
        self.peek(node, facts)

    # --- what is returned ------------------------------------------------------------------------

    def _returned(self, node: ast.expr, facts: Facts) -> Fields | None:
        """The keys and values that are returned; None where they do not matter."""
        if not self._merges:
            self._gives(self.plain(node, facts, _RETURNS))
            return None
        found = self._merged(node, facts)
        if found is None:
            self.unclear(node, f"returns what `{_first_line(node)}` gives,")
        if found.open:
            self.unclear(node, f"returns keys that are not known ({found.open})")
        return found

    def _gives(self, value: Value) -> None:
        """Note what the function itself may return; those inside it are none of that."""
        if self.around is None:
            known = self.log.result
            self.log.result = value if known is None else joined(known, value)

    def _merged(self, node: ast.expr, facts: Facts) -> Fields | None:
        if isinstance(node, ast.IfExp):
            yes, no = self.test(node.test, facts)
            found: Value | None = None
            end: Facts | None = None
            for each, here in ((node.body, yes), (node.orelse, no)):
                if here is not None:
                    value = self._merged(each, here)
                    if value is None:
                        return None
                    found = value if found is None else joined(found, value)
                    end = meet(end, here)
            if end is not None:
                facts.take(end)
            return found if isinstance(found, Fields) else None
        if isinstance(node, ast.Name):
            later = {each.id for body in self._finals for each in _names(body)}
            if node.id in later:
                self.unclear(node, f"may change `{node.id}` after it is returned")
        return self.fields(node, facts)

    # --- assignments -----------------------------------------------------------------------------

    def _assignment(self, node: ast.stmt, facts: Facts) -> Facts:
        match node:
            case ast.Assign(targets=[ast.Tuple() | ast.List() as target], value=value):
                self._unpack(target, value, facts)
            case ast.Assign(targets=[target], value=value):
                self.assign(target, self.value(value, facts), facts)
            case ast.Assign(targets=targets, value=value):
                found = self.value(value, facts)
                if isinstance(found, Fields):
                    found = found.opened("several names stand for it")
                for target in targets:
                    self.assign(target, found, facts)
            case ast.AnnAssign(target=target, value=value):
                if value is not None:
                    self.assign(target, self.value(value, facts), facts)
            case ast.AugAssign(target=target, op=op, value=value):
                self._augmented(target, op, value, facts)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._deleted(target, facts)
            case _:
                pass
        return facts

    def assign(self, target: ast.expr, value: Value, facts: Facts) -> None:
        """Give a value to a target."""
        match target:
            case ast.Name(id=name):
                self.bind(name, value, facts, target)
            case ast.Attribute(value=inner, attr=name):
                owner = self.value(inner, facts)
                self._kept(target, value)
                if isinstance(owner, Tracked):
                    self.sets_attribute(owner, name, value, target, facts)
            case ast.Subscript(value=inner, slice=index):
                self._set_item(target, inner, index, value, facts)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                self._kept(target, value)
                for each in elements:
                    self.assign(each, Plain(), facts)
            case ast.Starred(value=inner):
                self.assign(inner, Plain(), facts)
            case _:
                self.unclear(target, f"has {type(target).__name__}")

    def _kept(self, node: ast.AST, value: Value) -> None:
        if isinstance(value, Tracked):
            self.refuse(node, value, "keeps {} elsewhere")

    def _set_item(
        self, target: ast.expr, inner: ast.expr, index: ast.expr, value: Value, facts: Facts
    ) -> None:
        self._kept(target, value)
        owner = self.peek(inner, facts)
        at = self.plain(index, facts)
        if isinstance(owner, Tracked):
            self.sets_item(owner, at, value, target, facts)
        elif isinstance(owner, Fields) and isinstance(inner, ast.Name):
            now = self.lookup(inner.id, facts)
            fields = now if isinstance(now, Fields) else owner
            self.bind(inner.id, self._with(fields, at, value, index), facts, target)
        else:
            self.changes(owner, target, facts)

    def _unpack(self, target: ast.Tuple | ast.List, value: ast.expr, facts: Facts) -> None:
        """``a, b = 1, 2``."""
        starred = any(isinstance(each, ast.Starred) for each in target.elts)
        pairs = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
        if not pairs or starred or not isinstance(value, ast.Tuple):
            self.assign(target, self.value(value, facts), facts)
            return
        values = [self.value(each, facts) for each in value.elts]
        for each, found in zip(target.elts, values, strict=True):
            self.assign(each, found, facts)

    def _augmented(self, target: ast.expr, op: ast.operator, value: ast.expr, facts: Facts) -> None:
        if isinstance(target, ast.Name):
            old = self.lookup(target.id, facts)
            if isinstance(old, Fields) and isinstance(op, ast.BitOr):
                inner = self.fields(value, facts)
                why = "it is updated with something unknown"
                made = old.updated(Fields({}, why) if inner is None else inner)
                self.bind(target.id, made, facts, target)
                return
            if isinstance(old, Tracked):
                self.refuse(target, old)
            new = self.plain(value, facts)
            if isinstance(old, Fields):
                made = old.opened("it is changed")
            else:
                made = self.arithmetic(op, old, new)
            self.bind(target.id, made, facts, target)
            return
        read = ast.copy_location(_loaded(target), target)
        old, new = self.plain(read, facts), self.plain(value, facts)
        self.assign(target, self.arithmetic(op, old, new), facts)

    def _deleted(self, target: ast.expr, facts: Facts) -> None:
        match target:
            case ast.Name(id=name):
                self.bind(name, Plain(), facts, target)
            case ast.Subscript(value=inner, slice=index):
                owner = self.peek(inner, facts)
                at = self.plain(index, facts)
                if isinstance(owner, Tracked):
                    self.refuse(target, owner, "deletes from {}")
                if isinstance(owner, Fields) and isinstance(inner, ast.Name):
                    key = self.known_key(at)
                    made = owner.opened("a key is computed") if key is None else owner.without(key)
                    self.bind(inner.id, made, facts, target)
                self.changes(owner, target, facts)
            case ast.Attribute(value=inner):
                owner = self.value(inner, facts)
                if isinstance(owner, Tracked):
                    self.refuse(target, owner, "deletes from {}")
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                for each in elements:
                    self._deleted(each, facts)
            case _:
                self.unclear(target, "deletes something")

    # --- loops -----------------------------------------------------------------------------------

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, facts: Facts) -> Facts | None:
        leaves: list[Exit] = []

        def once(here: Facts) -> Facts | None:
            before, self._exits = self._exits, []
            end = self.block(node.body, here)
            mine, self._exits = self._exits, before
            for each in mine:
                if each.kind == "continue":
                    end = meet(end, each.facts)
                elif each.kind == "break":
                    leaves.append(each)
                else:
                    self._exits.append(each)
            return end

        done: Facts | None
        if isinstance(node, ast.While):
            done = self._while(node, facts, once)
        else:
            items = self.constants(node.iter, facts)
            done = self.over(node.target, items, facts, once)
        done = self.block(node.orelse, done)
        for each in leaves:
            done = meet(done, each.facts)
        return done

    def _while(self, node: ast.While, facts: Facts, once: Any) -> Facts | None:
        ends: list[Facts | None] = []

        def again(here: Facts) -> Facts | None:
            yes, no = self.test(node.test, here)
            ends.append(no)
            return None if yes is None else once(yes)

        self.settle(facts, again)
        done: Facts | None = None
        for each in ends:
            done = meet(done, each)
        return done

    # --- errors ----------------------------------------------------------------------------------

    def _try(self, node: ast.Try | ast.TryStar, facts: Facts) -> Facts | None:
        if node.finalbody:
            return self._finally(node, facts)
        return self._handled(node, facts)

    def _handled(self, node: ast.Try | ast.TryStar, facts: Facts) -> Facts | None:
        self.risks.append(facts.copy())
        self.caught.append(self._caught_by(node.handlers, facts))
        end = self.block(node.body, facts)
        self.caught.pop()
        risk = self.risks.pop()
        done = self.block(node.orelse, end)
        for each in node.handlers:
            if risk is not None:
                here = risk.copy()
                if each.type is not None:
                    self.plain(each.type, here)
                if each.name is not None:
                    self.bind(each.name, Plain(), here, each)
                done = meet(done, self.block(each.body, here))
        return done

    def _caught_by(self, handlers: Sequence[ast.ExceptHandler], facts: Facts) -> tuple[type, ...]:
        """The errors of looking a key up that do no harm: caught, and not raised again."""
        found: list[type] = []
        for error in (KeyError, StateKeyError):
            for each in handlers:
                kinds = (BaseException,) if each.type is None else self._classes(each.type, facts)
                if any(issubclass(error, kind) for kind in kinds):
                    if not any(isinstance(inner, ast.Raise) for inner in ast.walk(each)):
                        found.append(error)
                    break
        return tuple(found)

    def _classes(self, node: ast.expr, facts: Facts) -> tuple[type, ...]:
        if isinstance(node, ast.Tuple):
            return tuple(kind for each in node.elts for kind in self._classes(each, facts))
        if not isinstance(node, ast.Name | ast.Attribute):
            return ()
        value = self.plain(node, facts)
        found = value.it if isinstance(value, Live) else None
        return (found,) if isinstance(found, type) else ()

    def _finally(self, node: ast.Try | ast.TryStar, facts: Facts) -> Facts | None:
        """What happens at the end of every way through, also of those that leave."""
        before, self._exits = self._exits, []
        self.risks.append(facts.copy())
        self._finals.append(node.finalbody)
        end = self._handled(node, facts)
        self._finals.pop()
        risk = self.risks.pop()
        mine, self._exits = self._exits, before
        if risk is not None:
            self.block(node.finalbody, risk)  # an error goes on after it
        for each in mine:
            here = self.block(node.finalbody, each.facts)
            if here is not None:
                self._exits.append(Exit(each.kind, here, each.returned))
        return self.block(node.finalbody, end)

    # --- with ------------------------------------------------------------------------------------

    def _with_items(
        self, items: Sequence[ast.withitem], body: Sequence[ast.stmt], facts: Facts
    ) -> Facts | None:
        if not items:
            return self.block(body, facts)
        item, *rest = items
        held = self.value(item.context_expr, facts)
        lent: Value = Plain()
        if isinstance(held, Tracked):
            if held.kind != "edited":
                self.refuse(item.context_expr, held)
            lent = self.lends(held, item.context_expr, facts)
        swallowed = self._swallowed(item.context_expr, facts)
        if item.optional_vars is not None:
            self.assign(item.optional_vars, lent, facts)
        self.risks.append(facts.copy())
        self.caught.append(swallowed or ())
        end = self._with_items(rest, body, facts)
        self.caught.pop()
        risk = self.risks.pop()
        if isinstance(held, Tracked) and end is not None:
            self.takes_back(held, end)
        return end if swallowed is None else meet(end, risk)

    def _swallowed(self, node: ast.expr, facts: Facts) -> tuple[type, ...] | None:
        """The errors of looking up that a context manager swallows; None: it swallows nothing.

        All but a few are taken to swallow nothing, since that is what context managers do.
        """
        if not isinstance(node, ast.Call):
            return None
        name = ast.unparse(node.func).rpartition(".")[2]
        if name not in _SWALLOWERS:
            return None
        kinds = [kind for each in node.args for kind in self._classes(each, facts)]
        return tuple(kind for kind in kinds if name == "suppress")

    # --- match -----------------------------------------------------------------------------------

    def _match(self, node: ast.Match, facts: Facts) -> Facts | None:
        subject = self.value(node.subject, facts)
        done: Facts | None = None
        here: Facts | None = facts
        for case in node.cases:
            if here is None:
                break
            taken = here.copy()
            if isinstance(subject, Tracked):
                self._match_state(case.pattern, subject, taken)
            for name in _captured(case.pattern):
                self.bind(name, Plain(), taken, case.pattern)
            sure = case.guard is None and _matches_all(case.pattern)
            passed: Facts | None = taken
            if case.guard is not None:
                passed, failed = self.test(case.guard, taken)
                here = meet(here, failed)
            done = meet(done, self.block(case.body, passed))
            if sure:
                here = None
        return meet(done, here)

    def _match_state(self, pattern: ast.pattern, subject: Tracked, facts: Facts) -> None:
        """``case {"intent": intent}``, which asks for keys by ``get``."""
        match pattern:
            case ast.MatchMapping(keys=keys, rest=None) if subject.kind == "state":
                for each in keys:
                    key = self.key(self.plain(each, facts), each, "reads")
                    self.log.read(key, None)
                    facts.safe |= {key}
            case ast.MatchAs(pattern=None, name=None):
                pass
            case ast.MatchOr(patterns=patterns):
                for each in patterns:
                    self._match_state(each, subject, facts.copy())
            case _:
                self.refuse(pattern, subject)

    # --- definitions -----------------------------------------------------------------------------

    def _definition(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, facts: Facts
    ) -> None:
        for each in node.decorator_list:
            self.plain(each, facts)
        if isinstance(node, ast.ClassDef):
            for each in ast.walk(node):
                if isinstance(each, ast.Name):
                    value = self.lookup(each.id, facts)
                    if isinstance(value, Tracked):
                        self.refuse(each, value, "uses {} in a class")
                    self.early.add(each.id)
        else:
            self.inside(node, facts)
        self.bind(node.name, Plain(IS_NOT), facts, node)


def _loaded(target: ast.expr) -> ast.expr:
    """A target as an expression that is read."""
    if isinstance(target, ast.Attribute):
        return ast.Attribute(target.value, target.attr, ast.Load())
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    return target


def _names(body: Sequence[ast.stmt]) -> list[ast.Name]:
    return [each for one in body for each in ast.walk(one) if isinstance(each, ast.Name)]


def _captured(pattern: ast.pattern) -> list[str]:
    found: list[str] = []
    for each in ast.walk(pattern):
        name = getattr(each, "rest", None) or getattr(each, "name", None)
        if isinstance(name, str) and isinstance(each, ast.pattern):
            found.append(name)
    return found


def _matches_all(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and (
        pattern.pattern is None or _matches_all(pattern.pattern)
    )


def _first_line(node: ast.AST) -> str:
    text = ast.unparse(node).partition("\n")[0]
    return text if len(text) <= 40 else f"{text[:37]}..."


def _check_keys(returned: Fields) -> None:
    """See that a run takes what is returned.

    Raises:
        Unclear: It refuses a key.
    """
    if returned.mixed:
        raise Unclear("it returns a key that is no text, which a run refuses")
    for key in returned.items:
        name = StateFieldRef(key).name
        if not name.strip() or is_reserved_key(name):
            raise Unclear(f"it returns the key {key!r}, which a run refuses")
