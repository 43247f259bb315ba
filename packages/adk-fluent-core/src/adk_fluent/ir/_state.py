"""State keys as data: which keys a step reads and writes."""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

from adk_fluent.ir._record import record
from adk_fluent.ir._ref import Ref

#: Where ADK keeps a state key: with the session, the user, the app, or for one run only.
Scope = Literal["session", "user", "app", "temp"]
#: Every `Scope`.
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)


class _Unset:
    """The type of `UNSET`: a field nobody set, which is not the same as one set to None."""

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> Literal[False]:
        return False

    def __reduce__(self) -> str:
        return "UNSET"


#: Stands for a field that nobody set, which is not the same as one set to None.
UNSET: Final[Any] = _Unset()


@record
class StateFieldRef:
    """A key of session state, with what is known about it.

    Attributes:
        key: The full ADK key with its scope prefix (``"intent"``, ``"user:tier"``, ``"temp:x"``).
        type: The declared type, or None when unknown.
        scope: Where ADK keeps it; derived from the prefix of `key`.
        default: The value a reader gets when the key is absent, or `UNSET`.
        reducer: ``fn(one, other) -> both``, which makes one value of what parallel branches and
            items of a map write; None lets the last one in declared order win.
    """

    key: str
    type: Any = None
    scope: Scope = "session"
    default: Any = UNSET
    reducer: Ref | None = None

    def __post_init__(self) -> None:
        prefix = self.key.partition(":")[0] if ":" in self.key else "session"
        scope = prefix if prefix in SCOPES else "session"
        if self.scope != scope:
            if self.scope != "session":
                raise ValueError(f"state key {self.key!r} has scope {scope!r}, not {self.scope!r}")
            object.__setattr__(self, "scope", scope)

    @property
    def name(self) -> str:
        """The key without its scope prefix."""
        return self.key.partition(":")[2] if self.scope != "session" else self.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.key


@record
class Effects:
    """What a function does to state.

    Attributes:
        reads: Keys it reads; one with a default may be absent.
        writes: Keys it gives a value.
        opaque: True when it may touch keys that are not listed.
        may_write: Keys it gives a value sometimes.
    """

    reads: tuple[StateFieldRef, ...] = ()
    writes: tuple[StateFieldRef, ...] = ()
    opaque: bool = True
    may_write: tuple[StateFieldRef, ...] = ()


#: What becomes of a write that breaks a state schema.
Enforcement = Literal["error", "warn", "off"]
#: Every `Enforcement`.
ENFORCEMENTS: Final[tuple[Enforcement, ...]] = get_args(Enforcement)


@record
class Contract:
    """What a part of a pipeline promises about state, and what checks shall not say about it.

    Attributes:
        schema: The state schema that everything in the part keeps to.
        enforce: What happens to a write in a run that breaks the schema: ``error`` stops the run,
            ``warn`` logs it, ``off`` looks at nothing.
        extra: Whether keys that the schema does not declare may be used.
        inputs: Keys that have a value when the part begins; None says nothing about it.
        outputs: Keys that somebody reads when the part is done; None says nothing about it.
        allow: Codes of findings that are meant to be so, in this part.
    """

    schema: Ref | None = None
    enforce: Enforcement = "error"
    extra: Literal["forbid", "allow"] = "forbid"
    inputs: tuple[StateFieldRef, ...] | None = None
    outputs: tuple[StateFieldRef, ...] | None = None
    allow: tuple[str, ...] = ()


#: The effects of a function of which nothing is known.
OPAQUE: Final = Effects()
