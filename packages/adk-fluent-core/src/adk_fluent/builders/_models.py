"""Which model an agent gets: its own, the enclosing builder's, the configured one, ADK's."""

from __future__ import annotations

from adk_fluent._words import describe
from adk_fluent.builders._operands import is_adk
from adk_fluent.errors import UsageError
from adk_fluent.ir import AgentNode, Node, Ref
from adk_fluent.ir import map as rewrite
from adk_fluent.ir._values import model_ref

Model = str | Ref


def as_model(value: object, role: str = ".model(...)") -> Model:
    """A model as the IR holds it.

    Raises:
        UsageError: It is neither a model name nor a model.
    """
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, Ref):
        return value
    if is_adk(value, "models.base_llm", "BaseLlm"):
        return model_ref(value)
    raise UsageError(
        f"{role} takes a model name or an ADK model",
        found=describe(value),
        help='pass a name such as "gemini-2.5-flash", or an instance of a BaseLlm',
    )


def with_default_model(root: Node, model: Model, source: str) -> Node:
    """Give a model to every agent at or below `root` that has none."""

    def fill(node: Node) -> Node:
        if isinstance(node, AgentNode) and node.model is None and node.selector is None:
            return node.replace(model=model, model_source=source)
        return node

    return rewrite(root, fill)
