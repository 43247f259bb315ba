"""Fixtures for tests of pipelines; pytest finds them by itself.

Nothing but their names is loaded until a test asks for one. ``-p no:adk_fluent`` leaves them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from adk_fluent import testing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adk_fluent.contracts import ContractReport
    from adk_fluent.testing import AgentHarness, GeminiEmulator, MockBackend

__all__ = ["agent_harness", "check_contracts", "gemini_emulator", "mock_backend"]

_PORT: Final = pytest.StashKey[int]()


@pytest.fixture
def mock_backend() -> MockBackend:
    """A backend whose agents answer what ``mock_backend.when("agent").responds("text")`` says."""
    return testing.mock_backend()


@pytest.fixture
def agent_harness() -> type[AgentHarness]:
    """`AgentHarness`: ``agent_harness(pipeline, backend=mock_backend)`` keeps one session."""
    return testing.AgentHarness


@pytest.fixture
def check_contracts() -> Callable[..., ContractReport]:
    """`assert_contracts`: ``check_contracts(pipeline)`` fails the test with the report of errors.

    It takes what `adk_fluent.contracts.check_all` takes, and returns the report.
    """
    return testing.assert_contracts


@pytest.fixture
def gemini_emulator(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[GeminiEmulator]:
    """The Gemini REST API on loopback; the environment leads every model of Gemini there.

    It answers what ``gemini_emulator.script = Script(...)`` says. A prompt that nothing answers
    fails the test when it is over, whatever the pipeline made of it.
    """
    stash = request.config.stash
    with _started(stash.get(_PORT, 0)) as emulator:
        stash[_PORT] = int(emulator.url.rpartition(":")[2])
        for name, value in emulator.env.items():
            monkeypatch.setenv(name, value)
        yield emulator


def _started(port: int) -> GeminiEmulator:
    """An emulator; on this port if it is free.

    The same one for every test: models of pipelines that outlive a test keep the address.
    """
    emulator = testing.GeminiEmulator(port=port)
    try:
        return emulator.start()
    except OSError:
        return testing.GeminiEmulator().start()
