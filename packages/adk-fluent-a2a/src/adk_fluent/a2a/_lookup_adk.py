"""What is read from where: well-known cards, catalogs, registries, and ADK's own registry."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode, urljoin, urlsplit

import httpx

from adk_fluent.a2a._addresses import address_fault, is_here, origin
from adk_fluent.a2a._auth_adk import Credentials
from adk_fluent.a2a._cards_adk import Cards, fault_of, lacking, parsed
from adk_fluent.a2a._catalogs import (
    AGENT_TYPE,
    CATALOG_PATH,
    CATALOG_TYPE,
    REGISTRY_TYPES,
    CatalogError,
    Listed,
    catalog_of,
    entries_of,
    is_catalog,
    newest,
    ranked,
)
from adk_fluent.a2a._entries import DirectoryEntry
from adk_fluent.a2a._failures_adk import failure, failure_of
from adk_fluent.a2a._http import http_client
from adk_fluent.errors import RemoteError, UsageError
from adk_fluent.extend import LOG, public_address
from adk_fluent.ir import RemoteAgentNode

if TYPE_CHECKING:
    from a2a.types import AgentCard

LARGEST: Final = 4 << 20  # bytes of a catalog, or of one answer of a registry
MOST_ENTRIES: Final = 1000  # of one directory, in all its catalogs and pages
MOST_DOCUMENTS: Final = 32
DEEPEST: Final = 4  # catalogs in catalogs, as AI Catalog recommends
_PAGE: Final = 100  # entries of a page, the most that ARD allows
_NOT_THERE: Final = range(400, 500)
_AT_ONCE: Final = 8  # cards that are fetched at the same time


class Wanted(NamedTuple):
    """What is looked for.

    Attributes:
        text: In words; "" for anything.
        capabilities: What each agent has to offer.
        limit: How many agents are enough.
    """

    text: str
    capabilities: tuple[str, ...]
    limit: int


@dataclass
class Web:
    """A directory at an address.

    Args:
        node: Its address, and how to authenticate there and nowhere else.
        origins: Other origins that it may name; None are all, for agents alone.
        timeout: Seconds that one card may take.
    """

    node: RemoteAgentNode
    origins: frozenset[Any] | None
    timeout: float
    credentials: Credentials = field(init=False)

    def __post_init__(self) -> None:
        self.credentials = Credentials(self.node)

    async def find(self, wanted: Wanted) -> list[DirectoryEntry]:
        """The agents that offer what is wanted, as their own cards say."""
        read = _Read(self, wanted, await http_client())
        try:
            entries = await read.listed()
        except CatalogError as error:
            raise read.fault(str(error)) from error
        first: dict[str, Listed] = {}
        for each in entries:
            first.setdefault(each.identifier, each)
        entries = [each for each in first.values() if each.may_offer(wanted.capabilities)]
        found: list[DirectoryEntry] = []
        for at in range(0, len(entries), _AT_ONCE):
            some = [read.entry(each) for each in entries[at : at + _AT_ONCE]]
            found += [each for each in await asyncio.gather(*some) if each is not None]
            if len(found) >= wanted.limit:
                break
        if not found and read.refused is not None:
            raise read.refused
        return found


class _Read:
    """One reading of a directory."""

    def __init__(self, web: Web, wanted: Wanted, client: httpx.AsyncClient) -> None:
        self._web = web
        self._node = web.node
        self._wanted = wanted
        self._client = client
        self._documents = self._entries = 0
        self._origin = origin(web.node.endpoint)
        self.refused: RemoteError | None = None

    def fault(self, says: str, url: str | None = None) -> RemoteError:
        """The error of a directory that must not be used."""
        at = "" if url is None else f" at {public_address(url)}"
        return failure("DIRECTORY", self._node, f"has a document{at} that {says}")

    # --- documents -----------------------------------------------------------------------------

    async def _load(
        self, url: str, method: str = "GET", body: Any = None, *, or_none: bool = False
    ) -> Any:
        """A JSON document; None where there is none and `or_none`."""
        self._documents += 1
        if self._documents > MOST_DOCUMENTS:
            raise self.fault(f"leads to more than {MOST_DOCUMENTS} others")
        headers = {"accept": "application/json", **await self._headers(url)}
        content = bytearray()
        try:
            async with self._client.stream(method, url, headers=headers, json=body) as response:
                status = response.status_code
                if or_none and status in _NOT_THERE:
                    return None
                if 300 <= status < 400:
                    to = public_address(urljoin(url, response.headers.get("location", "")))
                    raise self.fault(f"is elsewhere: a redirect to {to} is not followed", url)
                response.raise_for_status()
                async for chunk in response.aiter_bytes():
                    content += chunk
                    if len(content) > LARGEST:
                        raise self.fault(f"has more than {LARGEST} bytes", url)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise failure_of(error, self._node) from error
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise self.fault("is not JSON, or nested too deeply", url) from error

    async def _headers(self, url: str) -> dict[str, str]:
        if origin(url) != self._origin:
            return {}  # the secret is the directory's own
        return await self._web.credentials.headers(self._client)

    def _checked(self, url: str) -> str:
        """The address of another catalog or registry, if it may be read."""
        known = self._web.origins or ()
        if (fault := address_fault(url)) is not None:
            raise self.fault(f"names {public_address(url)}, which {fault}")
        if origin(url) != self._origin and origin(url) not in known:
            raise self.fault(f"names {public_address(url)}, which is of another origin")
        return url

    # --- lists ---------------------------------------------------------------------------------

    async def listed(self) -> list[Listed]:
        """What the directory lists: its catalogs, its registries, or the one card that it is."""
        endpoint = self._node.endpoint
        if urlsplit(endpoint).path.endswith(".json"):
            document = await self._load(endpoint)
            return await self._document(document, (endpoint,))
        base = endpoint.partition("#")[0].partition("?")[0].rstrip("/")
        place = base + CATALOG_PATH
        document = await self._load(place, or_none=True)
        if document is not None:
            return await self._document(document, (place,))
        found = await self._searched(base, or_none=True)
        return [_card_at(base)] if found is None else found

    async def _document(self, document: Any, path: tuple[str, ...]) -> list[Listed]:
        """What a catalog lists, with the catalogs in it; or the one card that it is.

        Args:
            document: The document.
            path: Where it stands, and the catalogs that led there.
        """
        if len(path) == 1 and not is_catalog(document):
            return [_card_at(path[0], document)]
        entries = catalog_of(document)
        self._listed_so_far(len(entries))
        found = [each for each in newest(entries) if each.kind == AGENT_TYPE]
        if text := self._wanted.text:
            found = [each for each, _ in ranked([(each, each.says) for each in found], text)]
        for each in entries:
            if each.kind == CATALOG_TYPE:
                found += await self._nested(each, path)
            elif each.kind in REGISTRY_TYPES and each.url is not None:
                found += await self._searched(self._checked(each.url)) or []
        return found

    async def _nested(self, entry: Listed, path: tuple[str, ...]) -> list[Listed]:
        if len(path) > DEEPEST:
            raise self.fault(f"has catalogs in catalogs more than {DEEPEST} deep", path[0])
        if entry.url is None:
            return await self._document(entry.data, (*path, path[-1]))
        url = self._checked(entry.url)
        if url in path:
            raise self.fault("leads back to itself", url)
        return await self._document(await self._load(url), (*path, url))

    async def _searched(self, url: str, *, or_none: bool = False) -> list[Listed] | None:
        """What a registry finds; None where there is none and `or_none`."""
        base = url.rstrip("/").removesuffix("/search")
        wanted = self._wanted
        text = wanted.text or " ".join(wanted.capabilities)
        found: list[Listed] = []
        seen = {""}
        token = ""
        while True:
            if text:
                # several values of one filter are "any of them": the first narrows, cards decide
                filter = {"type": [AGENT_TYPE], "capabilities": list(wanted.capabilities[:1])}
                body: dict[str, Any] = {
                    "query": {"text": text, "filter": {k: v for k, v in filter.items() if v}},
                    "federation": "none",
                    "pageSize": _PAGE,
                }
                body |= {"pageToken": token} if token else {}
                answer = await self._load(f"{base}/search", "POST", body, or_none=or_none)
                member = "results"
            else:
                query = urlencode({"pageSize": _PAGE} | ({"pageToken": token} if token else {}))
                answer = await self._load(f"{base}/agents?{query}", or_none=or_none)
                member = "items"
            if answer is None:
                return None
            page = entries_of(answer, member)
            self._listed_so_far(len(page))
            found += [each for each in page if each.kind == AGENT_TYPE]
            token = answer.get("pageToken") or ""
            if not token:
                return found
            if not isinstance(token, str) or token in seen:
                raise self.fault("gives the same page again", base)
            seen.add(token)
            or_none = False

    def _listed_so_far(self, more: int) -> None:
        self._entries += more
        if self._entries > MOST_ENTRIES:
            raise self.fault(f"lists more than {MOST_ENTRIES} entries")

    # --- cards ---------------------------------------------------------------------------------

    async def entry(self, listed: Listed) -> DirectoryEntry | None:
        """An entry with its card; None, and a warning, where it must not be used."""
        try:
            async with asyncio.timeout(self._web.timeout):
                card = await self._card(listed)
        except TimeoutError:
            error = failure("DEADLINE", self._node, f"waits too long for {listed.identifier!r}")
        except RemoteError as refused:
            error = refused
        else:
            if lacking(card, self._wanted.capabilities):
                return None
            directory = public_address(self._node.endpoint)
            return DirectoryEntry(card, listed.identifier, listed.url or "", directory)
        LOG.warning("left out of a directory: %r: %s", listed.identifier, error.what)
        self.refused = self.refused or error
        return None

    async def _card(self, listed: Listed) -> AgentCard:
        if listed.url is None:
            card = card_from(listed.data, self._node)
        else:
            if (fault := self._place_fault(listed.url)) is not None:
                raise self.fault(f"names {public_address(listed.url)}, which {fault}")
            name = listed.identifier or "the agent"
            agent = RemoteAgentNode(name, endpoint=listed.url)
            exact = listed.identifier != ""
            headers = await self._headers(listed.url)
            card = await Cards(agent, exact=exact).get(self._client, headers)
        for each in card.supported_interfaces:
            if (fault := self._place_fault(each.url)) is not None:
                raise self.fault(f"names {public_address(each.url)}, which {fault}")
        return card

    def _place_fault(self, url: str) -> str | None:
        """Why this directory may not send anybody to an address; None if it may."""
        if (fault := address_fault(url)) is not None:
            return fault
        there, here = origin(url), self._origin
        if there == here:
            return None
        if here is not None and there is not None and is_here(there[1]) and not is_here(here[1]):
            return "is on this machine, and the directory is not"
        if self._web.origins is not None and there not in self._web.origins:
            return "is of another origin than origins= has"
        return None


def _card_at(url: str, card: Any = None) -> Listed:
    """The one agent whose card an address has."""
    place = None if card is not None else url
    return Listed("", AGENT_TYPE, "", place, card, "", "", None, "")


def card_from(data: Any, node: RemoteAgentNode) -> AgentCard:
    """A card that a directory has in itself.

    Raises:
        RemoteError: It is not a card, or sends requests where they must not go.
    """
    try:
        card = parsed(data)
    except UsageError as error:
        raise failure("DIRECTORY", node, "has a card that cannot be read") from error
    if (fault := fault_of(card, None)) is not None:
        raise failure("DIRECTORY", node, f"has a card that {fault}")
    return card


@dataclass
class Given:
    """Cards that you gave: an object, a mapping, or a file, which may be a catalog."""

    entries: list[DirectoryEntry]

    async def find(self, wanted: Wanted) -> list[DirectoryEntry]:
        """Those that offer what is wanted."""
        return chosen(self.entries, wanted)


def chosen(entries: list[DirectoryEntry], wanted: Wanted) -> list[DirectoryEntry]:
    """Entries whose cards offer what is wanted, and say something of what is sought."""
    able = [each for each in entries if not lacking(each.card, wanted.capabilities)]
    if not wanted.text:
        return able
    return [each for each, _ in ranked([(each, _about(each.card)) for each in able], wanted.text)]


def _about(card: AgentCard) -> str:
    skills = [f"{s.id} {s.name} {s.description} {' '.join(s.tags)}" for s in card.skills]
    return " ".join([card.name, card.description, *skills])


@dataclass
class CloudRegistry:
    """ADK's `AgentRegistry`, which asks the Agent Registry of Google Cloud.

    Args:
        registry: The registry, with its own credentials.
        node: What stands in errors.
    """

    registry: Any
    node: RemoteAgentNode

    async def find(self, wanted: Wanted) -> list[DirectoryEntry]:
        """The agents that offer what is wanted."""
        found: list[DirectoryEntry] = []
        refused: RemoteError | None = None
        for each in await self._listed(wanted.text):
            try:
                card = card_from(await self._card(each), self.node)
            except RemoteError as error:
                LOG.warning("left out of a directory: %r: %s", each.get("name"), error.what)
                refused = refused or error
                continue
            if not lacking(card, wanted.capabilities):
                found.append(DirectoryEntry(card, str(each.get("name", ""))))
        if not found and refused is not None:
            raise refused
        return found

    async def _listed(self, text: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        token: str | None = None
        for _ in range(MOST_DOCUMENTS):
            page: dict[str, Any] = {"page_size": _PAGE, "page_token": token}
            if text:
                answer = await self._ask(self.registry.search_agents, search_string=text, **page)
            else:
                answer = await self._ask(self.registry.list_agents, **page)
            found += answer.get("agents") or []
            token = answer.get("nextPageToken")
            if not token:
                return found
        raise failure("DIRECTORY", self.node, f"has more than {MOST_DOCUMENTS} pages")

    async def _ask(self, method: Any, *args: Any, **options: Any) -> dict[str, Any]:
        try:
            return await asyncio.to_thread(method, *args, **options)
        except RuntimeError as error:  # which ADK makes of every failure
            raise failure("HTTP", self.node, "did not answer", found=str(error)) from error

    async def _card(self, agent: dict[str, Any]) -> object:
        """The card that was registered, or what the registry knows instead of it."""
        if "card" not in agent and "protocols" not in agent:
            agent = await self._ask(self.registry.get_agent_info, agent.get("name"))
        card: Any = agent.get("card") or {}
        if card.get("type") == "A2A_AGENT_CARD" and card.get("content"):
            return card["content"]
        interfaces = [
            {
                "url": each.get("url", ""),
                "protocolBinding": str(each.get("protocolBinding", "")).replace("_", "+"),
                "protocolVersion": protocol.get("protocolVersion", "1.0"),
            }
            for protocol in _dicts(agent, "protocols")
            if protocol.get("type") == "A2A_AGENT"
            for each in _dicts(protocol, "interfaces")
        ]
        known = ("description", "version", "skills")
        about = {key: agent[key] for key in known if agent.get(key)}
        name = agent.get("displayName", "")
        return {"name": name, "supportedInterfaces": interfaces, **about}


def _dicts(value: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return value.get(key) or []
