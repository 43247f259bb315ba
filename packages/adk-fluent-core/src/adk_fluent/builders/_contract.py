"""What users promise about state: schemas, boundaries, and findings that are meant to be so."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._words import describe
from adk_fluent.builders._keys import as_key
from adk_fluent.errors import UsageError
from adk_fluent.ir import Contract, Ref, StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.builders._types import KeyLike

_CODE: Final = r"[A-Z]{2,8}[0-9]{3}"
_FIELDS: Final = ("schema", "enforce", "extra", "inputs", "outputs", "allow")


def promised(known: Contract | None, **changes: Any) -> Contract:
    """A contract with some promises changed."""
    if known is None:
        return Contract(**changes)
    return Contract(**{**{name: getattr(known, name) for name in _FIELDS}, **changes})


def as_state_rules(value: object, role: str) -> Ref:
    """A state schema.

    Raises:
        UsageError: It is none.
    """
    if isinstance(value, type) and hasattr(value, "__state_fields__"):
        return Ref.to(value)
    raise UsageError(
        f"{role} takes a state schema",
        found=describe(value),
        help="a subclass of adk_fluent.state.StateSchema (pip install adk-fluent-state)",
    )


def as_boundary(keys: Iterable[KeyLike], role: str) -> tuple[StateFieldRef, ...]:
    """State keys, each once; none is an answer, too.

    Raises:
        UsageError: One is no state key, or the whole is one text.
    """
    if isinstance(keys, str):
        raise UsageError(f"{role} takes several keys", found=repr(keys), help=f"[{keys!r}]")
    found = [as_key(each, role) for each in keys]
    return tuple({ref.key: ref for ref in found}.values())


def as_code(value: object) -> str:
    """The code of a kind of finding.

    Raises:
        UsageError: It does not look like one.
    """
    if isinstance(value, str) and re.fullmatch(_CODE, value):
        return value
    raise UsageError(
        ".allow(...) takes codes of findings",
        found=repr(value) if isinstance(value, str) else describe(value),
        help='such as "FLW008": adk_fluent.contracts.CODES lists them',
    )
