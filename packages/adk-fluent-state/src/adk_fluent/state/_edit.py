"""Changing a value in place, and writing it back."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, Generic, cast

from adk_fluent.errors import UsageError
from adk_fluent.extend import describe
from adk_fluent.state._errors import StateConflictError
from adk_fluent.state._ref import T

if TYPE_CHECKING:
    from types import TracebackType

    from adk_fluent.state._ref import StateFieldRef

_UNCHANGEABLE: Final = frozenset(
    {str, int, float, bool, bytes, tuple, frozenset, type(None)},
)


class Edit(Generic[T]):
    """``with state.edit("tags") as tags: ...``; see `StateSchema.edit`."""

    __slots__ = ("_before", "_bound", "_ref", "_value")

    _before: Any
    _value: T

    def __init__(self, bound: Any, ref: StateFieldRef[T]) -> None:
        self._bound = bound
        self._ref = ref

    def __enter__(self) -> T:
        ref = self._ref
        self._before = self._stored()
        if self._before is None and ref.required:
            raise ref.missing(self._bound.__state__)
        stored = ref.stored_default() if self._before is None else self._before
        value: T = cast("T", None) if stored is None else ref.decode(stored)
        if type(value) in _UNCHANGEABLE:
            raise UsageError(
                f"{ref!r} holds nothing that can be changed in place",
                found=describe(value),
                help=f"assign a new value: state.{ref.name} = ...",
            )
        self._before = deepcopy(self._before)
        self._value = value
        return value

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            return
        new = self._ref.encode(self._value)
        now = self._stored()
        if now != self._before:
            raise StateConflictError(
                f"{self._ref!r} was written by somebody else while it was edited",
                key=self._ref.key,
                help="do not wait for other work inside of `with state.edit(...)`",
            )
        if new != self._before:
            self._ref.__set__(self._bound, self._value)

    def _stored(self) -> Any:
        try:
            return self._bound.__state__[self._ref.key]
        except KeyError:
            return None
