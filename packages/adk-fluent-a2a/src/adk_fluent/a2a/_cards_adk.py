"""Agent cards: read, checked, and kept until they expire."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

import httpx
from google.protobuf.json_format import MessageToDict, ParseError

from a2a.client.card_resolver import parse_agent_card
from a2a.types import AgentCard
from adk_fluent.a2a._addresses import address_fault, origin
from adk_fluent.a2a._agent_card import GRPC
from adk_fluent.a2a._entries import DirectoryEntry
from adk_fluent.a2a._failures_adk import failure, failure_of
from adk_fluent.a2a._grpc import has_grpc
from adk_fluent.errors import UsageError
from adk_fluent.extend import describe, one_line, public_address

if TYPE_CHECKING:
    from adk_fluent.ir import RemoteAgentNode

WELL_KNOWN: Final = "/.well-known/agent-card.json"
LEGACY: Final = "/.well-known/agent.json"  # of peers before 0.3
BINDINGS: Final[tuple[str, ...]] = ("JSONRPC", "HTTP+JSON")
_LARGEST: Final = 1 << 20  # bytes of a card


class Read(NamedTuple):
    """A card that somebody gave.

    Attributes:
        name: What the agent can be called in a pipeline.
        endpoint: Where it is asked.
        text: The card as JSON.
    """

    name: str
    endpoint: str
    text: str


def read_card(card: object) -> Read:
    """Read a card in any of the forms in which it can be given.

    Args:
        card: An ``a2a.types.AgentCard``, a mapping, the path of a JSON file, or an entry of a
            directory.

    Raises:
        UsageError: It is not a card, or says what must not be.
    """
    made = parsed(card)
    fault = fault_of(made, None)
    if fault is not None:
        raise UsageError(f"the agent card {fault}", found=describe(card), help="correct the card")
    name = re.sub(r"\W+", "_", made.name.strip()).strip("_").lower()
    text = json.dumps(MessageToDict(made), sort_keys=True)
    name = name if name.isidentifier() else f"agent_{name}".rstrip("_")
    return Read(name, _usable(made)[0], text)


def parsed(card: object) -> AgentCard:
    """A card in any of the forms in which it can be given; its addresses are not checked.

    Raises:
        UsageError: It is not a card.
    """
    if isinstance(card, DirectoryEntry):
        return card.card
    if isinstance(card, AgentCard):
        return card
    try:
        if isinstance(card, str | Path):
            card = json.loads(Path(card).read_text("utf-8"))
        if isinstance(card, Mapping):
            given = cast("Mapping[str, Any]", card)
            return parse_agent_card(json.loads(json.dumps(dict(given))))
    except (OSError, ValueError, TypeError, ParseError, RecursionError) as error:
        raise UsageError(
            "the agent card cannot be read",
            found=str(error).partition("\n")[0],
            help="give an a2a.types.AgentCard, its JSON as a mapping, or the path of a JSON file",
        ) from error
    raise UsageError(
        "an agent card is needed",
        found=describe(card),
        help="give an a2a.types.AgentCard, its JSON as a mapping, or the path of a JSON file",
    )


# --- checks ------------------------------------------------------------------------------------


def checked(text: str) -> tuple[AgentCard | None, str | None]:
    """Read the JSON of a card that somebody gave; also gives what is wrong with it, or None."""
    try:
        card = parse_agent_card(json.loads(text))
    except Exception as error:  # noqa: BLE001  # the SDK's parser fails in many ways
        return None, f"cannot be read: {one_line(str(error))}"
    return card, fault_of(card, None)


def fault_of(card: AgentCard, source: str | None) -> str | None:
    """What is wrong with where a card sends requests; None if nothing is.

    Every address that may be asked must be https, or http on this machine, and all have the origin
    from which the card came, for that is where the credentials go.

    Args:
        card: The card.
        source: The address it was fetched from; None if somebody gave it.
    """
    urls = _usable(card)
    if not urls:
        offered = ", ".join(each.protocol_binding for each in card.supported_interfaces)
        needs = ", which needs adk-fluent-a2a[grpc]" if GRPC in offered else ""
        return f"has no interface for {' or '.join(BINDINGS)}" + (
            f", only {offered}{needs}" if offered else ""
        )
    if uses_grpc(card):
        return _grpc_fault(urls, source)
    wanted = origin(source or urls[0])
    # gRPC has an origin of its own, and is not asked where there is another interface
    for url in [each.url for each in card.supported_interfaces if each.protocol_binding != GRPC]:
        place = public_address(url)
        if (fault := address_fault(url)) is not None:
            return f"has the address {place}, which {fault}"
        if origin(url) != wanted:
            other = public_address(source or urls[0])
            return f"sends requests to {place}, and not to the origin of {other}"
    return None


def lacking(card: AgentCard, wanted: tuple[str, ...]) -> list[str]:
    """The capabilities that none of a card's skills has as its id, name or tag."""
    offered = {each for skill in card.skills for each in (skill.id, skill.name, *skill.tags)}
    return [each for each in wanted if each not in offered]


