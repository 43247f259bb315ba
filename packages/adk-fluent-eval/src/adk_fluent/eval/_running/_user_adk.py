"""What the user of a case says: its turns, or what a model or a script says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.backends.adk import resolve_model, to_content
from adk_fluent.eval._cases._turn import UserSimulation, text_of
from adk_fluent.eval._running._models_adk import Models, prompt_of
from adk_fluent.eval._values import error_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from google.adk.events.event import Event
    from google.genai import types

    from adk_fluent.eval._cases._case import FluentCase

_TASK: Final = """\
You simulate a user of an AI assistant. Write the user's next message, and nothing else.
Who the user is: {persona}
What the user wants: {goal}
Write one message at a time, in the user's own words. Do not help the assistant, and do not tell \
at once what it has to ask for. When the user has what they want, or clearly will not get it, \
write {stop} and nothing else."""


class User:
    """Who talks with the pipeline, and says the turns of a case.

    Attributes:
        stop_reason: Why a simulated conversation ended: ``stop_signal``, ``max_turns`` or
            ``script_end``; empty if it was not simulated.
    """

    stop_reason: str = ""

    def __init__(self, messages: Iterable[Any]) -> None:
        self._messages = iter(messages)

    async def next(self, events: Sequence[Event]) -> types.Content | None:
        """Return the next message; None at the end."""
        message = next(self._messages, None)
        return None if message is None else to_content(message)


class SimulatedUser(User):
    """Says the first message of a case, then what a model or a script says."""

    def __init__(self, simulation: UserSimulation, first: Any, models: Models) -> None:
        super().__init__([first])
        self._simulation = simulation
        self._models = models
        self._said = 0

    async def next(self, events: Sequence[Event]) -> types.Content | None:
        """Return the next message; None at the end.

        Raises:
            RuntimeError: The model failed, or said nothing.
        """
        self._said += 1
        simulation = self._simulation
        if self._said == 1:
            return await super().next(events)
        if self._said > simulation.max_turns:
            self.stop_reason = "max_turns"
            return None
        if simulation.script is not None:
            if self._said - 2 < len(simulation.script):
                return to_content(simulation.script[self._said - 2])
            self.stop_reason = "script_end"
            return None
        text = await self._ask(events)
        if _has_signal(text, simulation.stop_signal):
            self.stop_reason = "stop_signal"
            return None
        if not text:
            raise RuntimeError("the model that simulates the user said nothing")
        return to_content(text)

    async def _ask(self, events: Sequence[Event]) -> str:
        simulation = self._simulation
        task = _TASK.format(
            persona=simulation.persona_text or "an ordinary user",
            goal=simulation.success_criteria or "what the first message asks for",
            stop=simulation.stop_signal,
        )
        told = "\n".join(["The conversation so far:", *self._told(events), "User:"])
        try:
            model = resolve_model(cast("Any", simulation.model))
            return (await self._models.ask(model, prompt_of(told, task))).strip()
        except Exception as error:
            what = f"the user could not be simulated: {error_line(error)}"
            raise RuntimeError(what) from error

    def _told(self, events: Sequence[Event]) -> Iterator[str]:
        for event in events:
            who = "User" if event.author == "user" else "Assistant"
            for part in (event.content.parts if event.content else None) or ():
                if part.thought:
                    continue
                if text := text_of(part):
                    yield f"{who}: {text}"
                elif self._simulation.include_function_calls:
                    if (call := part.function_call) is not None:
                        yield f"[the assistant calls {call.name}({call.args})]"
                    if (answer := part.function_response) is not None:
                        yield f"[{answer.name} returned {answer.response}]"


def user_of(case: FluentCase, simulation: UserSimulation | None, models: Models) -> User:
    """Return the user of a case."""
    first, *more = case.turns
    if simulation is None or more:
        return User(turn.input for turn in case.turns)
    return SimulatedUser(simulation, first.input, models)


def _has_signal(text: str, signal: str) -> bool:
    """Whether a message has the stop signal; one of words must stand alone in its line."""
    text, signal = text.casefold(), signal.strip().casefold()
    if not (signal[0].isalnum() and signal[-1].isalnum()):
        return signal in text
    return any(re.sub(r"[\W_]+$|^[\W_]+", "", line) == signal for line in text.splitlines())
