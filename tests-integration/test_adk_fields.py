"""Every field of the installed ADK's LlmAgent has a setter, and every model its snapshot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.code_executors import BuiltInCodeExecutor
from google.adk.planners import PlanReActPlanner
from google.adk.tools.agent_tool import AgentTool
from google.genai.types import GenerateContentConfig
from pydantic import BaseModel

from adk_fluent import Agent
from adk_fluent._adk_fields import NO_SETTER, OWN_SETTERS, SINCE, TOOLS_ONLY
from adk_fluent.builders._adk_setters import CHECKS
from codegen import snapshots
from codegen.extract import extract

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.adk


class Form(BaseModel):
    total: int = 0


def look_up(key: str) -> str:
    """Look something up."""
    return key


def callback(**_: Any) -> None:
    return None


def retry_config() -> Any:
    from google.adk.workflow import RetryConfig

    return RetryConfig(max_attempts=7)


#: Field with a generated setter -> makes a value that differs from the default.
VALUES: dict[str, Callable[[], Any]] = {
    "code_executor": BuiltInCodeExecutor,
    "disallow_transfer_to_parent": lambda: True,
    "disallow_transfer_to_peers": lambda: True,
    "generate_content_config": lambda: GenerateContentConfig(temperature=0.125),
    "global_instruction": lambda: "You are all polite.",
    "include_contents": lambda: "none",
    "planner": PlanReActPlanner,
    "retry_config": retry_config,
    "state_schema": lambda: Form,
    "timeout": lambda: 12.5,
}


@dataclass
class Own:
    """A setter that was written by hand.

    Attributes:
        set: Calls it.
        expected: What is found afterwards.
        found: How, given the field's value.
    """

    set: Callable[[Agent], Agent]
    expected: Any
    found: Callable[[Any], Any] = lambda value: value


OWN: dict[str, Own] = {
    "name": Own(lambda a: a.named("sample"), "sample"),
    "model": Own(lambda a: a.model("gemini-2.5-flash"), "gemini-2.5-flash"),
    "instruction": Own(lambda a: a.instruct("Do it."), "Do it."),
    "static_instruction": Own(lambda a: a.static_instruct("Be kind."), "Be kind."),
    "description": Own(lambda a: a.description("Does it."), "Does it."),
    "tools": Own(
        lambda a: a.tool(look_up), [look_up], lambda tools: [getattr(t, "func", t) for t in tools]
    ),
    "sub_agents": Own(
        lambda a: a.delegates(Agent("helper")), ["helper"], lambda agents: [a.name for a in agents]
    ),
    "input_schema": Own(lambda a: a.input_schema(Form), Form),
    "output_schema": Own(lambda a: a.output_schema(Form), Form),
    "output_key": Own(lambda a: a.writes("answer"), "answer"),
    "before_agent_callback": Own(lambda a: a.before_agent(callback), callback),
    "after_agent_callback": Own(lambda a: a.after_agent(callback), callback),
    "before_model_callback": Own(lambda a: a.before_model(callback), callback),
    "after_model_callback": Own(lambda a: a.after_model(callback), callback),
    "on_model_error_callback": Own(lambda a: a.on_model_error(callback), callback),
    "before_tool_callback": Own(lambda a: a.before_tool(callback), callback),
    "after_tool_callback": Own(lambda a: a.after_tool(callback), callback),
    "on_tool_error_callback": Own(lambda a: a.on_tool_error(callback), callback),
}


def native(agent: Agent, *, as_tool: bool) -> LlmAgent:
    """The agent of ADK's that an agent becomes."""
    pipeline = Agent("boss").agent_tool(agent) if as_tool else agent
    (made,) = pipeline.to_agent().sub_agents
    if as_tool:
        (tool,) = getattr(made, "tools")  # noqa: B009  # ADK's type of it is not complete
        assert isinstance(tool, AgentTool)
        made = tool.agent
    assert isinstance(made, LlmAgent)
    return made


@pytest.mark.parametrize("name", sorted(LlmAgent.model_fields.keys() - NO_SETTER.keys()))
def test_every_field_is_set_by_a_setter_and_found_on_the_agent_of_adk(name: str) -> None:
    default = getattr(LlmAgent(name="plain"), name)
    agent = Agent("plain")
    if name in OWN:
        own = OWN[name]
        own.set(agent)
        expected, found = own.expected, own.found
    elif name in VALUES:
        expected, found = VALUES[name](), OWN["name"].found
        assert getattr(agent, name)(expected) is agent
    else:
        info = LlmAgent.model_fields[name]
        pytest.fail(f"LlmAgent.{name}: give this test a value of the type {info.annotation}")
    made = getattr(native(agent, as_tool=name in TOOLS_ONLY), name)
    assert found(made) == expected
    assert made != default


def test_setters_by_hand_and_generated_setters_cover_what_they_say() -> None:
    assert OWN.keys() == OWN_SETTERS.keys()
    assert VALUES.keys() == CHECKS.keys()
    assert OWN.keys() | VALUES.keys() | NO_SETTER.keys() == SINCE.keys()


def test_configure_does_the_same_as_the_setters() -> None:
    for name in sorted(VALUES.keys() & LlmAgent.model_fields.keys()):
        value = VALUES[name]()
        as_tool = name in TOOLS_ONLY
        made = native(Agent("plain").configure(**{name: value}), as_tool=as_tool)
        assert getattr(made, name) == value


def test_the_snapshot_of_the_installed_version_is_what_it_is() -> None:
    found = extract()
    version = found["adk"]
    if version not in snapshots.pinned() and not snapshots.path_of(version).exists():
        pytest.skip(f"google-adk {version} is not one of those that CI pins")
    assert found == snapshots.load_data(version)  # says what to run where there is none
