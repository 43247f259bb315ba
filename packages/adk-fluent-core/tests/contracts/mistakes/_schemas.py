"""What mistakes are made of that no correct program needs: schemas, and what core knows of them."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from adk_fluent.ir import Modality, StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DeckState",
    "Level",
    "Literal",
    "Modality",
    "ReviewState",
    "SearchState",
    "StateFieldRef",
    "TicketState",
]


class Level(Enum):
    """How bad something is, in words."""

    LOW = "low"
    HIGH = "high"


class _Schema:
    """The part of a state schema that core knows; the rest is another wheel's."""

    __state_fields__: ClassVar[Mapping[str, StateFieldRef]] = {}

    @classmethod
    def __state_encode__(cls, delta: Mapping[str, Any], where: str, /) -> dict[str, Any]:
        return dict(delta)


def _fields(**types: Any) -> dict[str, StateFieldRef]:
    return {key: StateFieldRef(key, kind) for key, kind in types.items()}


class ReviewState(_Schema):
    """Lacks what the critic writes."""

    __state_fields__ = _fields(revised=str)


class SearchState(_Schema):
    """Has a grade that is a number."""

    __state_fields__ = _fields(
        **dict.fromkeys(("plan", "plan_decision", "web_notes", "paper_notes", "follow_up")),
        grade=float,
    )


class DeckState(_Schema):
    """Lacks the topic."""

    __state_fields__ = _fields(
        **dict.fromkeys(("brand", "slides", "slide", "deck", "brand_note", "fact_note"))
    )


class TicketState(_Schema):
    """Keeps the last ticket for the application, not for the user."""

    __state_fields__: ClassVar[Mapping[str, StateFieldRef]] = {
        "ticket": StateFieldRef("ticket", str),
        "app:last_ticket": StateFieldRef("app:last_ticket", str),
    }
