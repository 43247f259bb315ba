"""Settings that several agents share, and agents written as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast, overload

from adk_fluent._words import describe
from adk_fluent.builders._agent import Agent
from adk_fluent.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from adk_fluent.builders._preset_settings import PresetSettings
    from adk_fluent.builders._types import AgentFunction

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
    return hints.get("return") == "Self" and len(hints) > 1


def _settings_of(preset: object) -> dict[str, Any]:
    if isinstance(preset, Preset):
        return preset.settings
    raise UsageError(
        "a preset is made of presets and settings",
        found=describe(preset),
        help='Preset(base, model="gemini-2.5-pro")',
    )


@overload
def agent(function: AgentFunction, /) -> Agent: ...
@overload
def agent(
    name: str | None = None, /, *presets: Preset, **settings: Unpack[PresetSettings]
) -> Callable[[AgentFunction], Agent]: ...
def agent(name: Any = None, /, *presets: Preset, **settings: Unpack[PresetSettings]) -> Any:
    """An agent written as a function, which gives its instruction.

    The function gets ADK's ReadonlyContext and returns the instruction, sync or async; one without
    parameters and without a body has its docstring as the instruction. The docstring of one that
    returns something describes the agent to others.

    Example:
        >>> from adk_fluent import agent
        >>> @agent(model="gemini-2.5-flash", writes="intent")
        ... def classify():
        ...     "One word: billing or other? {ticket}"
        >>> classify
        <Agent 'classify'>

    Args:
        name: Its name; None takes the function's.
        *presets: Settings it begins with.
        **settings: Setters of `Agent`, each with its value, as in `Preset`.

    Raises:
        UnknownNameError: There is no such setter.
        UsageError: It decorates what is no function, or one that gives no instruction.
    """
    if callable(name):
        return _made(name, None, Preset())
    preset = Preset(*presets, **settings)

    def decorate(function: AgentFunction) -> Agent:
        return _made(function, name, preset)

    return decorate


def _made(function: Any, name: str | None, preset: Preset) -> Agent:
    code = getattr(function, "__code__", None)
    if code is None:
        raise UsageError(
            "@agent decorates a function",
            found=describe(function),
            help="it returns the instruction, or has it as its docstring",
        )
    from inspect import cleandoc  # noqa: PLC0415  # slow to import

    made = Agent(name or function.__name__)
    text = cleandoc(function.__doc__ or "")
    if code.co_argcount or code.co_kwonlyargcount:
        made.instruct(function)
        if text:
            made.description(text)
    elif text:
        made.instruct(text)
    else:
        raise UsageError(
            f"the agent {made.name!r} has no instruction",
            help="write it as the docstring, or let the function take ADK's context and return it",
        )
    preset.apply(made)
    return made
