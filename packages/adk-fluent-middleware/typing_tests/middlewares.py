"""What type checkers know about the middlewares of this wheel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

from adk_fluent import Agent
from adk_fluent.middleware import (
    MiddlewareRef,
    RetryMiddleware,
    cache,
    define_middleware,
    production,
    retry,
    token_budget,
    wrap,
)

if TYPE_CHECKING:
    from adk_fluent.protocol import ModelCall, ModelReply, NextModel

assert_type(retry(max_attempts=5), RetryMiddleware)
assert_type(Agent("a").middleware(retry(), cache()), Agent)
Agent("a").middleware(*production(max_tokens=100))
Agent("a").middleware(MiddlewareRef("retry", {"max_attempts": 2}), scope="agent")
define_middleware(retry(max_attempts=5), name="patient")

retry(max_attempt=5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
retry(max_attempts="5")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
token_budget(scope="month")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
retry(5)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Agent("a").middleware(retry, scope="agent")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent("a").middleware(retry(), scope="all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@wrap
async def timed(call: ModelCall, next: NextModel) -> ModelReply:
    return await next(call)


Agent("a").middleware(timed)


class Own:
    async def before_model(self, ctx: Any, request: Any) -> None: ...


Agent("a").middleware(Own())
