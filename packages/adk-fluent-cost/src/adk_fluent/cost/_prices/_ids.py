"""Names of models: one model has many, by the service that is asked for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

#: Prefixes of LiteLLM, to the provider whose prices hold.
_PROVIDERS: Final = {
    "anthropic": "anthropic",
    "azure": "azure",
    "azure_ai": "azure",
    "bedrock": "aws",
    "cohere": "cohere",
    "cohere_chat": "cohere",
    "deepseek": "deepseek",
    "fireworks_ai": "fireworks",
    "gemini": "google",
    "google": "google",
    "groq": "groq",
    "mistral": "mistral",
    "openai": "openai",
    "openrouter": "openrouter",
    "perplexity": "perplexity",
    "together_ai": "together",
    "vertex_ai": "google",
    "vertex_ai_beta": "google",
    "xai": "x-ai",
}
#: How names of models begin whose provider is known by that.
_FAMILIES: Final = {
    "claude": "anthropic",
    "gemini": "google",
    "gemma": "google",
    "gpt": "openai",
    "grok": "x-ai",
}
_PUBLISHED: Final = re.compile(r"(?:.*/)?publishers/([^/]+)/models/([^/]+)")
#: ADK's names of models behind a gateway: a provider and the version of an API may stand between.
_APIGEE: Final = re.compile(r"apigee/((?:(?!v\d)\w+/)?)(?:v\d\w*/)?([^/]+)")
_OWN: Final = re.compile(r"(?:projects/[^/]+/locations/[^/]+/(?:endpoints|models)|tunedModels)/.+")
#: What tells versions of one model apart, whose price is the same.
_VERSION: Final = re.compile(r"(?:@[\w.-]+|-\d{3}|-preview-\d\d-(?:\d\d|\d{4})(?:-\d{4})?)$")


@dataclass(frozen=True, slots=True)
class ModelId:
    """A model, whatever name it was asked by.

    Attributes:
        name: What its provider calls it.
        provider: The provider; None when the name does not tell.
        base: The name without a version; the same as `name` where there is none.
    """

    name: str
    provider: str | None
    base: str


@lru_cache(maxsize=1024)
def model_id(model: str) -> ModelId:
    """Return which model a name stands for.

    It takes ``models/gemini-2.5-flash``, ``projects/p/locations/l/publishers/google/models/...``
    and the names of LiteLLM, such as ``vertex_ai/gemini-2.5-pro`` or ``openai/gpt-5``, also behind
    ``apigee/``. A tuned model or an endpoint of one's own keeps its whole name, as it has a price
    of its own.
    """
    text = model.strip()
    if behind := _APIGEE.fullmatch(text):
        text = behind[1] + behind[2]
    if published := _PUBLISHED.fullmatch(text):
        return _made(published[2], _PROVIDERS.get(published[1], published[1]))
    if _OWN.fullmatch(text):
        # ADK also takes projects/p/models/NAME of Google's own
        return ModelId(text, None, text)
    name = text.rpartition("models/")[2] if "models/" in text else text
    prefix, slash, rest = name.partition("/")
    if slash and prefix in _PROVIDERS:
        return _made(rest, _PROVIDERS[prefix])
    if slash:
        return ModelId(name, prefix, name)
    family = next((each for start, each in _FAMILIES.items() if name.startswith(start)), None)
    return _made(name, family)


def _made(name: str, provider: str | None) -> ModelId:
    return ModelId(name, provider, _VERSION.sub("", name))
