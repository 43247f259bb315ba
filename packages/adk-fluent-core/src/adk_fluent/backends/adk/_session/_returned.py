"""What functions of the user's return, looked at before it goes into a session."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, cast

from adk_fluent.backends._storable import fault_of
from adk_fluent.errors import UnstorableValueError
from adk_fluent.ir import FunctionNode, GateNode, TransformNode

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from adk_fluent.backends.adk._session._storing import Keeping
    from adk_fluent.ir import Node, Ref


class Returned:
    """Refuses what the session service cannot keep.

    Args:
        keeping: What the session service keeps.
    """

    def __init__(self, keeping: Keeping) -> None:
        self._keeping = keeping

    def checked(self, node: Node, fn: Ref, value: Any) -> Any:
        """What a function of a step has returned; may be awaitable.

        Raises:
            UnstorableValueError: It cannot be kept.
        """
        if isinstance(node, GateNode):
            return self._shown(node, fn, value)
        if not isinstance(node, FunctionNode | TransformNode):
            return value
        if type(value) is not dict and isawaitable(value):
            return self._awaited(node, value)
        return self._kept(node, value)

    async def _awaited(self, node: Node, value: Awaitable[Any]) -> Any:
        return self._kept(node, await value)

    def _shown(self, node: GateNode, fn: Ref, value: Any) -> Any:
        """What a gate's function returns; a payload goes into an event."""
        if fn is not node.payload:
            return value
        return self._awaited_payload(node, value) if isawaitable(value) else _payload(node, value)

    async def _awaited_payload(self, node: GateNode, value: Awaitable[Any]) -> Any:
        return _payload(node, await value)

    def _kept(self, node: Node, value: Any) -> Any:
        """What a function returns, which is about to be written."""
        if isinstance(value, Mapping):  # what is no mapping the engine refuses
            self._keeping.check_state(cast("Mapping[str, Any]", value), node.name, node)
        return cast("Any", value)


def _payload(node: GateNode, payload: Any) -> Any:
    fault = fault_of(payload)
    if fault is None:
        return payload
    raise UnstorableValueError(
        f"the payload of gate {node.name!r} is no JSON",
        path=f"payload{fault.path}",
        node=node,
        found=f"payload{fault.path} {fault.says}",
        help=fault.help,
    )
