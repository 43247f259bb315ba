"""Users who are played, as ADK's services want them."""

from __future__ import annotations

import re
import string
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from google.adk.evaluation.conversation_scenarios import ConversationScenario
from google.adk.evaluation.simulation.user_simulator import (
    NextUserMessage,
    Status,
    UserSimulator,
)
from google.adk.evaluation.simulation.user_simulator_provider import UserSimulatorProvider
from google.adk.models.llm_request import LlmRequest
from google.genai import types

from adk_fluent.backends.adk import resolve_model, to_content
from adk_fluent.eval._cases._case import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from google.adk.events.event import Event
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse

    from adk_fluent.eval._cases._simulation import UserSimulation
    from adk_fluent.eval._running._models_adk import Answers

_TASK: Final = """\
You play a user who talks with an AI assistant. Write what this user says next, and nothing else: \
no quotation marks, no name in front, no comment on your part.

Who the user is: {persona}
What the user wants to have reached: {goal}

Say only what such a user would say, in their own words, one message at a time. Do not help the \
assistant, do not do its work, and do not give away at once what it has to ask for. When the user \
has what they wanted, or when it is clear that they will not get it, write {stop} and nothing else.
"""

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")
#: What may stand around a word that is a sentence of its own; who asks has not stopped.
_AROUND: Final = string.whitespace + string.punctuation.replace("?", "")


class Player:
    """A user who is played by a model or from a script; the first turn is the case's own.

    Args:
        simulation: Who plays, and how.
        first: What the user says first, unless `simulation` says.
        answers: Where answers of models are kept.

    Attributes:
        stop_reason: Why the conversation is over: ``stop_signal``, ``max_turns`` or
            ``script_end``; empty while it goes on.
    """

    def __init__(self, simulation: UserSimulation, first: Any, answers: Answers) -> None:
        self._simulation = simulation
        self._answers = answers
        self._first = to_content(
            first if simulation.starting_prompt is None else simulation.starting_prompt
        )
        self._said = 0
        self.stop_reason = ""

    async def next(self, events: Sequence[Event]) -> types.Content | None:
        """What the user says next; None when the conversation is over."""
        message = await self._next(events)
        self._said += message is not None
        return message

    async def _next(self, events: Sequence[Event]) -> types.Content | None:
        played = self._simulation
        if self._said >= played.max_turns:
            self.stop_reason = "max_turns"
            return None
        if not self._said:
            return self._first
        if played.script is not None:
            if self._said <= len(played.script):
                return to_content(played.script[self._said - 1])
            self.stop_reason = "script_end"
            return None
        try:
            text = (await self._ask(events)).strip()
        except Exception as error:
            what = f"the user could not be played: {type(error).__name__}: {error}"
            raise RuntimeError(what) from error
        if _says(text, played.stop_signal):
            self.stop_reason = "stop_signal"
        elif not text:
            raise RuntimeError("the model that plays the user said nothing")
        return None if self.stop_reason else to_content(text)

    async def _ask(self, events: Sequence[Event]) -> str:
        played = self._simulation
        model = resolve_model(cast("str | BaseLlm", played.model))  # there is one without a script
        request = LlmRequest(
            model=model.model,
            contents=[types.Content(role="user", parts=[types.Part(text=self._told(events))])],
            config=types.GenerateContentConfig(system_instruction=self._task()),
        )

        async def ask(request: LlmRequest) -> list[LlmResponse]:
            return [each async for each in model.generate_content_async(request, stream=False)]

        text = ""
        for response in await self._answers.of(request, model.model, "", ask):
            if response.error_code:
                what = f"the model that plays the user reported {response.error_code}"
                raise RuntimeError(f"{what}: {response.error_message or ''}".rstrip(": "))
            for part in (response.content and response.content.parts) or ():
                if part.text and not part.thought:
                    text += part.text
        return text

    def _task(self) -> str:
        played = self._simulation
        return _TASK.format(
            persona=persona_text(played.persona) or "an ordinary user",
            goal=played.success_criteria or "what the first message asks for",
            stop=played.stop_signal,
        )

    def _told(self, events: Sequence[Event]) -> str:
        lines = ["The conversation so far:"]
        for event in events:
            who = "User" if event.author == "user" else "Assistant"
            for part in (event.content and event.content.parts) or ():
                if part.thought:
                    continue
                if said := text_of(part):
                    lines.append(f"{who}: {said}")
                elif self._simulation.include_function_calls:
                    lines += _tools_in(part)
        return "\n".join([*lines, "User:"])


