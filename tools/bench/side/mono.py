"""The monolith, ``adk-fluent`` 0.18.0; it shares our import name, so it is imported untyped."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from google.adk.runners import InMemoryRunner

from bench.side import shapes
from bench.side.scripted import Echo, driven, name

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.side.worker import Task

Agent: Any = import_module("adk_fluent").Agent
StructuredLogMiddleware: Any = import_module("adk_fluent.middleware").StructuredLogMiddleware
check_contracts: Any = import_module("adk_fluent.testing").check_contracts


def _chain(size: int, model: Any) -> Any:
    chain = Agent(name(0), model).instruct("x")
    for i in range(1, size):
        chain = chain >> Agent(name(i), model).instruct("x")
    return chain


def build(size: int) -> Callable[[], int]:
    """IR by operators."""

    def once() -> int:
        return len(_chain(size, "gemini-2.5-flash").to_ir().children)

    return once


def check(shape: str, size: int) -> Callable[[], int]:
    """Its contract checks; gives how many findings there are, of which none is true."""
    ir = shapes.SHAPES[shape](size).to_ir()

    def once() -> int:
        return len(check_contracts(ir))

    return once


def compile_app(size: int) -> Callable[[], int]:
    """An ADK App from what is built."""
    chain = _chain(size, Echo(model="echo"))

    def once() -> int:
        return len(chain.to_app().root_agent.sub_agents)

    return once


def run(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """A pipeline of agents under ADK's Runner."""
    return driven(InMemoryRunner(app=_chain(size, Echo(model="echo")).to_app()))


def run_logged(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """The same inside the middleware of its own that logs to a list."""
    log = StructuredLogMiddleware()
    run = driven(InMemoryRunner(app=_chain(size, Echo(model="echo")).middleware(log).to_app()))

    async def once() -> int:
        events = await run()
        if not log.log:
            raise RuntimeError("it was not asked")
        log.log.clear()
        return events

    return once


def run_functions(size: int) -> Callable[[], Coroutine[Any, Any, int]]:
    """A pipeline of functions over state, behind one agent that it cannot do without."""
    chain = Agent(name(0), Echo(model="echo")).instruct("x")
    for at in range(size):
        chain = chain >> _step(at)
    return driven(InMemoryRunner(app=chain.to_app()))


def _step(at: int) -> Callable[[Any], dict[str, Any]]:
    return lambda _: {f"k{at}": at}


TASKS: dict[str, Task] = {
    "build": build,
    **{f"check-{shape}": partial(check, shape) for shape in ("chain", "wide", "routed")},
    "compile": compile_app,
    "run": run,
    "run-functions": run_functions,
    "run-logged": run_logged,
}
