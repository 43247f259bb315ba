"""Agents whose answers are read here; they are told what was wrong with one, and answer again.

The correction is a turn of the user's in the requests of this run of the agent and nowhere else:
the session has the answer that did not fit, marked as said besides, and later agents see neither.
"""

from __future__ import annotations

import types
import warnings
from contextlib import aclosing
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.llm_agent import LlmAgent
from google.genai import types as genai

from adk_fluent._logs import LOG
from adk_fluent.backends._answers import correction
from adk_fluent.backends.adk._session._facts import put_out, text
from adk_fluent.errors import OutputInvalidError
from adk_fluent.protocol._output import unfenced

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest

    from adk_fluent.backends._answers import Answer

_log: Final = LOG.getChild("output")
_READING: Final = "_adk_fluent_reading"
_WAITS: Final = "_adk_fluent_waits"
_RETRIED: Final = "_adk_fluent_retried"


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


class _Reads:
    """Lets the answers of an LlmAgent be read here; a class is made of this and the agent's own."""

    __dict__: dict[str, Any]

    @property
    def _llm_flow(self) -> Any:
        flow = getattr(super(), "_llm_flow")  # noqa: B009  # of a class that is named later
        return _Flow(flow, self.__dict__["name"], self.__dict__[_READING])


_UNANSWERABLE: Final = (
    "it was said while a long-running tool has no result yet, and an agent that is a tool cannot "
    "wait: make it a step or a delegate, or call the long-running tool from the agent that calls it"
)


def read(agent: LlmAgent, reading: Reading) -> LlmAgent:
    """Let the answers of an agent be read here, and its model be asked again if they do not fit.

    Where ADK runs the agent by itself, as whom another agent hands over to or calls, they are also
    written here: ADK would validate what is said while a long-running tool has no result yet.
    """
    object.__setattr__(agent, _READING, reading)
    object.__setattr__(agent, "__class__", _class_that_reads(type(agent)))
    return agent


def reading_of(agent: Any) -> Reading | None:
    """How the answers of an agent are read; None where ADK does."""
    return agent.__dict__.get(_READING)


@cache
def _class_that_reads(kind: type[LlmAgent]) -> type[LlmAgent]:
    body = {name: getattr(kind, name) for name in ("__module__", "__qualname__", "__doc__")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pydantic's, about names the model has of its own
        return types.new_class(
            kind.__name__, (_Reads, kind), exec_body=lambda space: space.update(body)
        )


def keep_waits(changes: dict[str, Any], waits: set[str], agent: BaseAgent, *, below: bool) -> None:
    """Let the agents of a step know which calls have no answer yet, where one may want to.

    Without that, the context of the run does for the step, and is not copied.

    Args:
        changes: What the step's context has and that of the run has not.
        waits: The calls.
        agent: Who runs in the step.
        below: Whether agents that it hands over to may run there, too.
    """
    alone = isinstance(agent, LlmAgent) and not (below or agent.sub_agents)
    if not alone or reading_of(agent) is not None:
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
        waits: set[str] | None = ctx.__dict__.get(_WAITS)  # none in a tool, which nobody can answer
        unanswerable = False
        correcting = _Correcting()
        self._flow.request_processors.append(correcting)
        for left in range(self._reading.retries, -1, -1):
            invalid: OutputInvalidError | None = None
            said = ""
            async with aclosing(self._flow.run_async(ctx)) as events:
                async for event in events:
                    if not event.partial and event.author == self._agent:
                        if waits is not None:
                            waits.update(event.long_running_tool_ids or ())
                        elif event.long_running_tool_ids:
                            unanswerable = True
                        said = text(event) or ""
                        invalid = None if waits else self._read(event, left)
                    yield event
                    if invalid is not None and not left and self._reading.writes:
                        if unanswerable:
                            invalid.help = _UNANSWERABLE
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
        event.content.parts = [genai.Part(text=inside.strip())]


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
                request.contents.append(genai.ModelContent(said))
            behind = at + 1
            request.contents.insert(behind, genai.UserContent(told))
        for event in ():
            yield event


def _text(content: genai.Content) -> str:
    return "".join(p.text for p in content.parts or () if p.text and not p.thought)
