"""Turns of a conversation, the tool calls expected in them, and users who are simulated."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from adk_fluent.eval._arguments import is_text, positive, require, require_type
from adk_fluent.eval._errors import EvalError
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from google.adk.models import BaseLlm

    from adk_fluent.protocol import FieldRef, RunStatus

#: How a turn's tool calls are compared with the expected ones.
TrajectoryMatch = Literal["exact", "in_order", "any_order", "subset", "f1"]
MATCHES: Final[tuple[str, ...]] = get_args(TrajectoryMatch)

#: Keys of state (str or typed references) to values or conditions. No checker accepts a mapping of
#: one kind of key where a mapping of both kinds is declared, hence Any.
StateMap: TypeAlias = Mapping[Any, Any | Callable[[Any], bool]]
#: A user message: text, a Content or Part of google.genai, or a list of texts and Parts.
Message: TypeAlias = Any
#: Texts or patterns that an answer must contain.
Contains: TypeAlias = "str | re.Pattern[str] | Sequence[str | re.Pattern[str]] | None"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """An expected tool call.

    Attributes:
        name: The tool.
        args: Arguments that the call must have, among others; each a value, or a function that
            returns whether the argument is acceptable. None accepts any arguments.
    """

    name: str
    args: Mapping[str, Any | Callable[[Any], bool]] | None = None

    def __post_init__(self) -> None:
        name = self.name
        require(is_text(name), "ToolCall(name) must be the name of a tool", name)
        if self.args is not None:
            what = f"ToolCall({name!r}, args) takes a mapping of arguments"
            help = f'write ToolCall("{name}", {{"name": value}})'
            require_type(self.args, Mapping, what, help=help)

    @classmethod
    def of(cls, value: str | ToolCall) -> ToolCall:
        """Return a call from its name, or the call itself.

        Raises:
            EvalError: The value is neither.
        """
        if isinstance(value, ToolCall):
            return value
        require_type(value, str, "expected_trajectory= takes names of tools and ToolCalls")
        return cls(value)


@dataclass(slots=True)
class Turn:
    """One turn: what the user says, and what is expected of the answer.

    Attributes:
        input: Text, a Content or Part of `google.genai`, or a list of texts and Parts.
        expected_trajectory: The tool calls of this turn; None does not check them, an empty list
            allows none.
        reference_response: The reference answer, for ROUGE and judges.
        expected_response_contains: Texts the answer must contain (case-insensitive), or patterns it
            must match.
        state_assertions: As `FluentCase.state_assertions`, after this turn.
        rubrics: As `FluentCase.rubrics`, for this turn.
        expected_status: As `FluentCase.expected_status`, of this turn's run.
    """

    input: Message
    expected_trajectory: Sequence[str | ToolCall] | None = None
    reference_response: str | None = None
    expected_response_contains: Contains = None
    state_assertions: StateMap | None = None
    rubrics: Sequence[str] = ()
    expected_status: RunStatus | None = None

    @property
    def trajectory(self) -> tuple[ToolCall, ...] | None:
        """The expected calls; None if they are not checked."""
        expected = self.expected_trajectory
        return None if expected is None else tuple(ToolCall.of(each) for each in expected)

    @property
    def contains(self) -> tuple[str | re.Pattern[str], ...]:
        """The texts and patterns the answer must contain."""
        return contains_of(self.expected_response_contains)


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
            what = "a user is simulated by a model or by a script"
            help = "UserSimulation(model=...) or UserSimulation(script=[...])"
            raise EvalError(what, found="neither" if self.model is None else "both", help=help)
        given: Any = self.script
        help = f"write script=[{given!r}]" if isinstance(given, str) else None
        require_type(given, list | tuple | None, "script= must be a list", help=help)
        require(all(map(is_text, given or ())), "script= must be a list of texts", given)
        criteria, persona = self.success_criteria, self.persona
        valid = criteria is None or is_text(criteria)
        require(valid, "success_criteria= must be a text", criteria)
        require(is_text(self.stop_signal), "stop_signal= must be a text", self.stop_signal)
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


def turn_of(given: Turn | Message) -> Turn:
    """Return a turn, or a message as one."""
    return given if isinstance(given, Turn) else Turn(given)


def statuses() -> tuple[str, ...]:
    """Return the statuses that a run may have."""
    from adk_fluent.protocol import RunStatus  # noqa: PLC0415  # slow to import, seldom needed

    return get_args(RunStatus)


def contains_of(value: Contains) -> tuple[str | re.Pattern[str], ...]:
    """Return one or several texts and patterns as a tuple."""
    if value is None:
        return ()
    items = cast("Sequence[Any]", value if isinstance(value, list | tuple) else [value])
    for each in items:
        text: Any = cast("re.Pattern[Any]", each).pattern if isinstance(each, re.Pattern) else each
        what = "expected_response_contains= takes non-empty texts and patterns"
        help = 'such as ["ticket", re.compile(r"T-\\d+")]'
        require(isinstance(text, str) and text, what, cast("object", each), help=help)
    return tuple(items)


def key_of(key: str | FieldRef) -> str:
    """Return the state key of a str or a typed reference."""
    if isinstance(key, str):
        return key
    # isinstance with the protocol would evaluate the default, which may be a factory
    name: Any = getattr(key, "key", None)
    if isinstance(name, str) and hasattr(key, "scope"):
        return name
    what = "keys of state are texts and typed references"
    raise EvalError(what, found=describe(key), help='such as "intent" or BillingState.intent')


def parts_of(message: Message) -> Iterator[Any]:
    """Yield the texts and Parts of a message."""
    if isinstance(message, list | tuple):
        for each in cast("list[Any]", message):
            yield from parts_of(each)
    elif (parts := getattr(message, "parts", None)) is not None:
        yield from parts
    else:
        yield message


def text_of(message: Message) -> str:
    """Return a message as text, media by their type, as ``[image/png]``."""
    return " ".join(filter(None, map(_part_text, parts_of(message))))


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if text := getattr(part, "text", None):
        return str(text)
    data = _media(part)
    return "" if data is None else f"[{getattr(data, 'mime_type', None) or 'file'}]"


def _media(part: Any) -> Any:
    """The Blob or FileData of a Part; None if it has none."""
    names = ("inline_data", "file_data")
    return next((data for name in names if (data := getattr(part, name, None)) is not None), None)


def media_digests(message: Message) -> list[str]:
    """Return what identifies each medium of a message: a digest of its bytes, or its address."""
    from hashlib import sha256  # noqa: PLC0415  # loads OpenSSL, rarely needed

    found: list[str] = []
    for data in filter(None, map(_media, parts_of(message))):
        raw = getattr(data, "data", None)
        address = getattr(data, "file_uri", None)
        found.append(sha256(raw).hexdigest() if isinstance(raw, bytes) else str(address))
    return found
