"""What models take and give, by the families of their names.

From what the providers say of their models, as of November 2026. Families that differ inside, and
models that nobody here knows, are left out: nothing is said about those.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from adk_fluent.errors import UsageError
from adk_fluent.ir import Modality, ModelSelectorNode, Ref

if TYPE_CHECKING:
    from collections.abc import Collection

    from adk_fluent.ir import AgentNode, Node

_TEXT: Final = frozenset({Modality.TEXT})
_IMAGES: Final = _TEXT | {Modality.IMAGE}
_DOCUMENTS: Final = _IMAGES | {Modality.PDF}
_SPOKEN: Final = _TEXT | {Modality.AUDIO}
_LIVE: Final = _IMAGES | {Modality.AUDIO, Modality.VIDEO}
_ALL: Final = _LIVE | {Modality.PDF}
#: What is text, whatever is in it: data of a schema is JSON.
TEXTUAL: Final = frozenset({Modality.TEXT, Modality.STRUCTURED, Modality.CODE})


@dataclass(frozen=True, slots=True)
class ModelCapabilities:
    """What a model takes and gives.

    Attributes:
        inputs: Kinds of content that it takes.
        outputs: Kinds of content that it gives.
        unasked: Those of `outputs` that need no ``response_modalities``.
        max_input_tokens: The largest prompt, in tokens; None says nothing about it.
        max_output_tokens: The largest answer, in tokens; None says nothing about it.
    """

    inputs: frozenset[Modality]
    outputs: frozenset[Modality] = _TEXT
    unasked: frozenset[Modality] = _TEXT
    max_input_tokens: int | None = None
    max_output_tokens: int | None = None


def _row(
    inputs: frozenset[Modality],
    outputs: frozenset[Modality] = _TEXT,
    unasked: frozenset[Modality] | None = None,
    tokens: tuple[int | None, int | None] = (None, None),
) -> ModelCapabilities:
    return ModelCapabilities(inputs, outputs, outputs if unasked is None else unasked, *tokens)


_MILLION: Final = 1_048_576
_GPT_4O: Final = _row(_DOCUMENTS, tokens=(128_000, 16_384))

#: Patterns of names; the first that fits counts.
_KNOWN: Final = {
    "gemini-*tts*": _row(_TEXT, frozenset({Modality.AUDIO}), frozenset()),
    "gemini-*native-audio*": _row(_LIVE, _SPOKEN),
    "gemini-*live*": _row(_LIVE, _SPOKEN),
    "gemini-2.0-*image*": _row(_ALL, _IMAGES, _TEXT),
    "gemini-*image*": _row(_ALL, _IMAGES),
    "gemini-*transcribe*": _row(_SPOKEN),
    "gemini-*computer-use*": _row(_IMAGES),
    "gemini-*embedding*": None,
    "gemini-1.5-*": _row(_ALL, tokens=(2_097_152, 8_192)),
    "gemini-2.0-*": _row(_ALL, tokens=(_MILLION, 8_192)),
    "gemini-2.5-*": _row(_ALL, tokens=(_MILLION, 65_536)),
    "gemini-3*": _row(_ALL, tokens=(_MILLION, 65_536)),
    "gemini-4*": _row(_ALL, tokens=(_MILLION, _MILLION)),
    "gemini-flash-latest": _row(_ALL),
    "gemini-flash-lite-latest": _row(_ALL),
    "gemini-pro-latest": _row(_ALL),
    "gemma-2-*": _row(_TEXT, tokens=(8_192, 8_192)),
    "gemma-3-1b*": _row(_TEXT, tokens=(32_768, 8_192)),
    "gemma-3-*": _row(_IMAGES, tokens=(131_072, 8_192)),
    "claude-2*": _row(_TEXT),
    "claude-instant*": _row(_TEXT),
    "claude-3*": _row(_DOCUMENTS, tokens=(200_000, None)),
    "claude-*": _row(_DOCUMENTS),
    "gpt-3.5*": _row(_TEXT, tokens=(16_385, 4_096)),
    "gpt-4": _row(_TEXT, tokens=(8_192, 8_192)),
    "gpt-4-0*": _row(_TEXT, tokens=(8_192, 8_192)),
    "gpt-4-1106*": _row(_TEXT, tokens=(128_000, 4_096)),
    "gpt-oss*": _row(_TEXT),
    "gpt-*transcribe*": _row(_SPOKEN),
    "gpt-*tts*": _row(_TEXT, frozenset({Modality.AUDIO})),
    "gpt-*realtime*": _row(_IMAGES | {Modality.AUDIO}, _SPOKEN),
    "gpt-*audio*": _row(_SPOKEN, _SPOKEN),
    "gpt-image*": _row(_IMAGES, frozenset({Modality.IMAGE})),
    "gpt-live*": None,
    "gpt-4-turbo*": _row(_DOCUMENTS, tokens=(128_000, 4_096)),
    "gpt-4o*": _GPT_4O,
    "gpt-4.1*": _row(_DOCUMENTS, tokens=(1_047_576, 32_768)),
    "gpt-5*": _row(_DOCUMENTS, _IMAGES),
    "gpt-6*": _row(_DOCUMENTS, _IMAGES),
    "o1-mini*": _row(_TEXT),
    "o1-preview*": _row(_TEXT),
    "o3-mini*": _row(_TEXT),
    "o1*": _row(_DOCUMENTS, tokens=(200_000, 100_000)),
    "o3*": _row(_DOCUMENTS, tokens=(200_000, 100_000)),
    "o4-mini*": _row(_DOCUMENTS, tokens=(200_000, 100_000)),
}

_registered: dict[str, ModelCapabilities] = {}


def register_model_capabilities(
    pattern: str,
    *,
    inputs: Collection[Modality],
    outputs: Collection[Modality] = _TEXT,
    unasked: Collection[Modality] | None = None,
    max_input_tokens: int | None = None,
    max_output_tokens: int | None = None,
) -> None:
    """Say what models take and give, where the table of this version is wrong or silent.

    ::

        register_model_capabilities("ollama/llava*", inputs=[Modality.TEXT, Modality.IMAGE])

    Of several patterns that fit a name, the one that was registered last counts.

    Args:
        pattern: The model's name, in lower case, as agents give it or without what stands before
            the last ``/``; ``*`` stands for any text.
        inputs: Kinds of content that it takes.
        outputs: Kinds of content that it gives.
        unasked: Those of `outputs` that need no ``response_modalities``; all of them otherwise.
        max_input_tokens: The largest prompt, in tokens.
        max_output_tokens: The largest answer, in tokens.

    Raises:
        UsageError: The pattern is no text, or there are no inputs or outputs.
    """
    if not isinstance(pattern, str) or not pattern:  # pyright: ignore[reportUnnecessaryIsInstance]  # a user's
        raise UsageError(
            "register_model_capabilities(...) takes a pattern of model names",
            found=repr(pattern),
            help='such as "my-model-*"',
        )
    for field, kinds in (("inputs", inputs), ("outputs", outputs)):
        if not kinds or not all(isinstance(each, Modality) for each in kinds):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"register_model_capabilities({field}=...) takes Modalities",
                found=repr(kinds),
                help=f"such as {field}=[Modality.TEXT]",
            )
    _registered.pop(pattern, None)
    _registered[pattern] = ModelCapabilities(
        frozenset(inputs),
        frozenset(outputs),
        frozenset(outputs if unasked is None else unasked),
        max_input_tokens,
        max_output_tokens,
    )


def capabilities_of(model: str) -> ModelCapabilities | None:
    """What a model takes and gives; None when nobody knows."""
    from fnmatch import fnmatchcase  # noqa: PLC0415  # only pipelines that declare content need it

    name = model.lower()
    names = (name, name.rpartition("/")[2])
    for pattern in reversed(_registered):
        if any(fnmatchcase(each, pattern) for each in names):
            return _registered[pattern]
    return next((row for pattern, row in _KNOWN.items() if fnmatchcase(names[1], pattern)), None)


def models_of(agent: AgentNode, root: Node) -> tuple[str, ...]:
    """The models that an agent may run on, as far as they are known.

    Args:
        agent: The agent.
        root: The whole pipeline, whose run may have a default model.
    """
    selector: object = agent.selector
    if isinstance(selector, ModelSelectorNode):
        return tuple(each.name for each in selector.candidates)
    model = agent.model
    if model is None:
        execution = getattr(root, "execution", None)  # an application's
        model = execution and execution.default_model
    if isinstance(model, Ref):
        model = getattr(model.value, "model", None)  # ADK's BaseLlm
    return (model,) if isinstance(model, str) else ()
