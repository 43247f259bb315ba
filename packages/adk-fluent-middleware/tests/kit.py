"""What tests of middlewares share: a clock that nobody waits for, pipelines, and what was measured.

Imports no ADK itself.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Final

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.extend import registered_middlewares
from adk_fluent.middleware._layer import LAYER
from adk_fluent.middleware._places import ALIASES
from adk_fluent.testing import Call, reply

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import AnyMiddleware
    from adk_fluent.testing import GeminiEmulator

SSE: Final = ExecutionConfig(streaming_mode="sse")


class Time:
    """A clock whose time passes only when somebody waits, and then at once.

    Attributes:
        waits: What was waited for, in seconds, in order.
    """

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.time = now
        self.waits: list[float] = []
        self._waiting: list[tuple[float, int, asyncio.Event]] = []

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Wait; the shortest wait is over first, when nobody else has anything to do."""
        self.waits.append(seconds)
        due = asyncio.Event()
        heapq.heappush(self._waiting, (self.time + max(0.0, seconds), len(self.waits), due))
        for _ in range(20):  # whoever is ready does what there is to do
            await asyncio.sleep(0)
        while not due.is_set():
            if self._waiting:
                at, _, first = heapq.heappop(self._waiting)
                self.time = max(self.time, at)
                first.set()
            await asyncio.sleep(0)


async def until(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    """Wait until something holds, in real time."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  # models and emulators tell nobody
            await asyncio.sleep(0.005)


def search(word: str) -> str:
    """Look something up."""
    return f"found {word}"


def weather(city: str) -> str:
    """The weather."""
    return f"sun in {city}"


#: Two calls at once, then an answer.
TWO_TOOLS: Final = (
    reply(Call("search", {"word": "x"}), Call("weather", {"city": "Rome"})),
    "done",
)


def clerk(gemini: GeminiEmulator, *middlewares: AnyMiddleware, **settings: Any) -> Builder:
    """An agent with two tools, on ADK's Gemini and the emulator, within middlewares."""
    made: Builder = Agent("clerk", gemini.model(**settings)).tool(search).tool(weather)
    for each in middlewares:
        made = made.middleware(each)
    return made


class Measured:
    """What metrics a piece of code has emitted."""

    def __init__(self) -> None:
        from adk_fluent.telemetry import _metrics

        self._module: Any = _metrics
        self._before: Any = None
        self.points: list[tuple[str, float, dict[str, str]]] = []

    def __enter__(self) -> Self:
        points = self.points

        class Noted:
            def __init__(self, name: str) -> None:
                self.name = name

            def add(self, value: float, attributes: dict[str, str] | None = None) -> None:
                points.append((self.name, value, dict(attributes or {})))

            record = set = add

        self._before = self._module._instrument
        self._module._instrument = Noted
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._module._instrument = self._before

    def __call__(self, name: str, **attributes: str) -> float:
        """The sum of a metric, of the points with these attributes (dots written as ``__``)."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        return sum(
            value
            for each, value, having in self.points
            if each == name and wanted.items() <= having.items()
        )


# --- programs in a process of their own, where what is global is set once and for all -------------

#: What such a process must not find of the one that starts it.
_SETTINGS: Final = ("OTEL_", "ADK_CAPTURE_", "ADK_TELEMETRY_")


def run_program(program: str, folder: Path | None = None, **env: str) -> str:
    """What a program prints.

    Args:
        program: Its source; may be indented.
        folder: Where the metadata is written by which core finds this layer, if it is not
            installed but on the path.
        **env: Further variables of its environment.

    Raises:
        AssertionError: It failed.
    """
    own = {name: text for name, text in os.environ.items() if not name.startswith(_SETTINGS)}
    if folder is not None and not _is_installed():
        own["PYTHONPATH"] = os.pathsep.join([own.get("PYTHONPATH", ""), _metadata(folder)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", dedent(program)],
        env={**own, **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def told_by(program: str, folder: Path | None = None, **env: str) -> Any:
    """The JSON on the last line that a program prints."""
    return json.loads(run_program(program, folder, **env).splitlines()[-1])


def _is_installed() -> bool:
    try:
        return bool(distribution("adk-fluent-middleware").entry_points)
    except PackageNotFoundError:
        return False


def _metadata(folder: Path) -> str:
    info = folder / "adk_fluent_middleware-0.1.0.dist-info"
    info.mkdir(exist_ok=True)
    head = "Metadata-Version: 2.1\nName: adk-fluent-middleware\nVersion: 0.1.0\n"
    layer = "[adk_fluent.layers]\nmiddleware = adk_fluent.middleware._layer:LAYER\n"
    (info / "METADATA").write_text(head, "utf-8")
    (info / "entry_points.txt").write_text(layer, "utf-8")
    return str(folder)


# --- all built-ins -------------------------------------------------------------------------------

#: What those need that cannot be made of nothing.
NEEDED: Final[dict[str, dict[str, Any]]] = {
    "context_warning": {"max_context": 1000},
    "model_call_limit": {"per_run": 3},
    "model_fallback": {"models": ["gemini-2.5-flash"]},
    "rate_limiter": {"requests_per_minute": 3},
    "summarization": {},
    "timeout": {"model": 1.0},
    "token_budget": {"max_tokens": 100},
    "tool_call_limit": {"per_run": 3},
}
#: The names of all built-ins.
NAMES: Final = [entry.name for entry in LAYER.entries("middleware") if entry.name not in ALIASES]


def made(name: str) -> Any:
    """A built-in, with no more options than it needs."""
    return registered_middlewares()[name].factory(**NEEDED.get(name, {}))
