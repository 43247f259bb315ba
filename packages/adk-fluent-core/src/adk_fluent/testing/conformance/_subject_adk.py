"""ADK as a subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.tools.long_running_tool import LongRunningFunctionTool

from adk_fluent._scripts._scripted_adk import ScriptedModel
from adk_fluent.backends.adk import ADKBackend
from adk_fluent.testing.conformance._subject import Subject

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent._scripts._script import Script
    from adk_fluent.protocol import Backend
    from adk_fluent.testing.conformance._subject import Status


def subject(
    sessions: Callable[[], BaseSessionService] | None, lacks: Mapping[str, Status]
) -> Subject:
    """ADK, with sessions in memory or where one says."""
    make = sessions or InMemorySessionService
    return Subject(
        name="adk",
        backend=lambda: ADKBackend(make()),
        reopen=_reopen,
        native=_native,
        long_running=LongRunningFunctionTool,
        lacks=lacks,
    )


def _reopen(backend: Backend[Any]) -> Backend[Any]:
    assert isinstance(backend, ADKBackend)  # noqa: S101  # made above
    return ADKBackend(backend.session_service)


def _native(name: str, script: Script) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(script=script), instruction="Speak.")
