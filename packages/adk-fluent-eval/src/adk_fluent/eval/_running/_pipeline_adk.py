"""Ways through a pipeline: its steps, its agents, their tools and models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool

from adk_fluent.errors import AdkFluentError
from adk_fluent.ir import Node, ResourceNode, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def steps(root: Node) -> Iterator[Node]:
    """The nodes of a pipeline of adk-fluent, without its resources."""
    return (each for each in walk(root) if not isinstance(each, ResourceNode))


def tree(root: Any, *, of_tools: bool = True) -> Iterator[Any]:
    """Agents and steps at and below one, those of graphs and, if asked for, of tools included."""
    todo, seen = [root], set[int]()
    while todo:
        here = todo.pop(0)
        if id(here) in seen or not hasattr(here, "name") or here.name.startswith("__"):
            continue  # such as the start of a graph
        seen.add(id(here))
        yield here
        todo += getattr(here, "sub_agents", None) or ()
        if of_tools:
            todo += (t.agent for t in tools_of(here) if isinstance(t, AgentTool))
        graph = getattr(here, "graph", None)
        todo += getattr(graph, "nodes", None) or ()


def tools_of(agent: Any) -> list[Any]:
    """The tools of an agent; none of anything else."""
    return list(getattr(agent, "tools", None) or ()) if isinstance(agent, LlmAgent) else []


def hidden(agents: Iterable[Any]) -> Iterator[str]:
    """The agents inside of tools that run without the plugins of whatever calls them."""
    for agent in agents:
        for tool in tools_of(agent):
            if isinstance(tool, AgentTool) and not tool.include_plugins:
                yield from (each.name for each in tree(tool.agent))


def tool_name(tool: Any) -> str | None:
    """A tool's name; None for a toolset, whose tools are known when it runs."""
    if isinstance(tool, BaseTool):
        return tool.name
    return getattr(tool, "__name__", None) if callable(tool) else None


def model_name(agent: LlmAgent) -> str:
    """The name of an agent's model; empty if nobody can tell."""
    model = agent.model
    if isinstance(model, BaseLlm):
        return model.model
    try:
        return model or agent.canonical_model.model
    except (AdkFluentError, ValueError, AttributeError):
        return ""
