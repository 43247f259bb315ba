"""Reading what a schema class declares: annotations, in every way Python has of keeping them."""

from __future__ import annotations

import operator
import sys
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType, MethodType
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, cast, get_args, get_origin

from adk_fluent.extend import describe, storage_fault
from adk_fluent.ir import UNSET, is_reserved_key
from adk_fluent.ir import StateFieldRef as Key
from adk_fluent.state._codec import SCALARS, is_optional, members, plain_classes
from adk_fluent.state._errors import SchemaError
from adk_fluent.state._field import Spec
from adk_fluent.state._generic import fill
from adk_fluent.state._reduce import Reduce, takes
from adk_fluent.state._ref import (
    SessionScoped,
    StateFieldRef,
    Unreadable,
    is_scope,
    shown,
    type_name,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_PYDANTIC: Final = "pydantic.fields"
#: What elsewhere is a reducer by itself.
_FUNCTIONS: Final = (FunctionType, BuiltinFunctionType, MethodType, MethodDescriptorType)
#: What may stand around a type elsewhere, or for one.
_NO_VALUES: Final = frozenset({"ClassVar", "NotRequired", "ReadOnly", "Required", "Self", "Unpack"})
#: Constraints that need no pydantic, whose import is slow.
_HOLDS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "gt": operator.gt,
    "ge": operator.ge,
    "lt": operator.lt,
    "le": operator.le,
    "min_length": lambda value, least: len(value) >= least,
    "max_length": lambda value, most: len(value) <= most,
}


class UnknownTypeError(Exception):
    """A name in an annotation means nothing yet; the message is the name."""


def annotations_of(cls: type) -> dict[str, Any]:
    """The annotations in the body of a class: objects, text, or a mixture."""
    if sys.version_info >= (3, 14):
        import annotationlib  # noqa: PLC0415

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    # inspect.get_annotations is the same, and its import is expensive
    return dict(cls.__dict__.get("__annotations__", {}))  # noqa: RUF063


def names_of(cls: type, visible: Mapping[str, Any]) -> dict[str, Any]:
    """What names in the annotations of a class may mean, beside those of its module.

    Args:
        cls: The class whose body has the annotations.
        visible: The local variables where it stands.
    """
    # a field's own default is no type, as of `date: date | None = None`
    own = annotations_of(cls)
    body = {key: value for key, value in vars(cls).items() if key not in own}
    variables = {each.__name__: each for each in body.get("__type_params__", ())}  # class Page[T]
    return {**visible, **variables, **body}


def resolved(cls: type, name: str, annotation: Any, *names: dict[str, Any]) -> Any:
    """The annotation of a field as a type.

    Args:
        cls: The class whose body has it.
        name: The field's name.
        annotation: The annotation.
        names: The names of its module, and those of `names_of`.

    Raises:
        UnknownTypeError: It has a name that means nothing yet.
        SchemaError: It cannot be evaluated.
    """
    from typing import get_type_hints  # noqa: PLC0415

    holder = type("_", (), {"__annotations__": {"field": annotation}, "__module__": cls.__module__})
    try:
        return get_type_hints(holder, *names, include_extras=True)["field"]
    except NameError as error:
        raise UnknownTypeError(error.name or str(error)) from error
    except Exception as error:
        raise unreadable(f"{cls.__name__}.{name}", annotation, error) from error


def unreadable(where: str, annotation: Any, error: Exception) -> SchemaError:
    """The error about an annotation that cannot be evaluated."""
    return SchemaError(
        f"the annotation of {where} cannot be evaluated",
        found=f"{annotation!r}: {type(error).__name__}: {error}",
        help="write a type, as in SessionScoped[str]",
    )


