"""What all middlewares here have: options that are checked, a name, and a description."""

from __future__ import annotations

import re
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, dataclass_transform, get_type_hints

from adk_fluent.errors import UsageError
from adk_fluent.protocol import Middleware, MiddlewareDesc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

T = TypeVar("T")
_DEPENDENCY: Final = "dependency"


def dependency(*, default_factory: Callable[[], Any]) -> Any:
    """A field that holds a live object (a clock, a store, a function), which no file can name.

    A reference to a middleware by name leaves it as the prototype has it.
    """
    return field(default_factory=default_factory, metadata={_DEPENDENCY: True}, repr=False)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field, dependency))
def builtin(name: str) -> Callable[[type[T]], type[T]]:
    """Make a class a middleware whose fields are its options, given by keyword and checked.

    Args:
        name: What it is called in references, files and on the command line.
    """

    def make(cls: type[T]) -> type[T]:
        made: Any = dataclass(kw_only=True, eq=False)(cls)
        made.name = name
        return made

    return make


class _Described:
    """The description of the class that it is asked of."""

    def __get__(self, instance: object, owner: type[BuiltIn]) -> MiddlewareDesc:
        return describe(owner)


class BuiltIn(Middleware):
    """A middleware with options."""

    #: What it is called in references, files and on the command line.
    name: ClassVar[str] = ""
    #: Its name, what it does, and the JSON Schema of its options.
    DESC: ClassVar[MiddlewareDesc] = _Described()  # pyright: ignore[reportAssignmentType]  # made when asked

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have.
        """
        from pydantic import ValidationError  # noqa: PLC0415  # slow to import, and ADK has it

        given = {name: getattr(self, name) for name in options_of(type(self)).model_fields}
        try:
            checked = options_of(type(self)).model_validate(given)
        except ValidationError as error:
            raise _wrong(self.name, error) from None
        for name in given:  # lists are copied
            setattr(self, name, getattr(checked, name))


def _wrong(name: str, error: Any) -> UsageError:
    first = error.errors()[0]
    option = str(first["loc"][0]) if first["loc"] else ""
    return UsageError(
        f"{name}({option}=...) cannot have this value",
        found=repr(first["input"])[:200],
        help=f"{first['msg'][:1].lower()}{first['msg'][1:]}",
    )


@cache
def options_of(kind: type[Any]) -> type[BaseModel]:
    """The options of a middleware as a pydantic model; without its live objects."""
    from pydantic import ConfigDict, create_model  # noqa: PLC0415  # see above

    hints = get_type_hints(kind, include_extras=True)
    made: dict[str, Any] = {}
    for each in fields(kind):
        if not each.init or _DEPENDENCY in each.metadata:
            continue
        default = each.default_factory() if each.default_factory is not MISSING else each.default
        made[each.name] = (hints[each.name], ... if default is MISSING else default)
    config = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)
    return create_model(kind.__name__, __config__=config, **made)


@cache
def describe(kind: type[BuiltIn]) -> MiddlewareDesc:
    """The description of a built-in: its name, the first sentence about it, and its options."""
    doc = cleandoc(kind.__doc__ or "")
    schema = options_of(kind).model_json_schema()
    said = arguments(doc)
    for option, shape in schema.get("properties", {}).items():
        shape.pop("title", None)
        if option in said:
            shape["description"] = said[option]
    schema.pop("title", None)
    return MiddlewareDesc(kind.name, summary(doc), kind, schema)


def summary(doc: str) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(doc.partition("\n\n")[0].split())


def arguments(doc: str) -> Mapping[str, str]:
    """What a Google-style docstring says about each argument."""
    _, _, rest = doc.partition("\nArgs:\n")
    block = rest.partition("\n\n")[0]
    found: dict[str, str] = {}
    last = ""
    for line in block.splitlines():
        named = re.fullmatch(r"    (\w+): (.*)", line)
        if named:
            last = named[1]
            found[last] = named[2].strip()
        elif last:
            found[last] += f" {line.strip()}"
    return found
