"""A tool's function that takes bound state, above which `@tool` was forgotten."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Optional

import pytest

from adk_fluent import Agent
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Desk:
    """As much of a state schema as core knows of one."""

    __state_fields__: ClassVar[Mapping[str, Any]] = {}


class Lazy(type):
    """As the real one, whose fields are read when they are first asked for."""

    @property
    def __state_fields__(cls) -> Mapping[str, Any]:
        raise AssertionError("nobody asks for the fields")


class Real(metaclass=Lazy):
    Part = Desk


class Plain:
    pass


def text(state: Desk) -> str:
    return ""


def quoted(state: "Desk") -> str:  # noqa: UP037
    return ""


def union(query: str, state: Real | None = None) -> str:
    return ""


def old(*, state: Optional[Real]) -> str:  # noqa: UP045
    return ""


def noted(state: Annotated[Desk, "the state"]) -> str:
    return ""


def dotted(state: Real.Part) -> str:
    return ""


async def waits(state: Desk) -> str:
    return ""


@functools.wraps(text)
def wrapped(*args: Any) -> str:
    return text(*args)


class Office:
    def __call__(self, state: Desk) -> str:
        return ""

    def method(self, state: Desk) -> str:
        return ""


def of(annotation: Any) -> Any:
    """A function whose annotation is no text."""

    def made(query: str, state: Any) -> str:
        return ""

    made.__annotations__["state"] = annotation
    return made


def in_closure() -> Any:
    class Local(metaclass=Lazy):
        pass

    def made(state: Local) -> type[Local]:
        return Local

    return made


def with_name(tool: Any) -> Any:
    tool.__name__ = "office"
    return tool


@pytest.mark.parametrize(
    ("function", "schema"),
    [
        (text, "Desk"),
        (quoted, "Desk"),
        (union, "Real"),
        (old, "Real"),
        (noted, "Desk"),
        (dotted, "Desk"),
        (waits, "Desk"),
        (wrapped, "Desk"),
        (Office().method, "Desk"),
        (with_name(Office()), "Desk"),
        (in_closure(), "Local"),
        (of(Desk), "Desk"),
        (of(Real | None), "Real"),
        (of(Optional[Real]), "Real"),  # noqa: UP045
        (of(Annotated[Desk, "x"]), "Desk"),
    ],
)
def test_a_model_cannot_fill_it(function: Any, schema: str) -> None:
    with pytest.raises(UsageError, match=r"a model cannot fill the parameter state of") as caught:
        Agent("a").tool(function)
    assert caught.value.found == f"state: {schema}, a state schema"
    assert "@tool of adk_fluent.state" in str(caught.value.help)


def test_the_error_names_the_function() -> None:
    with pytest.raises(UsageError, match="parameter state of the function text"):
        Agent("a").tool(text)


def unevaluated() -> Any:
    raise AssertionError("an annotation is evaluated")


def not_assigned() -> Any:
    def made(state: Any) -> Any:
        return (state, later)  # a cell with nothing in it

    made.__annotations__["state"] = "later"
    if made.__name__ == "other":
        later = Desk
    return made


def says_itself() -> Any:
    """As `@tool` makes it, or somebody else who gives the state."""

    @functools.wraps(text)
    def made(**kwargs: Any) -> str:
        return text(**kwargs)

    vars(made)["__signature__"] = inspect.Signature()
    return made


def returns(query: str) -> Desk:
    return Desk()


class Odd:
    """An annotation that is made of nothing."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


def bare(query: Any, state: Any) -> str:
    return ""


bare.__annotations__ = {}


@pytest.mark.parametrize(
    "function",
    [
        of("Nowhere"),
        of("unevaluated()"),
        of("Literal['Desk', \"Desk\"]"),
        of("functools.Desk"),
        of("list[str] | None"),
        of("Desk.missing.more"),
        of(Literal["Desk"]),
        of(Plain),
        of(Odd()),
        of(3),
        not_assigned(),
        says_itself(),
        returns,
        bare,
        print,
    ],
)
def test_other_functions_are_tools(function: Any) -> None:
    assert Agent("a").tool(function).to_ir()
