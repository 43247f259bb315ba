"""What a directory knows of an agent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adk_fluent.a2a._catalogs import publisher_of

if TYPE_CHECKING:
    from a2a.types import AgentCard


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """An agent that a directory named, and whose card was read and checked.

    ``RemoteAgent.from_card(entry)`` makes a step of it.

    Attributes:
        card: Its card.
        identifier: What the directory calls it, such as ``urn:air:acme.com:agent:payments``; ""
            where there was only a card.
        card_url: Where the card came from; "" where the directory itself, or you, gave it.
        directory: The address of the directory; "" of a card or a file of yours.
    """

    card: AgentCard
    identifier: str = ""
    card_url: str = ""
    directory: str = ""

    @property
    def name(self) -> str:
        """What the card calls it."""
        return self.card.name

    @property
    def publisher(self) -> str:
        """The domain in its identifier; "" where it has none. Nobody has verified it."""
        return publisher_of(self.identifier)
