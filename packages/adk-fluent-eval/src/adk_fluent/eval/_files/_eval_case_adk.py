"""Cases as ADK's EvalCases, for files and for runs. Importing this imports ADK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.evaluation.eval_case import EvalCase, IntermediateData, Invocation, SessionInput
from google.adk.evaluation.eval_rubrics import Rubric, RubricContent
from google.genai.types import Content, FunctionCall, Part

from adk_fluent.eval._cases._case import ToolCall, Turn, text_of
from adk_fluent.eval._cases._state import initial_state
from adk_fluent.eval._checks._same import plain
from adk_fluent.eval._files._criteria import numbered
from adk_fluent.eval._files._evalset_block import held_state
from adk_fluent.eval._files._names import APP_NAME
from adk_fluent.eval._files._native_adk import content_of
from adk_fluent.eval._running._simulator_adk import scenario_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._cases._case import Rubric as OwnRubric
    from adk_fluent.eval._cases._simulation import UserSimulation


def to_eval_case(
    case: FluentCase,
    *,
    app_name: str = APP_NAME,
    eval_id: str | None = None,
    rubric_types: Sequence[str] = (),
) -> EvalCase:
    """ADK's EvalCase of a case, as files have it; what ADK has no place for is left out.

    A user who is played from a script says it turn by turn; one who is played by a model has a
    scenario.

    Args:
        case: The case.
        app_name: The app of its session; ADK looks for the session under the app's own name.
        eval_id: Its id there; None is the case's own.
        rubric_types: The types that its rubrics have there; none is for all that do not ask.

    Raises:
        EvalError: A turn holds nothing that a user can say, or state would hold none of its values.
    """
    name = eval_id or case.name
    fields: dict[str, Any] = {}
    if (played := case.simulation) is not None and played.script is None:
        said = text_of(case.turns[0].input)
        fields["conversation_scenario"] = scenario_of(played, said)
    else:
        fields["conversation"] = conversation_of(case, rubric_types)
    if case.rubrics:
        fields["rubrics"] = _rubrics(case.rubrics, rubric_types)
    if case.state_assertions and (held := held_state(case)):
        fields["final_session_state"] = held
    # each run has a user of its own: what one writes for the user, no other sees
    return EvalCase(eval_id=name, session_input=session_input_of(case, app_name, name), **fields)


def conversation_of(case: FluentCase, rubric_types: Sequence[str] = ()) -> list[Invocation]:
    """The turns of a case, with what is expected of them; none where a model plays the user."""
    if (played := case.simulation) is not None:
        return [] if (said := played.script) is None else _scripted(case, played, said)
    made: list[Invocation] = []
    for n, turn in enumerate(case.turns, 1):
        invocation = invocation_of(turn, n)
        if turn.rubrics:
            invocation.rubrics = _rubrics(turn.rubrics, rubric_types, f"turn_{n}_")
        made.append(invocation)
    return made


def invocation_of(turn: Turn, number: int) -> Invocation:
    """A turn as ADK's Invocation, without its rubrics.

    Calls have their arguments as JSON has them. Those that a function looks at have no place there,
    and calls that are expected by name alone have none.

    Args:
        turn: The turn.
        number: Which it is, counted from 1.

    Raises:
        EvalError: It holds nothing that a user can say.
    """
    fields: dict[str, Any] = {}
    if turn.expected_trajectory is not None:
        fields["intermediate_data"] = IntermediateData(
            tool_uses=[_function_call(each) for each in turn.expected_trajectory]
        )
    if turn.reference_response is not None:
        fields["final_response"] = _answer(turn.reference_response)
    return Invocation(invocation_id=f"turn-{number}", user_content=content_of(turn.input), **fields)


def session_input_of(case: FluentCase, app_name: str, user_id: str) -> SessionInput:
    """The session that a case begins with.

    Raises:
        EvalError: State cannot hold what the case begins with.
    """
    return SessionInput(app_name=app_name, user_id=user_id, state=initial_state(case))


def _function_call(expected: str | ToolCall) -> FunctionCall:
    if isinstance(expected, str):
        return FunctionCall(name=expected, args={})
    args = expected.args or {}
    return FunctionCall(
        name=expected.name,
        args={name: plain(value) for name, value in args.items() if not callable(value)},
    )


def _answer(text: str) -> Content:
    return Content(role="model", parts=[Part(text=text)])


def _rubrics(
    rubrics: Sequence[str | OwnRubric], types: Sequence[str], prefix: str = ""
) -> list[Rubric]:
    """Rubrics of each type; their ids differ, as ADK asks."""
    several = len(types) > 1
    return [
        Rubric(
            rubric_id=typed_id(rubric_id, kind) if kind and several else rubric_id,
            rubric_content=RubricContent(text_property=text),
            type=kind,
        )
        for rubric_id, text in numbered(rubrics, prefix)
        for kind in (types or (None,))
    ]


def typed_id(rubric_id: str, kind: str) -> str:
    """The id of a rubric that stands there once for each of several types."""
    return f"{rubric_id}__{kind.lower()}"


def _scripted(case: FluentCase, played: UserSimulation, script: Sequence[str]) -> list[Invocation]:
    (turn,) = case.turns  # a case refuses more of them
    first = turn.input if played.starting_prompt is None else played.starting_prompt
    made = [invocation_of(Turn(said), n) for n, said in enumerate((first, *script), 1)]
    if turn.reference_response is not None:  # is of the last answer
        made[-1].final_response = _answer(turn.reference_response)
    return made
