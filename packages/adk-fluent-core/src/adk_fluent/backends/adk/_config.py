"""ExecutionConfig on ADK: what is refused, and what becomes of the rest."""

from __future__ import annotations

from typing import Any, Final

from google.adk.agents.run_config import RunConfig, StreamingMode  # pyright: ignore[reportPrivateImportUsage]  # where every version has it

from adk_fluent._registry import missing_layer, require_layer, sole_offer
from adk_fluent.backends._config import check_values
from adk_fluent.errors import UnsupportedConfigError
from adk_fluent.ir import ExecutionConfig, TelemetryConfig

_DEFAULTS: Final = ExecutionConfig()
_LATER: Final = "a later version of adk-fluent-core"


def check_config(config: ExecutionConfig) -> None:
    """Refuse what has no meaning, and what would be ignored; set up telemetry.

    Raises:
        UsageError: A field holds a value that has no meaning.
        UnsupportedConfigError: A field has no effect in this version.
        MissingLayerError: Telemetry is configured, and its layer is not installed.
        LayerError: Telemetry is configured, and its layer is broken, or two layers set it up.
    """
    check_values(config)
    refused = (("target", config.target != "agents"),)
    for field, asked in refused:
        if asked:
            raise unsupported(field, getattr(config, field))
    _telemetry(config)


def _telemetry(config: ExecutionConfig) -> dict[str, Any]:
    """Set up what telemetry there is to be, as often as it is asked, and give RunConfig's fields.

    Raises:
        MissingLayerError: The layer that does so is not installed.
        LayerError: It is broken, or two layers do so.
    """
    if config.telemetry is None:
        return {}
    offer = sole_offer("telemetry")
    if offer is not None:
        return offer.load()(config.telemetry)
    require_layer(TelemetryConfig.layer, "telemetry=")  # it may be broken
    raise missing_layer(TelemetryConfig.layer, "telemetry=")


def unsupported(field: str, value: object) -> UnsupportedConfigError:
    """The error about a field of ExecutionConfig that has no effect here."""
    shown = f"{field}={value!r}" if isinstance(value, (str, bool)) else field
    return UnsupportedConfigError(
        f"ExecutionConfig({shown}) has no effect with this version", field=field, brings=_LATER
    )


def run_config(config: ExecutionConfig) -> RunConfig:
    """ADK's configuration of a run; what is at its default is left to ADK."""
    return RunConfig(**_fields(config))


def merged(given: RunConfig | None, config: ExecutionConfig) -> RunConfig:
    """A caller's RunConfig with what ours adds: the fields that the caller did not set."""
    if given is None:
        return run_config(config)
    fields = _fields(config)
    chosen = given.model_fields_set
    ours = {name: value for name, value in fields.items() if name not in chosen}
    if "custom_metadata" in fields:  # `adk web` sets it, mostly to None
        ours["custom_metadata"] = {**fields["custom_metadata"], **(given.custom_metadata or {})}
    return given.model_copy(update=ours) if ours else given


def _fields(config: ExecutionConfig) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if config.max_llm_calls != _DEFAULTS.max_llm_calls:
        fields["max_llm_calls"] = config.max_llm_calls
    if config.streaming_mode != "none":
        fields["streaming_mode"] = StreamingMode(config.streaming_mode)
    if config.custom_metadata:
        fields["custom_metadata"] = dict(config.custom_metadata)
    return fields | _telemetry(config)
