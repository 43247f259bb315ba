"""What an error of a model's client means, and what to do about it, as a note on the error itself.

The error keeps its type. Which model and which agent it was about stands in the frames it came
through: the agent may be any below the step, and a callback may have chosen another model.
"""

from __future__ import annotations

import os
import re
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini

from adk_fluent.errors import AdkFluentError
from adk_fluent.protocol import classify
from adk_fluent.protocol._classify import status_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest

    from adk_fluent.ir import AgentNode, ExecutionConfig

#: In the order in which Google's client looks for a key.
_KEYS: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
#: What ADK says of a placeholder that state has nothing for.
_ABSENT: Final = re.compile("Context variable not found: `([^`]*)`")
_PLACEHOLDER: Final = (
    "help: {{{key}}} in an instruction is a key of state, and nothing has written it: declare "
    '.writes("{key}") on a step before, or write {{{key}?}} where it may be absent'
)
_CLIENT: Final = "google.genai._api_client"


def explain(
    error: Exception,
    nodes: Mapping[str, AgentNode],
    config: ExecutionConfig,
    invocation: InvocationContext,
) -> None:
    """Note on an error what it is about and what to do.

    These are errors that a model's client raised, and that of an instruction whose placeholder is
    no key of state. Others stay as they are.

    Args:
        error: What was raised.
        nodes: The nodes of the agents that were built here, by name.
        config: How the pipeline runs.
        invocation: Where it was raised.
    """
    if isinstance(error, AdkFluentError):
        return
    if isinstance(error, KeyError) and (absent := _ABSENT.search(str(error))):
        for event in reversed(invocation.session.events):  # an agent of a tree goes on after one
            if event.invocation_id == invocation.invocation_id and event.error_code:
                failed = f"{event.error_code}: {event.error_message}"
                _note(error, f"agent {event.author!r} had failed before: {failed}")
                return
        _note(error, _PLACEHOLDER.format(key=absent[1]))
        return
    call = _Call.behind(error)
    if call is None or (help := _help(error, call)) is None:
        return
    _note(error, f"{call.described(nodes, config)}\n  help: {help}")


def _note(error: Exception, note: str) -> None:
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


class _Call:
    """The model call that an error came out of.

    Args:
        model: The model.
        request: What it was asked.
        agent: Who asked.
    """

    def __init__(self, model: BaseLlm, request: LlmRequest | None, agent: BaseAgent | None) -> None:
        self.model = model
        self.request = request
        self.agent = agent

    @classmethod
    def behind(cls, error: Exception) -> _Call | None:
        """The innermost call; None if the error does not come from a model."""
        found: _Call | None = None
        agent: BaseAgent | None = None
        for frame, _ in walk_tb(error.__traceback__):
            caller = frame.f_locals.get("self")
            if isinstance(caller, BaseAgent):
                agent, found = caller, None
            elif isinstance(caller, BaseLlm):
                known = None if found is None else found.request
                found = cls(caller, frame.f_locals.get("llm_request") or known, agent)
        return found

    @property
    def name(self) -> str:
        """The model as it was asked for."""
        asked = None if self.request is None else self.request.model
        return asked or self.model.model

    def described(self, nodes: Mapping[str, AgentNode], config: ExecutionConfig) -> str:
        """Which model of which agent, and who named it."""
        if self.agent is None:
            return f"model {self.name!r}"
        node = nodes.get(self.agent.name)
        if self.name != self.model.model:
            source = "a callback"
        elif node is not None and node.model is not None:
            source = node.model_source or "the agent itself"
        elif node is not None and _names(config.default_model, self.name):
            source = "config.default_model"
        elif not isinstance(self.agent, LlmAgent) or self.agent.model:
            source = "the agent itself"
        elif isinstance(self.agent.parent_agent, LlmAgent):
            source = f"agent {self.agent.parent_agent.name!r} above it"
        else:
            source = "ADK's default"
        return f"model {self.name!r} of agent {self.agent.name!r}, named by {source}"

    def key_source(self) -> str:
        """Where the credentials come from; never the credentials."""
        model = self.model
        if not isinstance(model, Gemini):
            return f"the credentials of {type(model).__name__}"
        client: Any = getattr(model.api_client, "_api_client", None)
        key = getattr(client, "api_key", None)
        if not key and getattr(client, "vertexai", False):
            return "Google Cloud's credentials (GOOGLE_GENAI_USE_VERTEXAI)"
        for name in _KEYS:
            if key and os.environ.get(name, "").strip() == key:
                return f"the key in {name}"
        return "the key that the model's client was made with"

    def media(self) -> list[str]:
        """Kinds and sizes of all that is no text in the request."""
        return [] if self.request is None else list(_media(self.request))


