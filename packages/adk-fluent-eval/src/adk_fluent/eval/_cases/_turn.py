"""One turn of a conversation, and what can be expected of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast, get_args

from adk_fluent._words import describe
from adk_fluent.eval._errors import EvalError

if TYPE_CHECKING:
    from adk_fluent.protocol import FieldRef

#: How the calls of a turn are compared with those that are expected.
TrajectoryMatch = Literal["exact", "in_order", "any_order", "subset", "f1"]
MATCHES: Final[tuple[str, ...]] = get_args(TrajectoryMatch)


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that is expected.

    Attributes:
        name: The tool.
        args: Arguments that the call has, among others it may have; each a value that is equal, or
            a function that returns whether it will do. An argument that is absent is None, and
            meets no condition. Without `args` any will do.
    """

    name: str
    args: Mapping[str, Any | Callable[[Any], bool]] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            raise EvalError("a ToolCall names its tool", found=describe(self.name))
        if self.args is not None and not isinstance(self.args, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            raise EvalError(
                f"the arguments of tool {self.name!r} are no mapping",
                found=describe(self.args),
                help=f'write ToolCall("{self.name}", {{"name": value}})',
            )
        for name in self.args or {}:
            if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
                raise EvalError(
                    f"an argument of tool {self.name!r} has no name", found=describe(name)
                )

    @classmethod
    def of(cls, value: str | ToolCall) -> ToolCall:
        """A call from its name, or what is one."""
        if isinstance(value, ToolCall):
            return value
        if isinstance(value, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            return cls(value)
        raise EvalError(
            "an expected trajectory holds something that is no call of a tool",
            found=describe(value),
            help="give names of tools, or ToolCall(name, args)",
        )


@dataclass(frozen=True, slots=True)
class Rubric:
    """One thing that a judge looks for in an answer, or in the use of tools.

    Attributes:
        text: What has to hold, such as ``The answer names the ticket``.
        id: Its name in reports; "" numbers it.
    """

    text: str
    id: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            raise EvalError("a rubric says nothing", found=describe(self.text))
        if not isinstance(self.id, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # of anything
            raise EvalError("the id of a rubric is no name", found=describe(self.id))


#: Keys of state (texts and typed references) and their values, or conditions on them. Type checkers
#: know no mapping of both kinds of keys that also takes a mapping of one.
StateMap: TypeAlias = Mapping[Any, Any | Callable[[Any], bool]]

#: What a user can say in one turn: text, ADK's Content or Part, or a list of texts and Parts.
Message = Any


@dataclass(slots=True)
class Turn:
    """One turn of a conversation: what the user says, and what is expected of the answer.

    Attributes:
        input: Text, a `google.genai` Content or Part, or a list of texts and Parts.
        expected_trajectory: The calls of tools in this turn; None is not checked, an empty list
            allows none.
        reference_response: The answer as it should be, for metrics that compare.
        expected_response_contains: Texts that the answer has, in upper or lower case, or a pattern
            that is found in it.
        state_assertions: As `FluentCase.state_assertions`, when this turn is over.
        rubrics: What a judge looks for in this turn.
    """

    input: Message
    expected_trajectory: Sequence[str | ToolCall] | None = None
    reference_response: str | None = None
    expected_response_contains: str | re.Pattern[str] | Sequence[str | re.Pattern[str]] | None = (
        None
    )
    state_assertions: StateMap | None = None
    rubrics: Sequence[str | Rubric] = ()

    @property
    def trajectory(self) -> tuple[ToolCall, ...] | None:
        """The expected calls; None if they are not checked."""
        expected = self.expected_trajectory
        return None if expected is None else tuple(ToolCall.of(each) for each in expected)

    @property
    def contains(self) -> tuple[str | re.Pattern[str], ...]:
        """What the answer has to contain."""
        return texts_of(self.expected_response_contains)


def texts_of(
    value: str | re.Pattern[str] | Sequence[str | re.Pattern[str]] | None,
) -> tuple[str | re.Pattern[str], ...]:
    """One text or pattern, or several, as several.

    Raises:
        EvalError: There is something else among them, or a text that every answer has.
    """
    if value is None:
        return ()
    several = isinstance(value, list | tuple)
    items: Sequence[Any] = cast("Sequence[Any]", value) if several else [value]
    for each in items:
        is_pattern = isinstance(each, re.Pattern)
        text: Any = cast("re.Pattern[Any]", each).pattern if is_pattern else each
        if not isinstance(text, str) or not text:
            raise EvalError(
                "expected_response_contains= takes texts and patterns",
                found="a pattern that is empty or of bytes" if is_pattern else describe(each),
                help='such as ["ticket", re.compile(r"T-\\d+")]',
            )
    return tuple(items)


def key_of(key: str | FieldRef) -> str:
    """A key of state, also of a typed reference.

    Raises:
        EvalError: It is neither.
    """
    if isinstance(key, str):
        return key
    # isinstance with the protocol would ask for the default, which a function may make
    named: Any = getattr(key, "key", None)
    if isinstance(named, str) and hasattr(key, "scope"):
        return named
    raise EvalError(
        "state is named by keys",
        found=describe(key),
        help='give texts such as "intent", or fields such as BillingState.intent',
    )


def parts_of(message: Message) -> Iterator[Any]:
    """What a message is made of: texts and ADK's Parts."""
    if isinstance(message, list | tuple):
        for each in cast("list[Any]", message):
            yield from parts_of(each)
    elif (parts := getattr(message, "parts", None)) is not None:
        yield from parts
    else:
        yield message


def text_of(message: Message) -> str:
    """What a user says as text: media by their type, as ``[image/png]``."""
    return " ".join(filter(None, map(_part_text, parts_of(message))))


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if text := getattr(part, "text", None):
        return str(text)
    data = _media_of(part)
    return "" if data is None else f"[{getattr(data, 'mime_type', None) or 'file'}]"


def _media_of(part: Any) -> Any:
    """The Blob or FileData of a Part; None if it has none."""
    names = ("inline_data", "file_data")
    return next((data for name in names if (data := getattr(part, name, None)) is not None), None)


def media_of(message: Message) -> list[str]:
    """What tells its media from others: their addresses, or a digest of their bytes."""
    import hashlib  # noqa: PLC0415  # loads OpenSSL, which few cases need

    found: list[str] = []
    for data in filter(None, map(_media_of, parts_of(message))):
        raw = getattr(data, "data", None)
        digest = hashlib.sha256(raw).hexdigest() if isinstance(raw, bytes) else ""
        found.append(digest or str(getattr(data, "file_uri", None)))
    return found
