"""Value types of the IR: data that nodes carry and layers give meaning to.

What is annotated as `Sequence` holds a tuple, what is annotated as `Collection` a frozenset; see
`record`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, cast, get_args

from adk_fluent.ir._record import field, record
from adk_fluent.ir._ref import Ref

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from google.adk.models import BaseLlm

    ModelLike: TypeAlias = "str | BaseLlm | Ref"

#: In what pieces an edge hands text on: all of it, chunks, or tokens.
Buffering = Literal["full", "chunked", "token"]
#: What state may hold where it crosses a boundary: JSON, or what a codec carries, too.
Serialization = Literal["json", "msgpack", "protobuf", "arrow"]
#: How the streams of several children become one.
Merge = Literal["wait_all", "first_complete", "interleave"]
#: What an item that fails does to its map: end it, leave an error, or leave nothing.
OnError = Literal["raise", "collect", "skip"]
#: What of the conversation an agent sees, beside its own model and tool turns.
History = Literal["transcript", "own", "input", "none"]
#: How a model is chosen at run time.
Strategy = Literal["cost_optimized", "quality_optimized", "budget_bounded", "adaptive"]
Operator = Literal["eq", "ne", "contains", "contains_case", "gt", "lt"]
#: How long a resource lives.
ResourceScope = Literal["app", "session", "invocation"]
#: Every `History`.
HISTORIES: Final[tuple[History, ...]] = get_args(History)
#: Every `Buffering`.
BUFFERINGS: Final[tuple[Buffering, ...]] = get_args(Buffering)
#: Every `Serialization`.
SERIALIZATIONS: Final[tuple[Serialization, ...]] = get_args(Serialization)
#: Every `Strategy`.
STRATEGIES: Final[tuple[Strategy, ...]] = get_args(Strategy)
#: Every `ResourceScope`.
RESOURCE_SCOPES: Final[tuple[ResourceScope, ...]] = get_args(ResourceScope)


_SIGNS: Final[dict[Operator, str]] = {
    "eq": "==",
    "ne": "!=",
    "contains": "contains",
    "contains_case": "contains exactly",
    "gt": ">",
    "lt": "<",
}


# --- predicates --------------------------------------------------------------------------------


@record
class Match:
    """A comparison of one state key with a constant: a predicate that can be read and printed.

    Attributes:
        operator: ``eq``, ``ne``, ``contains`` (the constant occurs in the value, in any letter
            case), ``contains_case`` (in the very same), ``gt``, ``lt``.
        key: The state key that is read.
        value: The constant; a scalar.
    """

    operator: Operator
    key: str
    value: Any

    def __str__(self) -> str:
        return f"{self.key} {_SIGNS[self.operator]} {self.value!r}"


#: A test over state: a comparison, or a callable that takes the state mapping.
Predicate = Match | Ref


# --- streaming (spec section 2) ----------------------------------------------------------------


@record
class EdgeSemantics:
    """How output flows from a step to the one after it.

    Attributes:
        buffering: ``full`` waits for the whole output, ``chunked`` hands it on in pieces of
            `chunk_size` tokens, ``token`` as it comes.
        backpressure: The producer waits while the consumer is busy.
        chunk_size: Tokens per piece; for ``chunked`` only.
        merge: How several producers meet.
    """

    buffering: Buffering = "full"
    backpressure: bool = False
    chunk_size: int | None = None
    merge: Merge = "wait_all"


# --- models and cost (spec section 3) ----------------------------------------------------------


def _settings(value: Any, depth: int = 0) -> Any:
    if depth > 50:  # deeper than a file can be; it may contain itself
        return value
    if isinstance(value, Mapping):
        rows = cast("Mapping[Any, Any]", value)
        return {key: _settings(each, depth + 1) for key, each in rows.items()}
    if type(value) in (list, tuple):
        return [_settings(each, depth + 1) for each in value]
    return value


@record
class MiddlewareRef:
    """A middleware by name, with its settings: what files hold instead of an object.

    Attributes:
        name: The name it is registered under, such as ``"retry"``.
        config: Its settings: text, numbers, lists and mappings of those. They are copied, and
            tuples in them are lists, as they are in files.
    """

    name: str
    config: Mapping[str, Any] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        """Copy the settings, with lists in the place of tuples."""
        if isinstance(self.config, Mapping):
            object.__setattr__(self, "config", _settings(self.config))


@record
class ModelCandidate:
    """A model that a selector may choose, and what it costs where no price book is to say that.

    ::

        ModelCandidate("gemini-2.5-flash", quality_tier=1)
        ModelCandidate(LiteLlm("openai/gpt-5"), prices={"input": 1.25, "output": 10})

    Attributes:
        model: Model name, or a reference to a BaseLlm; an instance is made one.
        cost_per_1k_input: USD per 1 000 prompt tokens; `prices` is the better way to say it.
        cost_per_1k_output: USD per 1 000 output tokens.
        quality_tier: Higher is better.
        max_tokens: The largest prompt it takes, in tokens.
        condition: ``condition(ctx, request) -> bool``, sync or async: whether it may be chosen for
            this call. It is given ADK's Context and LlmRequest.
        prices: USD per million tokens by kind, such as ``{"input": 0.3, "output": 2.5, "cached":
            0.03}``; kept as pairs, sorted. Empty is what `cost_per_1k_input` and
            `cost_per_1k_output` say, or else a price book.
    """

    model: str | Ref
    cost_per_1k_input: float | None = None
    cost_per_1k_output: float | None = None
    quality_tier: int = 0
    max_tokens: int | None = None
    condition: Ref | None = None
    prices: tuple[tuple[str, float], ...] = field(default=(), kw_only=True)

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0917  # the spec's order
            self,
            model: ModelLike,
            cost_per_1k_input: float | None = None,
            cost_per_1k_output: float | None = None,
            quality_tier: int = 0,
            max_tokens: int | None = None,
            condition: Callable[[Any, Any], bool | Awaitable[bool]] | Ref | None = None,
            *,
            prices: Mapping[str, float] | tuple[tuple[str, float], ...] = (),
        ) -> None: ...

    def __post_init__(self) -> None:
        """Make references of live objects, and sorted pairs of the prices."""
        model, condition, prices = cast(
            "tuple[Any, Any, Any]", (self.model, self.condition, self.prices)
        )
        if not isinstance(model, str | Ref | type) and hasattr(model, "generate_content_async"):
            object.__setattr__(self, "model", model_ref(model))
        if not isinstance(condition, Ref) and callable(condition):
            object.__setattr__(self, "condition", Ref.to(condition))
        if isinstance(prices, Mapping):
            rows = cast("Mapping[str, float]", prices)
            object.__setattr__(self, "prices", tuple(sorted(rows.items(), key=str)))

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model if isinstance(self.model, str) else self.model.name


def model_ref(model: Any) -> Ref:
    """A reference to a model of ADK's, named as the model is."""
    name = getattr(model, "model", "")
    return Ref(model, name if isinstance(name, str) and name else type(model).__name__)


