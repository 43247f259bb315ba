"""Whether a value of one type will do where another is expected."""

from __future__ import annotations

import collections.abc
import operator
from decimal import Decimal
from enum import Enum, IntEnum
from functools import lru_cache
from types import GenericAlias, NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    Never,
    TypeVar,
    Union,
    get_args,
    get_origin,
)

if TYPE_CHECKING:
    from adk_fluent.ir import Ref


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
#: Containers whose values are read as one and the same.
_SAME_AS: Final = {
    list: list,
    dict: dict,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.MutableSequence: list,
    collections.abc.Mapping: dict,
    collections.abc.MutableMapping: dict,
}
#: Functions that make one value of two of a type.
_REDUCERS: Final = (
    *(getattr(operator, each) for each in ("add", "concat", "mul", "and_", "or_")),
    *(getattr(operator, each) for each in ("iadd", "iconcat", "iand", "ior")),
    *(max, min),
)
#: How a class tells pydantic how to read it.
_OWN_SCHEMA: Final = "__get_pydantic_core_schema__"
#: What pydantic calls before it looks at a value, so that any value may do.
_BEFORE: Final = ("BeforeValidator", "PlainValidator", "WrapValidator")
#: Modules whose types state keeps as text, so that a text may be one of them.
_AS_TEXT: Final = {"datetime", "decimal", "uuid", "pathlib", "ipaddress", "fractions"}
_NUMBERS: Final = (bool, int, float)
#: What is read of JSON's numbers, too.
_FROM_NUMBERS: Final = (Decimal, complex)


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
        found = _compare(bare(written), bare(read))
        if found is Fit.NO and (_is_made_by_code(read) or _is_made_by_code(written)):
            return Fit.SOME
    except (TypeError, RecursionError):  # what is no type at all
        return Fit.YES
    return found


def is_certain(written: Any, read: Any) -> bool:
    """Whether the types alone say that every value of the one can be read as the other.

    Types that `fit` says nothing against may still be unlike in what no class tells: in items of
    no type, in a limit, in fields of a model.
    """
    try:
        # None in state is an absent key, which is a matter of its own; in a list it is an item
        return all(_is_certain(each, read) for each in _members(written) if each is not NoneType)
    except (TypeError, RecursionError):  # what is no type at all
        return False


def _members(kind: Any) -> tuple[Any, ...]:
    """The types that a value may be of."""
    return get_args(bare(kind)) if get_origin(bare(kind)) in (Union, UnionType) else (kind,)


def _is_certain(written: Any, read: Any) -> bool:  # noqa: PLR0911  # a row for each form of a type
    if read is None or read in (Any, object) or written is Never or _is_same(written, read):
        return True
    if _has_limits(read):
        return False
    written, read = bare(written), bare(read)
    if written == read:
        return written is not None
    if get_origin(written) in (Union, UnionType):
        return all(_is_certain(each, read) for each in get_args(written))
    if get_origin(read) in (Union, UnionType):
        return any(_is_certain(written, each) for each in get_args(read))
    if get_origin(written) is Literal:
        return all(_value_is_certain(each, read) for each in get_args(written))
    if (written, read) == (int, float):
        return True
    one, other = get_origin(written) or written, get_origin(read) or read
    if other in _SAME_AS:
        other = _SAME_AS[other]
    if one is not other or one not in _SAME_AS.values():
        return False
    inside, wanted = get_args(written), get_args(read)
    return not wanted or (len(inside) == len(wanted) and all(map(_is_certain, inside, wanted)))


def _value_is_certain(value: object, read: Any) -> bool:
    if get_origin(read) is Literal:
        return _value_fits(value, read) is Fit.YES
    return _is_certain(type(value), read)


def _is_same(one: Any, other: Any) -> bool:
    """Whether two types are the same; pydantic's ``Field(...)`` is equal to itself only."""
    if one == other:
        return True
    if get_origin(one) is not Annotated or get_origin(other) is not Annotated:
        return False
    ones, others = get_args(one), get_args(other)
    return ones[0] == others[0] and list(map(repr, ones[1:])) == list(map(repr, others[1:]))


def _has_limits(kind: Any) -> bool:
    """Whether an annotation says more of the values than the class does."""
    return get_origin(kind) is Annotated and any(map(_is_checked, get_args(kind)[1:]))


