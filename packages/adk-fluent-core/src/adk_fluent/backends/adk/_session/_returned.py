"""What functions of the user's return that goes into an event and not to state."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from adk_fluent.backends._storable import json_fault
from adk_fluent.errors import UnstorableValueError
from adk_fluent.ir import GateNode

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from adk_fluent.ir import Node, Ref


def returned(node: Node, fn: Ref, value: Any) -> Any:
    """What a function of a step has returned; may be awaitable. The payload of a gate is checked.

    Raises:
        UnstorableValueError: The session service cannot keep it.
    """
    if not isinstance(node, GateNode) or fn is not node.payload:
        return value
    return _awaited(node, value) if isawaitable(value) else _payload(node, value)


async def _awaited(node: GateNode, payload: Awaitable[Any]) -> Any:
    return _payload(node, await payload)


def _payload(node: GateNode, payload: Any) -> Any:
    fault = json_fault(payload)
    if fault is None:
        return payload
    raise UnstorableValueError(
        f"the payload of gate {node.name!r} is no JSON",
        path=f"payload{fault.path}",
        node=node,
        found=f"payload{fault.path} {fault.says}",
        help=fault.help,
    )
