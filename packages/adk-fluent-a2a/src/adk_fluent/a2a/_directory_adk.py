"""Directories of agents: who offers what is needed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.a2a._addresses import address_fault, origin
from adk_fluent.a2a._cards_adk import fault_of, parsed
from adk_fluent.a2a._catalogs import AGENT_TYPE, CatalogError, catalog_of, is_catalog, newest
from adk_fluent.a2a._entries import DirectoryEntry
from adk_fluent.a2a._failures_adk import deadline
from adk_fluent.a2a._lookup_adk import CloudRegistry, Given, Wanted, Web, card_from
from adk_fluent.a2a._registering_adk import Registration
from adk_fluent.errors import UsageError
from adk_fluent.extend import describe, public_address
from adk_fluent.ir import AuthConfig, RemoteAgentNode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable

_NAME: Final = "the directory"  # in errors
_MOST_KEPT: Final = 256  # answers


class AgentDirectory:
    """Finds agents by what they offer: in directories, at well-known addresses, in a list.

    Example:
        >>> directory = AgentDirectory("https://directory.internal/a2a")
        >>> agents = await directory.discover(capabilities=["process_refund"])
        >>> pipeline = Agent("classifier") >> RemoteAgent.from_card(agents[0])

    A directory gives hints. What an agent offers and where it is asked is read in its card, which
    is checked as every other: all its addresses are https, or http on this machine, and have the
    origin that the card came from.

    Args:
        sources: Where to look, in this order: URLs of directories (AI Catalog, ARD) or agents,
            agent cards as `RemoteAgent` takes them, paths of JSON files with a card or a catalog,
            or a ``google.adk.integrations.agent_registry.AgentRegistry``.
        auth: How to authenticate at the directories, which the agents are never sent.
        origins: Origins, such as ``https://pay.internal``, beside their own to which directories
            may lead. None lets agents be anywhere, and catalogs and registries nowhere else.
        timeout: Seconds that `discover` may take; one card may take half of them.
        ttl: Seconds for which an answer is used again.

    Raises:
        UsageError: An argument cannot be used.
    """

    def __init__(
        self,
        *sources: object,
        auth: AuthConfig | None = None,
        origins: Iterable[str] | None = None,
        timeout: float = 10.0,
        ttl: float = 300.0,
    ) -> None:
        if not sources:
            raise UsageError(
                "AgentDirectory(...) takes at least one source",
                help='such as AgentDirectory("https://directory.internal/a2a")',
            )
        _check(AuthConfig | None, auth, "auth= takes an AuthConfig")
        for role, value in (("timeout", timeout), ("ttl", ttl)):
            _check(int | float, value, f"{role}= is a number of seconds above 0")
        self._auth = auth
        self._origins = None if origins is None else frozenset(map(_origin, _listed(origins)))
        self._timeout = float(timeout)
        self._ttl = float(ttl)
        self._sources = [self._source(each) for each in sources]
        self._kept: dict[Wanted, tuple[float, list[DirectoryEntry]]] = {}

    async def discover(
        self, text: str = "", *, capabilities: Collection[str] = (), limit: int = 20
    ) -> list[DirectoryEntry]:
        """Find agents.

        An agent whose card cannot be read or must not be used is left out, with a warning in the
        log; where no other is left, its error is raised. Of entries with one identifier, or agents
        with one address, the first counts.

        Args:
            text: What is sought, in words. Registries rank by it, and it is matched word by word
                elsewhere.
            capabilities: What each of them has to offer: ids, names or tags of skills.
            limit: At most so many.

        Raises:
            RemoteError: A directory cannot be reached, or gives what must not be used.
            CredentialsError: The variable that holds its secret is not set.
            UsageError: An argument cannot be used.
        """
        _check(int, limit, "limit= is a whole number above 0")
        wanted = Wanted(_text(text), _names(capabilities), limit)
        kept = self._kept.pop(wanted, None)
        if kept is None or kept[0] <= monotonic():
            kept = (monotonic() + self._ttl, await self._found(wanted))
        while len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[wanted] = kept
        return list(kept[1])

    def forget(self) -> None:
        """Use no earlier answer again."""
        self._kept.clear()

    @asynccontextmanager
    async def registered(
        self, card: object, *, url: str | None = None, lease: float = 60.0
    ) -> AsyncGenerator[str]:
        """Keep an agent registered at a `DirectoryServer` while the block runs.

        The lease is renewed before it ends; an outage of the directory is waited out. At the end
        the agent is unregistered.

        Args:
            card: Its card, as `RemoteAgent` takes it.
            url: Where the card is, for clients to read it there; None lets the directory show it.
            lease: Seconds after which the directory drops an agent that is not heard of.

        Yields:
            What the directory calls it.

        Raises:
            RemoteError: The directory cannot be reached, or refuses it.
            UsageError: The first source is no address, or it is not a card.
        """
        first = self._sources[0]
        if not isinstance(first, Web):
            raise UsageError(
                "registered(...) needs a directory at an address",
                help='AgentDirectory("https://directory.internal/a2a", auth=...)',
            )
        made = parsed(card)
        if (fault := fault_of(made, url)) is not None:
            raise UsageError(f"the agent card {fault}", help="correct the card, or url=")
        registration = Registration(first, made, url, lease)
        async with asyncio.timeout(self._timeout):
            identifier = await registration.renew()
        renewing = asyncio.create_task(registration.keep())
        try:
            yield identifier
        finally:
            renewing.cancel()
            with suppress(asyncio.CancelledError):
                await renewing
            await registration.end()

    # --- sources -------------------------------------------------------------------------------

    async def _found(self, wanted: Wanted) -> list[DirectoryEntry]:
        node = RemoteAgentNode(_NAME, endpoint="", timeout_seconds=self._timeout)
        try:
            async with asyncio.timeout(self._timeout):
                lists = await asyncio.gather(*(each.find(wanted) for each in self._sources))
        except TimeoutError:
            raise deadline(node) from None
        found: dict[str, DirectoryEntry] = {}
        known: set[str] = set()
        for each in (entry for entries in lists for entry in entries):
            place = each.card.supported_interfaces[0].url
            if place not in found and not (each.identifier and each.identifier in known):
                found[place] = each
                known.add(each.identifier)
        return list(found.values())[: wanted.limit]

    def _source(self, given: object) -> Any:
        if hasattr(given, "list_agents") and hasattr(given, "search_agents"):
            return CloudRegistry(given, RemoteAgentNode("ADK's registry", endpoint=""))
        if isinstance(given, str) and "://" in given:
            if (fault := address_fault(given)) is not None:
                raise UsageError(
                    f"the address of a directory {fault}",
                    found=public_address(given),
                    help='such as "https://directory.internal/a2a"',
                )
            node = RemoteAgentNode(
                _NAME, endpoint=given, auth=self._auth, timeout_seconds=self._timeout
            )
            return Web(node, self._origins, self._timeout / 2)
        if isinstance(given, str | Path) and (found := _catalog_file(given)) is not None:
            return Given(found)
        card = parsed(given)
        if (fault := fault_of(card, None)) is not None:
            raise UsageError(f"the agent card {fault}", found=describe(given))
        return Given([DirectoryEntry(card)])


def _catalog_file(path: str | Path) -> list[DirectoryEntry] | None:
    """The agents of a catalog in a file; None where it is a card, or nothing that can be read."""
    try:
        document: object = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None  # `parsed` says why
    if not is_catalog(document):
        return None
    node = RemoteAgentNode(f"the file {path}", endpoint="")
    try:
        entries = newest(catalog_of(document))
    except CatalogError as error:
        raise UsageError(f"a catalog in a file {error}", found=str(path)) from error
    outside = [each.identifier for each in entries if each.url is not None]
    if outside:
        raise UsageError(
            "a catalog in a file has the cards in itself",
            found=f"a url of {outside[0]!r}",
            help="give the url as a source of its own, or serve the file",
        )
    return [
        DirectoryEntry(card_from(each.data, node), each.identifier)
        for each in entries
        if each.kind == AGENT_TYPE
    ]


def _check(kind: Any, value: object, says: str) -> None:
    number = isinstance(value, int | float)
    if not isinstance(value, kind) or isinstance(value, bool) or (number and not value > 0):
        raise UsageError(says, found=describe(value))


def _text(value: object) -> str:
    if isinstance(value, str):
        return value.strip()
    raise UsageError(
        "discover(...) takes what is sought in words",
        found=describe(value),
        help='name skills by keyword: discover(capabilities=["process_refund"])',
    )


def _names(value: object) -> tuple[str, ...]:
    if isinstance(value, Collection) and not isinstance(value, str | bytes):
        names = tuple(cast("Collection[object]", value))
        known = tuple(each for each in names if isinstance(each, str) and each)
        if len(known) == len(names):
            return known
    raise UsageError(
        "capabilities= takes names of skills",
        found=describe(value),
        help='such as ["process_refund", "check_balance"]',
    )


def _listed(value: object) -> Iterable[object]:
    if isinstance(value, str) or not isinstance(value, Collection):
        raise UsageError("origins= takes a list of origins", found=describe(value))
    return cast("Collection[object]", value)


def _origin(value: object) -> tuple[str, str, int | None]:
    found = origin(value) if isinstance(value, str) else None
    if found is None:
        raise UsageError(
            "origins= takes origins",
            found=repr(value) if isinstance(value, str) else describe(value),
            help='such as ["https://pay.internal"]',
        )
    return found
