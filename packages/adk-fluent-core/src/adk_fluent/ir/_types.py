"""What the annotations of a record's fields allow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from adk_fluent.ir._kinds import class_of
from adk_fluent.ir._node import Node
from adk_fluent.ir._record import schema_of

Test = Callable[[Any], bool]
_SCALARS: Final = (str, int, float, bool, bytes, NoneType)


@cache
def hints_of(cls: type) -> dict[str, Any]:
    """The annotations of a record's fields; none where they cannot be resolved at run time."""
    try:
        hints = get_type_hints(cls)
    except NameError:  # another wheel's
        return {}
    return {name: hints[name] for name in schema_of(cls).fields}


@cache
def field_tests(cls: type) -> dict[str, Test]:
    """For each field of a record class, whether a value has its declared type.

    A class of another wheel whose annotations cannot be resolved at run time allows everything.
    """
    return {name: _test(hint) for name, hint in hints_of(cls).items()}


def misfit(name: str, annotation: Any, value: Any) -> str:
    """The sentence about one field; it names the type of what was found, never the value."""
    return f"{name} holds {class_of(value).__name__}, not {annotation}"


def anything(_: Any) -> bool:
    """The test of a field that may hold whatever there is."""
    return True


def is_value(part: Any) -> bool:
    """Whether it is a record that nodes carry."""
    return hasattr(class_of(part), "__record__") and not isinstance(part, Node)


def is_scalar(hint: Any) -> bool:
    """Whether there is nothing in values of this type."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return all(is_scalar(each) for each in get_args(hint))
    return origin is Literal or hint in _SCALARS


def exact_types(hint: Any) -> frozenset[type]:
    """Types of which every value fits; not all there are."""
    if get_origin(hint) in (Union, UnionType):
        return frozenset[type]().union(*map(exact_types, get_args(hint)))
    return frozenset() if get_origin(hint) else frozenset(_classes(hint))


def _test(hint: Any) -> Test:  # noqa: PLR0911  # a row for each form a hint has
    if hint is Any or isinstance(hint, TypeVar):
        return anything
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return lambda v: any(type(v) is type(a) and v == a for a in args)
    if origin in (Union, UnionType):
        return _union_test(args)
    if origin is tuple:
        return _tuple_test(args)
    if origin is Sequence:  # what users may give, and what `record` makes of it
        return _tuple_test((*args, ...))
    if origin in (frozenset, Collection):
        return _each_test(frozenset, _test(args[0]))
    return _instance_test(_classes(hint)) if _classes(hint) else anything


def _classes(hint: Any) -> tuple[type, ...]:
    """The classes of whose instances a hint speaks; an int will do for a float."""
    kind = get_origin(hint) or hint
    if kind is None:
        return (NoneType,)
    if not isinstance(kind, type):
        return ()
    return (int, float) if kind is float else (kind,)


def _instance_test(kinds: tuple[type, ...]) -> Test:
    if int in kinds and bool not in kinds:  # to Python, True is an int
        return lambda v: isinstance(v, kinds) and not isinstance(v, bool)
    return lambda v: isinstance(v, kinds)


def _union_test(args: tuple[Any, ...]) -> Test:
    simple = [each for each in args if each is None or isinstance(each, type)]
    kinds = _instance_test(tuple([kind for each in simple for kind in _classes(each)]))
    others = [_test(each) for each in args if each not in simple]
    if not others:
        return kinds
    return lambda v: kinds(v) or any(test(v) for test in others)


def _tuple_test(args: tuple[Any, ...]) -> Test:
    if len(args) == 2 and args[1] is Ellipsis:
        return _each_test(tuple, _test(args[0]))
    tests = [_test(each) for each in args]
    return lambda v: (
        isinstance(v, tuple)
        and len(_items(v)) == len(tests)
        and all(test(each) for test, each in zip(tests, _items(v), strict=True))
    )


def _each_test(kind: type, item: Test) -> Test:
    return lambda v: isinstance(v, kind) and all(map(item, _items(v)))


def _items(values: Any) -> Any:
    return values
