"""Facts about the fields of ADK's LlmAgent, for builders and backends alike.

Written by ``python -m tools.codegen``; what they say comes from tools/codegen/policy.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


#: The newest google-adk whose fields are known here.
NEWEST: Final = "2.13.0"

#: Every field of LlmAgent, and the first google-adk that has it, of those looked at: 1.25.1,
#: 1.39.1, 2.0.0, 2.13.0.
SINCE: Final[Mapping[str, str]] = {
    "after_agent_callback": "1.25.1",
    "after_model_callback": "1.25.1",
    "after_tool_callback": "1.25.1",
    "before_agent_callback": "1.25.1",
    "before_model_callback": "1.25.1",
    "before_tool_callback": "1.25.1",
    "code_executor": "1.25.1",
    "description": "1.25.1",
    "disallow_transfer_to_parent": "1.25.1",
    "disallow_transfer_to_peers": "1.25.1",
    "generate_content_config": "1.25.1",
    "global_instruction": "1.25.1",
    "include_contents": "1.25.1",
    "input_schema": "1.25.1",
    "instruction": "1.25.1",
    "mode": "2.0.0",
    "model": "1.25.1",
    "name": "1.25.1",
    "on_model_error_callback": "1.25.1",
    "on_tool_error_callback": "1.25.1",
    "output_key": "1.25.1",
    "output_schema": "1.25.1",
    "parallel_worker": "2.0.0",
    "parent_agent": "1.25.1",
    "planner": "1.25.1",
    "rerun_on_resume": "2.0.0",
    "retry_config": "2.0.0",
    "state_schema": "2.0.0",
    "static_instruction": "1.25.1",
    "sub_agents": "1.25.1",
    "timeout": "2.0.0",
    "tools": "1.25.1",
    "wait_for_output": "2.0.0",
}

#: Fields that have a setter of another name, or of the same one, written by hand.
OWN_SETTERS: Final[Mapping[str, str]] = {
    "after_agent_callback": "after_agent",
    "after_model_callback": "after_model",
    "after_tool_callback": "after_tool",
    "before_agent_callback": "before_agent",
    "before_model_callback": "before_model",
    "before_tool_callback": "before_tool",
    "description": "description",
    "input_schema": "input_schema",
    "instruction": "instruct",
    "model": "model",
    "name": "named",
    "on_model_error_callback": "on_model_error",
    "on_tool_error_callback": "on_tool_error",
    "output_key": "writes",
    "output_schema": "output_schema",
    "static_instruction": "static_instruct",
    "sub_agents": "delegates",
    "tools": "tool",
}

#: Fields of ADK's own engine that have none, and what to do instead.
NO_SETTER: Final[Mapping[str, str]] = {
    "mode": "for an agent that answers a call write .agent_tool(agent)",
    "parallel_worker": "for each item of a list write map_over(key, agent)",
    "parent_agent": "put the agent into .delegates(...) of the other one",
    "rerun_on_resume": "leave it out: the flow engine knows what has to run again",
    "wait_for_output": "leave it out: the flow engine knows when a step is over",
}

#: Fields that only agent tools can have, and what to write for other agents.
TOOLS_ONLY: Final[Mapping[str, str]] = {
    "global_instruction": "for all agents give to_app(plugins=[...]) ADK's GlobalInstructionPlugin",
    "retry_config": "for another attempt write agent // agent",
    "state_schema": "to look at what a step wrote write agent >> expect(test, message)",
    "timeout": "for a step write timeout(agent, seconds)",
}


def at_least(version: str, other: str) -> bool:
    """Whether a version of ADK is not older than another one."""
    return _numbers(version) >= _numbers(other)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version)[:3]))
