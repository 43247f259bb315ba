"""A pipeline with middlewares by name goes to a file and back, and runs the same."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent
from adk_fluent.errors import AdkFluentError, MissingLayerError
from adk_fluent.extend import unregister_middleware
from adk_fluent.ir import from_yaml, to_yaml
from adk_fluent.middleware import MiddlewareRef, define_middleware
from adk_fluent.testing import AgentHarness, GeminiEmulator, reply

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]


class Signs:
    """Signs answers."""

    def __init__(self, name: str = "", pen: object = None) -> None:
        self.name = name
        self.pen = pen

    async def after_model(self, ctx: Any, response: Any) -> Any:
        part = response.content.parts[0]
        signed = part.model_copy(update={"text": f"{part.text} ({self.name})"})
        content = response.content.model_copy(update={"parts": [signed]})
        return response.model_copy(update={"content": content})


@pytest.mark.parametrize(
    ("ref", "says", "help"),
    [
        (MiddlewareRef("retyr"), "there is no middleware called 'retyr'", "did you mean 'retry'?"),
        (
            MiddlewareRef("retry", {"max_attempts": 0}),
            "retry(max_attempts=...) cannot have this value: 0",
            "input should be greater than or equal to 1",
        ),
        (
            MiddlewareRef("retry", {"max_attempt": 5}),
            "retry has no option 'max_attempt'",
            "did you mean 'max_attempts'?",
        ),
    ],
)
def test_check_finds_what_would_fail_when_it_is_compiled(
    ref: MiddlewareRef, says: str, help: str
) -> None:
    pipeline = Agent("a").mock("x").middleware(ref)
    [found] = pipeline.check()
    assert (found.code, found.message, found.help) == ("FLW153", says, help)
    assert not pipeline.check().ok
    with pytest.raises(AdkFluentError) as caught:
        pipeline.to_app()
    assert caught.value.help == help


async def test_three_references_in_a_file(tmp_path: Path, gemini_emulator: GeminiEmulator) -> None:
    """Retries, a limit, and one of one's own with a dependency that the file does not hold."""
    define_middleware(Signs(pen=object()), name="signs", description="Signs answers.")
    try:
        pipeline = (
            Agent("a", "gemini-2.5-flash")
            .middleware(MiddlewareRef("retry", {"max_attempts": 2, "backoff_base": 0.0}))
            .middleware(MiddlewareRef("model_call_limit", {"per_run": 5}))
            .middleware(MiddlewareRef("signs", {"name": "desk"}))
        )
        file = tmp_path / "pipeline.yaml"
        file.write_text(to_yaml(pipeline.to_ir()), "utf-8")
        again = from_yaml(file.read_text("utf-8"))
        for each in (pipeline, again):
            gemini_emulator.script = type(gemini_emulator.script)(reply(status=503), "Hello")
            result = await AgentHarness(each).send("hi")
            assert result.text == "Hello (desk)"
    finally:
        unregister_middleware("signs")


def test_a_name_of_another_wheel_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adk_fluent._registry.found", dict)
    for name, wheel in (("recorder", "debug"), ("cost_attribution", "cost")):
        with pytest.raises(MissingLayerError, match=f"pip install adk-fluent-{wheel}"):
            getattr(import_module("adk_fluent.middleware"), name)