# --- remote agents (spec section 4) ------------------------------------------------------------


@record
class AuthConfig:
    """How a remote agent is authenticated to; the secret stays outside the IR.

    Attributes:
        scheme: ``none``, ``bearer``, ``api_key`` or ``oauth2``.
        secret_env: Environment variable that holds the secret.
        header: Header that carries it.
        scopes: OAuth scopes.
        token_url: OAuth token endpoint.
    """

    scheme: Literal["none", "bearer", "api_key", "oauth2"] = "none"
    secret_env: str | None = None
    header: str = "Authorization"
    scopes: Sequence[str] = ()
    token_url: str | None = None


@record
class RetryConfig:
    """When and how often a call is tried again.

    Attributes:
        max_attempts: Tries in all, the first included.
        initial_delay: Seconds before the second try.
        max_delay: Seconds no delay exceeds.
        backoff_factor: What each delay is multiplied by.
        jitter: Share of each delay that is random, from 0 to 1.
    """

    max_attempts: int = 3
    initial_delay: float = 1.0
    max_delay: float = 60.0
    backoff_factor: float = 2.0
    jitter: float = 0.2


# --- content (spec section 7) ------------------------------------------------------------------


class Modality(Enum):
    """A kind of content."""

    TEXT = "text"
    IMAGE = "image"
    AUDIO = "audio"
    VIDEO = "video"
    PDF = "pdf"
    STRUCTURED = "structured"
    CODE = "code"

    def __repr__(self) -> str:
        return f"Modality.{self.name}"


_TEXT: Final = frozenset({Modality.TEXT})


@record
class ContentSpec:
    """What an agent takes and gives.

    Attributes:
        input_modalities: Kinds of content it accepts.
        output_modalities: Kinds of content it produces.
        max_input_tokens: Largest prompt, in tokens.
        max_output_tokens: Largest answer, in tokens.
    """

    input_modalities: Collection[Modality] = _TEXT
    output_modalities: Collection[Modality] = _TEXT
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None


# --- distribution (spec section 9) -------------------------------------------------------------


