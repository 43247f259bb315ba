"""Frozen, slotted data classes that cost next to nothing to import.

`@record` gives what ``@dataclass(frozen=True, slots=True)`` gives, and `dataclasses.fields`,
`replace`, `asdict` and `is_dataclass` work on the result. The standard decorator imports `inspect`
and compiles six methods a class, which for the IR alone takes longer than all of
``import adk_fluent`` may. Here the methods are shared, and what must be compiled for one class (its
``__init__``) is compiled when the class is first used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar, cast, dataclass_transform

from adk_fluent.ir._text import source_of

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")

#: In place of a default: the field has none.
MISSING: Final[Any] = object()


class FieldSpec:
    """What is declared of one field."""

    __slots__ = ("annotation", "child", "compare", "default", "hash", "kw_only")

    def __init__(
        self,
        default: Any = MISSING,
        *,
        kw_only: bool = False,
        compare: bool = True,
        hash: bool = True,
        child: bool = False,
    ) -> None:
        self.default = default
        self.kw_only = kw_only
        self.compare = compare
        self.hash = hash
        self.child = child
        self.annotation: Any = None

    def is_default(self, value: Any) -> bool:
        """Whether leaving the field out makes the same value, of the same type."""
        default = self.default
        return value is default or (type(value) is type(default) and bool(value == default))


def field(
    *, default: Any = MISSING, kw_only: bool = False, compare: bool = True, hash: bool = True
) -> Any:
    """Declare a field that is more than its annotation and default.

    Args:
        default: Its value when none is given; immutable.
        kw_only: It is given by keyword only.
        compare: It takes part in equality and in the hash.
        hash: It takes part in the hash.
    """
    return FieldSpec(default, kw_only=kw_only, compare=compare, hash=hash)


def child(*, default: Any = MISSING) -> Any:
    """Declare a field that holds a node, an optional node or a tuple of nodes."""
    return FieldSpec(default, child=True)


class Schema:
    """The fields of a record class.

    Attributes:
        fields: Every field by name, those of base classes first.
        children: Names of the fields that hold nodes.
        links: Reads the values of `children`.
        compared: Names of the others that take part in equality.
        data: Reads the values of `compared`.
        key: Reads those of them that are hashed.
    """

    __slots__ = ("children", "compared", "data", "fields", "key", "links")

    def __init__(self, fields: dict[str, FieldSpec]) -> None:
        self.fields: dict[str, FieldSpec] = fields
        self.children: tuple[str, ...] = tuple(n for n, f in fields.items() if f.child)
        self.links: Callable[[Any], tuple[Any, ...]] = reader(self.children)
        self.compared: tuple[str, ...] = tuple(
            n for n, f in fields.items() if f.compare and not f.child
        )
        self.data: Callable[[Any], tuple[Any, ...]] = reader(self.compared)
        self.key: Callable[[Any], tuple[Any, ...]] = reader(
            tuple(n for n in self.compared if fields[n].hash)
        )


def schema_of(cls: type) -> Schema:
    """The fields of a record class.

    Raises:
        AttributeError: The class is none.
    """
    schema: Schema = cast("Any", cls).__record__
    return schema


def reader(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """What reads these attributes of an object, quickly."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda obj: tuple([getattr(obj, name) for name in names])


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[R]) -> type[R]:
    """Make a class a frozen, slotted data class. What it defines itself is left alone.

    A class that defines ``__slots__`` has those beside its fields.

    A field annotated as tuple or `Sequence` takes any sequence and holds a tuple; one annotated as
    frozenset or `Collection` takes any collection and holds a frozenset. So users may write lists
    and sets, and what they made has a hash and does not change when those do.

    Raises:
        TypeError: A field without default follows one with a default.
    """
    return build(cls, freeze=True)


