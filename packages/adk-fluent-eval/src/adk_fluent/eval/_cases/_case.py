"""Cases: what the user says, and what is expected of the run."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.eval import _arguments as check
from adk_fluent.eval._cases import _turn
from adk_fluent.eval._cases._turn import Contains, StateMap, ToolCall, Turn, UserSimulation
from adk_fluent.eval._errors import EvalError
from adk_fluent.extend import caller, describe, error_line

if TYPE_CHECKING:
    from google.adk.sessions import Session
    from google.genai.types import Content, Part

    from adk_fluent.protocol import RunStatus


_SLUG: Final = re.compile(r"[^a-z0-9]+")
_SLUG_LENGTH: Final = 40
#: Optional fields, what holds of each, and what they must be.
_RULES: Final[tuple[tuple[str, Callable[[Any], bool], str], ...]] = (
    ("id", check.is_text, "a name"),
    ("mock_tool_outputs", check.is_mapping, "a mapping of tools to mocks"),
    ("answers", check.is_mapping, "a mapping of gates and tools to answers"),
    ("initial_state", check.is_mapping, "a mapping of keys to values"),
    ("target_node", check.is_text, "the name of a step"),
    ("skip", check.is_text, "a reason"),
    ("xfail", check.is_text, "a reason"),
    ("max_cost_usd", check.is_limit, "a number >= 0"),
    ("max_latency_s", check.is_limit, "a number >= 0"),
    ("timeout_s", lambda value: check.is_limit(value) and value > 0, "a number above 0"),
    ("max_tokens", check.is_whole, "a whole number >= 0"),
    ("max_tool_calls", check.is_whole, "a whole number >= 0"),
)
#: What a case expects of its last turn, unless the turn does.
_OWN: Final = ("expected_trajectory", "reference_response", "expected_status")
#: A key, or one of a step, that ADK drops at the end of each invocation.
_TEMPORARY: Final = re.compile(r"(?:[^.]*\.)?temp:")


@dataclass(slots=True)
class FluentCase:
    """One case of a suite.

    The expectations of answers (`expected_trajectory`, `expected_response_contains`,
    `reference_response`, `expected_status`) apply to the last turn; earlier turns state theirs with
    `Turn`.

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
        answers: Name of a gate, or of a tool that asks, to what is answered, as
            ``question.answer(...)`` takes it; a list has one answer for each question. An answer
            that nothing asks for fails the case.
        initial_state: State that the session starts with.
        state_assertions: Key to the value it must have at the end, or a function that returns
            whether the value is acceptable. An absent key is None, or the default of a typed
            reference; a function rejects it. ``"step.key"`` is what that step last wrote to it.
        target_node: The part of the pipeline to run; None runs all of it.
        expected_status: What becomes of the run, as `RunResult.status` says it: ``completed``,
            ``waiting``, ``rejected``, ``truncated``, ``failed`` or ``escalated``. A run that waits,
            breaks off or fails is an error where this is not expected.
        rubrics: What a judge looks for in each answer, such as "It is polite.", for ADK's metrics
            over rubrics.
        simulation: Who goes on with the conversation after `input`; None is the suite's.
            `expected_trajectory` then is that of the whole conversation.
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
    trajectory_match: _turn.TrajectoryMatch = "exact"
    expected_response_contains: Contains = None
    reference_response: str | None = None
    mock_tool_outputs: Mapping[str, Any] | None = None
    initial_state: StateMap | None = None
    state_assertions: StateMap | None = None
    target_node: str | None = None
    rubrics: Sequence[str] = ()
    simulation: UserSimulation | None = None
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
    answers: Mapping[str, Any] | None = None
    expected_status: RunStatus | None = None
    location: tuple[str, int] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.location is None:
            self.location = caller(skip=2)  # this method and __init__
        try:
            _validate(self)
        except EvalError as error:
            raise self.error(error.what, found=error.found, help=error.help) from None
        if self.id is None and isinstance(name := self.metadata.get("id"), str) and name.strip():
            self.id = name  # where the specification puts it

    @classmethod
    def from_session(cls, session: Session, **fields: Any) -> FluentCase:
        """Return the case that a session of ADK was: what was said once is said again.

        Each user message is a turn. The tool calls and the last answer of each become its
        expectations, and the state that the session began with the initial state. Answers to
        questions become its `answers`.

        Args:
            session: The session, with its events.
            **fields: Fields of the case that are different.

        Raises:
            EvalError: The user says nothing in the session, or a field is invalid.
        """
        from adk_fluent.eval._files._session_adk import captured  # noqa: PLC0415  # imports ADK

        return cls(**{**captured(session), **fields})

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation, the last turn with the case's own expectations."""
        given: Any = self.input
        items = cast("Sequence[Any]", given if isinstance(given, list | tuple) else (given,))
        *earlier, last = map(_turn.turn_of, items)
        own = {name: getattr(self, name) for name in _OWN if getattr(last, name) is None}
        contains = (*last.contains, *_turn.contains_of(self.expected_response_contains)) or None
        return (*earlier, replace(last, expected_response_contains=contains, **own))

    @property
    def name(self) -> str:
        """The id, or the one made from the input."""
        return self.id if self.id is not None else self._made_id()

    @property
    def place(self) -> str | None:
        """The source line that created it, as ``file:line``."""
        return None if self.location is None else f"{self.location[0]}:{self.location[1]}"

    def _made_id(self) -> str:
        from adk_fluent.eval._digest import digest_of  # noqa: PLC0415  # loads OpenSSL; cases with an id need none

        messages = [turn.input for turn in self.turns]
        said = [_turn.text_of(each) for each in messages]
        media = [digest for each in messages for digest in _turn.media_digests(each)]
        state = {_turn.key_of(key): value for key, value in (self.initial_state or {}).items()}
        digest = digest_of([said, media, self.target_node, state])[:8]
        slug = _SLUG.sub("-", said[0].lower())[:_SLUG_LENGTH].strip("-")
        return f"{slug}-{digest}" if slug else digest

    def error(self, what: str, *, found: str | None = None, help: str | None = None) -> EvalError:
        """Return an error about this case, with the line that created it."""
        name = f" {self.id!r}" if isinstance(self.id, str) and self.id else ""
        return EvalError(f"case{name}: {what}", location=self.place, found=found, help=help)


