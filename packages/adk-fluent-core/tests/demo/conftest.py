"""Gemini's REST interface on loopback, for ADK's own model class and Google's own client."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: A text; a call of a tool, with its arguments; or an HTTP status, its name and a message.
Answer = str | tuple[str, dict[str, Any]] | tuple[int, str, str]
#: What an answer costs.
PROMPT, OUTPUT = 70, 7


@dataclass(frozen=True)
class Asked:
    """One request, as it came over the wire."""

    path: str
    key: str | None
    body: dict[str, Any]

    @property
    def model(self) -> str:
        return self.path.rpartition("/")[2].partition(":")[0]

    @property
    def system(self) -> str:
        return "".join(part["text"] for part in self.body["systemInstruction"]["parts"])

    @property
    def agent(self) -> str:
        """Whose request it is; ADK tells every model so."""
        found = re.search(r'internal name is "(\w+)"', self.system)
        assert found, self.system
        return found[1]

    @property
    def text(self) -> str:
        parts = [part for content in self.body["contents"] for part in content["parts"]]
        return "\n".join(part.get("text", "") for part in parts)

    @property
    def ticket(self) -> str:
        return self.text.partition("Ticket: ")[2][:3]

    @property
    def tools(self) -> list[str]:
        declared = [tool["functionDeclarations"] for tool in self.body.get("tools", [])]
        return [function["name"] for functions in declared for function in functions]

    @property
    def result(self) -> Any:
        """What the tool that the model called has returned; None before it was called."""
        last = self.body["contents"][-1]["parts"][-1]
        return last["functionResponse"]["response"] if "functionResponse" in last else None


def _nothing(asked: Asked) -> Answer:
    raise AssertionError(f"nobody said what to answer to {asked.path}")


@dataclass
class Gemini:
    """What came in, and what goes out."""

    tokens: ClassVar[int] = PROMPT + OUTPUT  # of each answer

    url: str = ""
    answer: Callable[[Asked], Answer] = _nothing
    asked: list[Asked] = field(default_factory=list[Asked])

    def of(self, agent: str) -> list[Asked]:
        return [each for each in self.asked if each.agent == agent]


def _on_the_wire(answer: Answer) -> tuple[int, dict[str, Any]]:
    if isinstance(answer, tuple) and len(answer) == 3:
        code, status, message = answer
        return code, {"error": {"code": code, "message": message, "status": status}}
    if isinstance(answer, str):
        part: dict[str, Any] = {"text": answer}
    else:
        name, args = answer
        part = {"functionCall": {"name": name, "args": args}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    usage = {
        "promptTokenCount": PROMPT,
        "candidatesTokenCount": OUTPUT,
        "totalTokenCount": PROMPT + OUTPUT,
    }
    return 200, {"candidates": [candidate], "usageMetadata": usage}


@pytest.fixture
def gemini() -> Iterator[Gemini]:
    """A server that is asked and answers as Gemini is and does."""
    it = Gemini()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked = Asked(self.path, self.headers["x-goog-api-key"], body)
            it.asked.append(asked)
            status, answer = _on_the_wire(it.answer(asked))
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=UTF-8")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing; what was asked is recorded."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        it.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield it
        finally:
            server.shutdown()
            thread.join()
