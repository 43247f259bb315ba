"""A field of a state schema: what is known of it, and the descriptor that reads and writes it."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeVar, cast, overload

from adk_fluent.errors import StateKeyError, StateTypeError, UsageError, nearest_name
from adk_fluent.ir import UNSET, Scope
from adk_fluent.ir import StateFieldRef as Key
from adk_fluent.state._codec import (
    Codec,
    NotStoredError,
    RefusedError,
    is_optional,
    is_unfinished,
    plain_classes,
    same,
    same_type,
)
from adk_fluent.state._errors import SchemaError, UnstorableStateError
from adk_fluent.state._frozen import type_of
from adk_fluent.state._reduce import Reducer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adk_fluent.state._field import Spec

T = TypeVar("T")
AnyClass = type[Any]  # a field has a `type` of its own

PREFIXES: Final[dict[Scope, str]] = {
    "session": "",
    "user": "user:",
    "app": "app:",
    "temp": "temp:",
}
_LARGE: Final = 1 << 62  # beyond, an int or float is looked at more closely
_SHOWN: Final = 60  # characters of a value in an error
_KEYS_SHOWN: Final = 12


class Unreadable:
    """Stands for the text in ``SessionScoped["1+"]``, of which `typing` can make nothing.

    It raises before there is a class and a field that an error could name.
    """

    def __init__(self, text: str, error: SyntaxError) -> None:
        self.text: str = text
        self.error: SyntaxError = error


class StateFieldRef(Generic[T]):
    """A field of a `StateSchema`: ``Schema.intent``.

    Wherever a builder takes a state key it can be given instead. Two are equal when their keys and
    types are.

    Attributes:
        key: The full key in ADK's state, with its scope prefix.
        name: The name of the attribute.
        scope: ``session``, ``user``, ``app`` or ``temp``.
        owner: The schema that declares it.
        doc: What it is for.
        fills: The field of a generic schema that it is with types for the type variables.
    """

    __slots__ = (
        "_codec",
        "_plain",
        "_reducer",
        "_spec",
        "doc",
        "fills",
        "key",
        "name",
        "owner",
        "scope",
    )
    _scope: ClassVar[Scope] = "session"

    key: str
    name: str
    scope: Scope
    owner: AnyClass
    doc: str
    fills: StateFieldRef[Any] | None
    _spec: Spec
    _codec: Codec | None
    _plain: frozenset[Any]
    _reducer: Reducer | None

    if not TYPE_CHECKING:

        def __class_getitem__(cls, type_: Any) -> Any:
            try:
                return super().__class_getitem__(type_)
            except SyntaxError as error:
                return super().__class_getitem__(Unreadable(type_, error))

    @classmethod
    def scope_of(cls) -> Scope:
        """The scope that the class stands for."""
        return cls._scope

    @classmethod
    def declared(cls, owner: AnyClass, name: str, spec: Spec) -> Self:
        """The field as a schema declares it; users write annotations."""
        self = cls.__new__(cls)
        self.owner = owner
        self.name = name
        self.scope = spec.scope
        self.key = PREFIXES[spec.scope] + (spec.key or name)
        self.doc = spec.doc
        self.fills = None
        self._spec = spec
        self._codec = None
        self._plain = frozenset[Any]() if spec.constraints else plain_classes(spec.annotation)
        self._reducer = None
        return self

    def spec_of(self, annotation: Any) -> Spec:
        """The declaration of such a field of another type."""
        return replace(self._spec, annotation=annotation, _type=UNSET)

    @property
    def annotation(self) -> Any:
        """The type as it is annotated, without what `field(...)` says."""
        return self._spec.annotation

    @property
    def type(self) -> Any:
        """The declared type; constraints are in an ``Annotated``."""
        return self._spec.type

    @property
    def default(self) -> T:
        """What a reader gets when the key is absent, a new one each time; else `ir.UNSET`."""
        spec = self._spec
        if spec.default_factory is not None:
            return spec.default_factory()
        if spec.default is UNSET:
            return cast("T", None if is_optional(spec.annotation) else UNSET)
        return deepcopy(spec.default)

    def has_default_of(self, other: StateFieldRef[Any]) -> bool:
        """Whether a reader gets the same when the key is absent."""
        return same(self._default_or_factory(), other._default_or_factory())

    def shown_default(self) -> str:
        """The default in an error; empty if there is none."""
        default = self._default_or_factory()
        return "" if default is UNSET else self._shown(default)

    def _default_or_factory(self) -> Any:
        spec = self._spec
        default = spec.plain_default
        if default is not UNSET:
            return default
        return spec.default_factory or (UNSET if self.required else None)

    def check_default(self) -> None:
        """Look at the default, if its type is known by now.

        Raises:
            SchemaError: It does not fit.
        """
        try:
            self.stored_default()
        except SchemaError as error:
            if not is_unfinished(error.__cause__):
                raise

    def stored_default(self) -> Any:
        """The default as it would be stored; None if there is none.

        Raises:
            SchemaError: It does not fit.
        """
        default: Any = self.default
        if default is UNSET or (default is None and is_optional(self._spec.annotation)):
            return None
        try:
            return self.codec.dump(default)
        except RefusedError as error:
            raise SchemaError(f"the default of {self!r} does not fit: {error}") from error

    @property
    def required(self) -> bool:
        """Whether a reader needs somebody to have written it."""
        spec = self._spec
        return (
            spec.default is UNSET
            and spec.default_factory is None
            and not is_optional(spec.annotation)
        )

    @property
    def reducer(self) -> Reducer | None:
        """What makes one stored value of two that parallel branches wrote; None: the last stays."""
        function = self._spec.reduce
        if function is not None and self._reducer is None:
            self._reducer = Reducer(self, function)
        return self._reducer

    @property
    def template(self) -> str:
        """The placeholder in an instruction: ``{user:tier}``; ``{topic?}`` if it may be absent.

        Raises:
            SchemaError: ADK fills no placeholder of that key.
        """
        if not self.key.removeprefix(PREFIXES[self.scope]).isidentifier():
            raise SchemaError(
                f"{self!r} has no placeholder: ADK fills only keys that are names",
                found=repr(self.key),
                help="give the field such a key, or say the value in a function as instruction",
            )
        return f"{{{self.key}}}" if self.required else f"{{{self.key}?}}"

    def encode(self, value: T | None, where: str = "") -> Any:
        """A value as it is stored; None, which counts as absent, stays None.

        Args:
            value: A value of the type.
            where: Who writes, for the error.

        Raises:
            StateTypeError: It is none, or would not come back as it is.
        """
        return None if value is None else self._guarded(self.codec.dump, value, where)

    def take(self, value: object, where: str = "") -> Any:
        """As `encode`, but also for a value that is already as it is stored."""
        return None if value is None else self._guarded(self.codec.take, value, where)

    def decode(self, stored: object) -> T:
        """What a stored value stands for; nobody else has it.

        Raises:
            StateTypeError: It is no value of the type.
        """
        try:
            return self.codec.load_own(stored)
        except RefusedError as error:
            raise self._holds(stored, error) from error

    @property
    def codec(self) -> Codec:
        """What turns values into JSON, and back."""
        codec = self._codec
        if codec is None:
            codec = self._codec = Codec(self.type, repr(self))
        return codec

    # --- the descriptor ---------------------------------------------------------------------------

    @overload
    def __get__(self, bound: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, bound: object, owner: Any = None) -> T: ...
    def __get__(self, bound: Any, owner: Any = None) -> Any:
        if bound is None:
            return self
        try:
            value = bound.__state__[self.key]
        except KeyError:
            return self._absent(bound.__state__)
        if value.__class__ in self._plain:
            return value
        if value is None:  # counts as absent: session services remove none
            return self._absent(bound.__state__)
        try:
            return self.codec.load(value)
        except RefusedError as error:
            raise self._holds(value, error) from error

    def __set__(self, bound: Any, value: T) -> None:
        kind = value.__class__
        if kind not in self._plain or not (
            kind is bool
            or (
                (cast("str", value).isascii() and "\0" not in cast("str", value))
                if kind is str
                else -_LARGE < cast("int", value) < _LARGE
            )
        ):
            value = self._encoded(value)
        try:
            bound.__state__[self.key] = value
        except TypeError:
            write(bound.__state__, self, value)  # says why

    def __delete__(self, bound: object) -> None:
        raise UsageError(
            f"{self!r} cannot be deleted: ADK's state has no deletion",
            help=f"state.unset({self.name!r}) writes None, which counts as absent",
        )

    def _encoded(self, value: Any) -> Any:
        if value is None and not is_optional(self._spec.annotation):
            raise StateTypeError(
                f"{self!r} takes no None",
                key=self.key,
                help=f"state.unset({self.name!r}) makes it absent; or declare it with | None",
            )
        return self.encode(value)

    def _absent(self, state: Mapping[str, Any]) -> Any:
        spec = self._spec
        if self.required:
            raise self.missing(state)
        if spec.default is UNSET and spec.default_factory is None:
            return None
        if spec.default is None or spec.default.__class__ in self._plain:
            return spec.default
        stored = self.stored_default()
        return None if stored is None else self.codec.load(stored)

    # --- errors -----------------------------------------------------------------------------------

    def _shown(self, value: object) -> str:
        """A value in an error, without what its key or a key in it says is a secret."""
        from adk_fluent.protocol import Redactor  # noqa: PLC0415  # only errors need it

        redactor = Redactor()
        if redactor.hides(self.name):
            return f"a value of type {type_of(value).__name__}"
        kept = redactor.redact(value)
        try:  # what is redacted has lists instead of tuples
            whole = repr(kept) == repr(Redactor(()).redact(value))
        except Exception:  # noqa: BLE001  # an object's own repr
            whole = True
        return shown(value if whole else kept, type_of(value))

    def _guarded(self, encode: Callable[[Any], Any], value: object, where: str) -> Any:
        try:
            return encode(value)
        except RefusedError as error:
            by = f" by {where}" if where else ""
            kind = UnstorableStateError if isinstance(error, NotStoredError) else StateTypeError
            raise kind(
                f"{self!r} cannot be given {self._shown(value)}{by}: {error}", key=self.key
            ) from error

    def _holds(self, value: object, error: RefusedError) -> StateTypeError:
        return StateTypeError(
            f"state has {self._shown(value)} in {self!r}: {error}",
            key=self.key,
            help="something wrote it past the schema; SchemaSessionService finds out what",
        )

    def missing(self, state: Mapping[str, Any]) -> StateKeyError:
        """The error about a field that has no value."""
        known = present(state)
        name = Key(self.key).name
        other = next((key for key in known if Key(key).name == name), None)
        near = nearest_name(self.key, known)
        found = f"keys {', '.join(known[:_KEYS_SHOWN])}" if known else "no keys"
        if len(known) > _KEYS_SHOWN:
            found += f" and {len(known) - _KEYS_SHOWN} more"
        if other is not None:
            advice = (
                f"state has {other!r}, a key of another scope: declare the field so, "
                f"or write {self.key!r}"
            )
        elif near is not None:
            advice = f"state has {near!r}: was that meant?"
        else:
            advice = (
                f"let a step before it write {self.key!r}, start the session with "
                f"{self.owner.__name__}.initial({self.name}=...), or give the field a default"
            )
        return StateKeyError(f"{self!r} has no value yet", key=self.key, found=found, help=advice)

    # --- as a value -------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StateFieldRef):
            return NotImplemented
        ref = cast("StateFieldRef[Any]", other)
        return self is ref or (self.key == ref.key and same_type(self.type, ref.type))

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.key

    def __repr__(self) -> str:
        key = "" if self.key == self.name else f" ({self.key!r})"
        return f"{self.owner.__name__}.{self.name}: {type_name(self._spec.annotation)}{key}"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (getattr, (self.owner, self.name))


class SessionScoped(StateFieldRef[T]):
    """A field that is kept with the session: ``intent: SessionScoped[str]``.

    Without a scope, as in ``intent: str``, a field is one of the session, too.
    """

    __slots__ = ()


class UserScoped(StateFieldRef[T]):
    """A field that all sessions of a user share: ``tier: UserScoped[str]``.

    Also ``tier: Annotated[str, UserScoped]``.
    """

    __slots__ = ()
    _scope = "user"


class AppScoped(StateFieldRef[T]):
    """A field that all users of an app share: ``version: AppScoped[str]``.

    Also ``version: Annotated[str, AppScoped]``.
    """

    __slots__ = ()
    _scope = "app"


class Temp(StateFieldRef[T]):
    """A field of one run, which is never stored: ``scratch: Temp[list[str]]``.

    Also ``scratch: Annotated[list[str], Temp]``.
    """

    __slots__ = ()
    _scope = "temp"


def is_scope(value: Any) -> bool:
    """Whether it says where a field is kept: ``UserScoped``, and not ``UserScoped[str]``."""
    return isinstance(value, type) and issubclass(value, StateFieldRef)


def write(state: Any, ref: StateFieldRef[Any], stored: Any) -> None:
    """Write what is stored for a field.

    Raises:
        UsageError: State is only read here.
    """
    try:
        state[ref.key] = stored
    except TypeError:
        if not isinstance(state, MappingProxyType):
            raise
        raise _read_only(ref) from None


def _read_only(ref: StateFieldRef[Any]) -> UsageError:
    return UsageError(
        f"{ref!r} cannot be written here: this context only reads state",
        help=f"a function step returns {ref.owner.__name__}.delta({ref.name}=...); "
        "tools and callbacks write through their own context",
    )


def present(state: Any) -> list[str]:
    """The keys that have a value, but for those that ADK and adk-fluent keep for themselves."""
    from adk_fluent.ir import is_reserved_key  # noqa: PLC0415  # only errors need it

    items = (state.to_dict() if hasattr(state, "to_dict") else dict(state)).items()
    held = [key for key, value in items if value is not None and isinstance(key, str)]
    return sorted(key for key in held if not is_reserved_key(key))


def shown(value: object, type_: AnyClass | None = None) -> str:
    """A value in an error: short, and with its type, which may be that of what it stands for."""
    called = (type_ or type(value)).__name__
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # an int of too many digits, or an object's own repr
        return f"a value of type {called}"
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f"{text} ({called})"


def type_name(type_: Any) -> str:
    """A type as it is written."""
    if isinstance(type_, type) and not hasattr(type_, "__args__"):
        return type_.__name__
    return str(type_).replace("typing.", "").replace(f"{__name__}.", "")
