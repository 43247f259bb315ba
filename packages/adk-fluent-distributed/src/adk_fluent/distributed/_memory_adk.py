"""ADK's sessions in memory, with the rules of an engine's database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.sessions import InMemorySessionService

from adk_fluent.distributed._codecs import state_fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.distributed._codecs import Codec
    from adk_fluent.extend import StorageFault


class MemorySessions(InMemorySessionService):
    """Sessions in memory that refuse what could not be kept in a database.

    Attributes:
        codecs: What carries state that JSON cannot hold.
    """

    codecs: Sequence[Codec] = ()

    def __state_fault__(self, value: object) -> StorageFault | None:
        """Why a value cannot be kept in state, for core; None where it can."""
        return state_fault(value, self.codecs)
