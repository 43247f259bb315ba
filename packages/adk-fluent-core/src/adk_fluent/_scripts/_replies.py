"""What a model is asked and what it answers, as plain data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from adk_fluent.protocol import Usage

#: How an answer goes wrong on its way; see `reply`.
Fault = Literal["disconnect", "cut", "truncated", "bad_json", "html", "empty"]

FAULTS: Final = get_args(Fault)

#: Something a script may answer with; also a part of an ADK Content, or a whole LlmResponse.
Answer: TypeAlias = "str | Call | Thought | Reply | Exception | Callable[[Asked], Any] | Any"


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call in a model's reply.

    Attributes:
        name: The tool's name.
        args: Its arguments.
        id: The call's id; None lets ADK choose one.
    """

    name: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str | None = None


@dataclass(frozen=True, slots=True)
class Thought:
    """Text a model thinks but does not say.

    Attributes:
        text: What it thinks.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation as plain text.

    Attributes:
        role: ``user`` or ``model``; tool results, and what other agents said, are the user's.
        text: Its text; calls, results and data are shown in brackets.
    """

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model was asked.

    Attributes:
        turns: The conversation it was given, oldest first.
        system: The system instruction.
        agent: Name of the agent that asks, when known.
        tools: Names of the tools it is offered.
        stream: Whether partial responses were wanted.
        model: Name of the model that is asked, when known.
        config: ADK's GenerateContentConfig, when ADK asks.
        raw: A copy of ADK's LlmRequest, when ADK asks; the `GeminiRequest`, when an emulator is
            asked.
        number: 0 for the first call of the script, and so on.
    """

    turns: tuple[Turn, ...] = ()
    system: str = ""
    agent: str | None = None
    tools: tuple[str, ...] = ()
    stream: bool = False
    model: str | None = None
    config: Any = field(default=None, repr=False, compare=False)
    raw: Any = field(default=None, repr=False, compare=False)
    number: int = -1

    @property
    def prompt(self) -> str:
        """What is new: the text of every turn since this agent's own last one."""
        new: list[str] = []
        for turn in reversed(self.turns):
            if turn.role == "model":
                break
            new.append(turn.text)
        return "\n".join(reversed(new))


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of a model; made by `reply`.

    Attributes:
        parts: Text, thoughts, tool calls and ADK parts, in order.
        chunks: The text as it arrives when streamed; `parts` holds all of it.
        latency: Seconds before the reply; None takes the script's.
        pause: Seconds between chunks.
        usage: Tokens it cost; None takes an estimate of four characters a token.
        finish_reason: Name of the genai FinishReason.
        error_code: Code of a reply that reports an error.
        error_message: Message of that, or of `status`.
        raises: Raised instead of a reply, after the chunks when it is streamed.
        status: HTTP status of the API error that is raised instead of a reply.
        retry_after: Seconds after which that error says to try again.
        fault: How the reply goes wrong on its way, from an emulator.
    """

    parts: tuple[Any, ...] = ()
    chunks: tuple[str, ...] = ()
    latency: float | None = None
    pause: float = 0.0
    usage: Usage | None = None
    finish_reason: str = "STOP"
    error_code: str | None = None
    error_message: str | None = None
    raises: Exception | None = None
    status: int | None = None
    retry_after: float | None = None
    fault: Fault | None = None

    @property
    def text(self) -> str:
        """All it says, thoughts left out."""
        return "".join(part for part in self.parts if isinstance(part, str))


def reply(
    *parts: str | Call | Thought | Any,
    chunks: Sequence[str] = (),
    latency: float | None = None,
    pause: float = 0.0,
    usage: Usage | None = None,
    finish_reason: str = "STOP",
    error_code: str | None = None,
    error_message: str | None = None,
    raises: Exception | None = None,
    status: int | None = None,
    retry_after: float | None = None,
    fault: Fault | None = None,
) -> Reply:
    """A reply that is more than a text.

    Args:
        *parts: Text, `Thought`, `Call`, or a part of google.genai, in order.
        chunks: The text in the pieces in which it is streamed; put before `parts`.
        latency: Seconds before the reply.
        pause: Seconds between chunks.
        usage: Tokens it cost; None takes an estimate of four characters a token.
        finish_reason: Name of the genai FinishReason, such as ``"MAX_TOKENS"``.
        error_code: Reply with an error instead of content, as a blocked prompt does.
        error_message: Message of `error_code` or `status`.
        raises: Raise this; after the chunks, if the reply is streamed.
        status: Raise the API error of this HTTP status, as Gemini's client does; after the chunks,
            if the reply is streamed.
        retry_after: Seconds after which that error says to try again.
        fault: How the answer goes wrong on its way; only a `GeminiEmulator` has one:
            ``disconnect`` (the connection is closed before it), ``cut`` (in the middle of it, of
            the last event if it is streamed), ``truncated`` (it ends there, and seems complete),
            ``bad_json``, ``html`` (a page of some proxy instead of it), ``empty``.

    Raises:
        UsageError: More than one of `raises`, `status`, `error_code` and `parts`; there is no such
            fault; `error_message` or `retry_after` without the error they belong to.
    """
    if isinstance(chunks, str):
        raise UsageError("chunks is one text", help="give a list of texts: chunks=['a', 'b']")
    failures = {"raises": raises, "status": status, "error_code": error_code}
    ways = [name for name, way in failures.items() if way] + (["parts"] if parts else [])
    if len(ways) > 1:
        raise UsageError(
            "a reply either says something or fails in one way", found=" and ".join(ways)
        )
    if fault is not None and fault not in FAULTS:
        raise UsageError(
            "there is no such fault", found=repr(fault), help=f"give one of {', '.join(FAULTS)}"
        )
    if retry_after is not None and status is None:
        raise UsageError("retry_after= belongs to a status", help="reply(status=429, retry_after=)")
    if error_message is not None and status is None and error_code is None:
        raise UsageError("error_message= belongs to an error", help="give status= or error_code=")
    return Reply(
        parts=("".join(chunks), *parts) if chunks else parts,
        chunks=tuple(chunks),
        latency=latency,
        pause=pause,
        usage=usage,
        finish_reason=finish_reason,
        error_code=error_code,
        error_message=error_message,
        raises=raises,
        status=status,
        retry_after=retry_after,
        fault=fault,
    )


@dataclass(frozen=True, slots=True)
class Rule:
    """A reply for certain prompts; made by `rule`.

    Attributes:
        reply: What is answered.
        when: The condition on what was asked; None always holds.
        agent: Only for this agent.
        times: How often the rule may be used; None is without limit.
        model: Only for this model.
    """

    reply: Answer
    when: str | re.Pattern[str] | Callable[[Asked], bool] | None = None
    agent: str | None = None
    times: int | None = None
    model: str | None = None

    def applies(self, asked: Asked) -> bool:
        """Whether the rule is for this."""
        if self.agent is not None and self.agent != asked.agent:
            return False
        if self.model is not None and self.model != asked.model:
            return False
        when = self.when
        if when is None:
            return True
        if isinstance(when, str):
            return when.casefold() in asked.prompt.casefold()
        if isinstance(when, re.Pattern):
            return when.search(asked.prompt) is not None
        return bool(when(asked))


def rule(
    when: str | re.Pattern[str] | Callable[[Asked], bool] | None = None,
    *,
    reply: Answer,
    agent: str | None = None,
    times: int | None = None,
    model: str | None = None,
) -> Rule:
    """Answer certain prompts with `reply`, as often as they come.

    Args:
        when: A text that occurs in `Asked.prompt` (upper or lower case), a pattern that matches
            somewhere in it, or a function of `Asked`.
        reply: What is answered.
        agent: Only for the agent of this name.
        times: How often at most.
        model: Only for the model of this name.
    """
    return Rule(reply, when, agent, times, model)
