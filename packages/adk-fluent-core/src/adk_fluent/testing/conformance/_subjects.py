"""The backends of this package, as subjects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent._registry import found
from adk_fluent.ir import AdkAgentNode, Ref, RemoteAgentNode, TelemetryConfig
from adk_fluent.testing.conformance._subject import Status, Subject, never, not_yet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent._scripts._script import Script
    from adk_fluent.backends.mock import MockBackend
    from adk_fluent.builders import StepLike


#: What no backend of this version has.
_LATER: Final[Mapping[str, Status]] = {
    "telemetry": not_yet("adk-fluent-middleware brings it"),
    "remote agent": not_yet("adk-fluent-a2a brings it"),
    "model choice": not_yet("adk-fluent-cost brings it"),
    "streaming edge": not_yet("a later version brings it"),
    "live": never("a live run takes no prompt: `run_live` of ADK's Runner opens it"),
    "workflow target": not_yet("a later version brings it"),
}

_SCRIPTED: Final = never("agents follow scripts, and no function inside them is called")

#: What the mock backend lacks.
MOCK_LACKS: Final[Mapping[str, Status]] = {
    **_LATER,
    "tool": _SCRIPTED,
    "callback": _SCRIPTED,
    "middleware": never("hooks are given requests and contexts of ADK's, and there are none"),
    "remote agent": never("whatever a script says stands for it"),
    "telemetry": never("it makes no spans"),
    "live": never("there is no model to talk to"),
    "workflow target": never("it compiles to nothing of ADK's"),
}

#: What the ADK backend lacks, on every version of ADK, where no other wheel is installed.
ADK_LACKS: Final = _LATER


def mock_subject() -> Subject:
    """`adk_fluent.testing.mock_backend`."""
    from adk_fluent.backends.mock import MockBackend  # noqa: PLC0415  # imports the engine

    scripts: dict[str, Any] = {}

    def backend() -> MockBackend:
        mine = dict(scripts)
        scripts.clear()  # the next program has others
        return MockBackend(mine)

    def native(name: str, script: Script) -> StepLike:
        scripts[name] = script  # the mock backend is told by name what such an agent answers
        return AdkAgentNode(name, Ref(script, name))

    return Subject(name="mock", backend=backend, native=native, lacks=MOCK_LACKS)


def adk_subject(sessions: Callable[[], BaseSessionService] | None = None) -> Subject:
    """ADK, the version that is installed.

    Args:
        sessions: Makes a session service; None is memory.
    """
    from adk_fluent.testing.conformance._subject_adk import subject  # noqa: PLC0415  # imports ADK

    layers = {"telemetry": TelemetryConfig.layer, "remote agent": RemoteAgentNode.layer}
    brought = {name for name, layer in layers.items() if layer in found()}
    lacks = {each: why for each, why in ADK_LACKS.items() if each not in brought}
    return subject(sessions, lacks)
