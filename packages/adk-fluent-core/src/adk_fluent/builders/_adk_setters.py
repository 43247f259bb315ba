"""The setters of `Agent` that are called like the field of ADK's LlmAgent they set.

Written by ``python -m tools.codegen``; what they say comes from tools/codegen/policy.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from adk_fluent.builders._settings import (
    as_flag,
    as_instruction,
    as_schema,
    as_seconds,
    choice,
    instance,
    optional,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from google.adk.code_executors import BaseCodeExecutor
    from google.adk.planners import BasePlanner
    from google.adk.workflow import RetryConfig
    from google.genai.types import GenerateContentConfig
    from pydantic import BaseModel

    from adk_fluent.builders._settings import Check
    from adk_fluent.builders._types import InstructionProvider


#: What each setter below takes.
CHECKS: Final[Mapping[str, Check]] = {
    "code_executor": optional(instance("BaseCodeExecutor")),
    "disallow_transfer_to_parent": as_flag,
    "disallow_transfer_to_peers": as_flag,
    "generate_content_config": optional(instance("GenerateContentConfig")),
    "global_instruction": as_instruction,
    "include_contents": choice("default", "none"),
    "planner": optional(instance("BasePlanner")),
    "retry_config": optional(instance("RetryConfig")),
    "state_schema": optional(as_schema),
    "timeout": optional(as_seconds),
}


class AdkSetters:
    """The part of `Agent` that is ADK's business, and only passed on here."""

    __slots__ = ()
    _settings: dict[str, Any]

    if TYPE_CHECKING:

        def _changed(self) -> Self: ...

    def _set(self, field: str, value: object) -> Self:
        self._settings[field] = CHECKS[field](value, f".{field}(...)")
        return self._changed()

    def code_executor(self, executor: BaseCodeExecutor | None) -> Self:
        """Let the model write code, and run it.

        ADK's ``code_executor``.

        Args:
            executor: Where the code runs: ``BuiltInCodeExecutor()`` is the model's own sandbox.
        """
        return self._set("code_executor", executor)

    def disallow_transfer_to_parent(self, value: bool = True) -> Self:
        """Keep the model from handing the conversation back to the agent above.

        ADK's ``disallow_transfer_to_parent``.

        Args:
            value: False takes it back.
        """
        return self._set("disallow_transfer_to_parent", value)

    def disallow_transfer_to_peers(self, value: bool = True) -> Self:
        """Keep the model from handing the conversation over to agents beside it.

        ADK's ``disallow_transfer_to_peers``.

        Args:
            value: False takes it back.
        """
        return self._set("disallow_transfer_to_peers", value)

    def generate_content_config(self, config: GenerateContentConfig | None) -> Self:
        """Set how the model generates: temperature, length, safety and the like.

        ADK's ``generate_content_config``.

        Args:
            config: The settings; ADK refuses those that have a setter of their own, such as tools.
        """
        return self._set("generate_content_config", config)

    def global_instruction(self, text: str | InstructionProvider) -> Self:
        """Set an instruction for it and all its delegates; ADK has deprecated it.

        ADK's ``global_instruction``; only agent tools (`agent_tool`) can have it: for all agents
        give to_app(plugins=[...]) ADK's GlobalInstructionPlugin.

        Args:
            text: Text with ``{key}`` placeholders, or a function that gives text.
        """
        return self._set("global_instruction", text)

    def include_contents(self, contents: Literal["default", "none"]) -> Self:
        """Set what of the conversation it sees, in ADK's words; `history` has more of them.

        ADK's ``include_contents``.

        Args:
            contents: ``default`` is all of it; ``none`` leaves out what came before its input,
                which is the user's message, or the answer of the step before.
        """
        return self._set("include_contents", contents)

    def planner(self, planner: BasePlanner | None) -> Self:
        """Let it plan before it acts.

        ADK's ``planner``.

        Args:
            planner: ``BuiltInPlanner(thinking_config=...)`` for the model's own thinking,
                ``PlanReActPlanner()`` for any model, or one of your own.
        """
        return self._set("planner", planner)

    def retry_config(self, config: RetryConfig | None) -> Self:
        """Let ADK run it again when it fails.

        ADK's ``retry_config``, since google-adk 2.0.0; only agent tools (`agent_tool`) can have it:
        for another attempt write agent // agent.

        Args:
            config: How often, and how long to wait in between.
        """
        return self._set("retry_config", config)

    def state_schema(self, schema: type[BaseModel] | None) -> Self:
        """Let ADK refuse what its tools write to state if it does not fit.

        ADK's ``state_schema``, since google-adk 2.0.0; only agent tools (`agent_tool`) can have it:
        to look at what a step wrote write agent >> expect(test, message).

        Args:
            schema: A pydantic model whose fields are the keys; keys with a prefix are not looked
                at.
        """
        return self._set("state_schema", schema)

    def timeout(self, seconds: float | None) -> Self:
        """Let ADK cancel it when it takes too long.

        ADK's ``timeout``, since google-adk 2.0.0; only agent tools (`agent_tool`) can have it: for
        a step write timeout(agent, seconds).

        Args:
            seconds: The most it may take.
        """
        return self._set("timeout", seconds)
