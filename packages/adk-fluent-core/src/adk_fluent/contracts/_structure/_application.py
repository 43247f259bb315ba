"""The application: what is injected into it and wrapped around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent._hints import PROVIDERS
from adk_fluent._middlewares import made_middleware
from adk_fluent.contracts._reports._diagnostic import Related
from adk_fluent.contracts._reports._issues import (
    DuplicateMiddleware,
    DuplicateResource,
    UnusableMiddleware,
)
from adk_fluent.contracts._structure._declared import middleware_stacks
from adk_fluent.errors import AdkFluentError, MissingLayerError
from adk_fluent.ir import MiddlewareRef, Ref, ResourceNode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adk_fluent.contracts._graph import Graph
    from adk_fluent.contracts._reports._diagnostic import Diagnostic
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
    for node, stack in middleware_stacks(graph):
        twice = _repeated(stack)
        if twice is not None:
            yield DuplicateMiddleware.at(
                graph,
                node,
                f"middleware `{twice}` stands twice in the stack of `{node.name}`",
                help="remove one: every call would pass through it twice",
            )


def check_middleware_names(graph: Graph) -> Iterator[Diagnostic]:
    """A middleware that is given by name can be made: there is one, which takes its settings."""
    for node, stack in middleware_stacks(graph):
        for each in stack:
            ref = each.value if isinstance(each, Ref) else each
            if isinstance(ref, MiddlewareRef):
                yield from _unusable(graph, node, ref)


def _unusable(graph: Graph, node: Node, ref: MiddlewareRef) -> Iterator[Diagnostic]:
    try:
        made_middleware(ref)
    except AdkFluentError as error:
        if isinstance(error, MissingLayerError) and ref.name in PROVIDERS["middleware"]:
            return  # said of the layer
        said = error.what if error.found is None else f"{error.what}: {error.found}"
        yield UnusableMiddleware.at(graph, node, said, help=error.help)
    except Exception as error:  # noqa: BLE001  # its constructor is anybody's
        said = f"middleware `{ref.name}` cannot be made: {type(error).__name__}: {error}"
        help = f"adk-fluent middleware show {ref.name}"
        yield UnusableMiddleware.at(graph, node, said, help=help)


def _repeated(stack: Iterable[Any]) -> str | None:
    seen: set[int] = set()
    for each in stack:
        ref = each if isinstance(each, Ref) else Ref.to(each)
        if id(ref.value) in seen:
            return ref.name
        seen.add(id(ref.value))
    return None
