"""A pipeline whose worker dies in the middle of its second segment, once."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

from adk_fluent import Agent, gate
from adk_fluent.distributed import idempotency_key

if TYPE_CHECKING:
    from adk_fluent.builders import State

#: Calls of functions, one a line; beside it, `died` says that a worker was killed.
LOG = Path(os.environ.get("ADK_FLUENT_TEST_LOG", "calls"))


def _log(name: str) -> None:
    with LOG.open("a", encoding="utf-8") as file:
        file.write(f"{name} {os.getpid()} {idempotency_key()}\n")


def count(state: State) -> dict[str, object]:
    _log("count")
    return {"counted": 1}


def charge(state: State) -> dict[str, object]:
    _log("charge")
    died = LOG.with_name("died")
    if "ADK_FLUENT_TEST_LOG" in os.environ and not died.exists():  # never that of the tests
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return {"charged": idempotency_key()}


heavy = (Agent("assess").mock("250").writes("amount") >> charge).named("heavy")
job = (
    Agent("plan").mock("Plan.").writes("plan")
    >> count
    >> heavy.execution_boundary()
    >> Agent("close").mock("Done: {amount}")
)

asks = (
    Agent("first").mock("One.") >> gate(message="Go on?", name="ok") >> Agent("last").mock("Two.")
)
