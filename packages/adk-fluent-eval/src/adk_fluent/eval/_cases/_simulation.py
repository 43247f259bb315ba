"""Users who are simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from adk_fluent.eval._arguments import is_text, positive, require
from adk_fluent.eval._errors import EvalError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.models import BaseLlm


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
        several = isinstance(given, list | tuple)
        lines: list[Any] = [*cast("list[Any]", given)] if several else [given]
        texts = given is None or all(map(is_text, lines))
        require(texts, "script= must be a list of texts", self.script)
        if isinstance(given, str):
            raise EvalError("script= must be a list", help=f"write script=[{given!r}]")
        criteria, signal, persona = self.success_criteria, self.stop_signal, self.persona
        valid = criteria is None or is_text(criteria)
        require(valid, "success_criteria= must be a text", criteria)
        require(is_text(signal), "stop_signal= must be a text", signal)
        known = isinstance(persona, str | None) or hasattr(persona, "description")
        require(known, "persona= must be a text or a UserPersona", persona)
        positive("max_turns", self.max_turns)

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
