"""How values are stored: as JSON that every session service keeps, and read as what they were.

Written values are checked as Python values (strict: ``"5"`` is no int, True is none either), and
stored as JSON. Stored values are checked as JSON, in which a date is text and a set a list. A value
that would come back as another one is refused when it is written.
"""

from __future__ import annotations

import builtins
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

from adk_fluent.extend import storage_fault
from adk_fluent.state._errors import SchemaError
from adk_fluent.state._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import TypeAdapter, ValidationError

#: Types whose values are stored as they are.
SCALARS: Final = frozenset({str, int, float, bool})
_SHOWN: Final = 3  # faults of one value in an error

#: Kinds of pydantic's core schemas whose values always come back as they were.
_FAITHFUL: Final = frozenset(
    (
        *("str", "int", "float", "bool", "none", "nullable", "bytes", "uuid", "decimal"),
        *("date", "time", "datetime", "timedelta", "enum", "literal"),
        *("list", "tuple", "set", "frozenset", "dict"),
        *("default", "definitions", "definition-ref"),
    )
)
_CONTAINERS: Final = frozenset({"list", "tuple", "set", "frozenset", "dict"})
_KEYS: Final = frozenset(
    {"str", "int", "float", "bool", "uuid", "decimal", "date", "time", "datetime", "enum"}
)


class RefusedError(Exception):
    """A value does not fit; the message says why, for somebody who knows the key and the type."""


class NotStoredError(RefusedError):
    """A value is of its type, and no session service keeps it as it is."""


class Codec:
    """Turns values of one type into JSON, and back.

    Args:
        type: The type, with pydantic's constraints in an `Annotated`.
        field: Whose type it is, for errors.
    """

    __slots__ = ("_adapter", "_deep", "_doubtful", "_dumps", "field", "plain", "type")

    def __init__(self, type: Any, field: str) -> None:
        self.type: Any = type
        self.field: str = field
        #: Classes whose values are right, and stored as they are.
        self.plain: frozenset[Any] = plain_classes(type)
        self._adapter: TypeAdapter[Any] | None = None
        self._doubtful = self._deep = False  # known when there is an adapter

    def load(self, stored: Any) -> Any:
        """What a stored value stands for; nobody else has it, and its containers are read-only.

        Raises:
            RefusedError: It is no value of the type.
        """
        return frozen(self.load_own(stored), deep=self._deep)

    def load_own(self, stored: Any) -> Any:
        """What a stored value stands for, for somebody who will change it.

        Raises:
            RefusedError: It is no value of the type.
        """
        if stored.__class__ in self.plain:
            return stored
        adapter = self._adapter or self._made()
        try:
            text = self._dumps(stored)
        except (TypeError, ValueError, RecursionError):  # no JSON: somebody wrote the value itself
            text = self._dumps(self.dump(stored))
        try:
            return _checked(adapter, text)
        except RefusedError as error:
            whole = _with_none(text, error.__cause__)
            if whole is None:
                raise
            return _checked(adapter, self._dumps(whole))

    def dump(self, value: Any) -> Any:
        """A value as it is stored.

        Raises:
            RefusedError: It is no value of the type, or would not come back as it is.
        """
        if value.__class__ in self.plain:
            if (fault := storage_fault(value)) is not None:
                raise NotStoredError(f"it {fault.says}; {fault.help}")
            return value
        adapter = self._adapter or self._made()
        from pydantic import ValidationError  # noqa: PLC0415  # loaded by now
        from pydantic_core import PydanticSerializationError  # noqa: PLC0415

        try:
            checked = adapter.validate_python(value, strict=True)
            stored = adapter.dump_python(
                checked, mode="json", by_alias=True, round_trip=True, warnings="error"
            )
        except ValidationError as error:
            raise RefusedError(_told(error)) from error
        except (PydanticSerializationError, ValueError, RecursionError) as error:
            raise RefusedError(f"it cannot be written as JSON: {error}") from error
        if (fault := storage_fault(stored)) is not None:
            part = f"its part {fault.path}" if fault.path else "it"
            raise NotStoredError(f"{part} {fault.says}; {fault.help}")
        if self._doubtful:
            if _made_of_dict(checked, value):
                raise RefusedError("it is a dict, or has one, where an object is declared")
            self._come_back(adapter, stored, checked)
        return stored

    def take(self, value: Any) -> Any:
        """A value as it is stored, given as that or as itself.

        Raises:
            RefusedError: It is neither.
        """
        if value.__class__ in self.plain:
            return self.dump(value)
        adapter = self._adapter or self._made()
        try:
            text = self._dumps(value)
        except (TypeError, ValueError, RecursionError):
            return self.dump(value)
        return self.dump(_checked(adapter, text))

    @property
    def adapter(self) -> TypeAdapter[Any]:
        """What checks values."""
        return self._adapter or self._made()

    def _come_back(self, adapter: TypeAdapter[Any], stored: Any, value: Any) -> None:
        try:
            back = _checked(adapter, self._dumps(stored))
        except RefusedError as error:
            raise RefusedError(f"what is stored of it cannot be read again: {error}") from error
        if not same(back, value):
            path, read, given = _first_other(back, value)
            part = f"its part {path}" if path else "it"
            other = type(read).__name__ if type(read) is not type(given) else "another value"
            advice = _advice(adapter.core_schema, read, given)
            raise RefusedError(f"{part} would be read as {other}: {advice}")

    def _made(self) -> TypeAdapter[Any]:
        """The adapter, made when the first value needs it: pydantic is slow to import."""
        from json import JSONEncoder  # noqa: PLC0415

        from pydantic import ConfigDict, PydanticUserError, TypeAdapter  # noqa: PLC0415

        config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
        try:
            try:
                adapter = TypeAdapter[Any](self.type, config=config)
            except PydanticUserError as error:
                if error.code != "type-adapter-config-unused":
                    raise
                adapter = TypeAdapter[Any](self.type)  # a model has settings of its own
            _ = adapter.core_schema["type"]  # raises, or is made, if it was put off
            looked_through = _looked_through(adapter.core_schema)
        except Exception as error:
            if is_unfinished(error):
                raise SchemaError(
                    f"values of {self.field} cannot be stored yet: pydantic waits for a name",
                    found=str(error).partition("\n")[0],
                    help="define every type that its models and dataclasses name before it is used",
                ) from error
            raise SchemaError(
                f"values of {self.field} cannot be stored: pydantic knows no way to",
                found=_sentence(str(error)),
                help="declare a type that pydantic knows, such as a model or a dataclass, and "
                "constraints that fit it",
            ) from error
        self._dumps = JSONEncoder(allow_nan=False).encode
        self._doubtful, self._deep = looked_through
        self._adapter = adapter
        return adapter


