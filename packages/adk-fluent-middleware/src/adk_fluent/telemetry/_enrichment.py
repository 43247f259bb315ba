"""Pipelines on ADK's own spans, and the metrics that ADK has not."""

from __future__ import annotations

import copy
from dataclasses import field
from typing import TYPE_CHECKING, Any

from opentelemetry import trace

from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.protocol import (
    AgentCall,
    AgentReply,
    Clock,
    ModelCall,
    ModelReply,
    NextAgent,
    NextModel,
    NextRun,
    RunCall,
    SystemClock,
    Usage,
)
from adk_fluent.telemetry._metrics import count, is_measured, measure
from adk_fluent.telemetry._pipelines import count_findings, hashes, node_type
from adk_fluent.telemetry._spans import (
    AGENT,
    attach,
    described,
    of_inference,
    of_run,
    of_tool,
)

if TYPE_CHECKING:
    from typing import Self


@builtin
class OTelEnrichmentMiddleware(BuiltIn):
    """Says on ADK's own spans which pipeline, step and run they belong to; it makes no spans.

    Where no OpenTelemetry SDK is set up, nothing is done. It counts failed runs, and once for each
    pipeline what `check` finds in it; on ADK 1.x it measures model calls, as ADK 2.x does itself.

    Attributes:
        pipeline_name: What the pipeline is called on spans; without it, the name of its root.
        hashes: Say on spans which structure and content the pipeline has, so that those of two
            versions of it can be told apart.
        clock: Where durations come from.
    """

    pipeline_name: str | None = None
    hashes: bool = True
    clock: Clock = dependency(default_factory=SystemClock)
    _name: str = field(default="", init=False, repr=False)
    _measures: bool = field(default=False, init=False, repr=False)
    _of_part: dict[str, Any] = field(default_factory=dict[str, Any], init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the options, and see the spans that begin before the first run's hooks."""
        super().__post_init__()
        attach()

    def new(self) -> Self:
        """The instance for one run."""
        made = copy.copy(self)
        made._name = self.pipeline_name or ""  # noqa: SLF001  # its own
        made._measures = is_measured()  # noqa: SLF001  # its own
        made._of_part = {}  # noqa: SLF001  # its own
        attach()  # the provider may have been set meanwhile
        return made

    def refuses_live(self) -> str | None:
        """ADK makes no spans of model calls there, so nothing is missing."""
        return None

    async def wrap_run(self, call: RunCall, next: NextRun) -> AgentReply:
        """Describe the spans of the run, those that are open and those that begin."""
        known = self._run(call)
        if not attach():
            return await next(call)
        made = {**known, "adk_fluent.node_type": node_type(call.root)}
        for span in of_run(trace.get_current_span()):
            span.set_attributes(made)
        with described(made):
            return await next(call)

    def begin_part(self, name: str, call: RunCall, /) -> None:
        """Note which run it is, to be said on the spans of a part of it."""
        self._of_part = self._run(call)

    def _run(self, call: RunCall) -> dict[str, Any]:
        """What is said of a run, wherever in it."""
        root = call.root
        self._name = self.pipeline_name or getattr(root, "name", "")
        made = {"adk_fluent.pipeline": self._name, "adk_fluent.run_id": call.run}
        if root is None:
            return made
        count_findings(root)
        return {**made, **hashes(root)} if self.hashes and attach() else made

    async def wrap_agent(self, call: AgentCall, next: NextAgent) -> AgentReply:
        """Describe the spans that begin in a step."""
        made = {
            **self._of_part,
            AGENT: call.name,
            "adk_fluent.node_type": node_type(call.node),
            "adk_fluent.step_path": call.path,
            "adk_fluent.loop_iteration": call.iteration,
        }
        with described(made):
            return await next(call)

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Measure the call, where ADK does not."""
        if not self._measures or self._is_measured_elsewhere(call.model):
            return await next(call)
        began, reply, failed = self.clock.monotonic(), ModelReply(), ""
        try:
            reply = await next(call)
        except Exception as error:
            failed = type(error).__name__
            raise
        else:
            return reply
        finally:
            self._measure(call, reply, self.clock.monotonic() - began, failed)

    async def after_model(self, ctx: Any, response: Any) -> None:
        """Say how many tokens it took: at once, for with the last fragment the span may end."""
        told = getattr(response, "usage_metadata", None)
        spans = () if told is None and not self._of_part else tuple(of_inference())
        usage = Usage.from_genai(told) if spans and told is not None else None
        made: dict[str, Any] = dict(self._of_part)  # a live run's delegates are no steps
        if usage is not None:
            made["adk_fluent.actual_input_tokens"] = usage.prompt + usage.tool
            made["adk_fluent.actual_output_tokens"] = usage.output + usage.thoughts
        for span in spans if made else ():
            span.set_attributes(made)

    async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> None:
        """Say which agent calls the tool."""
        span = of_tool()
        if span is not None:
            span.set_attributes({**self._of_part, "adk_fluent.tool_agent": ctx.agent_name})

    async def on_run_error(self, ctx: Any, error: Exception) -> None:
        """Count a run that failed."""
        named = {"adk_fluent.pipeline": self._name, "error.type": type(error).__name__}
        count("adk_fluent.pipeline.errors", 1, named)

    @staticmethod
    def _is_measured_elsewhere(model: Any) -> bool:
        from adk_fluent.telemetry._adk import is_measured_elsewhere  # noqa: PLC0415  # imports ADK

        return is_measured_elsewhere(model)

    def _measure(self, call: ModelCall, reply: ModelReply, seconds: float, failed: str) -> None:
        """What ADK 2.x measures itself, with the same names and dimensions."""
        from adk_fluent.telemetry._adk import provider_of  # noqa: PLC0415  # imports ADK

        asked = call.request.model or getattr(call.model, "model", "")
        made = {
            "gen_ai.agent.name": call.agent,
            "gen_ai.operation.name": "generate_content",
            "gen_ai.provider.name": provider_of(call.model),
            "gen_ai.request.model": asked,
            "gen_ai.response.model": getattr(reply.final, "model_version", None) or asked,
        }
        error = {"error.type": failed} if failed else {}
        measure("gen_ai.client.operation.duration", seconds, {**made, **error})
        usage = reply.usage
        if usage is not None:
            for kind, tokens in (
                ("input", usage.prompt + usage.tool),
                ("output", usage.output + usage.thoughts),
            ):
                if tokens:
                    said = {**made, "gen_ai.token.type": kind}
                    measure("gen_ai.client.token.usage", tokens, said)


#: `OTelEnrichmentMiddleware` by its short name.
otel_enrichment = OTelEnrichmentMiddleware
