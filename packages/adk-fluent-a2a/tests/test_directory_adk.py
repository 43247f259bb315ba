"""Directories: what is found where, and what is refused."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from directory_kit import AT, CATALOG, REGISTRY, Site, catalog, site
from remote_kit import task, text
from starlette.responses import RedirectResponse, Response

from adk_fluent import RemoteAgent
from adk_fluent.a2a import AgentDirectory, AuthConfig, DirectoryEntry, _directory_adk, _lookup_adk
from adk_fluent.a2a._cards_adk import Cards
from adk_fluent.a2a._lookup_adk import Wanted, Web, _Read
from adk_fluent.errors import CredentialsError, RemoteError, UsageError
from adk_fluent.ir import RemoteAgentNode

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.adk
CARD = "/.well-known/agent-card.json"


@pytest.fixture(scope="module")
def sites() -> Iterator[tuple[Site, Site]]:
    with site() as acme, site() as other:
        yield acme, other


@pytest.fixture
def acme(sites: tuple[Site, Site]) -> Site:
    for each in sites:
        each.clear()
    return sites[0]


@pytest.fixture
def other(acme: Site, sites: tuple[Site, Site]) -> Site:
    return sites[1]


def patient(*sources: Any, **options: Any) -> AgentDirectory:
    """A directory that waits on a busy machine."""
    return AgentDirectory(*sources, timeout=120, **options)


async def names(directory: AgentDirectory, *args: Any, **options: Any) -> list[str]:
    return [each.name for each in await directory.discover(*args, **options)]


# --- what is found -----------------------------------------------------------------------------


async def test_several_capabilities_mean_all_of_them_as_the_cards_say(acme: Site) -> None:
    """Entries claim; cards decide."""
    acme.pages[AT] = catalog(
        acme.lists("both", "refund", "check"),
        acme.lists("refunds", "refund"),
        acme.lists("liar", "refund", "check", data=acme.card("liar", "refund")),
        acme.lists("silent", data=acme.card("silent", "check", "refund")),
        acme.lists("modest", "refund", data=acme.card("modest", "check", "refund")),
        acme.lists("tool", "refund", "check", kind="application/mcp-server-card+json"),
    )
    directory = patient(acme.url)
    assert await names(directory, capabilities=["refund", "check"]) == ["both", "silent"]
    assert await names(directory) == ["both", "refunds", "liar", "silent", "modest"]
    assert await names(directory, limit=2) == ["both", "refunds"]
    assert await names(directory, "who does a check?", capabilities=["check"]) == ["both"]


async def test_what_is_found_becomes_a_step(acme: Site) -> None:
    """The card is read where the agent is, and counts there."""
    acme.pages[AT] = catalog(acme.lists("Pay-1", "refund", url=f"{acme.url}/cards/pay"))
    acme.pages["/cards/pay"] = acme.card("Pay-1", "refund")
    (found,) = await patient(acme.url).discover(capabilities=["refund"])
    assert isinstance(found, DirectoryEntry)
    assert found.identifier == "urn:air:acme.com:agent:Pay-1"
    assert (found.publisher, found.card_url) == ("acme.com", f"{acme.url}/cards/pay")
    assert found.directory == acme.url
    made = RemoteAgent.from_card(found, timeout=5)
    assert made.name == "pay_1"
    node = made.to_ir()
    assert isinstance(node, RemoteAgentNode)
    assert node.endpoint == f"{acme.url}/Pay-1/"
    reply = {"jsonrpc": "2.0", "result": task("COMPLETED", text("R1"))}
    acme.on("/Pay-1/", lambda sent: {**reply, "id": sent["id"]})
    assert (await made.run("Pay.")).text == "R1"


@pytest.mark.parametrize("path", ["", "/a2a/", "/cards/pay.json"])
async def test_an_agent_is_found_at_its_well_known_address(acme: Site, path: str) -> None:
    place = path if path.endswith(".json") else path.rstrip("/") + CARD
    acme.pages[place] = acme.card("pay", "refund")
    directory = patient(acme.url + path)
    assert await names(directory, capabilities=["refund"]) == ["pay"]
    assert await names(directory, capabilities=["other"]) == []


async def test_cards_and_files_are_a_static_list(acme: Site, tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(json.dumps(acme.card("filed", "refund")))
    listed = catalog(acme.lists("listed", "refund"), acme.lists("x", kind="text/plain"))
    (tmp_path / "catalog.json").write_text(json.dumps(listed))
    given = acme.card("given", "refund"), acme.card("others", "check")
    directory = AgentDirectory(*given, tmp_path / "card.json", str(tmp_path / "catalog.json"))
    assert await names(directory, capabilities=["refund"]) == ["given", "filed", "listed"]
    assert await names(directory, "check") == ["others"]
    assert acme.asked == []


async def test_a_registry_is_searched_page_by_page(
    acme: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ARD: one value of a filter narrows, since several would be any of them."""
    monkeypatch.setenv("DIRECTORY_TOKEN", "t0k")
    registry = {**acme.lists("registry", url=f"{acme.url}/api/v1/", kind=REGISTRY)}
    acme.pages[AT] = catalog(registry)
    some = [acme.lists(name, "refund", "check", score=9) for name in ("b", "a")]
    pages = {None: {"results": some[:1], "pageToken": "2"}, "2": {"results": some[1:]}}
    acme.on("/api/v1/search", lambda sent: pages[sent.get("pageToken")])
    directory = patient(acme.url, auth=AuthConfig("bearer", "DIRECTORY_TOKEN"))
    assert await names(directory, capabilities=["refund", "check"]) == ["b", "a"]
    _, (path, sent, authorization), (_, more, _) = acme.asked
    assert (path, authorization) == ("/api/v1/search", "Bearer t0k")
    kind = "application/a2a-agent-card+json"
    assert sent["query"] == {
        "text": "refund check",
        "filter": {"type": [kind], "capabilities": ["refund"]},
    }
    assert sent["federation"] == "none"
    assert more == sent | {"pageToken": "2"}


