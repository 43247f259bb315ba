"""The command `adk`, and the pipelines it is given: core's `examples/agents`, and `agents` here."""

from __future__ import annotations

import shutil
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_commands import Adk, Server

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent.parent / "packages" / "adk-fluent-core" / "examples" / "agents"

if "adk_commands" not in sys.modules:
    _spec = spec_from_file_location("adk_commands", HERE / "adk_commands.py")
    assert _spec is not None
    assert _spec.loader is not None
    _module = sys.modules["adk_commands"] = module_from_spec(_spec)
    _spec.loader.exec_module(_module)


@pytest.fixture(scope="session")
def adk(tmp_path_factory: pytest.TempPathFactory) -> Adk:
    from adk_commands import Adk

    return Adk(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All the pipelines, in a directory that ADK may write its sessions to."""
    folder = tmp_path_factory.mktemp("agents")
    for source in (EXAMPLES, HERE / "agents"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, folder, dirs_exist_ok=True, ignore=ignored)
    (folder / "mixed" / ".env").write_text("FIRST_WORD=one\n", "utf-8")
    return folder


@pytest.fixture(scope="session")
def sessions(agents: Path) -> tuple[str, str]:
    """Options that let servers share their sessions."""
    return "--session_service_uri", f"sqlite:///{(agents / 'sessions.db').as_posix()}"


@pytest.fixture(scope="session")
def web(adk: Adk, agents: Path, sessions: tuple[str, str]) -> Iterator[Server]:
    with adk.serve("web", agents, *sessions) as server:
        yield server


@pytest.fixture(scope="session")
def api(adk: Adk, agents: Path, sessions: tuple[str, str]) -> Iterator[Server]:
    with adk.serve("api_server", agents, "--reload_agents", *sessions) as server:
        yield server
