"""Agents: what the model is told and what it may call."""

from __future__ import annotations

import re
from inspect import CO_VARARGS, CO_VARKEYWORDS
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._answer_keys import check_answer
from adk_fluent._tool_parameters import untellable
from adk_fluent.contracts._reports._diagnostic import Related, Severity
from adk_fluent.contracts._reports._issues import (
    DuplicateTool,
    InertPlaceholder,
    UnreadableAnswer,
    UntellableParameter,
)
from adk_fluent.contracts._structure._functions import resource_names
from adk_fluent.errors import UsageError
from adk_fluent.ir import AgentNode, RemoteAgentNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import ToolSpec

#: What ADK looks at (google.adk.utils.instructions_utils), narrowed to what reads as a name and is
#: not escaped: `{"json": 1}` and `${shell}` are meant as they stand.
_PLACEHOLDER: Final = re.compile(r"(?<![$\\{])\{ *([A-Za-z_]\w*(?:[-.:]\w+)*)\?? *\}")
_SCOPES: Final = ("app:", "user:", "temp:")
_VARIABLE: Final = CO_VARARGS | CO_VARKEYWORDS
#: How ADK tells models of a function; a tool that does it another way is left alone.
_DECLARED: Final = ("FunctionTool._get_declaration", "LongRunningFunctionTool._get_declaration")


def check_tools(graph: Graph) -> Iterator[Diagnostic]:
    """The tools of an agent, agents among them, have different names."""
    for agent in graph.of(AgentNode):
        if len(agent.tools) + len(agent.agent_tools) < 2:
            continue
        names = [name for tool in agent.tools if (name := _tool_name(tool)) is not None]
        count: dict[str, int] = {}
        for name in (*names, *(node.name for node in agent.agent_tools)):
            count[name] = count.get(name, 0) + 1
        for name in (name for name, times in count.items() if times > 1):
            agents = [node for node in agent.agent_tools if node.name == name]
            yield DuplicateTool.at(
                graph,
                agent,
                f"`{agent.name}` has {count[name]} tools called `{name}`",
                related=[Related.at(node, "one is this agent") for node in agents[:2]],
                help="models refuse two tools of one name: remove or rename one",
            )


def _tool_name(tool: ToolSpec) -> str | None:
    """The name the model will see, or None for a toolset: nobody knows its names before it runs."""
    return None if hasattr(tool.tool.value, "get_tools") else tool.name


def check_tool_parameters(graph: Graph) -> Iterator[Diagnostic]:
    """Models can be told of every parameter of a tool's function."""
    hidden = resource_names(graph.root)
    for agent in graph.of(AgentNode):
        for tool in agent.tools:
            value: Any = tool.tool.value
            declares = getattr(cast("type[Any]", type(value)), "_get_declaration", None)
            own = getattr(declares, "__qualname__", "") in _DECLARED
            function = value.func if own else value
            code = getattr(function, "__code__", None)
            if code is None:
                continue
            for name, kind in untellable(function, hidden):
                yield UntellableParameter.at(
                    graph,
                    agent,
                    f"no model can be told of `{name}` of the tool `{tool.name}` of "
                    f"`{agent.name}`: it is a {kind.__name__}",
                    help=f"take plain data, a dataclass or a pydantic model; a resource comes by "
                    f".inject({name}=...)",
                )
            if code.co_flags & _VARIABLE and not hasattr(function, "__wrapped__"):
                yield UntellableParameter.at(
                    graph,
                    agent,
                    f"no model is told of the parameters of the tool `{tool.name}` of "
                    f"`{agent.name}` that have a `*`",
                    severity=Severity.WARNING,
                    help="name each parameter",
                )


def check_placeholders(graph: Graph) -> Iterator[Diagnostic]:
    """What looks like a placeholder is one that ADK fills in."""
    for agent in graph.of(AgentNode):
        for text, filled in ((agent.instruction, True), (agent.static_instruction, False)):
            if not isinstance(text, str) or "{" not in text:
                continue
            if filled and all(map(_fills, _PLACEHOLDER.findall(text))):
                continue
            inert = [m[0] for m in _PLACEHOLDER.finditer(text) if not (filled and _fills(m[1]))]
            if inert:
                yield InertPlaceholder.at(
                    graph,
                    agent,
                    f"`{inert[0]}` in the instruction of `{agent.name}` "
                    "reaches the model as it stands",
                    help=(
                        "ADK fills in `{key}`, `{key?}`, `{user:key}`, `{app:key}`, `{temp:key}` "
                        "and `{artifact.name}`"
                        if filled
                        else "ADK fills in nothing in a static instruction: use .instruct(...)"
                    ),
                )


def _fills(name: str) -> bool:
    if name.isidentifier() or name.startswith("artifact."):
        return True
    for scope in _SCOPES:
        if name.startswith(scope):
            return name.removeprefix(scope).isidentifier()
    return False


def check_answers(graph: Graph) -> Iterator[Diagnostic]:
    """The answer of an agent has what the agent writes; compiling refuses it otherwise."""
    for agent in (*graph.of(AgentNode), *graph.of(RemoteAgentNode)):
        try:
            check_answer(agent)
        except UsageError as error:
            said = error.what if error.found is None else f"{error.what}: {error.found}"
            yield UnreadableAnswer.at(graph, agent, said, help=error.help)


def needed_artifacts(agent: AgentNode) -> list[str]:
    """The artifacts that an instruction is filled with, and without which ADK raises."""
    text = agent.instruction
    if not isinstance(text, str) or "artifact." not in text:
        return []
    found = (match for match in _PLACEHOLDER.finditer(text) if "?" not in match[0])
    return [match[1].removeprefix("artifact.") for match in found if "artifact." in match[1]]