def _names(model: object, name: str) -> bool:
    return name in (model, getattr(getattr(model, "value", None), "model", None))


def _media(request: LlmRequest) -> Iterator[str]:
    for content in request.contents:
        for part in content.parts or ():
            if (blob := part.inline_data) is not None:
                yield f"{blob.mime_type} ({len(blob.data or b'')} bytes)"
            elif (file := part.file_data) is not None:
                yield f"{file.mime_type or 'a file of unknown type'} ({file.file_uri})"


def _help(error: Exception, call: _Call) -> str | None:
    """What to do about an error; None if nothing is known about it."""
    status = status_of(error)
    if status is not None:
        return _of_status(status, str(error), call)
    return next((told for fits, told in _OF_ERRORS if fits(error)), None)


def _of_status(status: int, text: str, call: _Call) -> str | None:
    if status == 400 and "API_KEY" in text.upper().replace(" ", "_"):
        status = 401  # so says Gemini of a key that it does not know
    if status == 400:
        media = ", ".join(call.media())
        sent = f"it was sent {media}: does it take that? " if media else ""
        return f"{sent}the same request will fail again; change what is sent"
    if status in (401, 403):
        return f"it was called with {call.key_source()}{_OF_STATUS[status]}"
    return _OF_STATUS.get(status, _FAILED if status >= 500 else None)


def _has_no_key(error: Exception) -> bool:
    return (
        isinstance(error, ValueError)
        and "key" in str(error).lower()
        and any(f.f_globals.get("__name__") == _CLIENT for f, _ in walk_tb(error.__traceback__))
    )


def _is_any(*names: str) -> Callable[[Exception], bool]:
    """Whether an error is of a class of one of these names, which need not be imported."""
    return lambda error: any(cls.__name__ in names for cls in type(error).__mro__)


_AGAIN: Final = "try again; a fallback (a // b) does so by itself"
_FAILED: Final = f"the service is overloaded or has failed; {_AGAIN}"
_OF_STATUS: Final = {
    401: ", which was rejected: check it, or make a new one",
    403: ", which may not do this: look at its restrictions, and at what its project has enabled",
    404: "check the name; client.models.list() of google.genai tells which there are",
    429: "the quota is used up: wait, do fewer runs at a time (map(concurrency=...)), or fall back "
    "to another model (a // b)",
}
_OF_ERRORS: Final[tuple[tuple[Callable[[Exception], bool], str], ...]] = (
    (
        _has_no_key,
        (
            f"set {_KEYS[0]} (or GOOGLE_GENAI_USE_VERTEXAI=true with Google Cloud's credentials); "
            "or do without a model: .mock(...)"
        ),
    ),
    (
        _is_any("DefaultCredentialsError"),
        (
            "gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS; "
            "GOOGLE_GENAI_USE_VERTEXAI=true asks for these instead of a key"
        ),
    ),
    (
        _is_any("UnknownApiResponseError", "JSONDecodeError"),
        (
            "what came back is no answer of a model, and nothing of it was kept; look at proxies "
            f"and at the base URL, or {_AGAIN}"
        ),
    ),
    (
        lambda error: "surrogates not allowed" in str(error),
        'the prompt holds half a character; repair it: text.encode("utf-8", "replace").decode()',
    ),
    (
        lambda error: classify(error) == "retriable",
        f"the connection broke or was too slow, and nothing of the answer was kept; {_AGAIN}",
    ),
)