def is_unfinished(error: BaseException | None) -> bool:
    """Whether pydantic says by an error that a model or dataclass names a type not defined yet."""
    return getattr(error, "code", None) in ("class-not-fully-defined", "undefined-annotation")


def _sentence(text: str) -> str:
    """The first line of a text, and what follows it after a colon."""
    line, _, rest = text.partition("\n")
    line = line.strip()
    return f"{line} {_sentence(rest)}" if line.endswith(":") and rest else line


def _checked(adapter: TypeAdapter[Any], text: str) -> Any:
    from pydantic import ValidationError  # noqa: PLC0415  # loaded by now

    try:
        return adapter.validate_json(text, strict=True)
    except ValidationError as error:
        raise RefusedError(_told(error)) from error


def _with_none(text: str, error: Any) -> Any:
    """A stored value with None in place of what is missing in it; None if more is wrong with it.

    The SQLite services of ADK 2.0 and older drop None from dicts.
    """
    from json import loads  # noqa: PLC0415

    value: Any = loads(text)
    for fault in error.errors(include_url=False, include_context=False, include_input=False):
        part: Any = value
        *path, name = fault["loc"] or ("",)
        try:
            for each in path:
                part = part[each]
            if fault["type"] != "missing" or name in part:
                return None
            part[name] = None
        except (LookupError, TypeError):  # the place is none of the value, but a member of a union
            return None
    return value


