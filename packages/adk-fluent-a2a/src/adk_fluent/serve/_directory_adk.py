"""A directory of a team's agents, which clients of ARD can search."""

from __future__ import annotations

import re
import sqlite3
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import unquote, urlsplit

from google.protobuf.json_format import MessageToDict
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from adk_fluent.a2a._addresses import address_fault, origin
from adk_fluent.a2a._cards_adk import fault_of, parsed
from adk_fluent.a2a._catalogs import (
    AGENT_TYPE,
    CATALOG_PATH,
    CATALOG_TYPE,
    REGISTRY_TYPES,
    at_path,
    publisher_of,
    ranked,
)
from adk_fluent.errors import UsageError
from adk_fluent.extend import describe
from adk_fluent.serve._gate import ANONYMOUS, Gate
from adk_fluent.serve._guard import Guard
from adk_fluent.serve._leases import FullError, Leases, TakenError
from adk_fluent.serve._limits import Limits
from adk_fluent.serve._listening import Listening, check_start, listener_at

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from a2a.types import AgentCard
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from adk_fluent.serve._auth import Authenticator

_HEALTH: Final = "/healthz"
_IDENTIFIER: Final = re.compile(r"urn:air:[a-z0-9.-]+(:[A-Za-z0-9._-]+)+")
_LONGEST: Final = 255  # characters of an identifier
_PAGE: Final = 100  # entries of a page, the most that ARD allows


class _Refused(Exception):  # noqa: N818  # no error of the server
    """A request that is not done."""

    def __init__(self, status: int, code: str, says: str) -> None:
        super().__init__(says)
        self.status = status
        self.code = code


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Registered(_Strict):
    card: dict[str, Any]
    url: str | None = None
    identifier: str | None = Field(None, max_length=_LONGEST)
    lease_seconds: float | None = Field(None, alias="leaseSeconds", gt=0, allow_inf_nan=False)


class _Query(_Strict):
    text: str = Field(min_length=1)
    filter: dict[str, str | list[str]] = Field(default_factory=dict, max_length=20)


class _Search(_Strict):
    query: _Query
    federation: Literal["auto", "referrals", "none"] = "auto"
    page_size: int = Field(10, alias="pageSize", ge=1, le=_PAGE)
    page_token: str | None = Field(None, alias="pageToken", max_length=20)


