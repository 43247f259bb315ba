"""Gates: steps that ask a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_origin

from adk_fluent._words import describe
from adk_fluent.builders._flow import Silent
from adk_fluent.builders._json_values import as_json_text
from adk_fluent.builders._keys import as_written
from adk_fluent.builders._operands import as_predicate, is_mapping, refuse_generator
from adk_fluent.builders._settings import as_text
from adk_fluent.errors import UsageError
from adk_fluent.ir import GateNode, Node, Ref

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import UnionType

    from adk_fluent.builders._types import KeyLike, PredicateLike, Schema, StateFunction

_ROLE = "response_schema of gate(...)"


class Gate(Silent):
    """Asks a person before the next step; made by `gate`."""

    __slots__ = ("_key", "_message", "_payload", "_predicate", "_response_schema")
    _kind = "gate"

    def __init__(
        self,
        predicate: PredicateLike | None = None,
        *,
        message: str = "Approval required",
        payload: StateFunction | Ref | None = None,
        response_schema: Schema | UnionType | Mapping[str, Any] | None = None,
        key: KeyLike | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        self._predicate = None if predicate is None else _test(predicate)
        self._message = _question(message)
        self._payload = None if payload is None else _shown(payload)
        self._response_schema = None if response_schema is None else _schema(response_schema)
        self._key = None if key is None else as_written(key, "key").key

    def _freeze(self) -> Node:
        return GateNode(
            self.name,
            self._predicate,
            self._message,
            self._payload,
            self._response_schema,
            self._key,
            location=self._location,
        )


def gate(
    predicate: PredicateLike | None = None,
    *,
    message: str = "Approval required",
    payload: StateFunction | Ref | None = None,
    response_schema: Schema | UnionType | Mapping[str, Any] | None = None,
    key: KeyLike | None = None,
    name: str | None = None,
) -> Gate:
    """A step that stops the run until a person answers.

    The answer is written to state: ``{"approved": True, "note": ...}``, or what fits the schema.
    A refusal stops the run, and ``{"approved": False, "note": ...}`` is written; but a field
    ``approved`` of the schema's own is data.

    Args:
        predicate: A function of state, sync or async: ask only if it holds. None always asks.
        message: What the person is asked.
        payload: A function of state, sync or async: what is shown with the message, as JSON.
        response_schema: What an answer looks like: a JSON Schema, or a type that pydantic knows.
            None asks for yes or no, and a note.
        key: State key the answer is written to; None is the step's name.
        name: The step's name.
    """
    return Gate(
        predicate,
        message=message,
        payload=payload,
        response_schema=response_schema,
        key=key,
        name=name,
    )


def _test(predicate: Any) -> Any:
    if isinstance(predicate, str):
        raise UsageError(
            "gate(...) takes a function of state",
            found=describe(predicate),
            help="for what the person is asked write gate(message=...)",
        )
    return as_predicate(predicate, "gate(...)")


def _question(message: object) -> str:
    text = as_text(message, "the message of gate(...)")
    if text.strip():
        return text
    raise UsageError(
        "the message of gate(...) is empty", help="say what the person is asked, in a sentence"
    )


def _shown(payload: object) -> Ref:
    if isinstance(payload, Ref):
        return payload
    if not callable(payload) or isinstance(payload, type):
        raise UsageError(
            "payload takes a function of state",
            found=describe(payload),
            help='pass fn(state) -> JSON, such as lambda s: {"amount": s["amount"]}',
        )
    refuse_generator(payload, "the payload of a gate", help="return what is shown; do not yield")
    return Ref.to(payload)


def _schema(value: object) -> str:
    """A schema as text.

    Raises:
        UsageError: It is none, or answers cannot be checked against it.
    """
    from json import loads  # noqa: PLC0415  # only where there is a schema

    from adk_fluent.protocol._json_schema import schema_fault  # noqa: PLC0415  # the same

    if isinstance(value, type) or get_origin(value) is not None:
        value = _schema_of(value)
    if not is_mapping(value):
        raise UsageError(
            f"{_ROLE} takes a JSON Schema or a type",
            found=describe(value),
            help='pass a dict such as {"type": "string"}, or a pydantic model class',
        )
    text = as_json_text(value, _ROLE)
    fault = schema_fault(loads(text))
    if fault is not None:
        raise UsageError(
            f"{_ROLE} is no JSON Schema that answers can be checked against",
            found=fault,
        )
    return text


def _schema_of(kind: Any) -> dict[str, Any]:
    from pydantic import TypeAdapter  # noqa: PLC0415  # slow to import, and only for types
    from pydantic.errors import PydanticUserError  # noqa: PLC0415

    try:
        return TypeAdapter(kind).json_schema()
    except PydanticUserError as error:
        raise UsageError(
            f"{_ROLE} takes a type that pydantic has a JSON Schema for",
            found=describe(kind),
            help=f"pydantic says: {error.message.partition('. ')[0]}",
        ) from error
