"""Whether ADK's own service can do what cases ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.version import __version__ as adk_version

from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._preflight._names import counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._running._settings import Settings
    from adk_fluent.eval._running._target_adk import Target


def check_local(cases: Sequence[FluentCase], settings: Settings) -> None:
    try:
        from adk_fluent.eval._running._local_adk import RUNS_APPS  # noqa: PLC0415  # the extra
    except ImportError as error:
        raise EvalError(
            "engine='local' is ADK's own service, which needs its extra",
            found=f"{error.name or error} is not installed",
            help='pip install "adk-fluent-eval[adk]", or engine="light", which needs none',
        ) from error
    if RUNS_APPS:
        return
    hint = f"engine='light' does; ADK's service of google-adk {adk_version} runs no App"
    if settings.plugins or settings.cache is not None or settings.model is not None:
        raise EvalError(
            "engine='local' has no place for plugins, kept answers and other models here", help=hint
        )
    for case in cases:
        if case.mock_tool_outputs:
            raise case.error("engine='local' cannot mock tools here", help=hint)
        if case.state_assertions or any(turn.state_assertions for turn in case.turns):
            raise case.error("engine='local' tells nothing of state here", help=hint)


def check_inside(case: FluentCase, target: Target) -> None:
    """Look whether a budget is of what ADK's own service shows here."""
    from adk_fluent.eval._running._local_adk import RUNS_APPS  # noqa: PLC0415  # the extra

    if RUNS_APPS or not target.has_inner or not counts(case):
        return
    raise case.error(
        "engine='local' cannot keep a budget here, for agents inside of tools are not seen",
        help=f"engine='light' sees them; ADK's service of google-adk {adk_version} runs no App",
    )