class DirectoryServer:
    """Serves a directory of agents to a team: they register, and are found by what they offer.

    Example:
        >>> server = DirectoryServer("agents.db", auth=BearerAuth({token: "payments"}))
        >>> await server.start(port=8090)

    An agent belongs to the principal that registered it, and is dropped when its lease ends and is
    not renewed; its identifier stays that principal's for a day. All principals see all agents.

    Args:
        path: The SQLite database, made where it is absent; ":memory:" keeps nothing.
        auth: Finds the principal of a request, as for `A2AServer`. None serves this machine only.
        endpoint: The URL where clients come in; None is the address that `start` listens at.
        name: What its catalog says it is called.
        lease: Seconds of a lease that does not ask for others.
        longest_lease: Seconds that a lease may ask for at most.
        per_owner: Agents that one principal may have.
        capacity: Agents that there may be.
        limits: How much it takes of requests: `Limits` of bodies, depth, open requests and rate.

    Raises:
        UsageError: An argument cannot be used, or the database cannot be opened.
    """

    def __init__(
        self,
        path: str | Path = ":memory:",
        *,
        auth: Authenticator | None = None,
        endpoint: str | None = None,
        name: str = "Agents",
        lease: float = 60.0,
        longest_lease: float = 3600.0,
        per_owner: int = 100,
        capacity: int = 1000,
        limits: Limits | None = None,
    ) -> None:
        _check(path, auth, endpoint, limits)
        for role, value in (("lease", lease), ("longest_lease", longest_lease)):
            _positive(role, value, int | float)
        for role, value in (("per_owner", per_owner), ("capacity", capacity)):
            _positive(role, value, int)
        self._auth = auth
        self._endpoint = None if endpoint is None else endpoint.rstrip("/")
        self._name = name
        self._lease = min(lease, longest_lease)
        self._longest = longest_lease
        self._limits = limits or Limits(body_bytes=1 << 20)
        try:
            self._leases = Leases(str(path), per_owner=per_owner, capacity=capacity)
        except (sqlite3.Error, ValueError) as error:  # NUL in its name
            raise UsageError(
                f"the database {path} cannot be used",
                found=f"{type(error).__name__}: {error}",
                help="name a file in a directory that is there, of this directory or a new one",
            ) from error
        self._base_url = self._address = ""
        self._app: ASGIApp | None = None
        self._listening: Listening | None = None

    @property
    def app(self) -> ASGIApp:
        """The ASGI app, for a server of your own.

        Raises:
            UsageError: There is no endpoint, and so no address that clients could be told.
        """
        if self._app is None:
            if self._endpoint is None:
                raise UsageError(
                    "`.app` needs endpoint=, since nobody knows where the app will be served",
                    help='DirectoryServer(path, endpoint="https://directory.internal")',
                )
            self._app = self._made(self._endpoint)
        return self._app

    @property
    def url(self) -> str:
        """Where it listens, with the path of its endpoint; "" before `start`."""
        return self._address

    async def start(self, *, port: int = 8090, host: str = "127.0.0.1") -> None:
        """Serve in this event loop; returns when it listens.

        Args:
            port: The port; 0 takes a free one, see `url`.
            host: The address; without `auth` one of this machine.

        Raises:
            UsageError: It is served already, without `auth` to others than this machine, or at all
                addresses without an endpoint that says where clients come in.
            OSError: The address cannot be listened at.
        """
        check_start(
            "directory",
            self._listening,
            host,
            local=self._auth is None,
            nowhere="the catalog" if self._endpoint is None else None,
            help='DirectoryServer(path, endpoint="https://directory.internal")',
        )
        listener, address = listener_at(host, port)
        self._endpoint = self._endpoint or address
        self._address = address + urlsplit(self._endpoint).path
        self._listening = Listening(self.app)
        await self._listening.start(listener)

    async def stop(self) -> None:
        """Answer what was asked, and close the database. Agents stay registered."""
        if self._listening is not None:
            await self._listening.stop()
        await self._leases.close()

    # --- the app -------------------------------------------------------------------------------

    def _made(self, endpoint: str) -> ASGIApp:
        base = urlsplit(endpoint).path
        self._base_url = endpoint
        catalogs = list(dict.fromkeys([base + CATALOG_PATH, CATALOG_PATH]))
        app = Starlette(
            routes=[
                Route(_HEALTH, _healthy),
                *(Route(each, self._catalog) for each in catalogs),
                Route(f"{base}/search", _told(self._search), methods=["POST"]),
                Route(f"{base}/explore", _told(_explore), methods=["POST"]),
                Route(f"{base}/agents", _told(self._list), methods=["GET"]),
                Route(f"{base}/agents", _told(self._register), methods=["POST"]),
                Route(f"{base}/agents/{{identifier}}", _told(self._get), methods=["GET"]),
                Route(f"{base}/agents/{{identifier}}", _told(self._drop), methods=["DELETE"]),
            ],
            lifespan=self._lifespan,
        )
        app.router.redirect_slashes = False  # which would send clients to whatever Host says
        return Guard(
            app,
            gate=Gate(self._auth, self._limits),
            local=self._auth is None,
            limits=self._limits,
            open_paths=[_HEALTH, *catalogs],
            rpc_paths=(),
        )

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        yield
        if self._listening is None:  # served by somebody else's server
            await self._leases.close()

    async def _catalog(self, request: Request) -> JSONResponse:
        """What anybody may know: that there is a registry. Its agents are for principals."""
        host = urlsplit(self._base_url).hostname or ""
        entry = {
            "identifier": f"urn:air:{host}:registry:agents",
            "displayName": self._name,
            "type": REGISTRY_TYPES[0],
            "mediaType": REGISTRY_TYPES[0],
            "url": self._base_url,
        }
        found = {"specVersion": "1.0", "host": {"displayName": self._name}, "entries": [entry]}
        return JSONResponse(found, media_type=CATALOG_TYPE)

    async def _register(self, request: Request) -> Response:
        given = await _body(request, _Registered)
        card, url = _card(given.card, given.url), given.url
        identifier = given.identifier or _identifier(card)
        _check_identifier(identifier, card)
        lease = min(given.lease_seconds or self._lease, self._longest)
        try:
            entry = _entry(identifier, card, url)
            new = await self._leases.register(identifier, _owner(request), entry, lease)
        except TakenError:
            raise _Refused(409, "ALREADY_EXISTS", f"{identifier} is another owner's") from None
        except FullError:
            raise _Refused(
                409, "RESOURCE_EXHAUSTED", "there are too many agents: unregister some"
            ) from None
        answer = {"identifier": identifier, "leaseSeconds": lease}
        return JSONResponse(answer, 201 if new else 200)

    async def _drop(self, request: Request) -> Response:
        identifier = _named(request)
        try:
            known = await self._leases.unregister(identifier, _owner(request))
        except TakenError:
            raise _Refused(403, "PERMISSION_DENIED", f"{identifier} is another owner's") from None
        if not known:
            raise _Refused(404, "NOT_FOUND", "there is no such agent")
        return Response(status_code=204)

    async def _get(self, request: Request) -> Response:
        entry = await self._leases.get(_named(request))
        if entry is None:
            raise _Refused(404, "NOT_FOUND", "there is no such agent")
        return JSONResponse(entry)

    async def _list(self, request: Request) -> Response:
        asked = request.query_params
        for each in ("filter", "orderBy"):
            if each in asked:
                raise _Refused(400, "INVALID_ARGUMENT", f"{each} is not supported: search instead")
        size = asked.get("pageSize", "20")
        if not size.isdecimal() or not 1 <= int(size[:9]) <= _PAGE:
            raise _Refused(400, "INVALID_ARGUMENT", f"pageSize is from 1 to {_PAGE}")
        items, total = await self._leases.page(asked.get("pageToken", ""), int(size))
        answer: dict[str, Any] = {"items": items, "total": total}
        if len(items) == int(size):
            answer["pageToken"] = items[-1]["identifier"]
        return JSONResponse(answer)

    async def _search(self, request: Request) -> Response:
        asked = await _body(request, _Search)
        token = asked.page_token or "0"
        if not token.isdecimal():
            raise _Refused(400, "INVALID_ARGUMENT", "the pageToken is not one of this directory")
        entries = await self._leases.all()
        chosen = [(each, _says(each)) for each in entries if _fits(each, asked.query.filter)]
        found = ranked(chosen, asked.query.text)
        start, end = int(token), int(token) + asked.page_size
        source = self._base_url
        results = [{**each, "score": rank, "source": source} for each, rank in found[start:end]]
        answer: dict[str, Any] = {"results": results}
        if end < len(found):
            answer["pageToken"] = str(end)
        if asked.federation == "referrals":
            answer["referrals"] = []
        return JSONResponse(answer)


