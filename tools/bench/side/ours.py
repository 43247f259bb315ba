"""This workspace's adk-fluent. ADK is imported by the tasks that need it only."""

# ruff: noqa: PLC0415

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from adk_fluent import Agent, Pipeline, gate
from adk_fluent.contracts import check_all
from adk_fluent.ir import ExecutionConfig, Ref, RouteNode, walk
from bench.side import around, shapes

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


def _checked(pipeline: Builder, *inputs: str) -> Callable[[], int]:
    """All checks; gives how many findings there are."""
    ir = pipeline.to_ir()

    def once() -> int:
        return len(check_all(ir, inputs=inputs).diagnostics)

    return once


def check(shape: str, size: int) -> Callable[[], int]:
    """All checks of a shape, nothing to find."""
    return _checked(shapes.SHAPES[shape](size))


def check_lost(shape: str, size: int) -> Callable[[], int]:
    """The same with agents that read what nothing writes."""
    return _checked(shapes.SHAPES[shape](size, shapes.lost))


def check_given(shape: str, size: int) -> Callable[[], int]:
    """The very same, where everything that is read is there from the start."""
    chain = shapes.SHAPES[shape](size, shapes.lost)
    read = {ref.key for node in walk(chain.to_ir()) for ref in getattr(node, "reads_keys", ())}
    routed = {node.key for node in walk(chain.to_ir()) if isinstance(node, RouteNode) and node.key}
    return _checked(chain, *sorted(read | routed))


def check_deep(kind: str, size: int) -> Callable[[], int]:
    """The same of arrangements in each other."""
    return _checked(shapes.deep(kind, size))


def check_names(apart: int, size: int) -> Callable[[], int]:
    """All checks; so many agents have each name."""
    chain = _chain(1)
    for i in range(1, size):
        chain = chain >> Agent(f"a{i // apart}", MODEL).instruct(f"x{i}")
    return _checked(chain)


def effects(known: str, size: int) -> Callable[[], int]:
    """What functions of one module do to state, looked at for the first time or once more."""
    import linecache

    from adk_fluent.contracts._effects import _analysis, effects_of_function
    from adk_fluent.ir import _source

    kept: list[Any] = [vars(_analysis)["_known"], vars(_source)["_indexes"]]
    lines = [f"def f{i}(state):\n    return {{'k{i}': state['k{i - 1}']}}\n" for i in range(size)]
    name, text = "<functions of the benchmark>", "\n".join(lines)
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {}
    exec(compile(text, name, "exec"), space)  # noqa: S102  # see `lines`
    refs = [Ref.to(space[f"f{i}"]) for i in range(size)]

    def once() -> int:
        if known == "first":
            for memo in kept:
                memo.clear()
        return sum(len(effects_of_function(ref).writes) for ref in refs)

    return once


def compile_app(size: int) -> Callable[[], int]:
    """An ADK App from what is built, which nobody checks."""
    chain, off = _scripted(size), ExecutionConfig(contracts="off")

    def once() -> int:
        root: Any = chain.to_app(off).root_agent
        return len(root.sub_agents)

    return once


def _with_state(agents: int) -> Builder:
    """A chain of scripted agents that use state."""
    return shapes.chain(agents + 1, partial(shapes.agent, model=_model()))


def compile_checked(contracts: Any, size: int) -> Callable[[], int]:
    """An ADK App from a pipeline with state, which is another one each time."""
    from adk_fluent.backends.adk import to_app

    ir = _with_state(size).to_ir()
    config, numbers = ExecutionConfig(contracts=contracts), count()

    def once() -> int:
        root: Any = to_app(ir.replace(description=f"number {next(numbers)}"), config).root_agent
        return len(root.sub_agents)

    return once


def compile_known(size: int) -> Callable[[], int]:
    """An ADK App from a pipeline that was compiled before."""
    chain = _with_state(size)

    def once() -> int:
        root: Any = chain.to_app().root_agent
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
    **{f"check-{shape}": partial(check, shape) for shape in shapes.SHAPES},
    **{f"check-{shape}-lost": partial(check_lost, shape) for shape in shapes.SHAPES},
    **{f"check-{shape}-given": partial(check_given, shape) for shape in shapes.SHAPES},
    **{f"check-deep-{kind}": partial(check_deep, kind) for kind in shapes.DEEP},
    **{f"check-names-{apart}": partial(check_names, apart) for apart in (1, 2)},
    "compile": compile_app,
    "compile-checked": partial(compile_checked, "error"),
    "compile-known": compile_known,
    "compile-unchecked": partial(compile_checked, "off"),
    **{f"effects-{known}": partial(effects, known) for known in ("first", "known")},
    "resume": resume,
    "run": run,
    "run-app": run_app,
    "run-functions": run_functions,
    "run-deep": run_deep,
    "run-pausable": run_pausable,
    "run-twice": run_twice,
    **around.TASKS,
}
