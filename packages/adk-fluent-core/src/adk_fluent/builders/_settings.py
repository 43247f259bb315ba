"""What the agent's setters take, as the IR holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast, get_origin

from adk_fluent.builders._branching import SCALARS
from adk_fluent.builders._words import describe
from adk_fluent.errors import UsageError
from adk_fluent.ir import Location, Ref

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Fields of ADK's LlmAgent that have a setter of their own, or none on purpose.
OWN_SETTERS: Final[Mapping[str, str]] = {
    "name": "named",
    "model": "model",
    "instruction": "instruct",
    "static_instruction": "static_instruct",
    "description": "description",
    "tools": "tool",
    "sub_agents": "delegates",
    "input_schema": "input_schema",
    "output_schema": "output_schema",
    "output_key": "writes",
    "include_contents": "history",
    "before_agent_callback": "before_agent",
    "after_agent_callback": "after_agent",
    "before_model_callback": "before_model",
    "after_model_callback": "after_model",
    "on_model_error_callback": "on_model_error",
    "before_tool_callback": "before_tool",
    "after_tool_callback": "after_tool",
    "on_tool_error_callback": "on_tool_error",
}


def as_text(value: object, role: str) -> str:
    """A str.

    Raises:
        UsageError: It is none.
    """
    if isinstance(value, str):
        return value
    raise UsageError(f"{role} takes text", found=describe(value), location=Location.caller())


def as_static_instruction(value: object) -> str | Ref:
    """Text or content.

    Raises:
        UsageError: It is neither.
    """
    if type(value).__module__.startswith("google.genai."):
        return Ref.to(value)
    return as_text(value, ".static_instruct(...)")


def as_instruction(value: object) -> str | Ref:
    """Text, or a function that gives it.

    Raises:
        UsageError: It is neither.
    """
    if isinstance(value, str):
        return value
    if callable(value) and not isinstance(value, type):
        return Ref.to(value)
    raise UsageError(
        ".instruct(...) takes text, or a function that gives it",
        found=describe(value),
        location=Location.caller(),
        help="a function gets ADK's ReadonlyContext and returns text; it may be async",
    )


def as_callbacks(value: object, method: str) -> tuple[Ref, ...]:
    """One callback, or several in order of call.

    Raises:
        UsageError: One of them cannot be called.
    """
    several = cast("Sequence[object]", value if isinstance(value, list | tuple) else (value,))
    for callback in several:
        if not callable(callback) or isinstance(callback, type):
            raise UsageError(
                f".{method}(...) takes a function or a list of functions",
                found=describe(callback),
                location=Location.caller(),
                help="ADK calls it with keyword arguments; it may be async",
            )
    return tuple(Ref.to(callback) for callback in several)


def as_schema(value: object, role: str) -> Ref:
    """A schema.

    Raises:
        UsageError: It is no type.
    """
    if isinstance(value, Ref):
        return value
    if isinstance(value, type) or get_origin(value) is not None:
        return Ref.to(value)
    raise UsageError(
        f"{role} takes a type",
        found=describe(value),
        location=Location.caller(),
        help="pass a pydantic model class, not an instance",
    )


def as_mock(value: object) -> Ref:
    """What a mocked agent answers.

    Raises:
        UsageError: It is nothing that `adk_fluent.testing.Script` takes.
    """
    several = isinstance(value, list | tuple)
    replies = cast("Sequence[object]", value if several else (value,))
    for reply in replies or (None,):
        if not _is_reply(reply):
            raise UsageError(
                ".mock(...) takes a reply, a list of replies or a function",
                found="nothing" if several and not replies else describe(reply),
                location=Location.caller(),
                help='pass "text", ["first", "second"], lambda prompt: "text", or a reply or '
                "Script of adk_fluent.testing",
            )
    held = tuple(replies) if several else value
    texts = all(isinstance(reply, str) for reply in replies)
    return Ref(held, "mock", f"mock:{held!r}" if texts else None)  # equal texts are interchangeable


def _is_reply(value: object) -> bool:
    if isinstance(value, type):
        return False
    known = type(value).__module__.startswith(("adk_fluent.testing", "google.genai."))
    return known or callable(value) or isinstance(value, str | Exception)


def as_settings(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Other fields of ADK's agent.

    Raises:
        UsageError: One has a setter of its own.
    """
    for name in fields:
        setter = OWN_SETTERS.get(name)
        if setter is not None:
            raise UsageError(
                f".configure(...) does not set {name!r}",
                location=Location.caller(),
                help=f"use .{setter}(...)",
            )
    return {
        name: value if value is None or isinstance(value, SCALARS) else Ref.to(value)
        for name, value in fields.items()
    }
