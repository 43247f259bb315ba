"""A case: what is said, and what is expected of what comes back."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

from adk_fluent._caller import caller
from adk_fluent.errors import nearest_name
from adk_fluent.eval._cases._case_check import check_case
from adk_fluent.eval._cases._turn import (
    MATCHES,
    Message,
    Rubric,
    ToolCall,
    TrajectoryMatch,
    Turn,
    key_of,
    media_of,
    text_of,
    texts_of,
)
from adk_fluent.eval._checks._same import plain
from adk_fluent.eval._errors import EvalError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Unpack

    from google.adk.sessions import Session
    from google.genai.types import Content, Part

    from adk_fluent.eval._cases._simulation import UserSimulation
    from adk_fluent.eval._cases._turn import StateMap

__all__ = [
    "MATCHES",
    "CaseFields",
    "FluentCase",
    "Message",
    "Rubric",
    "ToolCall",
    "TrajectoryMatch",
    "Turn",
    "check_fields",
    "key_of",
    "text_of",
    "texts_of",
]


class CaseFields(TypedDict, total=False):
    """Fields of a `FluentCase` beside its input, as keyword arguments."""

    expected_trajectory: Sequence[str | ToolCall] | None
    trajectory_match: TrajectoryMatch
    expected_response_contains: str | re.Pattern[str] | Sequence[str | re.Pattern[str]] | None
    reference_response: str | None
    mock_tool_outputs: Mapping[str, Any] | None
    initial_state: StateMap | None
    state_assertions: StateMap | None
    target_node: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    id: str | None
    rubrics: Sequence[str | Rubric]
    simulation: UserSimulation | None
    max_cost_usd: float | None
    max_tokens: int | None
    max_latency_s: float | None
    max_tool_calls: int | None
    timeout_s: float | None
    skip: str | None
    xfail: str | None
    location: tuple[str, int] | None


class SessionFields(CaseFields, total=False):
    """Fields of a case that is made of a session."""

    input: str | Turn | Content | Part | Sequence[str | Turn | Content]


_SLUG: Final = re.compile(r"[^a-z0-9]+")
_SLUG_LENGTH: Final = 40
_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]+")


@dataclass(slots=True)
class FluentCase:
    """One case of a suite.

    What is expected of the answer (`expected_trajectory`, `expected_response_contains`,
    `reference_response`) is expected of the last turn; turns before it say it with `Turn`.

    Attributes:
        input: What the user says: text, a Content, a `Turn`, or several turns as a list of those.
        expected_trajectory: The calls of tools; None is not checked, an empty list allows none.
        trajectory_match: How they are compared: ``exact`` (these, in this order), ``in_order``
            (these in this order, others between), ``any_order`` (these, others among them),
            ``subset`` (no others than these), or ``f1`` (as many of these and as few others as the
            threshold of the metric says).
        expected_response_contains: Texts that the answer has, in upper or lower case, or a pattern
            that is found in it.
        reference_response: The answer as it should be, for metrics that compare.
        mock_tool_outputs: Tool to what it answers without being called: a value; a function of its
            arguments; an exception, which it raises; or a list of those, one for each call.
        initial_state: State that the session starts with.
        state_assertions: Key to the value that it has in the end, or a function that returns
            whether it will do. A key that is absent is None, or the default of a typed one; no
            condition is met by what is absent.
            ``"step.key"`` is what that step wrote to it last.
        target_node: The part of the pipeline that is run; None runs all of it.
        tags: For choosing cases, and for figures by tag.
        metadata: Data of your own; plain, so that it can be written to files.
        id: The case's name; None makes one of the input, the same each time.
        rubrics: What a judge looks for.
        simulation: Who plays the user after the first turn; None is the suite's.
        max_cost_usd: US dollars that the run may cost.
        max_tokens: Tokens that it may take.
        max_latency_s: Seconds that it may take and still pass.
        max_tool_calls: Calls of tools that it may make.
        timeout_s: Seconds after which the run is ended; None is the suite's.
        skip: Why the case is not run; None runs it.
        xfail: Why it is expected to fail; None expects that it passes.
        location: The source line that made it.
    """

    input: str | Turn | Content | Part | Sequence[str | Turn | Content]
    expected_trajectory: Sequence[str | ToolCall] | None = None
    trajectory_match: TrajectoryMatch = "exact"
    expected_response_contains: str | re.Pattern[str] | Sequence[str | re.Pattern[str]] | None = (
        None
    )
    reference_response: str | None = None
    mock_tool_outputs: Mapping[str, Any] | None = None
    initial_state: StateMap | None = None
    state_assertions: StateMap | None = None
    target_node: str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str | None = None
    rubrics: Sequence[str | Rubric] = ()
    simulation: UserSimulation | None = None
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    max_latency_s: float | None = None
    max_tool_calls: int | None = None
    timeout_s: float | None = None
    skip: str | None = None
    xfail: str | None = None
    location: tuple[str, int] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.location is None:
            self.location = caller()
        check_case(self)
        if self.id is None and isinstance(named := self.metadata.get("id"), str) and named.strip():
            self.id = named  # as the specification names a case

    @classmethod
    def from_session(
        cls, session: Session | str | PathLike[str], **fields: Unpack[SessionFields]
    ) -> FluentCase:
        """A case that says what the user said in a session, and expects what came of it then.

        Args:
            session: ADK's session, or a file with one as JSON, as ``adk web`` exports it.
            **fields: Fields of the case that are to be otherwise.

        Raises:
            EvalError: The user says nothing in it, or a case has no such field.
            EvalFileError: The file is not there, or holds no session.
        """
        from adk_fluent.eval._files._session_adk import (  # noqa: PLC0415  # imports ADK
            case_from_file,
            case_of,
        )

        if isinstance(session, str | PathLike):
            return case_from_file(session, fields)
        return case_of(session, fields)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation, with what the case expects of its last turn put there."""
        given = self.input
        several = isinstance(given, list | tuple)
        items: Sequence[Any] = cast("Sequence[Any]", given) if several else [given]
        *earlier, last = items
        made = [each if isinstance(each, Turn) else Turn(each) for each in earlier]
        return (*made, self._last_turn(last))

    def _last_turn(self, last: Any) -> Turn:
        calls, reference = self.expected_trajectory, self.reference_response
        contains = texts_of(self.expected_response_contains)
        if not isinstance(last, Turn):
            return Turn(last, calls, reference, contains or None)
        return Turn(
            last.input,
            calls if last.expected_trajectory is None else last.expected_trajectory,
            reference if last.reference_response is None else last.reference_response,
            (*last.contains, *contains) or None,
            last.state_assertions,
            last.rubrics,
        )

    @property
    def name(self) -> str:
        """The id: the one that was given, or one made of what the case says."""
        return self.id if self.id is not None else self._made_id()

    @property
    def place(self) -> str | None:
        """The source line that made it, as ``file:line``."""
        return None if self.location is None else f"{self.location[0]}:{self.location[1]}"

    def _made_id(self) -> str:
        import hashlib  # noqa: PLC0415  # cases with an id of their own need none of OpenSSL

        turns = self.turns
        said = [text_of(turn.input) for turn in turns]
        media = [each for turn in turns for each in media_of(turn.input)]
        state = {key_of(key): plain(value) for key, value in (self.initial_state or {}).items()}
        shown = json.dumps([said, media, self.target_node, state], sort_keys=True)
        # objects without a repr of their own are told by where they happen to be
        digest = hashlib.sha256(_ADDRESS.sub("", shown).encode()).hexdigest()[:8]
        slug = _SLUG.sub("-", said[0].lower())[:_SLUG_LENGTH].strip("-")
        return f"{slug}-{digest}" if slug else digest

    def error(self, what: str, *, found: str | None = None, help: str | None = None) -> EvalError:
        """An error about this case, with the line that made it."""
        named = f" {self.id!r}" if isinstance(self.id, str) and self.id else ""
        return EvalError(f"case{named}: {what}", location=self.place, found=found, help=help)


def check_fields(names: Iterable[str]) -> None:
    """Look whether a case has fields of these names.

    Raises:
        EvalError: It has none of one of them.
    """
    known = FluentCase.__dataclass_fields__
    for name in names:
        if name not in known:
            near, place = nearest_name(name, known), caller()
            raise EvalError(
                f"a case has no field {name!r}",
                location=None if place is None else f"{place[0]}:{place[1]}",
                help=f"did you mean {near!r}?" if near else None,
            )
