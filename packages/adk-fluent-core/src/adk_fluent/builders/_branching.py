"""A dict to the right of `>>`: branches by the value of the key written last."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._words import describe
from adk_fluent.builders._operands import as_node
from adk_fluent.errors import BuildError, UsageError
from adk_fluent.ir import (
    AgentNode,
    FunctionNode,
    GateNode,
    Location,
    MapOverNode,
    Match,
    Node,
    RemoteAgentNode,
    RouteNode,
    SequenceNode,
    TransformNode,
    fold,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Keys = tuple[str, ...]

SCALARS: Final = (str, int, float, bool)


def branch(steps: Iterable[Node], branches: Mapping[Any, Any]) -> RouteNode:
    """The route that a dict after these steps, the last one first, stands for.

    Raises:
        BuildError: The dict is empty, it is unclear which key the steps wrote last, or that is an
            approval, which has no values to choose by.
        UsageError: One of its keys is no scalar.
    """
    here = Location.caller()
    if not branches:
        raise BuildError(
            "a dict of branches has none", location=here, help='write {"value": step, ...}'
        )
    writer, keys = _written_last(steps)
    if isinstance(writer, GateNode) and writer.response_schema is None:
        raise BuildError(
            "a dict of branches needs one value for each branch",
            location=here,
            found=f"the approval of gate {writer.name!r}, behind which all is approved",
            help='let the person choose: gate(..., response_schema={"enum": ["pay", "wait"]})',
        )
    if len(keys) != 1:
        raise BuildError(
            "a dict of branches needs to know which state key it is about",
            location=here,
            found=f"branches that write {', '.join(keys)}" if keys else "no step that writes a key",
            help='declare it with .writes("key") on the step before, or use Route("key")',
        )
    return RouteNode(
        "route",
        keys[0],
        tuple(Match("eq", keys[0], checked_scalar(value)) for value in branches),
        tuple(as_node(step, "a branch") for step in branches.values()),
        location=here,
    )


def checked_scalar(value: Any) -> Any:
    """A constant that state can be compared with.

    Raises:
        UsageError: It is no str, number, bool or None.
    """
    if value is None or isinstance(value, SCALARS):
        return value
    kept: object = value.value if isinstance(value, Enum) else None
    raise UsageError(
        "a route compares with str, int, float, bool or None",
        found=describe(value),
        help=f"state keeps the value of a member: compare with {kept!r}"
        if isinstance(kept, SCALARS)
        else "use .when(lambda state: ..., step) for any other test",
    )


def _written_last(steps: Iterable[Node]) -> tuple[Node | None, Keys]:
    """The last step that writes, and what it may have written last."""
    return next(((step, keys) for step in steps if (keys := fold(step, _keys))), (None, ()))


def _keys(node: Node, below: tuple[Keys, ...]) -> Keys:
    """What may have been written last when `node` is done; several where it depends on the run."""
    if isinstance(node, AgentNode | RemoteAgentNode):
        return tuple(ref.key for ref in node.writes_keys[-1:])
    if isinstance(node, FunctionNode | TransformNode):
        removes = isinstance(node, TransformNode) and node.semantics == "delete_keys"
        return () if removes else tuple(ref.key for ref in node.effects.writes[-1:])
    if isinstance(node, MapOverNode):
        return (node.output_key,)
    if isinstance(node, GateNode):
        return (node.key or node.name,)
    if isinstance(node, SequenceNode):
        return next((keys for keys in reversed(below) if keys), ())
    return tuple(dict.fromkeys(key for keys in below for key in keys))
