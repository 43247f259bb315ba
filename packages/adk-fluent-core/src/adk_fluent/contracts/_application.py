"""The application: what is injected into it and wrapped around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.contracts._declared import app_middlewares
from adk_fluent.contracts._diagnostic import Related
from adk_fluent.contracts._issues import DuplicateMiddleware, DuplicateResource
from adk_fluent.ir import MiddlewareNode, Ref, ResourceNode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from adk_fluent.contracts._diagnostic import Diagnostic
    from adk_fluent.contracts._graph import Graph
    from adk_fluent.ir import Node


def check_resources(graph: Graph) -> Iterator[Diagnostic]:
    """A name that is injected means one resource."""
    first: dict[str, ResourceNode] = {}
    for resource in graph.of(ResourceNode):
        other = first.setdefault(resource.name, resource)
        if other != resource:
            yield DuplicateResource.at(
                graph,
                resource,
                f"two different resources are called `{resource.name}`",
                related=[Related.at(other, "the other one is here")],
                help="functions get a resource by its name: rename one, or inject one only",
            )


def check_middlewares(graph: Graph) -> Iterator[Diagnostic]:
    """A middleware stands once in a stack."""
    stacks: list[tuple[Node, Sequence[Any]]]
    stacks = [(node, node.stack) for node in graph.of(MiddlewareNode)]
    stacks += [(graph.root, stack) for stack in app_middlewares(graph.root)]
    for node, stack in stacks:
        twice = _repeated(stack)
        if twice is not None:
            yield DuplicateMiddleware.at(
                graph,
                node,
                f"middleware `{twice}` stands twice in the stack of `{node.name}`",
                help="remove one: every call would pass through it twice",
            )


def _repeated(stack: Iterable[Any]) -> str | None:
    seen: set[int] = set()
    for each in stack:
        ref = each if isinstance(each, Ref) else Ref.to(each)
        if id(ref.value) in seen:
            return ref.name
        seen.add(id(ref.value))
    return None
