"""What makes a class with annotations a state schema."""

from __future__ import annotations

import copyreg
import sys
from dataclasses import dataclass, field
from operator import getitem
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, cast, get_args, get_origin

from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.extend import describe
from adk_fluent.ir import UNSET
from adk_fluent.state._declare import (
    UnknownTypeError,
    annotations_of,
    declared,
    filled,
    is_class_variable,
    names_of,
    resolved,
)
from adk_fluent.state._errors import SchemaCompositionError, SchemaError
from adk_fluent.state._field import Spec
from adk_fluent.state._generic import ALIAS, fill, open_in
from adk_fluent.state._ref import StateFieldRef, is_scope, type_name
from adk_fluent.state._upgrade import version_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType

#: What a schema has beside its fields, known when `StateSchema` is there.
TAKEN: Final[set[str]] = set()


@dataclass(slots=True, eq=False)
class Declared:
    """What is known of a schema class: its ``__schema__``.

    Attributes:
        fields: All fields by their names; None while an annotation waits for a name.
        keys: The same by their full keys.
        own: Those of its own body.
        waiting: Annotations that are not resolved yet, and the values assigned there.
        visible: Local variables where the class stands.
        module: The names of its module, which may get more.
        versioned: The schemas it is made of that have a version above 1.
        alias: What `typing` knows it as, if it is a generic schema with types: ``Page[int]``.
        filled: Whether its fields have them.
    """

    fields: Mapping[str, StateFieldRef[Any]] | None = None
    keys: Mapping[str, StateFieldRef[Any]] = field(default_factory=dict[str, StateFieldRef[Any]])
    own: dict[str, StateFieldRef[Any]] = field(default_factory=dict[str, StateFieldRef[Any]])
    waiting: dict[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])
    visible: dict[str, Any] = field(default_factory=dict[str, Any])
    module: dict[str, Any] = field(default_factory=dict[str, Any])
    versioned: tuple[Any, ...] = ()
    alias: Any = None
    filled: bool = False


class SchemaType(type):
    """The class of state schema classes."""

    __schema__: Declared

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> SchemaType:
        """Read the declarations of a schema."""
        namespace.setdefault("__slots__", ())
        alias = namespace.pop(ALIAS, None)
        cls = super().__new__(mcs, name, bases, namespace, **options)
        known = cls.__schema__ = Declared(alias=alias)
        if not TAKEN:  # StateSchema itself
            TAKEN.update(each for each in namespace if not each.startswith("_"))
            known.fields = {}
            return cls
        if Generic in cls.__mro__:
            type.__setattr__(cls, "__parameters__", _type_variables(cls))
        frame = sys._getframe(1)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        known.module = frame.f_globals
        known.visible = _visible_in(frame)
        own = {key: each for key, each in annotations_of(cls).items() if not key.startswith("_")}
        _check_names(cls, own, namespace)
        known.waiting = {key: (each, namespace.get(key, UNSET)) for key, each in own.items()}
        every = _schemas_of(cls)
        known.versioned = tuple(each for each in every if version_of(each) > 1)
        for each in reversed(every):
            _read(each)
        if not any(each.__schema__.waiting for each in every):
            _merge(cls)
        return cls

    if not TYPE_CHECKING:  # type checkers know what is declared, and nothing else is there

        @property
        def __state_fields__(cls) -> Mapping[str, StateFieldRef[Any]]:
            """The fields by their full keys."""
            fields_of(cls)
            return cls.__schema__.keys

        def __getattr__(cls, name: str) -> Any:
            """Say which field was meant."""
            if name.startswith("_"):
                raise AttributeError(name)
            raise unknown_field(cls, name)

        def __setattr__(cls, name: str, value: Any) -> None:
            """Refuse to replace a field."""
            if not name.startswith("_") and name in fields_of(cls):
                raise UsageError(
                    f"{cls.__name__}.{name} is a field, and the same for all sessions",
                    help=f"{cls.__name__}.bind(ctx).{name} = ... writes the state of one",
                )
            super().__setattr__(name, value)

        def __delattr__(cls, name: str) -> None:
            """Refuse to remove a field."""
            if not name.startswith("_") and name in fields_of(cls):
                raise UsageError(f"{cls.__name__}.{name} is a field, and stays one")
            super().__delattr__(name)


def _reduced(cls: Any) -> Any:
    """How a schema is pickled: by its name, or as what it is made of."""
    alias = cls.__schema__.alias
    return cls.__qualname__ if alias is None else (getitem, (get_origin(alias), get_args(alias)))


copyreg.pickle(cast("Any", SchemaType), _reduced)


