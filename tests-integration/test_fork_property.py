"""Random pipelines, forked at random events and resumed there, end as the run did.

Two pipelines by default; 100 with ``--full``, in four places each.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from adk_fluent.backends.adk import ADKBackend
from adk_fluent.debug import TimeTravel
from adk_fluent.errors import SessionError
from adk_fluent.extend import is_journal_key
from adk_fluent.ir import ExecutionConfig, walk
from adk_fluent.protocol import Resume
from adk_fluent.testing._oracle import Program, act, generate, meaning, recorded

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]

FEW, MANY, PLACES = 2, 100, 4
LONGEST = 60  # calls of a pipeline
CONFIG = ExecutionConfig(resumable=True, max_llm_calls=100_000, contracts="off")


def program_of(chance: random.Random) -> Program:
    """A pipeline that comes to its end, and does the same when a step is executed once more.

    An agent that reads what it writes, or whose callbacks write what its tools write, does not.
    """
    while True:
        program = generate(chance.randint)
        nodes = list(walk(program.root))
        if "temp:" in repr(program) or any(getattr(each, "callbacks", ()) for each in nodes):
            continue
        if any(_feeds_itself(each) for each in nodes):
            continue
        with recorded():
            outcome = meaning(program.root, program.state, act).outcome
        if outcome.end in ("done", "escalates") and len(repr(outcome.order)) < LONGEST * 10:
            return program


def _feeds_itself(node: Any) -> bool:
    return bool(getattr(node, "reads_keys", ()) and getattr(node, "writes_keys", ()))


def own(state: dict[str, Any]) -> dict[str, Any]:
    shared = ("user:", "app:")
    return {
        key: value
        for key, value in state.items()
        if value is not None and not is_journal_key(key) and not key.startswith(shared)
    }


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    option = metafunc.config.option
    count = option.examples or (MANY if option.full else FEW)
    metafunc.parametrize("number", range(option.seed, option.seed + count))


async def test_a_fork_ends_as_the_run_did(number: int) -> None:
    from google.adk.sessions.in_memory_session_service import InMemorySessionService

    chance = random.Random(number)
    program, service = program_of(chance), InMemorySessionService()
    backend, travel = ADKBackend(service), TimeTravel(service)
    compiled = backend.compile(program.root, CONFIG)
    with recorded():
        result = await backend.run(compiled, "go", state=program.state, session_id="s")
    ids: dict[str, Any] = {"app_name": result.app_name, "user_id": result.user_id}
    session = await service.get_session(**ids, session_id="s")
    assert session is not None
    count = len(session.events)
    for at in sorted({chance.randrange(count) for _ in range(PLACES)}):
        fork = await travel.fork(result, at=at)
        state = fork.state
        try:
            with recorded():
                state = (await backend.run(compiled, Resume(()), session_id=fork.id)).state
        except SessionError as error:
            if "no run to go on with" not in str(error):  # it was over
                raise
        assert own(state) == own(result.state), at
