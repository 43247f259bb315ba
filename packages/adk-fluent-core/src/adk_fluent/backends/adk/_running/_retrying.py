"""Agents that are told what was wrong with a typed answer, and answer again.

The correction is a turn of the user's in the requests of this run of the agent and nowhere else:
the session has the answer that did not fit, marked as said besides, and later agents see neither.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.genai import types
from pydantic import PrivateAttr

from adk_fluent._logs import LOG
from adk_fluent.backends._answers import correction
from adk_fluent.backends.adk._session._facts import put_out, text
from adk_fluent.errors import OutputInvalidError
from adk_fluent.protocol._output import unfenced

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest

    from adk_fluent.backends._answers import Answer

_log: Final = LOG.getChild("output")
_WAITS: Final = "_adk_fluent_waits"
_RETRIED: Final = "_adk_fluent_retried"


class RetryingAgent(LlmAgent):
    """An LlmAgent whose model is asked again when its answer does not fit.

    Where ADK runs it by itself, as whom another agent hands over to or calls, it also writes its
    answer: ADK would validate what is said while a long-running tool has no result yet.
    """

    _reading: Reading = PrivateAttr()

    @property
    def reading(self) -> Reading:
        """How its answers are read."""
        return self._reading

    @property
    def _llm_flow(self) -> Any:
        flow: Any = super()._llm_flow
        return _Flow(flow, self.name, self._reading)


class Reading:
    """How the answers of an agent are read, and how often it may be asked again.

    Attributes:
        answer: Reads them.
        retries: How often it is asked again.
        writes: ADK runs the agent by itself, so that nobody else writes what it answers.
    """

    __slots__ = ("answer", "retries", "writes")

    def __init__(self, answer: Answer, retries: int, *, writes: bool) -> None:
        self.answer: Answer = answer
        self.retries: int = retries
        self.writes: bool = writes


def retrying(fields: dict[str, Any], reading: Reading) -> LlmAgent:
    """Make an agent that is asked again."""
    agent = RetryingAgent(**fields)
    agent._reading = reading  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # its own
    return agent


def keep_waits(changes: dict[str, Any], waits: set[str]) -> None:
    """Let the agents of a step know which calls have no answer yet."""
    changes[_WAITS] = waits


def retried(event: Event) -> str | None:
    """What was wrong with an answer whose agent is asked again; the mark goes."""
    metadata = event.custom_metadata
    return None if not metadata else metadata.pop(_RETRIED, None)


class _Flow:
    """ADK's flow of an agent, again and again until the answer fits."""

    def __init__(self, flow: Any, agent: str, reading: Reading) -> None:
        self._flow = flow
        self._agent = agent
        self._reading = reading

    def __getattr__(self, name: str) -> Any:
        return getattr(self._flow, name)

    async def run_async(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        """What the agent says."""
        waits: set[str] = ctx.__dict__.get(_WAITS, set())
        correcting = _Correcting()
        self._flow.request_processors.append(correcting)
        for left in range(self._reading.retries, -1, -1):
            invalid: OutputInvalidError | None = None
            said = ""
            async with aclosing(self._flow.run_async(ctx)) as events:
                async for event in events:
                    if not event.partial and event.author == self._agent:
                        waits.update(event.long_running_tool_ids or ())
                        said = text(event) or ""
                        invalid = None if waits else self._read(event, left)
                    yield event
                    if invalid is not None and not left and self._reading.writes:
                        raise invalid
            if invalid is None or not left:
                return
            _log.warning(
                "%s answered what does not fit, and is asked again, %d more at most: %s",
                self._agent,
                left - 1,
                invalid.what,
            )
            correcting.add(said, invalid)

    def _read(self, event: Event, left: int) -> OutputInvalidError | None:
        reading = self._reading
        if reading.writes:
            invalid = put_out(reading.answer, event)
            _take_fence_off(event)
        else:  # the step does it
            invalid = _fault(reading.answer, event)
        if invalid is not None and left:
            event.error_code = event.error_message = None  # an answer that broke off is made good
            event.custom_metadata = {**(event.custom_metadata or {}), _RETRIED: invalid.what}
        return invalid


def _fault(answer: Answer, event: Event) -> OutputInvalidError | None:
    said = text(event)
    if said is None or event.get_function_calls() or event.get_function_responses():
        return None
    try:
        answer.data(said)
    except OutputInvalidError as error:
        return error
    return None


def _take_fence_off(event: Event) -> None:
    """Let ADK read the answer of an agent that is a tool; it may know nothing of fences."""
    said = text(event)
    if said is not None and event.content is not None and (inside := unfenced(said)) != said:
        event.content.parts = [types.Part(text=inside)]


class _Correcting:
    """Puts what was wrong behind each answer that did not fit; a request processor of ADK's."""

    name: Final = None

    def __init__(self) -> None:
        self._told: list[tuple[str, str]] = []

    def add(self, said: str, invalid: OutputInvalidError) -> None:
        """Tell the model of one more answer."""
        self._told.append((said, correction(invalid.what)))

    async def run_async(
        self, ctx: InvocationContext, request: LlmRequest
    ) -> AsyncGenerator[Event, None]:
        """Change a request."""
        behind = 0
        for said, told in self._told:
            at = next(
                (
                    at
                    for at, each in enumerate(request.contents)
                    if at >= behind and each.role == "model" and _text(each) == said
                ),
                None,
            )
            if at is None:
                at = len(request.contents)
                request.contents.append(types.ModelContent(said))
            behind = at + 1
            request.contents.insert(behind, types.UserContent(told))
        for event in ():
            yield event


def _text(content: types.Content) -> str:
    return "".join(p.text for p in content.parts or () if p.text and not p.thought)
