"""Models that judge: they answer in the forms that ADK's evaluators read."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adk_fluent.testing import Asked, ScriptedModel

#: Whether google-adk was installed with its extra, as CI does in some columns.
HAS_EXTRA: Final = find_spec("pandas") is not None and find_spec("rouge_score") is not None
NO_EXTRA: Final = "google-adk is installed without its extra [eval]"

Verdict = bool | None


def judge(
    ok: Verdict | Callable[[str], Verdict] = True,
    rubrics: Mapping[str, Verdict] | None = None,
    *,
    why: str = "as it should be",
    **fields: Any,
) -> ScriptedModel:
    """A model that judges whatever it is asked about; None is a verdict that nobody can read.

    Args:
        ok: The verdict, or what says it of a prompt.
        rubrics: Rubric to the verdict on it; others have that of `ok`, where they are named here.
        why: What it gives as a reason.
        **fields: Arguments of the model.
    """
    from adk_fluent.testing import ScriptedModel

    def answer(asked: Asked) -> Any:
        prompt = asked.prompt
        verdict = ok(prompt) if callable(ok) else ok
        if verdict is None:
            return NONSENSE
        return said(prompt, verdict, rubrics or {}, why)

    fields.setdefault("model", "judge")
    return ScriptedModel(default=answer, **fields)


NONSENSE: Final = "I would rather talk about the weather."


def said(prompt: str, ok: bool, rubrics: Mapping[str, Verdict], why: str) -> str:
    """What a judge says to a prompt of ADK's."""
    if "is_the_agent_response_valid" in prompt:
        label = "valid" if ok else "invalid"
        return json.dumps({"reasoning": why, "is_the_agent_response_valid": label}, indent=1)
    if "**Sentences Begin**" in prompt:
        label = "supported" if ok else "unsupported"
        return (
            f"sentence: All of it.\nlabel: {label}\nrationale: {why}\n"
            "supporting_excerpt: null\ncontradicting_excerpt: null\n"
        )
    if "segment the provided response" in prompt:
        return "<sentence>All of it.</sentence>"
    if '"is_valid"' in prompt:
        return json.dumps({"criteria": [], "reason": why, "is_valid": ok}, indent=1)
    lines: list[str] = []
    for text, verdict in rubrics.items():
        if text not in prompt or verdict is None:
            continue
        word = "yes" if verdict else "no"
        lines += [f"Property: {text}", f"Rationale: {why}", f"Verdict: {word}", ""]
    return "\n".join(lines) or NONSENSE
