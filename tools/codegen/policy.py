"""What we do with each field of ADK's LlmAgent. Written by hand; read it beside a diff report.

Every field of the newest snapshot stands in exactly one of `OWN`, `NONE` and `SETTERS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Setter:
    """A setter that is generated.

    Attributes:
        summary: What it does, in one sentence.
        argument: What its argument is called.
        about: What the argument is.
        instead: What to write for a step or a delegate, if ADK heeds the field only in the agent
            that its Runner is given. Here that is the flow, and in a tool the agent itself.
    """

    summary: str
    argument: str
    about: str
    instead: str | None = None


@dataclass(frozen=True, slots=True)
class Taken:
    """How a setter takes a type of ADK's.

    Attributes:
        annotation: The type of its argument.
        check: An expression over `adk_fluent.builders._settings` that refuses anything else.
        imports: Module and name of what the annotation mentions; none for built-ins.
    """

    annotation: str
    check: str
    imports: tuple[tuple[str, str], ...] = ()


def _instance(module: str, name: str) -> Taken:
    return Taken(f"{name} | None", f'optional(instance("{name}"))', ((module, name),))


#: Fields that `Agent` sets by a setter written by hand.
OWN: Final[Mapping[str, str]] = {
    "name": "named",
    "model": "model",
    "instruction": "instruct",
    "static_instruction": "static_instruct",
    "description": "description",
    "tools": "tool",
    "sub_agents": "delegates",
    "input_schema": "input_schema",
    "output_schema": "output_schema",
    "output_key": "writes",
    "before_agent_callback": "before_agent",
    "after_agent_callback": "after_agent",
    "before_model_callback": "before_model",
    "after_model_callback": "after_model",
    "on_model_error_callback": "on_model_error",
    "before_tool_callback": "before_tool",
    "after_tool_callback": "after_tool",
    "on_tool_error_callback": "on_tool_error",
}

#: Fields of ADK's own engine, which would do nothing here or break a run; and what to do instead.
NONE: Final[Mapping[str, str]] = {
    # ADK sets it when it puts one agent below another.
    "parent_agent": "put the agent into .delegates(...) of the other one",
    # A delegate in ADK's modes "task" and "single_turn" runs only below a root that ADK itself runs
    # as a node (2.13: "_event_queue is not set"); a step in mode "task" never ends its task.
    "mode": "for an agent that answers a call write .agent_tool(agent)",
    # Only ADK's graphs (google.adk.workflow) read the next three.
    "parallel_worker": "for each item of a list write map_over(key, agent)",
    "rerun_on_resume": "leave it out: the flow engine knows what has to run again",
    "wait_for_output": "leave it out: the flow engine knows when a step is over",
}

#: Fields whose setter is generated.
SETTERS: Final[Mapping[str, Setter]] = {
    "generate_content_config": Setter(
        "Set how the model generates: temperature, length, safety and the like.",
        "config",
        "The settings; ADK refuses those that have a setter of their own, such as tools.",
    ),
    "planner": Setter(
        "Let it plan before it acts.",
        "planner",
        "``BuiltInPlanner(thinking_config=...)`` for the model's own thinking, "
        "``PlanReActPlanner()`` for any model, or one of your own.",
    ),
    "code_executor": Setter(
        "Let the model write code, and run it.",
        "executor",
        "Where the code runs: ``BuiltInCodeExecutor()`` is the model's own sandbox.",
    ),
    "include_contents": Setter(
        "Set what of the conversation it sees, in ADK's words; `history` has more of them.",
        "contents",
        "``default`` is all of it; ``none`` leaves out what came before its input, which is the "
        "user's message, or the answer of the step before.",
    ),
    "disallow_transfer_to_parent": Setter(
        "Keep the model from handing the conversation back to the agent above.",
        "value",
        "False takes it back.",
    ),
    "disallow_transfer_to_peers": Setter(
        "Keep the model from handing the conversation over to agents beside it.",
        "value",
        "False takes it back.",
    ),
    "global_instruction": Setter(
        "Set an instruction for it and all its delegates; ADK has deprecated it.",
        "text",
        "Text with ``{key}`` placeholders, or a function that gives text.",
        instead="for all agents give to_app(plugins=[...]) ADK's GlobalInstructionPlugin",
    ),
    "retry_config": Setter(
        "Let ADK run it again when it fails.",
        "config",
        "How often, and how long to wait in between.",
        instead="for another attempt write agent // agent",
    ),
    "state_schema": Setter(
        "Let ADK refuse what its tools write to state if it does not fit.",
        "schema",
        "A pydantic model whose fields are the keys; keys with a prefix are not looked at.",
        instead="to look at what a step wrote write agent >> expect(test, message)",
    ),
    "timeout": Setter(
        "Let ADK cancel it when it takes too long.",
        "seconds",
        "The most it may take.",
        instead="for a step write timeout(agent, seconds)",
    ),
}

#: Types of ADK's, as snapshots write them. Our InstructionProvider is what ADK takes, sync or not.
TYPES: Final[Mapping[str, Taken]] = {
    "bool": Taken("bool", "as_flag"),
    "float | None": Taken("float | None", "optional(as_seconds)"),
    "Literal['default', 'none']": Taken(
        'Literal["default", "none"]', 'choice("default", "none")', (("typing", "Literal"),)
    ),
    "str | InstructionProvider": Taken(
        "str | InstructionProvider",
        "as_instruction",
        (("adk_fluent.builders._types", "InstructionProvider"),),
    ),
    "type[BaseModel] | None": Taken(
        "type[BaseModel] | None", "optional(as_schema)", (("pydantic", "BaseModel"),)
    ),
    "BaseCodeExecutor | None": _instance("google.adk.code_executors", "BaseCodeExecutor"),
    "BasePlanner | None": _instance("google.adk.planners", "BasePlanner"),
    "RetryConfig | None": _instance("google.adk.workflow", "RetryConfig"),
    "types.GenerateContentConfig | None": _instance("google.genai.types", "GenerateContentConfig"),
}
