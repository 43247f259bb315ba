"""Agents written as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from adk_fluent._words import describe
from adk_fluent.builders._agent import Agent, Preset
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from adk_fluent.builders._preset_settings import PresetSettings
    from adk_fluent.builders._types import AgentFunction


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
