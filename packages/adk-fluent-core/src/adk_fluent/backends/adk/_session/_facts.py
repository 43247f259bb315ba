"""What events of ADK's agents say: to the engine, and as an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.genai.types import FinishReason

from adk_fluent.backends._config import METADATA_KEY
from adk_fluent.backends.adk._caps import SAID_NOTHING
from adk_fluent.backends.adk._session._events import (
    REQUEST_CONFIRMATION,
    REQUEST_CREDENTIAL,
    REQUEST_INPUT,
)
from adk_fluent.backends.adk._session._stamps import stamp_of
from adk_fluent.errors import OutputInvalidError
from adk_fluent.flow import Facts
from adk_fluent.ir import UNSET
from adk_fluent.protocol import Data

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.events.event import Event
    from google.genai.types import Part

    from adk_fluent.backends._answers import Answer
    from adk_fluent.backends.adk._session._stamps import Stamp

#: The calls with which something else is asked for than the result of a tool.
_KINDS: Final = {
    REQUEST_INPUT: "input",
    REQUEST_CONFIRMATION: "confirmation",
    REQUEST_CREDENTIAL: "auth",
}
_OUTPUT: Final = "_adk_fluent_output"
#: Ends of an answer that are none to report.
_ENDS: Final = (None, FinishReason.STOP, FinishReason.FINISH_REASON_UNSPECIFIED)


def facts(event: Event) -> Facts | None:
    """What the engine must know of an event; None for a plain one."""
    actions, waits = event.actions, event.long_running_tool_ids
    stamp: Stamp = (stamp_of(event) if event.custom_metadata else None) or {}
    settled = stamp.get("settled", ())
    stop = stamp.get("why") == "refused"  # in a flow below this one, or elsewhere
    if not (
        actions.state_delta
        or actions.escalate
        or actions.transfer_to_agent
        or event.partial
        or event.error_code
        or waits
        or settled
        or stop
    ):
        return None
    error = None if event.error_code == SAID_NOTHING else event.error_code
    if error and event.error_message:
        error = f"{error}: {event.error_message}"
    calls = event.get_function_calls() if waits and not event.partial else ()
    return Facts(
        delta=None if event.partial else actions.state_delta,
        partial=bool(event.partial),
        escalate=bool(actions.escalate),
        transfers=bool(actions.transfer_to_agent),
        error=error or None,
        stop=stop,
        settled=settled,
        waits={
            c.id: _KINDS.get(c.name or "", "tool") for c in calls if c.id and c.id in (waits or ())
        },
    )


def answer(event: Event) -> str | Data | None:
    """The text of an event that is a final answer, or its data, else None."""
    stamp = stamp_of(event) if event.custom_metadata else None
    if stamp is not None and "output" in stamp:
        return Data(stamp["output"])
    return text(event)


def text(event: Event) -> str | None:
    """The text of an event that is a final answer, and not said besides one, else None."""
    if event.partial or not event.is_final_response():
        return None
    if event.custom_metadata and (stamp_of(event) or {}).get("besides"):
        return None
    if event.content is None:
        spoken = event.output_transcription  # in a live run
        return None if spoken is None else spoken.text
    return "".join(p.text for p in event.content.parts or () if p.text and not p.thought)


def put_out(answer: Answer, event: Event) -> OutputInvalidError | None:
    """Write what an agent answers; gives the error of an answer that does not fit.

    2.x puts all the agent said in the turn under its key, also what stood beside tool calls;
    1.x leaves out what a callback answered, and 1.25 blanks the key when a tool ends a loop or
    a call waits for an answer.
    """
    said = text(event)
    if said is None:
        return None
    delta, key, of_tools = event.actions.state_delta, answer.text_key, _is_of_tools(event)
    if key is not None and of_tools and delta.get(key) == "":
        del delta[key]
    if (key is not None and not said) or (key is None and of_tools):
        return None  # ADK has written an empty text; what stands beside a call is no answer
    try:
        data = answer.data(said)
    except OutputInvalidError as error:
        if event.finish_reason not in _ENDS:
            error.help = f"the answer broke off in the middle: {event.finish_reason.value}"
        return error
    delta.update(answer.written(said, data))
    if data is not UNSET:
        give_output(event, data)
    return None


def give_output(event: Event, output: Any) -> None:
    """Let an event tell what is answered with it as data, which becomes `AgentEvent.output`.

    Args:
        event: The answer of an agent, that it is about to put out.
        output: The data, as JSON has it.
    """
    metadata, stamp = event.custom_metadata or {}, stamp_of(event)
    if stamp is None:  # its step marks it
        event.custom_metadata = {**metadata, _OUTPUT: output}
    else:
        event.custom_metadata = {**metadata, METADATA_KEY: {**stamp, "output": output}}


def take_output(event: Event, stamp: Stamp) -> Stamp:
    """What an event is marked with, with what `give_output` let it tell."""
    metadata = event.custom_metadata
    if not metadata or _OUTPUT not in metadata:
        return stamp
    return {**stamp, "output": metadata.pop(_OUTPUT)}


def unsaid(event: Event) -> None:
    """Take away the words that ADK 2.x makes of what stands for a result until a person answers.

    It does so where an agent is the tool, and takes them for the caller's answer.
    """
    asked, content = event.actions.requested_tool_confirmations, event.content
    if not asked or content is None or event.partial:
        return
    kept: list[Part] = []
    waits = False
    for part in content.parts or ():
        if part.function_response is not None:
            waits = part.function_response.id in asked
        elif waits and part.text is not None:
            continue
        kept.append(part)
    content.parts = kept


def unwritten(event: Event, agent: BaseAgent) -> None:
    """Take away what ADK writes of words that are said while an answer is waited for.

    Args:
        event: An event of the agent's, or of one below it.
        agent: The agent.
    """
    delta = event.actions.state_delta
    author: Any = agent.find_agent(event.author) if delta else None
    key = getattr(author, "output_key", None)
    if key in delta and (not event.get_function_responses() or delta[key] == ""):
        del delta[key]


class Leaving:
    """Lets the results of tools be the last event of an agent that leaves the loop around it.

    ADK asks the model once more what it makes of them, unless the tool that escalates sets
    `skip_summarization`, too, as ``exit_loop`` does. What agents do that were not built here, or
    stand in a flow below, is left to whatever runs them.

    Args:
        built: The agents that were built here, by name.
        in_loop: Whether there is a loop around the agent.
    """

    __slots__ = ("_built", "_escalated", "_in_loop")

    def __init__(self, built: Container[str], in_loop: Callable[[], bool]) -> None:
        self._built = built
        self._in_loop = in_loop
        self._escalated = False

    def take(self, event: Event) -> None:
        """Take in an event before it is passed on."""
        if not (self._escalated or event.actions.escalate):
            return
        if event.author not in self._built or stamp_of(event) is not None:
            return
        self._escalated = self._escalated or self._in_loop()
        if self._escalated and event.get_function_responses():
            event.actions.skip_summarization = True


def report_end(event: Event) -> None:
    """Report an answer that was cut off or blocked in the middle as an error.

    ADK does so where the answer is streamed, or nothing of it came. One that is given again is
    made good.

    Args:
        event: An event of ADK's, which is changed.
    """
    reason = event.finish_reason
    if reason in _ENDS or event.error_code or "retried" in (stamp_of(event) or {}):
        return
    event.error_code = reason.value


def _is_of_tools(event: Event) -> bool:
    return bool(event.get_function_calls() or event.get_function_responses())
