"""Expressions: what they give, and what they do to state on the way."""

from __future__ import annotations

import ast
import builtins
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast, get_origin

from adk_fluent.contracts._effects._calls import Calls
from adk_fluent.contracts._effects._facts import Facts, meet
from adk_fluent.contracts._effects._guards import Guards
from adk_fluent.contracts._effects._machine import Unclear
from adk_fluent.contracts._effects._names import is_schema, is_typed_dict
from adk_fluent.contracts._effects._scope import Scope, parameters
from adk_fluent.contracts._effects._values import (
    IS_NONE,
    IS_NOT,
    UNCLEAR,
    Const,
    Fields,
    Live,
    Plain,
    Tracked,
    Value,
    container_of,
    is_lent,
    joined,
    none_of,
    type_of,
)
from adk_fluent.contracts._types import gives_none, item_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp

_INTO: Final = "puts {} into something else"
_SPREADS: Final = "spreads all of {}"
#: Ways through a loop that are looked at before its facts must have settled.
_ROUNDS: Final = 12
#: Constants that a loop is written out for, at most.
_UNROLLED: Final = 16


class Expressions(Guards, Calls):
    """A walk that understands expressions."""

    def value(self, node: ast.expr, facts: Facts) -> Value:  # noqa: PLR0911  # a row for each
        """What an expression gives."""
        self.spend()
        match node:
            case ast.Name(id=name):
                return self._name(name, facts)
            case ast.Constant(value=value):
                return Const(value)
            case ast.Attribute():
                return self._attribute(node, facts)
            case ast.Subscript():
                return self._subscript(node, facts)
            case ast.Call():
                return self.call(node, facts)
            case ast.Dict() | ast.DictComp():
                found = self.fields(node, facts)
                return Plain(IS_NOT, dict) if found is None else found
            case ast.BoolOp() | ast.Compare() | ast.UnaryOp(op=ast.Not()):
                return self._logic(node, facts)
            case ast.IfExp(body=body, orelse=other):
                yes, no = self.test(node.test, facts)
                return self._either(facts, (body, yes), (other, no))
            case ast.NamedExpr(target=target):
                value = self.value(node.value, facts)
                if isinstance(value, Fields):  # two hold it now
                    value = value.opened("two names may stand for it")
                self.bind(target.id, value, facts, node)
                return value
            case _:
                return self._composed(node, facts)

    def _composed(self, node: ast.expr, facts: Facts) -> Value:  # noqa: C901, PLR0911, PLR0912  # the same
        """Expressions that only put together what others give."""
        match node:
            case ast.BinOp(op=ast.BitOr()):
                found = self.fields(node, facts)
                return Plain(IS_NOT) if found is None else found
            case ast.BinOp(left=left, op=op, right=right):
                return self.arithmetic(op, self.plain(left, facts), self.plain(right, facts))
            case ast.UnaryOp(op=op, operand=operand):
                value = self.plain(operand, facts)
                kind = type_of(value) if type_of(value) in (int, float) else None
                if isinstance(op, ast.USub) and isinstance(value, Const) and kind:
                    return Const(-value.value, value.outside)
                return Plain(IS_NOT, kind)
            case ast.JoinedStr(values=values):
                return self._text(values, facts)
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                values = [self.plain(each, facts, _INTO) for each in elements]
                kinds = {ast.List: list, ast.Tuple: tuple, ast.Set: set}
                kind = kinds[type(node)]
                if kind is tuple and any(isinstance(each, ast.Starred) for each in elements):
                    return Plain(IS_NOT, kind)
                return Plain(IS_NOT, container_of(kind, values))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return self._comprehension(node, facts)
            case ast.Lambda():
                self.inside(node, facts)
                return Plain(IS_NOT)
            case ast.Await(value=inner):
                self.plain(inner, facts)
                facts.held = frozenset()  # others may remove keys in the meantime
                return Plain()
            case ast.Starred(value=inner):
                kind = item_type(type_of(self.plain(inner, facts, _SPREADS)))
                return Plain(UNCLEAR if kind is None or gives_none(kind) else IS_NOT, kind)
            case ast.Yield(value=inner) | ast.YieldFrom(value=inner) if self.around:
                if inner is not None:
                    self.plain(inner, facts)
                return Plain()
            case ast.Slice():
                for each in (node.lower, node.upper, node.step):
                    if each is not None:
                        self.plain(each, facts)
                return Plain(IS_NOT, slice)
            case _:
                return self.unclear(node, f"has {type(node).__name__}")

    def arithmetic(self, op: ast.operator, one: Value, two: Value) -> Value:
        """What an operator makes of two values."""
        if isinstance(op, ast.Add):
            return _sum(one, two)
        if isinstance(op, ast.Pow) and not _is_natural(two):
            return Plain(IS_NOT)  # an int to the power of a negative one is none
        return Plain(IS_NOT, _number(type_of(one), type_of(two), op))

    # --- names, attributes, items ----------------------------------------------------------------

    def _name(self, name: str, facts: Facts) -> Value:
        value = self.lookup(name, facts)
        if isinstance(value, Tracked):
            return Tracked(value.kind, value.manner, value.schema, name)
        if isinstance(value, Fields):  # from here on somebody else may change it
            self.bind(name, value.opened(f"`{name}` is handed on"), facts, ast.Name(name))
        return value

    def peek(self, node: ast.expr, facts: Facts) -> Value:
        """What an expression gives, for somebody who keeps no hold of it."""
        if isinstance(node, ast.Name):
            value = self.lookup(node.id, facts)
            if isinstance(value, Fields):
                self.spend()
                return value
        return self.value(node, facts)

    def _attribute(self, node: ast.Attribute, facts: Facts) -> Value:
        owner = self.peek(node.value, facts)
        if isinstance(owner, Tracked):
            return self.attribute(owner, node, facts)
        if isinstance(owner, Live):
            return self.names.attribute(owner.it, node.attr)
        if isinstance(owner, Const) and node.attr == "value":  # of an enum that is text
            return owner
        if isinstance(owner, Fields):
            self.value(node.value, facts)  # a method that is kept may change it later
        return Plain(lent=is_lent(owner))

    def _subscript(self, node: ast.Subscript, facts: Facts) -> Value:
        owner = self.peek(node.value, facts)
        index = self.plain(node.slice, facts)
        if isinstance(owner, Tracked):
            return self.item(owner, index, node, facts)
        if isinstance(owner, Fields) and isinstance(index, Const) and index.value in owner.items:
            return Plain() if owner.open else owner.items[index.value][1]
        if isinstance(owner, Live) and is_schema(owner.it) and isinstance(index, Live):
            return self._filled(owner.it, index.it, node)
        return Plain(lent=is_lent(owner))

    def _filled(self, schema: Any, kind: Any, node: ast.Subscript) -> Value:
        """``Found[int]``: a schema whose type is filled in, which is one and the same each time."""
        try:
            return Live(schema[kind])
        except Exception:  # noqa: BLE001  # a schema of somebody else's, or a type it refuses
            self.unclear(node, f"uses `{ast.unparse(node)}`")

    # --- logic -----------------------------------------------------------------------------------

    def _logic(self, node: ast.expr, facts: Facts) -> Value:
        if isinstance(node, ast.BoolOp):
            return self._bool_op(node, facts)
        yes, no = self.test(node, facts)
        both = meet(yes, no)
        if both is not None:
            facts.take(both)
        certain = isinstance(node, ast.UnaryOp) or (
            isinstance(node, ast.Compare)
            and all(isinstance(op, ast.In | ast.NotIn | ast.Is | ast.IsNot) for op in node.ops)
        )
        return Plain(IS_NOT, bool if certain else None)

    def _bool_op(self, node: ast.BoolOp, facts: Facts) -> Value:
        """``a or b``, ``a and b``: one of them, and the later ones only sometimes."""
        ends: list[Facts | None] = []
        found: Value | None = None
        here: Facts | None = facts.copy()
        stops = isinstance(node.op, ast.Or)
        for each in node.values[:-1]:
            if here is None:
                break
            value, yes, no = self.judged(each, here)
            if isinstance(value, Tracked):
                self.refuse(each, value)
            end, here = (yes, no) if stops else (no, yes)
            if end is not None:
                left = Plain(IS_NOT, type_of(value)) if stops else Plain(none_of(value))
                found = left if found is None else joined(found, left)
            ends.append(end)
        if here is not None:
            last = self.plain(node.values[-1], here)
            if isinstance(last, Fields):
                last = last.as_plain()
            found = last if found is None else joined(found, last)
            ends.append(here)
        self._go_on(facts, ends)
        return found if found is not None else Plain()

    def _either(self, facts: Facts, *ways: tuple[ast.expr, Facts | None]) -> Value:
        found: Value | None = None
        ends: list[Facts | None] = []
        for node, here in ways:
            if here is not None:
                value = self.value(node, here)
                found = value if found is None else joined(found, value)
                ends.append(here)
        self._go_on(facts, ends)
        return found if found is not None else Plain()

    def _go_on(self, facts: Facts, ends: Sequence[Facts | None]) -> None:
        met: Facts | None = None
        for each in ends:
            met = meet(met, each)
        if met is not None:
            facts.take(met)

    # --- text ------------------------------------------------------------------------------------

    def _text(self, parts: Sequence[ast.expr], facts: Facts) -> Value:
        texts: list[str] = []
        fixed = True
        for part in parts:
            if isinstance(part, ast.FormattedValue):
                value = self.value(part.value, facts)
                if isinstance(value, Tracked):
                    if value.kind != "state":
                        self.refuse(part, value)
                    self.log.reads_all = True
                if part.format_spec is not None:
                    self.plain(part.format_spec, facts)
                plain = part.conversion == -1 and part.format_spec is None
            else:
                value, plain = self.plain(part, facts), True
            fixed = fixed and plain and isinstance(value, Const) and isinstance(value.value, str)
            texts.append(value.value if fixed and isinstance(value, Const) else "")
        return Const("".join(texts)) if fixed else Plain(IS_NOT, str)

    # --- dicts -----------------------------------------------------------------------------------

    def fields(self, node: ast.expr, facts: Facts) -> Fields | None:
        """What an expression gives if it is a dict with known keys."""
        match node:
            case ast.Dict():
                return self._display(node, facts)
            case ast.DictComp():
                return self._dict_comprehension(node, facts)
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                one = self.fields(left, facts)
                two = self.fields(right, facts)
                return None if one is None or two is None else one.updated(two)
            case ast.Call(func=ast.Name() | ast.Attribute() as callee) if self._makes_dict(
                callee, facts
            ):
                return self._dict_call(node, facts)
            case _:
                value = self.peek(node, facts)
                if isinstance(value, Tracked):
                    self.refuse(node, value, "takes all of {}")
                if none_of(value) == IS_NONE:
                    return Fields({})
                return value if isinstance(value, Fields) else None

    def _makes_dict(self, callee: ast.expr, facts: Facts) -> bool:
        """Whether a call of it gives a dict of what it is given by keyword."""
        value = self.peek(callee, facts) if isinstance(callee, ast.Name) else None
        found = value.it if isinstance(value, Live) else None
        return found is dict or is_typed_dict(found)

    def _display(self, node: ast.Dict, facts: Facts) -> Fields:
        found = Fields({})
        for key, each in zip(node.keys, node.values, strict=True):
            if key is None:
                inner = self.fields(each, facts)
                found = found.updated(
                    Fields({}, f"it spreads `{_short(each)}`") if inner is None else inner
                )
                continue
            named = self.plain(key, facts)
            value = self.plain(each, facts, _INTO)
            found = self._with(found, named, value, key)
        return found

    def _with(self, fields: Fields, key: Value, value: Value, node: ast.expr) -> Fields:
        """A dict with one more item."""
        if isinstance(value, Fields):
            value = value.as_plain()
        if isinstance(key, Const) and not isinstance(key.value, str):
            return replace(fields, mixed=True)  # no state key
        try:
            return fields.with_item(self.key(key, node, "writes"), value)
        except Unclear:
            return fields.opened(f"the key `{_short(node)}` is computed")

    def _dict_call(self, node: ast.Call, facts: Facts) -> Fields | None:
        found = Fields({})
        for each in node.args:
            inner = self.fields(each, facts)
            if inner is None:
                inner = Fields({}, f"it takes all of `{_short(each)}`")
            found = found.updated(inner)
        for each in node.keywords:
            if each.arg is None:
                inner = self.fields(each.value, facts)
                found = found.updated(
                    Fields({}, f"it spreads `{_short(each.value)}`") if inner is None else inner
                )
            else:
                value = self.plain(each.value, facts, _INTO)
                found = self._with(found, Const(each.arg), value, each.value)
        return found

    # --- comprehensions and functions inside -----------------------------------------------------

    def _comprehension(self, node: Comprehension, facts: Facts) -> Value:
        kinds: dict[type, type] = {ast.ListComp: list, ast.SetComp: set}
        items: list[Value] = []
        lazy = isinstance(node, ast.GeneratorExp)
        caught, self.caught = self.caught, [] if lazy else self.caught

        def element(here: Facts) -> None:
            assert not isinstance(node, ast.DictComp)  # noqa: S101  # for the type checker
            items.append(self.plain(node.elt, here, _INTO))

        self._clauses(node.generators, facts, element)
        self.caught = caught
        kind = kinds.get(type(node))
        return Plain(IS_NOT, None if kind is None else container_of(kind, items))

    def _dict_comprehension(self, node: ast.DictComp, facts: Facts) -> Fields:
        found = Fields({})
        first, *rest = node.generators
        items = self.constants(first.iter, facts)
        unrolled = items is not None and not rest and not first.ifs

        def element(here: Facts) -> None:
            nonlocal found
            key = self.plain(node.key, here)
            value = self.plain(node.value, here, _INTO)
            found = self._with(found, key, value, node.key)

        self._clauses(node.generators, facts, element)
        if not unrolled:
            found = Fields(
                {key: (False, value) for key, (_, value) in found.items.items()}, found.open
            )
        return found

    def _clauses(
        self,
        clauses: Sequence[ast.comprehension],
        facts: Facts,
        element: Callable[[Facts], None],
    ) -> None:
        """Walk through the loops of a comprehension; its names are its own."""
        names = {
            each.id
            for clause in clauses
            for each in ast.walk(clause.target)
            if isinstance(each, ast.Name)
        }
        kept = {name: facts.env.pop(name) for name in names if name in facts.env}
        self._clause(clauses, facts, element, kept)
        for name in names:
            facts.env.pop(name, None)
        facts.env.update(kept)

    def _clause(
        self,
        clauses: Sequence[ast.comprehension],
        facts: Facts,
        element: Callable[[Facts], None],
        kept: dict[str, Value],
    ) -> None:
        if not clauses:
            element(facts)
            return
        clause, *rest = clauses
        outside = facts if not kept else self._seen_from_outside(facts, kept)
        items = self.constants(clause.iter, outside)

        def once(here: Facts) -> Facts | None:
            inner: Facts | None = here
            passed: Facts | None = None
            for each in clause.ifs:
                if inner is not None:
                    inner, skipped = self.test(each, inner)
                    passed = meet(passed, skipped)
            if inner is not None:
                self._clause(rest, inner, element, {})
            return meet(passed, inner)

        end = self.over(clause.target, items, facts, once)
        if end is not None:
            facts.take(end)

    def _seen_from_outside(self, facts: Facts, kept: dict[str, Value]) -> Facts:
        """The first iterable is looked up where the names of the comprehension mean nothing."""
        return Facts({**facts.env, **kept}, facts.safe, facts.given, facts.held)

    def constants(self, node: ast.expr, facts: Facts) -> list[Value] | None:
        """The items of what is looped over, if they are a few constants."""
        match node:
            case ast.Tuple(elts=elements) | ast.List(elts=elements) if len(
                elements
            ) <= _UNROLLED and not any(isinstance(each, ast.Starred) for each in elements):
                return [_flat(self.plain(each, facts, _INTO)) for each in elements]
            case ast.Name() | ast.Attribute():
                value = self.peek(node, facts)
                found: Any = value.it if isinstance(value, Live) else None
                if type(found) is tuple:
                    items = cast("tuple[Any, ...]", found)
                    texts = [Const(each) for each in items if type(each) is str]
                    if len(texts) == len(items) <= _UNROLLED:
                        return [*texts]
                if isinstance(value, Tracked) and value.kind != "state":
                    self.refuse(node, value)
                if isinstance(value, Tracked):
                    self.log.reads_all = True
                return None
            case _:
                self.plain(node, facts, "goes through {}")
                return None

    def over(
        self,
        target: ast.expr,
        items: list[Value] | None,
        facts: Facts,
        once: Callable[[Facts], Facts | None],
    ) -> Facts | None:
        """Walk through a loop: item by item, or any number of times."""
        if items is None:

            def again(here: Facts) -> Facts | None:
                self.assign(target, Plain(), here)
                return once(here)

            self.settle(facts, again)
            return facts
        here: Facts | None = facts.copy()
        for item in items:
            if here is not None:
                self.assign(target, item, here)
                here = once(here)
        return here

    def settle(self, facts: Facts, once: Callable[[Facts], Facts | None]) -> None:
        """Walk through what happens any number of times, until nothing new is seen."""
        for _ in range(_ROUNDS):
            met = meet(once(facts.copy()), facts)
            if met is None or met.same(facts):
                return
            facts.take(met)
        self.unclear(ast.Pass(), "has a loop that is too tangled")

    def assign(self, target: ast.expr, value: Value, facts: Facts) -> None:
        """Give a value to a target."""
        raise NotImplementedError

    def inside(
        self, node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef, facts: Facts
    ) -> None:
        """Look at a function inside, which may be called any number of times, or later."""
        args = node.args
        for each in (*args.defaults, *(each for each in args.kw_defaults if each is not None)):
            self.plain(each, facts, _INTO)
        scope = Scope(node)
        here = facts.copy()
        here.given = {}
        for name in scope.bound:
            here.env.pop(name, None)
        inner = type(self)(self.names, scope, self.log, self)
        for name in parameters(args):
            inner.bind(name, Plain(), here, node)
        inner.settle(here, lambda again: inner.body(node, again))

    def body(
        self, node: ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef, facts: Facts
    ) -> Facts | None:
        """Walk through the body of a function inside."""
        raise NotImplementedError

    def is_builtin(self, node: ast.expr, what: object, facts: Facts) -> bool:
        """Whether a name is that of a certain builtin."""
        if not isinstance(node, ast.Name) or getattr(builtins, node.id, None) is not what:
            return False
        found = self.lookup(node.id, facts)
        return isinstance(found, Live) and found.it is what


def _sum(one: Value, two: Value) -> Value:
    texts = [each.value for each in (one, two) if isinstance(each, Const)]
    if len(texts) == 2 and all(isinstance(each, str) for each in texts):
        return Const("".join(texts), outside=True)
    kind, other = type_of(one), type_of(two)
    if kind == other and (kind is str or (get_origin(kind) or kind) is list):
        return Plain(IS_NOT, kind)
    return Plain(IS_NOT, _number(kind, other, ast.Add()))


def _is_natural(value: Value) -> bool:
    return isinstance(value, Const) and type(value.value) is int and value.value >= 0


def _number(one: Any, two: Any, by: ast.operator) -> Any:
    """What arithmetic makes of two numbers."""
    if one not in (int, float) or two not in (int, float):
        return None
    whole = one is two is int and not isinstance(by, ast.Div)
    return int if whole else float


def _flat(value: Value) -> Value:
    return value.as_plain() if isinstance(value, Fields) else value


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 40 else f"{text[:37]}..."
