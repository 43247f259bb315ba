"""What holds for every built-in: it can be copied and sent elsewhere, and says what it is."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from adk_fluent._middlewares import registered_middlewares
from adk_fluent.middleware import __all__ as public
from adk_fluent.middleware._layer import LAYER
from adk_fluent.protocol import Middleware, fresh, hooks_of

#: What those need that cannot be made of nothing.
NEEDED: dict[str, dict[str, Any]] = {
    "context_warning": {"max_context": 1000},
    "model_call_limit": {"per_run": 3},
    "model_fallback": {"models": ["gemini-2.5-flash"]},
    "rate_limiter": {"requests_per_minute": 3},
    "summarization": {},
    "timeout": {"model": 1.0},
    "token_budget": {"max_tokens": 100},
    "tool_call_limit": {"per_run": 3},
}
NAMES = [entry.name for entry in LAYER.entries("middleware")]

by_name = pytest.mark.parametrize("name", NAMES)


def made(name: str) -> Any:
    return registered_middlewares()[name].factory(**NEEDED.get(name, {}))


@by_name
def test_it_has_a_class_and_a_short_name_and_hooks(name: str) -> None:
    middleware = made(name)
    is_one: bool = isinstance(middleware, Middleware)
    assert is_one
    assert type(middleware).__name__ in public
    assert name in public
    assert hooks_of(middleware)
    assert made(name).name == name


@by_name
def test_a_copy_is_one_too(name: str) -> None:
    middleware = made(name)
    for other in (copy.copy(middleware), copy.deepcopy(middleware), fresh(middleware)):
        assert type(other) is type(middleware)
        assert repr(other) == repr(middleware)


@by_name
def test_it_can_be_sent_to_another_process(name: str) -> None:
    middleware = made(name)
    other = pickle.loads(pickle.dumps(middleware))
    assert repr(other) == repr(middleware)
    assert hooks_of(other) == hooks_of(middleware)


@by_name
def test_its_text_shows_options_and_nothing_else(name: str) -> None:
    text = repr(made(name))
    assert " object at 0x" not in text
    assert text.startswith(type(made(name)).__name__ + "(")
