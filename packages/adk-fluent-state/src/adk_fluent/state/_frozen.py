"""Lists, dicts and sets as reads of state return them: a change in place is refused, not lost.

They are equal to ordinary ones and pass for them; copies, slices, ``+`` and ``|`` give such.
``state.tags += ["x"]`` works: Python assigns the result.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn, cast

from adk_fluent.errors import UsageError

_ATOMS: Final = frozenset({str, int, float, bool, bytes, type(None)})


class ReadList(list[Any]):
    """A list that nobody changes."""

    __slots__ = ()

    def __iadd__(self, other: Any) -> Any:
        return [*self, *other]

    def __imul__(self, times: Any) -> Any:
        return list(self) * times

    def __reduce__(self) -> Any:
        return (list, (list(self),))


class ReadDict(dict[Any, Any]):
    """A dict that nobody changes."""

    __slots__ = ()

    def __ior__(self, other: Any) -> Any:
        return {**self, **dict(other)}

    def __reduce__(self) -> Any:
        return (dict, (dict(self),))


class ReadSet(set[Any]):
    """A set that nobody changes."""

    __slots__ = ()
    __hash__ = None  # as of every set

    def __ior__(self, other: Any) -> Any:
        return set(self) | other

    def __iand__(self, other: Any) -> Any:
        return set(self) & other

    def __isub__(self, other: Any) -> Any:
        return set(self) - other

    def __ixor__(self, other: Any) -> Any:
        return set(self) ^ other

    def __repr__(self) -> str:
        return repr(set(self))

    def copy(self) -> set[Any]:
        """An ordinary set with the same."""
        return set(self)

    def __reduce__(self) -> Any:
        return (set, (set(self),))


def _refusal(kind: type, name: str) -> Any:
    """A method that says what to do instead of changing a value of this type in place."""
    called = name if name.startswith("_") else f".{name}(...)"

    def refuse(*_args: object, **_options: object) -> NoReturn:
        raise UsageError(
            f"a {kind.__name__} read from state cannot be changed: the change would be lost",
            found=called,
            help='with state.edit("name") as value: ... writes it back; '
            f"{kind.__name__}(value) is a copy of your own",
        )

    refuse.__name__ = name
    return refuse


for _kind, _read, _names in (
    (list, ReadList, "append clear extend insert pop remove reverse sort __setitem__ __delitem__"),
    (dict, ReadDict, "clear pop popitem setdefault update __setitem__ __delitem__"),
    (
        set,
        ReadSet,
        (
            "add clear difference_update discard intersection_update pop remove "
            "symmetric_difference_update update"
        ),
    ),
):
    for _name in _names.split():
        setattr(_read, _name, _refusal(_kind, _name))


def frozen(value: Any, *, deep: bool) -> Any:
    """A value whose lists, dicts and sets refuse to be changed in place.

    Args:
        value: Nobody else has it.
        deep: Whether what is in it may hold such, too.
    """
    kind = cast("type[Any]", type(value))
    if kind is list:
        return ReadList(_each(value) if deep else value)
    if kind is dict:
        return ReadDict(zip(value, _each(value.values()), strict=True) if deep else value)
    if kind is set:
        return ReadSet(value)
    if kind is tuple and deep:
        return tuple(_each(value))
    return value


def type_of(value: object) -> type[Any]:
    """The type of a value for people: what is read from state is a list, dict or set."""
    kind = type(value)
    return cast("type[Any]", kind.__base__) if kind in (ReadList, ReadDict, ReadSet) else kind


def _each(values: Any) -> list[Any]:
    return [each if type(each) in _ATOMS else frozen(each, deep=True) for each in values]
