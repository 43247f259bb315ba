"""The toy's pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent import ir
from adk_fluent.backends import Pass, PassList
from adk_fluent.toy._nodes import EchoNode

if TYPE_CHECKING:
    from adk_fluent.backends.adk import CompileContext


def trim(root: ir.Node, cx: CompileContext) -> ir.Node:
    """Take the blanks around the text of each echo away."""

    def trimmed(node: ir.Node) -> ir.Node:
        return node.replace(text=node.text.strip()) if isinstance(node, EchoNode) else node

    return ir.map(root, trimmed)


PASSES: PassList[CompileContext] = PassList()
PASSES.add(Pass("toy-trim", trim))
