"""``adk-fluent eval`` as a person has it, called in this process."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from adk_fluent._keys import KEYS
from adk_fluent.cli import main
from adk_fluent.cli._keys import CLOUD

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: A desk with a scripted model, which answers at once.
DESK = """
from adk_fluent import Agent
from adk_fluent.eval import FluentCase, FluentEvalSuite, Gate
from adk_fluent.testing import Call, ScriptedModel

def lookup(order: str) -> dict:
    "Look up an order."
    print("a tool prints")
    return {"status": "shipped", "order": order}

def say(asked):
    last = asked.raw.contents[-1].parts[0]
    if last.function_response is not None:
        return "it is " + str(last.function_response.response.get("status"))
    if "order" in asked.prompt:
        return Call("lookup", {"order": "A1"})
    return "good morning"

desk = Agent("desk", model=ScriptedModel(default=say)).tool(lookup).writes("answer")
"""

PASSING = """
passing = FluentEvalSuite("passing", desk, [
    FluentCase("where is my order?", id="order", expected_trajectory=["lookup"],
               expected_response_contains="shipped", tags=["orders"]),
    FluentCase("hello", id="hello", expected_response_contains="morning", tags=["talk"]),
])
"""

FAILING = """
failing = FluentEvalSuite("failing", desk, [
    FluentCase("where is my order?", id="order", expected_response_contains="lost",
               tags=["orders"]),
    FluentCase("hello", id="hello", expected_response_contains="morning", tags=["talk"]),
    FluentCase("order", id="boom", mock_tool_outputs={"lookup": ValueError("no such order")},
               expected_trajectory=["lookup"]),
])
"""


@dataclass
class Done:
    """How a call ended, and what it printed."""

    code: int
    out: str
    err: str


class Cli(Protocol):
    def __call__(self, *args: Any) -> Done: ...


class Write(Protocol):
    def __call__(self, name: str, *sources: str) -> Path: ...


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to stand in, no key, and no module of a test left for the next."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in (*KEYS, *CLOUD, "NO_COLOR", "FORCE_COLOR", "TERM", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Put a file where the person stands."""

    def write(name: str, *sources: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(map(dedent, sources)), "utf-8")
        return path

    return write


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    """``adk-fluent eval``, called in this process."""

    def call(*args: Any) -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["eval", *map(str, args)])
        assert isinstance(ended.value.code, int)
        shown = capsys.readouterr()
        return Done(ended.value.code, shown.out, shown.err)

    return call
