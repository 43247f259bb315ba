"""Cases in ADK's words: EvalCases, contents and simulated users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.evaluation.conversation_scenarios import ConversationScenario
from google.adk.evaluation.eval_case import EvalCase, IntermediateData, Invocation
from google.adk.evaluation.eval_rubrics import Rubric, RubricContent
from google.adk.evaluation.simulation.llm_backed_user_simulator import LlmBackedUserSimulatorConfig
from google.genai.types import Content, FunctionCall, Part

from adk_fluent.backends.adk import to_content
from adk_fluent.eval._cases._case import FluentCase, initial_state, simulation_of
from adk_fluent.eval._cases._turn import Message, ToolCall, Turn, UserSimulation, key_of, text_of
from adk_fluent.eval._text import plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from adk_fluent.eval._files._source import Source
    from adk_fluent.extend import At


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
    session: Any = {"app_name": app_name, "user_id": user_id, "state": initial_state(case)}
    fields: dict[str, Any] = {"eval_id": case.name, "session_input": session}
    if (user := simulation_of(case, simulation)) is None:
        fields["conversation"] = [_invocation(turn, n) for n, turn in enumerate(case.turns, 1)]
    else:
        fields["conversation_scenario"] = scenario_of(case, user)
    if case.rubrics:
        fields["rubrics"] = rubrics_of(case.rubrics)
    made = EvalCase(**fields)
    if final:
        made.final_session_state = final
    return made


#: What is copied for each text and name: validation would ask each field of each part, at several
#: times the price, and cases check their texts.
_PART: Final = Part(text="")
_CONTENT: Final = Content(role="", parts=[])
_CALL: Final = FunctionCall(name="", args={})


def _invocation(turn: Turn, number: int) -> Invocation:
    said = turn.input
    content = _content("user", said) if isinstance(said, str) else to_content(said)
    fields: dict[str, Any] = {"invocation_id": f"turn-{number}", "user_content": content}
    if (calls := turn.expected_trajectory) is not None:
        fields["intermediate_data"] = IntermediateData(tool_uses=[*map(_function_call, calls)])
    if (reference := turn.reference_response) is not None:
        fields["final_response"] = _content("model", reference)
    if turn.rubrics:
        fields["rubrics"] = rubrics_of(turn.rubrics)
    return Invocation(**fields)


def _content(role: str, text: Any) -> Content:
    known = type(text) is str  # no member of an enum, and the case was not changed since
    part = _PART.model_copy(update={"text": text}) if known else Part(text=text)
    return _CONTENT.model_copy(update={"role": role, "parts": [part]})


def rubrics_of(texts: Sequence[str], name: str = "rubric") -> list[Rubric]:
    """Return texts as rubrics of ADK, each with the name and its number as id."""
    contents = [RubricContent(text_property=text) for text in texts]
    return [Rubric(rubric_id=f"{name}_{n}", rubric_content=c) for n, c in enumerate(contents, 1)]


def _function_call(call: str | ToolCall) -> FunctionCall:
    """A call with the expected arguments that are values; ADK knows no conditions."""
    if type(call) is str:
        return _CALL.model_copy(update={"name": call, "args": {}})
    if isinstance(call, str):
        return FunctionCall(name=call, args={})
    args = {name: plain(each) for name, each in (call.args or {}).items() if not callable(each)}
    return FunctionCall(name=call.name, args=args)


def content_data(message: Message) -> dict[str, Any]:
    """Return a message as plain data, ``{role: user, parts: [...]}``."""
    return to_content(message).model_dump(mode="json", exclude_unset=True, exclude_none=True)


#: What to do about a field that ADK does not know.
UNKNOWN: Final = "remove it, or upgrade google-adk, of which a newer one may have written it"


def read_content(source: Source, at: At, value: Mapping[str, Any]) -> Content:
    """Return the Content of plain data; media are base64."""
    made: Content = source.validated(Content, value, at, unknown=UNKNOWN)
    if not made.parts:
        raise source.error(at, "a message is a text or {parts: [...]}")
    return made


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
