"""Cases in ADK's words: EvalCases, contents, simulated users, and sessions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.evaluation.conversation_scenarios import ConversationScenario
from google.adk.evaluation.eval_case import EvalCase, IntermediateData, SessionInput
from google.adk.evaluation.eval_rubrics import Rubric, RubricContent
from google.adk.evaluation.simulation.llm_backed_user_simulator import LlmBackedUserSimulatorConfig
from google.adk.sessions.session import Session
from google.genai.types import Content, FunctionCall
from pydantic import ValidationError

from adk_fluent.backends.adk import to_content
from adk_fluent.eval._arguments import require_type
from adk_fluent.eval._cases._case import FluentCase, initial_state, simulation_of
from adk_fluent.eval._cases._turn import Message, ToolCall, Turn, UserSimulation, key_of, text_of
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._values import plain
from adk_fluent.extend import is_journal_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.adk.events.event import Event

    from adk_fluent.eval._files._source import At, Source

_USER: Final = "user"
_REQUEST: Final = "adk_request_"  # how ADK asks the user; not a tool
_TEMPORARY: Final = "temp:"


def to_eval_case(
    case: FluentCase, *, app_name: str, user_id: str, simulation: UserSimulation | None = None
) -> EvalCase:
    """Return a case as ADK's EvalCase, without what ADK has no field for.

    Args:
        case: The case.
        app_name: The app of its session.
        user_id: The user of its session.
        simulation: The user of cases with one message and no simulation of their own.
    """
    final: dict[str, Any] = {}
    for ref, value in (case.state_assertions or {}).items():
        if not callable(value) and "." not in (key := key_of(ref)):
            final[key] = plain(value)
    fields: dict[str, Any] = {}
    if (user := simulation_of(case, simulation)) is None:
        fields["conversation"] = [_invocation(turn, n) for n, turn in enumerate(case.turns, 1)]
    else:
        fields["conversation_scenario"] = scenario_of(case, user)
    if case.rubrics:
        fields["rubrics"] = _rubrics(case.rubrics)
    session = {"app_name": app_name, "user_id": user_id, "state": initial_state(case)}
    made = EvalCase(eval_id=case.name, **fields, session_input=cast("SessionInput", session))
    if final:
        made.final_session_state = final
    return made


def _invocation(turn: Turn, number: int) -> dict[str, Any]:
    """An Invocation, as pydantic makes it much faster inside another object than alone."""
    fields: dict[str, Any] = {}
    if turn.expected_trajectory is not None:
        uses = [_function_call(each) for each in turn.expected_trajectory]
        fields["intermediate_data"] = IntermediateData(tool_uses=uses)
    if (reference := turn.reference_response) is not None:
        fields["final_response"] = _content("model", reference)
    if turn.rubrics:
        fields["rubrics"] = _rubrics(turn.rubrics)
    said = turn.input
    fields["user_content"] = _content("user", said) if isinstance(said, str) else to_content(said)
    return fields | {"invocation_id": f"turn-{number}"}


def _content(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"text": text}]}


def _rubrics(texts: Sequence[str]) -> list[Rubric]:
    return [
        Rubric(rubric_id=f"rubric_{n}", rubric_content=RubricContent(text_property=text))
        for n, text in enumerate(texts, 1)
    ]


def _function_call(call: str | ToolCall) -> Any:
    """A call with the expected arguments that are values; ADK knows no conditions."""
    if isinstance(call, str):
        return {"name": call, "args": {}}
    args = {name: plain(each) for name, each in (call.args or {}).items() if not callable(each)}
    return {"name": call.name, "args": args}


def tool_calls(calls: Sequence[FunctionCall]) -> list[str | ToolCall]:
    """Return calls as a case expects them."""
    return [
        ToolCall(each.name or "", dict(each.args)) if each.args else each.name or ""
        for each in calls
    ]


def content_data(message: Message) -> dict[str, Any]:
    """Return a message as plain data, ``{role: user, parts: [...]}``."""
    return to_content(message).model_dump(mode="json", exclude_unset=True, exclude_none=True)


def read_content(source: Source, at: At, value: Mapping[str, Any]) -> Content:
    """Return the Content of plain data; media are base64."""
    try:
        made = Content.model_validate_json(json.dumps(value))  # base64 is only read from JSON
    except ValidationError as error:
        raise invalid(source, at, error) from None
    if not made.parts:
        raise source.error(at, "a message is a text or {parts: [...]}")
    return made


def invalid(source: Source, at: At, error: ValidationError) -> Exception:
    """Return the first fault that pydantic found, as an error that names the field."""
    first, *more = error.errors(include_url=False, include_input=False)
    # parts of unions, such as ``list[Part]``, are not in the file
    way = tuple(step for step in first["loc"] if isinstance(step, int) or step.isidentifier())
    count = f", and {len(more)} more" if more else ""
    return source.error((*at, *way), f"{first['msg']}{count}")


def text_or_content(content: Content) -> str | Content:
    """Return the text of a Content that is one text and nothing else, or the Content."""
    parts = content.parts or []
    if len(parts) == 1 and parts[0].text:
        held = {name for name in parts[0].model_fields_set if getattr(parts[0], name) is not None}
        if held == {"text"}:
            return parts[0].text
    return content


def answer_text(content: Content | None) -> str:
    """Return the text of an answer, without thoughts."""
    parts = (content.parts if content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


# --- simulated users -----------------------------------------------------------------------------


def scenario_of(case: FluentCase, simulation: UserSimulation) -> ConversationScenario:
    """Return how a user is simulated, in ADK's words."""
    plan = [simulation.success_criteria or "The user gets what the first message asks for."]
    fields: dict[str, Any] = {}
    persona = simulation.persona
    if not isinstance(persona, str | None) and "user_persona" in ConversationScenario.model_fields:
        fields["user_persona"] = persona
    elif persona is not None:
        plan.insert(0, simulation.persona_text)
    plan += simulation.script or ()
    start = text_of(case.turns[0].input)
    return ConversationScenario(starting_prompt=start, conversation_plan="\n".join(plan), **fields)


