"""What the answer to a gate decides, whichever way it came.

An answer comes from `Pending.answer`, from ADK's web page, which sends a form, from ``adk run``,
which sends typed text as ``{"result": text}``, or from somebody else's program.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from adk_fluent.protocol._json_schema import has_field, is_object, schema_misfit

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

#: What means yes and no, in any case and with blanks around.
YES: Final = frozenset(
    ("y", "yes", "true", "ok", "okay", "approve", "approved", "confirm", "confirmed")
)
NO: Final = frozenset(
    ("n", "no", "false", "reject", "rejected", "refuse", "refused", "deny", "denied")
)

#: The keys under which ADK's own surfaces put an answer that is no object.
_WRAPPERS: Final = ("result", "response")

#: What says yes or no in an object: our word, and that of ADK's tool confirmations.
_VERDICTS: Final = ("approved", "confirmed")

#: Deeper values can be written to some session stores and never be read again.
_DEEPEST: Final = 64

_SHOWN: Final = 60
_YES_OR_NO: Final = 'answer yes or no, or {"approved": true, "note": "..."}'


class Decision(NamedTuple):
    """What was decided.

    Attributes:
        approved: Whether the run goes on; an answer that fits a schema approves.
        value: What is written to state, as JSON: ``{"approved": ..., "note": ...}`` with whatever
            else was sent, where ``note`` is "" if there is none; with a schema the value that fits
            it. A refusal is always of the first form.
    """

    approved: bool
    value: Any


class Fault(NamedTuple):
    """Why an answer decides nothing.

    Attributes:
        what: What is wrong with it, in one sentence without a full stop.
        help: What to answer instead.
        unstorable: Whether session state cannot keep it.
    """

    what: str
    help: str
    unstorable: bool = False


def decide(response_schema: str | None, answer: Any, gate: str | None = "gate") -> Decision | Fault:
    """Read the answer to a gate.

    Without a schema a gate takes a bool, a word of `YES` or `NO`, or an object that holds one of
    these as ``approved`` or ``confirmed``. With a schema it takes a value that fits; so that who is
    asked can refuse in any case, ``{"approved": false}`` does, unless ``approved`` is a field of
    the schema's own, which is data as every other. Either may also be the text of JSON, or stand
    alone in an object as ``result`` or ``response``. What a form left empty (None) may be absent.

    Args:
        response_schema: The gate's JSON Schema as text; None asks for approval.
        answer: What was answered, as JSON.
        gate: The gate's name, for what is said of the answer; None where a tool is confirmed.
    """
    asked = "the confirmation" if gate is None else f"gate {gate!r}"
    try:
        readings = list(_readings(_plain(answer)))
    except ValueError:
        return Fault(
            f"the answer to {asked} is more than JSON can hold",
            "answer text, a number, a bool, None, or a list or dict of them; of a pydantic model "
            "its model_dump(mode='json')",
        )
    if gate is not None and any(map(_has_nul, readings)):
        return Fault(
            f"the answer to {asked} has a NUL character, which session state cannot keep",
            "answer without it",
            unstorable=True,
        )
    if response_schema is None:
        return _approval(readings, asked)
    refused = _refusal(readings)
    if refused is not None and not has_field(response_schema, "approved"):
        return refused
    return _fitting(response_schema, readings, asked)


def _approval(readings: list[Any], asked: str) -> Decision | Fault:
    for each in readings:
        answer = each if is_object(each) else {"approved": each}
        said = {_yes_or_no(answer[key]) for key in _VERDICTS if key in answer}
        if said == {True, False}:
            return Fault(
                f"the answer to {asked} says both yes and no",
                "give approved alone, without confirmed",
            )
        if said and None not in said:
            return _decision(True in said, answer)
    return Fault(f"{_shown(readings[-1])} is no answer to {asked}", _YES_OR_NO)


def _refusal(readings: list[Any]) -> Decision | None:
    for each in readings:
        if is_object(each) and each.get("approved") is False:
            return _decision(False, each)
    return None


def _fitting(schema: str, readings: list[Any], asked: str) -> Decision | Fault:
    order = readings
    if _wrapper(readings[0]) and f'"{_wrapper(readings[0])}"' not in schema:
        order = [*readings[1:], readings[0]]  # the schema knows of no such property
    try:
        for each in order:
            for value in _with_and_without_blanks(each):
                if schema_misfit(schema, value) is None:
                    return Decision(True, value)
        wrong = schema_misfit(schema, readings[-1])
    except ValueError as error:
        return Fault(f"the schema of {asked} cannot be used: {error}", "mend the schema")
    help = "answer JSON that fits the schema"
    if not has_field(schema, "approved"):
        help += ', or {"approved": false} to refuse'
    return Fault(f"the answer to {asked} does not fit its schema: {wrong}", help)


def _decision(approved: bool, answer: dict[str, Any]) -> Decision:
    more = {key: value for key, value in answer.items() if key not in _VERDICTS}
    note = more.pop("note", None)
    return Decision(approved, {"approved": approved, "note": "" if note is None else note, **more})


def _yes_or_no(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    word = value.strip().casefold() if isinstance(value, str) else None
    return True if word in YES else False if word in NO else None


def _readings(answer: Any) -> Iterator[Any]:
    """The answer, what it wraps, and what that says if it is the text of JSON."""
    yield answer
    wrapper = _wrapper(answer)
    if wrapper is not None:
        answer = answer[wrapper]
        yield answer
    if isinstance(answer, str):
        from json import loads  # noqa: PLC0415  # only for answers that are text

        with suppress(ValueError, RecursionError):
            yield _plain(loads(answer))


def _wrapper(answer: Any) -> str | None:
    if is_object(answer) and len(answer) == 1:
        return next((key for key in _WRAPPERS if key in answer), None)
    return None


def _with_and_without_blanks(value: Any) -> Iterator[Any]:
    yield value
    if is_object(value) and None in value.values():
        yield {key: each for key, each in value.items() if each is not None}


def _plain(value: Any) -> Any:
    """The value made anew of what JSON has.

    Raises:
        ValueError: It is more than that, or deeper than session stores can read back.
    """
    from json import dumps, loads  # noqa: PLC0415  # only where something is answered

    try:
        text = dumps(value, allow_nan=False, ensure_ascii=False)
        text.encode()  # refuses half a character
        plain = loads(text)
    except (TypeError, RecursionError) as error:
        raise ValueError(value) from error
    if _is_deep(plain):
        raise ValueError(value)
    return plain


def _has_nul(value: Any) -> bool:
    """Whether a text in it, or a key, has what databases cut text off at."""
    if is_object(value) and any("\0" in key for key in value):
        return True
    return "\0" in value if isinstance(value, str) else any(map(_has_nul, _inside(value)))


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
    return bool(level)


def _inside(value: Any) -> Collection[Any]:
    if is_object(value):
        return value.values()
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _shown(answer: Any) -> str:
    match answer:
        case None:
            return "nothing"
        case dict():
            said = cast("dict[str, Any]", answer)
            key = next((key for key in _VERDICTS if said.get(key) is not None), None)
            return "an object without approved" if key is None else f"{key} {_shown(said[key])}"
        case list():
            return "a list"
        case str():
            return repr(answer if len(answer) <= _SHOWN else f"{answer[: _SHOWN - 3]}...")
        case _:
            return repr(answer)
