"""ADK's own command `adk` as processes, for tests: the one of the environment they run in."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import httpx

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

#: So slow may a process start on a busy machine, its modules not compiled yet.
PATIENCE: Final = 120.0  # seconds

_KEYS: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI")
USER: Final = "ann"
_PROMPT: Final = "[user]: "

#: What the servers send: an event, or another object of JSON.
Event = dict[str, Any]


def texts(events: Sequence[Event], *, partial: bool = False) -> list[tuple[str, str]]:
    """Who said what; fragments only if they are asked for."""
    said: list[tuple[str, str]] = []
    for event in events:
        content: Event = event.get("content") or {}
        parts: list[Event] = content.get("parts") or []
        text = "".join(part.get("text") or "" for part in parts)
        if text and bool(event.get("partial")) == partial:
            said.append((event["author"], text))
    return said


def question(events: Sequence[Event]) -> Event:
    """The one question that they ask: a function call that waits for an answer."""
    (asked,) = (
        part["functionCall"]
        for event in events
        if event.get("longRunningToolIds")
        for part in event["content"]["parts"]
        if "functionCall" in part
    )
    return asked


class Adk:
    """The command, with a home of its own.

    Args:
        home: A directory for what it keeps and logs.
    """

    def __init__(self, home: Path) -> None:
        temporary = home / "tmp"
        temporary.mkdir(parents=True)
        self._home = home
        own = dict.fromkeys(("HOME", "USERPROFILE"), str(home))
        own |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))  # where it logs
        self._env = {key: value for key, value in os.environ.items() if key not in _KEYS}
        self._env |= own | {"PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}

    def _command(self, *args: object) -> list[str]:
        return [sys.executable, "-m", "google.adk.cli", *map(str, args)]

    def run(self, *args: object, typed: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run a command to its end.

        Args:
            *args: What follows `adk`.
            typed: The lines that a person types.
        """
        return subprocess.run(
            self._command(*args),
            input="".join(f"{line}\n" for line in typed),
            env=self._env,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE,
            check=False,
        )

    def talk(self, agent: Path, *typed: str) -> list[str]:
        """What a terminal shows of `adk run` when somebody types these lines, and then `exit`."""
        lines = (*typed, "exit")
        done = self.run("run", agent, typed=lines)
        assert done.returncode == 0, done.stderr
        _, running, rest = done.stdout.partition("Running agent ")
        start, *answers = rest.split(_PROMPT)
        shown = (f"{_PROMPT}{line}\n{answer}" for line, answer in zip(lines, answers, strict=True))
        return f"{running}{start}{''.join(shown)}".splitlines()

    @contextmanager
    def serve(self, command: str, agents: Path, *options: object) -> Generator[Server]:
        """A server on a free port of this machine, until the block ends."""
        log = self._home / f"{command}.log"
        arguments = self._command(command, "--port", 0, *options, agents)
        with (
            log.open("w", encoding="utf-8") as output,
            subprocess.Popen(
                arguments,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            ) as process,
        ):
            try:
                yield Server(_address(process, log), log)
            finally:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until:
        if found := re.search(r"running on (http://\S+)", log.read_text("utf-8")):
            return found[1]
        time.sleep(0.1)
    raise AssertionError(f"it does not serve:\n{log.read_text('utf-8')}")


@dataclass(frozen=True)
class Server:
    """A running `adk api_server` or `adk web`."""

    url: str
    log: Path

    def request(self, method: str, path: str, body: object = None) -> httpx.Response:
        """One request on a connection of its own: a server that failed closes the one it had."""
        return httpx.request(method, f"{self.url}{path}", json=body, timeout=PATIENCE)

    def get(self, path: str) -> Any:
        """The JSON at a path."""
        response = self.request("GET", path)
        assert response.status_code == 200, f"{path}: {response.text}"
        return response.json()

    def session(self, app: str, **state: object) -> Conversation:
        """A new session."""
        body = {"state": state} if state else {}
        made = self.request("POST", f"/apps/{app}/users/{USER}/sessions", body)
        assert made.status_code == 200, made.text
        return Conversation(self, app, made.json()["id"])


@dataclass(frozen=True)
class Conversation:
    """A session of a server."""

    server: Server
    app: str
    id: str

    @property
    def path(self) -> str:
        return f"/apps/{self.app}/users/{USER}/sessions/{self.id}"

    @property
    def state(self) -> dict[str, Any]:
        return self.server.get(self.path)["state"]

    def post(self, message: str | dict[str, Any], *, stream: bool = False) -> httpx.Response:
        """Send a text, or a part that is none."""
        part = {"text": message} if isinstance(message, str) else message
        body = {
            "appName": self.app,
            "userId": USER,
            "sessionId": self.id,
            "newMessage": {"role": "user", "parts": [part]},
            "streaming": stream,
        }
        return self.server.request("POST", "/run_sse" if stream else "/run", body)

    def send(self, message: str | dict[str, Any], *, stream: bool = False) -> list[Event]:
        """Send a message; the events of its run."""
        response = self.post(message, stream=stream)
        assert response.status_code == 200, self.server.log.read_text("utf-8")
        if not stream:
            return response.json()
        lines = response.text.splitlines()
        return [
            json.loads(line.removeprefix("data:")) for line in lines if line.startswith("data:")
        ]

    def answer(self, asked: Event, *, stream: bool = False, **response: Any) -> list[Event]:
        """Answer a question; the events of what goes on."""
        given = {"id": asked["id"], "name": asked["name"], "response": response}
        return self.send({"functionResponse": given}, stream=stream)

    def at(self, server: Server) -> Conversation:
        """The same session on another server."""
        return replace(self, server=server)
