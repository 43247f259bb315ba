"""Calls: what functions that everybody knows do with state, and what all others may do."""

from __future__ import annotations

import ast
import builtins
from types import BuiltinFunctionType, FunctionType, GenericAlias
from typing import TYPE_CHECKING, Any, Final, Never

from adk_fluent.contracts._effects._derived import Derived
from adk_fluent.contracts._effects._names import field_of, is_a, is_schema, is_typed_dict
from adk_fluent.contracts._effects._objects import Objects
from adk_fluent.contracts._effects._values import (
    IS_NOT,
    UNCLEAR,
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
from adk_fluent.contracts._types import item_type

if TYPE_CHECKING:
    from adk_fluent.contracts._effects._facts import Facts


def _by_id(**names: type | None) -> dict[int, type | None]:
    """Builtins by their identity, since asking a class whether it is one may run its code."""
    return {id(getattr(builtins, name)): kind for name, kind in names.items()}


#: Builtins that look at what they get and keep no hold of it, with what they give.
_LOOKERS: Final = _by_id(
    all=bool,
    any=bool,
    bool=bool,
    callable=bool,
    isinstance=bool,
    len=int,
    id=int,
    str=str,
    repr=str,
    ascii=str,
    list=list,
    sorted=list,
    tuple=tuple,
    set=set,
    frozenset=frozenset,
    print=None,
    type=None,
)
#: Those that say nothing of what an object holds.
_BLIND: Final = _by_id(callable=None, id=None, isinstance=None, type=None)
#: Those that may be given a context.
_NAMERS: Final = _by_id(bool=None, print=None, repr=None, str=None)
#: Other builtins that never give None.
_GIVERS: Final = _by_id(
    int=int,
    float=float,
    complex=complex,
    bytes=bytes,
    range=range,
    hash=int,
    ord=int,
    chr=str,
    bin=str,
    hex=str,
    oct=str,
    format=str,
    input=str,
    hasattr=bool,
    issubclass=bool,
    abs=None,
    round=None,
    sum=None,
    divmod=None,
    enumerate=None,
    zip=None,
    map=None,
    filter=None,
    reversed=None,
    pow=None,
)
#: Builtins that reach the variables of a function without naming them.
_REACHERS: Final = _by_id(eval=None, exec=None, locals=None, vars=None, dir=None)
_FUNCTIONS: Final = (BuiltinFunctionType, FunctionType)
_REACHING_NAMES: Final = ("_getframe", "currentframe", "stack", "_current_frames")

#: Methods of lists, dicts and sets that change them.
_CHANGERS: Final = (
    *("add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"),
    *("reverse", "setdefault", "sort", "update"),
)
#: Modules of Python whose classes make objects of themselves, though they say how.
_OF_THEMSELVES: Final = ("datetime", "decimal", "uuid")
#: Methods of text, with what they give.
_OF_TEXT: Final[dict[str, Any]] = {
    **dict.fromkeys(("capitalize", "casefold", "format", "join", "lower", "lstrip"), str),
    **dict.fromkeys(("removeprefix", "removesuffix", "replace", "rstrip", "strip"), str),
    **dict.fromkeys(("swapcase", "title", "translate", "upper", "zfill"), str),
    **dict.fromkeys(("rsplit", "split", "splitlines"), list[str]),
    **dict.fromkeys(("count", "find", "index"), int),
    **dict.fromkeys(("endswith", "isalnum", "isalpha", "isdigit", "isspace", "startswith"), bool),
}


class Calls(Objects):
    """A walk that understands calls."""

    def peek(self, node: ast.expr, facts: Facts) -> Value:
        """What an expression gives, for somebody who keeps no hold of it."""
        raise NotImplementedError

    def call(self, node: ast.Call, facts: Facts) -> Value:
        """What a call gives."""
        callee = node.func
        if isinstance(callee, ast.Attribute):
            owner = self.peek(callee.value, facts)
            if isinstance(owner, Tracked):
                return self.method(owner, node, callee.attr, facts)
            if isinstance(owner, Fields):
                return self._dict_method(callee, owner, node, facts)
            if isinstance(owner, Live):
                if is_schema(owner.it):
                    return self._of_schema(owner, callee.attr, node, facts)
                return self._calls(self.names.attribute(owner.it, callee.attr), node, facts)
            self.arguments(node, facts, callee.attr)
            if callee.attr in _CHANGERS:
                self.changes(owner, node, facts)
            kind = _OF_TEXT.get(callee.attr) if type_of(owner) is str else None
            return Plain(IS_NOT, kind) if kind else Plain()
        return self._calls(self.plain(callee, facts), node, facts)

    def _calls(self, callee: Value, node: ast.Call, facts: Facts) -> Value:
        found = callee.it if isinstance(callee, Live) else None
        name = ast.unparse(node.func)
        if found is dict or is_typed_dict(found):
            fields = self.fields(node, facts)
            return Plain(IS_NOT, dict) if fields is None else fields
        named = getattr(found, "__name__", None) if is_a(found, *_FUNCTIONS) else None
        if id(found) in _REACHERS or named in _REACHING_NAMES:
            self.unclear(node, f"calls `{name}`")
        if id(found) in _LOOKERS:
            return self._looks(found, node, facts, name)
        self.arguments(node, facts, name)
        if id(found) in _GIVERS:
            return Plain(IS_NOT, _GIVERS[id(found)])
        return Plain(IS_NOT, _made_by(found)) if is_a(found, type) else Plain()

    def _looks(self, found: Any, node: ast.Call, facts: Facts, name: str) -> Value:
        inside: Any = Never
        for each in (*node.args, *(keyword.value for keyword in node.keywords)):
            value = self.peek(each, facts)
            inside = item_type(type_of(value)) if each in node.args else inside
            if isinstance(value, Tracked):
                blind = id(found) in _BLIND
                harmless = blind or (value.kind == "context" and id(found) in _NAMERS)
                if value.kind == "sometimes" or not (value.kind == "state" or harmless):
                    self.refuse(each, value, f"hands {{}} to `{name}`")
                self.log.reads_all |= value.kind == "state" and not blind
        if found is print:
            return Const(None)
        kind = _LOOKERS[id(found)]
        if kind in (list, set, frozenset) and inside is not None:
            return Plain(IS_NOT, GenericAlias(kind, (inside,)))
        return Plain(IS_NOT, kind)

    def arguments(self, node: ast.Call, facts: Facts, name: str) -> None:
        """Look at what a call hands on."""
        how = f"hands {{}} to `{name}`"
        for each in node.args:
            self.plain(each, facts, how)
        for keyword in node.keywords:
            self.plain(keyword.value, facts, how)

    def _of_schema(self, owner: Live, name: str, node: ast.Call, facts: Facts) -> Value:
        """``BillingState.bind(...)``, ``.delta(...)``, ``.ref(...)``."""
        if name == "bind":
            return self._binds(owner, node, facts)
        if name == "delta" and not node.args:
            return self._delta(owner, node, facts)
        if name == "ref" and len(node.args) == 1 and not node.keywords:
            named = self.plain(node.args[0], facts)
            found = field_of(owner.it, str(named.value)) if isinstance(named, Const) else None
            return Plain() if found is None else Live(found)
        if name == "initial" and not node.args:
            self._delta(owner, node, facts)
            return Plain(IS_NOT, dict)
        self.arguments(node, facts, f"{owner.it.__name__}.{name}")
        return Plain()

    def _delta(self, owner: Live, node: ast.Call, facts: Facts) -> Fields:
        """What a function step returns: values by the names of fields."""
        made = Fields({})
        for each in node.keywords:
            value = self.plain(each.value, facts)
            field = None if each.arg is None else field_of(owner.it, each.arg)
            if field is None:
                made = made.opened(f"`{owner.it.__name__}` has no such field")
            else:
                made = made.with_item(field.key, self.checked(field, value))
        return made

    def _binds(self, owner: Live, node: ast.Call, facts: Facts) -> Value:
        """``BillingState.bind(tool_context)``."""
        given = [*node.args, *(keyword.value for keyword in node.keywords)]
        values = [self.value(each, facts) for each in given]
        if len(values) == 1 and isinstance(values[0], Tracked):
            held = values[0]
            if held.kind in ("context", "state"):
                return Tracked("bound", held.manner, owner.it, owner.it.__name__)
            self.refuse(node, held)
        return self.unclear(node, f"calls `{ast.unparse(node.func)}` with something unknown")

    # --- methods of local dicts ------------------------------------------------------------------

    def _dict_method(
        self, callee: ast.Attribute, owner: Fields, node: ast.Call, facts: Facts
    ) -> Value:
        """``out.update(...)`` and the like."""
        made, found = self._dict_changed(callee.attr, owner, node, facts)
        if isinstance(callee.value, ast.Name):
            now = self.lookup(callee.value.id, facts)
            if now is not owner:  # what stands in the parentheses handed it on
                made = made.opened("it is changed while it is handed on")
            self.bind(callee.value.id, made, facts, node)
        return found

    def _dict_changed(  # noqa: C901, PLR0911, PLR0912  # a row for each
        self, name: str, owner: Fields, node: ast.Call, facts: Facts
    ) -> tuple[Fields, Value]:
        """The dict after a method, and what that gives."""
        match name, node.args, node.keywords:
            case "update", [*given], keywords:
                made = owner
                for each in given:
                    inner = self.fields(each, facts)
                    why = "it is updated with something unknown"
                    made = made.updated(Fields({}, why) if inner is None else inner)
                for each in keywords:
                    value = self.plain(each.value, facts)
                    if each.arg is None:
                        made = made.opened("it is updated with something unknown")
                    else:
                        made = made.with_item(each.arg, _flat(value))
                return made, Const(None)
            case "setdefault", [key, default], []:
                named = self.known_key(self.plain(key, facts))
                value = _flat(self.plain(default, facts))
                if named is None:
                    return owner.opened("a key is computed"), Plain()
                known = owner.items.get(named)
                if owner.open:
                    value = Plain()
                if known is not None:
                    value = known[1] if known[0] else joined(known[1], value)
                return owner.with_item(named, value), Plain(none_of(value))
            case "pop", [key, *rest], []:
                named = self.known_key(self.plain(key, facts))
                for each in rest:
                    self.plain(each, facts)
                if named is None:
                    return owner.opened("a key is computed"), Plain()
                return owner.without(named), Plain()
            case (("get" | "keys" | "values" | "items"), _, _):
                self.arguments(node, facts, name)
                return owner, Plain(UNCLEAR if name == "get" else IS_NOT)
            case "copy", [], []:
                return owner, owner
            case "clear", [], []:
                return Fields({}), Const(None)
            case _:
                self.arguments(node, facts, name)
                return owner.opened(f"it is changed by `{name}`"), Plain()


def _flat(value: Value) -> Value:
    return value.as_plain() if isinstance(value, Fields) else value


def looks_only(value: Any) -> bool:
    """Whether a builtin looks at what it gets and does nothing else with it."""
    return id(value) in _LOOKERS


def _made_by(kind: Any) -> Any:
    """What calling a class gives: an object of just that class, unless it has another idea."""
    if type(kind).__call__ is not type.__call__:
        return None
    usual = kind.__new__ is object.__new__ or kind.__module__ in _OF_THEMSELVES
    return kind if usual else None


def result_of_builtin(function: Any) -> Derived:
    """What a function or a class of Python gives; nothing is known of others."""
    name = getattr(function, "__name__", "")
    if function is getattr(str, name, None) and name in _OF_TEXT:
        return Derived(gives=_OF_TEXT[name], gives_none=False)
    kind = _GIVERS.get(id(function)) or _LOOKERS.get(id(function))
    if kind is None and isinstance(function, type):
        kind = _made_by(function)
    gives = kind is not None or id(function) in _GIVERS or isinstance(function, type)
    return Derived(gives=kind, gives_none=not gives)
