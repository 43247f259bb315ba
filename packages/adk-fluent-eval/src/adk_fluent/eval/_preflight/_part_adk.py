"""Whether the name of a part is that of one alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.apps.app import App

from adk_fluent.eval._running._pipeline_adk import steps, tree
from adk_fluent.ir import AdkAgentNode, AppNode, MiddlewareNode, Node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._running._target_adk import Target


def check_part(case: FluentCase, target: Target) -> None:
    """Look whether only one part has the name of the one that a case runs.

    Raises:
        EvalError: There are several; the very same one may stand in several places.
    """
    if case.target_node is None:
        return
    parts: list[Any] = []
    for each in _every_part(target.given):
        if each.name == case.target_node and not any(_is_same(each, other) for other in parts):
            parts.append(each)
    if len(parts) > 1:
        raise case.error(
            f"target_node={case.target_node!r} is the name of {len(parts)} parts of the pipeline",
            found=", ".join(map(_told, parts)),
            help="give each of them a name of its own",
        )


def _every_part(given: Any) -> Iterator[Any]:
    """Every part that a case can run, some perhaps several times."""
    if hasattr(given, "to_ir"):
        given = given.to_ir()
    if not isinstance(given, Node):
        yield from tree(given.root_agent if isinstance(given, App) else given)
        return
    for node in steps(given):
        if not isinstance(node, AppNode | MiddlewareNode):
            yield node
        if isinstance(node, AdkAgentNode):
            agent = node.agent.value
            yield from (each for each in tree(agent) if each is not agent)


def _is_same(one: Any, other: Any) -> bool:
    # agents of ADK's are not compared: they know those above and below them
    return one is other or (isinstance(one, Node) and isinstance(other, Node) and one == other)


def _told(part: Any) -> str:
    place = getattr(part, "location", None)
    return f"{type(part).__name__} at {place}" if place else type(part).__name__