def _is_checked(extra: object) -> bool:
    """Whether pydantic does something with what is annotated."""
    modules = {each.__module__.partition(".")[0] for each in type(extra).__mro__}
    return bool(modules & {"annotated_types", "pydantic"}) or hasattr(extra, _OWN_SCHEMA)


def keeps(reducer: Ref, kind: Any) -> bool:
    """Whether a reducer surely makes one value of two of a type."""
    function = getattr(reducer.value, "function", reducer.value)  # what a layer's reducer calls
    return any(function is each for each in _REDUCERS) and not _has_limits(kind)


def gives_none(kind: Any) -> bool:
    """Whether a value of a type may be None, which counts as absent."""
    kind = bare(kind)
    if get_origin(kind) in (Union, UnionType):
        return any(map(gives_none, get_args(kind)))
    return kind is NoneType or (get_origin(kind) is Literal and None in get_args(kind))


def is_container(kind: Any) -> bool:
    """Whether a value of a type may be a list, a dict or a set."""
    whole = [get_origin(bare(each)) or bare(each) for each in _members(kind)]
    return any(each in _SAME_AS or each in (None, Any, object) for each in whole)


def item_type(kind: Any) -> Any:
    """The type of the items of a list; None where it is not known."""
    inside = get_args(bare(kind))
    whole = get_origin(bare(kind))
    if whole is tuple:
        return inside[0] if len(inside) == 2 and inside[1] is Ellipsis else None
    return inside[0] if len(inside) == 1 and whole is not Literal else None


def bare(kind: Any) -> Any:
    """A type without what is annotated."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return getattr(kind, "__supertype__", kind)  # NewType


def _is_made_by_code(kind: Any) -> bool:
    """Whether a type has code of its own that makes values of it, of whatever that takes."""
    if get_origin(kind) is Annotated:
        return any(type(each).__name__ in _BEFORE for each in get_args(kind)[1:])
    kind = get_origin(kind) or kind
    if not isinstance(kind, type):
        return False
    own = getattr(kind, _OWN_SCHEMA, None)
    if own is not None and own.__module__ != "pydantic.main":  # where models have theirs from
        return True
    validators = getattr(getattr(kind, "__pydantic_decorators__", None), "model_validators", {})
    return getattr(kind, "__pydantic_root_model__", False) or any(
        each.info.mode != "after" for each in validators.values()
    )


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
        one_may = [
            _number_of(written, each) or fit(written, type(each)) is not Fit.NO
            for each in get_args(read)
        ]
        return Fit.SOME if any(one_may) else Fit.NO
    return _classes(written, read)


def _of_all(fits: list[Fit]) -> Fit:
    """How well all of several fit together."""
    if not fits or min(fits) is Fit.YES:
        return Fit.YES
    return Fit.NO if max(fits) is Fit.NO else Fit.SOME


def _value_fits(value: object, read: Any) -> Fit:
    if get_origin(read) is Literal:
        equal = [each for each in get_args(read) if each == value]
        if any(type(each) is type(value) for each in equal):
            return Fit.YES
        return Fit.SOME if equal else Fit.NO  # True is 1 to pydantic
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
    if (other is int and one is float) or (other in _FROM_NUMBERS and one in (int, float)):
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
        values = [each.value for each in kind]
        return kept is str or any(
            isinstance(each, kept) or _number_of(kept, each) for each in values
        )
    if hasattr(kind, "_fields"):  # a named tuple
        return kept in _LISTS or kept is dict
    return kept is str and (kind in (bytes, complex) or kind.__module__.split(".")[0] in _AS_TEXT)


def _number_of(kind: Any, value: object) -> bool:
    """Whether a number of a type may stand for a number: pydantic reads 1.0 and True as 1."""
    return kind in _NUMBERS and isinstance(value, _NUMBERS)


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
    if Never in get_args(kind):  # it is empty
        return name_of(get_origin(kind))
    if isinstance(kind, GenericAlias):
        inside = ", ".join("..." if each is Ellipsis else name_of(each) for each in get_args(kind))
        return f"{name_of(get_origin(kind))}[{inside}]"
    return str(kind).replace("typing.", "").replace("NoneType", "None")
