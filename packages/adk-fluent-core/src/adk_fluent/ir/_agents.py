"""Leaf nodes: what does the work. How leaves are arranged is in `_flow.py`."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from adk_fluent.ir._node import Node, node
from adk_fluent.ir._record import child, field
from adk_fluent.ir._ref import Ref
from adk_fluent.ir._state import OPAQUE, Effects, StateFieldRef
from adk_fluent.ir._values import (
    AuthConfig,
    ContentSpec,
    History,
    ModelCandidate,
    RetryConfig,
    Strategy,
    ToolSpec,
)


@node
class ModelSelectorNode(Node):
    """Chooses an agent's model at run time (spec section 3.2).

    Attributes:
        strategy: How the choice is made.
        candidates: What may be chosen.
        budget_key: State key that mirrors the remaining budget, in USD.
        fallback_model: Used when the budget is exhausted: its name, or a reference to a BaseLlm.
        judge: ``judge(reply) -> bool | score`` of ``adaptive``, sync or async: whether an answer
            will do, or how good it is, from 0 to 1; from 0.5 on it will do.
    """

    layer: ClassVar[str] = "cost"

    strategy: Strategy = "cost_optimized"
    candidates: tuple[ModelCandidate, ...] = ()
    budget_key: str | None = None
    fallback_model: str | Ref | None = None
    judge: Ref | None = None


@node
class AgentNode(Node):
    """A model with an instruction and tools; becomes ADK's LlmAgent.

    Only what the user set is stored: None and () mean "not set" for every field that ADK has too.

    Attributes:
        model: Model name, or a reference to a BaseLlm.
        selector: Chooses the model instead.
        instruction: Text with ``{key}`` placeholders, or a callable that gives it.
        static_instruction: Instruction that never changes (for context caching); text or Content.
        tools: What the model may call.
        agent_tools: Agents the model may call as tools.
        delegates: Agents the model may transfer to (ADK's sub_agents).
        callbacks: One of `CALLBACKS` (``before_model``) to functions, in order of call.
        reads_keys: State keys it reads; placeholders of the instruction included.
        writes_keys: State keys its answer is written to.
        tool_writes: State keys its tools write.
        produces_type: Schema its answer fulfils, as a contract.
        consumes_type: Schema of the state it needs, as a contract.
        input_schema: Schema of its input when another agent calls it as a tool.
        output_schema: Schema its answer must have.
        history: What of the conversation it sees.
        content: Kinds of content it takes and gives.
        mock: Stands in for the model in tests: a reply, replies in order, or a callable.
        settings: Other fields of ADK's LlmAgent, as (field, value), sorted by field.
        output_retries: How often its model is asked again when its answer does not fit the schema.
        model_source: The builder that gave it its model; None when it names one itself.
    """

    model: str | Ref | None = None
    selector: ModelSelectorNode | None = child(default=None)
    instruction: str | Ref | None = None
    static_instruction: str | Ref | None = None
    tools: tuple[ToolSpec, ...] = ()
    agent_tools: tuple[Node, ...] = child(default=())
    delegates: tuple[Node, ...] = child(default=())
    callbacks: tuple[tuple[str, tuple[Ref, ...]], ...] = ()
    reads_keys: tuple[StateFieldRef, ...] = ()
    writes_keys: tuple[StateFieldRef, ...] = ()
    tool_writes: tuple[StateFieldRef, ...] = ()
    produces_type: Ref | None = None
    consumes_type: Ref | None = None
    input_schema: Ref | None = None
    output_schema: Ref | None = None
    history: History = "transcript"
    content: ContentSpec | None = None
    mock: Ref | None = None
    settings: tuple[tuple[str, Any], ...] = ()
    output_retries: int = 0
    model_source: str | None = field(default=None, kw_only=True, compare=False)


@node
class FunctionNode(Node):
    """A function over state; what it returns is merged into state.

    Attributes:
        fn: ``fn(state) -> mapping or None``, sync or async; the mapping it gets is read-only.
        effects: What it reads and writes.
    """

    fn: Ref
    effects: Effects = OPAQUE


@node
class TransformNode(Node):
    """A state transform with stated meaning (`S`).

    Attributes:
        fn: ``fn(state) -> mapping``; None where `affected_keys` says everything.
        semantics: ``merge`` writes what `fn` returns; ``replace_session`` also sets every other key
            of `scope` to None; ``delete_keys`` sets `affected_keys` to None.
        scope: ``session`` leaves keys of the app, the user and the run alone, ``all`` does not.
        affected_keys: ``merge``: the keys it may write, where they are known; ``replace_session``:
            the keys that stay as they are; ``delete_keys``: the keys that go.
        effects: What it reads and writes.
    """

    fn: Ref | None = None
    semantics: Literal["merge", "replace_session", "delete_keys"] = "merge"
    scope: Literal["session", "all"] = "session"
    affected_keys: tuple[str, ...] | None = None
    effects: Effects = OPAQUE


@node
class TapNode(Node):
    """Looks at state and changes nothing.

    Attributes:
        fn: ``fn(state) -> None``, sync or async.
        effects: What it reads; a tap writes nothing.
    """

    fn: Ref
    effects: Effects = Effects(opaque=True)


@node
class AdkAgentNode(Node):
    """An ADK agent somebody built by hand.

    Attributes:
        agent: The agent; it is copied at compile, never changed.
    """

    agent: Ref


@node
class RemoteAgentNode(Node):
    """An agent behind the A2A protocol (spec section 4).

    Attributes:
        endpoint: URL of the agent, or of its card.
        capabilities: Skills it must offer.
        input_schema: Schema of what is sent.
        output_schema: Schema of what comes back.
        auth: How to authenticate.
        timeout_seconds: Seconds one task may take, with all its tries.
        retry: When a failed request is sent again; None is never.
        reads_keys: State keys sent along.
        writes_keys: State keys its answer is written to.
        content: Kinds of content it takes and gives.
        idempotent: The agent may be asked the same twice.
        history: What of the conversation is sent: ``input`` the previous step's output, else the
            user's message; ``transcript`` everything since its last answer; ``none`` nothing.
        card: Its agent card as JSON; None is fetched from the endpoint.
        card_ttl_seconds: Seconds a fetched card is used before it is fetched again.
        card_verifier: ``fn(card)``, which raises if a card's signatures cannot be trusted.
        fallback: Runs when it failed.
    """

    layer: ClassVar[str] = "a2a"

    endpoint: str
    capabilities: tuple[str, ...] = ()
    input_schema: Ref | None = None
    output_schema: Ref | None = None
    auth: AuthConfig | None = None
    timeout_seconds: float = 30.0
    retry: RetryConfig | None = None
    reads_keys: tuple[StateFieldRef, ...] = ()
    writes_keys: tuple[StateFieldRef, ...] = ()
    content: ContentSpec | None = None
    idempotent: bool = False
    history: Literal["input", "transcript", "none"] = "input"
    card: str | None = None
    card_ttl_seconds: float = 300.0
    card_verifier: Ref | None = None
    fallback: Node | None = child(default=None)
