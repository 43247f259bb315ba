"""Values are stored as JSON, and read as what they were, or refused."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from state_values import CASES, REFUSED, alike, holds

from adk_fluent.state import StateTypeError, UnstorableStateError


@pytest.mark.parametrize(("kind", "value"), CASES, ids=range(len(CASES)))
def test_a_value_comes_back(kind: Any, value: Any) -> None:
    state: dict[str, Any] = {}
    schema = holds(kind)
    kept = copy.deepcopy(value)
    schema.bind(state).value = value
    state = json.loads(json.dumps(state, allow_nan=False))
    assert alike(schema.bind(state).value, kept)
    assert alike(value, kept)  # and nobody changed the one that was given


@pytest.mark.parametrize(("kind", "value"), REFUSED, ids=range(len(REFUSED)))
def test_a_value_that_would_not_come_back_is_refused(kind: Any, value: Any) -> None:
    state: dict[str, Any] = {}
    bound = holds(kind).bind(state)
    with pytest.raises(StateTypeError, match=r"Holder\.value: .* cannot be given") as caught:
        bound.value = value
    assert caught.value.key == "value"
    assert state == {}


@pytest.mark.parametrize("text", ["page 1\0page 2", "grün\0"])
def test_text_that_no_service_keeps_is_refused_as_such(text: str) -> None:
    for kind, value in ((str, text), (list[str], [text]), (dict[str, int], {text: 1})):
        with pytest.raises(UnstorableStateError, match="character") as caught:
            holds(kind).bind({}).value = value
        assert caught.value.key == "value"
