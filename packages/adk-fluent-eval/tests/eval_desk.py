"""A support desk with a scripted model, and outcomes made by hand."""

from __future__ import annotations

from typing import Any

from adk_fluent import Agent
from adk_fluent.eval import (
    CaseOutcome,
    FluentCase,
    FluentEvalReport,
    FluentEvalSuite,
    MetricScore,
    MetricStatus,
    Status,
)


def look_up(order: str) -> dict[str, str]:
    """Look up an order."""
    return {"status": "shipped", "order": order}


def answer(asked: Any) -> Any:
    """Call the tool for a message about an order, then say what it returned."""
    from adk_fluent.testing import Call, reply

    if "break" in asked.prompt:
        raise ValueError("no model")
    last = asked.raw.contents[-1].parts[0]
    if last.function_response is not None:
        return f"it is {last.function_response.response.get('status')}"
    if "two" in asked.prompt:
        return reply(Call("look_up", {"order": "A1"}), Call("look_up", {"order": "A2"}))
    return Call("look_up", {"order": "A1"}) if "order" in asked.prompt else "good morning"


def desk(name: str = "desk", answer: Any = answer) -> Agent:
    """An agent with one tool, which writes its answer to state."""
    from adk_fluent.testing import ScriptedModel

    return Agent(name, ScriptedModel(default=answer)).tool(look_up).writes("answer")


def run(case: FluentCase, pipeline: Any = None, /, **options: Any) -> CaseOutcome:
    """The outcome of one case."""
    suite = FluentEvalSuite("s", desk() if pipeline is None else pipeline, [case])
    [outcome] = suite.run_sync(**options).outcomes
    return outcome


def outcome(id: str, status: str = "passed", run: int = 1, **fields: Any) -> CaseOutcome:
    """An outcome with one metric."""
    ended = Status(status)
    passed = ended is Status.PASSED
    fields.setdefault("reasons", [] if passed else [f"{id} is wrong"])
    metric = MetricStatus.PASSED if passed else MetricStatus.FAILED
    fields.setdefault("scores", [MetricScore("m", metric, float(passed), 1.0)])
    return CaseOutcome(id, run, ended, **fields)


def report(*outcomes: CaseOutcome, **fields: Any) -> FluentEvalReport:
    """A report of outcomes."""
    return FluentEvalReport(list(outcomes), "s", **fields)


NONSENSE = "I would rather talk about the weather."


def judge(
    ok: bool | None = True, rubrics: dict[str, bool | None] | None = None, **fields: Any
) -> Any:
    """A model that judges in the forms that ADK's evaluators read; None is not readable."""
    from adk_fluent.testing import ScriptedModel

    return ScriptedModel(default=lambda asked: verdict(asked.prompt, ok, rubrics or {}), **fields)


def verdict(prompt: str, ok: bool | None, rubrics: dict[str, bool | None]) -> str:
    """What a judge says to a prompt of ADK's."""
    if ok is None:
        return NONSENSE
    if "is_the_agent_response_valid" in prompt:
        label = "valid" if ok else "invalid"
        return f'{{"reasoning": "because",\n"is_the_agent_response_valid": "{label}"}}'
    if "**Sentences Begin**" in prompt:
        label = "supported" if ok else "unsupported"
        return (
            f"sentence: All of it.\nlabel: {label}\nrationale: because\n"
            "supporting_excerpt: null\ncontradicting_excerpt: null\n"
        )
    if "segment the provided response" in prompt:
        return "<sentence>All of it.</sentence>"
    if '"is_valid"' in prompt:
        return f'{{"criteria": [], "reason": "because",\n"is_valid": {str(ok).lower()}}}'
    lines: list[str] = []
    for text, verdict in rubrics.items():
        if text in prompt and verdict is not None:
            word = "yes" if verdict else "no"
            lines += [f"Property: {text}", "Rationale: because", f"Verdict: {word}", ""]
    return "\n".join(lines) or NONSENSE
