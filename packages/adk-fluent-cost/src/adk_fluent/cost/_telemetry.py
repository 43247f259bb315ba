"""The metrics of money, and the attribute on ADK's own span of a model call."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.protocol import Money

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Whose spans are described: ADK's own.
_SCOPE: Final = "gcp.vertex.agent"
_SPANS: Final = ("generate_content", "call_llm")
_INSTRUMENTS: Final = {
    "adk_fluent.llm.cost": ("counter", "USD", "What model calls cost"),
    "adk_fluent.llm.unpriced": ("counter", "{call}", "Model calls whose price is unknown"),
    "adk_fluent.budget.remaining": ("gauge", "USD", "What is left of a budget"),
    "adk_fluent.budget.denied": ("counter", "{call}", "Model calls over a budget"),
}


def measure(name: str, value: float, attributes: Mapping[str, str]) -> None:
    """Add to a counter, or set a gauge."""
    _instrument(name)(value, attributes)


@cache
def _instrument(name: str) -> Callable[[float, Mapping[str, str]], None]:
    """What adds to a counter, or sets a gauge."""
    from opentelemetry import metrics  # noqa: PLC0415  # whoever only builds needs none

    kind, unit, description = _INSTRUMENTS[name]
    meter = metrics.get_meter("adk_fluent")
    made = getattr(meter, f"create_{kind}")(name, unit=unit, description=description)
    return made.set if kind == "gauge" else made.add


def note_model(asked: str = "", served: str = "", counterfactual: float | None = None) -> None:
    """Say on ADK's span which model was asked and has answered.

    Args:
        asked: The model that was chosen; "" is what stands there.
        served: The model that has answered, as it says itself.
        counterfactual: What asking the best model at once would have cost, in USD.
    """
    span = _span()
    if span is None:
        return
    if asked:
        span.set_attribute("gen_ai.request.model", asked)
        span.set_attribute("gen_ai.response.model", served)
    if counterfactual is not None:
        span.set_attribute("adk_fluent.counterfactual_usd", counterfactual)


def _span() -> Any:
    """ADK's span of the model call, if one is open and recorded."""
    span: Any = _current_span()()
    if not span.is_recording():
        return None
    scope = getattr(span, "instrumentation_scope", None)
    is_adks = scope is not None and scope.name == _SCOPE and span.name.startswith(_SPANS)
    return span if is_adks else None


@cache
def _current_span() -> Callable[[], Any]:
    from opentelemetry import trace  # noqa: PLC0415  # whoever only builds needs none

    return trace.get_current_span


def charge(usd: float, attributes: Mapping[str, str]) -> None:
    """Count what a model call cost, and add to that on ADK's span of it, if one is recorded."""
    _instrument("adk_fluent.llm.cost")(usd, attributes)
    if _current_span()().is_recording() and (span := _span()) is not None:
        before: Mapping[str, Any] = span.attributes or {}
        total = Money.of(before.get("adk_fluent.cost_usd", 0.0)) + Money.of(usd)
        span.set_attribute("adk_fluent.cost_usd", float(total.usd))
