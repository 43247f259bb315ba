"""Middlewares that tests put around pipelines, and a pipeline to put them around."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_fluent import Agent
from adk_fluent.config import ExecutionConfig
from adk_fluent.protocol import HOOKS
from adk_fluent.testing import Call, ScriptedModel, reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder

SSE = ExecutionConfig(streaming_mode="sse")
WHERE: Any = {"app_name": "adk_fluent_app", "user_id": "user", "session_id": "s"}
#: The hooks around the one tool call of `desk`.
TOOL = ["before_tool ping", "wrap_tool_call ping", "after_tool ping"]


class OwnError(Exception):
    """What hooks raise."""


def content(text: str) -> types.Content:
    return types.Content(role="model", parts=[types.Part(text=text)])


def text_of(content: types.Content | None) -> str:
    assert content is not None
    return "".join(part.text or "" for part in content.parts or ())


def says(text: str) -> LlmResponse:
    return LlmResponse(content=content(text))


def made_of(**hooks: Callable[..., Any]) -> Any:
    """A middleware made of functions."""
    body = {name: staticmethod(hook) for name, hook in hooks.items()}
    return type("Made", (), body)()


def noting(log: list[str], *, state: bool = False) -> Any:
    """Notes every hook, and writes state in each that has a context."""

    def hook(name: str) -> Any:
        async def note(*args: Any) -> Any:
            if name.startswith("wrap_"):
                call, following = args
                what = getattr(call, "name", "") or getattr(call, "agent", "")
                log.append(f"{name} {what}".strip())
                return await following(call)
            named = name in {"before_agent", "after_agent", "before_tool", "after_tool"}
            log.append(f"{name} {args[1]}" if named else name)
            if state and name not in {"on_event", "close"}:
                args[0].state[name] = len(log)
            return None

        return note

    return made_of(**{name: hook(name) for name in HOOKS})


def ping(word: str) -> str:
    """Answers."""
    return f"{word}!"


def desk(**settings: Any) -> Builder:
    model = ScriptedModel(reply(Call("ping", {"word": "hi"})), reply(chunks=["do", "ne"]))
    return Agent("a", model).tool(ping).writes("out") >> Agent("b").mock("B")
