"""Making one value of what parallel branches write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from adk_fluent.errors import StateTypeError
from adk_fluent.extend import describe
from adk_fluent.state._errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable


class Reduce:
    """Let a field's values from parallel branches be merged: ``Annotated[list[str], Reduce(add)]``.

    Branches of a FanOut and items of a map each write a value of their own, from the state they
    began with. They are merged in the order in which the branches are declared, whichever is done
    first. One writer alone just writes.

    Args:
        function: Makes one value of two, such as `operator.add`; it need not care about order.

    Raises:
        SchemaError: It cannot be called with two arguments.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[[Any, Any], Any]) -> None:
        if not takes(function, None, None):
            raise SchemaError(
                "Reduce(...) takes a function of two values",
                found=describe(function),
                help="such as operator.add for lists, or lambda one, other: one | other",
            )
        self.function: Callable[[Any, Any], Any] = function

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reduce) and self.function == other.function

    def __hash__(self) -> int:
        return hash(self.function)

    def __repr__(self) -> str:
        return f"Reduce({describe(self.function)})"


class Field(Protocol):
    """What a reducer needs of its field: a `StateFieldRef`, which makes its reducer itself."""

    @property
    def owner(self) -> type[Any]:
        """The schema that declares it."""
        ...

    @property
    def name(self) -> str:
        """The name of the attribute."""
        ...

    @property
    def key(self) -> str:
        """The full key."""
        ...

    def decode(self, stored: object) -> Any:
        """What a stored value stands for."""
        ...

    def encode(self, value: Any, where: str = "") -> Any:
        """A value as it is stored."""
        ...


class Reducer:
    """A field's reducer over values as they are stored; None, which is absent, adds nothing.

    Attributes:
        field: The field.
        function: What merges the values themselves.
    """

    __slots__ = ("__name__", "field", "function")

    def __init__(self, field: Field, function: Callable[[Any, Any], Any]) -> None:
        self.field: Field = field
        self.function: Callable[[Any, Any], Any] = function
        called = getattr(function, "__qualname__", type(function).__name__)
        self.__name__: str = f"{field.owner.__name__}.{field.name} by {called}"

    def __call__(self, one: Any, other: Any) -> Any:
        """Both as one stored value.

        Raises:
            StateTypeError: One is no value of the field's type, or what comes out is none.
        """
        if one is None or other is None:
            return other if one is None else one
        merged = self.function(self.field.decode(one), self.field.decode(other))
        if merged is None:
            raise StateTypeError(
                f"the reducer of {self.field!r} returned None",
                key=self.field.key,
                help="return the merged value, also if it changes one of the two in place",
            )
        return self.field.encode(merged, "its reducer")

    def __eq__(self, other: object) -> bool:
        """The same function for fields that are equal, whichever schemas declare them."""
        if not isinstance(other, Reducer):
            return NotImplemented
        return self.field == other.field and self.function == other.function

    def __hash__(self) -> int:
        return hash((self.field, self.function))

    def __repr__(self) -> str:
        return f"<Reducer {self.__name__}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (getattr, (self.field, "reducer"))


def takes(function: Any, *arguments: None) -> bool:
    """Whether it can be called with so many arguments, as far as it says."""
    from inspect import signature  # noqa: PLC0415  # slow to import

    try:
        signature(function).bind(*arguments)
    except TypeError:  # also if it cannot be called
        return False
    except ValueError:  # built in, without a signature: max
        return True
    return True
