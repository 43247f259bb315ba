"""The cards a server shows: of 1.0, and of 0.3 for older clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from a2a.compat.v0_3.conversions import to_compat_agent_card
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import AgentCard
from google.protobuf.json_format import MessageToDict
from starlette.responses import JSONResponse
from starlette.routing import Route

from adk_fluent.a2a._agent_card import GRPC

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from starlette.requests import Request
    from starlette.responses import Response

#: Where clients look for a card, below the agent's own path and at the root.
WELL_KNOWN: Final = "/.well-known/agent-card.json"
LEGACY: Final = "/.well-known/agent.json"


def base_of(card: AgentCard) -> str:
    """The path below which an agent is served, without a slash at its end."""
    return urlsplit(card.supported_interfaces[0].url).path.rstrip("/")


def card_paths(base: str) -> list[str]:
    """The paths of all cards."""
    return list(dict.fromkeys(f"{at}{name}" for at in (base, "") for name in (WELL_KNOWN, LEGACY)))


def card_routes(
    card: AgentCard, base: str, max_age: int, sign: Callable[[AgentCard], AgentCard]
) -> list[Route]:
    """The routes of the cards.

    A client of 1.0 that says so is given the card of 1.0 alone. Clients of 0.3 say nothing, and
    read the same address: a card for those has the fields of both.

    Args:
        card: The card, whose interfaces are those of 1.0.
        base: The path of the agent.
        max_age: Seconds for which a card may be cached.
        sign: Signs a card.
    """
    both = AgentCard()
    both.CopyFrom(card)
    for each in card.supported_interfaces:
        if each.protocol_binding == GRPC:  # which is served of 1.0 alone
            continue
        older = both.supported_interfaces.add()
        older.CopyFrom(each)
        older.protocol_version = "0.3"
    older_card = to_compat_agent_card(both)  # before it is signed: 0.3 signs other text
    shown = {
        "0.3": older_card.model_dump(mode="json", exclude_none=True, by_alias=True),
        "both": agent_card_to_dict(sign(both)),
        "1.0": MessageToDict(sign(card)),
    }
    headers = {"cache-control": f"public, max-age={max_age}", "vary": "A2A-Version"}

    def answer(kind: str) -> Any:
        async def show(request: Request) -> Response:
            says = request.headers.get("a2a-version", "")
            which = "1.0" if kind == "both" and says.startswith("1") else kind
            return JSONResponse(shown[which], headers=headers)

        return show

    return [
        Route(path, answer("both" if path.endswith(WELL_KNOWN) else "0.3"), methods=["GET"])
        for path in card_paths(base)
    ]
