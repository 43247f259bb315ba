"""State as functions over it see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn

from adk_fluent._copies import copied_containers
from adk_fluent.errors import UsageError
from adk_fluent.ir import is_reserved_key

if TYPE_CHECKING:
    from collections.abc import ItemsView


#: The methods of a dict that change it.
_WRITERS: Final = frozenset({"clear", "pop", "popitem", "setdefault", "update"})


class StateView(Mapping[str, Any]):
    """State, read-only. A key that holds None counts as absent: session services remove none.

    Keys that ADK or adk-fluent keep for themselves are not among those it lists.
    Only ``state[key]`` tells the two apart: it is None, and a KeyError for a key nobody ever wrote.
    It always shows what state is now; ``dict(state)`` keeps what it is.

    Args:
        state: The state.
    """

    __slots__ = ("_state",)

    def __init__(self, state: Mapping[str, Any]) -> None:
        self._state = state

    def __getitem__(self, key: str) -> Any:
        return self._state[key]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default` if it is absent or None."""
        value = self._state.get(key)
        return default if value is None else value

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and self._state.get(key) is not None

    def __iter__(self) -> Iterator[str]:
        return (key for key, _ in self._present())

    def __len__(self) -> int:
        return sum(1 for _ in self._present())

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**dict(self._present()), **other}

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return {**other, **dict(self._present())}

    def __repr__(self) -> str:
        return f"StateView({dict(self._present())!r})"

    def __setitem__(self, key: str, value: Any) -> NoReturn:
        raise _read_only(f"state[{key!r}] = ...", f"return {{{key!r}: ...}} from the function")

    def __delitem__(self, key: str) -> NoReturn:
        raise _read_only(f"del state[{key!r}]", f"return {{{key!r}: None}} from the function")

    if not TYPE_CHECKING:  # a type checker knows that a Mapping has none of these

        def __getattr__(self, name: str) -> Any:
            if name in _WRITERS:
                raise _read_only(f"state.{name}", "return the keys and their values in a dict")
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _present(self) -> Iterator[tuple[str, Any]]:
        items: ItemsView[str, Any] = self._state.items()
        return (
            (key, value)
            for key, value in items
            if value is not None and not (key[:1] == "_" and is_reserved_key(key))
        )


class TapView(StateView):
    """State as a tap sees it: lists and dicts are copies, so that changing them changes nothing."""

    __slots__ = ()

    def __getitem__(self, key: str) -> Any:
        return copied_containers(self._state[key])

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or `default` if it is absent or None."""
        value = super().get(key)
        return default if value is None else copied_containers(value)

    def _present(self) -> Iterator[tuple[str, Any]]:
        return ((key, copied_containers(value)) for key, value in super()._present())


def _read_only(found: str, help: str) -> UsageError:
    return UsageError("a function over state only reads it", found=found, help=help)
