"""Whether a model can be had."""

from __future__ import annotations

from typing import Any

from adk_fluent.backends.adk import resolve_model
from adk_fluent.errors import AdkFluentError
from adk_fluent.eval._checks._same import told
from adk_fluent.eval._errors import EvalError


def check_judge(model: Any, *, is_needed: bool) -> None:
    """Look at the model that judges: one that nobody needs is not asked for by its name."""
    is_named = isinstance(model, str) and bool(model.strip())
    if model is not None and (is_needed or not is_named):
        check_model(model, "the model that judges")


def check_model(model: Any, what: str) -> None:
    try:
        resolve_model(model)
    except Exception as error:
        raise EvalError(
            f"{what} cannot be had",
            found=_in_a_line(error),
            help=_hint(model, error),
        ) from error


def _in_a_line(error: Exception) -> str:
    if not isinstance(error, AdkFluentError):
        return told(error)
    return f"{error.what}: {error.found}" if error.found else error.what


def _hint(model: Any, error: Exception) -> str:
    """What to do: of a name, ADK may know why it has none."""
    help = "give the name of a model that ADK knows, or a BaseLlm"
    known = error.help if isinstance(error, AdkFluentError) and isinstance(model, str) else None
    return f"{help}. {known}" if known else help