async def test_a_registry_without_a_catalog_is_found_and_listed(acme: Site) -> None:
    acme.on("/agents", lambda _: {"items": [acme.lists("pay", "refund")], "total": 1})
    assert await names(patient(acme.url)) == ["pay"]
    assert acme.asked[-1][1] == {"pageSize": "100"}


async def test_catalogs_nest_and_name_versions(acme: Site) -> None:
    inner = catalog(acme.lists("inner", "refund"), acme.lists("pay", "refund"))
    acme.pages["/more.json"] = inner
    versions = [
        acme.lists("pay", data=acme.card(f"pay{at}", "refund"), version=each)
        for at, each in enumerate(("1.9.0", "1.10.0", "1.10.0-rc1"))
    ]
    acme.pages[AT] = catalog(
        *versions,
        acme.lists("a", kind=CATALOG, url=f"{acme.url}/more.json"),
        acme.lists("b", kind=CATALOG, data=catalog(acme.lists("embedded"))),
        specVersion="1.7",
    )
    assert await names(patient(acme.url)) == ["pay1", "inner", "embedded"]


async def test_sources_are_asked_in_their_order_and_name_an_agent_once(
    acme: Site, other: Site
) -> None:
    acme.pages[AT] = catalog(acme.lists("pay"), acme.lists("ship"))
    other.pages[AT] = catalog(other.lists("pay"), other.lists("mail"))
    same = acme.card("again", url=acme.url)
    same["supportedInterfaces"][0]["url"] = f"{acme.url}/pay/"
    found = await patient(acme.url, other.url, same).discover()
    assert [each.name for each in found] == ["pay", "ship", "mail"]
    assert found[0].directory == acme.url


