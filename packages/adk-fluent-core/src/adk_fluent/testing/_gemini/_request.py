"""A request to Gemini's REST API as plain data."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._scripts._replies import Asked, Turn
from adk_fluent._scripts._wire import agent_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_HUMP: Final = re.compile(r"(?<=[a-z])([A-Z])")


@dataclass(frozen=True, slots=True)
class GeminiRequest:
    """One request that an emulator was sent.

    Attributes:
        number: 0 for the first one, and so on.
        method: Such as ``POST``.
        path: Its path, such as ``/v1beta/models/gemini-2.5-flash:generateContent``.
        model: The model's name in it; None if there is none.
        action: What follows the model, such as ``streamGenerateContent``; None if there is none.
        headers: By name in lower case; those that hold a secret are left out.
        body: The JSON, parsed; None if there is none, or if it is no JSON object.
        cached: The body that the cached content was made with, if it names one.
    """

    number: int
    method: str
    path: str
    model: str | None
    action: str | None
    headers: Mapping[str, str]
    body: dict[str, Any] | None
    cached: dict[str, Any] | None = None

    @property
    def stream(self) -> bool:
        """Whether the answer is to come in pieces."""
        return self.action == "streamGenerateContent"

    @property
    def system(self) -> str:
        """The text of the system instruction."""
        given = self._first("systemInstruction")
        return _content_text(cast("Any", given)) if isinstance(given, dict) else str(given or "")

    @property
    def contents(self) -> list[dict[str, Any]]:
        """The conversation as it was sent; what is cached comes first."""
        found: list[dict[str, Any]] = []
        for body in (self.cached, self.body):
            found.extend(objects(field(body or {}, "contents")))
        return found

    @property
    def turns(self) -> tuple[Turn, ...]:
        """The conversation as text."""
        return tuple(
            Turn(str(field(content, "role") or "user"), _content_text(content))
            for content in self.contents
        )

    @property
    def declarations(self) -> dict[str, dict[str, Any]]:
        """The functions the model may call, by name, as they are declared to it."""
        return {
            str(declared.get("name")): declared
            for tool in objects(self._first("tools"))
            for declared in objects(field(tool, "functionDeclarations"))
        }

    @property
    def tools(self) -> tuple[str, ...]:
        """The names of these functions."""
        return tuple(self.declarations)

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results of functions that come with this request: each with a name and a response."""
        parts = objects(field(self.contents[-1], "parts")) if self.contents else []
        found = [field(part, "functionResponse") for part in parts]
        return [cast("dict[str, Any]", result) for result in found if isinstance(result, dict)]

    @property
    def config(self) -> dict[str, Any]:
        """The generation config: temperature, schema of the answer, and so on."""
        given = self._first("generationConfig")
        return cast("dict[str, Any]", given) if isinstance(given, dict) else {}

    @property
    def agent(self) -> str | None:
        """The agent that asks; ADK says so in the system instruction."""
        return agent_name(self.system)

    @property
    def asked(self) -> Asked:
        """What a script is asked; `Asked.raw` is this request."""
        return Asked(
            turns=self.turns,
            system=self.system,
            agent=self.agent,
            tools=self.tools,
            stream=self.stream,
            model=self.model,
            raw=self,
        )

    @property
    def prompt(self) -> str:
        """What is new: the text of every turn since the model's last one."""
        return self.asked.prompt

    def _first(self, name: str) -> Any:
        """A field of the body, or of the cached one."""
        given = field(self.body or {}, name)
        return given if given is not None else field(self.cached or {}, name)


def field(value: Mapping[str, Any], name: str) -> Any:
    """A field of a JSON object; Google takes both ways of writing its name."""
    given = value.get(name)
    return given if given is not None else value.get(_snake(name))


def _snake(name: str) -> str:
    return _HUMP.sub(r"_\1", name).lower()


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a JSON array; nothing if it is none."""
    if not isinstance(value, list):
        return []
    items: Iterable[Any] = cast("list[Any]", value)
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _content_text(content: Mapping[str, Any]) -> str:
    texts = (_part_text(part) for part in objects(field(content, "parts")))
    return "\n".join(text for text in texts if text)


def _part_text(part: dict[str, Any]) -> str:
    """As a `ScriptedModel` shows it, so that one script follows both."""
    if (text := part.get("text")) is not None:
        return "" if part.get("thought") else str(text)
    for name, shows in (("functionCall", _call), ("functionResponse", _result)):
        if isinstance(given := field(part, name), dict):
            return shows(cast("dict[str, Any]", given))
    if isinstance(given := field(part, "inlineData"), dict):
        return _blob(cast("dict[str, Any]", given))
    if isinstance(given := field(part, "fileData"), dict):
        file = cast("dict[str, Any]", given)
        return f"[{field(file, 'mimeType')} {field(file, 'fileUri')}]"
    return f"[{' '.join(map(_snake, part))}]"


def _call(call: dict[str, Any]) -> str:
    return f"[call {call.get('name')} {_json(call.get('args'))}]"


def _result(result: dict[str, Any]) -> str:
    return f"[result {result.get('name')} {_json(result.get('response'))}]"


def _blob(blob: dict[str, Any]) -> str:
    data = str(blob.get("data") or "").rstrip("=")  # base64
    return f"[{field(blob, 'mimeType')} {len(data) * 3 // 4} bytes]"


def _json(value: Any) -> str:
    return json.dumps(value or {}, ensure_ascii=False)
