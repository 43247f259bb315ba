"""The metrics of adk-fluent: only of what ADK itself does not measure."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The name of the meter.
SCOPE: Final = "adk_fluent"


class Instrument(NamedTuple):
    """One metric.

    Attributes:
        kind: ``counter`` adds up, ``histogram`` keeps a distribution, ``gauge`` the last value.
        unit: Its unit, in UCUM.
        description: What it counts or measures.
    """

    kind: Literal["counter", "histogram", "gauge"]
    unit: str
    description: str


#: Every metric that this package can emit, by name.
INSTRUMENTS: Final[Mapping[str, Instrument]] = MappingProxyType(
    {
        "adk_fluent.retry.attempts": Instrument("counter", "{attempt}", "Calls made again"),
        "adk_fluent.fallback.switches": Instrument("counter", "{switch}", "Switches of the model"),
        "adk_fluent.cache.requests": Instrument("counter", "{request}", "Requests to the cache"),
        "adk_fluent.breaker.state": Instrument(
            "gauge", "1", "State of a circuit breaker: 0 closed, 1 half open, 2 open"
        ),
        "adk_fluent.breaker.rejections": Instrument("counter", "{call}", "Calls refused"),
        "adk_fluent.limiter.wait": Instrument("histogram", "s", "Time calls waited for their turn"),
        "adk_fluent.limit.denials": Instrument("counter", "{call}", "Calls over a limit or budget"),
        "adk_fluent.timeout.expirations": Instrument("counter", "{call}", "Calls cut off"),
        "adk_fluent.approval.decisions": Instrument(
            "counter", "{decision}", "Tool calls asked about, approved, edited and refused"
        ),
        "adk_fluent.summarization.summaries": Instrument("counter", "{summary}", "Summaries asked"),
        "adk_fluent.summarization.tokens": Instrument("counter", "{token}", "Tokens of summaries"),
        "adk_fluent.editing.tokens": Instrument("counter", "{token}", "Tokens not sent"),
        "adk_fluent.selector.choices": Instrument(
            "counter", "{choice}", "Choices of tools that a model is shown"
        ),
        "adk_fluent.pii.findings": Instrument("counter", "{finding}", "Personal data found"),
        "adk_fluent.contracts.violations": Instrument("counter", "{finding}", "Findings of checks"),
        "adk_fluent.pipeline.errors": Instrument("counter", "{run}", "Runs that failed"),
        "gen_ai.client.token.usage": Instrument(
            "histogram", "{token}", "Tokens of a model call; on ADK 1.x, which does not measure it"
        ),
        "gen_ai.client.operation.duration": Instrument(
            "histogram", "s", "Time of a model call; on ADK 1.x, which does not measure it"
        ),
    }
)


def count(name: str, amount: int = 1, attributes: Mapping[str, str] | None = None) -> None:
    """Add to a counter.

    Args:
        name: One of `INSTRUMENTS`.
        amount: How many.
        attributes: Its dimensions; few values each, and never what a user has said.
    """
    _instrument(name).add(amount, attributes)


def measure(name: str, value: float, attributes: Mapping[str, str] | None = None) -> None:
    """Record a value of a histogram or gauge; see `count`."""
    made = _instrument(name)
    if INSTRUMENTS[name].kind == "gauge":
        made.set(value, attributes)
    else:
        made.record(value, attributes)


def is_measured() -> bool:
    """Whether anybody collects metrics: what is dear to work out is left out otherwise."""
    from opentelemetry import metrics  # noqa: PLC0415  # as below

    return hasattr(metrics.get_meter_provider(), "force_flush")


@cache
def _instrument(name: str) -> Any:
    from opentelemetry import metrics  # noqa: PLC0415  # whoever only builds needs none

    kind, unit, description = INSTRUMENTS[name]
    meter = metrics.get_meter(SCOPE)
    return getattr(meter, f"create_{kind}")(name, unit=unit, description=description)