def check_cases(cases: Iterable[FluentCase]) -> None:
    """Check that all are cases, each with an id of its own."""
    known: dict[str, FluentCase] = {}
    for case in cases:
        check_case(case, known)


def check_case(case: FluentCase, known: dict[str, FluentCase]) -> None:
    """Check that a case has an id of its own, and add it to those that are known."""
    check.require_type(case, FluentCase, "cases= takes FluentCases")
    if (other := known.get(name := case.name)) is not None:
        help = "give each its own id; to run each case twice: num_runs=2"
        found = f"the other is at {other.place}"
        raise case.error(f"two cases have the id {name!r}", found=found, help=help)
    known[name] = case


def initial_state(case: FluentCase) -> dict[str, Any]:
    """Return a fresh copy of the state a case starts with, as it is stored."""
    made: dict[str, Any] = {}
    for ref, value in (case.initial_state or {}).items():
        key = _turn.key_of(ref)
        encode = copy.deepcopy if key is ref else getattr(ref, "encode", copy.deepcopy)
        try:
            made[key] = encode(value)
        except Exception as error:
            what = f"initial_state= has an invalid value for {key!r}"
            raise case.error(what, found=error_line(error)) from error
    return made


def simulation_of(case: FluentCase, simulation: UserSimulation | None) -> UserSimulation | None:
    """Return who simulates the user of a case: its own, or the suite's for one message."""
    if simulation is None:
        return case.simulation
    return case.simulation or (simulation if len(case.turns) == 1 else None)


# --- validation ----------------------------------------------------------------------------------


def _validate(case: FluentCase) -> None:
    """Check every field of a case that is given."""
    if case.metadata != {}:
        check.require_type(case.metadata, Mapping, "metadata= must be a mapping")
    for name, holds, what in _RULES:
        if (value := getattr(case, name)) is not None and not holds(value):
            raise EvalError(f"{name}= must be {what}", found=describe(value))
    for tool in case.mock_tool_outputs or ():
        what = "keys of mock_tool_outputs= are names of tools"
        check.require(check.is_text(tool), what, tool)
    if case.answers:
        _check_answers(case.answers)
    _check_not_temporary("initial_state", case.initial_state)
    match = case.trajectory_match
    if match not in _turn.MATCHES:
        raise EvalError(f"unknown trajectory_match={match!r}", help=check.one_of(_turn.MATCHES))
    _check_texts("tags", case.tags)
    _check_expectations(case)
    _check_input(case)
    if case.simulation is not None:
        check.require_type(case.simulation, UserSimulation, "simulation= takes a UserSimulation")
        alone = len(case.turns) == 1
        check.require(alone, "simulation= takes one message as input=, and continues from it")


