"""Bringing state that was written under an older version of its schema to this one.

A schema with ``__version__ = 2`` or more stamps the state it meets, each scope for itself, since a
user's keys are shared by sessions that are upgraded at other times. No stamp is version 1.
"""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from adk_fluent.errors import Details, StateTypeError, nearest_name
from adk_fluent.ir import Scope, is_reserved_key
from adk_fluent.ir import StateFieldRef as Key
from adk_fluent.state._codec import same
from adk_fluent.state._errors import SchemaError, SchemaUpgradeError
from adk_fluent.state._ref import PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Unpack

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


def stamps(cls: Any, scopes: Iterable[Scope]) -> dict[str, int]:
    """What says in state that it is of this version, in each of the scopes."""
    return {f"{PREFIXES[scope]}{STAMP}{cls.__name__}": version_of(cls) for scope in scopes}


class _Step(NamedTuple):
    """From one version of a schema to another."""

    schema: Any
    stored: Any
    wanted: int

    def __str__(self) -> str:
        return f"{self.schema.__name__}.upgrade(...) from version {self.stored}"

    def failed(self, what: str, **details: Unpack[Details]) -> SchemaUpgradeError:
        """The error about it."""
        details.setdefault("help", "mend it: the next read tries it again")
        return SchemaUpgradeError(what, stored=self.stored, wanted=self.wanted, **details)


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
                step = _Step(cls, 1 if stored is None else stored, wanted)
                delta.update(_upgraded(step, held, fields))
            delta[key] = wanted
    return delta


def _scopes(fields: Mapping[str, StateFieldRef[Any]]) -> list[Scope]:
    used = {ref.scope for ref in fields.values()}
    shared: tuple[Scope, ...] = ("user", "app")
    return ["session", *(scope for scope in shared if scope in used)]


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
    step: _Step, held: dict[str, Any], fields: Mapping[str, StateFieldRef[Any]]
) -> dict[str, Any]:
    """What `upgrade` of a schema changes in the keys of one scope."""
    if type(step.stored) is not int or not 1 <= step.stored < step.wanted:
        raise step.failed(
            f"state is of version {step.stored!r} of {step.schema.__name__}, which knows "
            f"versions up to {step.wanted}",
            help="run the code that wrote it, or a newer one",
        )
    new = deepcopy(held)
    own = step.schema.__dict__.get("upgrade")  # what it inherits is run for its own version
    if own is not None:
        try:
            own.__get__(None, step.schema)(new, step.stored)
        except Exception as error:
            raise step.failed(
                f"{step} failed; nothing is changed", found=f"{type(error).__name__}: {error}"
            ) from error
    delta: dict[str, Any] = dict.fromkeys(held.keys() - new.keys())
    for key, value in new.items():
        if key not in held or not same(held[key], value):
            delta[key] = _fitting(step, key, value, fields)
    return delta


def _fitting(step: _Step, key: str, value: Any, fields: Mapping[str, StateFieldRef[Any]]) -> Any:
    ref = fields.get(key)
    if ref is None:
        near = nearest_name(key, fields)
        raise step.failed(
            f"{step} writes {key!r}, which is no key of the schema; nothing is changed",
            help=f"did you mean {near!r}?" if near else "declare it, or leave it out",
        )
    try:
        return ref.take(value, str(step))
    except StateTypeError as error:
        raise step.failed(
            f"{step} makes what does not fit; nothing is changed", found=error.what
        ) from error
