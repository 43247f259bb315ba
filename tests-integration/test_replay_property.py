"""Random pipelines, recorded on ADK and replayed, give the same events, state, answer and error.

Success criterion 14. 20 pipelines by default, every other one streamed; 1 000 with ``--full``.

Runs in which one branch cut others off do not count here: the scripted models of these pipelines
answer within turns of the event loop, and what others did in the very turn in which they were cut
off is not on the tape. With models that take time there is nothing in that turn; the wheel's own
tests have races, failures and timeouts of that kind.
"""

from __future__ import annotations

import asyncio
import itertools
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from adk_fluent.builders._running import Running
from adk_fluent.debug import Recorder, Recording, ReplayerBackend, diff_events
from adk_fluent.ir import ExecutionConfig
from adk_fluent.protocol import final_text
from adk_fluent.testing._oracle import Program, programs, recorded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.ir import Node
    from adk_fluent.protocol import AgentEvent

pytestmark = pytest.mark.adk

FEW, MANY = 20, 1_000
LEAST = 10  # examples at a time: the first ones that hypothesis draws are small
SECONDS = 120  # for one pipeline; far more than any takes
SETTINGS = settings(
    phases=[Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
MODES = [
    ExecutionConfig(max_llm_calls=100_000, contracts="off"),
    ExecutionConfig(max_llm_calls=100_000, streaming_mode="sse", contracts="off"),
]


class Pipe(Running):
    """IR with the methods of builders."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node
        self._runs = None

    def to_ir(self) -> Node:
        return self._node


@dataclass
class Ran:
    """What was seen of a run."""

    events: list[AgentEvent] = field(default_factory=list["AgentEvent"])
    state: dict[str, Any] = field(default_factory=dict[str, Any])
    error: str = ""

    @property
    def text(self) -> str:
        return final_text(self.events)


async def ran(program: Program, config: ExecutionConfig, **options: Any) -> Ran:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    seen, service = Ran(), InMemorySessionService()
    pipe = Pipe(program.root)
    with recorded():
        try:
            async with asyncio.timeout(SECONDS):
                stream = pipe.stream(
                    "go", config=config, session_service=service, session_id="s", **options
                )
                async with aclosing(stream) as events:
                    async for event in events:
                        seen.events.append(event)
        except Exception as error:  # noqa: BLE001  # compared with that of the replay
            seen.error = f"{type(error).__name__}: {error}"
    session = await service.get_session(app_name=config.app_name, user_id="user", session_id="s")
    seen.state = {} if session is None else dict(session.state)
    return seen


def is_cut_off(tape: list[dict[str, Any]]) -> bool:
    """Whether a branch ended others, or a timeout struck."""
    ends = [each["branch_end"] for each in tape if each.get("decides")]
    return any("expired" in each for each in tape) or any(
        not end.rpartition(".")[2].startswith("t") for end in ends
    )


async def replayed(program: Program, config: ExecutionConfig) -> list[str] | None:
    """What differs between a run and its replay; None where a branch was cut off."""
    recorder = Recorder()
    with recorder:
        live = await ran(program, config, state=program.state)
    recording = Recording.from_json(recorder.recording.to_json())
    if any(is_cut_off(run.tape) for run in recording.runs):
        return None
    backend = ReplayerBackend(recording)
    again = await ran(program, config, backend=backend)
    found = [
        str(diff_events(live.events, again.events).summary)
        if diff_events(live.events, again.events)
        else "",
        ""
        if not diff_events(recording.events, live.events)
        else "recorded: " + diff_events(recording.events, live.events).summary,
        "" if live.text == again.text else f"answer {live.text!r} -> {again.text!r}",
        "" if live.state == again.state else f"state {live.state!r} -> {again.state!r}",
        "" if live.error == again.error else f"error {live.error!r} -> {again.error!r}",
        "" if not backend.unused else f"unused: {backend.unused}",
    ]
    return [each for each in found if each]


@pytest.fixture(scope="module")
def loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def test_a_replay_is_what_was_recorded(
    request: pytest.FixtureRequest, loop: asyncio.Runner, caplog: pytest.LogCaptureFixture
) -> None:
    option = request.config.option
    count = option.examples or (MANY if option.full else FEW)
    passed: set[str] = set()

    def agrees(program: Program) -> None:
        text = repr(program)
        if text in passed:  # hypothesis likes to repeat itself
            return
        wrong = loop.run(replayed(program, MODES[len(passed) % 2]))
        if wrong is None:
            return
        warned = [each.getMessage() for each in caplog.records if "replay:" in each.getMessage()]
        assert not wrong + warned, "\n".join([*wrong, *warned, text])
        passed.add(text)

    for turn in itertools.count(option.seed):
        if len(passed) >= count:
            break
        more = settings(SETTINGS, max_examples=max(count - len(passed), LEAST))
        seed(turn)(more(given(programs())(agrees)))()
