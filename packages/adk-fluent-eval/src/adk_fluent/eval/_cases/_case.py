"""Cases: what the user says, and what is expected of the run."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast

from adk_fluent.errors import nearest_name
from adk_fluent.eval._cases._turn import (
    Turn,
    contains_of,
    key_of,
    media_digests,
    text_of,
)
from adk_fluent.eval._cases._validation import validate
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._values import error_line, plain
from adk_fluent.extend import caller

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from google.genai.types import Content, Part

    from adk_fluent.eval._cases._turn import Contains, StateMap, ToolCall, TrajectoryMatch


class CaseFields(TypedDict, total=False):
    """The fields of a `FluentCase` other than its input, as keyword arguments."""

    expected_trajectory: Sequence[str | ToolCall] | None
    trajectory_match: TrajectoryMatch
    expected_response_contains: Contains
    reference_response: str | None
    mock_tool_outputs: Mapping[str, Any] | None
    initial_state: StateMap | None
    state_assertions: StateMap | None
    target_node: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    id: str | None
    max_cost_usd: float | None
    max_tokens: int | None
    max_latency_s: float | None
    max_tool_calls: int | None
    timeout_s: float | None
    skip: str | None
    xfail: str | None
    location: tuple[str, int] | None


_SLUG: Final = re.compile(r"[^a-z0-9]+")
_SLUG_LENGTH: Final = 40
_ADDRESS: Final = re.compile(r" at 0x[0-9A-Fa-f]+")
_IMMUTABLE: Final = str | int | float | None


@dataclass(slots=True)
class FluentCase:
    """One case of a suite.

    The expectations of answers (`expected_trajectory`, `expected_response_contains`,
    `reference_response`) apply to the last turn; earlier turns state theirs with `Turn`.

    Attributes:
        input: What the user says: text, a Content, a `Turn`, or a list of those, turn by turn.
        expected_trajectory: The tool calls; None does not check them, an empty list allows none.
        trajectory_match: How they are compared: ``exact`` (these calls in this order),
            ``in_order`` (in this order, others allowed between), ``any_order`` (others allowed),
            ``subset`` (no others than these), or ``f1`` (score by precision and recall).
        expected_response_contains: Texts the answer must contain (case-insensitive), or patterns it
            must match.
        reference_response: The reference answer, for ROUGE and judges.
        mock_tool_outputs: Tool to its mock: a value, a function of the call's arguments, an
            exception that it raises, or a list of those, one for each call.
        initial_state: State that the session starts with.
        state_assertions: Key to the value it must have at the end, or a function that returns
            whether the value is acceptable. An absent key is None, or the default of a typed
            reference; a function rejects it. ``"step.key"`` is what that step last wrote to it.
        target_node: The part of the pipeline to run; None runs all of it.
        tags: For selecting cases, and for figures by tag.
        metadata: Your own data.
        id: The case's name; by default made from the input, stable between runs.
        max_cost_usd: Limit of the run's cost in US dollars.
        max_tokens: Limit of its tokens.
        max_latency_s: Limit of its seconds.
        max_tool_calls: Limit of its tool calls.
        timeout_s: Seconds after which the run is cancelled; None is the suite's.
        skip: Why the case is not run; None runs it.
        xfail: Why the case is expected to fail; None expects it to pass.
        location: The source line that created it.
    """

    input: str | Turn | Content | Part | Sequence[str | Turn | Content]
    expected_trajectory: Sequence[str | ToolCall] | None = None
    trajectory_match: TrajectoryMatch = "exact"
    expected_response_contains: Contains = None
    reference_response: str | None = None
    mock_tool_outputs: Mapping[str, Any] | None = None
    initial_state: StateMap | None = None
    state_assertions: StateMap | None = None
    target_node: str | None = None
    tags: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str | None = None
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
        try:
            validate(self)
        except EvalError as error:
            raise self.error(error.what, found=error.found, help=error.help) from None
        if self.id is None and isinstance(name := self.metadata.get("id"), str) and name.strip():
            self.id = name  # where the specification puts it

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation, the last turn with the case's own expectations."""
        given = self.input
        items = cast("Sequence[Any]", given if isinstance(given, list | tuple) else [given])
        *earlier, last = [each if isinstance(each, Turn) else Turn(each) for each in items]
        calls, reference = last.expected_trajectory, last.reference_response
        return (
            *earlier,
            Turn(
                last.input,
                self.expected_trajectory if calls is None else calls,
                self.reference_response if reference is None else reference,
                (*last.contains, *contains_of(self.expected_response_contains)) or None,
                last.state_assertions,
            ),
        )

    @property
    def name(self) -> str:
        """The id, or the one made from the input."""
        return self.id if self.id is not None else self._made_id()

    @property
    def place(self) -> str | None:
        """The source line that created it, as ``file:line``."""
        return None if self.location is None else f"{self.location[0]}:{self.location[1]}"

    def _made_id(self) -> str:
        from hashlib import sha256  # noqa: PLC0415  # loads OpenSSL; cases with an id need none

        messages = [turn.input for turn in self.turns]
        said = [text_of(each) for each in messages]
        media = [digest for each in messages for digest in media_digests(each)]
        state = {key_of(key): plain(value) for key, value in (self.initial_state or {}).items()}
        identity = json.dumps([said, media, self.target_node, state], sort_keys=True)
        # the repr of some objects has their address
        digest = sha256(_ADDRESS.sub("", identity).encode()).hexdigest()[:8]
        slug = _SLUG.sub("-", said[0].lower())[:_SLUG_LENGTH].strip("-")
        return f"{slug}-{digest}" if slug else digest

    def error(self, what: str, *, found: str | None = None, help: str | None = None) -> EvalError:
        """Return an error about this case, with the line that created it."""
        name = f" {self.id!r}" if isinstance(self.id, str) and self.id else ""
        return EvalError(f"case{name}: {what}", location=self.place, found=found, help=help)


def check_field_names(names: Iterable[str]) -> None:
    """Check names of fields."""
    known = FluentCase.__dataclass_fields__
    for name in names:
        if name not in known:
            near, place = nearest_name(name, known), caller()
            raise EvalError(
                f"FluentCase has no field {name!r}",
                location=None if place is None else f"{place[0]}:{place[1]}",
                help=f"did you mean {near!r}?" if near else None,
            )


def initial_state(case: FluentCase) -> dict[str, Any]:
    """Return a fresh copy of the state a case starts with, as it is stored."""
    made: dict[str, Any] = {}
    for ref, value in (case.initial_state or {}).items():
        encode = None if isinstance(ref, str) else getattr(ref, "encode", None)
        try:
            if encode is not None:
                made[key_of(ref)] = encode(value)
            else:
                immutable = isinstance(value, _IMMUTABLE)
                made[key_of(ref)] = value if immutable else copy.deepcopy(value)
        except Exception as error:
            raise case.error(
                f"initial_state= has an invalid value for {key_of(ref)!r}", found=error_line(error)
            ) from error
    return made
