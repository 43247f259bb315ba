"""Web sites on loopback that hold what directories are made of."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import uvicorn
from remote_kit import card
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

if TYPE_CHECKING:
    from collections.abc import Generator

    from starlette.requests import Request

AGENT = "application/a2a-agent-card+json"
CATALOG = "application/ai-catalog+json"
REGISTRY = "application/ai-registry+json"
AT = "/.well-known/ai-catalog.json"


#: What a page does with what is sent.
Page = Callable[[Any], Any]


@dataclass
class Site:
    """A site.

    Attributes:
        url: Its address.
        pages: Paths and what is there: JSON, bytes, a response, or a function of the request's
            JSON.
        asked: What was asked: path, JSON, and authorization.
    """

    url: str = ""
    pages: dict[str, Any] = field(default_factory=dict[str, Any])
    asked: list[tuple[str, Any, str]] = field(default_factory=list[tuple[str, Any, str]])

    def on(self, path: str, page: Page) -> None:
        self.pages[path] = page

    def clear(self) -> None:
        self.pages.clear()
        self.asked.clear()

    async def answer(self, request: Request) -> Response:
        body = await request.body()
        sent = await request.json() if body else dict(request.query_params)
        self.asked.append((request.url.path, sent, request.headers.get("authorization", "")))
        page = self.pages.get(request.url.path)
        if callable(page) and not isinstance(page, Response):
            page = page(sent)
        if page is None:
            return JSONResponse({}, 404)
        if isinstance(page, bytes):
            return Response(page, media_type="application/json")
        return page if isinstance(page, Response) else JSONResponse(page)

    def card(self, name: str, *skills: str, url: str = "") -> dict[str, Any]:
        """The card of an agent that is at this site."""
        offered = [
            {"id": each, "name": each, "description": each, "tags": [each]} for each in skills
        ]
        return {**card(f"{url or self.url}/{name}"), "name": name, "skills": offered}

    def lists(self, name: str, *skills: str, **more: Any) -> dict[str, Any]:
        """An entry of an agent; its card stands in it, unless `url` says where it is."""
        kind = more.pop("kind", AGENT)
        made = {"identifier": f"urn:air:acme.com:agent:{name}", "displayName": name, "type": kind}
        if "url" not in more and "data" not in more:
            more["data"] = self.card(name, *skills)
        return {**made, **({"capabilities": list(skills)} if skills else {}), **more}


def catalog(*entries: Any, **more: Any) -> dict[str, Any]:
    return {"specVersion": "1.0", "entries": list(entries), **more}


@contextmanager
def site() -> Generator[Site]:
    """A site that listens, in a thread of its own."""
    made = Site()
    methods = ["GET", "POST", "DELETE"]
    app = Starlette(routes=[Route("/{path:path}", made.answer, methods=methods)])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        made.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()  # what comes before it listens waits in the socket
        try:
            yield made
        finally:
            server.should_exit = True
            thread.join()
