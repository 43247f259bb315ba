"""Setters called like ADK's fields, `configure`, and what names of ADK's are answered with."""

from __future__ import annotations

import importlib.metadata
from typing import Any
from unittest.mock import Mock

import pytest

from adk_fluent import Agent, Pipeline
from adk_fluent._adk_fields import (
    NEWEST,
    NO_SETTER,
    OWN_SETTERS,
    SINCE,
    TOOLS_ONLY,
    at_least,
)
from adk_fluent.builders._adk_setters import CHECKS, AdkSetters
from adk_fluent.errors import AdkFluentError, UnknownNameError, UsageError
from adk_fluent.ir import AgentNode, Ref


class BasePlanner:
    """Stands in for ADK's class of that name, which builders know by its name only."""


class Planner(BasePlanner):
    pass


class BaseCodeExecutor:
    pass


class GenerateContentConfig:
    pass


class RetryConfig:
    pass


def provider(context: Any) -> str:
    return str(context)


#: Field -> values that its setter takes.
TAKEN: dict[str, tuple[object, ...]] = {
    "code_executor": (BaseCodeExecutor(), None),
    "disallow_transfer_to_parent": (True, False),
    "disallow_transfer_to_peers": (True, False),
    "generate_content_config": (GenerateContentConfig(), None),
    "global_instruction": ("text", provider),
    "include_contents": ("default", "none"),
    "planner": (BasePlanner(), Planner(), Mock(spec=BasePlanner), None),
    "retry_config": (RetryConfig(), None),
    "state_schema": (Planner, None),
    "timeout": (3, 0.5, None),
}

#: Field -> values that it refuses.
REFUSED: dict[str, tuple[object, ...]] = {
    "code_executor": (42, "x", BaseCodeExecutor, BasePlanner()),
    "disallow_transfer_to_parent": (None, 1, "yes"),
    "disallow_transfer_to_peers": (None, 0, []),
    "generate_content_config": ({"temperature": 1}, 0.5),
    "global_instruction": (None, 3, Planner),
    "include_contents": (None, "all", ["none"]),
    "planner": (42, Planner, GenerateContentConfig()),
    "retry_config": (3, {}),
    "state_schema": (Planner(), "Planner", 3),
    "timeout": (0, -1, "3", True),
}


def settings(agent: Agent) -> dict[str, Any]:
    node = agent.build()
    assert isinstance(node, AgentNode)
    return dict(node.settings)


def test_every_field_stands_in_one_table() -> None:
    tables = [*OWN_SETTERS, *NO_SETTER, *CHECKS]
    assert sorted(tables) == sorted(SINCE)
    assert TOOLS_ONLY.keys() <= CHECKS.keys()
    assert TAKEN.keys() == REFUSED.keys() == CHECKS.keys()


def test_no_field_is_newer_than_the_newest_version() -> None:
    assert all(at_least(NEWEST, version) for version in SINCE.values())


@pytest.mark.parametrize("name", OWN_SETTERS)
def test_a_setter_of_another_name_exists(name: str) -> None:
    assert callable(getattr(Agent("a"), OWN_SETTERS[name]))


@pytest.mark.parametrize("name", CHECKS)
def test_a_generated_setter_is_documented_and_names_its_field(name: str) -> None:
    doc = vars(AdkSetters)[name].__doc__
    assert f"ADK's ``{name}``" in doc
    assert "Args:" in doc
    assert (f"since google-adk {SINCE[name]}" in doc) is (SINCE[name] != SINCE["name"])


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in TAKEN.items() for v in vs])
def test_what_a_setter_takes_is_stored_as_it_is(name: str, value: object) -> None:
    agent = Agent("a")
    assert getattr(agent, name)(value) is agent
    stored = settings(agent)[name]
    assert (stored.value if isinstance(stored, Ref) else stored) is value
    assert settings(Agent("a").configure(**{name: value})) == settings(agent)


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in REFUSED.items() for v in vs])
def test_what_is_of_another_type_is_refused_where_it_is_given(name: str, value: object) -> None:
    agent = Agent("a").configure(include_contents="none")
    before = agent.build()
    with pytest.raises(AdkFluentError, match=rf"^\.{name}\(\.\.\.\) ") as caught:
        getattr(agent, name)(value)
    assert str(caught.value.location).startswith(__file__)
    with pytest.raises(AdkFluentError, match=rf"^\.{name}\(\.\.\.\) "):
        agent.configure(**{"timeout": 3, "planner": None, name: value})
    assert agent.build() == before


