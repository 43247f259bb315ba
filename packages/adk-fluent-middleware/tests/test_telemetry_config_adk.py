"""`ExecutionConfig(telemetry=...)`: exporters, content and the cloud, each in its own process."""

from __future__ import annotations

import gzip
import threading
from collections import defaultdict
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

import pytest
from google.adk.agents.run_config import RunConfig
from kit import run_program, told_by

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pytestmark = pytest.mark.adk

#: ADK 2.13 has a setting of each run for what is recorded.
OF_RUNS: Final = "telemetry" in RunConfig.model_fields

START: Final = """
    import json, sys
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from adk_fluent import Agent
    from adk_fluent.config import ExecutionConfig, TelemetryConfig

    def configured(**fields):
        return ExecutionConfig(telemetry=TelemetryConfig(**fields))

    def names(exporter):
        trace.get_tracer_provider().force_flush()
        return [each.name for each in exporter.get_finished_spans()]

    def tell(value):
        print(json.dumps(value))
"""


# --- exporters -----------------------------------------------------------------------------------


def test_exporters_get_the_spans_once_however_often_it_is_compiled(tmp_path: Path) -> None:
    program = """
    mine = InMemorySpanExporter()
    for _ in range(3):
        config = configured(custom_exporters=[mine])
        Agent("a").mock("A").to_app(config)
        Agent("a").mock("A").ask("hi", config=config)
    tell(names(mine))
    """
    spans = told_by(START + program, tmp_path)
    assert spans.count("invoke_agent a") == 3


def test_a_provider_that_is_set_is_kept(tmp_path: Path) -> None:
    program = """
    theirs, mine, provider = InMemorySpanExporter(), InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(theirs))
    trace.set_tracer_provider(provider)
    config = configured(custom_exporters=[SimpleSpanProcessor(mine)])
    Agent("a").mock("A").ask("hi", config=config)
    tell([trace.get_tracer_provider() is provider, names(theirs), names(mine)])
    """
    kept, theirs, mine = told_by(START + program, tmp_path)
    assert kept
    assert theirs == mine
    assert "invoke_agent a" in mine


@pytest.mark.full
def test_two_pipelines_bring_two_exporters(tmp_path: Path) -> None:
    """There is one provider for a process: each exporter gets the spans of all."""
    program = """
    first, second = InMemorySpanExporter(), InMemorySpanExporter()
    Agent("a").mock("A").ask("hi", config=configured(custom_exporters=[first]))
    Agent("b").mock("B").ask("hi", config=configured(custom_exporters=[second]))
    tell([names(first), names(second)])
    """
    first, second = told_by(START + program, tmp_path)
    assert {"invoke_agent a", "invoke_agent b"} <= set(first)
    assert "invoke_agent b" in second
    assert "invoke_agent a" not in second


def test_without_any_nothing_is_set_up(tmp_path: Path) -> None:
    program = """
    Agent("a").mock("A").ask("hi", config=configured())
    tell(hasattr(trace.get_tracer_provider(), "add_span_processor"))
    """
    assert told_by(START + program, tmp_path) is False


@pytest.mark.full
def test_what_is_no_exporter_is_refused(tmp_path: Path) -> None:
    program = """
    try:
        Agent("a").mock("A").ask("hi", config=configured(custom_exporters=[object()]))
    except Exception as error:
        tell([type(error).__name__, str(error)])
    """
    kind, told = told_by(START + program, tmp_path)
    assert kind == "UsageError"
    assert "custom_exporters= takes" in told


# --- content -------------------------------------------------------------------------------------

WITH_CONTENT: Final = """
    mine = InMemorySpanExporter()
    config = configured(custom_exporters=[mine], capture_content={wanted})
    Agent("a").mock("said in secret").ask("asked in secret", config=config)
    names(mine)
    shown = [str(dict(each.attributes)) for each in mine.get_finished_spans()]
    tell([any("asked in secret" in each for each in shown), len(shown)])
"""


@pytest.mark.parametrize("schema", ["1", pytest.param("", marks=pytest.mark.full)])
@pytest.mark.parametrize("wanted", [True, False])
def test_content_is_recorded_if_that_is_wanted(tmp_path: Path, wanted: bool, schema: str) -> None:
    program = START + WITH_CONTENT.replace("{wanted}", str(wanted))
    recorded, spans = told_by(program, tmp_path, ADK_TELEMETRY_SCHEMA_VERSION_OPT_IN=schema)
    assert recorded is wanted
    assert spans > 3


TWO_PIPELINES: Final = """
    said = []
    for wanted in (False, True):
        mine = InMemorySpanExporter()
        config = configured(custom_exporters=[mine], capture_content=wanted)
        try:
            Agent("a").mock("A").ask("asked in secret", config=config)
        except NotImplementedError as error:
            said.append(str(error))
            continue
        names(mine)
        said.append(any("secret" in str(each.attributes) for each in mine.get_finished_spans()))
    tell(said)
"""


@pytest.mark.full
def test_pipelines_of_one_process_may_differ_or_are_refused(tmp_path: Path) -> None:
    first, second = told_by(START + TWO_PIPELINES, tmp_path)
    assert first is False
    if OF_RUNS:
        assert second is True
    else:
        assert "cannot be heeded" in second
        assert "ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS" in second