# --- requests ----------------------------------------------------------------------------------


def _told(answer: Callable[[Request], Awaitable[Response]]) -> Any:
    """An endpoint whose refusals are answers."""

    async def endpoint(request: Request) -> Response:
        try:
            return await answer(request)
        except _Refused as refused:
            error = {"errorCode": refused.code, "message": str(refused)}
            return JSONResponse(error, refused.status)

    return endpoint


async def _healthy(request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


async def _explore(request: Request) -> Response:
    raise _Refused(501, "NOT_IMPLEMENTED", "this directory has no facets")


async def _body(request: Request, kind: type[Any]) -> Any:
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        says = f"{place}: {first['msg']}" if place else first["msg"]
        raise _Refused(400, "INVALID_ARGUMENT", says) from None


def _owner(request: Request) -> str:
    user = request.scope.get("user")
    return ANONYMOUS if user is None else user.display_name


def _named(request: Request) -> str:
    return unquote(request.path_params["identifier"])


# --- entries -----------------------------------------------------------------------------------


def _card(given: dict[str, Any], url: str | None) -> AgentCard:
    if url is not None and (fault := address_fault(url)) is not None:
        raise _Refused(400, "INVALID_ARGUMENT", f"the url {fault}")
    try:
        card = parsed(given)
    except UsageError as error:
        raise _Refused(400, "INVALID_ARGUMENT", f"{error.what}: {error.found}") from None
    if (fault := fault_of(card, url)) is not None:
        raise _Refused(400, "INVALID_ARGUMENT", f"the card {fault}")
    return card


def _host(card: AgentCard) -> str:
    where = origin(card.supported_interfaces[0].url)
    return "" if where is None else where[1]


def _identifier(card: AgentCard) -> str:
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", card.name).strip("-").lower() or "agent"
    return f"urn:air:{_host(card).strip('[]').replace(':', '.')}:agent:{name}"[:_LONGEST]


def _check_identifier(identifier: str, card: AgentCard) -> None:
    """Refuse an identifier that is none, or of somebody else's domain."""
    if _IDENTIFIER.fullmatch(identifier) is None:
        says = "the identifier is not of the form urn:air:<publisher>:<name>"
        raise _Refused(400, "INVALID_ARGUMENT", says)
    publisher, host = publisher_of(identifier), _host(card).replace(":", ".")
    if host != publisher and not ("." in publisher and host.endswith(f".{publisher}")):
        says = f"the publisher {publisher} is not the domain of the agent, {host}"
        raise _Refused(400, "INVALID_ARGUMENT", says)


def _entry(identifier: str, card: AgentCard, url: str | None) -> dict[str, Any]:
    """What the directory shows of an agent: where its card is, or the card itself."""
    skills = [s.id for s in card.skills]
    tags = dict.fromkeys(each for s in card.skills for each in (s.name, *s.tags))
    return {
        "identifier": identifier,
        "displayName": card.name,
        "type": AGENT_TYPE,  # as ARD has it
        "mediaType": AGENT_TYPE,  # as AI Catalog has it
        "description": card.description,
        "version": card.version,
        "capabilities": [*dict.fromkeys([*skills, *tags])],
        "representativeQueries": [each for s in card.skills for each in s.examples][:5],
        **({"url": url} if url is not None else {"data": MessageToDict(card)}),
    }


def _says(entry: dict[str, Any]) -> str:
    about = [entry["displayName"], entry["description"]]
    return " ".join([*about, *entry["capabilities"], *entry["representativeQueries"]])


def _fits(entry: dict[str, Any], filter: dict[str, str | list[str]]) -> bool:
    """Whether an entry has one of the values of each key."""
    for key, values in filter.items():
        wanted = {values} if isinstance(values, str) else set(values)
        if key == "publisher":
            found = [publisher_of(entry["identifier"])]
        else:
            found = [each for each in at_path(entry, key) if isinstance(each, str)]
        if wanted.isdisjoint(found):
            return False
    return True


# --- arguments ---------------------------------------------------------------------------------


def _check(path: object, auth: object, endpoint: object, limits: object) -> None:
    if not isinstance(path, str | Path):
        raise UsageError("DirectoryServer(...) takes a path", found=describe(path))
    if auth is not None and not callable(auth):
        raise UsageError(
            "DirectoryServer(auth=...) takes an authenticator",
            found=describe(auth),
            help="BearerAuth({...}), ApiKeyAuth({...}), JwtAuth(...), or an async function",
        )
    if endpoint is not None:
        fault = address_fault(endpoint) if isinstance(endpoint, str) else "is no text"
        if fault is not None:
            raise UsageError(
                f"DirectoryServer(endpoint=...) takes a URL; this one {fault}",
                help='such as "https://directory.internal"',
            )
    if limits is not None and not isinstance(limits, Limits):
        raise UsageError("DirectoryServer(limits=...) takes Limits(...)", found=describe(limits))


def _positive(role: str, value: Any, kind: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, kind) or not value > 0:
        raise UsageError(f"DirectoryServer({role}=...) is a number above 0", found=describe(value))