def uses_grpc(card: AgentCard) -> bool:
    """Whether an agent is asked over gRPC: it offers nothing else that is known."""
    offered = {each.protocol_binding for each in card.supported_interfaces}
    return GRPC in offered and offered.isdisjoint(BINDINGS)


def _grpc_fault(urls: list[str], source: str | None) -> str | None:
    """What is wrong with the addresses of an agent that offers gRPC alone.

    They have ports of their own, and so only the host has to be that of the card.
    """
    wanted = origin(source or urls[0])
    for url in urls:
        place, found = public_address(url), origin(url)
        if (fault := address_fault(url)) is not None:
            return f"has the address {place}, which {fault}"
        if wanted is None or found is None or found[:2] != wanted[:2]:
            other = public_address(source or urls[0])
            return f"sends requests to {place}, and not to the host of {other}"
    return None


def _usable(card: AgentCard) -> list[str]:
    bindings = BINDINGS
    if uses_grpc(card):
        bindings = (GRPC,) if has_grpc() else ()
    return [each.url for each in card.supported_interfaces if each.protocol_binding in bindings]


# --- fetching ----------------------------------------------------------------------------------


class Cards:
    """The card of one remote agent, fetched when it is needed and used until it expires.

    Args:
        node: The remote agent.
        exact: Its endpoint is the address of the card, whatever that ends with.
    """

    def __init__(self, node: RemoteAgentNode, *, exact: bool = False) -> None:
        self._node = node
        self._exact = exact
        self._card: AgentCard | None = None
        self._until = 0.0

    async def get(self, client: httpx.AsyncClient, headers: Mapping[str, str]) -> AgentCard:
        """The card.

        Raises:
            RemoteError: It cannot be fetched, or must not be used.
        """
        if self._card is not None and monotonic() < self._until:
            return self._card
        node, card, source = self._node, None, None
        if node.card is not None:
            card = parse_agent_card(json.loads(node.card))
            until = float("inf")
        else:
            source, text = await self._fetch(client, headers)
            until = monotonic() + node.card_ttl_seconds
            try:
                card = parse_agent_card(json.loads(text))
            except Exception as error:
                raise failure_of(error, node, card=True) from error
        self._check(card, source)
        self._card, self._until = card, until
        return card

    async def _fetch(
        self, client: httpx.AsyncClient, headers: Mapping[str, str]
    ) -> tuple[str, bytes]:
        if (fault := address_fault(self._node.endpoint)) is not None:
            place = public_address(self._node.endpoint)
            raise failure("CARD", self._node, f"has an endpoint that {fault}", found=place)
        first, *others = self._places()
        response = await self._load(client, first, headers)
        for other in others:
            if response.status_code == 404:
                first, response = other, await self._load(client, other, headers)
        try:
            response.raise_for_status()
        except Exception as error:
            raise failure_of(error, self._node, card=True) from error
        return first, response.content

    async def _load(
        self, client: httpx.AsyncClient, url: str, headers: Mapping[str, str]
    ) -> httpx.Response:
        """Load an answer that is not too large."""
        try:
            async with client.stream("GET", url, headers=dict(headers)) as response:
                content = bytearray()
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > _LARGEST:
                        raise failure("CARD", self._node, f"has a card above {_LARGEST} bytes")
        except httpx.HTTPError as error:
            raise failure_of(error, self._node, card=True) from error
        return httpx.Response(
            response.status_code,
            headers={"retry-after": response.headers.get("retry-after", "")},
            content=bytes(content),
            request=response.request,
        )

    def _places(self) -> list[str]:
        """Where the card may be: at the address itself, or at the well-known ones below it."""
        endpoint = self._node.endpoint
        if self._exact or urlsplit(endpoint).path.endswith(".json"):
            return [endpoint]
        base = endpoint.partition("#")[0].partition("?")[0].rstrip("/")
        return [base + WELL_KNOWN, base + LEGACY]

    def _check(self, card: AgentCard, source: str | None) -> None:
        node = self._node
        fault = fault_of(card, source)
        if fault is None and (absent := lacking(card, node.capabilities)):
            fault = f"offers no {', '.join(map(repr, absent))}"
        if fault is not None:
            raise failure("CARD", node, f"has a card that {fault}")
        if node.card_verifier is not None:
            try:
                node.card_verifier.value(card)
            except Exception as error:
                says = f"{type(error).__name__}: {error}"
                raise failure("CARD", node, "has a card that is not trusted", found=says) from error
