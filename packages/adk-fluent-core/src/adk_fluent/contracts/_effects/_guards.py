"""Tests: what holds when one comes out true, and what when it does not."""

from __future__ import annotations

import ast
import operator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.contracts._effects._facts import Facts, meet
from adk_fluent.contracts._effects._objects import Objects
from adk_fluent.contracts._effects._values import (
    IS_NONE,
    IS_NOT,
    Const,
    Fields,
    Live,
    Plain,
    Tracked,
    Value,
    truth_of,
)
from adk_fluent.ir import UNSET

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    #: What a test gives, what holds where it is true, and what where it is not.
    Judged = tuple[Value, Facts | None, Facts | None]

_OPERATORS: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}
_TRUTH: Final = Plain(IS_NOT)


class Guards(Objects):
    """A walk that knows what a test tells of state."""

    def test(self, node: ast.expr, facts: Facts) -> tuple[Facts | None, Facts | None]:
        """What holds where an expression is true, and where it is not; None: it never is."""
        return self.judged(node, facts)[1:]

    def judged(self, node: ast.expr, facts: Facts) -> Judged:
        """The same, with what the expression gives."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self.spend()
                _, yes, no = self.judged(operand, facts)
                return _TRUTH, no, yes
            case ast.BoolOp(op=op, values=values):
                self.spend()
                steps = [partial(self.judged, each) for each in values]
                return self._chain(steps, facts, isinstance(op, ast.And))
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                self.spend()
                return self._compare(left, op, right, facts)
            case ast.Compare():
                self.spend()
                for each in (node.left, *node.comparators):
                    self.plain(each, facts)
                return _TRUTH, facts.copy(), facts.copy()
            case ast.Call(args=[ast.GeneratorExp() as every], keywords=[]):
                return self._quantified(node, every, facts)
            case _:
                value = self.peek(node, facts)
                return self._split(node, value, facts)

    def peek(self, node: ast.expr, facts: Facts) -> Value:
        """What an expression gives, for somebody who keeps no hold of it."""
        raise NotImplementedError

    def constants(self, node: ast.expr, facts: Facts) -> list[Value] | None:
        """The items of what is looped over, if they are a few constants."""
        raise NotImplementedError

    def is_builtin(self, node: ast.expr, what: object, facts: Facts) -> bool:
        """Whether a name is that of a certain builtin."""
        raise NotImplementedError

    # --- several tests ---------------------------------------------------------------------------

    def _chain(
        self, steps: Sequence[Callable[[Facts], Judged]], facts: Facts, every: bool
    ) -> Judged:
        """All of several tests, or one of them; later ones only as long as that is open."""
        here: Facts | None = facts
        done: Facts | None = None
        for step in steps:
            if here is not None:
                _, yes, no = step(here)
                here, end = (yes, no) if every else (no, yes)
                done = meet(done, end)
        return (Plain(), here, done) if every else (Plain(), done, here)

    def _quantified(self, node: ast.Call, inner: ast.GeneratorExp, facts: Facts) -> Judged:
        """``all(key in state for key in ("a", "b"))``."""
        every = self.is_builtin(node.func, all, facts)
        clause, *rest = inner.generators
        simple = isinstance(clause.target, ast.Name) and not clause.ifs and not rest
        if simple and (every or self.is_builtin(node.func, any, facts)):
            items = self.constants(clause.iter, facts)
            if items is not None and isinstance(clause.target, ast.Name):
                return self._unrolled(clause.target.id, items, inner.elt, facts, every)
        return self._split(node, self.value(node, facts), facts)

    def _unrolled(
        self, name: str, items: list[Value], element: ast.expr, facts: Facts, every: bool
    ) -> Judged:
        hidden = facts.env.get(name)

        def step(item: Value, here: Facts) -> Judged:
            here.env[name] = item
            return self.judged(element, here)

        steps = [partial(step, item) for item in items]
        value, yes, no = self._chain(steps, facts.copy(), every)
        for each in (yes, no):
            if each is not None:
                each.env.pop(name, None)
                if hidden is not None:
                    each.env[name] = hidden
        return value, yes, no

    # --- one test --------------------------------------------------------------------------------

    def _split(self, node: ast.expr, value: Value, facts: Facts) -> Judged:
        """A value that counts as true or not."""
        if isinstance(value, Tracked):
            self._truth_of_tracked(node, value)
        certain = truth_of(value)
        yes, no = facts.copy(), facts.copy()
        if isinstance(value, Plain) and value.key is not None and value.default is not UNSET:
            if value.default:
                no.safe |= {value.key}
            else:
                yes.holds(value.key)
        _refine(node, yes, IS_NOT)
        return value, None if certain is False else yes, None if certain is True else no

    def _truth_of_tracked(self, node: ast.expr, value: Tracked) -> None:
        if value.kind == "sometimes":
            self.refuse(node, value)
        self.log.reads_all |= value.kind == "state"

    def _compare(self, left: ast.expr, op: ast.cmpop, right: ast.expr, facts: Facts) -> Judged:
        one = self.peek(left, facts)
        two = self._container(right, facts) if isinstance(op, ast.In | ast.NotIn) else None
        if isinstance(two, Tracked):
            return self._contained(one, op, two, left, facts)
        if two is None:
            two = self.peek(right, facts)
        for node, value in ((left, one), (right, two)):
            if isinstance(value, Tracked):
                self._compares_tracked(node, value, op)
        yes, no = facts.copy(), facts.copy()
        if isinstance(one, Plain) and one.key is not None and one.default is not UNSET:
            self._told(one, op, _literal(right, two), yes, no)
        if isinstance(two, Const):
            _refine_by(left, op, two.value, yes, no)
        return _TRUTH, *_decided(one, op, two, yes, no)

    def _container(self, node: ast.expr, facts: Facts) -> Value:
        """What is looked into; ``state.keys()`` is state, too."""
        match node:
            case ast.Call(func=ast.Attribute(value=inner, attr="keys"), args=[], keywords=[]):
                value = self.peek(inner, facts)
                if isinstance(value, Tracked) and value.kind == "state":
                    return value
            case _:
                pass
        return self.peek(node, facts)

    def _compares_tracked(self, node: ast.expr, value: Tracked, op: ast.cmpop) -> None:
        identity = isinstance(op, ast.Is | ast.IsNot)
        equality = isinstance(op, ast.Eq | ast.NotEq) and value.kind == "state"
        if value.kind == "sometimes" or not (identity or equality):
            self.refuse(node, value)
        self.log.reads_all |= equality

    def _contained(
        self, one: Value, op: ast.cmpop, state: Tracked, node: ast.expr, facts: Facts
    ) -> Judged:
        """``key in state``."""
        if state.kind != "state" or isinstance(one, Tracked):
            self.refuse(
                node, state if state.kind != "state" or not isinstance(one, Tracked) else one
            )
        yes, no = facts.copy(), facts.copy()
        self.needs_text(one, node, "looks for")
        key = self.known_key(one)
        if key is None:
            self.log.reads_all = True
        else:
            if key not in facts.given:
                self.log.read(key, None)
            there = yes if isinstance(op, ast.In) else no
            there.safe |= {key}
            if state.manner == "view":
                there.held |= {key}
        return _TRUTH, yes, no

    def _told(self, one: Plain, op: ast.cmpop, other: Any, yes: Facts, no: Facts) -> None:
        """What comparing a looked up value with a constant says of whether the key is there."""
        if other is UNSET or one.key is None:
            return
        try:
            absent = bool(_OPERATORS[type(op)](one.default, other))
        except TypeError:  # absent keys do not come this far
            yes.safe |= {one.key}
            no.safe |= {one.key}
            return
        (no if absent else yes).safe |= {one.key}
        if other is None and isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            (no if absent else yes).holds(one.key)
        elif other is not None and not absent and isinstance(op, ast.Eq):
            yes.holds(one.key)


def _literal(node: ast.expr, value: Value) -> Any:
    """The constant that an expression is; `UNSET` if it is none."""
    if isinstance(value, Const):
        return value.value
    if isinstance(value, Live | Fields):
        return UNSET
    items = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return ast.literal_eval(node) if all(isinstance(x, ast.Constant) for x in items) else UNSET


def _decided(
    one: Value, op: ast.cmpop, two: Value, yes: Facts, no: Facts
) -> tuple[Facts | None, Facts | None]:
    """Leave out the way that two constants of the source never take."""
    if not isinstance(one, Const) or not isinstance(two, Const) or one.outside or two.outside:
        return yes, no
    if isinstance(op, ast.Is | ast.IsNot) and one.value is not None and two.value is not None:
        return yes, no
    try:
        holds = bool(_OPERATORS[type(op)](one.value, two.value))
    except TypeError:
        return yes, no
    return (yes, None) if holds else (None, no)


def _refine_by(node: ast.expr, op: ast.cmpop, other: Any, yes: Facts, no: Facts) -> None:
    """What comparing a name with a constant says of whether its value is None."""
    if other is None and isinstance(op, ast.Is | ast.Eq):
        _refine(node, yes, IS_NONE)
        _refine(node, no, IS_NOT)
    elif other is None and isinstance(op, ast.IsNot | ast.NotEq):
        _refine(node, yes, IS_NOT)
        _refine(node, no, IS_NONE)
    elif other is not None and isinstance(op, ast.Is | ast.Eq):
        _refine(node, yes, IS_NOT)


def _refine(node: ast.expr, facts: Facts, none: int) -> None:
    name = node.target if isinstance(node, ast.NamedExpr) else node
    if isinstance(name, ast.Name):
        known = facts.env.get(name.id)
        if isinstance(known, Plain):
            facts.env[name.id] = replace(known, none=none)
        elif isinstance(known, Fields) and known.none and none == IS_NOT:
            facts.env[name.id] = replace(known, none=False)
