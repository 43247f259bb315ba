"""The flow engine with scripted agents: pipelines run without ADK, a model or a network.

Functions, predicates and arrangements are real; agents say and write what you tell them to. They
hand over, call each other as tools, and wait for confirmations and for long-running tools, as they
do on ADK. Tools that are functions are not called, and are as good as ones that return nothing;
callbacks and instructions that are functions are not called either.

Example:
    >>> backend = mock_backend({"classify": "billing", "score": {"score": 7}})
    >>> backend.when("classify").given(prompt_contains="password").responds("account")
    >>> result = await pipeline.run("I forgot my password", backend=backend)
"""

from __future__ import annotations

from adk_fluent.backends.mock._backend import MockApp, MockBackend, When, mock_backend
from adk_fluent.backends.mock._responses import Response

__all__ = ["MockApp", "MockBackend", "Response", "When", "mock_backend"]
