"""What becomes of a `TelemetryConfig`: exporters of the process, and fields of ADK's RunConfig."""

from __future__ import annotations

import os
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.run_config import RunConfig
from google.adk.telemetry.setup import OTelHooks, maybe_set_otel_providers
from google.auth.exceptions import DefaultCredentialsError
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from adk_fluent.errors import CredentialsError, UnsupportedConfigError, UsageError
from adk_fluent.extend import describe, require_layer

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from adk_fluent.ir import TelemetryConfig

#: What ADK 1.x reads, where runs have no setting for it, to know whether content is recorded.
_SWITCHES: Final = (
    "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS",
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
)
_LOCK: Final = Lock()
#: What has been set up in this process; exporters are kept, so that their ids stay theirs.
_DONE: Final[dict[Hashable, Any]] = {}


def apply(config: TelemetryConfig) -> dict[str, Any]:
    """Set up what a configuration asks for and is not there yet.

    Exporters are added to the provider that is set; where none is, ADK sets one up, with what
    ``OTEL_EXPORTER_OTLP_ENDPOINT`` and its like ask for, too. It may be called for every run.

    Args:
        config: What is asked for.

    Returns:
        Fields for ADK's RunConfig.

    Raises:
        UsageError: An exporter is none.
        CredentialsError: Spans are to go to Cloud Trace, and nobody is signed in.
        MissingLayerError: Costs are to be measured, and adk-fluent-cost is not installed.
        UnsupportedConfigError: The exporter for Cloud Trace is not installed, or another pipeline
            of the process, or its environment, has settled that content is recorded or is not.
    """
    for each in config.custom_exporters:
        if not isinstance(each, SpanExporter | SpanProcessor):
            raise UsageError(
                "custom_exporters= takes OpenTelemetry's span exporters",
                found=describe(each),
                help="such as [OTLPSpanExporter(endpoint=...)]",
            )
    if config.enable_cost_metrics:
        require_layer("cost", "enable_cost_metrics")
    fields = _content(recorded=config.capture_content)
    with _LOCK:
        wanted: dict[Hashable, Any] = {id(each): each for each in config.custom_exporters}
        if config.trace_to_cloud:
            wanted["cloud"] = None
        new = {key: each for key, each in wanted.items() if key not in _DONE}
        _add([_to_cloud() if each is None else _processor(each) for each in new.values()])
        _DONE.update(new)
    return fields


def _add(processors: Sequence[SpanProcessor]) -> None:
    """Let a provider have them: the one that is set, or one that ADK makes."""
    add = getattr(trace.get_tracer_provider(), "add_span_processor", None)
    if add is not None:
        for each in processors:
            add(each)
    elif processors or "providers" not in _DONE:  # without any, ADK makes what the environment asks
        _DONE["providers"] = True
        maybe_set_otel_providers([OTelHooks(span_processors=list(processors))])


def _processor(exporter: SpanExporter | SpanProcessor) -> SpanProcessor:
    return exporter if isinstance(exporter, SpanProcessor) else BatchSpanProcessor(exporter)


def _to_cloud() -> SpanProcessor:
    """As ``adk web --trace_to_cloud`` does.

    Raises:
        UnsupportedConfigError: The exporter is not installed.
        CredentialsError: Nobody is signed in.
    """
    try:
        cloud: Any = import_module("opentelemetry.exporter.cloud_trace")
    except ImportError:
        raise UnsupportedConfigError(
            "TelemetryConfig(trace_to_cloud=True) needs opentelemetry-exporter-gcp-trace",
            field="telemetry",
            brings="adk-fluent-middleware[cloud]",
            help="pip install 'adk-fluent-middleware[cloud]'",
        ) from None
    project = os.environ.get("GOOGLE_CLOUD_PROJECT")
    try:
        return BatchSpanProcessor(cloud.CloudTraceSpanExporter(project_id=project))
    except DefaultCredentialsError as error:
        raise CredentialsError(
            "TelemetryConfig(trace_to_cloud=True) needs Google's default credentials",
            found=str(error),
            help="gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS",
        ) from error


# --- content -------------------------------------------------------------------------------------


def _content(*, recorded: bool) -> dict[str, Any]:
    """Fields of RunConfig that say whether prompts and answers are recorded."""
    if "telemetry" not in RunConfig.model_fields:
        _settle(recorded=recorded)
        return {}
    from google.adk.telemetry.context import (  # noqa: PLC0415  # ADK 2.x has it
        ContentCapturingMode,
        TelemetryConfig,
    )

    mode = ContentCapturingMode.SPAN_AND_EVENT if recorded else ContentCapturingMode.NO_CONTENT
    return {"telemetry": TelemetryConfig(capture_message_content=mode)}


def _settle(*, recorded: bool) -> None:
    """Settle it for the whole process, as ADK 1.x wants it.

    Raises:
        UnsupportedConfigError: It is settled otherwise.
    """
    word = "true" if recorded else "false"
    for name in _SWITCHES:
        said = os.environ.get(name)
        if said is not None and (said.strip().lower() not in ("", "0", "false")) != recorded:
            raise UnsupportedConfigError(
                f"TelemetryConfig(capture_content={recorded}) cannot be heeded: on this ADK it is "
                "the same for the whole process, and settled otherwise",
                field="telemetry",
                brings="ADK 2",
                found=f"{name}={said}, by the environment or by another pipeline",
                help=f"set {name}={word}, and give all pipelines the same capture_content",
            )
    for name in _SWITCHES:
        os.environ.setdefault(name, word)
