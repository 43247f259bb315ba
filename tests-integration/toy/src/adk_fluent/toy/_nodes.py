"""The toy's node."""

from __future__ import annotations

from typing import ClassVar

from adk_fluent import ir


@ir.node
class EchoNode(ir.Node):
    """Answers with a text of its own.

    Attributes:
        text: The answer.
    """

    layer: ClassVar[str] = "toy"

    text: str = ""
