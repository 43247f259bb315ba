"""Programs about timeouts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.builders import (
    Pipeline,
    timeout,
)
from adk_fluent.config import ExecutionConfig
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.testing.conformance._program import Program


def timeouts() -> Iterator[Program]:
    """All of them."""
    late = Raised("StepTimeoutError", "ADKF301")
    yield case(
        "timeout/the inner one strikes first",
        "timeout",
        lambda p: Pipeline(
            "root", timeout(timeout(p.fn("h", ends="hangs"), p.short, name="inner"), 60)
        ),
        calls=("h",),
        raises=Raised("StepTimeoutError", "ADKF301", node="inner"),
        timed=True,
    )
    yield case(
        "timeout/the outer one strikes first",
        "timeout",
        lambda p: Pipeline(
            "root", timeout(timeout(p.fn("h", ends="hangs"), 60), p.short, name="outer")
        ),
        calls=("h",),
        raises=Raised("StepTimeoutError", "ADKF301", node="outer"),
        timed=True,
    )
    yield case(
        "timeout/of the whole run",
        "timeout",
        lambda p: Pipeline("root", p.fn("w", {"k": 1}), p.agent("h", ends="hangs")),
        end={"k": 1},
        calls=("w", "h"),
        events=("s0 w@root {'k': 1}",),
        raises=late,
        config=ExecutionConfig(timeout_seconds=0.3),
    )
