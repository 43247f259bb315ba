"""What the options of a run may hold: the same on every backend, and said before anything runs."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest

from adk_fluent.backends.mock import mock_backend
from adk_fluent.config import CompactionConfig, ExecutionConfig, TelemetryConfig
from adk_fluent.errors import UnsupportedConfigError, UsageError
from adk_fluent.ir import AgentNode, AppNode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.protocol import Backend

A = AgentNode("a", model="gemini-2.5-flash")
MODES = "ExecutionConfig(streaming_mode=...) takes 'none', 'sse' or 'bidi'"
SECONDS = "ExecutionConfig(timeout_seconds=...) takes seconds above 0; None is no limit"
LIMIT = "ExecutionConfig(max_llm_calls=...) takes an int; 0 or less is no limit"
METADATA = "ExecutionConfig(custom_metadata=...) takes a mapping of names to values, or None"


@pytest.fixture(params=["mock", pytest.param("adk", marks=pytest.mark.adk)])
def backend(request: pytest.FixtureRequest) -> Backend[Any]:
    if request.param == "mock":
        return mock_backend({"a": "answer"})
    from adk_fluent.backends.adk import ADKBackend

    return ADKBackend()


@pytest.mark.parametrize(
    ("fields", "what", "found", "help"),
    [
        ({"streaming_mode": "SSE"}, MODES, "'SSE'", "did you mean 'sse'?"),
        ({"streaming_mode": None}, MODES, "None", None),
        ({"target": "x"}, "ExecutionConfig(target=...) takes 'agents' or 'workflow'", "'x'", None),
        ({"timeout_seconds": 0}, SECONDS, "0", None),
        ({"timeout_seconds": -1.5}, SECONDS, "-1.5", None),
        ({"timeout_seconds": math.nan}, SECONDS, "nan", None),
        ({"timeout_seconds": math.inf}, SECONDS, "inf", None),
        ({"timeout_seconds": True}, SECONDS, "True", None),
        ({"timeout_seconds": "5"}, SECONDS, "a str", None),
        ({"max_llm_calls": "x"}, LIMIT, "a str", None),
        ({"max_llm_calls": 1.5}, LIMIT, "1.5", None),
        ({"max_llm_calls": None}, LIMIT, "None", None),
        ({"max_llm_calls": sys.maxsize}, LIMIT, str(sys.maxsize), None),
        (
            {"compaction": 3},
            "ExecutionConfig(compaction=...) takes a CompactionConfig, or None",
            "3",
            None,
        ),
        ({"resumable": "no"}, "ExecutionConfig(resumable=...) takes True or False", "a str", None),
        (
            {"telemetry": {"capture_content": True}},
            "ExecutionConfig(telemetry=...) takes a TelemetryConfig, or None",
            "a dict",
            None,
        ),
        *(
            (
                {"telemetry": TelemetryConfig(**{field: cast("Any", "no")})},
                f"TelemetryConfig({field}=...) takes True or False",
                "a str",
                None,
            )
            for field in ("capture_content", "trace_to_cloud", "enable_cost_metrics")
        ),
        (
            {"telemetry": TelemetryConfig(custom_exporters="x")},
            "TelemetryConfig(custom_exporters=...) takes a list of OpenTelemetry's span exporters",
            "a str",
            None,
        ),
        ({"custom_metadata": (1,)}, METADATA, "a tuple", None),
        ({"custom_metadata": {1: 2}}, METADATA, "a mapping with keys that are no str", None),
        (
            {"custom_metadata": {"adk_fluent": 1}},
            "ExecutionConfig(custom_metadata=...) has the key 'adk_fluent', which is reserved",
            None,
            "use another key",
        ),
        (
            {"app_name": ""},
            "ExecutionConfig(app_name=...) takes a name, such as 'shop'",
            "an empty str",
            None,
        ),
        ({"app_name": 3}, "ExecutionConfig(app_name=...) takes a name, such as 'shop'", "3", None),
    ],
)
def test_a_value_without_a_meaning_is_refused(
    fields: dict[str, Any], what: str, found: str | None, help: str | None, backend: Backend[Any]
) -> None:
    config = ExecutionConfig(**fields)
    for node, given in ((A, config), (AppNode("app", A, execution=config), None)):
        with pytest.raises(UsageError) as caught:
            backend.compile(node, given)
        assert (caught.value.what, caught.value.found, caught.value.help) == (what, found, help)


def test_what_is_no_config_is_refused(backend: Backend[Any]) -> None:
    config: Any = {"max_llm_calls": 3}
    with pytest.raises(UsageError, match="config takes an ExecutionConfig") as caught:
        backend.compile(A, config)
    assert caught.value.found == "a dict"


@pytest.mark.parametrize(
    "config",
    [
        ExecutionConfig(max_llm_calls=0, timeout_seconds=0.5, streaming_mode="sse"),
        ExecutionConfig(max_llm_calls=-1, timeout_seconds=5, custom_metadata={"tenant": "x"}),
        ExecutionConfig(custom_metadata={}, compaction=CompactionConfig(), app_name="shop"),
    ],
)
def test_values_with_a_meaning_are_taken(config: ExecutionConfig, backend: Backend[Any]) -> None:
    assert backend.compile(A, config).config == config


def test_what_has_a_meaning_elsewhere_is_told_from_what_has_none(backend: Backend[Any]) -> None:
    with pytest.raises(UnsupportedConfigError):
        backend.compile(A, ExecutionConfig(target="workflow"))


@pytest.mark.parametrize(
    ("state", "found"),
    [
        ([1], "a list"),
        ([], "a list"),
        (3, "3"),
        ({1: 2}, "a mapping with keys that are no str"),
    ],
)
async def test_state_that_no_session_can_begin_with(
    state: Any, found: str, backend: Backend[Any]
) -> None:
    compiled = backend.compile(A)
    wrong: Mapping[str, Any] = state
    with pytest.raises(UsageError, match="state takes a mapping") as caught:
        await backend.run(compiled, "hi", state=wrong)
    assert caught.value.found == found
    with pytest.raises(UsageError, match="state takes a mapping"):
        _ = [event async for event in backend.stream(compiled, "hi", state=wrong)]
