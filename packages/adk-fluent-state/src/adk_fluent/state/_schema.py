"""State schemas: classes whose annotated attributes are keys of ADK's session state."""

from __future__ import annotations

from collections import ChainMap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast, overload

from adk_fluent.errors import UsageError
from adk_fluent.state._bind import KNOWN, state_of
from adk_fluent.state._edit import Edit
from adk_fluent.state._meta import SchemaType, fields_of, own_ref, ref_of, unknown_field
from adk_fluent.state._ref import StateFieldRef, T, type_name, write
from adk_fluent.state._upgrade import stamps, upgrade_delta

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager


class _Templates:
    """`StateSchema.template`: a schema's placeholders by the names of its fields."""

    __slots__ = ("_schema",)

    def __init__(self, schema: Any = None) -> None:
        self._schema = schema

    def __get__(self, bound: object, owner: Any) -> _Templates:
        return _Templates(owner)

    def __getattr__(self, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return ref_of(self._schema, name).template

    def __dir__(self) -> list[str]:
        return list(fields_of(self._schema))


class StateSchema(metaclass=SchemaType):
    """What ADK's session state holds: a subclass's annotated attributes are keys of it.

    ::

        class BillingState(StateSchema):
            intent: SessionScoped[str]
            ticket_id: SessionScoped[str | None]
            tier: UserScoped[str] = field(default="free")
            hits: SessionScoped[Annotated[list[str], Reduce(operator.add)]]

        def open_ticket(query: str, tool_context: ToolContext) -> str:
            state = BillingState.bind(tool_context)
            state.ticket_id = f"{state.intent}-1"
            ...

    ``intent: str`` and ``tier: Annotated[str, UserScoped]`` mean the same and can be mixed in. For
    type checkers, ``BillingState.intent`` is a reference only in the first spelling; use
    ``BillingState.ref("intent")`` in the second.

    Values are stored as JSON and read as what they were, so that every session service keeps them.
    A key that is absent or None gives the default, else None if the type allows it, else
    `StateKeyError`.

    Subclasses of several schemas have the fields of all. (Source: v5 spec, section 1.)

    Attributes:
        __version__: The version of the schema, from 1 on; see `upgrade`.
        template: The placeholders for instructions: ``Schema.template.intent`` is ``{intent}``.
    """

    __slots__ = ("__state__",)

    __version__: ClassVar[int] = 1

    #: The placeholders for instructions, by the names of the fields.
    template: Final = _Templates()

    if TYPE_CHECKING:
        __state_fields__: ClassVar[Mapping[str, StateFieldRef[Any]]]

    if not TYPE_CHECKING:  # type checkers know it of Generic

        def __class_getitem__(cls, arguments: Any) -> Any:
            """A generic schema with types for its type variables: ``Page[int]``."""
            from adk_fluent.state._generic import with_arguments  # noqa: PLC0415  # few need it

            return with_arguments(cls, arguments, super())

    def __init__(self) -> None:
        cls = type(self)
        raise UsageError(
            f"a {cls.__name__} is state of a session, so it is not made",
            help=f"{cls.__name__}.bind(ctx) reads and writes it, "
            f"{cls.__name__}.initial(...) is what a session starts with",
        )

    @classmethod
    def bind(cls, context: Any, /) -> Self:
        """The state of a context, as typed attributes.

        Args:
            context: What a tool, callback, hook of a middleware or function step is given, any
                other context of ADK, a session, or a dict. Where a context only reads state, so
                does what is bound to it.

        Raises:
            UsageError: It has no state.
            SchemaUpgradeError: State is of another version, and could not be brought to this one.
        """
        bound = _new(cls)
        state = context.state if context.__class__ in KNOWN else state_of(context)
        if cls.__schema__.versioned:
            state = _upgraded(cls, state)
        _put(bound, state)
        return bound

    @classmethod
    def ref(cls, name: str, /) -> StateFieldRef[Any]:
        """The field of that name, for what takes a state key.

        Raises:
            UnknownNameError: There is none.
        """
        return ref_of(cls, name)

    @classmethod
    def delta(cls, /, **values: Any) -> dict[str, Any]:
        """Values by their full keys as they are stored: what a function step returns.

        Args:
            values: By the names of the fields; None makes absent.

        Raises:
            UnknownNameError: There is no such field.
            StateTypeError: A value does not fit.
        """
        made = {name: ref_of(cls, name) for name in values}
        return {ref.key: ref.encode(values[name]) for name, ref in made.items()}

    @classmethod
    def initial(cls, /, *, _complete: bool = False, **values: Any) -> dict[str, Any]:
        """The state that a session starts with, by full keys, as it is stored.

        Args:
            _complete: Every field has to be there that has no default and cannot be None.
            values: By the names of the fields.

        Raises:
            UnknownNameError: There is no such field.
            StateTypeError: A value does not fit.
            UsageError: A field is missing, or is one of a single run.
        """
        short = [name for name in values if ref_of(cls, name).scope == "temp"]
        if short:
            raise UsageError(
                f"a session of {cls.__name__} cannot start with {', '.join(short)}",
                found="scope temp, which session services drop",
                help="write it in the run",
            )
        absent = [
            f"{name} ({type_name(ref.type)})"
            for name, ref in fields_of(cls).items()
            if ref.required and ref.scope != "temp" and values.get(name) is None
        ]
        if _complete and absent:
            raise UsageError(
                f"a complete session of {cls.__name__} needs more", found="no " + ", ".join(absent)
            )
        delta = cls.delta(**values)
        for each in cls.__schema__.versioned:
            delta |= stamps(each, ["session"])
        return {key: value for key, value in delta.items() if value is not None}

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """What a stored state looks like: JSON Schema of an object with the full keys."""
        from adk_fluent.state._json_schema import json_schema  # noqa: PLC0415  # imports pydantic

        return json_schema(cls.__name__, cls.__doc__, fields_of(cls).values())

    @classmethod
    def upgrade(cls, state: dict[str, Any], from_version: int) -> None:
        """Bring stored state of an older version to this one; override it, and raise `__version__`.

        It is called once for the keys of the session, and once for those of the user and the app
        if the schema has such, where state was written under an older version. What it changes is
        written in one step, with the new version. If it raises, nothing is.

        Args:
            state: The stored keys of one scope that have a value, with their prefixes; change it
                in place. Keys may be absent, and there may be some of other schemas.
            from_version: The version that it has, from 1 on.
        """

    @overload
    def edit(self, field: StateFieldRef[T], /) -> AbstractContextManager[T]: ...
    @overload
    def edit(self, field: str, /) -> AbstractContextManager[Any]: ...
    def edit(self, field: Any, /) -> AbstractContextManager[Any]:
        """A list, dict, set or model to change in place; it is written when the block is done.

        If the block raises, nothing is written.

        Args:
            field: The field, or its name.

        Raises:
            UnknownNameError: There is no such field.
            StateKeyError: It has no value, and no default.
            StateConflictError: Somebody else has written it in the meantime.
        """
        return Edit[Any](self, own_ref(type(self), field))

    def unset(self, *fields: str | StateFieldRef[Any]) -> None:
        """Make fields absent: None is written, since ADK's state has no deletion."""
        for ref in [own_ref(type(self), each) for each in fields]:
            write(self.__state__, ref, None)

    @classmethod
    def __state_encode__(cls, delta: Mapping[str, Any], where: str, /) -> dict[str, Any]:
        """A write as it is stored; see `adk_fluent.protocol.StateRules`."""
        by_key = cls.__state_fields__
        return {
            key: by_key[key].take(value, where) if key in by_key else value
            for key, value in delta.items()
        }

    @classmethod
    def __state_upgrade__(cls, state: Mapping[str, Any], /) -> dict[str, Any]:
        """What has to be written to bring a state to this version; {} is nothing.

        Raises:
            SchemaUpgradeError: It cannot be done.
        """
        return upgrade_delta(cls.__schema__.versioned, cls.__state_fields__, state)

    def __repr__(self) -> str:
        """Which fields have a value, and never what it is."""
        state = self.__state__
        held = [name for name, ref in fields_of(type(self)).items() if has(state, ref.key)]
        return f"<{type(self).__name__} with {', '.join(held) or 'nothing'}>"

    if not TYPE_CHECKING:  # for type checkers, an attribute that is not declared is a mistake

        def __setattr__(self, name: str, value: Any) -> None:
            """Write a field, or say which was meant."""
            try:
                ref = self.__schema__.fields[name]
            except (KeyError, TypeError):  # TypeError: not all annotations are resolved yet
                ref = _assigned(type(self), name)
            if ref is None:
                object.__setattr__(self, name, value)
            else:
                ref.__set__(self, value)

        def __getattr__(self, name: str) -> Any:
            """Say which field was meant."""
            if name.startswith("_"):
                raise AttributeError(name)
            if any(name in vars(each) for each in type(self).__mro__):
                return object.__getattribute__(self, name)  # a property's own AttributeError
            raise unknown_field(type(self), name)


_new: Final = object.__new__
_put: Final = cast("Any", StateSchema).__dict__["__state__"].__set__


def has(state: Any, key: str) -> bool:
    """Whether a key has a value; None counts as absent."""
    try:
        return state[key] is not None
    except KeyError:
        return False


def _upgraded(cls: Any, state: Any) -> Any:
    """State of this version: what has to change is written, or laid over what is only read."""
    delta = cls.__state_upgrade__(state)
    if not delta:
        return state
    if not hasattr(cast("object", state.__class__), "update"):
        return MappingProxyType(ChainMap(delta, cast("dict[str, Any]", state)))
    state.update(delta)
    return state


def _assigned(cls: Any, name: str) -> StateFieldRef[Any] | None:
    """The field that is assigned to; None if it is something else that can be, as a property.

    Raises:
        UnknownNameError: There is nothing of that name.
    """
    ref = fields_of(cls).get(name)
    if ref is None and not name.startswith("_") and not hasattr(cls, name):
        raise unknown_field(cls, name)
    return ref
