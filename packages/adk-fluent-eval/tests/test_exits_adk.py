"""Tools that end the program: a case that errs, and nothing else is lost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from eval_programs import adk_agent, agent, calling, case, desk, parallel, report_of, says
from google.adk.agents.llm_agent import LlmAgent

from adk_fluent import FanOut
from adk_fluent.eval import Status
from adk_fluent.testing import Asked, Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import State

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]"),  # ADK 1.x says so
    pytest.mark.filterwarnings("ignore:.*is deprecated.*:DeprecationWarning"),  # ADK 2.x's own
]

QUIT = Call("quit_it", {})


def quit_it() -> str:
    """End the program."""
    sys.exit(3)


async def quit_later() -> str:
    """End the program."""
    sys.exit()


def said_to_quit(asked: Asked) -> str:
    if "quit" in asked.prompt:
        sys.exit("bye")
    return "fine"


def step(state: State) -> dict[str, Any]:
    sys.exit(4)


def of_adk(*tools: Any, call: Call = QUIT) -> LlmAgent:
    return LlmAgent(name="desk", model=says(calling(call)), tools=list(tools))


#: What ends the program, and what is said of it.
PROGRAMS: dict[str, tuple[Callable[[], Any], str]] = {
    "tool": (lambda: desk(QUIT, tools=(quit_it,)), "tool 'quit_it' ends the program"),
    "async tool": (
        lambda: desk(Call("quit_later", {}), tools=(quit_later,)),
        "tool 'quit_later' ends the program",
    ),
    "tool of ADK's agent": (lambda: of_adk(quit_it), "tool 'quit_it' ends the program"),
    "tool in a branch": (
        lambda: FanOut("both", desk(QUIT, tools=(quit_it,)), agent("b")),
        "tool 'quit_it' ends the program",
    ),
    "tool in a branch of ADK's": (
        lambda: parallel("both", of_adk(quit_it), adk_agent("b")),
        "tool 'quit_it' ends the program",
    ),
    "model": (lambda: agent("a", said_to_quit), "SystemExit: bye"),
    "step": (lambda: agent("a") >> step, "SystemExit: 4"),
}


@pytest.mark.parametrize("what", PROGRAMS)
async def test_a_case_that_ends_the_program_is_an_error(what: str) -> None:
    make, told = PROGRAMS[what]
    report = await report_of(make(), case("quit", id="x"), case("quit", id="y"))
    for id in ("x", "y"):
        outcome = report.outcome(id)
        assert outcome.status is Status.ERROR, outcome
        assert told in str(outcome.error)
