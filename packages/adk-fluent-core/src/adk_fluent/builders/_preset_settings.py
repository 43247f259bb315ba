"""What a `Preset` and `agent` take by name, as a type."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Literal, TypeAlias, TypeVar

    from google.adk.code_executors import BaseCodeExecutor
    from google.adk.planners import BasePlanner
    from google.adk.workflow import RetryConfig
    from google.genai.types import Content, GenerateContentConfig, Part
    from pydantic import BaseModel
    from typing_extensions import TypeForm

    from adk_fluent.builders._base import AgentLike
    from adk_fluent.builders._types import (
        Callbacks,
        InstructionProvider,
        KeyLike,
        MockReplies,
        ModelLike,
        Schema,
        ToolLike,
    )
    from adk_fluent.ir import Buffering, History, Modality
    from adk_fluent.protocol import StateRules

    T = TypeVar("T")
    Several: TypeAlias = T | Sequence[T]


class PresetSettings(TypedDict, total=False):
    """Setters of `Agent` that take one value, or a list where they may be called again."""

    accepts: Several[Modality]
    after_agent: Callbacks
    after_model: Callbacks
    after_tool: Callbacks
    agent_tool: Several[AgentLike]
    allow: Several[str]
    before_agent: Callbacks
    before_model: Callbacks
    before_tool: Callbacks
    code_executor: BaseCodeExecutor | None
    consumes: Schema
    delegates: Several[AgentLike]
    description: str
    disallow_transfer_to_parent: bool
    disallow_transfer_to_peers: bool
    generate_content_config: GenerateContentConfig | None
    global_instruction: str | InstructionProvider
    history: History
    include_contents: Literal["default", "none"]
    input_schema: Schema
    instruct: str | InstructionProvider
    mock: MockReplies
    model: ModelLike
    on_model_error: Callbacks
    on_tool_error: Callbacks
    output_retries: int
    output_schema: Schema | TypeForm[Any]
    outputs: Several[KeyLike]
    planner: BasePlanner | None
    produces: Schema
    produces_modality: Several[Modality]
    reads: Several[KeyLike]
    retry_config: RetryConfig | None
    state: StateRules
    state_schema: type[BaseModel] | None
    static_instruct: str | Content | Part
    stream_to: Buffering
    sub_agents: Several[AgentLike]
    timeout: float | None
    tool: Several[ToolLike]
    writes: Several[KeyLike]