def simulation_from(scenario: ConversationScenario, model: str | None = None) -> UserSimulation:
    """Return how ADK would simulate a user; None is ADK's own model."""
    default: Any = LlmBackedUserSimulatorConfig.model_fields["model"].default
    persona = getattr(scenario, "user_persona", None)
    return UserSimulation(model or default, persona, scenario.conversation_plan)


# --- sessions ------------------------------------------------------------------------------------


def captured(session: Session) -> dict[str, Any]:
    """Return the fields of the case that a session was."""
    require_type(session, Session, "from_session() takes a Session of ADK")
    turns: list[Turn] = []
    deltas = [event.actions.state_delta or {} for event in session.events]
    written = {key for delta in deltas for key in delta}
    # what an event wrote over, a session does not have any more
    state = {key: value for key, value in session.state.items() if key not in written}
    for event, delta in zip(session.events, deltas, strict=True):
        if not turns:
            state |= delta
        if (said := _said(event)) is not None:
            turns.append(Turn(text_or_content(said), []))
        elif turns:
            _expect(turns[-1], event)
    if not turns:
        raise EvalError(
            f"the user says nothing in session {session.id!r}",
            found=f"{len(session.events)} events",
            help="load the session with its events",
        )
    made: dict[str, Any] = {"input": turns if len(turns) > 1 else turns[0]}
    state = {
        key: value
        for key, value in state.items()
        if not key.startswith(_TEMPORARY) and not is_journal_key(key)
    }
    return made | ({"initial_state": state} if state else {})


def _said(event: Event) -> Content | None:
    """The texts and media of a user message."""
    if event.author != _USER or event.content is None:
        return None
    parts = [
        part
        for part in event.content.parts or ()
        if part.text or part.inline_data is not None or part.file_data is not None
    ]
    return Content(role=_USER, parts=parts) if parts else None


def _expect(turn: Turn, event: Event) -> None:
    """Add what an event says to the expectations of its turn."""
    if event.partial or event.author == _USER:
        return
    calls = [
        call
        for call in event.get_function_calls()
        if call.name and not call.name.startswith(_REQUEST)
    ]
    turn.expected_trajectory = [*(turn.expected_trajectory or ()), *tool_calls(calls)]
    if event.is_final_response() and (text := answer_text(event.content)):
        turn.reference_response = text