def is_class_variable(annotation: Any) -> bool:
    """Whether a resolved annotation says that it is none of an instance."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def declared(cls: type, name: str, annotation: Any, value: Any) -> StateFieldRef[Any]:
    """The field that an annotation and a default declare.

    Args:
        cls: The schema.
        name: The field's name.
        annotation: Its type, resolved.
        value: What is assigned to it, else `UNSET`.

    Raises:
        SchemaError: It makes no sense.
    """
    where = f"{cls.__name__}.{name}"
    spec, metadata = _given(value)
    kind = _take_apart(where, annotation, metadata, spec)
    spec.scope = kind.scope_of()
    _check_key(where, spec, name)
    return _checked(kind, cls, name, spec)


def filled(cls: type, ref: StateFieldRef[Any], annotation: Any) -> StateFieldRef[Any]:
    """A field of a generic schema in one that has types for its type variables.

    Args:
        cls: The schema that has them.
        ref: The field.
        annotation: Its type with them.

    Raises:
        SchemaError: Its default is not of that type.
    """
    spec = ref.spec_of(annotation)
    _take_apart(f"{cls.__name__}.{ref.name}", annotation, [], spec)
    made = _checked(type(ref), cls, ref.name, spec)
    made.fills = ref
    return made


def _checked(
    kind: type[StateFieldRef[Any]], cls: type, name: str, spec: Spec
) -> StateFieldRef[Any]:
    """The field that is declared so, with a default that fits as far as that is known."""
    _check_default(f"{cls.__name__}.{name}", spec)
    ref = kind.declared(cls, name, spec)
    if not _surely_fits(spec):
        ref.check_default()
    return ref


def _given(value: Any) -> tuple[Spec, list[Any]]:
    """What is assigned to a field: a default as Python has it, `field(...)`, or pydantic's."""
    if isinstance(value, Spec):
        return replace(value, constraints=dict(value.constraints)), []
    if _is_pydantic_field(value):
        return Spec(), [value]
    return Spec(default=value), []


def _take_apart(
    where: str, annotation: Any, metadata: list[Any], spec: Spec
) -> type[StateFieldRef[Any]]:
    """Put the type, its constraints and its reducer into `spec`; gives the scope's class."""
    kinds: list[type[StateFieldRef[Any]]] = []
    while True:
        annotation = _meant(where, annotation)
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *more = get_args(annotation)
            metadata[:0] = more
        elif is_scope(origin):
            kinds.append(cast("type[StateFieldRef[Any]]", origin))
            (annotation,) = get_args(annotation)
        else:
            break
    _check_type(where, annotation)
    kept: list[Any] = []
    for each in metadata:
        if (scope := _scope_in(each)) is not None:
            kinds.append(scope)
        elif isinstance(each, Reduce) and spec.reduce is None:
            spec.reduce = each.function
        elif isinstance(each, Reduce) or each is Reduce:
            found = "Reduce without a function" if each is Reduce else "two reducers"
            raise SchemaError(
                f"{where} needs one reducer", found=found, help="Reduce(operator.add)"
            )
        elif isinstance(each, _FUNCTIONS):
            raise SchemaError(
                f"{where} has a function among its annotations, which says nothing",
                found=describe(each),
                help="a reducer is said by Reduce(operator.add), a validator by pydantic's "
                "AfterValidator(...)",
            )
        else:
            kept.append(each)
            if _is_pydantic_field(each):
                _adopt(spec, each)
    if len(set(kinds)) > 1:
        names = " and ".join(each.__name__ for each in kinds)
        raise SchemaError(f"{where} has two scopes", found=names, help="leave one of them out")
    spec.annotation = Annotated[(annotation, *kept)] if kept else annotation
    return kinds[0] if kinds else SessionScoped


def _meant(where: str, annotation: Any) -> Any:
    """What an annotation stands for, if that is a scope that a `type` statement names.

    Raises:
        UnknownTypeError: It has a name that means nothing yet.
        SchemaError: It stands for itself.
    """
    seen: list[Any] = []
    value = annotation
    while type(alias := get_origin(value) or value).__name__ == "TypeAliasType":
        if any(alias is each for each in seen):
            raise SchemaError(f"{where} has a type that stands for itself", found=repr(alias))
        seen.append(alias)
        given = dict(zip(alias.__type_params__, get_args(value), strict=False))
        try:
            value = fill(alias.__value__, given)
        except NameError as error:
            raise UnknownTypeError(error.name or str(error)) from error
    # of others, pydantic knows more by their names
    return value if any(map(_is_ours, _parts(value))) else annotation


def _adopt(spec: Spec, info: Any) -> None:
    """A default and a description that pydantic's `Field(...)` gives."""
    if spec.default is UNSET and spec.default_factory is None and not info.is_required():
        spec.default_factory = info.default_factory
        if info.default_factory is None:
            spec.default = info.default
    spec.doc = spec.doc or info.description or ""


