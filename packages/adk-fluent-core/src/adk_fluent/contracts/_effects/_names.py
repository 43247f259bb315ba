"""Names of a function that something outside it gives a meaning: constants, schemas, builtins."""

from __future__ import annotations

import builtins
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any, Final, cast

from adk_fluent.contracts._effects._values import Const, Live, Plain, Value
from adk_fluent.ir import UNSET

_CONSTANTS: Final = (str, int, float, bool, bytes, complex, type(None))
#: Stands for what a name does not mean.
NOTHING: Final[Any] = object()

#: A name or an attribute, and what it meant: whose (None: of the function), called what, and what.
Use = tuple[Any, str, Any]


class Names:
    """What the names of a function mean that it does not bind itself.

    Attributes:
        used: What was asked, so that another function of the same code can be told apart.
    """

    __slots__ = ("_function", "used")

    def __init__(self, function: FunctionType) -> None:
        self._function = function
        self.used: list[Use] = []

    def value(self, name: str) -> Value:
        """What a name means."""
        found = outer(self._function, name)
        self.used.append((None, name, found))
        return as_value(found)

    def attribute(self, owner: Any, name: str) -> Value:
        """What an attribute of an object means, if no code of the user's is needed to tell."""
        found = attribute(owner, name)
        self.used.append((owner, name, found))
        return as_value(found)

    def annotation(self, found: Any) -> Any:
        """The class that an annotation names; `NOTHING` if it names none that is known."""
        if not isinstance(found, str):
            return found
        path = found.strip("'\"").split(".")
        value = self.value(path[0])
        for name in path[1:]:
            value = self.attribute(value.it, name) if isinstance(value, Live) else Plain()
        return value.it if isinstance(value, Live) else NOTHING


def means_the_same(function: FunctionType, used: list[Use]) -> bool:
    """Whether the names of a function mean what they meant in another of the same code."""
    for owner, name, found in used:
        now = outer(function, name) if owner is None else attribute(owner, name)
        if now is not found and not (type(now) is type(found) is str and now == found):
            return False
    return True


def is_a(value: Any, *kinds: type) -> bool:
    """Whether a value is of some classes; unlike `isinstance` it asks the value nothing."""
    return issubclass(_class(value), kinds)


def as_value(found: Any) -> Value:
    """An object as a value."""
    if found is NOTHING:
        return Plain()
    if type(found) in _CONSTANTS:
        return Const(found, outside=True)
    if is_a(found, Enum) and is_a(found, str):
        return Const(str.__str__(found), outside=True)
    return Live(found)


def outer(function: FunctionType, name: str) -> Any:
    """What a name means in a function that does not bind it."""
    code = function.__code__
    if name in code.co_freevars:
        cell = (function.__closure__ or ())[code.co_freevars.index(name)]
        try:
            return cell.cell_contents
        except ValueError:  # it is not bound yet
            return NOTHING
    known = function.__globals__
    return known[name] if name in known else getattr(builtins, name, NOTHING)


def attribute(owner: Any, name: str) -> Any:
    """An attribute, where asking for it runs no code but that of a state schema."""
    if is_a(owner, ModuleType):
        return ModuleType.__getattribute__(owner, "__dict__").get(name, NOTHING)
    if is_a(owner, Enum):
        return getattr(owner, name) if name in ("value", "name") else NOTHING
    if is_schema(owner):
        return _of_schema(owner, name)
    if is_a(owner, type):
        found = _member(owner, name)
        return NOTHING if _member(_class(found), "__get__") is not NOTHING else found
    if name == "key" and is_ref(owner):
        return owner.key
    return NOTHING


def _class(value: Any) -> type[Any]:
    return cast("type[Any]", type(value))


def _member(kind: type, name: str) -> Any:
    """What a class or one above it holds under a name; no code of a metaclass is run."""
    for base in type.__getattribute__(kind, "__mro__"):
        held = type.__getattribute__(base, "__dict__")
        if name in held:
            return held[name]
    return NOTHING


def is_schema(value: Any) -> bool:
    """Whether a value is a state schema; see `protocol.StateRules`."""
    fields = "__state_fields__"
    return is_a(value, type) and any(
        _member(kind, fields) is not NOTHING for kind in (value, _class(value))
    )


def is_typed_dict(value: Any) -> bool:
    """Whether a value is a `typing.TypedDict`."""
    return is_a(value, type) and type(value).__name__ == "_TypedDictMeta"


def is_ref(value: Any) -> bool:
    """Whether a value is a field of a state schema, or a key that is written as one."""
    named = all(_member(_class(value), name) is not NOTHING for name in ("key", "scope"))
    return named and isinstance(getattr(value, "key", None), str)


def field_of(schema: Any, name: str) -> Any:
    """The field of a state schema that an attribute stands for; None if it stands for none."""
    found = _of_schema(schema, name)
    return found if is_ref(found) else None


def _of_schema(schema: Any, name: str) -> Any:
    try:
        return getattr(schema, name, NOTHING)
    except Exception:  # noqa: BLE001  # a schema that is broken says so when it is used
        return NOTHING


def needs_value(field: Any) -> bool:
    """Whether reading a field fails where it has no value; its default may be made anew by code."""
    required = getattr(field, "required", None)
    return required if isinstance(required, bool) else field.default is UNSET
