"""Tools of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from adk_fluent._words import describe
from adk_fluent.builders._operands import Operand, is_adk, refuse_generator
from adk_fluent.builders._state_parameters import refuse_state_parameter
from adk_fluent.errors import BuildError, UsageError
from adk_fluent.ir import Node, Ref, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Iterable


def as_tool(tool: object, require_confirmation: object) -> ToolSpec:
    """A tool as the IR holds it.

    Raises:
        UsageError: It is none, or takes no such `require_confirmation`.
    """
    if isinstance(tool, Ref):
        ref = tool
    elif is_toolset(tool) or is_adk(tool, "tools.base_tool", "BaseTool"):
        ref = Ref.to(tool)
        if require_confirmation:
            raise UsageError(
                ".tool(..., require_confirmation=...) is for functions",
                found=describe(tool),
                help="say so where the ADK tool is made",
            )
    elif callable(tool) and not isinstance(tool, type):
        ref = Ref.to(tool)
        named = hasattr(tool, "__name__")  # ADK calls what has none after its class
        if not named or not ref.name.isidentifier():
            raise UsageError(
                "a tool needs a name that the model can call",
                found=ref.name if named else describe(tool),
                help="write it with def; its docstring tells the model what it does",
            )
        refuse_generator(tool, "a tool", help="return the whole result; do not yield")
        refuse_state_parameter(tool)
    else:
        raise UsageError(
            ".tool(...) takes a function, an ADK tool or a toolset",
            found=describe(tool),
            help=_advice(tool),
        )
    if isinstance(require_confirmation, bool):
        return ToolSpec(ref, require_confirmation)
    if not callable(require_confirmation) or isinstance(require_confirmation, type):
        raise UsageError(
            ".tool(..., require_confirmation=...) takes True, False or a function",
            found=describe(require_confirmation),
            help="the function gets the call's arguments and says whether a person must confirm",
        )
    return ToolSpec(ref, Ref.to(require_confirmation))


def is_toolset(tool: object) -> bool:
    """Whether a tool is a toolset, which has no name that a model sees."""
    return is_adk(tool, "tools.base_toolset", "BaseToolset")


def check_toolset(toolset: ToolSpec, agent: str, tools: Iterable[ToolSpec]) -> None:
    """Refuse the same toolset twice.

    Raises:
        BuildError: It is there already.
    """
    if any(spec.tool.value is toolset.tool.value for spec in tools):
        _refuse_second(f"this very {type(toolset.tool.value).__name__}", agent)


def check_tool_name(
    name: str, agent: str, tools: Iterable[ToolSpec], agents: Iterable[Node]
) -> None:
    """Refuse a second tool of the same name: a model could not choose.

    Raises:
        BuildError: There is one already.
    """
    taken = {spec.name for spec in tools if not is_toolset(spec.tool.value)}
    taken.update(node.name for node in agents)
    if name in taken:
        _refuse_second(f"a tool called {name!r}", agent)


def _refuse_second(what: str, agent: str) -> NoReturn:
    raise BuildError(
        f"agent {agent!r} has {what} already",
        help="leave one of them out, or give it another name",
    )


def _advice(tool: object) -> str:
    if isinstance(tool, Operand | Node) or is_adk(tool, "agents.base_agent", "BaseAgent"):
        return "an agent that the model may call goes to .agent_tool(...)"
    if isinstance(tool, type):
        return f"make one of it first: {tool.__name__}(...)"
    if isinstance(tool, list | tuple):
        return "call .tool(...) once for each"
    return "pass the function itself; its name, signature and docstring are what the model sees"
