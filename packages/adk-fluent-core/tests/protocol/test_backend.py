from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent.ir import AgentNode, ExecutionConfig, Node
from adk_fluent.protocol import AgentEvent, Backend, BackendBase, Compiler, RunResult

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


class Echo(BackendBase[str]):
    def __init__(self) -> None:
        self.closed = False

    def compile(self, node: Node, config: ExecutionConfig | None = None) -> str:
        return node.name

    async def stream(
        self, compiled: str, prompt: Any, **kwargs: Any
    ) -> AsyncGenerator[AgentEvent, None]:
        try:
            yield AgentEvent(compiled, f"{prompt}?", state_delta={"said": prompt})
            if prompt == "break":
                raise RuntimeError("broken")
            yield AgentEvent(compiled, f"{prompt}!", is_final=True)
        finally:
            self.closed = True


class Name:
    def compile(self, node: Node, config: ExecutionConfig | None = None) -> str:
        return node.name


async def test_run_collects_what_stream_yields() -> None:
    backend: Backend[str] = Echo()
    result = await backend.run(backend.compile(AgentNode("a")), "hi", user_id="u", session_id="s")
    assert type(result) is RunResult
    assert [event.content for event in result] == ["hi?", "hi!"]
    assert (result.text, result.state, result.user_id, result.session_id) == (
        "hi!",
        {"said": "hi"},
        "u",
        "s",
    )


async def test_run_closes_the_stream_also_when_it_breaks() -> None:
    backend = Echo()
    with pytest.raises(RuntimeError, match="broken"):
        await backend.run("a", "break")
    assert backend.closed
    assert (await backend.run("a", "hi")).session_id == ""


def test_what_has_the_methods_is_one() -> None:
    assert isinstance(Echo(), Backend)
    assert isinstance(Echo(), Compiler)
    assert isinstance(Name(), Compiler)
    assert not isinstance(Name(), Backend)


def test_compile_and_stream_are_demanded() -> None:
    with pytest.raises(TypeError, match="abstract"):
        BackendBase()  # pyright: ignore[reportAbstractUsage]