@pytest.mark.skipif(OF_RUNS, reason="this ADK has a setting of each run for it")
def test_where_the_environment_says_otherwise_it_is_refused(tmp_path: Path) -> None:
    program = """
    try:
        Agent("a").mock("A").ask("hi", config=configured(capture_content=False))
    except NotImplementedError as error:
        tell(str(error))
    """
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    told = told_by(START + program, tmp_path, **{name: "true"})
    assert f"{name}=true" in told
    assert f"set {name}=false" in told


# --- the cloud, and costs ------------------------------------------------------------------------


@pytest.mark.full
def test_the_cloud_needs_an_extra(tmp_path: Path) -> None:
    program = """
    sys.modules["opentelemetry.exporter.cloud_trace"] = None
    try:
        Agent("a").mock("A").ask("hi", config=configured(trace_to_cloud=True))
    except NotImplementedError as error:
        tell(str(error))
    """
    assert "pip install 'adk-fluent-middleware[cloud]'" in told_by(START + program, tmp_path)


def test_the_cloud_gets_the_spans_of_its_project(tmp_path: Path) -> None:
    program = """
    import types
    made = []

    class CloudTraceSpanExporter(InMemorySpanExporter):
        def __init__(self, project_id=None):
            super().__init__()
            made.append((project_id, self))

    module = types.ModuleType("opentelemetry.exporter.cloud_trace")
    module.CloudTraceSpanExporter = CloudTraceSpanExporter
    sys.modules[module.__name__] = module
    for _ in range(2):
        Agent("a").mock("A").ask("hi", config=configured(trace_to_cloud=True))
    ((project, exporter),) = made
    tell([project, names(exporter)])
    """
    project, spans = told_by(START + program, tmp_path, GOOGLE_CLOUD_PROJECT="shop-1")
    assert project == "shop-1"
    assert spans.count("invoke_agent a") == 2


@pytest.mark.full
def test_the_cloud_needs_somebody_who_is_signed_in(tmp_path: Path) -> None:
    program = """
    import types
    from adk_fluent.errors import CredentialsError
    from google.auth.exceptions import DefaultCredentialsError

    def exporter(project_id=None):
        raise DefaultCredentialsError("none found")

    module = types.ModuleType("opentelemetry.exporter.cloud_trace")
    module.CloudTraceSpanExporter = exporter
    sys.modules[module.__name__] = module
    try:
        Agent("a").mock("A").ask("hi", config=configured(trace_to_cloud=True))
    except CredentialsError as error:
        tell([error.what, error.found])
    """
    assert told_by(START + program, tmp_path) == [
        "TelemetryConfig(trace_to_cloud=True) needs Google's default credentials",
        "none found",
    ]


@pytest.mark.full
@pytest.mark.skipif(
    bool(entry_points(group="adk_fluent.layers", name="cost")), reason="that layer is there"
)
def test_costs_need_their_layer(tmp_path: Path) -> None:
    program = """
    try:
        Agent("a").mock("A").ask("hi", config=configured(enable_cost_metrics=True))
    except Exception as error:
        tell([type(error).__name__, str(error)])
    """
    kind, told = told_by(START + program, tmp_path)
    assert kind == "MissingLayerError"
    assert "pip install adk-fluent-cost" in told


# --- OTLP, over HTTP -----------------------------------------------------------------------------


@contextmanager
def receiver() -> Generator[tuple[str, dict[str, list[bytes]]]]:
    """An address on this machine that takes what is sent to it, and what it took, by path."""
    taken: defaultdict[str, list[bytes]] = defaultdict(list)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            taken[self.path].append(body)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


SERVICE: Final = "opentelemetry.proto.collector"
SENDING: Final = """
    from opentelemetry import metrics
    from adk_fluent.telemetry import otel_enrichment
    from adk_fluent.testing import ScriptedModel

    model = ScriptedModel("ok", ValueError("no"))
    desk = (Agent("a", model) >> Agent("b", model)).named("desk").middleware(otel_enrichment())
    try:
        desk.ask("hi", config=configured())
    except ValueError:
        pass
    trace.get_tracer_provider().force_flush()
    metrics.get_meter_provider().force_flush()
"""


def test_otlp(tmp_path: Path) -> None:
    """What the environment asks for, a collector gets: ADK's spans with what is said on them."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http")
    sent_spans: Any = import_module(f"{SERVICE}.trace.v1.trace_service_pb2")
    sent_metrics: Any = import_module(f"{SERVICE}.metrics.v1.metrics_service_pb2")

    with receiver() as (address, taken):
        run_program(START + SENDING, tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=address)
    spans: dict[str, dict[str, Any]] = {}
    for body in taken["/v1/traces"]:
        request: Any = sent_spans.ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    said = {each.key: each.value for each in span.attributes}
                    spans[span.name] = said
    assert spans["invoke_agent a"]["adk_fluent.pipeline"].string_value == "desk"
    assert spans["invoke_agent b"]["adk_fluent.step_path"].string_value == "s1"
    calls = [said for name, said in spans.items() if name.startswith("generate_content")]
    assert any(said["adk_fluent.agent_name"].string_value in "ab" for said in calls)
    assert len(spans["invoke_agent a"]["adk_fluent.structure_hash"].string_value) == 64

    counted: dict[str, Any] = {}
    for body in taken["/v1/metrics"]:
        sent: Any = sent_metrics.ExportMetricsServiceRequest.FromString(body)
        for resource in sent.resource_metrics:
            for scope in resource.scope_metrics:
                counted.update({metric.name: metric for metric in scope.metrics})
    (failed,) = counted["adk_fluent.pipeline.errors"].sum.data_points
    assert failed.as_int == 1
    assert "gen_ai.client.token.usage" in counted