@record
class TransportConfig:
    """What carries state and messages over an execution boundary.

    Attributes:
        type: ``queue``, ``http`` or ``local``.
        endpoint: Where, in the transport's own notation.
        timeout_seconds: How long a hand-over may take.
        auth: How to authenticate there.
    """

    type: Literal["queue", "http", "local"] = "local"
    endpoint: str | None = None
    timeout_seconds: float | None = None
    auth: AuthConfig | None = None


@record
class ScalingConfig:
    """How many workers serve a segment.

    Attributes:
        min_instances: Workers kept alive.
        max_instances: Workers at most.
        concurrency: Runs one worker takes at a time.
    """

    min_instances: int = 0
    max_instances: int = 1
    concurrency: int = 1


@record
class ExecutionBoundary:
    """This part of the pipeline may run elsewhere.

    With isolation, a transport or scaling it must: a backend that does not see to that refuses to
    compile it. The plain one and ``TransportConfig("local")`` hold in any process.

    Attributes:
        serialization: What state may hold where it is crossed: JSON, or what a codec carries, too.
        transport: What carries it.
        isolation: What separates it from the rest.
        scaling: How many workers serve it.
    """

    #: The layer that runs it.
    layer: ClassVar[str] = "distributed"

    serialization: Serialization = "json"
    transport: TransportConfig | None = None
    isolation: Literal["none", "process", "container"] = "none"
    scaling: ScalingConfig | None = None

    @property
    def beyond_process(self) -> tuple[str, ...]:
        """What it asks for that one process is not; empty if all of it may run in this one."""
        asked: list[str] = []
        if self.isolation != "none":
            asked.append(f"isolation={self.isolation!r}")
        if self.transport not in (None, TransportConfig()):
            asked.append(f"transport={self.transport.type!r}")
        if self.scaling is not None:
            asked.append("scaling")
        return tuple(asked)


# --- tools -------------------------------------------------------------------------------------


@record
class ToolSpec:
    """A tool of an agent.

    Attributes:
        tool: The function, ADK tool or toolset.
        require_confirmation: A person confirms each call; or a predicate over the call's arguments.
    """

    tool: Ref
    require_confirmation: bool | Ref = False

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name


# --- run configuration (`adk_fluent.config`) ---------------------------------------------------


@record
class CompactionConfig:
    """When ADK summarises old events of a session.

    Attributes:
        interval: Invocations between two summaries.
        overlap: Invocations a summary shares with the one before it.
        token_threshold: Prompt tokens above which the tail is summarised at once.
        event_retention_size: Events kept as they are when that happens.
    """

    interval: int = 10
    overlap: int = 2
    token_threshold: int | None = None
    event_retention_size: int | None = None


@record
class TelemetryConfig:
    """What is traced and where it goes (spec section 5.6).

    Attributes:
        trace_to_cloud: Export to Cloud Trace.
        capture_content: Record prompts and answers.
        custom_exporters: OpenTelemetry span exporters.
        enable_cost_metrics: Emit ``adk_fluent.llm.cost``.
    """

    #: The layer that heeds it.
    layer: ClassVar[str] = "middleware"

    trace_to_cloud: bool = False
    capture_content: bool = False
    custom_exporters: Sequence[Any] = ()
    enable_cost_metrics: bool = False


@record
class ExecutionConfig:
    """How a pipeline runs; the same in every way of running it.

    Attributes:
        app_name: ADK's App name.
        max_llm_calls: Model calls of one run, at most; 0 or less is no limit.
        timeout_seconds: Seconds one run may take.
        streaming_mode: ``none``, ``sse`` (partial events) or ``bidi`` (live).
        resumable: A run that was killed can continue.
        compaction: Summarise old events.
        custom_metadata: Copied onto every event.
        middlewares: Outermost first.
        telemetry: Tracing and metrics.
        default_model: For agents that name no model and stand in no builder that does.
        target: ``agents`` (a flow root over ADK agents) or ``workflow`` (ADK 2's own graph).
        contracts: What becomes of a pipeline that is proven wrong before it runs: ``error`` does
            not compile it, ``warn`` logs what was found, ``off`` does not look.
    """

    app_name: str = "adk_fluent_app"
    max_llm_calls: int = 500
    timeout_seconds: float | None = None
    streaming_mode: Literal["none", "sse", "bidi"] = "none"
    resumable: bool = False
    compaction: CompactionConfig | None = None
    custom_metadata: Mapping[str, Any] | None = field(default=None, hash=False)
    middlewares: Sequence[Any] = ()
    telemetry: TelemetryConfig | None = None
    default_model: str | Ref | None = None
    target: Literal["agents", "workflow"] = "agents"
    contracts: Literal["error", "warn", "off"] = "error"
