"""Models that help a middleware: they choose, or make something up."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import WithJsonSchema

from adk_fluent.errors import UsageError
from adk_fluent.middleware._builtin import shown

#: An option that names a model or is one; None stands for the agent's own.
Helper = Annotated[Any, WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})]


def check_helper(middleware: str, model: Any) -> None:
    """See that an option is a model.

    Raises:
        UsageError: It is none.
    """
    if model is None or (isinstance(model, str) and model):
        return
    if not hasattr(model, "generate_content_async") or isinstance(model, type):
        raise UsageError(
            f"{middleware}(model=...) is no model",
            found=shown(model),
            help="give a name, an instance of ADK's BaseLlm, or None for the agent's own",
        )


class Resolved:
    """The models of a middleware by name, made once; all its instances share them."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def model(self, model: Any, own: Any) -> Any:
        """The model that helps; `own` is the agent's."""
        if model is None:
            return own
        if not isinstance(model, str):
            return model
        if model not in self._made:
            from adk_fluent.backends.adk import resolve_model  # noqa: PLC0415  # imports ADK

            self._made[model] = resolve_model(model)
        return self._made[model]
