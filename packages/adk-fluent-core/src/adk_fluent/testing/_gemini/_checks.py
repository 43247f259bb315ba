"""What Gemini refuses in a request, in its words."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.testing._gemini._request import field, objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.testing._gemini._request import GeminiRequest

_NAME: Final = re.compile(r"[A-Za-z_][\w.:-]{0,127}", re.ASCII)
_ROLES: Final = ("user", "model", "function", None, "")
_LISTS: Final = ("contents", "tools", "safetySettings")
_OBJECTS: Final = ("systemInstruction", "generationConfig", "toolConfig")


def complaint(request: GeminiRequest) -> str | None:
    """Why Gemini does not answer this; None if it does."""
    if request.body is None:
        return "Invalid JSON payload received. The request body must be a JSON object."
    return next(_complaints(request), None)


def _complaints(request: GeminiRequest) -> Iterator[str]:
    yield from _shape(request.body or {})
    yield from _contents(request.contents)
    yield from _turns(request.contents)
    yield from _functions(request)


def _shape(body: dict[str, Any]) -> Iterator[str]:
    for names, kind in ((_LISTS, list), (_OBJECTS, dict)):
        for name in names:
            value = field(body, name)
            if value is not None and not isinstance(value, kind):
                yield f"Invalid value at '{name}', {_shown(value)}"
    for name in ("contents", "tools"):
        given: Any = field(body, name)
        if isinstance(given, list) and len(objects(given)) != len(given):  # pyright: ignore[reportUnknownArgumentType]  # of hostile JSON
            yield f"Invalid value at '{name}', not all are objects"


def _shown(value: object) -> str:
    return repr(value)[:80]


def _contents(contents: list[dict[str, Any]]) -> Iterator[str]:
    if not contents:
        yield "* GenerateContentRequest.contents: contents is not specified\n"
    for at, content in enumerate(contents):
        where = f"* GenerateContentRequest.contents[{at}]"
        if content.get("role") not in _ROLES:
            yield "Please use a valid role: user, model."
        parts = content.get("parts")
        if not isinstance(parts, list) or not parts:
            yield f"{where}.parts: contents.parts must not be empty.\n"
        elif len(objects(parts)) != len(parts) or not all(objects(parts)):  # pyright: ignore[reportUnknownArgumentType]  # of hostile JSON
            yield f"{where}.parts: required oneof field 'data' must have one initialized field\n"


def _turns(contents: list[dict[str, Any]]) -> Iterator[str]:
    """A turn of calls is followed by a turn with a result of each of them, and is not the first."""
    if contents and _count(contents[0], "functionCall"):
        yield (
            "Please ensure that function call turn comes immediately after a user turn or after a "
            "function response turn."
        )
    waiting = 0
    for content in contents:
        results = _count(content, "functionResponse")
        if waiting and results != waiting:
            yield (
                "Please ensure that the number of function response parts is equal to the number "
                "of function call parts of the function call turn."
            )
        if results and not waiting:
            yield (
                "Please ensure that function response turn comes immediately after a function "
                "call turn."
            )
        waiting = _count(content, "functionCall")


def _count(content: dict[str, Any], name: str) -> int:
    return sum(field(part, name) is not None for part in objects(content.get("parts")))


def _functions(request: GeminiRequest) -> Iterator[str]:
    names: Counter[str] = Counter()
    for at, tool in enumerate(objects(field(request.body or {}, "tools"))):
        for number, declared in enumerate(objects(field(tool, "functionDeclarations"))):
            name = str(declared.get("name"))
            names[name] += 1
            if not _NAME.fullmatch(name):
                where = f"GenerateContentRequest.tools[{at}].function_declarations[{number}].name"
                yield (
                    f"* {where}: Invalid function name. Must start with a letter or an "
                    "underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), "
                    "colons (:), or dashes (-), with a maximum length of 128.\n"
                )
    for name, times in names.items():
        if times > 1:
            yield f"Duplicate function declaration found: {name}"
