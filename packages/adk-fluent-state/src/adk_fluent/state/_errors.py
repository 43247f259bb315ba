"""What state schemas raise by themselves; a value that is missing or wrong raises core's errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.errors import (
    Details,
    RunError,
    StateTypeError,
    UnstorableValueError,
    UsageError,
)

if TYPE_CHECKING:
    from typing import Unpack


class SchemaError(UsageError):
    """A state schema as written has no meaning, or is used as what it is not.

    Cause: an annotation that cannot be evaluated, a field name that is taken, a default that does
    not fit, and the like.
    Fix: change the field that the message names.
    """

    code = "ADKF600"


class SchemaCompositionError(SchemaError):
    """Two state schemas that are put together contradict each other.

    Cause: the same field with another type, scope, key, reducer or default, or two fields with the
    same key.
    Fix: give both the same declaration, or one of them another name; where only reducers or
    defaults differ, the class that has both may declare the field itself.
    """

    code = "ADKF601"


class SchemaUpgradeError(RunError):
    """State of another version of its schema could not be brought to this one; nothing is changed.

    Cause: `upgrade` raised, made a value that does not fit, or state is newer than the schema.
    Fix: mend `upgrade`; the next read tries it again.

    Attributes:
        stored: The version that state has.
        wanted: The version of the schema.
    """

    code = "ADKF602"

    def __init__(
        self, what: str, *, stored: object, wanted: int, **details: Unpack[Details]
    ) -> None:
        self.stored = stored
        self.wanted = wanted
        super().__init__(what, **details)


class StateConflictError(RunError):
    """A value was written by somebody else while it was being edited; the edit is not written.

    Cause: two tools, or a tool and what it calls, change the same key at once.
    Fix: edit without waiting for anything in between, or give each a key of its own.

    Attributes:
        key: The key, with its scope prefix.
    """

    code = "ADKF603"

    def __init__(self, what: str, *, key: str, **details: Unpack[Details]) -> None:
        self.key = key
        super().__init__(what, **details)


class UnstorableStateError(StateTypeError, UnstorableValueError):
    """A field was given a value of its type that no session service keeps as it is.

    Cause: not-a-number, half a character, or text with NUL.
    Fix: write what the message names.

    Attributes:
        key: The key, with its scope prefix.
    """

    code = "ADKF604"

    def __init__(self, what: str, *, key: str, **details: Unpack[Details]) -> None:
        super().__init__(what, key=key, **details)
        self.key = key


for _each in (
    *(SchemaCompositionError, SchemaError, SchemaUpgradeError, StateConflictError),
    UnstorableStateError,
):
    _each.__module__ = "adk_fluent.state"  # where they are public
