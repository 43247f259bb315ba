"""Users who are simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from adk_fluent.eval._errors import EvalError
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.models import BaseLlm

_TEXTS = ("success_criteria", "stop_signal")


@dataclass(frozen=True, slots=True)
class UserSimulation:
    """A user who is simulated by a model, or by a script, after the first message of a case.

    Attributes:
        model: The model, by name or as a BaseLlm; None with a `script`.
        persona: Who the user is, in words or as a UserPersona of ADK.
        success_criteria: When the user has what they want.
        stop_signal: What the model writes when the conversation is over, alone or in a message.
        max_turns: User messages, at most; the first of the case counts.
        include_function_calls: Whether the model sees tool calls.
        script: What the user says after the first message, message by message.
    """

    model: str | BaseLlm | None = None
    persona: Any = None
    success_criteria: str | None = None
    stop_signal: str = "</finished>"
    max_turns: int = 10
    include_function_calls: bool = False
    script: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if (self.script is None) == (self.model is None):
            raise EvalError(
                "a user is simulated by a model or by a script",
                found="neither" if self.model is None else "both",
                help="UserSimulation(model=...) or UserSimulation(script=[...])",
            )
        given: Any = self.script
        lines = cast("list[Any]", given) if isinstance(given, list | tuple) else [given]
        if given is not None and not all(isinstance(each, str) and each.strip() for each in lines):
            raise EvalError("script= must be a list of texts", found=describe(given))
        if isinstance(given, str):
            raise EvalError("script= must be a list", help=f"write script=[{given!r}]")
        for name in _TEXTS:
            text: Any = getattr(self, name)
            optional = text is None and name != "stop_signal"
            if not optional and (not isinstance(text, str) or not text.strip()):
                raise EvalError(f"{name}= must be a text", found=describe(text))
        persona = self.persona
        if not isinstance(persona, str | None) and not hasattr(persona, "description"):
            raise EvalError("persona= must be a text or a UserPersona", found=describe(persona))
        turns: Any = self.max_turns
        if not isinstance(turns, int) or isinstance(turns, bool) or turns < 1:
            raise EvalError("max_turns= must be a whole number >= 1", found=describe(turns))

    @property
    def persona_text(self) -> str:
        """The persona in words."""
        persona = self.persona
        if persona is None or isinstance(persona, str):
            return persona or ""
        lines = [str(persona.description)]
        for each in getattr(persona, "behaviors", None) or ():
            lines += [f"- {each.description}", *map(str, each.behavior_instructions or ())]
        return "\n".join(lines)