async def test_an_answer_is_used_until_it_expires(
    acme: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(_directory_adk, "monotonic", lambda: clock[0])
    acme.pages[AT] = catalog(acme.lists("pay"))
    directory = patient(acme.url, ttl=60)
    asked: list[int] = []
    for now in (0, 59, 60, 61):
        clock[0] = now
        (await directory.discover()).clear()  # which is the caller's own list
        asked.append(len(acme.asked))
    directory.forget()
    await directory.discover()
    assert [*asked, len(acme.asked)] == [1, 1, 2, 2, 3]


# --- what is refused ---------------------------------------------------------------------------


def hostile(kind: str, here: Site, there: Site) -> Any:
    nest = catalog(here.lists("end"))
    for at in range(5):
        nest = catalog(here.lists(f"n{at}", kind=CATALOG, data=nest))
    here.pages["/loop.json"] = catalog(here.lists("l", kind=CATALOG, url=f"{here.url}/loop.json"))
    here.pages["/search"] = {"results": [], "pageToken": "same"}
    many = [here.lists(f"c{at}", kind=CATALOG, url=f"{here.url}/{at}.json") for at in range(5)]
    here.pages |= {f"/{at}.json": catalog() for at in range(5)}
    elsewhere = catalog(here.lists("c", kind=CATALOG, url=f"{there.url}/more.json"))
    return {
        "html": b"<html>",
        "deep": b"[" * 100_000,
        "huge": Response(b" " * ((4 << 20) + 1)),
        "list": b"[1]",
        "old": catalog(specVersion="2.0"),
        "no entries": {"specVersion": "1.0", "entries": 7},
        "entry": catalog(7),
        "no type": catalog({"identifier": "x", "url": "https://a.b"}),
        "both": catalog(here.lists("x", url="https://a.b", data={})),
        "text": catalog(here.lists("x", displayName=7)),
        "capabilities": catalog(here.lists("x", capabilities="refund")),
        "duplicates": catalog(here.lists("x"), here.lists("x")),
        "many": catalog(*(here.lists(f"x{at}", data=0) for at in range(1001))),
        "documents": catalog(*many),
        "nested": nest,
        "cycle": catalog(here.lists("c", kind=CATALOG, url=f"{here.url}/loop.json")),
        "itself": catalog(here.lists("c", kind=CATALOG, url=here.url + AT)),
        "redirect": RedirectResponse(f"{there.url}/more.json?key=pa55"),
        "foreign": elsewhere,
        "registry": catalog(here.lists("r", kind=REGISTRY, url=f"{there.url}/api")),
        "readable": catalog(here.lists("c", kind=CATALOG, url="http://acme.com/c.json")),
        "scheme": catalog(here.lists("c", kind=CATALOG, url="file:///etc/passwd")),
        "same page": catalog(here.lists("r", kind=REGISTRY, url=here.url)),
        "status": Response(status_code=500),
    }[kind]


@contextmanager
def fewer_documents() -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_lookup_adk, "MOST_DOCUMENTS", 4)
        yield


