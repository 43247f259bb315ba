"""What an ExecutionConfig and the other options of a run may hold, on every backend."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, Final, cast

from adk_fluent._middlewares import check_stacked
from adk_fluent._words import describe
from adk_fluent.errors import UsageError, nearest_name
from adk_fluent.ir import CompactionConfig, ExecutionConfig, TelemetryConfig

#: The key of an event's ``custom_metadata`` under which adk-fluent keeps what ADK has no field for.
METADATA_KEY: Final = "adk_fluent"

_MODES: Final = ("none", "sse", "bidi")
_TARGETS: Final = ("agents", "workflow")
_CHOICES: Final = (
    ("streaming_mode", _MODES),
    ("target", _TARGETS),
    ("contracts", ("error", "warn", "off")),
)


def check_values(config: object) -> None:
    """Refuse values that have no meaning, before anything runs.

    Raises:
        UsageError: It is no ExecutionConfig, or a field holds such a value.
    """
    if not isinstance(config, ExecutionConfig):
        raise UsageError(
            "config takes an ExecutionConfig",
            found=_shown(config),
            help="from adk_fluent.config import ExecutionConfig",
        )
    for field, holds, allowed in _FIELDS:
        value = getattr(config, field)
        if not holds(value):
            raise UsageError(f"ExecutionConfig({field}=...) takes {allowed}", found=_shown(value))
    if config.telemetry is not None:
        _check_telemetry(config.telemetry)
    for field, words in _CHOICES:
        _check_word(field, getattr(config, field), words)
    for each in config.middlewares:
        check_stacked(each)
    if config.custom_metadata and METADATA_KEY in config.custom_metadata:
        raise UsageError(
            f"ExecutionConfig(custom_metadata=...) has the key {METADATA_KEY!r}, which is reserved",
            help="use another key",
        )


def check_state(state: object) -> None:
    """Refuse what no session can begin with.

    Raises:
        UsageError: It is no mapping with names as keys.
    """
    if state is not None and not _has_names(state):
        raise UsageError(
            "state takes a mapping of names to values",
            found=_shown(state),
            help='give a dict such as {"city": "Oslo"}',
        )


def _check_telemetry(config: TelemetryConfig) -> None:
    for field in ("trace_to_cloud", "capture_content", "enable_cost_metrics"):
        value = getattr(config, field)
        if not isinstance(value, bool):
            raise UsageError(
                f"TelemetryConfig({field}=...) takes True or False", found=_shown(value)
            )
    if not isinstance(config.custom_exporters, list | tuple):
        raise UsageError(
            "TelemetryConfig(custom_exporters=...) takes a list of OpenTelemetry's span exporters",
            found=_shown(config.custom_exporters),
        )


def _check_word(field: str, value: object, words: tuple[str, ...]) -> None:
    if value in words:
        return
    near = nearest_name(value, words) if isinstance(value, str) else None
    raise UsageError(
        f"ExecutionConfig({field}=...) takes {', '.join(map(repr, words[:-1]))} or {words[-1]!r}",
        found=repr(value) if isinstance(value, str) else _shown(value),
        help=f"did you mean {near!r}?" if near else None,
    )


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) and not _has_names(cast("object", value)):
        return "a mapping with keys that are no str"
    return describe(value)


def _has_names(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    return all(isinstance(key, str) for key in cast("Mapping[Any, Any]", value))


def _is_seconds(value: object) -> bool:
    if value is None:
        return True
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return isfinite(value) and value > 0


def _is_limit(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value < sys.maxsize


_FIELDS: Final[tuple[tuple[str, Callable[[object], bool], str], ...]] = (
    ("app_name", lambda value: isinstance(value, str) and value != "", "a name, such as 'shop'"),
    ("max_llm_calls", _is_limit, "an int; 0 or less is no limit"),
    ("timeout_seconds", _is_seconds, "seconds above 0; None is no limit"),
    (
        "compaction",
        lambda value: value is None or isinstance(value, CompactionConfig),
        "a CompactionConfig, or None",
    ),
    ("resumable", lambda value: isinstance(value, bool), "True or False"),
    (
        "telemetry",
        lambda value: value is None or isinstance(value, TelemetryConfig),
        "a TelemetryConfig, or None",
    ),
    (
        "custom_metadata",
        lambda value: value is None or _has_names(value),
        "a mapping of names to values, or None",
    ),
    (
        "middlewares",
        lambda value: isinstance(value, list | tuple),
        "a list of middlewares, such as [RetryMiddleware()]",
    ),
)
