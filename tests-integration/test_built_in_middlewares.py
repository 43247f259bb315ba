"""Every built-in middleware is tried in the same situations, by tests that find it missing."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adk_fluent import Agent
from adk_fluent.cost import cost_attribution
from adk_fluent.debug import recorder
from adk_fluent.extend import added_tools, registered_middlewares
from adk_fluent.ir import MiddlewareRef
from adk_fluent.middleware import production, todo_list
from adk_fluent.middleware._layer import LAYER
from adk_fluent.middleware._places import ALIASES
from adk_fluent.testing import ScriptedModel

PACKAGE = Path(__file__).resolve().parent.parent / "packages" / "adk-fluent-middleware"
#: Name to where the class is, as ``module:class``.
BUILT_IN = {
    entry.name: entry.target.removesuffix(".DESC")
    for entry in LAYER.entries("middleware")
    if entry.name not in ALIASES
}
SITUATIONS = {
    *("test_happy", "test_streamed", "test_parallel_tools", "test_cancelled"),
    *("test_error_after_the_first_partial", "test_concurrent"),
}
#: Over the emulator, by one file for all.
TROUBLES = ("test_429", "test_503", "test_slow", "test_cut")
SERVICE = PACKAGE / "tests" / "test_faulty_service_adk.py"

by_name = pytest.mark.parametrize("name", BUILT_IN)


def pytest_run(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n0", "--full"]
    environment = {key: value for key, value in os.environ.items() if "PYTEST" not in key}
    return subprocess.run(
        [*command, *args],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment,
        check=False,
    )


@by_name
def test_it_is_tried_in_every_situation(name: str) -> None:
    tree = ast.parse((PACKAGE / "tests" / f"test_{name}_adk.py").read_text("utf-8"))
    functions = {
        node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef)
    }
    assert functions >= SITUATIONS


def test_every_one_is_tried_before_a_faulty_service() -> None:
    listed = pytest_run("--collect-only", str(SERVICE)).stdout
    tests = {line.rpartition("::")[2] for line in listed.splitlines()}
    assert tests >= {f"{trouble}[{name}]" for trouble in TROUBLES for name in BUILT_IN}


@by_name
def test_it_has_a_page(name: str) -> None:
    page = (PACKAGE / "docs" / f"{name}.md").read_text("utf-8")
    assert page.startswith(f"# {name}\n")
    assert "```python" in page
    assert "<!-- names: " in page
    listed = (PACKAGE / "README.md").read_text("utf-8")
    assert listed.count(f"/docs/{name}.md)") == 2  # in the table, and in the navigation


@pytest.mark.full
@by_name
def test_without_its_body_its_tests_fail(name: str) -> None:
    """All of those before a faulty service, and then the first of its own."""
    troubled = [f"{SERVICE}::{trouble}[{name}]" for trouble in TROUBLES]
    own = str(PACKAGE / "tests" / f"test_{name}_adk.py")
    most = len(TROUBLES) + 1
    done = pytest_run(*troubled, own, f"--maxfail={most}", "--without", BUILT_IN[name])
    assert done.returncode == 1, done.stdout[-2000:] + done.stderr[-2000:]
    assert f"{most} failed in " in done.stdout, done.stdout[-2000:]


def test_every_one_says_which_tools_it_adds() -> None:
    """Of any wheel: a name of a tool is checked where all tools are known."""
    added = {name: added_tools(MiddlewareRef(name)) for name in registered_middlewares()}
    assert {name: tools for name, tools in added.items() if tools != ()} == {
        "todo_list": ("write_todos",)
    }


@pytest.mark.adk
def test_cases_are_checked_inside_them() -> None:
    from adk_fluent.eval import EvalError, FluentCase, FluentEvalSuite

    def never(_: Any) -> str:
        raise AssertionError

    agent = Agent("clerk", ScriptedModel(default=never)).tool(len)
    pipeline = agent.middleware(*production(), todo_list(), cost_attribution(), recorder())
    suite = FluentEvalSuite("s", pipeline, [FluentCase("hi", expected_trajectory=["lenn"])])
    with pytest.raises(EvalError, match="did you mean 'len'"):
        suite.run_sync()
    FluentEvalSuite("s", pipeline, [FluentCase("hi", expected_trajectory=["write_todos"])]).check()
