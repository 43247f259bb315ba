"""Pipelines that tests run suites against, and short ways to run them.

ADK is imported when one is made, for this module is loaded for tests without it, too.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from adk_fluent import Agent
from adk_fluent.eval import CaseOutcome, FluentCase, FluentEvalReport, FluentEvalSuite, Status
from adk_fluent.testing import Asked, Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.agents.llm_agent import LlmAgent

    from adk_fluent.testing import ScriptedModel

#: What every answer fits, also one that says nothing.
ANYTHING: Final = re.compile("|.")
_EXPECTATIONS: Final = {
    "expected_trajectory",
    "expected_response_contains",
    "state_assertions",
    "max_cost_usd",
    "max_tokens",
    "max_latency_s",
    "max_tool_calls",
}


def scripted(*replies: Any, **fields: Any) -> ScriptedModel:
    """A model that follows a script."""
    from adk_fluent.testing import ScriptedModel

    return ScriptedModel(*replies, **fields)


def says(answer: Any) -> ScriptedModel:
    """A model that always says the same, or what a function says."""
    return scripted(default=answer)


def agent(name: str, answer: Any = None, **fields: Any) -> Agent:
    """An agent that always says the same: its name, unless something else is given."""
    return _with(Agent(name, says(name if answer is None else answer)), fields)


def adk_agent(name: str, answer: Any = None, **fields: Any) -> LlmAgent:
    """The same, built with ADK."""
    from google.adk.agents.llm_agent import LlmAgent

    return LlmAgent(name=name, model=says(name if answer is None else answer), **fields)


def sequence(name: str, *agents: Any) -> Any:
    """Agents of ADK's, one after the other."""
    return _arranged("SequentialAgent", name, agents)


def loop(name: str, *agents: Any, times: int = 2) -> Any:
    """Agents of ADK's, again and again."""
    return _arranged("LoopAgent", name, agents, max_iterations=times)


def parallel(name: str, *agents: Any) -> Any:
    """Agents of ADK's, at the same time."""
    return _arranged("ParallelAgent", name, agents)


def _arranged(kind: str, name: str, below: tuple[Any, ...], **fields: Any) -> Any:
    from google.adk import agents  # by name: google-adk 2.x would rather have graphs

    return getattr(agents, kind)(name=name, sub_agents=list(below), **fields)


def model_of(program: Any) -> ScriptedModel:
    """The model of an agent, ours or ADK's."""
    made: Any = program.to_ir().model.value if hasattr(program, "to_ir") else program.model
    return made


def _with(made: Agent, fields: dict[str, Any]) -> Agent:
    for field, value in fields.items():
        made = getattr(made, field)(value)
    return made


def calling(*calls: Any) -> Callable[[Asked], Any]:
    """What makes these calls one after the other, then says what the tools returned.

    It goes by what it is shown, so that any number of runs may share it. Each call is a `Call`, or
    a `reply` of several at once.
    """

    def answer(asked: Asked) -> Any:
        results = results_in(asked)
        made = 0
        for each in calls:
            if made >= len(results):
                return each
            made += len(getattr(each, "parts", (each,)))
        return " ".join(str(each) for each in results)

    return answer


def results_in(asked: Asked) -> list[Any]:
    """What tools returned since the user spoke last; a tool's bare value is unwrapped."""
    found: list[Any] = []
    for content in asked.raw.contents:
        for part in content.parts or ():
            if part.function_response is not None:
                found.append(part.function_response.response)
            elif content.role == "user" and part.text:
                found.clear()
    return [each["result"] if list(each) == ["result"] else each for each in found]


def lookup(order: str) -> dict[str, Any]:
    """Look an order up."""
    return {"order": order, "status": "shipped"}


def desk(*calls: Any, tools: tuple[Any, ...] = (lookup,), **fields: Any) -> Agent:
    """An agent that looks an order up and says what it found."""
    made = Agent("desk", says(calling(*(calls or (Call("lookup", {"order": "A1"}),)))))
    for tool in tools:
        made = made.tool(tool)
    return _with(made, fields)


def suite_of(pipeline: Any, *cases: FluentCase, **fields: Any) -> FluentEvalSuite:
    """A suite of some cases."""
    return FluentEvalSuite("s", pipeline, cases, **fields)


async def report_of(pipeline: Any, *cases: FluentCase, **options: Any) -> FluentEvalReport:
    """What a run of some cases comes to."""
    return await suite_of(pipeline, *cases).run(**options)


def case(input: Any = "Hi", **fields: Any) -> FluentCase:
    """A case; without an expectation, with one that always holds."""
    if not fields.keys() & _EXPECTATIONS:
        fields["expected_response_contains"] = ANYTHING
    return FluentCase(input, **fields)


async def outcome_of(
    pipeline: Any, input: Any = "Hi", options: dict[str, Any] | None = None, **fields: Any
) -> CaseOutcome:
    """What a run of one case comes to."""
    report = await report_of(pipeline, case(input, **fields), **(options or {}))
    return report.outcomes[0]


async def passes(pipeline: Any, input: Any = "Hi", **fields: Any) -> CaseOutcome:
    """What a run of one case comes to, which has to pass."""
    outcome = await outcome_of(pipeline, input, **fields)
    assert outcome.status is Status.PASSED, (outcome.reasons, outcome.turns)
    return outcome
