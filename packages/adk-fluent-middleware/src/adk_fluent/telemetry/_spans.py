"""ADK's spans: which of them are meant, and what is said on those that begin.

What holds for everything inside a run, a step or a model call is kept in a context variable, and a
span processor puts it on ADK's spans as they begin; no span is made here. What is known later is
set on the span itself, and only on one that is known to be the right one.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakSet

from opentelemetry import trace

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping

    from opentelemetry.context import Context
    from opentelemetry.trace import Span, TracerProvider

#: Whose spans are described: ADK's own, and those of the library that takes its place for Gemini.
SCOPES: Final = frozenset({"gcp.vertex.agent", "opentelemetry.instrumentation.google_genai"})
#: The span of a run by ADK's Runner; what is above it belongs to somebody else.
_RUNS: Final = ("invocation", "invoke_workflow")
_AGENT: Final = "invoke_agent "
#: The attribute that says who acts.
AGENT: Final = "adk_fluent.agent_name"
_CALL: Final = "call_llm"

#: What is said on every span of ADK's that begins here.
_HERE: ContextVar[Mapping[str, Any]] = ContextVar(
    "adk_fluent_span_attributes", default=MappingProxyType({})
)
#: The span of ADK's above another one; OpenTelemetry tells its identity only.
_ABOVE: WeakKeyDictionary[Span, Span] = WeakKeyDictionary()
_KNOWN: WeakSet[TracerProvider] = WeakSet()
_LOCK: Final = Lock()


def attach() -> bool:
    """Let the provider that is set tell of the spans that begin; once for each provider.

    Returns:
        Whether there is one that records anything.
    """
    provider = trace.get_tracer_provider()
    add = getattr(provider, "add_span_processor", None)
    if add is None:
        return False
    if provider not in _KNOWN:
        from adk_fluent.telemetry._processor import Describing  # noqa: PLC0415  # imports the SDK

        with _LOCK:
            if provider not in _KNOWN:
                add(Describing(begins))
                _KNOWN.add(provider)
    return True


@contextmanager
def described(attributes: Mapping[str, Any]) -> Generator[None]:
    """Say this, too, on all of ADK's spans that begin inside."""
    token = _HERE.set({**_HERE.get(), **attributes})
    try:
        yield
    finally:
        _HERE.reset(token)


def begins(span: Any, parent: Context | None) -> None:
    """Describe a span of ADK's that begins."""
    scope = getattr(span, "instrumentation_scope", None)
    if scope is None or scope.name not in SCOPES:
        return
    above: Any = trace.get_current_span(parent)
    here, agent = _HERE.get(), None
    if is_adks(above):
        _ABOVE[span] = above
        agent = above.attributes.get(AGENT) if here else None
    if not here:
        return
    if span.name.startswith(_AGENT):
        agent = span.name.removeprefix(_AGENT)
    span.set_attributes(here)
    if agent is not None and agent != here.get(AGENT):
        # who is handed over to in a live run is no step, and yet it is who acts
        span.set_attribute(AGENT, agent)


def is_adks(span: Any) -> bool:
    """Whether a span is one of ADK's, and records."""
    scope = getattr(span, "instrumentation_scope", None)
    return scope is not None and scope.name in SCOPES and span.is_recording()


def of_run(span: Span) -> Iterator[Span]:
    """A span and what of ADK's is above it, up to the run that it belongs to."""
    each: Any = span
    while each is not None and is_adks(each):
        yield each
        each = None if each.name.startswith(_RUNS) else _ABOVE.get(each)


def of_inference() -> Iterator[Span]:
    """The spans of the model call that goes on here: what calls the model, and `call_llm` above it.

    Where another library records Gemini, ADK has no span of its own for the call, and the one that
    is current is the agent's: that is none of them.
    """
    span: Any = trace.get_current_span()
    if not is_adks(span):
        return
    if span.name.startswith("generate_content"):
        yield span
        span = _ABOVE.get(span)
    if span is not None and span.name == _CALL and span.is_recording():
        yield span


def of_tool() -> Span | None:
    """The span of the tool call that goes on here."""
    span: Any = trace.get_current_span()
    return span if is_adks(span) and span.name.startswith("execute_tool") else None
