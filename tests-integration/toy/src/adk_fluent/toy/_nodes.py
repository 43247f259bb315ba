"""The toy's data: a node, and a value that stands for a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from adk_fluent import ir

if TYPE_CHECKING:
    from google.adk.models import BaseLlm


@ir.node
class EchoNode(ir.Node):
    """Answers with a text of its own.

    Attributes:
        text: The answer.
    """

    layer: ClassVar[str] = "toy"

    text: str = ""


@dataclass(frozen=True, slots=True)
class LoudModel:
    """A model that answers in capitals.

    Attributes:
        model: The model that finds the words.
    """

    model: str | BaseLlm
