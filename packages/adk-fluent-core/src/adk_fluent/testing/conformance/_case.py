"""The short way to write a program down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from adk_fluent.builders import Builder, Pipeline
from adk_fluent.testing.conformance._program import Expected, Program, Raised, Turn, Way

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adk_fluent.builders import StepLike
    from adk_fluent.ir import ExecutionConfig
    from adk_fluent.testing.conformance._bench import Bench
    from adk_fluent.testing.conformance._order import Order


def case(
    id: str,
    capability: str,
    build: Callable[[Bench], StepLike],
    *,
    start: Mapping[str, Any] | None = None,
    end: Mapping[str, Any] | None = None,
    text: str | None = "",
    calls: Order | None = (),
    events: Order = (),
    raises: Raised | None = None,
    errors: tuple[str, ...] = (),
    message: str = "go",
    way: Way = "run",
    then: tuple[Turn, ...] = (),
    config: ExecutionConfig | None = None,
    copies: int = 1,
    timed: bool = False,
) -> Program:
    """A program.

    Args:
        id: What it is called.
        capability: What it asks of a backend.
        build: Makes the root, which is called ``root`` unless it is an agent.
        start: State at the start.
        end: State at the end; None is that at the start.
        text: The answer.
        calls: What is called.
        events: The lines of the events.
        raises: The error that ends the run.
        errors: What agents report.
        message: What the user says.
        way: How the run is driven.
        then: Further messages.
        config: How it is run.
        copies: How many runs go on at the same time.
        timed: A clock has a part in it.
    """
    expects = Expected(
        state=(start or {}) if end is None else end,
        text=text,
        calls=calls,
        events=events,
        raises=raises,
        errors=errors,
    )
    return Program(
        id=id,
        capability=capability,
        build=lambda bench: as_builder(build(bench)),
        turns=(Turn(expects=expects, message=message, way=way), *then),
        state=start or {},
        config=config,
        copies=copies,
        timed=timed,
    )


def as_builder(step: StepLike) -> Builder:
    """The step, or a pipeline of it."""
    return cast("Builder", step) if isinstance(step, Builder) else Pipeline("root", step)