class Later:
    """Stands for a field whose annotation has a name that means nothing yet."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, bound: Any, owner: Any = None) -> Any:
        return fields_of(owner or type(bound))[self._name].__get__(bound, owner)

    def __set__(self, bound: Any, value: Any) -> None:
        fields_of(type(bound))[self._name].__set__(bound, value)


def fields_of(cls: Any) -> Mapping[str, StateFieldRef[Any]]:
    """The fields of a schema by their names, its own and those it inherits.

    Raises:
        SchemaError: An annotation has a name that means nothing.
        SchemaCompositionError: Schemas that it is made of contradict each other.
    """
    known: Declared = cls.__schema__
    if known.fields is None:
        for each in reversed(_schemas_of(cls)):
            _read(each, last=True)
        _merge(cls)
    return cast("Mapping[str, StateFieldRef[Any]]", known.fields)


def ref_of(cls: Any, name: str) -> StateFieldRef[Any]:
    """The field of a schema with that name.

    Raises:
        UnknownNameError: There is none.
        UsageError: It is no name.
    """
    if not isinstance(cast("object", name), str):
        raise _no_field(cls, name)
    ref = fields_of(cls).get(name)
    if ref is None:
        raise unknown_field(cls, name)
    return ref


def own_ref(cls: Any, field: str | StateFieldRef[Any]) -> StateFieldRef[Any]:
    """A field of a schema, given as that or by its name.

    Raises:
        UnknownNameError: It is none of this schema.
        UsageError: It is neither.
    """
    if not isinstance(cast("object", field), StateFieldRef):
        return ref_of(cls, cast("str", field))
    field = cast("StateFieldRef[Any]", field)
    if fields_of(cls).get(field.name) != field:
        raise UnknownNameError(
            f"{field!r} is no field of {cls.__name__}", unknown=field.name, known=fields_of(cls)
        )
    return field


def unknown_field(cls: Any, name: str) -> UnknownNameError:
    """The error about a name that is no field of a schema."""
    by_key = cls.__state_fields__.get(name)
    if by_key is not None:
        return UnknownNameError(
            f"{cls.__name__} has no field {name!r}",
            unknown=name,
            help=f"it is the key of the field {by_key.name!r}",
        )
    return UnknownNameError(
        f"{cls.__name__} has no field {name!r}", unknown=name, known=fields_of(cls)
    )


def _no_field(cls: Any, given: object) -> UsageError:
    return UsageError(
        f"a field of {cls.__name__} is meant by its name",
        found=describe(given),
        help=f"such as {next(iter(fields_of(cls)), 'intent')!r}",
    )


def _schemas_of(cls: type) -> list[Any]:
    """The schemas that a schema is made of: itself, and in Python's order what it inherits."""
    return [each for each in cls.__mro__ if isinstance(each, SchemaType)]


def _read(cls: Any, *, last: bool = False) -> None:
    """Turn what can be resolved of a schema's annotations into fields.

    Raises:
        SchemaError: A declaration makes no sense; or, at `last`, has a name that means nothing.
    """
    known: Declared = cls.__schema__
    names = names_of(cls, known.visible) if known.waiting else {}
    for name, (annotation, value) in list(known.waiting.items()):
        try:
            made = resolved(cls, name, annotation, known.module, names)
            ref = None if is_class_variable(made) else declared(cls, name, made, value)
        except UnknownTypeError as error:
            if last:
                raise _unresolved(cls, name, error) from error
            type.__setattr__(cls, name, Later(name))
            continue
        if ref is not None:
            known.own[name] = ref
            type.__setattr__(cls, name, ref)
        known.waiting.pop(name, None)  # another thread may have been faster
    if names and not known.waiting:
        known.visible = {}  # whatever they hold may go
        known.own = {name: known.own[name] for name in annotations_of(cls) if name in known.own}
    if known.alias is not None and not known.filled:
        _fill(cls)


def _fill(cls: Any) -> None:
    """Put types for the type variables of a generic schema, as soon as its annotations are read.

    Raises:
        SchemaError: A default does not fit.
    """
    known: Declared = cls.__schema__
    origin: Any = get_origin(known.alias)
    waiting = [name for each in _schemas_of(origin) for name in each.__schema__.waiting]
    if waiting:
        for name in waiting:
            type.__setattr__(cls, name, Later(name))
        return
    given = dict(zip(origin.__parameters__, get_args(known.alias), strict=True))
    for name, ref in fields_of(origin).items():
        annotation = fill(ref.annotation, given)
        if annotation is not ref.annotation:
            ref = known.own[name] = filled(cls, ref, annotation)  # noqa: PLW2901
        if ref.owner is cls or name in vars(cls):
            type.__setattr__(cls, name, ref)
    known.filled = True


def _type_variables(cls: Any) -> tuple[Any, ...]:
    alias = cls.__schema__.alias
    if alias is not None:
        return alias.__parameters__
    return open_in(cls, cls.__dict__.get("__orig_bases__", cls.__bases__))


