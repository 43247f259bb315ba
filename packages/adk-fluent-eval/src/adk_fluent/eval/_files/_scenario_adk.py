"""Simulated users in ADK's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.evaluation.conversation_scenarios import ConversationScenario
from google.adk.evaluation.simulation.llm_backed_user_simulator import LlmBackedUserSimulatorConfig

from adk_fluent.eval._cases._simulation import UserSimulation
from adk_fluent.eval._cases._turn import text_of

if TYPE_CHECKING:
    from adk_fluent.eval._cases._case import FluentCase


def scenario_of(case: FluentCase, simulation: UserSimulation) -> ConversationScenario:
    """Return how a user is simulated, in ADK's words."""
    plan = [simulation.success_criteria or "The user gets what the first message asks for."]
    fields: dict[str, Any] = {}
    persona = simulation.persona
    if not isinstance(persona, str | None) and "user_persona" in ConversationScenario.model_fields:
        fields["user_persona"] = persona
    elif persona is not None:
        plan.insert(0, simulation.persona_text)
    plan += simulation.script or ()
    start = text_of(case.turns[0].input)
    return ConversationScenario(starting_prompt=start, conversation_plan="\n".join(plan), **fields)


def simulation_from(scenario: ConversationScenario, model: str | None = None) -> UserSimulation:
    """Return how ADK would simulate a user; None is ADK's own model."""
    default: Any = LlmBackedUserSimulatorConfig.model_fields["model"].default
    persona = getattr(scenario, "user_persona", None)
    return UserSimulation(model or default, persona, scenario.conversation_plan)
