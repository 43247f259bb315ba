"""Which node a transfer hands over to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.errors import BuildError
from adk_fluent.ir import TransferNode, walk

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.ir import Node


class Targets:
    """What transfers of one pipeline can hand over to: the first node of each name.

    Args:
        root: The pipeline.
    """

    __slots__ = ("_named",)

    def __init__(self, root: Node) -> None:
        self._named: dict[str, Node] = {}
        for node in walk(root):
            if not isinstance(node, TransferNode):
                self._named.setdefault(node.name, node)

    def of(self, transfer: TransferNode) -> Node:
        """The node that a transfer hands over to.

        Raises:
            BuildError: There is none of that name.
        """
        target = self._named.get(transfer.target)
        if target is None:
            raise BuildError(
                f"transfer to {transfer.target!r}, which is not part of this pipeline",
                node=transfer,
                help="name an agent of the same pipeline",
            )
        return target


def check_transfers(root: Node, nodes: Iterable[Node]) -> None:
    """See that those of the nodes that are transfers lead somewhere in the pipeline.

    Raises:
        BuildError: One does not.
    """
    transfers = [node for node in nodes if isinstance(node, TransferNode)]
    if transfers:
        targets = Targets(root)
        for transfer in transfers:
            targets.of(transfer)
