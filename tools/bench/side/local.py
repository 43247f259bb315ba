"""ADK's LocalEvalService, which google-adk[eval] has."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from google.adk.evaluation.base_eval_service import (
    EvaluateConfig,
    EvaluateRequest,
    InferenceConfig,
    InferenceRequest,
)
from google.adk.evaluation.eval_case import EvalCase, IntermediateData, Invocation, SessionInput
from google.adk.evaluation.eval_metrics import EvalMetric, EvalStatus, ToolTrajectoryCriterion
from google.adk.evaluation.in_memory_eval_sets_manager import InMemoryEvalSetsManager
from google.genai import types

from bench.side.support import SAID, TOOLS, agent

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.side.worker import Task

_NAME = "bench"


def run_local(size: int) -> Callable[[], Coroutine[Any, Any, list[int]]]:
    """Run cases; return the numbers of model calls and of cases that passed."""
    warnings.simplefilter("ignore")  # ADK calls its service experimental
    from google.adk.evaluation.local_eval_service import LocalEvalService  # noqa: PLC0415  # warns

    calls = [0]
    desk = agent(calls)
    criterion = ToolTrajectoryCriterion(threshold=1.0, ignore_args=True)
    metric = EvalMetric(metric_name="tool_trajectory_avg_score", threshold=1.0, criterion=criterion)

    async def once() -> list[int]:
        calls[0] = 0
        sets = InMemoryEvalSetsManager()
        sets.create_eval_set(_NAME, _NAME)
        for number in range(size):
            sets.add_eval_case(_NAME, _NAME, _case(number))
        service = LocalEvalService(root_agent=desk, eval_sets_manager=sets)
        request = InferenceRequest(
            app_name=_NAME, eval_set_id=_NAME, inference_config=InferenceConfig(parallelism=10)
        )
        found = [each async for each in service.perform_inference(request)]
        evaluation = EvaluateRequest(
            inference_results=found, evaluate_config=EvaluateConfig(eval_metrics=[metric])
        )
        results = [each async for each in service.evaluate(evaluation)]
        return [calls[0], sum(each.final_eval_status is EvalStatus.PASSED for each in results)]

    return once


def _case(number: int) -> EvalCase:
    uses = [types.FunctionCall(name=name, args={}) for name in TOOLS]
    return EvalCase(
        eval_id=f"case{number}",
        conversation=[
            Invocation(
                user_content=types.Content(role="user", parts=[types.Part(text=SAID)]),
                intermediate_data=IntermediateData(tool_uses=uses),
            )
        ],
        session_input=SessionInput(app_name=_NAME, user_id=f"user{number}"),
    )


TASKS: dict[str, Task] = {"run-local": run_local}
