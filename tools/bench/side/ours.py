"""This workspace's adk-fluent. ADK is imported by the tasks that need it only."""

# ruff: noqa: PLC0415

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent import Agent, Pipeline, gate
from adk_fluent.contracts import check_all
from bench.side import around

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from adk_fluent.builders import Builder
    from bench.side.worker import Task

MODEL = "gemini-2.5-flash"


def _chain(size: int, model: Any = MODEL, name: Callable[[int], str] = "a{}".format) -> Builder:
    chain: Builder = Agent(name(0), model).instruct("x")
    for i in range(1, size):
        chain = chain >> Agent(name(i), model).instruct("x")
    return chain


def _model() -> Any:
    from bench.side.scripted import Echo

    return Echo(model="echo")


def _scripted(size: int) -> Builder:
    return _chain(size, _model())


def build(size: int) -> Callable[[], int]:
    """IR by operators."""

    def once() -> int:
        return len(_chain(size).to_ir().children)

    return once


def check(size: int) -> Callable[[], int]:
    """All checks, nothing to find."""
    ir = _chain(size).to_ir()

    def once() -> int:
        return len(check_all(ir).errors)

    return once


def check_findings(size: int) -> Callable[[], int]:
    """All checks; every second agent has the name of the one before."""
    chain = _chain(1)
    for i in range(1, size):
        chain = chain >> Agent(f"a{i // 2}", MODEL).instruct(f"x{i}")
    ir = chain.to_ir()

    def once() -> int:
        return len(check_all(ir).errors)

    return once


def compile_app(size: int) -> Callable[[], int]:
    """An ADK App from what is built."""
    chain = _scripted(size)

    def once() -> int:
        root: Any = chain.to_app().root_agent
        return len(root.sub_agents)

    return once


def compile_checked(size: int) -> Callable[[], int]:
    """An ADK App from what is built, checked first."""
    chain = _scripted(size)

    def once() -> int:
        root: Any = chain.validate().to_app().root_agent
        return len(root.sub_agents)

    return once


def run_app(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """A pipeline of agents under ADK's Runner."""
    from bench.side.scripted import driven

    return driven(_scripted(size).to_runner())


def run(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """A pipeline of agents through our own `run`, which makes our events."""
    from bench.side.scripted import MESSAGE

    chain = _scripted(size)

    async def once() -> int:
        return len(await chain.run(MESSAGE))

    return once


def run_functions(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """One agent, and functions over state after it, under ADK's Runner."""
    from bench.side.scripted import driven

    chain = _scripted(1)
    for at in range(size):
        chain = chain >> _step(at)
    return driven(chain.to_runner())


def run_pausable(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """The same as `run_functions`, with a gate at the end that asks nobody."""
    from bench.side.scripted import driven

    chain = _scripted(1)
    for at in range(size):
        chain = chain >> _step(at)
    return driven((chain >> gate(lambda state: "ask" in state)).to_runner())


def resume(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """An agent, a gate that is answered, and agents after it."""
    from bench.side.scripted import MESSAGE

    chain = Agent("first", _model()).instruct("x") >> gate() >> _scripted(size)

    async def once() -> int:
        asked = await chain.run(MESSAGE)
        answer = asked.pending[0].answer(True)
        return len(await chain.resume(answer, session_id=asked.session_id))

    return once


def run_twice(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """What `resume` does, as two pipelines in one session."""
    from adk_fluent.backends.adk import ADKBackend
    from bench.side.scripted import MESSAGE

    backend = ADKBackend()
    first, rest = Agent("first", _model()).instruct("x"), _scripted(size)

    async def once() -> int:
        said = await first.run(MESSAGE, backend=backend)
        return len(await rest.run(MESSAGE, backend=backend, session_id=said.session_id))

    return once


def run_deep(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """An agent below that many pipelines, under ADK's Runner."""
    from bench.side.scripted import driven

    chain = _scripted(1)
    for at in range(size):
        chain = Pipeline(f"p{at}", chain)
    return driven(chain.to_runner())


def _step(at: int) -> Callable[[Any], dict[str, Any]]:
    return lambda _: {f"k{at}": at}


TASKS: dict[str, Task] = {
    "build": build,
    "check": check,
    "check-findings": check_findings,
    "compile": compile_app,
    "compile-checked": compile_checked,
    "resume": resume,
    "run": run,
    "run-app": run_app,
    "run-functions": run_functions,
    "run-deep": run_deep,
    "run-pausable": run_pausable,
    "run-twice": run_twice,
    **around.TASKS,
}
