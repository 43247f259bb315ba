"""Keys that are misspelt, and parameters of tools that no model can be told of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent
from adk_fluent.errors import UsageError
from adk_fluent.testing import ScriptedModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.tools.tool_context import ToolContext

    from adk_fluent.contracts import Diagnostic


class Database:
    """Nothing that pydantic knows."""


@dataclass
class Order:
    id: str


def look_up(order: str, db: Database) -> Database:
    """Look up an order."""
    return db


def several(order: list[Order | Database]) -> str:
    """Look up orders."""
    return str(order)


def anything(*args: int, **more: str) -> str:
    """Take anything."""
    return str((args, more))


def fine(order: Order, at: Any, tool_context: ToolContext) -> str:
    """Take what models can be told of."""
    return str((order, at, tool_context))


def agent() -> Agent:
    return Agent("a", ScriptedModel(default="x"))


def found(made: Any, *codes: str) -> list[Diagnostic]:
    return [each for each in made.check() if each.code in codes]


@pytest.mark.parametrize(("tool", "name"), [(look_up, "db"), (several, "order")])
def test_a_tool_takes_what_a_model_can_be_told_of(tool: Callable[..., Any], name: str) -> None:
    [one] = found(agent().tool(tool), "FLW144")
    assert one.message == (
        f"no model can be told of `{name}` of the tool `{tool.__name__}` of `a`: it is a Database"
    )
    assert not found(agent().tool(fine), "FLW144")


def test_a_resource_is_no_parameter_that_models_see() -> None:
    assert not found(agent().tool(look_up).inject(db=Database()), "FLW144")


class Desk:
    def ask(self: Desk, order: str) -> str:
        """Ask the desk."""
        return order


@pytest.mark.adk
def test_what_is_bound_is_no_parameter() -> None:
    assert not found(agent().tool(Desk().ask), "FLW144")
    agent().tool(Desk().ask).to_agent()


def test_parameters_without_a_name_are_shown_to_nobody() -> None:
    [one] = found(agent().tool(anything), "FLW144")
    assert (str(one.severity), one.help) == ("warning", "name each parameter")


@pytest.mark.adk
def test_building_says_it_too() -> None:
    with pytest.raises(UsageError, match="parameter db of the tool look_up"):
        agent().tool(look_up).to_agent()
    agent().tool(fine).to_agent()
    agent().tool(look_up).inject(db=Database()).to_agent()


@pytest.mark.parametrize(
    ("key", "help"),
    [
        ("usr:tier", "did you mean `user:tier`?"),
        ("session:tier", "did you mean `tier`?"),
        ("a b", None),
        ("user:a b", None),
    ],
)
def test_a_key_is_one_that_a_placeholder_can_name(key: str, help: str | None) -> None:
    for made, does in ((agent().writes(key), "writes"), (agent().reads(key), "reads")):
        [one] = found(made, "FLW116")
        assert one.message.startswith(f"`a` {does} `{key}`, ")
        assert str(one.severity) == ("warning" if help else "info")
        assert help is None or one.help == help
    assert not found(agent().writes("user:tier", "tier"), "FLW116")
