"""Stacks that are sound as they are: `production` and `development`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from adk_fluent.ir import Ref
from adk_fluent.middleware._budgets._budget import token_budget
from adk_fluent.middleware._budgets._limits import model_call_limit, tool_call_limit
from adk_fluent.middleware._builtin import BuiltIn, checked_options
from adk_fluent.middleware._cache import cache
from adk_fluent.middleware._log import structured_log
from adk_fluent.middleware._pii import pii_filter
from adk_fluent.middleware._resilience._breaker import circuit_breaker
from adk_fluent.middleware._resilience._fallback import model_fallback
from adk_fluent.middleware._resilience._limiter import rate_limiter
from adk_fluent.middleware._resilience._retry import retry
from adk_fluent.middleware._resilience._timeout import timeout
from adk_fluent.middleware._tools._emulator import tool_emulator
from adk_fluent.telemetry import otel_enrichment

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm
else:
    BaseLlm = Any  # options are checked without ADK


@checked_options
def production(
    *,
    pipeline_name: str | None = None,
    run_seconds: float | None = 600.0,
    model_seconds: float | None = 120.0,
    tool_seconds: float | None = 60.0,
    attempts: Annotated[int, Field(ge=1)] = 3,
    model_calls: int | None = 100,
    tool_calls: int | None = 200,
    max_tokens: int | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    fallbacks: Sequence[str | Ref | BaseLlm] = (),
    personal_data: bool = False,
    cached: bool = False,
) -> tuple[BuiltIn, ...]:
    """A stack for production: ``pipeline.middleware(*production())``.

    From the outside in: spans that say what they belong to, the time of a run, personal data, the
    cache, limits and budget, other models, circuit breakers, retries, rates, the time of a call.
    The page on presets says why each stands where it does.

    Args:
        pipeline_name: What the pipeline is called on spans.
        run_seconds: Seconds that a run may take; None is no limit, here and below.
        model_seconds: Seconds that a model call may take.
        tool_seconds: Seconds that a tool call may take; agents that are tools are not limited so.
        attempts: Calls of a model in all, when it fails in passing. Tools are called once: what
            they do may not be harmless to do twice.
        model_calls: Model calls of a run.
        tool_calls: Tool calls of a run.
        max_tokens: Tokens of a run.
        requests_per_minute: Model calls that may begin within a minute, for each model.
        tokens_per_minute: Tokens of those.
        fallbacks: Models to ask, in order, when the agent's own fails.
        personal_data: Filter personal data.
        cached: Keep answers in memory, for each user their own.

    Returns:
        The middlewares, outermost first.

    Raises:
        UsageError: An option has a value that it cannot have.
    """
    stack: list[BuiltIn | None] = [
        otel_enrichment(pipeline_name=pipeline_name),
        timeout(run=run_seconds) if run_seconds is not None else None,
        pii_filter() if personal_data else None,
        cache() if cached else None,
        model_call_limit(per_run=model_calls) if model_calls is not None else None,
        tool_call_limit(per_run=tool_calls) if tool_calls is not None else None,
        token_budget(max_tokens=max_tokens) if max_tokens is not None else None,
        model_fallback(models=list(fallbacks)) if fallbacks else None,
        circuit_breaker(),
        retry(max_attempts=attempts) if attempts > 1 else None,
        rate_limiter(requests_per_minute=requests_per_minute, tokens_per_minute=tokens_per_minute)
        if requests_per_minute is not None or tokens_per_minute is not None
        else None,
        timeout(model=model_seconds, tool=tool_seconds)
        if model_seconds is not None or tool_seconds is not None
        else None,
    ]
    return tuple(each for each in stack if each is not None)


@checked_options
def development(
    *,
    run_seconds: float | None = 120.0,
    model_calls: int | None = 25,
    tool_calls: int | None = 50,
    cached: bool = True,
    emulated_tools: Sequence[str] = (),
) -> tuple[BuiltIn, ...]:
    """A stack for work on a pipeline: ``pipeline.middleware(*development())``.

    A log of everything, low limits, so that an agent that runs in circles stops before it costs
    much, and a cache, so that the same run again in the same process costs nothing. Errors are
    shown at once: nothing is tried twice.

    Args:
        run_seconds: Seconds that a run may take; None is no limit, here and below.
        model_calls: Model calls of a run.
        tool_calls: Tool calls of a run.
        cached: Keep answers in memory.
        emulated_tools: Tools that are not to be run, but made up by the agent's model.

    Returns:
        The middlewares, outermost first.

    Raises:
        UsageError: See `production`.
    """
    stack: list[BuiltIn | None] = [
        structured_log(),
        timeout(run=run_seconds) if run_seconds is not None else None,
        cache() if cached else None,
        model_call_limit(per_run=model_calls) if model_calls is not None else None,
        tool_call_limit(per_run=tool_calls) if tool_calls is not None else None,
        tool_emulator(tools=list(emulated_tools)) if emulated_tools else None,
    ]
    return tuple(each for each in stack if each is not None)
