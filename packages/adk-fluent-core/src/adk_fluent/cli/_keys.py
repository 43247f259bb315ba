"""Whether there is a way to reach Gemini, asked before the first model call."""

from __future__ import annotations

import os
from typing import Final

from adk_fluent._texts import environment_secrets
from adk_fluent.errors import CredentialsError
from adk_fluent.ir import AgentNode, Node, walk

KEYS: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
#: Say "true" or "1" where Google Cloud's own credentials are used instead of a key.
CLOUD: Final = ("GOOGLE_GENAI_USE_ENTERPRISE", "GOOGLE_GENAI_USE_VERTEXAI")


def credentials() -> str | None:
    """Return the name of the environment variable that says how Gemini is reached, or None."""
    for name in KEYS:
        if os.environ.get(name, "").strip():
            return name
    return next((name for name in CLOUD if os.environ.get(name, "").lower() in {"true", "1"}), None)


def require_credentials(root: Node, default_model: str | None = None) -> None:
    """Raise an error, before any model call, if Gemini is asked for and there is no key.

    Args:
        root: What is going to run.
        default_model: The model of agents that name none.

    Raises:
        CredentialsError: With the agent that needs one.
    """
    if credentials() is not None:
        return
    for node in walk(root):
        if not isinstance(node, AgentNode) or _needs_no_model(node):
            continue
        model = node.model or default_model
        if model is None or (isinstance(model, str) and model.startswith("gemini")):
            raise no_key(
                f"agent {node.name!r} uses {model or 'Gemini'}", "give the agent a .mock(...)", node
            )


def no_key(what: str, instead: str, node: Node | None = None) -> CredentialsError:
    """Make the error about something that needs a key.

    Args:
        what: What needs it.
        instead: What can be done without one.
        node: Where in the pipeline.
    """
    return CredentialsError(
        f"{what}, and there is no key",
        node=node,
        help=f"set {KEYS[0]} (or {CLOUD[1]}=true with Google Cloud credentials), or {instead}",
    )


def without_keys(text: str) -> str:
    """The text without the secrets that stand in it; services may quote what they were sent."""
    for secret, name in environment_secrets().items():
        text = text.replace(secret, name)
    return text


def _needs_no_model(node: AgentNode) -> bool:
    """Whether it surely or perhaps gets by without; what it lacks then, the call itself tells."""
    return (
        node.mock is not None
        or node.selector is not None
        or any(name == "before_model" for name, _ in node.callbacks)
    )
