"""What models say: in the place of the pipeline's own, as judges, and as users."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_fluent.backends.adk import resolve_model, to_content
from adk_fluent.errors import AgentReportedError
from adk_fluent.eval._cases._turn import UserSimulation, text_of
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._running._pace import TRIES, refusal_in, wait_before
from adk_fluent.extend import error_line
from adk_fluent.protocol import ModelCall, ModelReply, NextModel, Usage, request_key

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence

    from google.adk.events.event import Event
    from google.adk.models.base_llm import BaseLlm

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._running._kept import ResponseCache

_TASK: Final = """\
You simulate a user of an AI assistant. Write the user's next message, and nothing else.
Who the user is: {persona}
What the user wants: {goal}
Write one message at a time, in the user's own words. Do not help the assistant, and do not tell \
at once what it has to ask for. When the user has what they want, or clearly will not get it, \
write {stop} and nothing else."""


class Models:
    """Stands in for the models of one run of a case; see `adk_fluent.backends.adk.replace_models`.

    Equal requests of a run are told apart by their number. A request that failed gives its number
    back: whoever asks again has the answer that was not given.

    Args:
        model: The model that answers for every model of the pipeline; None leaves each its own.
        cache: Where answers are kept; None keeps none.
        outcome: The run, in which calls and tokens of judges and simulated users are counted.

    Attributes:
        problem: Why answers could not be kept; empty if they could.
    """

    def __init__(
        self, model: BaseLlm | None, cache: ResponseCache | None, outcome: CaseOutcome
    ) -> None:
        self._model = model
        self._cache = cache
        self._outcome = outcome
        case = outcome.id.encode("utf-8", "surrogatepass")
        self._whose = f"{sha256(case).hexdigest()[:8]}.{outcome.run}"
        self._taken: set[str] = set()
        self.problem = ""

    async def __call__(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Answer a call, or pass it to the model."""
        if self._model is not None:
            call = replace(call, model=self._model)
            call.request.model = self._model.model

        asked = False

        async def ask() -> list[LlmResponse]:
            nonlocal asked
            asked = True
            return (await next(call)).responses

        responses = await self._of(call.request, call.model.model, ask)
        return ModelReply(responses, asked=asked)

    async def _of(
        self, request: LlmRequest, model: str, ask: Callable[[], Awaitable[list[LlmResponse]]]
    ) -> list[LlmResponse]:
        """The answer to a request: a kept one, or a new one, which is kept."""
        if self._cache is None:
            return await ask()
        name = request_key(request, model)
        files = (f"{name[:40]}.{self._whose}.{number}" for number in count(1))
        file = next(each for each in files if each not in self._taken)
        self._taken.add(file)
        answered = False
        try:
            if (kept := self._cache.read(file)) is not None:
                answered = True
                # base64 is only read from JSON
                return [LlmResponse.model_validate_json(json.dumps(each)) for each in kept]
            responses = await ask()
            answered = bool(responses) and not any(each.error_code for each in responses)
        finally:
            if not answered:
                self._taken.remove(file)
        if answered:
            plain = [each.model_dump(mode="json", exclude_none=True) for each in responses]
            try:
                self._cache.write(file, model, plain)
            except EvalFileError as error:  # a full disk costs the answer, not the case
                self.problem = self.problem or error.what
        return responses

    async def ask(self, model: BaseLlm, request: LlmRequest) -> str:
        """Return what a judge or a simulated user says; one that is refused waits and asks again.

        Raises:
            AgentReportedError: The model reported an error.
            Exception: What the model raised.
        """
        request.model = model.model

        async def ask() -> list[LlmResponse]:
            self._outcome.eval_calls += 1
            found = [each async for each in model.generate_content_async(request)]
            for each in found:
                if each.error_code:
                    code = str(each.error_code)
                    what = f"{code}: {each.error_message}"
                    raise AgentReportedError(what, error_code=code)
                self._outcome.eval_tokens += Usage.from_genai(each.usage_metadata) or Usage()
            return found

        for attempt in range(1, TRIES + 1):
            try:
                found = await self._of(request, model.model, ask)
                return ModelReply([each for each in found if not each.partial]).text
            except Exception as error:
                refusal = refusal_in(error)
                if refusal is None or (wait := wait_before(refusal, attempt)) is None:
                    raise
                await asyncio.sleep(wait)
        raise AssertionError  # the last try has no wait


def prompt_of(text: str, instruction: str | None = None) -> LlmRequest:
    """Return a request with one message."""
    said = types.Content(role="user", parts=[types.Part(text=text)])
    config = types.GenerateContentConfig(system_instruction=instruction)
    return LlmRequest(contents=[said], config=config)


# --- users ---------------------------------------------------------------------------------------


class User:
    """Who talks with the pipeline, and says the turns of a case.

    Attributes:
        stop_reason: Why a simulated conversation ended: ``stop_signal``, ``max_turns`` or
            ``script_end``; empty if it was not simulated.
    """

    def __init__(self, messages: Iterable[Any], ends: str = "") -> None:
        self._messages = iter(messages)
        self._ends = ends
        self.stop_reason: str = ""

    async def next(self, events: Sequence[Event]) -> types.Content | None:
        """Return the next message; None at the end."""
        for message in self._messages:
            return to_content(message)
        self.stop_reason = self._ends
        return None


class SimulatedUser(User):
    """Says the first message of a case, then what a model says."""

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
        text = await self._ask(events)
        if _has_signal(text, simulation.stop_signal):
            self.stop_reason = "stop_signal"
            return None
        if not text:
            raise RuntimeError("the model that simulates the user said nothing")
        return to_content(text)

    async def _ask(self, events: Sequence[Event]) -> str:
        simulation = self._simulation
        persona = simulation.persona_text or "an ordinary user"
        goal = simulation.success_criteria or "what the first message asks for"
        task = _TASK.format(persona=persona, goal=goal, stop=simulation.stop_signal)
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
    messages = [turn.input for turn in case.turns]
    if simulation is None or len(messages) > 1:
        return User(messages)
    if simulation.script is None:
        return SimulatedUser(simulation, messages[0], models)
    messages += simulation.script
    most = simulation.max_turns
    return User(messages[:most], "max_turns" if len(messages) >= most else "script_end")


def _has_signal(text: str, signal: str) -> bool:
    """Whether a message has the stop signal; one of words must stand alone in its line."""
    text, signal = text.casefold(), signal.strip().casefold()
    if not (signal[0].isalnum() and signal[-1].isalnum()):
        return signal in text
    return any(re.sub(r"[\W_]+$|^[\W_]+", "", line) == signal for line in text.splitlines())
