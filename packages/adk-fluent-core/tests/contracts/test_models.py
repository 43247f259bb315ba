"""What models take and give: the table, and what users add to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent
from adk_fluent.contracts import (
    ModelCapabilities,
    check_modality_contracts,
    register_model_capabilities,
)
from adk_fluent.contracts._streams import _models
from adk_fluent.contracts._streams._models import capabilities_of
from adk_fluent.errors import UsageError
from adk_fluent.ir import (
    AgentNode,
    AppNode,
    ContentSpec,
    ExecutionConfig,
    Modality,
    Ref,
    SequenceNode,
)

if TYPE_CHECKING:
    from adk_fluent.ir import Node

TEXT, IMAGE, AUDIO, PDF = Modality.TEXT, Modality.IMAGE, Modality.AUDIO, Modality.PDF
VIDEO = Modality.VIDEO


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_models, "_registered", {})


@pytest.mark.parametrize(
    ("model", "inputs", "outputs"),
    [
        ("gemini-2.5-flash", {TEXT, IMAGE, AUDIO, VIDEO, PDF}, {TEXT}),
        ("gemini-3.5-flash-lite", {TEXT, IMAGE, AUDIO, VIDEO, PDF}, {TEXT}),
        ("gemini-2.5-flash-image", {TEXT, IMAGE, AUDIO, VIDEO, PDF}, {TEXT, IMAGE}),
        ("gemini-2.5-pro-preview-tts", {TEXT}, {AUDIO}),
        ("gemini-2.5-flash-native-audio-latest", {TEXT, IMAGE, AUDIO, VIDEO}, {TEXT, AUDIO}),
        ("gemini-live-2.5-flash", {TEXT, IMAGE, AUDIO, VIDEO}, {TEXT, AUDIO}),
        ("models/gemini-2.0-flash", {TEXT, IMAGE, AUDIO, VIDEO, PDF}, {TEXT}),
        (
            "projects/p/locations/l/publishers/google/models/gemini-2.5-pro",
            {TEXT, IMAGE, AUDIO, VIDEO, PDF},
            {TEXT},
        ),
        ("gemma-3-1b-it", {TEXT}, {TEXT}),
        ("gemma-3-27b-it", {TEXT, IMAGE}, {TEXT}),
        ("anthropic/claude-opus-4-5", {TEXT, IMAGE, PDF}, {TEXT}),
        ("claude-3-5-sonnet@20240620", {TEXT, IMAGE, PDF}, {TEXT}),
        ("claude-2.1", {TEXT}, {TEXT}),
        ("openai/gpt-4o-mini", {TEXT, IMAGE, PDF}, {TEXT}),
        ("gpt-4o-audio-preview", {TEXT, AUDIO}, {TEXT, AUDIO}),
        ("gpt-4", {TEXT}, {TEXT}),
        ("gpt-4-turbo", {TEXT, IMAGE, PDF}, {TEXT}),
        ("GPT-4.1", {TEXT, IMAGE, PDF}, {TEXT}),
        ("o3-mini", {TEXT}, {TEXT}),
        ("o3", {TEXT, IMAGE, PDF}, {TEXT}),
    ],
)
def test_families(model: str, inputs: set[Modality], outputs: set[Modality]) -> None:
    known = capabilities_of(model)
    assert known is not None
    assert (known.inputs, known.outputs) == (inputs, outputs)


@pytest.mark.parametrize(
    "model", ["", "llama-3", "gemini-embedding-001", "gemini", "ollama/gemma3:4b", "eagle-7"]
)
def test_nothing_is_said_about_others(model: str) -> None:
    assert capabilities_of(model) is None


def test_what_needs_no_asking_is_given() -> None:
    for row in vars(_models)["_KNOWN"].values():
        assert row is None or row.unasked <= row.outputs


def look(model: object, *kinds: Modality) -> Node:
    given: Any = Ref.to(model) if model is not None and not isinstance(model, str) else model
    return AgentNode("look", given, content=ContentSpec({TEXT, *kinds}))


def codes(node: Node) -> list[str]:
    return [each.code for each in check_modality_contracts(node)]


class TestRegistration:
    def test_says_what_nobody_knows(self) -> None:
        assert codes(look("ollama/llava:7b", AUDIO)) == []
        register_model_capabilities("ollama/llava*", inputs=[TEXT, IMAGE])
        [found] = check_modality_contracts(look("ollama/llava:7b", AUDIO))
        assert found.message == (
            "`look` takes audio, and its model ollama/llava:7b takes text and images"
        )
        assert codes(look("ollama/llava:7b", IMAGE)) == []

    def test_counts_more_than_the_table(self) -> None:
        assert codes(look("claude-sonnet-4-5", AUDIO)) == ["FLW302"]
        register_model_capabilities("claude-sonnet-*", inputs=[TEXT, AUDIO])
        assert codes(look("vertex_ai/claude-sonnet-4-5", AUDIO)) == []
        assert codes(look("claude-opus-4-5", AUDIO)) == ["FLW302"]

    def test_the_last_one_that_fits_counts(self) -> None:
        register_model_capabilities("eagle-*", inputs=[TEXT])
        register_model_capabilities("eagle-7*", inputs=[TEXT, IMAGE])
        assert codes(look("eagle-7", IMAGE)) == []
        register_model_capabilities("eagle-*", inputs=[TEXT, AUDIO])
        assert codes(look("eagle-7", IMAGE)) == ["FLW302"]

    def test_all_of_it_counts(self) -> None:
        register_model_capabilities(
            "eagle-7",
            inputs=[TEXT],
            outputs=[TEXT, IMAGE],
            unasked=[TEXT],
            max_input_tokens=10,
            max_output_tokens=5,
        )
        assert capabilities_of("eagle-7") == ModelCapabilities(
            frozenset({TEXT}), frozenset({TEXT, IMAGE}), frozenset({TEXT}), 10, 5
        )
        content = ContentSpec({TEXT}, {TEXT, IMAGE}, 11, 6)
        found = check_modality_contracts(AgentNode("a", "eagle-7", content=content))
        assert [(each.code, each.message) for each in found] == [
            ("FLW303", "`a` gives images, and does not ask its model for it"),
            ("FLW305", "`a` takes up to 11 tokens, and its model eagle-7 10"),
            ("FLW305", "`a` gives up to 6 tokens, and its model eagle-7 5"),
        ]

    @pytest.mark.parametrize(
        ("pattern", "options", "says"),
        [
            ("", {"inputs": [TEXT]}, "takes a pattern of model names"),
            (7, {"inputs": [TEXT]}, "takes a pattern of model names"),
            ("x", {"inputs": []}, "(inputs=...) takes Modalities"),
            ("x", {"inputs": ["text"]}, "(inputs=...) takes Modalities"),
            ("x", {"inputs": [TEXT], "outputs": ["image"]}, "(outputs=...) takes Modalities"),
        ],
    )
    def test_what_means_nothing_is_refused(self, pattern: Any, options: Any, says: str) -> None:
        with pytest.raises(UsageError) as raised:
            register_model_capabilities(pattern, **options)
        assert says in str(raised.value)
        assert vars(_models)["_registered"] == {}


class Model:
    """Like ADK's models."""

    def __init__(self, model: object) -> None:
        self.model = model


class TestWhichModel:
    def test_the_agents(self) -> None:
        assert codes(look("gpt-4", IMAGE)) == ["FLW302"]
        assert codes(look(Model("openai/gpt-4"), IMAGE)) == ["FLW302"]
        assert codes(look(Model(7), IMAGE)) == codes(look(object(), IMAGE)) == []

    def test_that_of_a_builder_around_it(self) -> None:
        agent = Agent("look").accepts(IMAGE, TEXT)
        found = check_modality_contracts((agent >> Agent("b")).model("gpt-4"))
        assert [each.code for each in found] == ["FLW302"]

    def test_that_of_the_run(self) -> None:
        def app(model: str | Ref | None) -> AppNode:
            steps = SequenceNode("desk", (look(None, IMAGE),))
            return AppNode("app", steps, execution=ExecutionConfig(default_model=model))

        assert codes(app("gpt-4")) == ["FLW302"]
        assert codes(app(Ref.to(Model("gpt-4")))) == ["FLW302"]
        assert codes(app(None)) == []
        assert codes(AppNode("app", look(None, IMAGE))) == []
