"""Bringing state that was written under an older version of its schema to this one.

A schema with ``__version__ = 2`` or more stamps the state it meets, each scope for itself, since a
user's keys are shared by sessions that are upgraded at other times. No stamp is version 1.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.errors import StateTypeError, nearest_name
from adk_fluent.ir import StateFieldRef as Key
from adk_fluent.ir import is_reserved_key
from adk_fluent.state._errors import SchemaError, SchemaUpgradeError
from adk_fluent.state._ref import PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adk_fluent.state._ref import StateFieldRef

#: Where a version is kept, behind the scope's prefix and before the schema's name.
STAMP: Final = "_adkf_version:"


def version_of(cls: Any) -> int:
    """The version that a schema class itself declares; 1 if it declares none.

    Raises:
        SchemaError: It is no int from 1 on.
    """
    version = cls.__dict__.get("__version__", 1)
    if type(version) is int and version >= 1:
        return version
    raise SchemaError(
        f"{cls.__name__}.__version__ is no version",
        found=repr(version),
        help="count from 1: __version__: ClassVar[int] = 2",
    )


def stamps(cls: Any, scopes: Iterable[str]) -> dict[str, int]:
    """What says in state that it is of this version, in each of the scopes."""
    return {f"{PREFIXES[scope]}{STAMP}{cls.__name__}": version_of(cls) for scope in scopes}  # type: ignore[index]


def upgrade_delta(
    classes: Iterable[Any], fields: Mapping[str, StateFieldRef[Any]], state: Any
) -> dict[str, Any]:
    """What has to be written to bring state to the versions of these classes; {} is nothing.

    Args:
        classes: Schema classes with a version above 1.
        fields: The fields that state may hold, by key.
        state: State as it is; it is not changed.

    Raises:
        SchemaUpgradeError: It cannot be done.
    """
    delta: dict[str, Any] = {}
    for cls in classes:
        for scope in _scopes(fields):
            ((key, wanted),) = stamps(cls, [scope]).items()
            stored = state.get(key)
            if stored == wanted:
                continue
            held = _held(state, delta, scope)
            if held:
                delta.update(_upgraded(cls, held, 1 if stored is None else stored, wanted, fields))
            delta[key] = wanted
    return delta


def _scopes(fields: Mapping[str, StateFieldRef[Any]]) -> list[str]:
    used = {ref.scope for ref in fields.values()}
    return ["session", *(scope for scope in ("user", "app") if scope in used)]


def _held(state: Any, delta: Mapping[str, Any], scope: str) -> dict[str, Any]:
    """A copy of the users' own keys of a scope that have a value."""
    items = state.to_dict() if hasattr(state, "to_dict") else dict(state)
    held: dict[str, Any] = {}
    for key, value in {**items, **delta}.items():
        ref = Key(key)
        if ref.scope == scope and value is not None and not is_reserved_key(ref.name):
            held[key] = deepcopy(value)
    return held


def _upgraded(
    cls: Any,
    held: dict[str, Any],
    stored: Any,
    wanted: int,
    fields: Mapping[str, StateFieldRef[Any]],
) -> dict[str, Any]:
    name = f"{cls.__name__} {wanted}"
    if type(stored) is not int or not 1 <= stored < wanted:
        raise SchemaUpgradeError(
            f"state is of version {stored!r} of {cls.__name__}, which {name} does not know",
            stored=stored,
            wanted=wanted,
            help="run the code that wrote it, or a newer one",
        )
    new = deepcopy(held)
    own = cls.__dict__.get("upgrade")
    if own is not None:
        try:
            own.__get__(None, cls)(new, stored)
        except Exception as error:
            raise SchemaUpgradeError(
                f"{cls.__name__}.upgrade(...) from version {stored} failed; nothing is changed",
                stored=stored,
                wanted=wanted,
                found=f"{type(error).__name__}: {error}",
                help="mend it: the next read tries it again",
            ) from error
    delta: dict[str, Any] = {key: None for key in held.keys() - new.keys()}
    for key, value in new.items():
        if key in held and held[key] == value and type(held[key]) is type(value):
            continue
        delta[key] = _fitting(key, value, stored, wanted, fields, cls)
    return delta


def _fitting(
    key: str,
    value: Any,
    stored: int,
    wanted: int,
    fields: Mapping[str, StateFieldRef[Any]],
    cls: Any,
) -> Any:
    where = f"{cls.__name__}.upgrade(...)"
    ref = fields.get(key)
    if ref is None:
        near = nearest_name(key, fields)
        raise SchemaUpgradeError(
            f"{where} from version {stored} writes {key!r}, which is no key of the schema",
            stored=stored,
            wanted=wanted,
            help=f"did you mean {near!r}?" if near else "declare it, or leave it out",
        )
    try:
        return ref.take(value, where)
    except StateTypeError as error:
        raise SchemaUpgradeError(
            f"{where} from version {stored} makes what does not fit; nothing is changed",
            stored=stored,
            wanted=wanted,
            found=error.what,
            help="mend it: the next read tries it again",
        ) from error
