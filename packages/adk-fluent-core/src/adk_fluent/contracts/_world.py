"""What is known of state before a pipeline begins and after it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from adk_fluent._words import describe
from adk_fluent.errors import UsageError
from adk_fluent.ir import StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from adk_fluent.ir import Contract
    from adk_fluent.protocol import FieldRef, StateRules

    #: A state key: its name, or a field of a state schema.
    KeyLike: TypeAlias = str | FieldRef


@dataclass(frozen=True, slots=True)
class World:
    """What is around a pipeline.

    Attributes:
        inputs: Keys that have a value when it begins.
        outputs: Keys that somebody reads when it is done; None: nothing is known about that.
        unknown: Whether other keys may have a value when it begins.
        runs: Whether a run is about to begin, so that only what it fails at is an error.
        schema: The state schema that all of it keeps to, beside those of its parts.
    """

    inputs: Mapping[str, StateFieldRef] = field(default_factory=dict[str, StateFieldRef])
    outputs: Mapping[str, StateFieldRef] | None = None
    unknown: bool = False
    runs: bool = False
    schema: StateRules | None = None

    def within(self, contract: Contract | None) -> World:
        """The same with what the pipeline itself declares."""
        if contract is None:
            return self
        inputs = {ref.key: ref for ref in contract.inputs or ()} | dict(self.inputs)
        outputs = self.outputs
        if contract.outputs is not None:
            outputs = {ref.key: ref for ref in contract.outputs} | dict(outputs or {})
        unknown = self.unknown and contract.inputs is None
        return World(inputs, outputs, unknown, self.runs, self.schema)


def as_refs(
    keys: Mapping[str, Any] | Iterable[KeyLike] | None, role: str
) -> dict[str, StateFieldRef] | None:
    """State keys by their names, with what is known about them.

    Raises:
        UsageError: One is no state key, or the whole is one text.
    """
    if keys is None:
        return None
    if isinstance(keys, str):
        raise UsageError(f"{role} takes several keys", found=repr(keys), help=f"[{keys!r}]")
    if isinstance(keys, Mapping):
        types = cast("Mapping[object, Any]", keys)
        refs = [StateFieldRef(_name(key, role), kind) for key, kind in types.items()]
    else:
        refs = [_ref(each, role) for each in keys]
    return {ref.key: ref for ref in refs}


def as_rules(schema: object) -> StateRules | None:
    """A state schema.

    Raises:
        UsageError: It is none.
    """
    if schema is None or hasattr(schema, "__state_fields__"):
        return cast("StateRules | None", schema)
    raise UsageError(
        "schema takes a state schema",
        found=describe(schema),
        help="a subclass of adk_fluent.state.StateSchema (pip install adk-fluent-state)",
    )


def _ref(value: KeyLike, role: str) -> StateFieldRef:
    if isinstance(value, StateFieldRef):
        return value
    if isinstance(value, str):
        return StateFieldRef(_name(value, role))
    key = _name(getattr(value, "key", None), role)
    return StateFieldRef(key, value.type, default=value.default)


def _name(key: object, role: str) -> str:
    if isinstance(key, str) and key.strip():
        return key
    raise UsageError(
        f"{role} takes state keys",
        found=describe(key),
        help='pass a key such as "intent" or "user:tier", or a field of a StateSchema',
    )