def _told(error: ValidationError) -> str:
    """What is wrong, without the value, which may be secret."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    rows = [
        f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" if fault["loc"] else fault["msg"]
        for fault in faults[:_SHOWN]
    ]
    more = len(faults) - len(rows)
    return "; ".join([*rows, *([f"and {more} more"] if more else [])])


def plain_classes(type: Any) -> frozenset[Any]:
    """The classes among the members of a type whose values need no check, and are JSON."""
    if type is Any or type is object:
        return SCALARS
    return frozenset(
        each for each in members(type) if isinstance(each, builtins.type) and each in SCALARS
    )


def members(type: Any) -> tuple[Any, ...]:
    """The types of a union; of anything else, itself."""
    return get_args(type) if get_origin(type) in (Union, UnionType) else (type,)


def is_optional(type: Any) -> bool:
    """Whether None is a value of the type."""
    origin, args = get_origin(type), get_args(type)
    if origin is Annotated:
        return is_optional(args[0])
    if origin in (Union, UnionType):
        return any(map(is_optional, args))
    if origin is Literal:
        return None in args
    if isinstance(type, TypeVar):  # pydantic takes what it may stand for
        return any(map(is_optional, type.__constraints__ or (type.__bound__ or Any,)))
    alias = getattr(type, "__value__", None)  # type Name = str | None
    return type in (None, NoneType, Any, object) or (alias is not None and is_optional(alias))


def _looked_through(schema: Any) -> tuple[bool, bool]:
    """Whether values may come back as others, and whether containers may stand in containers."""
    parts = list(_parts_of(schema))
    doubtful = not all(_is_faithful(part["type"], part) for part in parts)
    return doubtful, doubtful or sum(part["type"] in _CONTAINERS for part in parts) > 1


def _parts_of(schema: Any) -> Iterator[dict[str, Any]]:
    """One of pydantic's core schemas, and all that are in it."""
    todo: list[Any] = [schema]
    while todo:
        part = todo.pop()
        if isinstance(part, list | tuple):
            todo.extend(cast("list[Any]", part))
        elif isinstance(part, dict):
            part = cast("dict[str, Any]", part)
            if isinstance(part.get("type"), str):
                yield part
            todo.extend(value for key, value in part.items() if key not in ("metadata", "default"))


def _advice(schema: Any, read: object, given: object) -> str:
    """How to declare a type so that a value of it comes back as it was."""
    if type(read) is not type(given) and isinstance(given, type(read)):
        return f"declare it as {type(given).__name__}"
    if any(part["type"] == "union" for part in _parts_of(schema)):
        return (
            "members of the union look alike when they are stored; leave one out, or tell models "
            "apart by a discriminator"
        )
    return "declare all that is in it by its exact type"


def _is_faithful(kind: str, schema: dict[str, Any]) -> bool:
    if kind not in _FAITHFUL or "serialization" in schema:
        return False
    if kind == "dict":
        keys = schema.get("keys_schema", {"type": "any"})
        return keys["type"] in _KEYS
    if kind == "enum":
        return all(type(each.value) in (str, int) for each in schema["members"])
    if kind == "literal":
        return all(type(each) in (str, int, bool) for each in schema["expected"])
    return True


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, and of the same types throughout."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple):
        ones, others = cast("list[Any]", one), cast("list[Any]", other)
        return len(ones) == len(others) and all(map(same, ones, others))
    if isinstance(one, dict):
        ones, others = cast("dict[Any, Any]", one), cast("dict[Any, Any]", other)
        return ones.keys() == others.keys() and all(same(ones[key], others[key]) for key in ones)
    return bool(one == other)


def _first_other(one: Any, other: Any, path: str = "") -> tuple[str, Any, Any]:
    """Where two values that are not the same differ first: the path, and what either has there."""
    if type(one) is type(other):
        pairs: list[tuple[Any, Any, Any]] = []
        if isinstance(one, list | tuple) and len(one := cast("list[Any]", one)) == len(other):
            pairs = [(at, *both) for at, both in enumerate(zip(one, other, strict=True))]
        elif isinstance(one, dict) and (one := cast("dict[Any, Any]", one)).keys() == other.keys():
            pairs = [(key, one[key], other[key]) for key in one]
        for key, mine, theirs in pairs:
            if not same(mine, theirs):
                return _first_other(mine, theirs, f"{path}[{key!r}]")
    return path, one, other


def _made_of_dict(made: Any, value: Any) -> bool:
    """Whether pydantic has made an object of a dict, which it does even where it is strict."""
    if isinstance(value, dict):
        if not isinstance(made, dict):
            return True
        made, value = cast("dict[Any, Any]", made), cast("dict[Any, Any]", value)
        return any(_made_of_dict(made[key], each) for key, each in value.items() if key in made)
    if isinstance(value, list | tuple) and isinstance(made, list | tuple):
        return any(map(_made_of_dict, cast("list[Any]", made), cast("list[Any]", value)))
    return False


def same_type(one: Any, other: Any) -> bool:
    """Whether two types are the same, with the same constraints."""
    if one == other:
        return True
    if get_origin(one) is not Annotated or get_origin(other) is not Annotated:
        return False
    ones, others = get_args(one), get_args(other)  # pydantic's Field(...) is equal to itself only
    return ones[0] == others[0] and list(map(repr, ones[1:])) == list(map(repr, others[1:]))
