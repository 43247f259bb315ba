"""The state that crosses: what messages may write, and what answers tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from a2a.utils.errors import InvalidParamsError
from pydantic import TypeAdapter, ValidationError

from adk_fluent.errors import UsageError
from adk_fluent.extend import describe, storage_fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


#: The argument that lists what messages may write.
INPUTS: Final = "inputs="


class Keys:
    """State keys by the names that they have in messages, which are without a scope's prefix.

    Args:
        keys: Keys, typed fields, or a state schema.
        role: The argument they are of, for errors.

    Raises:
        UsageError: They are not state keys, two would have one name, or one that messages may
            write is of all principals.

    Attributes:
        names: Each name, and its key.
        refs: The keys as they were given: typed fields with their defaults.
    """

    def __init__(self, keys: object, role: str) -> None:
        self.names: dict[str, str] = {}
        self._types: dict[str, TypeAdapter[Any]] = {}
        self.refs: tuple[Any, ...] = tuple(_listed(keys, role))
        for each in self.refs:
            key: Any = getattr(each, "key", each)
            if not isinstance(key, str) or not key:
                raise UsageError(f"A2AServer({role}) takes state keys", found=describe(each))
            if role == INPUTS and key.startswith("app:"):
                raise UsageError(
                    f"A2AServer({role}) takes no state of the whole app",
                    found=repr(key),
                    help="one principal would write what all others read: use a key of the session",
                )
            name = key.rpartition(":")[2]
            if self.names.setdefault(name, key) != key:
                raise UsageError(
                    f"two keys of A2AServer({role}) are called {name!r}",
                    found=f"{self.names[name]!r} and {key!r}",
                    help="they cross without the prefix of their scope: leave one out",
                )
            if (kind := getattr(each, "type", None)) is not None:
                self._types[name] = TypeAdapter(kind)

    def taken(self, data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """The state in a data part, by key, and what of it is none.

        Raises:
            InvalidParamsError: A value does not fit its field's type, or cannot be stored.
        """
        rest = {name: data[name] for name in data if name not in self.names}
        state: dict[str, Any] = {}
        for name in data.keys() - rest.keys():
            state[self.names[name]] = self._fitted(name, data[name])
        if storage_fault(state) is not None:
            raise InvalidParamsError("The data has a value that cannot be stored")
        return state, rest

    def _fitted(self, name: str, value: Any) -> Any:
        adapter = self._types.get(name)
        if adapter is None:
            return value
        try:
            return adapter.dump_python(adapter.validate_python(value), mode="json")
        except ValidationError as error:
            says = error.errors(include_url=False, include_context=False, include_input=False)
            raise InvalidParamsError(f"{name!r} does not fit: {says[0]['msg']}") from None


def _listed(keys: object, role: str) -> Iterable[Any]:
    fields: Mapping[str, Any] | None = getattr(keys, "__state_fields__", None)
    if fields is not None:
        return fields.values()
    if isinstance(keys, str) or hasattr(keys, "key"):
        return (keys,)
    try:
        return tuple(cast("Iterable[Any]", keys))
    except TypeError:
        raise UsageError(f"A2AServer({role}) takes state keys", found=describe(keys)) from None
