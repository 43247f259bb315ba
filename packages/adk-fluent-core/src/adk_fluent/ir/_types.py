"""What the annotations of a record's fields allow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from adk_fluent.ir._kinds import class_of
from adk_fluent.ir._node import Node
from adk_fluent.ir._record import schema_of

Test = Callable[[Any], bool]


@cache
def field_tests(cls: type) -> dict[str, Test]:
    """For each field of a record class, whether a value has its declared type.

    A class of another wheel whose annotations cannot be resolved at run time allows everything.
    """
    try:
        hints = get_type_hints(cls)
    except NameError:
        return {}
    return {name: _test(hints[name]) for name in schema_of(cls).fields}


def misfits(record: Any) -> list[str]:
    """What is wrong with the types of a record's own fields, a line each."""
    cls = class_of(record)
    fields = schema_of(cls).fields
    found: list[str] = []
    for name, test in field_tests(cls).items():
        value = getattr(record, name)
        if value is not fields[name].default and not test(value):
            found.append(misfit(name, fields[name].annotation, value))
    return found


def misfit(name: str, annotation: Any, value: Any) -> str:
    """The sentence about one field; it names the type of what was found, never the value."""
    return f"{name} holds {class_of(value).__name__}, not {annotation}"


def _test(hint: Any) -> Test:  # noqa: PLR0911  # a row for each form a hint has
    if hint is Any or isinstance(hint, TypeVar):
        return _anything
    if hint is None:
        hint = NoneType
    if hint is int:
        return lambda v: isinstance(v, int) and not isinstance(v, bool)
    if hint is float:
        return lambda v: isinstance(v, int | float) and not isinstance(v, bool)
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        return lambda v: any(type(v) is type(a) and v == a for a in args)
    if origin in (Union, UnionType):
        tests = [_test(a) for a in args]
        return lambda v: any(test(v) for test in tests)
    if origin is tuple:
        return _tuple_test(args)
    if origin is Sequence:  # what users may give, and what `record` makes of it
        return _tuple_test((*args, ...))
    if origin in (frozenset, Collection):
        item = _test(args[0])
        return lambda v: isinstance(v, frozenset) and all(map(item, _items(v)))
    kind = origin or hint
    return (lambda v: isinstance(v, kind)) if isinstance(kind, type) else _anything


def _tuple_test(args: tuple[Any, ...]) -> Test:
    if len(args) == 2 and args[1] is Ellipsis:
        item = _test(args[0])
        return lambda v: isinstance(v, tuple) and all(map(item, _items(v)))
    tests = [_test(a) for a in args]
    return lambda v: (
        isinstance(v, tuple)
        and len(_items(v)) == len(tests)
        and all(test(each) for test, each in zip(tests, _items(v), strict=True))
    )


def _items(values: Any) -> Any:
    return values


def _anything(_: Any) -> bool:
    return True


# --- what is in a value --------------------------------------------------------------------------

#: Fields that hold what a user gave for others: types, live objects, JSON. Rules look no further.
OPEN: Final = frozenset(
    {
        ("ExecutionConfig", "custom_metadata"),
        ("ExecutionConfig", "middlewares"),
        ("Ref", "value"),
        ("StateFieldRef", "default"),
        ("StateFieldRef", "type"),
        ("TelemetryConfig", "custom_exporters"),
    }
)


def parts(value: Any) -> Iterator[Any]:
    """A value and what is in it, down to where only users know what it is."""
    todo = [value]
    while todo:
        part = todo.pop()
        yield part
        if isinstance(part, tuple | frozenset):
            todo.extend(cast("Iterable[Any]", part))
        elif is_value(part):
            kind = class_of(part).__name__
            names = part.__record__.fields
            todo.extend(getattr(part, name) for name in names if (kind, name) not in OPEN)


def is_value(part: Any) -> bool:
    """Whether it is a record that nodes carry."""
    return hasattr(class_of(part), "__record__") and not isinstance(part, Node)


def records(value: Any) -> Iterator[Any]:
    for part in parts(value):
        if is_value(part):
            yield part
