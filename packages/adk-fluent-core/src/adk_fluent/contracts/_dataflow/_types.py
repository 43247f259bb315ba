"""Whether a value of one type will do where another is expected."""

from __future__ import annotations

import collections.abc
from enum import Enum, IntEnum
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin


class Fit(IntEnum):
    """How well a written type fits a read one."""

    #: No value fits, or whether one does is up to chance.
    NO = 0
    #: Some values fit.
    SOME = 1
    #: Every value fits, or the types say too little.
    YES = 2


_LISTS: Final = (list, tuple, set, frozenset)
_ABSTRACT: Final = {
    collections.abc.Sequence: (list, tuple, str),
    collections.abc.Iterable: (list, tuple, set, frozenset, dict, str),
    collections.abc.Collection: (list, tuple, set, frozenset, dict, str),
    collections.abc.Mapping: (dict,),
    collections.abc.MutableMapping: (dict,),
    collections.abc.MutableSequence: (list,),
    collections.abc.Set: (set, frozenset),
}
#: Modules whose types state keeps as text, so that a text may be one of them.
_AS_TEXT: Final = {"datetime", "decimal", "uuid", "pathlib", "ipaddress", "fractions"}


def fit(written: Any, read: Any) -> Fit:
    """Whether what is written as one type can be read as another; None is any type."""
    if written is read or written is None or read is None:
        return Fit.YES
    try:
        return _fit(written, read)
    except TypeError:  # a type that has no hash
        return _fit.__wrapped__(written, read)


@lru_cache(maxsize=1024)
def _fit(written: Any, read: Any) -> Fit:
    try:
        return _compare(bare(written), bare(read))
    except (TypeError, RecursionError):  # what is no type at all
        return Fit.YES


def bare(kind: Any) -> Any:
    """A type without what is annotated."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return getattr(kind, "__supertype__", kind)  # NewType


def _compare(written: Any, read: Any) -> Fit:  # noqa: PLR0911  # a row for each form of a type
    if written is Any or read in (Any, object) or written == read:
        return Fit.YES
    if isinstance(written, TypeVar | str) or isinstance(read, TypeVar | str):
        return Fit.YES
    if get_origin(written) in (Union, UnionType):
        # None in state is an absent key, which is a matter of its own
        fits = [fit(each, read) for each in get_args(written) if each is not NoneType]
        return _of_all(fits)
    if get_origin(read) in (Union, UnionType):
        return max(fit(written, each) for each in get_args(read))
    if get_origin(written) is Literal:
        return _of_all([_value_fits(each, read) for each in get_args(written)])
    if get_origin(read) is Literal:
        return max(fit(written, type(each)) for each in get_args(read)) and Fit.SOME
    return _classes(written, read)


def _of_all(fits: list[Fit]) -> Fit:
    """How well all of several fit together."""
    if not fits or min(fits) is Fit.YES:
        return Fit.YES
    return Fit.NO if max(fits) is Fit.NO else Fit.SOME


def _value_fits(value: object, read: Any) -> Fit:
    if get_origin(read) is Literal:
        known = any(type(each) is type(value) and each == value for each in get_args(read))
        return Fit.YES if known else Fit.NO
    return fit(type(value), read)


def _classes(written: Any, read: Any) -> Fit:
    one, other = get_origin(written) or written, get_origin(read) or read
    if not isinstance(one, type) or not isinstance(other, type):
        return Fit.YES
    found = _class_fits(one, other)
    if found is not Fit.YES:
        return found
    return _arguments(written, read, one, other)


def _class_fits(one: type[Any], other: type[Any]) -> Fit:  # noqa: PLR0911  # a row for each family of types
    if other in _ABSTRACT:
        return Fit.YES if issubclass(one, _ABSTRACT[other]) or issubclass(one, other) else Fit.NO
    if issubclass(one, bool) and other in (int, float):
        return Fit.NO
    if issubclass(one, other) or (other is float and issubclass(one, int)):
        return Fit.YES
    if other is int and one is float:
        return Fit.SOME
    if one in _LISTS and other in _LISTS:
        return Fit.YES
    if _is_data(one) and _is_data(other):
        return Fit.YES if dict in (one, other) else Fit.SOME
    if _may_be(one, other) or _may_be(other, one):
        return Fit.SOME
    if issubclass(one, other) or issubclass(other, one):
        return Fit.SOME
    return Fit.NO


def _may_be(kept: type[Any], kind: type[Any]) -> bool:
    """Whether state may keep a value of a type as one of another, as schemas write it."""
    if issubclass(kind, Enum):
        return kept is str or any(isinstance(each.value, kept) for each in kind)
    return kept is str and (kind is bytes or kind.__module__.split(".")[0] in _AS_TEXT)


def _is_data(kind: type[Any]) -> bool:
    """Whether state keeps it as a dict."""
    return (
        issubclass(kind, dict)
        or hasattr(kind, "model_fields")
        or hasattr(kind, "__dataclass_fields__")
    )


def _arguments(written: Any, read: Any, one: type, other: type) -> Fit:
    """``list[int]`` and ``list[str]``: the same container of other things."""
    first, second = get_args(written), get_args(read)
    if not first or not second or tuple in (one, other):
        return Fit.YES
    if issubclass(one, dict) != issubclass(other, dict) and len(first) != len(second):
        return Fit.YES
    return min(map(fit, first, second))


def name_of(kind: Any) -> str:
    """A type as its source would say it."""
    kind = bare(kind)
    if kind is NoneType:
        return "None"
    if isinstance(kind, type) and not get_args(kind):
        return kind.__qualname__.rpartition(".<locals>.")[2]
    if get_origin(kind) in (Union, UnionType):
        return " | ".join(name_of(each) for each in get_args(kind))
    return str(kind).replace("typing.", "").replace("NoneType", "None")
