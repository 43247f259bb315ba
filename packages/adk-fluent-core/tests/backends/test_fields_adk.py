"""Fields of ADK's LlmAgent: which the installed ADK has, and where it heeds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools.tool_context import ToolContext  # noqa: TC002  # ADK looks for it
from google.adk.version import __version__
from pydantic import BaseModel

from adk_fluent import Agent
from adk_fluent._adk_fields import NO_SETTER, SINCE, TOOLS_ONLY, at_least
from adk_fluent.backends.adk._lowering import _fields
from adk_fluent.errors import UnknownNameError, UnsupportedNodeError
from adk_fluent.ir import AgentNode
from adk_fluent.testing import Call, Script, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings("ignore:global_instruction field is deprecated:DeprecationWarning"),
]


class Form(BaseModel):
    total: int = 0


def value_of(name: str) -> Any:
    if name == "retry_config":
        from google.adk.workflow import RetryConfig

        return RetryConfig(initial_delay=0.01, jitter=0.0)
    values = {"global_instruction": "All of you.", "state_schema": Form, "timeout": 0.05}
    return values[name]


def tool_of(child: Agent) -> Agent:
    """An agent that calls another one, once."""
    model = ScriptedModel(Call("child", {"request": "go"}), "done")
    return Agent("boss", model).agent_tool(child)


ROLES: dict[str, tuple[str, Callable[[Agent], Builder]]] = {
    "alone": ("a step", lambda child: child),
    "in a pipeline": ("a step", lambda child: Agent("other") >> child),
    "in a pipeline that is a tool": (
        "a step",
        lambda child: Agent("boss").agent_tool((Agent("other") >> child).named("both")),
    ),
    "a delegate": ("a delegate", lambda child: Agent("boss").delegates(child)),
    "a delegate of a tool": (
        "a delegate",
        lambda child: Agent("boss").agent_tool(Agent("tool").delegates(child)),
    ),
}


@pytest.mark.parametrize("name", sorted(TOOLS_ONLY.keys() & LlmAgent.model_fields.keys()))
@pytest.mark.parametrize("role", ROLES)
def test_a_field_without_effect_is_refused(name: str, role: str) -> None:
    words, place = ROLES[role]
    with pytest.raises(UnsupportedNodeError) as caught:
        place(getattr(Agent("child"), name)(value_of(name))).to_app()
    assert caught.value.what == f"ADK's {name!r} has no effect on {words}"
    assert caught.value.help == TOOLS_ONLY[name]
    assert caught.value.node == "child"
    assert str(caught.value.location).startswith(__file__)


def test_a_field_of_a_newer_adk_says_since_when_it_exists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_fields, "SINCE", {**SINCE, "shiny": "99.0.0"})
    with pytest.raises(UnknownNameError) as caught:
        (Agent("a") >> AgentNode("desk", settings=(("shiny", None),))).to_app()
    assert caught.value.what == f"google-adk {__version__} has no field 'shiny' for an LlmAgent"
    assert caught.value.help == "upgrade to google-adk 99.0.0 or newer, or leave it out"
    assert caught.value.node == "desk"


def test_the_installed_adk_has_the_fields_that_it_should_have() -> None:
    there = {name for name, since in SINCE.items() if at_least(__version__, since)}
    assert there == SINCE.keys() & LlmAgent.model_fields.keys()


@pytest.mark.parametrize("name", NO_SETTER)
def test_ir_cannot_set_what_is_adk_s_business(name: str) -> None:
    desk = AgentNode("desk", settings=((name, None),))
    with pytest.raises(UnknownNameError, match=f"cannot have the field {name!r}") as caught:
        (Agent("a") >> desk).to_app()
    assert caught.value.help == NO_SETTER[name]


# --- where they have an effect -------------------------------------------------------------------


async def has_global_instruction(child: Agent, model: ScriptedModel) -> None:
    await tool_of(child).run("hi")
    assert "All of you." in model.calls[0].system


async def is_cancelled(child: Agent, model: ScriptedModel) -> None:
    model.script = Script(reply("late", latency=5))
    with pytest.raises(Exception, match=r"timed out after 0\.05 seconds"):
        await tool_of(child).run("hi")


async def is_run_again(child: Agent, model: ScriptedModel) -> None:
    model.script = Script(ConnectionError("down"), "said")
    assert (await tool_of(child).run("hi")).text == "done"
    assert len(model.calls) == 2


async def has_its_writes_checked(child: Agent, model: ScriptedModel) -> None:
    model.script = Script(Call("spoil"), "said")
    with pytest.raises(Exception, match=r"field 'total'|Value for 'total'"):  # newer, older
        await tool_of(child.tool(spoil)).run("hi")


def spoil(tool_context: ToolContext) -> str:
    """Write what does not fit."""
    tool_context.state["total"] = "three"
    return "written"


EFFECTS = {
    "global_instruction": has_global_instruction,
    "retry_config": is_run_again,
    "state_schema": has_its_writes_checked,
    "timeout": is_cancelled,
}


def test_the_effect_of_every_such_field_is_known() -> None:
    assert EFFECTS.keys() == TOOLS_ONLY.keys()


@pytest.mark.parametrize("name", sorted(TOOLS_ONLY.keys() & LlmAgent.model_fields.keys()))
async def test_a_tool_can_have_it(name: str) -> None:
    model = ScriptedModel("said")
    child = getattr(Agent("child", model), name)(value_of(name))
    await EFFECTS[name](child, model)


async def test_a_step_can_leave_out_all_but_its_input() -> None:
    model = ScriptedModel("said")
    child = Agent("child", model).include_contents("none")
    await (Agent("first").mock("a draft") >> child).run("a secret")
    (asked,) = model.calls
    assert "a draft" in str(asked.turns)
    assert "a secret" not in str(asked.turns)
