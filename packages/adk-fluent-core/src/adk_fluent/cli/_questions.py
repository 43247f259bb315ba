"""Questions that a paused run waits on: how they are shown, and what an answer to one must be."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeGuard, cast

from adk_fluent.cli._text import short
from adk_fluent.flow import APPROVAL
from adk_fluent.protocol._decision import NO, YES, Fault, decide
from adk_fluent.protocol._json_schema import schema_misfit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.protocol import Answer, Pending

#: "no, too much": a word, a comma or the like, and a note.
_NOTED: Final = re.compile(r"\s*(\w+)\s*[,;:]\s*(\S.*)", re.DOTALL)
#: What ADK says of a confirmation that nobody gave words for.
_ADK_HINT: Final = "Please approve or reject the tool call"
_WIDTH: Final = 200
_EXAMPLES: Final[Mapping[str, Any]] = {
    "number": 0,
    "integer": 0,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}

NOT_HERE: Final = Fault(
    "credentials cannot be given here", "sign in with adk web, or give the tool its credentials"
)


def takes_yes_or_no(question: Pending) -> bool:
    """Whether it asks to approve something."""
    if question.kind == "gate":
        return question.response_schema in (None, APPROVAL)
    return question.kind == "confirmation" or question.response_schema == APPROVAL


def shown(question: Pending) -> str:
    """What a person is told."""
    name, who = question.name, question.author or "the run"
    match question.kind:
        case "confirmation":
            text = f"{who} asks to run {name}{_arguments(question.payload)}"
            return text if question.message.startswith(_ADK_HINT) else _after(text, question)
        case "tool":
            return f"{who} waits for the result of {name}{_arguments(question.payload)}"
        case "auth":
            return f"{who} needs credentials for {name or 'a tool'}: {NOT_HERE.what}"
        case "gate":
            text = f"{name} asks: {question.message}"
        case _:
            text = f"{who} asks: {question.message or name}"
    if question.payload is None:
        return text
    return f"{text}\n{json.dumps(question.payload, indent=2, ensure_ascii=False, default=str)}"


def prompt(question: Pending) -> str:
    """What is asked for, in a few words."""
    if takes_yes_or_no(question):
        note = ", and a note if you like (no, too much)" if question.kind == "gate" else ""
        return f"yes or no{note}"
    if question.response_schema is not None:
        return words_of(question.response_schema)
    return "its result, as JSON or text" if question.kind == "tool" else "JSON or text"


def read(question: Pending, text: str) -> Answer | Fault:
    """The answer that a text is."""
    if question.kind == "auth":
        return NOT_HERE
    if takes_yes_or_no(question):
        noted = _NOTED.fullmatch(text)
        word = noted[1].casefold() if noted else ""
        value: Any = text
        if noted and word in YES | NO:
            value = {"approved": word in YES, "note": noted[2].rstrip()}
        return _decided(question, None, value)
    if question.response_schema is None:
        return question.answer(json_or_text(text))
    return _decided(question, json.dumps(question.response_schema), text)


def refusal(question: Pending, note: str) -> Answer | Fault:
    """The answer that says no."""
    if question.kind != "gate" and not takes_yes_or_no(question):
        return Fault(f"{question.name or 'this'} cannot be refused", f"give {prompt(question)}")
    if question.kind == "confirmation":
        return question.answer({"approved": False, "note": note} if note else False)
    schema = None if takes_yes_or_no(question) else question.response_schema
    if schema is None:
        return question.answer({"approved": False, "note": note})
    said = {"approved": False, "note": note} if note else {"approved": False}
    return _decided(question, json.dumps(schema), said)


def whole(question: Pending, values: Mapping[str, Any]) -> Answer | Fault:
    """The answer that the values of its fields are."""
    return _decided(question, json.dumps(question.response_schema), dict(values))


def _decided(question: Pending, schema: str | None, value: Any) -> Answer | Fault:
    found = decide(schema, value, None if question.kind == "confirmation" else question.name)
    if isinstance(found, Fault):
        return found
    if question.kind == "confirmation":
        is_bare = found.value == {"approved": found.approved, "note": ""}
        return question.answer(found.approved if is_bare else found.value)
    # Wrapped, a value cannot be taken for a word of another meaning than it has in the schema.
    return question.answer({"result": found.value} if schema and found.approved else found.value)


def json_or_text(text: str) -> Any:
    """What a text says as JSON; the text itself if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


# --- schemas -------------------------------------------------------------------------------------


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether it is an object of JSON."""
    return isinstance(value, dict)


def fields_of(question: Pending) -> dict[str, dict[str, Any]]:
    """The schemas of the fields that it asks for one by one; none when it asks for one value."""
    schema = question.response_schema
    if takes_yes_or_no(question) or schema is None or not is_object(schema.get("properties")):
        return {}
    definitions = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return {
        name: {**definitions, **(field if is_object(field) else {})}
        for name, field in schema["properties"].items()
    }


def read_field(schema: Mapping[str, Any], text: str) -> tuple[Any] | str:
    """The value of a field, alone in a tuple; or why the text is none."""
    as_json, judge = json_or_text(text), json.dumps(schema)
    for value in (text, as_json):
        if schema_misfit(judge, value) is None:
            return (value,)
    return schema_misfit(judge, as_json) or ""


def words_of(schema: Mapping[str, Any]) -> str:
    """What a schema asks for, in a few words."""
    words: Any
    several: Any = schema.get("anyOf") or schema.get("oneOf")
    if "enum" in schema:
        words = schema["enum"]
    elif several:
        words = [words_of(each) for each in several if is_object(each)]
    else:
        kind: Any = schema.get("type") or str(schema.get("$ref", "")).rpartition("/")[2]
        words = cast("list[Any]", kind) if isinstance(kind, list) else [kind or "JSON or text"]
    return " or ".join(map(str, words))


def example(question: Pending) -> str:
    """An answer such as it takes, as text."""
    if takes_yes_or_no(question):
        return "yes"
    if question.response_schema is None:
        return "TEXT"
    value = _example(question.response_schema)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _example(schema: Any) -> Any:
    if not is_object(schema):
        return "..."
    if schema.get("enum"):
        return schema["enum"][0]
    fields = schema.get("properties")
    if is_object(fields):
        return {name: _example(fields.get(name)) for name in schema.get("required") or fields}
    return _EXAMPLES.get(str(schema.get("type")), "...")


def _arguments(payload: Any) -> str:
    if not is_object(payload):
        return ""
    args = (f"{k}={json.dumps(v, default=str, ensure_ascii=False)}" for k, v in payload.items())
    return f"({short(', '.join(args), _WIDTH)})"


def _after(text: str, question: Pending) -> str:
    return f"{text}: {question.message}" if question.message else text