def _visible_in(frame: FrameType) -> dict[str, Any]:
    """The local variables where a class statement stands."""
    names = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
    if frame.f_code.co_name.startswith("<generic parameters of") and frame.f_back is not None:
        return {**_visible_in(frame.f_back), **names}  # class Page[T] has a frame around it
    return names


def _merge(cls: Any) -> None:
    """Put the fields of a schema and of those it is made of together.

    Raises:
        SchemaCompositionError: They contradict each other.
    """
    found: dict[str, list[StateFieldRef[Any]]] = {}
    for each in reversed(_schemas_of(cls)):
        for name, ref in each.__schema__.own.items():
            found.setdefault(name, []).append(ref)
    by_name = {name: _agreed(cls, refs) for name, refs in found.items()}
    by_key: dict[str, StateFieldRef[Any]] = {}
    for ref in by_name.values():
        same = by_key.setdefault(ref.key, ref)
        if same is not ref:
            raise SchemaCompositionError(
                f"{cls.__name__} has two fields for the key {ref.key!r}",
                found=f"{_described(same)}, and {_described(ref)}",
                help="leave one of them out, or give it another key",
            )
    cls.__schema__.keys = MappingProxyType(by_key)
    cls.__schema__.fields = by_name


def _agreed(cls: Any, refs: list[StateFieldRef[Any]]) -> StateFieldRef[Any]:
    """What declarations of one field come to: the one that Python finds, if none contradicts it.

    Args:
        cls: The schema that has them all.
        refs: The declarations, that of the schema nearest to `cls` last.

    Raises:
        SchemaCompositionError: One does.
    """
    *others, ref = refs
    for other in others:
        if any(other is each.fills for each in refs):
            continue  # there are types for its type variables
        if other != ref:
            raise SchemaCompositionError(
                f"{cls.__name__} has two different fields {ref.name!r}",
                found=f"{_described(other)}, and {_described(ref)}",
                help="declare both alike, or give one of them another name",
            )
        again = any(each is not other and issubclass(each.owner, other.owner) for each in refs)
        if not again and (other.reducer != ref.reducer or not other.has_default_of(ref)):
            raise SchemaCompositionError(
                f"{cls.__name__} has two fields {ref.name!r} that differ",
                found=f"{_described(other)}, and {_described(ref)}",
                help=f"declare both alike, or say which holds: declare {ref.name!r} in "
                f"{cls.__name__}, too",
            )
    return ref


def _check_names(cls: Any, own: Mapping[str, Any], namespace: Mapping[str, Any]) -> None:
    """Refuse fields that hide what a schema has, and attributes that hide fields.

    Raises:
        SchemaError: There is one.
    """
    for name in own:
        if name in TAKEN:
            raise SchemaError(
                f"{cls.__name__} cannot have a field {name!r}",
                found=f"StateSchema.{name}, which it would hide",
                help=f'give the attribute another name: {name}_: ... = field(key="{name}")',
            )
    for name, value in namespace.items():
        if isinstance(value, Spec) and name not in own:
            raise SchemaError(
                f"{cls.__name__}.{name} has no type",
                found="field(...) without an annotation",
                help=f"{name}: SessionScoped[str] = field(...), for example",
            )
        if is_scope(get_origin(value) or value) and name not in own:
            raise SchemaError(
                f"{cls.__name__}.{name} is assigned a type",
                found=f"{name} = {type_name(value)}",
                help=f"a field is annotated: {name}: SessionScoped[str], for example",
            )
    others: list[type] = [
        each for each in cls.__mro__ if each is cls or not isinstance(each, SchemaType)
    ]
    taken = {name for each in others for name in vars(each)} - own.keys()
    for each in _schemas_of(cls)[1:]:
        known: Declared = each.__schema__
        for name in taken & (known.own.keys() | known.waiting.keys()):
            first = next(above for above in cls.__mro__ if name in vars(above))
            if first in others:
                raise SchemaError(
                    f"{first.__name__}.{name} hides the field {each.__name__}.{name}",
                    help="annotate it to give it another default, or choose another name",
                )


def _described(ref: StateFieldRef[Any]) -> str:
    more = [ref.scope, repr(ref.key), *([] if ref.reducer is None else [repr(ref.reducer)])]
    if default := ref.shown_default():
        more.append(f"default {default}")
    return f"{ref.owner.__name__}.{ref.name}: {type_name(ref.type)} ({', '.join(more)})"


def _unresolved(cls: Any, name: str, error: UnknownTypeError) -> SchemaError:
    return SchemaError(
        f"the annotation of {cls.__name__}.{name} names {str(error)!r}, which is not defined",
        help="import it where it is there at run time, not under `if TYPE_CHECKING`, or define it "
        "before it is used; what is local to a function has to be defined before the class",
    )
