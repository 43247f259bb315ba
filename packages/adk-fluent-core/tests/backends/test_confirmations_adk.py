"""Answers to confirmations in the form in which ADK takes them."""

from __future__ import annotations

from typing import Any

import pytest

from adk_fluent.backends.adk._waiting._confirmations import confirmation

pytestmark = pytest.mark.adk


@pytest.mark.parametrize(
    ("answer", "taken"),
    [
        (True, {"confirmed": True}),
        ("no", {"confirmed": False}),
        ({"approved": True, "note": "fine"}, {"confirmed": True}),
        ({"confirmed": True, "payload": {"n": 1}}, {"confirmed": True, "payload": {"n": 1}}),
        ({"confirmed": True, "payload": None}, {"confirmed": True, "payload": None}),
        ({"approved": False, "note": "no"}, {"confirmed": False, "payload": {"note": "no"}}),
        (
            {"approved": False, "note": "no", "payload": {"n": 1}},
            {"confirmed": False, "payload": {"n": 1, "note": "no"}},
        ),
        (
            {"approved": False, "note": "no", "payload": [1]},
            {"confirmed": False, "payload": [1]},
        ),
        ("perhaps", "perhaps"),
    ],
)
def test_the_form_that_adk_takes(answer: Any, taken: Any) -> None:
    assert confirmation(answer) == taken
