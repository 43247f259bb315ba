"""Who plays the user after the first turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from adk_fluent._words import describe
from adk_fluent.eval._errors import EvalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.models import BaseLlm

    from adk_fluent.eval._cases._case import FluentCase


@dataclass(frozen=True, slots=True)
class UserSimulation:
    """A user that is played: by a model, or from a script.

    Attributes:
        model: The model that plays, by name or as a BaseLlm; not needed with a `script`.
        persona: Who the user is, in words; it becomes the model's instruction. ADK's
            ``UserPersona`` will do, too.
        success_criteria: When the user has got what they wanted.
        stop_signal: What the model says when the conversation is over. In marks, as
            ``</finished>``, it counts anywhere in a message; a word counts only as a message, a
            line, or a last sentence of its own.
        max_turns: Turns of the user, at most; the case's own count.
        starting_prompt: What the user says first, in place of the case's `input`.
        include_function_calls: Whether the model is shown the calls of tools.
        script: What the user says, turn by turn, after the first; then the conversation is over.
    """

    model: str | BaseLlm | None = None
    persona: Any = None
    success_criteria: str | None = None
    stop_signal: str = "</finished>"
    max_turns: int = 10
    starting_prompt: str | None = None
    include_function_calls: bool = False
    script: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if (self.script is None) == (self.model is None):
            raise EvalError(
                "a simulated user is played by a model or from a script",
                found="both" if self.script is not None else "neither",
                help="give model= or script=",
            )
        if isinstance(self.script, str):
            raise EvalError(
                "script= is one text, not a list of them", help=f"write script=[{self.script!r}]"
            )
        script: Any = self.script or ()
        if not isinstance(script, list | tuple):
            raise EvalError("script= is no list of texts", found=describe(script))
        for said in cast("list[Any]", script):
            _check_text("a line of script=", said)
        if isinstance(self.model, str):
            _check_text("model=", self.model)
        if self.success_criteria is not None:
            _check_text("success_criteria=", self.success_criteria)
        if isinstance(self.persona, str):
            _check_text("persona=", self.persona)
        elif self.persona is not None and not hasattr(self.persona, "description"):
            raise EvalError(
                "persona= is no text, and no UserPersona of ADK's", found=describe(self.persona)
            )
        if self.starting_prompt is not None:
            _check_text("starting_prompt=", self.starting_prompt)
        number = self.max_turns
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            raise EvalError("max_turns= is no number from 1 up", found=describe(number))
        _check_text("stop_signal=", self.stop_signal, 'give a text such as "</finished>"')


def _check_text(name: str, value: Any, help: str | None = None) -> None:
    if not isinstance(value, str) or not value.strip():
        raise EvalError(f"{name} is no text", found=describe(value), help=help)


def player_of(case: FluentCase, simulation: UserSimulation | None) -> UserSimulation | None:
    """Who plays the user of a case: its own, or the suite's unless it says several turns itself."""
    return case.simulation or (simulation if len(case.turns) == 1 else None)
