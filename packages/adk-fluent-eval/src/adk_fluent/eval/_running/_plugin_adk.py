"""The plugin by which a run of a case sees its tools, its models and the agents inside of tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.plugins.base_plugin import BasePlugin

from adk_fluent.backends import adk
from adk_fluent.eval._running._cost import usage_of

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.events.event import Event
    from google.adk.models.llm_response import LlmResponse
    from google.adk.tools.base_tool import BaseTool
    from google.genai import types

    from adk_fluent.eval._running._instead import Instead
    from adk_fluent.protocol import Usage


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer of a model, wherever in the pipeline.

    Attributes:
        agent: Who asked.
        model: Who answered; empty if the answer does not say.
        usage: What it took; None if the answer does not say.
        failed: It reports an error, which need not say what it took.
        at: When it came.
    """

    agent: str
    model: str
    usage: Usage | None
    failed: bool
    at: datetime


@dataclass(slots=True)
class Beneath:
    """What a turn's own events do not tell.

    Attributes:
        answers: The answers of models, those inside of tools included.
        inner: What happened inside of tools that are agents: the tool's agent, and the event.
    """

    answers: list[Answer] = field(default_factory=list[Answer])
    inner: list[tuple[str, Event]] = field(default_factory=list["tuple[str, Event]"])


class CasePlugin(BasePlugin):
    """Looks on while a case runs, and answers nothing itself.

    It makes call sites of tools and models that were not compiled here, when they are first used:
    what stands in the place of a tool is below all callbacks, so that they see its answer as they
    would see the tool's. ADK runs the agent inside of an ``AgentTool`` in a session of its own, of
    which the case's session has nothing but the answer; the plugins are the same there.

    Args:
        instead: What answers in the place of tools.
        models: Whether something answers in the place of models, too.

    Attributes:
        turns: What happened, turn by turn.
    """

    def __init__(self, instead: Instead, *, models: bool) -> None:
        super().__init__(name="adk_fluent_eval")
        self._instead = instead
        self._models = models
        self._session = ""
        self._inside: dict[str, str] = {}
        self.turns: list[Beneath] = []

    async def before_run_callback(self, *, invocation_context: Any) -> types.Content | None:
        """A turn begins, or the run of an agent inside of a tool."""
        session = invocation_context.session.id
        self._session = self._session or session
        if session == self._session:
            self.turns.append(Beneath())
        else:
            self._inside[session] = invocation_context.agent.name
        return None

    async def before_agent_callback(
        self, *, agent: BaseAgent, callback_context: Any
    ) -> types.Content | None:
        """An agent is about to run."""
        if self._models and isinstance(agent, LlmAgent):
            adk.call_sites_of(agent)
        return None

    async def after_model_callback(
        self, *, callback_context: Any, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """A model has answered."""
        if self.turns and not llm_response.partial:
            self.turns[-1].answers.append(
                Answer(
                    callback_context.agent_name,
                    getattr(llm_response, "model_version", None) or "",
                    usage_of(llm_response.usage_metadata),
                    llm_response.error_code is not None,
                    datetime.now(UTC),
                )
            )
        return None

    async def on_event_callback(self, *, invocation_context: Any, event: Event) -> Event | None:
        """Something happens; the watch is told what happens in the case's own session."""
        inside = self._inside.get(invocation_context.session.id)
        if inside is not None and self.turns and not event.partial:
            self.turns[-1].inner.append((inside, event))
        return None

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any
    ) -> dict[str, Any] | None:
        """A tool is about to be called: this is the very object."""
        adk.call_site(tool)
        return None

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Any, error: Exception
    ) -> dict[str, Any] | None:
        """A call of a tool raised, also if it is made good after that."""
        self._instead.note_error(tool_context.function_call_id, error)
        return None
