"""Tools that stand around other functions: ADK gives them what those take."""

from __future__ import annotations

from functools import wraps
from inspect import Parameter, Signature
from typing import Any

from adk_fluent.contracts._effects import effects_of_callback, effects_of_tool
from adk_fluent.ir import Ref


def around(function: Any) -> Any:
    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call


def use(tool_context: Any) -> str:
    """Use state."""
    tool_context.state["total"] = 1
    return str(tool_context.state["order"])


def greet(callback_context: Any) -> None:
    """Greet."""
    callback_context.state["greeted"] = True


def test_nothing_is_known_of_a_tool_around_another_one() -> None:
    assert effects_of_tool(Ref.to(around(use))).opaque == "it stands around another function"


def test_nothing_is_known_of_a_callback_around_another_one() -> None:
    assert effects_of_callback(Ref.to(around(greet))).opaque is not None


def test_nothing_is_known_of_a_tool_that_says_to_take_something_else() -> None:
    def tool(**given: Any) -> str:
        return use(**given)

    context = Parameter("tool_context", Parameter.KEYWORD_ONLY)
    vars(tool)["__signature__"] = Signature([context])
    assert effects_of_tool(Ref.to(tool)).opaque == "it stands around another function"


def test_a_tool_of_the_state_layer_does_what_its_function_does() -> None:
    def call(*args: Any, **kwargs: Any) -> Any:
        return use(*args, **kwargs)

    vars(call)["__signature__"] = Signature()
    vars(call)["__state_tool__"] = use
    done = effects_of_tool(Ref.to(call))
    assert done.opaque is None
    assert [ref.key for ref in done.reads] == ["order"]
    assert [ref.key for ref in done.writes] == ["total"]
