"""The agent builder, and settings that several agents share."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast, overload

from adk_fluent._arguments import one_of
from adk_fluent._template import placeholders
from adk_fluent._words import describe
from adk_fluent.builders._adk_setters import CHECKS, AdkSetters
from adk_fluent.builders._capabilities import Capabilities
from adk_fluent.builders._configure import advice, as_settings
from adk_fluent.builders._flow import Builder
from adk_fluent.builders._keys import as_keys, merged
from adk_fluent.builders._models import as_model
from adk_fluent.builders._names import checked_name
from adk_fluent.builders._operands import as_agent, passengers, some
from adk_fluent.builders._settings import (
    as_callbacks,
    as_instruction,
    as_mock,
    as_schema,
    as_static_instruction,
)
from adk_fluent.builders._synonyms import METHODS
from adk_fluent.builders._tools import as_tool, check_tool_name, check_toolset, is_toolset
from adk_fluent.builders._types import Out_co, Value
from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.ir import (
    HISTORIES,
    UNSET,
    AgentNode,
    ContentSpec,
    History,
    ModelSelectorNode,
    Node,
    Ref,
    StateFieldRef,
    ToolSpec,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import UnionType
    from typing import (
        Self,
        Unpack,
        _SpecialForm,  # pyright: ignore[reportPrivateUsage]  # what Literal["a"] is to mypy
    )

    from google.genai.types import Content, Part
    from typing_extensions import TypeForm

    from adk_fluent.builders._base import AgentLike
    from adk_fluent.builders._preset_settings import PresetSettings
    from adk_fluent.builders._types import (
        Callbacks,
        InstructionProvider,
        KeyLike,
        MockReplies,
        ModelLike,
        Schema,
        ToolLike,
        Via,
    )

#: Setters that take several values at once; a list means all of them.
_SEVERAL: Final = frozenset(
    {
        *("agent_tool", "delegates", "sub_agents", "reads", "writes", "outputs"),
        *("accepts", "allow", "produces_modality"),
    }
)
#: What is no setting of one value: it copies, renames or takes its arguments by name.
_NONE: Final = frozenset(
    {
        *("named", "clone", "with_", "use", "middleware"),
        *("configure", "contract", "inject", "model_select", "execution_boundary"),
    }
)


class _Fields(TypedDict, total=False):
    """Fields of `AgentNode` that are kept as they are set."""

    instruction: str | Ref
    static_instruction: str | Ref
    tools: tuple[ToolSpec, ...]
    agent_tools: tuple[Node, ...]
    delegates: tuple[Node, ...]
    reads_keys: tuple[StateFieldRef, ...]
    writes_keys: tuple[StateFieldRef, ...]
    tool_writes: tuple[StateFieldRef, ...]
    input_schema: Ref
    output_schema: Ref
    output_retries: int
    history: History
    mock: Ref
    selector: ModelSelectorNode
    content: ContentSpec
    produces_type: Ref
    consumes_type: Ref


class Agent(AdkSetters, Capabilities, Builder[Out_co]):
    """A model with an instruction and tools; becomes ADK's LlmAgent.

    Example:
        >>> from adk_fluent import Agent
        >>> Agent("triage", "gemini-2.5-flash").instruct("Classify: {ticket}").writes("intent")
        <Agent 'triage'>

    Args:
        name: Its name, an identifier; unique among the agents of a pipeline.
        model: A model name or an ADK model. Without one it gets the enclosing builder's, then
            ``config.default_model``, then ADK's default.
    """

    __slots__ = ("_callbacks", "_fields", "_settings")
    _kind = "agent"

    def __init__(self, name: str, model: ModelLike | None = None) -> None:
        super().__init__(checked_name(name, "Agent"))
        self._fields: _Fields = {}
        self._callbacks: dict[str, tuple[Ref, ...]] = {}
        self._settings: dict[str, Any] = {}
        if model is not None:
            self._model = as_model(model)

    # --- what it is told -----------------------------------------------------------------------

    def instruct(self, text: str | InstructionProvider) -> Self:
        """Set the instruction.

        Args:
            text: Text in which ADK replaces ``{key}`` by that key of state (``{key?}`` may be
                absent), or a function, sync or async, that gets ADK's ReadonlyContext and returns
                text.
        """
        self._fields["instruction"] = as_instruction(text)
        return self._changed()

    def static_instruct(self, content: str | Content | Part) -> Self:
        """Set the instruction that never changes; ADK sends it first, so that it can be cached."""
        self._fields["static_instruction"] = as_static_instruction(content)
        return self._changed()

    def history(self, mode: History) -> Self:
        """Set what of the conversation it sees; its own model and tool turns it always does.

        Args:
            mode: ``transcript`` is everything, ``own`` the user's turns and its own, ``input`` the
                output of the step before, ``none`` the instruction only.
        """
        self._fields["history"] = one_of(mode, HISTORIES, ".history(...)")
        return self._changed()

    # --- what it may call ----------------------------------------------------------------------

    def tool(
        self,
        tool: ToolLike,
        *,
        require_confirmation: bool | Callable[..., bool | Awaitable[bool]] = False,
    ) -> Self:
        """Add a tool.

        Args:
            tool: A function, sync or async, whose name, signature and docstring the model sees; an
                ADK tool; or a toolset.
            require_confirmation: A person confirms each call; or a function of the call's
                arguments, sync or async, that says whether one must.
        """
        spec = as_tool(tool, require_confirmation)
        tools, agents = self._fields.get("tools", ()), self._fields.get("agent_tools", ())
        if is_toolset(spec.tool.value):
            check_toolset(spec, self.name, tools)
        else:
            check_tool_name(spec.name, self.name, tools, agents)
        self._fields["tools"] = (*tools, spec)
        return self._changed()

    def agent_tool(self, *agents: AgentLike) -> Self:
        """Let the model call agents as if they were tools, each in a session of its own."""
        tools, known = self._fields.get("tools", ()), self._fields.get("agent_tools", ())
        for agent in some(agents, ".agent_tool(...)", "an agent"):
            node = as_agent(agent, ".agent_tool(...)")
            check_tool_name(node.name, self.name, tools, known)
            known = (*known, node)
        self._fields["agent_tools"] = known
        return self._board(passengers(*agents))

    def delegates(self, *agents: AgentLike) -> Self:
        """Let the model hand the conversation over to agents (ADK's ``sub_agents``)."""
        some(agents, ".delegates(...)", "an agent")
        added = tuple(as_agent(agent, ".delegates(...)") for agent in agents)
        self._fields["delegates"] = self._fields.get("delegates", ()) + added
        return self._board(passengers(*agents))

    def sub_agents(self, *agents: AgentLike) -> Self:
        """The same as `delegates`, by ADK's word for it."""
        return self.delegates(*agents)

    # --- state ---------------------------------------------------------------------------------

    def reads(self, *keys: KeyLike) -> Self:
        """Declare state keys it reads beyond the placeholders of its instruction."""
        refs = as_keys(keys, ".reads(...)")
        self._fields["reads_keys"] = merged(self._fields.get("reads_keys", ()), refs)
        return self._changed()

    def writes(self, *keys: KeyLike, via: Via = "answer") -> Self:
        """Declare state keys it writes.

        Args:
            *keys: Keys such as ``"intent"`` or ``"user:tier"``, or fields of a StateSchema. One
                str is ADK's ``output_key``: the answer's text is written there. Several, or one of
                another type, make the answer a JSON object: each gets the field of its name.
            via: ``answer`` writes its answer there, ``tool`` says that one of its tools does.
        """
        refs = as_keys(keys, ".writes(...)", written=True)
        if one_of(via, ("answer", "tool"), "via") == "tool":
            self._fields["tool_writes"] = merged(self._fields.get("tool_writes", ()), refs)
        else:
            self._fields["writes_keys"] = merged(self._fields.get("writes_keys", ()), refs)
        return self._changed()

    def outputs(self, *keys: KeyLike) -> Self:
        """The same as `writes`."""
        return self.writes(*keys)

    def input_schema(self, schema: Schema) -> Self:
        """Set the type of its input when another agent calls it as a tool."""
        self._fields["input_schema"] = as_schema(schema, ".input_schema(...)")
        return self._changed()

    @overload
    def output_schema(self, schema: type[Value]) -> Agent[Value]: ...

    @overload
    def output_schema(self, schema: TypeForm[Value]) -> Agent[Value]: ...

    def output_schema(self, schema: Any) -> Agent[Any]:
        """Set the type its answer must have, mostly a pydantic model."""
        self._fields["output_schema"] = as_schema(schema, ".output_schema(...)")
        return self._changed()

    def output_retries(self, times: int) -> Self:
        """Ask its model again when an answer does not fit its type, and tell it what was wrong.

        Args:
            times: How often at most, for one answer; 0, the default, raises at once.

        Raises:
            UsageError: It is no int of 0 or more.
        """
        given: Any = times
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            raise UsageError(
                ".output_retries(...) takes an int of 0 or more",
                found=describe(given),
            )
        self._fields["output_retries"] = times
        return self._changed()

    @overload
    def __matmul__(self, schema: type[Value]) -> Agent[Value]: ...

    @overload  # type checkers do not read a type in an operand, as they do in an argument
    def __matmul__(self, schema: TypeForm[Any]) -> Agent[Any]: ...

    @overload
    def __matmul__(self, schema: UnionType | _SpecialForm) -> Agent[Any]: ...

    def __matmul__(self, schema: Any) -> Agent[Any]:
        """A copy whose answer must have a type: ``agent @ Invoice``."""
        return self._copy().output_schema(schema)

    # --- callbacks -----------------------------------------------------------------------------

    def before_agent(self, callbacks: Callbacks) -> Self:
        """Call these before the agent runs; what one returns is the answer instead."""
        return self._call("before_agent", callbacks)

    def after_agent(self, callbacks: Callbacks) -> Self:
        """Call these after the agent ran; what one returns is added to the answer."""
        return self._call("after_agent", callbacks)

    def before_model(self, callbacks: Callbacks) -> Self:
        """Call these before each model call; what one returns is the reply instead."""
        return self._call("before_model", callbacks)

    def after_model(self, callbacks: Callbacks) -> Self:
        """Call these after each model call; what one returns replaces the reply."""
        return self._call("after_model", callbacks)

    def on_model_error(self, callbacks: Callbacks) -> Self:
        """Call these when a model call fails; what one returns is the reply instead."""
        return self._call("on_model_error", callbacks)

    def before_tool(self, callbacks: Callbacks) -> Self:
        """Call these before each tool call; what one returns is the result instead."""
        return self._call("before_tool", callbacks)

    def after_tool(self, callbacks: Callbacks) -> Self:
        """Call these after each tool call; what one returns replaces the result."""
        return self._call("after_tool", callbacks)

    def on_tool_error(self, callbacks: Callbacks) -> Self:
        """Call these when a tool fails; what one returns is the result instead."""
        return self._call("on_tool_error", callbacks)

    # --- the rest ------------------------------------------------------------------------------

    def mock(self, replies: MockReplies) -> Self:
        """Let this stand in for the model, in tests: no model is called.

        Args:
            replies: One reply for every call, a list of replies in order, or a function of the
                prompt. A reply is text, or a `reply(...)`, `Call(...)` or exception of
                `adk_fluent.testing`.
        """
        self._fields["mock"] = as_mock(replies)
        return self._changed()

    def configure(self, **fields: object) -> Self:
        """Set fields of ADK's LlmAgent by their names: the same as the setters called like them.

        It also takes fields of a google-adk that is newer than this version of adk-fluent-core.
        """
        self._settings.update(as_settings(fields))
        return self._changed()

    def use(self, *presets: Preset) -> Self:
        """Take over the settings of presets, in order; later ones win."""
        for preset in some(presets, ".use(...)", "a Preset"):
            if not isinstance(preset, Preset):  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's
                raise UsageError(
                    ".use(...) takes Presets",
                    found=describe(preset),
                    help='such as Preset(model="gemini-2.5-pro", history="own")',
                )
            preset.apply(self)
        return self

    def with_(
        self,
        *,
        name: str = UNSET,
        model: ModelLike = UNSET,
        instruct: str | InstructionProvider = UNSET,
        description: str = UNSET,
        history: History = UNSET,
        output_schema: Schema | TypeForm[Any] = UNSET,
    ) -> Self:
        """A copy with some settings changed; this agent stays as it is."""
        return self._with(
            named=name,
            model=model,
            instruct=instruct,
            description=description,
            history=history,
            output_schema=output_schema,
        )

    # --- to IR ---------------------------------------------------------------------------------

    def _call(self, when: str, callbacks: Callbacks) -> Self:
        added = as_callbacks(callbacks, when)
        self._callbacks[when] = self._callbacks.get(when, ()) + added
        return self._changed()

    def _advice(self, name: str) -> str | None:
        return advice(name)

    def _encloses(self) -> bool:
        return "delegates" in self._fields or "agent_tools" in self._fields

    def _freeze(self) -> Node:
        fields = self._fields
        for text in (fields.get("instruction"), self._settings.get("global_instruction")):
            if isinstance(text, str) and "{" in text:
                reads = _templated(fields.get("reads_keys", ()), placeholders(text))
                fields = fields.copy()
                fields["reads_keys"] = reads
        return AgentNode(
            self.name,
            self._model,
            callbacks=tuple(self._callbacks.items()),
            settings=tuple(sorted(self._settings.items())) if self._settings else (),
            description=self._description,
            location=self._location,
            **fields,
        )


def _templated(
    known: tuple[StateFieldRef, ...], filled: tuple[StateFieldRef, ...]
) -> tuple[StateFieldRef, ...]:
    """All that is read; what ADK fills in must have a value, whatever default a field has."""
    needed = {ref.key for ref in filled if ref.default is UNSET}
    return merged(
        tuple(
            ref
            if ref.default is UNSET or ref.key not in needed
            else StateFieldRef(ref.key, ref.type, reducer=ref.reducer)
            for ref in known
        ),
        filled,
    )


class Preset:
    """Settings under a name of yours, for `Agent.use`.

    Example:
        >>> from adk_fluent import Agent, Preset
        >>> careful = Preset(model="gemini-2.5-pro", history="own", tool=[print])
        >>> Agent("reviewer").use(careful)
        <Agent 'reviewer'>

    Args:
        *presets: Others that it begins with.
        **settings: Setters of `Agent`, each with its value, or with a list for those that take
            several (``tool``, ``agent_tool``, ``delegates``, ``reads``, ``writes``, ``accepts``).

    Raises:
        UnknownNameError: There is no such setter.
        UsageError: A setter does not take its value.
    """

    __slots__ = ("settings",)

    def __init__(self, *presets: Preset, **settings: Unpack[PresetSettings]) -> None:
        self.settings: dict[str, Any] = {}
        for preset in presets:
            self.settings.update(_settings_of(preset))
        known = setters()
        for name in settings:
            if name not in known:
                raise UnknownNameError(
                    f"an agent has no setter {name!r}",
                    unknown=name,
                    known=known,
                )
        self.settings.update(settings)
        self.apply(Agent("preset"))  # its setters know what they take

    def __repr__(self) -> str:
        return f"<Preset {', '.join(self.settings) or 'of nothing'}>"

    def apply(self, agent: Agent) -> None:
        """Set everything on an agent."""
        for name, value in self.settings.items():
            setter = getattr(agent, name)
            if name in _SEVERAL:
                setter(*_items(value))
            elif name == "tool":
                for each in _items(value):
                    setter(each)
            else:
                setter(value)


def _items(value: Any) -> Sequence[Any]:
    return cast("Sequence[Any]", value) if isinstance(value, list | tuple) else (value,)


def setters() -> list[str]:
    """The names of setters that take one value."""
    return [
        name
        for name in dir(Agent)
        if not name.startswith("_") and name not in _NONE and _is_setter(getattr(Agent, name))
    ]


def _is_setter(method: Any) -> bool:
    hints: dict[str, Any] = getattr(method, "__annotations__", {})
    return hints.get("return") in {"Self", "Agent[Any]"} and len(hints) > 1


def _settings_of(preset: object) -> dict[str, Any]:
    if isinstance(preset, Preset):
        return preset.settings
    raise UsageError(
        "a preset is made of presets and settings",
        found=describe(preset),
        help='Preset(base, model="gemini-2.5-pro")',
    )


def _explaining(take: Callable[..., None]) -> Callable[..., None]:
    """An initialiser that says what to write for keywords that ADK's LlmAgent takes."""

    @wraps(take)
    def init(agent: Agent, name: str, model: ModelLike | None = None, **fields: object) -> None:
        for field in fields:
            raise UnknownNameError(
                f"Agent(...) takes a name and a model, and no {field!r}",
                unknown=field,
                known=("name", "model"),
                help=_instead_of(field),
            )
        take(agent, name, model)

    return init


def _instead_of(field: str) -> str | None:
    if field in CHECKS or hasattr(Agent, field):
        return f"use .{field}(...)"
    return advice(field) or METHODS.get(field)


if not TYPE_CHECKING:  # a type checker must go on refusing them
    Agent.__init__ = _explaining(Agent.__init__)
