"""Evaluation of agents: cases and suites over ADK's formats, with gates that hold.

A `FluentEvalSuite` runs `FluentCase`s against a pipeline and gives a `FluentEvalReport`. Everything
is imported when it is first used; ADK when something runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adk_fluent.eval._cases._case import FluentCase, Rubric, ToolCall, Turn
    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._cases._simulation import UserSimulation
    from adk_fluent.eval._errors import (
        EvalError,
        EvalFailedError,
        EvalFileError,
        MetricUnavailableError,
    )
    from adk_fluent.eval._files._warned import EvalFileWarning
    from adk_fluent.eval._gate import Gate
    from adk_fluent.eval._metrics import Metric, PrebuiltMetrics
    from adk_fluent.eval._outcome import (
        CaseOutcome,
        Finding,
        MetricScore,
        MetricStatus,
        Status,
        Step,
        Tokens,
        ToolUse,
        TurnOutcome,
    )
    from adk_fluent.eval._report._compare import RegressionReport
    from adk_fluent.eval._report._matrix import ModelMatrix
    from adk_fluent.eval._report._report import FluentEvalReport
    from adk_fluent.eval._report._summaries import MetricSummary, TagSummary
    from adk_fluent.eval._running._cache import ResponseCache
    from adk_fluent.eval._suite import FluentEvalSuite
else:
    _MODULES = {
        "_cases._case": ("FluentCase", "Rubric", "ToolCall", "Turn"),
        "_cases._judge": ("FluentJudge",),
        "_cases._simulation": ("UserSimulation",),
        "_errors": ("EvalError", "EvalFailedError", "EvalFileError", "MetricUnavailableError"),
        "_files._warned": ("EvalFileWarning",),
        "_gate": ("Gate",),
        "_metrics": ("Metric", "PrebuiltMetrics"),
        "_outcome": (
            *("CaseOutcome", "Finding", "MetricScore", "MetricStatus", "Status"),
            *("Step", "Tokens", "ToolUse", "TurnOutcome"),
        ),
        "_report._compare": ("RegressionReport",),
        "_report._matrix": ("ModelMatrix",),
        "_report._report": ("FluentEvalReport",),
        "_report._summaries": ("MetricSummary", "TagSummary"),
        "_running._cache": ("ResponseCache",),
        "_suite": ("FluentEvalSuite",),
    }
    _LAZY = {name: module for module, names in _MODULES.items() for name in names}

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
        return value


__all__ = [
    "CaseOutcome",
    "EvalError",
    "EvalFailedError",
    "EvalFileError",
    "EvalFileWarning",
    "Finding",
    "FluentCase",
    "FluentEvalReport",
    "FluentEvalSuite",
    "FluentJudge",
    "Gate",
    "Metric",
    "MetricScore",
    "MetricStatus",
    "MetricSummary",
    "MetricUnavailableError",
    "ModelMatrix",
    "PrebuiltMetrics",
    "RegressionReport",
    "ResponseCache",
    "Rubric",
    "Status",
    "Step",
    "TagSummary",
    "Tokens",
    "ToolCall",
    "ToolUse",
    "Turn",
    "TurnOutcome",
    "UserSimulation",
]
