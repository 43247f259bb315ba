"""A pipeline of which a segment has a process of its own, and does there what it is told."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

from adk_fluent import Agent
from adk_fluent.builders import Pipeline
from adk_fluent.distributed import idempotency_key

if TYPE_CHECKING:
    from adk_fluent.builders import State


def work(state: State) -> dict[str, object]:
    print("this is no result")
    match state["how"]:
        case "greedy":
            return {"size": len(bytearray(2**31))}
        case "slow":
            time.sleep(3600)
        case "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            pass
    return {"by": os.getpid(), "key": idempotency_key()}


heavy = Pipeline("heavy", work).execution_boundary(isolation="process")
job = Agent("plan").mock("Plan.").writes("plan") >> heavy >> Agent("close").mock("Done.")
