"""User code that type checkers accept without a word, and what they refuse: pictures, traces."""
# ruff: noqa: TC001  # users import as they please

from __future__ import annotations

from pathlib import Path
from typing import assert_type

from adk_fluent import Agent, until
from adk_fluent.backends.dry_run import Count, DryRun, DryRunBackend, dry_run
from adk_fluent.backends.trace import Row, Trace, trace
from adk_fluent.backends.viz import Diagram, Options, VizBackend, diagram, render, save, to_svg
from adk_fluent.config import ExecutionConfig
from adk_fluent.protocol import AgentEvent, Compiler, EventListener, NoticeListener

desk = (Agent("a").writes("k") >> Agent("b").reads("k")) * until(lambda state: bool(state["k"]))
config = ExecutionConfig(default_model="gemini-2.5-flash")

# --- pictures ------------------------------------------------------------------------------------

assert_type(desk.visualize(), str)
assert_type(desk.visualize("html", Path("desk.html"), depth=2, max_nodes=None), str)
assert_type(desk.visualize(path="desk.dot", config=config, data_flow=False), str)
assert_type(desk.to_mermaid(max_nodes=20), str)
assert_type(render(desk.to_ir(), "dot"), str)
assert_type(save(desk.to_ir(), "desk.svg"), str)

small = Options(depth=1, data_flow=False)
assert_type(desk.visualize(**small), str)

picture = diagram(desk.to_ir(), config)
assert_type(picture, Diagram)
assert_type(to_svg(picture), str)
compiler: Compiler[str] = VizBackend("svg", depth=3)

desk.visualize("png")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
desk.visualize(deep=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
desk.to_mermaid(depth="2")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- dry runs ------------------------------------------------------------------------------------

report = dry_run(desk, config)
assert_type(report, DryRun)
assert_type(report.models["gemini-2.5-flash"], Count)
assert_type(report.model_calls.at_most, int | None)
forecaster: Compiler[DryRun] = DryRunBackend()

dry_run("desk")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- traces --------------------------------------------------------------------------------------


class Counter:
    def __init__(self) -> None:
        self.events = 0

    def on_event(self, event: AgentEvent, /) -> None:
        self.events += 1


async def follow() -> None:
    with Trace(desk, state={"k": 1}) as steps:
        result = await desk.run("go", listeners=[steps, Counter()])
    assert_type(steps.rows, tuple[Row, ...])
    listener: EventListener = steps
    noticing: NoticeListener = steps
    print(steps, listener, noticing, trace(result, desk.to_ir()).to_json())

    await desk.run("go", listeners=[print])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