def _says(text: str, signal: str) -> bool:
    """Whether a message has the stop signal, in upper or lower case.

    One in marks, such as ``</finished>``, is found wherever it stands, as ADK finds its own. One
    of words might be part of what the user says ("I am not done yet"), so it has to be all of the
    message, a line of it, or the last sentence of a line.
    """
    text, signal = text.casefold(), signal.strip().casefold()
    if not (signal[0].isalnum() or signal[-1].isalnum()):
        return signal in text
    alone = [text, *(part for line in text.splitlines() for part in (line, _last_sentence(line)))]
    return signal.strip(_AROUND) in (each.strip(_AROUND) for each in alone)


def _last_sentence(line: str) -> str:
    return _SENTENCE_END.split(line.strip())[-1]


def _tools_in(part: types.Part) -> Iterator[str]:
    if (call := part.function_call) is not None:
        yield f"[the assistant calls {call.name} with {call.args}]"
    if (answer := part.function_response) is not None:
        yield f"[{answer.name} returned {answer.response}]"


def persona_text(persona: Any) -> str:
    """A persona in words; ADK's has behaviours of its own."""
    if persona is None or isinstance(persona, str):
        return persona or ""
    lines = [str(getattr(persona, "description", "") or getattr(persona, "id", ""))]
    for each in getattr(persona, "behaviors", None) or ():
        instructions = getattr(each, "behavior_instructions", None) or ()
        lines += [f"- {each.name}: {each.description}", *(f"  - {line}" for line in instructions)]
    return "\n".join(lines)


def scenario_of(simulation: UserSimulation, first: str) -> ConversationScenario:
    """How a user is played, as judges of ADK's are told."""
    start = first if simulation.starting_prompt is None else simulation.starting_prompt
    plan = simulation.success_criteria or "The user gets what the first message asks for."
    persona = simulation.persona
    fields: dict[str, Any] = {}
    if persona is not None and not isinstance(persona, str):
        fields["user_persona"] = persona
    elif persona:
        plan = f"{persona}\n{plan}"
    if simulation.script is not None:
        plan = "\n".join([plan, "The user says, one after the other:", *simulation.script])
    if "user_persona" not in ConversationScenario.model_fields and "user_persona" in fields:
        plan = f"{persona_text(fields.pop('user_persona'))}\n{plan}"
    return ConversationScenario(starting_prompt=start, conversation_plan=plan, **fields)


class Conversation(Protocol):
    """What the user says, one message after the other."""

    async def next(self, events: Sequence[Event]) -> types.Content | None:
        """What the user says next; None when the conversation is over."""
        ...


class Said:
    """What a case says turn by turn."""

    def __init__(self, messages: Iterable[types.Content]) -> None:
        self._messages = iter(messages)

    async def next(self, events: Sequence[Event]) -> types.Content | None:
        """The next turn's message."""
        return next(self._messages, None)


class _Simulator(UserSimulator):
    """A conversation as ADK's service asks for it."""

    def __init__(self, conversation: Conversation) -> None:  # without ADK's: there is no config
        self._conversation = conversation

    async def get_next_user_message(self, events: list[Event]) -> NextUserMessage:
        message = await self._conversation.next(events)
        if message is None:
            return NextUserMessage(status=Status.STOP_SIGNAL_DETECTED)
        return NextUserMessage(status=Status.SUCCESS, user_message=message)

    def get_simulation_evaluator(self) -> None:
        """None: the suite's metrics judge how the user was played."""
        return


class OneConversation(UserSimulatorProvider):
    """Gives ADK's service the conversation of the one case that it runs."""

    def __init__(self, conversation: Conversation) -> None:  # without ADK's, as above
        self._conversation = conversation

    def provide(self, eval_case: Any) -> UserSimulator:
        """The conversation."""
        return _Simulator(self._conversation)