@pytest.mark.parametrize(
    ("kind", "says", "code"),
    [
        ("html", "is not JSON", "DIRECTORY"),
        ("deep", "nested too deeply", "DIRECTORY"),
        ("huge", "more than 4194304 bytes", "DIRECTORY"),
        ("list", "has a card that cannot be read", "DIRECTORY"),
        ("old", "is of version '2.0'", "DIRECTORY"),
        ("no entries", "has no list of 'entries'", "DIRECTORY"),
        ("entry", "no JSON object: number 0", "DIRECTORY"),
        ("no type", "without a type", "DIRECTORY"),
        ("both", "not exactly one of url and data", "DIRECTORY"),
        ("text", "'displayName' is no text", "DIRECTORY"),
        ("capabilities", "'capabilities' is no list", "DIRECTORY"),
        ("duplicates", "names 'urn:air:acme.com:agent:x' twice", "DIRECTORY"),
        ("many", "more than 1000 entries", "DIRECTORY"),
        ("documents", "leads to more than 4 others", "DIRECTORY"),
        ("nested", "more than 4 deep", "DIRECTORY"),
        ("cycle", "leads back to itself", "DIRECTORY"),
        ("itself", "leads back to itself", "DIRECTORY"),
        ("redirect", "a redirect to .*/more.json is not followed", "DIRECTORY"),
        ("foreign", "more.json, which is of another origin", "DIRECTORY"),
        ("registry", "api, which is of another origin", "DIRECTORY"),
        ("readable", "only https is safe", "DIRECTORY"),
        ("scheme", "is not a URL of https", "DIRECTORY"),
        ("same page", "gives the same page again", "DIRECTORY"),
        ("status", "HTTP status 500", "HTTP"),
    ],
)
async def test_a_hostile_directory_is_refused(
    acme: Site, other: Site, kind: str, says: str, code: str
) -> None:
    acme.pages[AT] = hostile(kind, acme, other)
    with fewer_documents(), pytest.raises(RemoteError, match=says) as caught:
        await patient(acme.url).discover("refund")
    assert caught.value.error_code == f"A2A_{code}"
    assert "pa55" not in str(caught.value)
    assert other.asked == []


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("elsewhere", "and not to the origin of"),
        ("embedded", "and not to the origin of"),
        ("no card", "a card that cannot be read"),
        ("gone", "HTTP status 404"),
        ("redirected", "HTTP status 307"),
        ("readable", "only https is safe"),
        ("outside", "is of another origin than origins= has"),
    ],
)
async def test_an_agent_that_must_not_be_used_is_left_out(
    acme: Site, other: Site, kind: str, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    stolen = acme.card("bad")
    stolen["supportedInterfaces"] += other.card("bad")["supportedInterfaces"]
    acme.pages |= {"/stolen": stolen, "/moved": RedirectResponse(f"{acme.url}/good")}
    other.pages["/card"] = other.card("bad")
    given = {
        "elsewhere": {"url": f"{acme.url}/stolen"},
        "embedded": {"data": stolen},
        "no card": {"data": 7},
        "gone": {"url": f"{acme.url}/nothing"},
        "redirected": {"url": f"{acme.url}/moved"},
        "readable": {"url": "http://acme.com/card"},
        "outside": {"url": f"{other.url}/card"},
    }[kind]
    bad = acme.lists("bad", **given)
    acme.pages[AT] = catalog(bad, acme.lists("good"))
    with caplog.at_level(logging.WARNING, "adk_fluent"):
        assert await names(patient(acme.url, origins=[])) == ["good"]
    assert "left out of a directory: 'urn:air:acme.com:agent:bad'" in caplog.text
    acme.pages[AT] = catalog(bad)
    with pytest.raises(RemoteError, match=says):
        await patient(acme.url, origins=[]).discover()
    assert (kind == "outside") <= (other.asked == [])


async def test_origins_that_are_named_may_be_led_to(acme: Site, other: Site) -> None:
    """And secrets stay at the directory: none is sent there."""
    other.pages |= {"/more.json": catalog(other.lists("pay", url=f"{other.url}/card"))}
    other.pages["/card"] = other.card("pay")
    acme.pages[AT] = catalog(acme.lists("c", kind=CATALOG, url=f"{other.url}/more.json"))
    auth = AuthConfig("bearer", "DIRECTORY_TOKEN")
    directory = patient(acme.url, auth=auth, origins=[other.url])
    with pytest.raises(CredentialsError, match="DIRECTORY_TOKEN"):
        await directory.discover()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DIRECTORY_TOKEN", "t0k")
        assert await names(directory) == ["pay"]
    assert [each[2] for each in acme.asked] == ["Bearer t0k"]
    assert [each[2] for each in other.asked] == ["", ""]


async def test_a_remote_directory_names_nothing_on_this_machine(acme: Site) -> None:
    far = RemoteAgentNode("far", endpoint="https://directory.example.com")
    read = _Read(Web(far, None, 1.0), Wanted("", (), 1), None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert read._place_fault(acme.url) == "is on this machine, and the directory is not"
    assert read._place_fault("https://pay.example.com") is None


async def test_time_is_limited(acme: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    async def never(*_: Any) -> None:
        await asyncio.Event().wait()

    acme.pages[AT] = catalog(acme.lists("pay", url=f"{acme.url}/card"))
    monkeypatch.setattr(Cards, "get", never)
    directory = AgentDirectory(acme.url, timeout=120)
    directory._sources[0].timeout = 0.01  # that of one card alone
    with pytest.raises(RemoteError, match=r"waits too long for 'urn:air:acme.com:agent:pay'"):
        await directory.discover()
    monkeypatch.setattr(Web, "find", never)
    with pytest.raises(RemoteError, match=r"did not finish within 0.01 s") as caught:
        await AgentDirectory(acme.url, timeout=0.01).discover()
    assert caught.value.error_code == "A2A_DEADLINE"


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (AgentDirectory, "at least one source"),
        (lambda: AgentDirectory("http://acme.com"), "only https is safe"),
        (lambda: AgentDirectory("https://u:pa55@acme.com"), "has credentials"),
        (lambda: AgentDirectory("no such file"), "cannot be read"),
        (lambda: AgentDirectory(7), "an agent card is needed"),
        (lambda: AgentDirectory({"name": "x"}), "has no interface"),
        (lambda: AgentDirectory("https://a.b", auth="token"), "auth= takes an AuthConfig"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        (lambda: AgentDirectory("https://a.b", ttl=0), "ttl= is a number"),
        (lambda: AgentDirectory("https://a.b", origins="https://a.b"), "takes a list"),
        (lambda: AgentDirectory("https://a.b", origins=["a.b"]), "origins= takes origins"),
    ],
)
def test_what_is_no_source_is_refused_at_once(make: Any, says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        make()
    assert "pa55" not in str(caught.value)


async def test_what_cannot_be_looked_for_is_refused(acme: Site) -> None:
    directory = AgentDirectory(acme.card("pay"))
    for options in ({"capabilities": "refund"}, {"capabilities": [7]}, {"limit": 0}, {"text": 7}):
        with pytest.raises(UsageError):
            await directory.discover(**options)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_a_catalog_file_has_its_cards_in_itself(acme: Site, tmp_path: Path) -> None:
    path = tmp_path / "catalog.json"
    for listed, says in (
        (catalog(acme.lists("x", url="https://a.b")), "has the cards in itself"),
        (catalog(acme.lists("x"), acme.lists("x")), "twice"),
    ):
        path.write_text(json.dumps(listed))
        with pytest.raises(UsageError, match=says):
            AgentDirectory(path)


# --- ADK's registry ----------------------------------------------------------------------------


class Registry:
    """What `AgentRegistry` does, without Google Cloud's libraries, which take seconds to import."""

    def __init__(self, site: Site) -> None:
        self._pages = site.pages

    def _page(self, path: str, **sent: Any) -> dict[str, Any]:
        page: Any = self._pages.get(f"/v1/projects/p/{path}")
        if page is None:
            raise RuntimeError("API request failed with status 404")
        answer: Any = page(sent) if callable(page) else page
        return answer

    def list_agents(self, *, page_size: int, page_token: str | None) -> dict[str, Any]:
        more = {} if page_token is None else {"pageToken": page_token}
        return self._page("locations/here/agents", **more)

    def search_agents(self, *, search_string: str, **_: Any) -> dict[str, Any]:
        return self._page("locations/here/agents:search", searchString=search_string)

    def get_agent_info(self, name: str) -> dict[str, Any]:
        return self._page(name.removeprefix("projects/p/"))


@pytest.fixture(params=["like it", pytest.param("itself", marks=pytest.mark.full)])
def cloud(request: pytest.FixtureRequest, acme: Site, monkeypatch: pytest.MonkeyPatch) -> Any:
    """ADK's client of Google Cloud's registry, which asks a site on loopback.

    What it imports of Google Cloud's credentials, and does not use here, is not installed.
    """
    if request.param == "like it":
        return Registry(acme)
    for name in ("agentidentitycredentials_v1", "iamconnectorcredentials_v1alpha"):
        module = ModuleType(f"google.cloud.{name}")
        vars(module)["__getattr__"] = type(name, (), {})  # whatever is asked for
        monkeypatch.setitem(sys.modules, module.__name__, module)
    import google.auth
    from google.adk.integrations.agent_registry import AgentRegistry, agent_registry
    from google.auth.credentials import AnonymousCredentials

    monkeypatch.setattr(google.auth, "default", lambda: (AnonymousCredentials(), "p"))
    monkeypatch.setattr(agent_registry, "AGENT_REGISTRY_BASE_URL", f"{acme.url}/v1")
    return AgentRegistry("p", "here")


async def test_adks_registry_is_a_source(acme: Site, cloud: Any) -> None:
    at = "/v1/projects/p/locations/here/agents"
    registered = {"type": "A2A_AGENT_CARD", "content": acme.card("carded", "refund")}
    skills = [{"id": "refund", "name": "Refund"}]
    interfaces = [{"url": "https://pay.example.com/rest", "protocolBinding": "HTTP_JSON"}]
    protocols = [{"type": "CUSTOM"}, {"type": "A2A_AGENT", "interfaces": interfaces}]
    known = {"displayName": "known", "skills": skills, "protocols": protocols}
    pages = {
        None: {"agents": [{"name": "1", "card": registered}], "nextPageToken": "2"},
        "2": {"agents": [{"name": "2", **known}, {"name": "projects/p/3"}]},
    }
    acme.on(at, lambda sent: pages[sent.get("pageToken")])
    stolen = {"type": "A2A_AGENT_CARD", "content": acme.card("x", url="http://evil.c")}
    acme.pages["/v1/projects/p/3"] = {"name": "projects/p/3", "card": stolen}
    acme.on(f"{at}:search", lambda sent: {"agents": [{"name": sent["searchString"], **known}]})
    directory = patient(cloud)
    found = await directory.discover(capabilities=["refund"])
    assert [each.name for each in found] == ["carded", "known"]
    assert found[1].card.supported_interfaces[0].protocol_binding == "HTTP+JSON"
    assert (await directory.discover("pay back"))[0].identifier == "pay back"
    acme.pages.clear()
    with pytest.raises(RemoteError, match="ADK's registry did not answer"):
        await patient(cloud).discover()