def _check_answers(given: Mapping[Any, Any]) -> None:
    from adk_fluent.extend import storage_fault  # noqa: PLC0415  # imports backends and logging

    for name, value in given.items():
        check.require(check.is_text(name), "keys of answers= are names of gates and tools", name)
        if value in ([], ()):
            what = f"answers= has none for {name!r}"
            help = "a list has one answer for each question; [[]] answers one with []"
            raise EvalError(what, found="an empty list", help=help)
        if fault := storage_fault(value):
            what = f"answers= has what JSON cannot hold: answers[{name!r}]{fault.path} {fault.says}"
            raise EvalError(what, help="of a pydantic model give model_dump(mode='json')")


def _check_expectations(of: FluentCase | Turn) -> None:
    _check_texts("rubrics", of.rubrics)
    if (status := of.expected_status) is not None:
        known = _turn.statuses()
        what = f"unknown expected_status={status!r}"
        check.require(
            status in known, what, help=check.did_you_mean(str(status), known, check.one_of(known))
        )
    if of.expected_trajectory is not None:
        for call in _items("expected_trajectory", of.expected_trajectory):
            if not check.is_text(call):
                ToolCall.of(call)
    if of.expected_response_contains is not None:
        _turn.contains_of(of.expected_response_contains)
    if of.reference_response is not None:
        check.require_type(of.reference_response, str, "reference_response= must be a text")
    if of.state_assertions is not None:
        what = "state_assertions= must be a mapping of keys to values"
        check.require_type(of.state_assertions, Mapping, what)
        _check_not_temporary("state_assertions", of.state_assertions)


def _check_not_temporary(name: str, keys: StateMap | None) -> None:
    for key in map(_turn.key_of, keys or ()):
        if _TEMPORARY.match(key):
            what = f"{name}= has the key {key!r}, which no session keeps"
            found = "ADK drops keys with 'temp:' at the end of an invocation"
            raise EvalError(what, found=found, help="use a key without 'temp:'")


def _check_texts(name: str, value: Any) -> None:
    for each in _items(name, value):
        check.require(check.is_text(each), f"{name}= takes texts", each)


def _items(name: str, value: Any) -> Sequence[Any]:
    """Return the items of a list argument."""
    if isinstance(value, list | tuple):
        return cast("Sequence[Any]", value)
    help = f"write {name}=[{value!r}]" if isinstance(value, str) else None
    raise EvalError(f"{name}= must be a list", found=describe(value), help=help)


def _check_input(case: FluentCase) -> None:
    given: Any = case.input
    if isinstance(given, str) and given.strip():  # as most are
        return
    several = isinstance(given, list | tuple)
    turns = cast("Sequence[Any]", given) if several else (given,)
    check.require(turns, "input= is empty", help="give input= a text")
    for number, turn in enumerate(turns, 1):
        try:
            if isinstance(turn, Turn):
                _check_expectations(turn)
                _check_message(turn.input)
            elif isinstance(turn, list | tuple) or (several and _is_part(turn)):
                what = "a list is one turn after the other, and a Part is not a turn"
                help = "write input=Turn([text, part]) for one message of several parts"
                raise EvalError(what, found=describe(cast("object", turn)), help=help)
            else:
                _check_message(turn)
        except EvalError as error:
            if several:
                error.what = f"turn {number}: {error.what}"
            raise
    last = turns[-1]
    for name in _OWN:
        if isinstance(last, Turn) and None not in (getattr(case, name), getattr(last, name)):
            raise EvalError(f"{name}= is set on the case and on its last turn", help="set one")


def _check_message(message: Any) -> None:
    parts = [*_turn.parts_of(message)]
    for each in parts:
        what = "a user message is a text, or a Content or Part of google.genai"
        check.require(isinstance(each, str) or _is_part(each), what, each)
    said = any(not isinstance(each, str) or each.strip() for each in parts)
    check.require(said, "input= is empty", message, help="give input= a text")


def _is_part(value: Any) -> bool:
    """Whether a value looks like a Part of google.genai, which is not imported for it."""
    return hasattr(value, "inline_data") and hasattr(value, "text")
