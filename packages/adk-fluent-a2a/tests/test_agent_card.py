"""Agent cards of pipelines, from their IR."""

from __future__ import annotations

from typing import Any

import pytest
from a2a.types import AgentSkill
from google.protobuf.json_format import MessageToDict

from adk_fluent import Agent, RemoteAgent
from adk_fluent.errors import UsageError
from adk_fluent.ir import Modality

HERE = "https://support.example.com/a2a"


def process_refund(order: str) -> str:
    """Pay an order back.

    Args:
        order: Its number.
    """
    return order


def card_of(pipeline: Any, **options: Any) -> dict[str, Any]:
    return MessageToDict(pipeline.to_agent_card(endpoint=HERE, **options))


def test_a_card_states_agents_and_tools_and_no_instruction() -> None:
    pipeline = (
        Agent("triage").description("Sorts requests.").instruct("SECRET PROMPT")
        >> Agent("billing").instruct("SECRET PROMPT").tool(process_refund)
        >> RemoteAgent("bank", endpoint="https://bank.internal/a2a")
    )
    made = card_of(pipeline.named("support"), description="Billing support.")
    assert (made["name"], made["description"]) == ("support", "Billing support.")
    said = {each["id"]: (each["description"], each["tags"]) for each in made["skills"]}
    assert said == {
        "triage": ("Sorts requests.", ["agent"]),
        "billing": ("billing", ["agent"]),
        "process_refund": ("Pay an order back.", ["tool"]),
        "bank": ("bank", ["agent"]),
    }
    assert "SECRET" not in str(made)
    assert "bank.internal" not in str(made)
    assert [
        (each["url"], each["protocolBinding"], each["protocolVersion"])
        for each in made["supportedInterfaces"]
    ] == [(HERE, "JSONRPC", "1.0"), (HERE, "HTTP+JSON", "1.0")]


def test_modes_are_those_of_the_agents_at_the_ends() -> None:
    reads = Agent("reads").accepts(Modality.TEXT, Modality.PDF)
    draws = Agent("draws").produces_modality(Modality.IMAGE)
    made = card_of(reads >> Agent("between").accepts(Modality.AUDIO) >> draws)
    assert made["defaultInputModes"] == ["text/plain", "application/json", "application/pdf"]
    assert "image/png" in made["defaultOutputModes"]
    assert "audio/wav" not in made["defaultInputModes"]


def test_skills_can_be_given() -> None:
    skill = AgentSkill(id="refund", name="Refund", description="Pays back.", tags=["pay"])
    made = card_of(Agent("a"), skills=[skill], version="2.1.0", name="Desk")
    assert [each["id"] for each in made["skills"]] == ["refund"]
    assert (made["version"], made["name"]) == ("2.1.0", "Desk")
    with pytest.raises(UsageError, match="skills= takes"):
        card_of(Agent("a"), skills=["refund"])


@pytest.mark.parametrize(
    "endpoint", ["", "support.example.com", "ftp://x/a", "https://u:p@x/a", "https://x/a?k=1", 3]
)
def test_an_endpoint_that_cannot_be_stated_is_refused(endpoint: Any) -> None:
    with pytest.raises(UsageError, match="endpoint= takes"):
        Agent("a").to_agent_card(endpoint=endpoint)
