"""What is refused before a run: what the mock backend would otherwise do in another way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent._registry import require_layer
from adk_fluent.backends._config import check_values
from adk_fluent.backends._edges import check_edges
from adk_fluent.backends.mock._tools import agent_tools_of, delegates_of, is_flow, steps_of
from adk_fluent.errors import UnsupportedConfigError, UnsupportedNodeError
from adk_fluent.flow import RULES, check_gates, check_tool, check_transfers
from adk_fluent.ir import AgentNode, AppNode, GateNode, MiddlewareNode, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.ir import ExecutionConfig, Node

#: History modes that ADK cannot give an agent that it runs by itself.
_OF_TOOLS: Final = ("none",)
_OF_DELEGATES: Final = ("own", "input", "none")


def agents_of(root: Node) -> dict[str, Node]:
    """All agents of a pipeline, by name: its steps, and whoever stands below them.

    Pipelines below agents are among them, as they can be handed over to.

    Raises:
        MissingLayerError: A node's layer is not installed.
        UnsupportedNodeError: A node has no meaning here.
        BuildError: A transfer leads nowhere, or a gate cannot wait.
    """
    found: dict[str, Node] = {}
    todo, seen = [root], set[int]()
    while todo:
        flow = todo.pop()
        if id(flow) in seen:
            continue
        seen.add(id(flow))
        nodes = list(steps_of(flow))
        check_transfers(flow, nodes)
        check_gates(nodes)
        for node in nodes:
            _check_node(node)
            if is_flow(node):
                continue
            found.setdefault(node.name, node)
            tools, delegates = agent_tools_of(node).values(), delegates_of(node)
            _check_tools(tools)
            _check_history(delegates, _OF_DELEGATES, "a delegate", "sees the whole conversation")
            for each in delegates:
                found.setdefault(each.name, each)
            todo.extend((*tools, *delegates))
    return found


def _check_node(node: Node) -> None:
    kind = type(node)
    check_edges(node, "the mock backend does not stream between steps", "leave the edges at 'full'")
    if isinstance(node, MiddlewareNode):
        raise UnsupportedNodeError(
            "the mock backend has no middlewares: their hooks are given ADK's own objects",
            node=node,
            help="run it on ADK with scripted models",
        )
    if kind in RULES:
        return
    if node.layer != "core":
        require_layer(node.layer, kind.__name__, node)
    raise UnsupportedNodeError(
        f"the mock backend cannot run a {kind.__name__}",
        node=node,
        help="leave it out of what you test here, or run it on ADK with scripted models",
    )


def _check_tools(tools: Iterable[Node]) -> None:
    for tool in tools:
        check_tool(tool)
        gate = next((each for each in walk(tool) if isinstance(each, GateNode)), None)
        if gate is not None:
            raise UnsupportedNodeError(
                f"gate {gate.name!r} stands in {tool.name!r}, which is a tool and cannot wait",
                node=gate,
                help="make it a step or a delegate, or ask before the agent that calls the tool",
            )
        _check_history((tool,), _OF_TOOLS, "a tool", "sees what it is called with, and no more")


def _check_history(nodes: Iterable[Node], refused: Iterable[str], role: str, fact: str) -> None:
    for node in nodes:
        if isinstance(node, AgentNode) and node.history in refused:
            raise UnsupportedNodeError(
                f"history {node.history!r} has no effect on {role}, which {fact}",
                node=node,
                help="leave it at 'transcript', or make the agent a step of the pipeline",
            )


def check_app(node: AppNode) -> None:
    """Refuse what an application asks for and does not get.

    Raises:
        UnsupportedConfigError: It has middlewares.
    """
    if node.middlewares:
        raise _unsupported("middlewares")


def check_config(config: ExecutionConfig) -> None:
    """Refuse a configuration that would have no effect.

    Raises:
        UsageError: A field holds a value that has no meaning.
        UnsupportedConfigError: A field has no effect here.
    """
    check_values(config)
    refused = {
        "telemetry": config.telemetry is not None,
        "middlewares": bool(config.middlewares),
        "streaming_mode": config.streaming_mode == "bidi",
        "target": config.target != "agents",
    }
    for field, asked in refused.items():
        if asked:
            raise _unsupported(field)


def _unsupported(field: str) -> UnsupportedConfigError:
    return UnsupportedConfigError(
        f"the mock backend makes nothing of {field!r}", field=field, brings="the ADK backend"
    )
