"""What a schema says of one field."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, get_origin

from adk_fluent.ir import UNSET, Scope

if TYPE_CHECKING:
    from collections.abc import Callable

#: Factories that may be called at any time: each gives something empty, and nothing else happens.
_EMPTY: Final = (list, dict, set, tuple, frozenset, str, bytes, int, float, bool)


@dataclass(slots=True, eq=False)
class Spec:
    """A field as it is declared.

    Attributes:
        annotation: The type, as it stands in the annotation, without scope and reducer.
        scope: Where ADK keeps it.
        key: Its key without prefix; the name of the field if empty.
        default: What a reader gets when the key is absent, or `UNSET`.
        default_factory: Makes that value.
        doc: What it is for.
        constraints: Arguments of pydantic's `Field`.
        reduce: Makes one value of two that were written in parallel.
    """

    annotation: Any = None
    scope: Scope = "session"
    key: str = ""
    default: Any = UNSET
    default_factory: Callable[[], Any] | None = None
    doc: str = ""
    constraints: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    reduce: Callable[[Any, Any], Any] | None = None
    _type: Any = UNSET

    @property
    def type(self) -> Any:
        """The type with its constraints."""
        if not self.constraints:
            return self.annotation
        if self._type is UNSET:
            from pydantic import Field  # noqa: PLC0415  # slow to import

            self._type = Annotated[self.annotation, Field(**self.constraints)]
        return self._type

    @property
    def plain_default(self) -> Any:
        """The default, unless a function that somebody wrote makes it; then `UNSET`."""
        factory = self.default_factory
        if factory is None:
            return self.default
        kind = get_origin(factory) or factory  # list of list[str]
        return kind() if any(kind is each for each in _EMPTY) else UNSET


def field(
    *,
    default: Any = UNSET,
    default_factory: Callable[[], Any] | None = None,
    doc: str = "",
    key: str = "",
    gt: Any = None,
    ge: Any = None,
    lt: Any = None,
    le: Any = None,
    multiple_of: Any = None,
    min_length: int | None = None,
    max_length: int | None = None,
    pattern: str | None = None,
    max_digits: int | None = None,
    decimal_places: int | None = None,
    discriminator: str | None = None,
) -> Any:
    """Say more of a field than its type.

    ::

        tier: UserScoped[str] = field(default="free", doc="What the user pays for")

    Args:
        default: What a reader gets when the key is absent; of a list or dict, a copy.
        default_factory: Makes that value, a new one for each reader.
        doc: What the field is for.
        key: The key without its scope prefix, if it is not the name of the field.
        gt: Greater than.
        ge: Greater than or equal to.
        lt: Less than.
        le: Less than or equal to.
        multiple_of: A number of which it is a multiple.
        min_length: Of a text, or how many items at least.
        max_length: Of a text, or how many items at most.
        pattern: A regular expression that a text matches.
        max_digits: Of a Decimal.
        decimal_places: Of a Decimal, at most.
        discriminator: The field that tells the models of a union apart.
    """
    given = {
        "gt": gt,
        "ge": ge,
        "lt": lt,
        "le": le,
        "multiple_of": multiple_of,
        "min_length": min_length,
        "max_length": max_length,
        "pattern": pattern,
        "max_digits": max_digits,
        "decimal_places": decimal_places,
        "discriminator": discriminator,
    }
    constraints = {name: value for name, value in given.items() if value is not None}
    return Spec(
        default=default,
        default_factory=default_factory,
        doc=doc,
        key=key,
        constraints=constraints,
    )
