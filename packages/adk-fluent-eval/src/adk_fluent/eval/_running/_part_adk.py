"""One part of a pipeline, with what stands around it, as a pipeline of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from google.adk.agents.base_agent import BaseAgent

from adk_fluent.errors import nearest_name
from adk_fluent.eval._running._pipeline_adk import steps, tree
from adk_fluent.ir import (
    AdkAgentNode,
    AppNode,
    MiddlewareNode,
    Node,
    Ref,
    ResourceNode,
    find,
    replace,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._errors import EvalError

try:
    from google.adk.workflow import Workflow
except ImportError:  # google-adk 1.x has no graphs
    Workflow = None


def sub_graph(root: Node, case: FluentCase) -> Node:
    """A part of a pipeline with what stands around it: middlewares and resources.

    Raises:
        EvalError: There is no part of that name.
    """
    name = case.target_node or ""
    path = _path_to(root, lambda node: node.name == name)
    if path is not None:
        part = path[-1]
    else:
        path = _path_to(root, lambda node: any(each.name == name for each in _tree_of(node)))
        if path is None:
            below = (each for node in steps(root) for each in _tree_of(node))
            raise _no_part(case, (each.name for each in (*steps(root), *below)))
        part = AdkAgentNode(name, Ref(part_of(_built(path[-1]), case), name))
    for around in reversed(path[:-1]):
        if isinstance(around, MiddlewareNode):
            part = replace(around, around.body, part)
        elif isinstance(around, AppNode):
            part = replace(around, around.root, part)
    return part


def _path_to(root: Node, is_it: Callable[[Node], bool]) -> list[Node] | None:
    """The nodes on the way to the first that is a step and is it, that one included."""

    def found(node: Node) -> bool:
        return not isinstance(node, AppNode | MiddlewareNode | ResourceNode) and is_it(node)

    if find(root, found) is None:
        return None
    path = [root]
    while not found(path[-1]):
        path.append(next(each for each in path[-1].children if find(each, found) is not None))
    return path


def _built(node: Node) -> Any:
    """The agent that a node holds which was built with ADK; None of every other node."""
    return node.agent.value if isinstance(node, AdkAgentNode) else None


def _tree_of(node: Node) -> Iterator[Any]:
    return tree(_built(node))


def _no_part(case: FluentCase, names: Iterable[str]) -> EvalError:
    known = sorted(set(names))
    near = nearest_name(case.target_node or "", known)
    return case.error(
        f"the pipeline has no step {case.target_node!r}",
        found=", ".join(known) or "no steps",
        help=f"did you mean {near!r}?" if near else None,
    )


# --- agents of ADK's -----------------------------------------------------------------------------


def part_of(root: Any, case: FluentCase) -> Any:
    """A part of a tree of agents or of a graph, as a root of its own.

    Raises:
        EvalError: There is no part of that name.
    """
    name = case.target_node
    every = list(tree(root))
    found = next((each for each in every if each.name == name), None)
    if found is None:
        raise _no_part(case, (each.name for each in every))
    if found is root:
        return root
    if isinstance(found, BaseAgent):
        mode = getattr(found, "mode", None)
        update: dict[str, Any] = {}
        if mode not in {None, "chat", "task"}:  # a step of a graph cannot be a root as it is
            update["mode"] = "chat"
        return found.clone(update=update or None)
    if Workflow is None:
        raise _no_part(case, (each.name for each in every))
    from google.adk.workflow import START  # noqa: PLC0415  # of google-adk 2.x alone

    return cast("Any", Workflow)(name=f"only_{found.name}", edges=[(START, found)])