def _check_type(where: str, annotation: Any) -> None:
    """Refuse what is no type of values; what pydantic knows is found out when it is first used."""
    if isinstance(annotation, Unreadable):
        raise unreadable(where, annotation.text, annotation.error) from annotation.error
    if is_scope(annotation):
        raise SchemaError(
            f"{where} has a scope, and no type", help=f"{annotation.__name__}[str], for example"
        )
    form = getattr(get_origin(annotation) or annotation, "_name", None)
    if form == "Final":
        raise SchemaError(f"{where} is Final, but state changes", help="leave Final out")
    if form in _NO_VALUES or type(annotation).__name__ == "InitVar":
        raise SchemaError(
            f"{where} cannot be {form or 'InitVar'}", help="write the type of its values alone"
        )
    if type(annotation).__module__ == "builtins" and not isinstance(annotation, type):
        raise SchemaError(
            f"the annotation of {where} is no type",
            found=shown(annotation),
            help="write a type, as in SessionScoped[str]; a default is assigned",
        )
    for part in _parts(annotation):
        if _is_ours(part):
            kind = "reducer" if isinstance(part, Reduce) else "scope"
            raise SchemaError(
                f"{where} has a {kind} inside of its type",
                found=type_name(annotation),
                help="put it around all of it: UserScoped[str | None], or "
                "UserScoped[Annotated[list[str], Reduce(operator.add)]]",
            )
        if hasattr(cast("Any", type(part)), "__state_fields__"):
            raise SchemaError(
                f"{where} has a state schema as its type",
                found=type_name(annotation),
                help="inherit from it, to have its fields here, too; or make it a pydantic model",
            )


def _is_ours(part: Any) -> bool:
    """Whether a part of an annotation says something of the field, and not of its type."""
    return is_scope(get_origin(part) or part) or isinstance(part, Reduce)


def _parts(annotation: Any) -> Iterator[Any]:
    """A type, and what is in it."""
    yield annotation
    for each in get_args(annotation):
        yield from _parts(each)


def _check_key(where: str, spec: Spec, name: str) -> None:
    key = spec.key or name
    if not isinstance(cast("object", key), str):
        raise SchemaError(f"the key of {where} is no str", found=shown(key))
    if ":" in key and (key.startswith(":") or Key(key).scope != "session"):
        raise SchemaError(
            f"the key of {where} has a prefix",
            found=repr(key),
            help="say the scope by the type, UserScoped[str], and the key without it",
        )
    if is_reserved_key(key) or not key.strip():
        raise SchemaError(
            f"{where} cannot have this key",
            found=repr(key),
            help="keys that start with _adk are ADK's and adk-fluent's own",
        )


def _check_default(where: str, spec: Spec) -> None:
    """Refuse a default that is obviously wrong; others are looked at when they are first used."""
    if spec.default is not UNSET and spec.default_factory is not None:
        raise SchemaError(f"{where} has a default and a default_factory", help="leave one out")
    if spec.default_factory is not None and not takes(spec.default_factory):
        raise SchemaError(
            f"the default_factory of {where} cannot be called without arguments",
            found=describe(spec.default_factory),
            help="default_factory=list, for example",
        )
    value, type_ = spec.default, spec.annotation
    if type_ is float and type(value) is int:
        spec.default = float(value)
    elif value is not UNSET and (
        (value is None and not is_optional(type_))
        or (isinstance(type_, type) and type_ in SCALARS and type(value) is not type_)
    ):
        name = type_name(type_)
        raise SchemaError(
            f"the default of {where} is no {name}",
            found=shown(value),
            help=f"write a default of its type, or {name} | {type_name(type(value))} as the type"
            if value is not None
            else f"leave the default out, or write {name} | None as the type",
        )


def _surely_fits(spec: Spec) -> bool:
    """Whether a default fits that needs no pydantic, whose import is slow; also if there is none.

    What a factory of somebody's makes is looked at when it is read, as pydantic does.
    """
    value = spec.plain_default
    if value is UNSET or value is None:
        return True
    kind = cast("type[Any]", type(value))
    if kind in plain_classes(spec.annotation):
        fits = storage_fault(value) is None
    else:  # an empty tuple may be too short
        empty = kind in (list, dict, set, frozenset) and not value
        fits = empty and any(
            (get_origin(each) or each) is kind for each in members(spec.annotation)
        )
    try:
        return fits and all(_HOLDS[name](value, given) for name, given in spec.constraints.items())
    except (KeyError, TypeError):
        return False


def _scope_in(metadata: Any) -> type[StateFieldRef[Any]] | None:
    """The scope that a part of an `Annotated` is: ``UserScoped``, ``UserScoped[str]``."""
    kind = get_origin(metadata) or metadata
    return kind if is_scope(kind) else None


def _is_pydantic_field(value: Any) -> bool:
    return type(value).__module__ == _PYDANTIC and hasattr(value, "default_factory")