def build(cls: type[R], *, freeze: bool = False) -> type[R]:
    """Do what `record` does; for decorators that declare other field specifiers.

    Args:
        cls: The class.
        freeze: Take sequences and collections of other types than the fields hold.
    """
    fields: dict[str, FieldSpec] = {}
    for base in reversed(cls.__mro__[1:]):
        if "__record__" in base.__dict__:
            fields.update(base.__dict__["__record__"].fields)
    own = _own_fields(cls)
    slots = (*cls.__dict__.get("__slots__", ()), *(name for name in own if name not in fields))
    fields.update(own)
    _check_order(cls, fields)

    space = {k: v for k, v in cls.__dict__.items() if k not in own and k not in _DROPPED}
    space |= {name: shared for name, shared in _SHARED.items() if _inherits_from_object(cls, name)}
    space["__slots__"] = slots
    space["__record__"] = Schema(fields)
    space["__match_args__"] = tuple(n for n, f in fields.items() if not f.kw_only)
    space["__init__"] = _LazyInit(freeze=freeze)
    space["__dataclass_fields__"] = _LazyFields()
    made: Any = type(cls)(cls.__name__, cls.__bases__, space)  # slots need a class of their own
    made.__qualname__ = cls.__qualname__
    return made


_DROPPED: Final = {"__dict__", "__weakref__"}


def _own_fields(cls: type) -> dict[str, FieldSpec]:
    own: dict[str, FieldSpec] = {}
    for name, annotation in cls.__annotations__.items():
        text = annotation if isinstance(annotation, str) else repr(annotation)
        if text.removeprefix("typing.").startswith("ClassVar"):
            continue
        value = cls.__dict__.get(name, MISSING)
        spec = value if isinstance(value, FieldSpec) else FieldSpec(value)
        spec.annotation = annotation
        own[name] = spec
    return own


def _check_order(cls: type, fields: dict[str, FieldSpec]) -> None:
    optional = ""
    for name, spec in fields.items():
        if spec.kw_only:
            continue
        if spec.default is not MISSING:
            optional = name
        elif optional:
            raise TypeError(
                f"{cls.__qualname__}: field {name!r} has no default but follows {optional!r}, "
                f"which has one; give it a default or make it kw_only"
            )


def _inherits_from_object(cls: type, name: str) -> bool:
    return getattr(cls, name, None) is getattr(object, name, None)


# --- what is made when it is first needed --------------------------------------------------------


class _LazyInit:
    """Stands in for ``__init__`` until the class is first called or inspected."""

    def __init__(self, *, freeze: bool) -> None:
        self.freeze = freeze

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner = owner

    def __get__(self, obj: Any, cls: type) -> Any:
        owner: Any = self.owner
        init = owner.__init__ = _compile_init(owner, freeze=self.freeze)
        return init if obj is None else init.__get__(obj)


