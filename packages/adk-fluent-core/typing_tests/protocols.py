"""What type checkers make of middlewares, backends, results and prices; never run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

from adk_fluent.ir import ExecutionConfig, Node, StateFieldRef
from adk_fluent.protocol import (
    AgentEvent,
    AnyMiddleware,
    Backend,
    BackendBase,
    Compiler,
    FieldRef,
    Middleware,
    ModelCall,
    ModelReply,
    Money,
    NextModel,
    PriceBook,
    RunResult,
    Unknown,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from datetime import datetime


def use(middleware: AnyMiddleware) -> None: ...


# --- an object with one hook is a middleware, whatever its parameters are called ----------------


class Log:
    async def before_model(self, context: Any, req: Any) -> None: ...


class Guard:
    async def before_tool(
        self, ctx: Any, tool_name: str, args: dict[str, Any]
    ) -> dict[str, Any] | None: ...


class Onion:
    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        reply = await next(call)
        assert_type(call.emitted, bool)
        assert_type(reply.usage, Usage | None)
        return reply


class Derived(Middleware):
    async def after_model(self, ctx: Any, response: Any) -> None: ...


use(Log())
use(Guard())
use(Onion())
use(Derived())
use(Middleware())

# --- everything else is none ----------------------------------------------------------------------


class Empty: ...


class Sync:
    def before_model(self, ctx: Any, request: Any) -> None: ...


class Misspelt:
    async def before_modle(self, ctx: Any, request: Any) -> None: ...


use(Empty())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
use(Sync())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
use(Misspelt())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
use(42)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
use("retry")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
use(None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
use(Log)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
use(print)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
use([Log()])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
use({})  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

# --- backends -------------------------------------------------------------------------------------


class Names(BackendBase[str]):
    def compile(self, node: Node, config: ExecutionConfig | None = None) -> str:
        return node.name

    async def stream(
        self, compiled: str, prompt: Any, **kwargs: Any
    ) -> AsyncGenerator[AgentEvent, None]:
        yield AgentEvent(compiled, str(prompt))


backend: Backend[str] = Names()
compiler: Compiler[str | int] = Names()
wrong: Backend[int] = Names()  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]


async def results() -> None:
    result = await backend.run("a", "hi")
    assert_type(result, RunResult)
    assert_type(result.text, str)
    assert_type(result.state, dict[str, Any])
    for event in result:
        assert_type(event, AgentEvent)


# --- prices and keys ------------------------------------------------------------------------------


class Flat:
    def price(
        self, model: str, usage: Usage, at: datetime, *, tier: str | None = None
    ) -> Money | Unknown:
        return Money.of("0.01") * usage.total if model else Unknown("no model")


book: PriceBook = Flat()
key: FieldRef = StateFieldRef("user:tier", str)
Money.of(1) + Unknown("never a price")  # type: ignore[operator]  # pyright: ignore[reportOperatorIssue, reportUnusedExpression]
