"""Turns of a conversation, and the tool calls expected in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from adk_fluent.eval._arguments import require, require_type
from adk_fluent.eval._errors import EvalError
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from adk_fluent.protocol import FieldRef

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
        name: Any = self.name
        named = isinstance(name, str) and name
        require(named, "ToolCall(name) must be the name of a tool", name)
        what = f"ToolCall({name!r}, args) takes a mapping of arguments"
        help = f'write ToolCall("{name}", {{"name": value}})'
        require_type(self.args, Mapping | None, what, help=help)

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
    """

    input: Message
    expected_trajectory: Sequence[str | ToolCall] | None = None
    reference_response: str | None = None
    expected_response_contains: Contains = None
    state_assertions: StateMap | None = None
    rubrics: Sequence[str] = ()

    @property
    def trajectory(self) -> tuple[ToolCall, ...] | None:
        """The expected calls; None if they are not checked."""
        expected = self.expected_trajectory
        return None if expected is None else tuple(ToolCall.of(each) for each in expected)

    @property
    def contains(self) -> tuple[str | re.Pattern[str], ...]:
        """The texts and patterns the answer must contain."""
        return contains_of(self.expected_response_contains)


def contains_of(value: Contains) -> tuple[str | re.Pattern[str], ...]:
    """Return one or several texts and patterns as a tuple."""
    if value is None:
        return ()
    items = cast("Sequence[Any]", value if isinstance(value, list | tuple) else [value])
    for each in items:
        text: Any = cast("re.Pattern[Any]", each).pattern if isinstance(each, re.Pattern) else each
        require(
            isinstance(text, str) and text,
            "expected_response_contains= takes non-empty texts and patterns",
            cast("object", each),
            help='such as ["ticket", re.compile(r"T-\\d+")]',
        )
    return tuple(items)


def key_of(key: str | FieldRef) -> str:
    """Return the state key of a str or a typed reference."""
    if isinstance(key, str):
        return key
    # isinstance with the protocol would evaluate the default, which may be a factory
    name: Any = getattr(key, "key", None)
    if isinstance(name, str) and hasattr(key, "scope"):
        return name
    raise EvalError(
        "keys of state are texts and typed references",
        found=describe(key),
        help='such as "intent" or BillingState.intent',
    )


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
        found.append(
            sha256(raw).hexdigest()
            if isinstance(raw, bytes)
            else str(getattr(data, "file_uri", None))
        )
    return found