def _compile_init(cls: Any, *, freeze: bool) -> Any:
    fields: dict[str, FieldSpec] = cls.__record__.fields
    space: dict[str, Any] = {}
    params, keywords, lines = ["self"], list[str](), list[str]()
    for name, spec in fields.items():
        has_default = spec.default is not MISSING
        if has_default:
            space[f"_default_{name}"] = spec.default
        param = f"{name}=_default_{name}" if has_default else name
        (keywords if spec.kw_only else params).append(param)
        # the slot's own setter: a third faster than object.__setattr__
        space[f"_set_{name}"] = getattr(cls, name).__set__
        value = name
        if freeze and (frozen := _frozen(spec.annotation)):
            space[f"_type_{name}"], space[f"_freeze_{name}"] = frozen
            value = f"{name} if type({name}) is _type_{name} else _freeze_{name}({name})"
        lines.append(f"  _set_{name}(self, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("  self.__post_init__()")
    if keywords:
        params += ["*", *keywords]
    source = "\n".join([f"def __init__({', '.join(params)}):", *(lines or ["  return"])])
    exec(source, space)  # noqa: S102  # nothing but the names of fields, which are identifiers
    init = space["__init__"]
    init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    init.__annotations__ = {n: f.annotation for n, f in fields.items()} | {"return": None}
    return init


def _frozen(annotation: Any) -> tuple[type, Callable[[Any], Any]] | None:
    """The type that a field holds whatever the user gave, and what makes it; None: what it is."""
    text = annotation if isinstance(annotation, str) else repr(annotation)
    return _FROZEN.get(text.partition("[")[0].rpartition(".")[2])


def _as_tuple(value: Any) -> Any:
    return tuple(value) if _holds(value, Sequence) else value


def _as_frozenset(value: Any) -> Any:
    return frozenset(value) if _holds(value, Collection) else value


def _holds(value: Any, kind: type) -> bool:
    """Whether it is a collection of that kind; text and mappings are more than their items."""
    return isinstance(value, kind) and not isinstance(value, str | bytes | bytearray | Mapping)


_FROZEN: Final[dict[str, tuple[type, Callable[[Any], Any]]]] = {
    "tuple": (tuple, _as_tuple),
    "Sequence": (tuple, _as_tuple),
    "frozenset": (frozenset, _as_frozenset),
    "Collection": (frozenset, _as_frozenset),
}


class _LazyFields:
    """Stands in for ``__dataclass_fields__`` until `dataclasses` is used on the class."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner = owner

    def __get__(self, obj: Any, cls: type) -> Any:
        import dataclasses  # noqa: PLC0415  # see the module's docstring

        owner: Any = self.owner
        rows = [
            (
                name,
                spec.annotation,
                dataclasses.field(
                    default=dataclasses.MISSING if spec.default is MISSING else spec.default,
                    kw_only=spec.kw_only,
                    compare=spec.compare,
                    hash=None if spec.hash else False,
                    metadata={"child": True} if spec.child else None,
                ),
            )
            for name, spec in owner.__record__.fields.items()
        ]
        twin: Any = dataclasses.make_dataclass(cls.__name__, rows, frozen=True)
        owner.__dataclass_params__ = twin.__dataclass_params__
        owner.__dataclass_fields__ = twin.__dataclass_fields__
        return twin.__dataclass_fields__


# --- methods that all records share --------------------------------------------------------------


def replaced(obj: R, changes: dict[str, Any]) -> R:
    """A copy of a record with some fields changed."""
    cls: Any = type(obj)
    values = {name: getattr(obj, name) for name in cls.__record__.fields}
    return cls(**(values | changes))


def _eq(self: Any, other: object) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    data = self.__record__.data
    return data(self) == data(other)


def _hash(self: Any) -> int:
    return hash(self.__record__.key(self))


def _setattr(self: Any, name: str, value: Any) -> NoReturn:
    from dataclasses import FrozenInstanceError  # noqa: PLC0415  # see the module's docstring

    raise FrozenInstanceError(f"cannot assign to field {name!r}: {type(self).__name__} is frozen")


def _delattr(self: Any, name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError  # noqa: PLC0415  # see the module's docstring

    raise FrozenInstanceError(f"cannot delete field {name!r}: {type(self).__name__} is frozen")


def _replace(self: Any, /, **changes: Any) -> Any:
    return replaced(self, changes)


def _copy(self: Any) -> Any:
    return self


def _deepcopy(self: Any, memo: dict[int, Any]) -> Any:
    return self


def _reduce(self: Any) -> tuple[Any, ...]:
    kind: Any = cast("Any", type(self))
    is_record = "__record__" in kind.__dict__  # or a class of the user's, which may add fields
    names: Collection[str] = kind.__record__.fields if is_record else kind.__dataclass_fields__
    return (_rebuild, (kind, {name: getattr(self, name) for name in names}))


def _rebuild(cls: type[R], values: dict[str, Any]) -> R:
    return cls(**values)


_SHARED: Final[dict[str, Any]] = {
    "__eq__": _eq,
    "__hash__": _hash,
    "__repr__": source_of,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__replace__": _replace,
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
    "__reduce__": _reduce,
}
