"""From a function to what it does to state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, get_type_hints
from weakref import WeakKeyDictionary

from adk_fluent.contracts._effects._derived import NOTHING as TOUCHES_NOTHING
from adk_fluent.contracts._effects._derived import Derived, unknown
from adk_fluent.contracts._effects._facts import Facts
from adk_fluent.contracts._effects._log import Log
from adk_fluent.contracts._effects._machine import Unclear
from adk_fluent.contracts._effects._names import (
    NOTHING,
    Names,
    Use,
    as_value,
    is_schema,
    is_typed_dict,
    means_the_same,
)
from adk_fluent.contracts._effects._scope import Scope, parameters
from adk_fluent.contracts._effects._statements import Statements
from adk_fluent.contracts._effects._values import Plain, Tracked, Value
from adk_fluent.ir._source import tree_of

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping, Sequence
    from types import CodeType, FunctionType

#: What a function is called with: ``step``, ``look`` (a test, a tap, a payload) and ``instruction``
#: get state or a context first, ``tool`` and ``callback`` get a context by name.
Role = Literal["step", "look", "instruction", "tool", "callback"]

#: Parameters that ADK gives a context to.
_NAMED: Final = {"tool": ("tool_context",), "callback": ("callback_context", "tool_context")}
#: Classes of such parameters, wherever in ADK they are.
_CLASSES: Final = ("CallbackContext", "Context", "ReadonlyContext", "ToolContext")

#: What was found for code: the role, the values that were bound, the uses of names, the finding.
_Known = tuple[Role, tuple[Any, ...], list[Use], Derived]
_known: WeakKeyDictionary[CodeType, list[_Known]] = WeakKeyDictionary()
#: Findings for one code at most, when its names mean something else each time.
_KEPT: Final = 64


def analysed(
    function: FunctionType,
    role: Role,
    bound: Sequence[Any] = (),
    named: Mapping[str, Any] | None = None,
) -> Derived:
    """What a function does to state.

    Args:
        function: The function.
        role: What it is called with.
        bound: What its first parameters get: the object of a method, arguments of a partial.
        named: What it gets by name from a partial.
    """
    code = function.__code__
    fixed = (*bound, *(named or {}), *(named or {}).values())
    rows = _known.setdefault(code, [])
    for known_role, known_fixed, used, derived in rows:
        if known_role == role and _same(known_fixed, fixed) and means_the_same(function, used):
            return derived
    names = Names(function)
    derived = _looked_at(function, role, bound, named or {}, names)
    if len(rows) >= _KEPT:
        rows.clear()
    rows.append((role, fixed, names.used, derived))
    return derived


def _same(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
    return len(one) == len(two) and all(a is b for a, b in zip(one, two, strict=True))


def _looked_at(
    function: FunctionType,
    role: Role,
    bound: Sequence[Any],
    named: Mapping[str, Any],
    names: Names,
) -> Derived:
    log = Log()
    try:
        tree = tree_of(function)
        if tree is None:
            return unknown("its source is not there")
        given = _parameters(function, tree.args, role, names)
        if role in ("tool", "callback") and not any(isinstance(v, Tracked) for v in given.values()):
            return TOUCHES_NOTHING
        _bind(given, tree.args, bound, named, role)
        walk = Statements(names, Scope(tree), log, merges=role == "step")
        facts = Facts()
        for name, value in given.items():
            walk.bind(name, value, facts, tree)
        if role == "step":
            log.returned |= _types_of(function)
        walk.run(tree, facts)
    except Unclear as unclear:
        return unknown(str(unclear), log.reads)
    except RecursionError:
        return unknown("it is nested too deeply to be looked through")
    return log.derived()


def _parameters(
    function: FunctionType, args: ast.arguments, role: Role, names: Names
) -> dict[str, Value]:
    """What each parameter is by its name and annotation."""
    given: dict[str, Value] = {name: Plain() for name in parameters(args)}
    if role not in ("tool", "callback"):
        return given
    annotations = function.__annotations__
    for name in given:
        found = names.annotation(annotations[name]) if name in annotations else NOTHING
        if name in _NAMED[role] or _is_context(found) or _names_context(annotations.get(name)):
            given[name] = Tracked("context", "adk", name=name)
        elif is_schema(found):
            given[name] = Tracked("bound", "adk", found, name)
    if role == "callback" and args.kwarg is not None:
        given[args.kwarg.arg] = Tracked("arguments", name=args.kwarg.arg)
    return given


def _is_context(found: Any) -> bool:
    if isinstance(found, type):
        return found.__name__ in _CLASSES and found.__module__.startswith("google.adk.")
    parts = getattr(found, "__args__", ())
    return isinstance(parts, tuple) and any(_is_context(each) for each in parts)  # pyright: ignore[reportUnknownVariableType]


def _names_context(annotation: Any) -> bool:
    """Whether an annotation that cannot be resolved looks like a context's."""
    if not isinstance(annotation, str):
        return False
    words = annotation.replace("|", " ").replace("[", " ").replace("]", " ").split()
    return any(word.strip("'\"").rpartition(".")[2] in _CLASSES for word in words)


def _bind(
    given: dict[str, Value],
    args: ast.arguments,
    bound: Sequence[Any],
    named: Mapping[str, Any],
    role: Role,
) -> None:
    """Give parameters what a method or a partial binds, and the next one state.

    Raises:
        Unclear: There is no next one.
    """
    places = [each.arg for each in (*args.posonlyargs, *args.args)]
    for name, value in zip(places, bound, strict=False):
        given[name] = _bound_value(value)
    for name, value in named.items():
        if name in given:
            given[name] = _bound_value(value)
    if role in ("tool", "callback"):
        return
    if len(bound) >= len(places) or places[len(bound)] in named:
        raise Unclear("it takes state in a way that is not understood")
    first = places[len(bound)]
    state = Tracked("state", "view", name=first)
    given[first] = Tracked("context", "frozen", name=first) if role == "instruction" else state


def _bound_value(value: Any) -> Value:
    return as_value(value) if isinstance(value, str) else Plain()


def _types_of(function: FunctionType) -> dict[str, Any]:
    """The types of keys that the function says it returns, by a `typing.TypedDict`."""
    if "return" not in function.__annotations__:
        return {}
    found = Names(function).annotation(function.__annotations__["return"])
    if not is_typed_dict(found):
        return {}
    try:
        return get_type_hints(found)
    except (NameError, TypeError, AttributeError):  # what only a type checker can resolve
        return {}
