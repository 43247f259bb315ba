"""Programs about what stands around steps and runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent.builders import Pipeline
from adk_fluent.protocol import AgentReply
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._program import Raised

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from adk_fluent.protocol import AgentCall, NextAgent, NextRun, RunCall
    from adk_fluent.testing.conformance._program import Program


class _Around:
    """Stands around the step of a name.

    Args:
        step: Its name.
        does: What it does with what comes of the step; gives the reply, or raises.
    """

    def __init__(self, step: str, does: Callable[[AgentCall, NextAgent], Any]) -> None:
        self._step, self._does = step, does

    async def wrap_agent(self, call: AgentCall, next: NextAgent) -> AgentReply:
        """Let every other step be."""
        if call.name != self._step:
            return await next(call)
        return await self._does(call, next)


class _Noting:
    """Notes when runs and steps begin and end."""

    def __init__(self, tag: str, calls: list[str]) -> None:
        self._tag, self._calls = tag, calls

    async def wrap_run(self, call: RunCall, next: NextRun) -> AgentReply:
        self._calls.append(f"{self._tag}>run")
        done = await next(call)
        self._calls.append(f"{self._tag}<run")
        return done

    async def before_agent(self, ctx: Any, agent_name: str) -> None:
        self._calls.append(f"{self._tag}>{agent_name}")

    async def after_agent(self, ctx: Any, agent_name: str) -> None:
        self._calls.append(f"{self._tag}<{agent_name}")


async def _instead(call: AgentCall, next: NextAgent) -> AgentReply:
    return AgentReply("instead", {"more": 1})


async def _besides(call: AgentCall, next: NextAgent) -> AgentReply:
    done = await next(call)
    return AgentReply(f"{done.text}!", done.state_delta)


async def _twice(call: AgentCall, next: NextAgent) -> AgentReply:
    await next(call)
    return await next(call)


async def _mends(call: AgentCall, next: NextAgent) -> AgentReply:
    try:
        return await next(call)
    except ValueError:
        return AgentReply("sorry")


async def _breaks(call: AgentCall, next: NextAgent) -> AgentReply:
    await next(call)
    raise KeyError("the middleware's own")


def middlewares() -> Iterator[Program]:
    """All of them."""
    yield case(
        "middleware/the first stands outside the second",
        "middleware",
        lambda p: (
            Pipeline("root", p.agent("a"))
            .middleware(_Noting("1", p.calls))
            .middleware(_Noting("2", p.calls))
        ),
        text="A",
        calls=(
            *("1>run", "2>run", "1>root", "2>root", "1>a", "2>a", "a"),
            *("2<a", "1<a", "2<root", "1<root", "2<run", "1<run"),
        ),
        events=("s0 a 'A'",),
    )
    yield case(
        "middleware/a part has its own",
        "middleware",
        lambda p: Pipeline(
            "root",
            p.agent("a"),
            Pipeline("part", p.agent("b"), p.agent("c")).middleware(
                _Noting("1", p.calls), scope="agent"
            ),
            p.agent("d"),
        ),
        text="D",
        calls=("a", "1>part", "1>b", "b", "1<b", "1>c", "c", "1<c", "1<part", "d"),
        events=("s0 a 'A'", "s1.a0.s0 b 'B'", "s1.a0.s1 c 'C'", "s2 d 'D'"),
    )
    yield case(
        "middleware/an agent is answered for",
        "middleware",
        lambda p: _around("a", _instead, p.agent("a", writes="k"), p.agent("b")),
        text="B",
        end={"k": "instead", "more": 1},
        calls=("b",),
        events=("s0 a 'instead' {'k': 'instead', 'more': 1}", "s1 b 'B'"),
    )
    yield case(
        "middleware/an arrangement is answered for",
        "middleware",
        lambda p: _around("both", _instead, (p.agent("a") | p.agent("b")).named("both")),
        text="instead",
        end={"more": 1},
        events=("s0 both@root 'instead' {'more': 1}",),
    )
    yield case(
        "middleware/more is said than the step did",
        "middleware",
        lambda p: _around("a", _besides, p.agent("a")),
        text="A!",
        calls=("a",),
        events=("s0 a 'A'", "s0 a 'A!'"),
    )
    yield case(
        "middleware/a step is done twice",
        "middleware",
        lambda p: _around(
            "two", _twice, Pipeline("two", p.fn("n", {"n": lambda s: s.get("n", 0) + 1}))
        ),
        end={"n": 2},
        calls=("n", "n"),
        events=("s0.s0 n@root {'n': 1}", "s0.s0 n@root {'n': 2}"),
    )
    yield case(
        "middleware/a failure is made good",
        "middleware",
        lambda p: _around(
            "part", _mends, Pipeline("part", p.agent("a"), p.fn("f", ends="raises")), p.agent("b")
        ),
        text="B",
        calls=("a", "f", "b"),
        events=("s0.s0 a 'A'", "s0 part@root 'sorry'", "s1 b 'B'"),
    )
    yield case(
        "middleware/what it raises is the failure of the step",
        "middleware",
        lambda p: _around("a", _breaks, p.agent("a")),
        raises=Raised("KeyError", text="the middleware's own", node="a"),
        text="A",
        calls=("a",),
        events=("s0 a 'A'",),
    )


def _around(step: str, does: Callable[[AgentCall, NextAgent], Any], *steps: Any) -> Pipeline:
    return Pipeline("root", *steps).middleware(_Around(step, does))
