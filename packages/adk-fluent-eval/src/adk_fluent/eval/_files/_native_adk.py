"""Contents and personas of ADK's, from plain data and to it. Importing this imports ADK."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.version import __version__
from google.genai.types import Content, Part
from pydantic import BaseModel, ValidationError

from adk_fluent._words import describe
from adk_fluent.eval._errors import EvalError, EvalFileError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from adk_fluent.eval._cases._case import Message
    from adk_fluent.eval._files._place import At, Source

_CAMEL: Final = re.compile(r"(?<=[a-z0-9])([A-Z])")


def content_of(message: Message) -> Content:
    """What a user says, as ADK's Content.

    Raises:
        EvalError: It is nothing that a user can say.
    """
    if isinstance(message, str):
        return Content(role="user", parts=[Part(text=message)])
    if isinstance(message, Content):
        return message if message.role else message.model_copy(update={"role": "user"})
    several = isinstance(message, list | tuple)
    items = cast("list[Any]", message) if several else [message]
    return Content(role="user", parts=[_part(each) for each in items])


def _part(value: Any) -> Part:
    if isinstance(value, Part):
        return value
    if isinstance(value, str):
        return Part(text=value)
    raise EvalError("a user says texts, Parts and Contents of google.genai", found=describe(value))


def text_or_content(content: Content) -> str | Content:
    """What a user says: its text where it is one text and nothing else, the Content otherwise."""
    parts = content.parts or []
    if len(parts) == 1 and parts[0].text:
        held = (name for name in parts[0].model_fields_set if getattr(parts[0], name) is not None)
        if set(held) == {"text"}:
            return parts[0].text
    return content


def answer_text(content: Content | None) -> str:
    """The text of an answer, without thoughts."""
    parts = (content.parts if content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def content_data(message: Message) -> dict[str, Any]:
    """What a user says as plain data, as ``{role: user, parts: [...]}``."""
    return content_of(message).model_dump(mode="json", exclude_unset=True, exclude_none=True)


def read_content(source: Source, at: At, value: Mapping[str, Any]) -> Content:
    """The Content of plain data; media are base64.

    Raises:
        EvalFileError: It is none.
    """
    if "parts" not in value:
        raise source.error(
            at,
            "what the user says is a text, or {parts: [...]}",
            found=f"keys {', '.join(value)}" if value else "an empty mapping",
        )
    content = cast("Content", _validated(source, at, value, Content))
    if not content.parts:
        raise source.error((*at, "parts"), "the user says nothing", found="no parts")
    return content


def read_persona(source: Source, at: At, value: Mapping[str, Any]) -> Any:
    """The UserPersona of plain data.

    Raises:
        EvalFileError: It is none, or the installed ADK has no personas.
    """
    try:
        from google.adk.evaluation.simulation.user_simulator_personas import (  # noqa: PLC0415  # not in google-adk 1.25
            UserPersona,
        )
    except ModuleNotFoundError:
        raise source.error(
            at,
            "the installed google-adk has no personas",
            help="describe the user in words, or install google-adk 2",
        ) from None
    return _validated(source, at, value, UserPersona)


def persona_data(persona: Any) -> dict[str, Any]:
    """A UserPersona as plain data.

    Raises:
        EvalError: It is none.
    """
    if not isinstance(persona, BaseModel):
        raise EvalError(
            "a persona is words, or ADK's UserPersona", found=describe(cast("object", persona))
        )
    return persona.model_dump(mode="json")


def _validated(
    source: Source, at: At, value: Mapping[str, Any], model: type[BaseModel]
) -> BaseModel:
    try:
        return model.model_validate_json(json.dumps(value))  # base64 is understood only in JSON
    except ValidationError as error:
        raise validation_error(source, at, error, value) from error


def validation_error(
    source: Source, at: At, error: ValidationError, value: Any = None
) -> EvalFileError:
    """The first fault that pydantic found, as an error that names the field.

    Args:
        source: The file.
        at: Where the value is that was looked at.
        error: What pydantic says.
        value: The value, whose own spelling of fields is told.
    """
    first, *others = error.errors(include_url=False, include_input=False)
    more = f", and {len(others)} more" if others else ""
    if first["type"] == "extra_forbidden":
        return source.error(
            (*at, *_way(first["loc"], value)),
            f"google-adk {__version__} has no field {first['loc'][-1]!r} there{more}",
            help="correct its name; if a newer google-adk wrote the file, upgrade google-adk here, "
            "or take the field out",
        )
    return source.error((*at, *_way(first["loc"], value)), f"{first['msg']}{more}")


def _way(steps: tuple[int | str, ...], value: Any) -> Iterator[int | str]:
    """The way to a fault, without the members of unions that pydantic puts into it."""
    for n, step in enumerate(steps):
        if isinstance(step, int):
            items = cast("list[Any]", value) if isinstance(value, list) else []
            value = items[step] if step < len(items) else None
            yield step
            continue
        fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        name = step if step in fields else _CAMEL.sub(r"_\1", step).lower()
        if name in fields:
            value = fields[name]
            yield name
        elif n == len(steps) - 1 and step.isidentifier():
            yield name
