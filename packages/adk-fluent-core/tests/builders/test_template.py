"""Placeholders of instructions, by ADK's rules."""

from __future__ import annotations

import pytest

from adk_fluent import Agent
from adk_fluent._template import placeholders
from adk_fluent.ir import AgentNode, StateFieldRef


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("", []),
        ("no braces", []),
        ("{a} and {b_2}", ["a", "b_2"]),
        ("{ a }", ["a"]),
        ("{{a}} {{{b}}}", ["a", "b"]),
        ("{a}{a}", ["a"]),
        ("{app:a} {user:b} {temp:c}", ["app:a", "user:b", "temp:c"]),
        ("{session:a} {other:b} {a:b:c} {user:}", []),
        ("{a b} {1} {a-b} {} {a.b}", []),
        ("{artifact.report} {artifact.x?}", []),
        ('{"json": 1}', []),
        ("${a} \\{b}", []),
        ("{größe} {名}", ["größe", "名"]),
        ("{a\n}", ["a"]),
    ],
)
def test_the_keys_of_a_template(text: str, keys: list[str]) -> None:
    assert [ref.key for ref in placeholders(text)] == keys


def test_an_optional_key_has_a_default() -> None:
    assert placeholders("{a?} {b}") == (StateFieldRef("a", default=""), StateFieldRef("b"))


@pytest.mark.parametrize("text", ["{a} {a?}", "{a?} {a}"])
def test_a_key_that_is_needed_once_is_needed(text: str) -> None:
    assert placeholders(text) == (StateFieldRef("a"),)


def test_what_adk_fills_in_is_needed_whatever_default_a_field_has() -> None:
    field = StateFieldRef("topic", str, default="news")
    agent = Agent("writer").reads(field, "tone").instruct("On {topic}, {tone?}.")
    node = agent.to_ir()
    assert isinstance(node, AgentNode)
    assert node.reads_keys == (StateFieldRef("topic", str), StateFieldRef("tone"))


def test_what_adk_may_leave_empty_keeps_the_default_of_its_field() -> None:
    field = StateFieldRef("topic", str, default="news")
    node = Agent("writer").reads(field).instruct("On {topic?}.").to_ir()
    assert isinstance(node, AgentNode)
    assert node.reads_keys == (field,)
