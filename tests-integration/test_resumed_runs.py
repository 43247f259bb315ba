"""What a run that waited gives: a call what happens in it, an engine the run from its beginning."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Pipeline, gate
from adk_fluent.backends.adk import ADKBackend
from adk_fluent.distributed import DbosEngine, InlineEngine
from adk_fluent.protocol import Backend, Resume
from adk_fluent.testing import mock_backend

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.adk
ANSWER = "Dear Ann."


def letter() -> Pipeline:
    return Agent("draft").mock(ANSWER) >> gate(message="Send it?", name="send")


@pytest.mark.parametrize("made", [ADKBackend, mock_backend])
async def test_a_call_of_a_backend_gives_what_happens_in_it(
    made: Callable[[], Backend[Any]],
) -> None:
    backend = made()
    compiled = backend.compile(letter().to_ir())
    asked = await backend.run(compiled, "Go.", session_id="s")
    said = Resume((asked.pending[0].answer(True),))
    done = await backend.run(compiled, said, session_id="s")
    assert (asked.text, done.text) == (ANSWER, "")
    assert [(each.node, "send" in each.state_delta) for each in done] == [("send", True)]
    if isinstance(backend, ADKBackend):  # which keeps the session
        whole = (await backend.recall(compiled, session_id="s")).result()
        assert (whole.text, len(whole)) == (ANSWER, len(asked) + len(done))


@pytest.mark.parametrize("durable", [False, True])
async def test_an_engine_gives_the_run_from_its_beginning(*, durable: bool, tmp_path: Path) -> None:
    engine = DbosEngine(f"sqlite:///{tmp_path / 'runs.sqlite'}") if durable else InlineEngine()
    try:
        asked = await engine.run(letter(), "Go.", run_id="r")
        await engine.answer("r", asked.pending[0].answer(True))
        done = await engine.run(letter(), "Go.", run_id="r")
    finally:
        if isinstance(engine, DbosEngine):
            await engine.aclose()
    assert (asked.text, done.text, done.pending) == (ANSWER, ANSWER, [])


async def test_a_served_task_has_the_run_from_its_beginning() -> None:
    pytest.importorskip("adk_fluent.serve")  # it needs google-adk 2.13
    kit = _kit()
    async with kit.serving(letter()) as server, kit.calling(server) as caller:
        asked = await caller.send("Go.")
        done = await caller.send("yes", task=asked.task.id, context=asked.task.context_id)
    assert (asked.state, done.state, done.text) == ("input_required", "completed", ANSWER)


def _kit() -> Any:
    path = Path(__file__).parent.parent / "packages/adk-fluent-a2a/tests/serve_kit.py"
    spec = spec_from_file_location("serve_kit", path)
    assert spec is not None
    assert spec.loader is not None
    made = module_from_spec(spec)
    sys.modules["serve_kit"] = made  # where its dataclass looks for its types
    spec.loader.exec_module(made)
    return made
