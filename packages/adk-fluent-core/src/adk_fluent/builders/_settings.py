"""What the agent's setters take, as the IR holds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_origin

from adk_fluent._arguments import one_of
from adk_fluent._words import article, describe
from adk_fluent.builders._operands import positive
from adk_fluent.errors import UsageError
from adk_fluent.ir import Ref

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    #: Turns what was given to a setter into what the IR holds, or raises UsageError. The second
    #: argument is the setter in words.
    Check: TypeAlias = Callable[[object, str], object]


def as_text(value: object, role: str) -> str:
    """A str.

    Raises:
        UsageError: It is none.
    """
    if isinstance(value, str):
        return value
    raise UsageError(f"{role} takes text", found=describe(value))


def as_static_instruction(value: object) -> str | Ref:
    """Text or content.

    Raises:
        UsageError: It is neither.
    """
    if type(value).__module__.startswith("google.genai."):
        return Ref.to(value)
    return as_text(value, ".static_instruct(...)")


def as_instruction(value: object, role: str = ".instruct(...)") -> str | Ref:
    """Text, or a function that gives it.

    Raises:
        UsageError: It is neither.
    """
    if isinstance(value, str):
        return value
    if callable(value) and not isinstance(value, type):
        return Ref.to(value)
    raise UsageError(
        f"{role} takes text, or a function that gives it",
        found=describe(value),
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
                help='pass "text", ["first", "second"], lambda prompt: "text", or a reply or '
                "Script of adk_fluent.testing",
            )
    held = tuple(replies) if several else value
    texts = all(isinstance(reply, str) for reply in replies)
    return Ref(held, "mock", f"mock:{held!r}" if texts else None)  # equal texts are interchangeable


def _is_reply(value: object) -> bool:
    if isinstance(value, type):
        return False
    known = type(value).__module__.startswith(("adk_fluent._scripts.", "google.genai."))
    return known or callable(value) or isinstance(value, str | Exception)


# --- for setters that are generated --------------------------------------------------------------


def optional(check: Check) -> Check:
    """None, or what another check takes."""
    return lambda value, role: None if value is None else check(value, role)


def instance(kind: str) -> Check:
    """An instance of a class of ADK's, which is known by its name: ADK is not imported here."""

    def check(value: object, role: str) -> Ref:
        if any(cls.__name__ == kind for cls in value.__class__.__mro__):
            return Ref.to(value)
        raise UsageError(
            f"{role} takes {article(kind)} {kind}",
            found=describe(value),
        )

    return check


def choice(*known: str) -> Check:
    """One of a few words."""
    return lambda value, role: one_of(value, known, role)


def as_flag(value: object, role: str) -> bool:
    """True or False.

    Raises:
        UsageError: It is neither.
    """
    if isinstance(value, bool):
        return value
    raise UsageError(f"{role} takes True or False", found=describe(value))


def as_seconds(value: object, role: str) -> float:
    """A number of seconds.

    Raises:
        UsageError: It is no number above zero.
    """
    return positive(value, role, help="give seconds")