def test_a_setter_of_a_flag_needs_no_argument() -> None:
    assert settings(Agent("a").disallow_transfer_to_peers()) == {"disallow_transfer_to_peers": True}


def test_what_is_not_set_is_absent_and_none_is_not() -> None:
    assert settings(Agent("a")) == {}
    assert settings(Agent("a").planner(None)) == {"planner": None}


def test_the_error_says_what_was_given() -> None:
    with pytest.raises(UsageError) as caught:
        Agent("a").configure(planner=42)
    assert caught.value.what == ".planner(...) takes a BasePlanner"
    assert caught.value.found == "42"


def test_a_clone_keeps_settings_of_its_own() -> None:
    agent = Agent("a").include_contents("none")
    clone = agent.clone("b").include_contents("default")
    assert settings(agent) == {"include_contents": "none"}
    assert settings(clone) == {"include_contents": "default"}


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("instruction", "use .instruct(...)"),
        ("output_key", "use .writes(...)"),
        ("tools", "use .tool(...)"),
        ("before_model_callback", "use .before_model(...)"),
        ("parent_agent", "put the agent into .delegates(...) of the other one"),
        ("parallel_worker", "for each item of a list write map_over(key, agent)"),
        ("planer", "did you mean 'planner'?"),
        ("max_llm_calls", None),
    ],
)
def test_a_method_that_does_not_exist_is_answered_with_the_one_that_does(
    name: str, help: str | None
) -> None:
    with pytest.raises(UnknownNameError) as caught:
        getattr(Agent("a"), name)
    assert caught.value.what == f"Agent 'a' has no method {name!r}"
    assert caught.value.help == help
    assert str(caught.value.location).startswith(__file__)


def test_a_pipeline_is_told_whose_method_it_is() -> None:
    with pytest.raises(UnknownNameError, match="it is a method of Agent"):
        getattr(Pipeline(Agent("a")), "planner")  # noqa: B009  # a type checker would refuse it


@pytest.mark.parametrize("name", [*OWN_SETTERS, *NO_SETTER])
def test_configure_refuses_fields_that_are_set_otherwise(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        Agent("a").configure(**{name: None})
    assert caught.value.what == f".configure(...) does not set {name!r}"
    assert caught.value.help
    assert str(caught.value.location).startswith(__file__)


@pytest.mark.parametrize(
    ("name", "help"),
    [
        ("planer", "did you mean 'planner'?"),
        ("instrucion", "use .instruct(...)"),
        ("instruct", "use .instruct(...)"),
        ("xyz", None),
    ],
)
def test_configure_refuses_fields_that_do_not_exist(name: str, help: str | None) -> None:
    with pytest.raises(UnknownNameError) as caught:
        Agent("a").configure(**{name: 1})
    assert caught.value.what == f"ADK's LlmAgent has no field {name!r}"
    assert caught.value.help == help
    assert str(caught.value.location).startswith(__file__)


def test_configure_takes_fields_of_a_newer_adk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.metadata, "version", {"google-adk": "99.0.0rc1"}.__getitem__)
    planner = Planner()
    agent = Agent("a").configure(shiny=planner, flag=None, limit=3)
    assert settings(agent) == {"flag": None, "limit": 3, "shiny": Ref.to(planner)}


@pytest.mark.parametrize(
    ("version", "other", "is_at_least"),
    [
        ("2.13.0", "2.13.0", True),
        ("2.13.0", "2.9.1", True),
        ("2.9.1", "2.13.0", False),
        ("2.14.0rc1", "2.13.0", True),
        ("2.13.0.dev3", "2.13.0", True),
        ("1.39.1", "2.0.0", False),
    ],
)
def test_versions_are_compared_as_numbers(version: str, other: str, is_at_least: bool) -> None:
    assert at_least(version, other) is is_at_least
