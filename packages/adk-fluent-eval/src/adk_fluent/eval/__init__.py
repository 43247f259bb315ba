"""Evaluation of agents: cases and suites over ADK's formats, with honest gates.

A `FluentEvalSuite` runs `FluentCase`s against a pipeline and returns a `FluentEvalReport`. Names
are imported on first use; ADK is imported when something runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.extend import lazy_names

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
else:  # a type checker must see a misspelt name, not Any
    __getattr__ = lazy_names(
        __name__,
        {
            "eval._cases._case": "FluentCase",
            "eval._cases._judge": "FluentJudge",
            "eval._cases._suite": "Gate",
            "eval._cases._turn": "ToolCall Turn UserSimulation",
            "eval._errors": "EvalError EvalFailedError EvalFileError MetricUnavailableError",
            "eval._metrics": "PrebuiltMetrics",
            "eval._outcome": "CaseOutcome Finding MetricScore MetricStatus Status Step ToolUse"
            " TurnOutcome",
            "eval._report._report": "FluentEvalReport ModelMatrix",
            "eval._report._statistics": "CaseChange MetricSummary RegressionReport TagSummary",
            "eval._running._kept": "ResponseCache",
            "eval._suite": "FluentEvalSuite",
        },
    )


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
