"""What is known of agents that were built by hand: their plain data."""

# What ADK 2.x deprecates is what they hold.
# pyright: reportDeprecated=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents import BaseAgent, LlmAgent, LoopAgent, ParallelAgent, SequentialAgent

from adk_fluent import Agent, Pipeline
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext

    from adk_fluent.contracts import Diagnostic

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings("ignore:.* is deprecated in favor of Workflow:DeprecationWarning"),
]


def llm(name: str, says: str = "", key: str | None = None, **more: Any) -> LlmAgent:
    return LlmAgent(name=name, model=ScriptedModel(), instruction=says, output_key=key, **more)


def found(*steps: Any) -> list[Diagnostic]:
    return [each for each in Pipeline("p", *steps).check() if each.code != "FLW008"]


def last(text: str) -> Agent:
    return Agent("last", ScriptedModel()).instruct(text)


def seed(callback_context: CallbackContext) -> None:
    callback_context.state["nope"] = 1


class Own(BaseAgent):
    """Nobody knows what it does."""


def test_what_they_write_is_there() -> None:
    seq = SequentialAgent(
        name="s",
        sub_agents=[
            ParallelAgent(name="both", sub_agents=[llm("a", "", "one"), llm("b", "", "two")]),
            LoopAgent(name="more", sub_agents=[llm("c", "{one} {two}", "three")]),
        ],
    )
    assert found(seq, last("{one} {two} {three}")) == []
    [typo] = found(seq, last("{thre}"))
    assert (typo.code, typo.help) == ("FLW001", "did you mean `three`?")


def test_what_they_read_and_nothing_writes_is_found() -> None:
    [alone] = found(llm("n", "Say {nope} {x?}"))
    assert (alone.code, str(alone.severity)) == ("FLW001", "warning")
    assert alone.message == "the instruction of `n` needs `nope`, but nothing writes it"
    [inside] = found(
        SequentialAgent(name="s", sub_agents=[llm("a", "", "draft"), llm("b", "{drft}")])
    )
    assert "of `b`, which is in `s`, needs `drft`" in inside.message
    assert inside.help == "did you mean `draft`?"


def test_who_may_hand_over_need_not_write() -> None:
    desk = llm("desk", "", "answer", sub_agents=[llm("other", "", "more")])
    codes = [each.code for each in found(desk, last("{answer} {more}"))]
    assert codes == ["FLW002", "FLW002"]


def test_code_may_have_written_what_they_read() -> None:
    assert found(llm("n", "{nope}", before_agent_callback=seed)) == []
    below: list[BaseAgent] = [llm("m", "{nope}")]
    assert found(SequentialAgent(name="s", sub_agents=below, before_agent_callback=seed)) == []
    behind: list[BaseAgent] = [Own(name="own"), llm("n", "{nope}")]
    assert found(SequentialAgent(name="t", sub_agents=behind)) == []
    assert found(Own(name="own", sub_agents=[llm("n", "{nope}")])) == []
