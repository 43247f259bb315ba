"""Tools that end the program: whoever catches that can go on."""

from __future__ import annotations

import sys

import pytest

from adk_fluent import Agent
from adk_fluent.builders import _execution
from adk_fluent.testing import Asked, Call, ScriptedModel

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]


def quit_it() -> str:
    """End the program."""
    sys.exit(3)


def answer(asked: Asked) -> object:
    return Call("quit_it", {}) if asked.prompt == "quit" else "fine"


def test_what_is_run_after_an_exit_knows_nothing_of_it() -> None:
    agent = Agent("desk", ScriptedModel(default=answer)).tool(quit_it)
    for _ in range(2):
        with pytest.raises(SystemExit) as caught:
            agent.ask("quit")
        assert caught.value.code == 3
        assert [agent.ask("go on") for _ in range(3)] == ["fine"] * 3


@pytest.mark.parametrize("ends", [SystemExit, KeyboardInterrupt])
def test_a_loop_that_was_left_is_closed_and_another_takes_its_place(
    ends: type[BaseException],
) -> None:
    async def left() -> None:
        raise ends

    before = _execution._here.loop.runner
    kept = before.get_loop()
    with pytest.raises(ends):
        _execution.run_now("ask", left)
    assert kept.is_closed()
    assert _execution._here.loop.runner is not before


def test_an_error_leaves_the_loop_and_the_clients_in_it() -> None:
    async def fails() -> None:
        raise OSError

    before = _execution._here.loop
    with pytest.raises(OSError):  # noqa: PT011  # which one does not matter
        _execution.run_now("ask", fails)
    assert _execution._here.loop is before
