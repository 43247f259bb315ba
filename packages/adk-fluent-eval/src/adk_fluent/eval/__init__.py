"""Evaluation of agents: cases and suites over ADK's formats, with honest gates.

A `FluentEvalSuite` runs `FluentCase`s against a pipeline and returns a `FluentEvalReport`. Names
are imported on first use; ADK is imported when something runs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._cases._suite import Gate
    from adk_fluent.eval._cases._turn import ToolCall, Turn, UserSimulation
    from adk_fluent.eval._errors import (
        EvalError,
        EvalFailedError,
        EvalFileError,
        MetricUnavailableError,
    )
    from adk_fluent.eval._metrics import PrebuiltMetrics
    from adk_fluent.eval._outcome import (
        CaseOutcome,
        Finding,
        MetricScore,
        MetricStatus,
        Status,
        Step,
        ToolUse,
        TurnOutcome,
    )
    from adk_fluent.eval._report._report import FluentEvalReport, ModelMatrix
    from adk_fluent.eval._report._statistics import (
        CaseChange,
        MetricSummary,
        RegressionReport,
        TagSummary,
    )
    from adk_fluent.eval._running._kept import ResponseCache
    from adk_fluent.eval._suite import FluentEvalSuite
else:
    _PLACES = {
        name: module
        for module, names in {
            "_cases._case": "FluentCase",
            "_cases._judge": "FluentJudge",
            "_cases._suite": "Gate",
            "_cases._turn": "ToolCall Turn UserSimulation",
            "_errors": "EvalError EvalFailedError EvalFileError MetricUnavailableError",
            "_metrics": "PrebuiltMetrics",
            "_outcome": "CaseOutcome Finding MetricScore MetricStatus Status Step ToolUse"
            " TurnOutcome",
            "_report._report": "FluentEvalReport ModelMatrix",
            "_report._statistics": "CaseChange MetricSummary RegressionReport TagSummary",
            "_running._kept": "ResponseCache",
            "_suite": "FluentEvalSuite",
        }.items()
        for name in names.split()
    }

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        return value


__all__ = [
    "CaseChange",
    "CaseOutcome",
    "EvalError",
    "EvalFailedError",
    "EvalFileError",
    "Finding",
    "FluentCase",
    "FluentEvalReport",
    "FluentEvalSuite",
    "FluentJudge",
    "Gate",
    "MetricScore",
    "MetricStatus",
    "MetricSummary",
    "MetricUnavailableError",
    "ModelMatrix",
    "PrebuiltMetrics",
    "RegressionReport",
    "ResponseCache",
    "Status",
    "Step",
    "TagSummary",
    "ToolCall",
    "ToolUse",
    "Turn",
    "TurnOutcome",
    "UserSimulation",
]
