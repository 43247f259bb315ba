"""What a gate asks for, held against what the suite has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.errors import nearest_name
from adk_fluent.eval._checks._checks import expects
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._metrics import METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._judge import FluentJudge
    from adk_fluent.eval._gate import Gate
    from adk_fluent.eval._scoring._wanted import Metrics

_BUDGETS: Final = "give cases budgets: max_tokens, max_tool_calls, max_latency_s, max_cost_usd"


def check_gate(
    gate: Gate, cases: Sequence[FluentCase], metrics: Metrics, judges: Iterable[FluentJudge]
) -> None:
    """Look whether what a gate asks for can be there.

    Raises:
        EvalError: No case has such a tag, nothing is scored by such a metric, or it informs.
    """
    scored = {*metrics.names, *(judge.name for judge in judges)}
    scored |= {name for case in cases for name in expects(case)}
    for field, word, wanted, known in (
        ("min_tag_pass_rate", "tag", gate.min_tag_pass_rate, {t for c in cases for t in c.tags}),
        ("min_metric", "metric", gate.min_metric, scored),
    ):
        for name in map(str, wanted):
            if name not in known:
                near = nearest_name(name, known)
                raise EvalError(
                    f"the gate asks for {word} {name!r}, which the suite has not",
                    found=f"Gate({field}=...); {word}s: {', '.join(sorted(known)[:20]) or 'none'}",
                    help=f"did you mean {near!r}?" if near else f"give the suite such a {word}",
                )
    for name in gate.min_metric:
        if (metric := METRICS.get(name)) is not None and metric.informational:
            raise EvalError(
                f"the gate asks for metric {name!r}, which only informs",
                found="Gate(min_metric=...)",
                help=_BUDGETS,
            )
