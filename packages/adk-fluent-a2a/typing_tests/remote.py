"""What type checkers know about remote agents."""

from __future__ import annotations

from typing import Any, assert_type

from a2a.types import AgentCard
from pydantic import BaseModel

from adk_fluent import Agent, Pipeline
from adk_fluent.a2a import (
    AgentDirectory,
    AuthConfig,
    DirectoryEntry,
    RemoteAgent,
    RemoteError,
    RetryConfig,
)


class Order(BaseModel):
    id: int


def trusted(card: Any) -> None: ...


pay = RemoteAgent(
    "pay",
    endpoint="https://pay.example.com",
    capabilities=("refund",),
    inputs=("order", "user:tier"),
    outputs="receipt",
    input_schema=Order,
    output_schema=Order,
    auth=AuthConfig("bearer", "PAY_TOKEN"),
    timeout=15,
    retry=RetryConfig(max_attempts=2),
    idempotent=True,
    history="transcript",
    verify_card=trusted,
    fallback=Agent("by_hand"),
)
assert_type(pay >> Agent("after"), Pipeline)
RemoteAgent("pay", card=AgentCard(name="pay"))
RemoteAgent("pay", card={"name": "pay"})
assert_type(RemoteAgent.from_card("card.json", timeout=3), RemoteAgent)


async def found() -> RemoteAgent:
    directory = AgentDirectory("https://directory.internal", {"name": "pay"}, ttl=60, origins=[])
    entries = await directory.discover("refunds", capabilities=["refund"], limit=3)
    assert_type(entries, list[DirectoryEntry])
    assert_type(entries[0].card, AgentCard)
    async with directory.registered(entries[0].card, lease=30) as identifier:
        assert_type(identifier, str)
    return RemoteAgent.from_card(entries[0])


def code(error: RemoteError) -> tuple[str, int | None, bool]:
    return error.error_code, error.status, error.retriable


RemoteAgent("pay", endpoint=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
RemoteAgent("pay", endpoint="https://x", retry=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
RemoteAgent("pay", endpoint="https://x", outputs=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
RemoteAgent("pay", endpoint="https://x", fallback=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
RemoteAgent("pay", endpoint="https://x", retries=3)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
RemoteAgent("pay")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
RemoteAgent("pay", endpoint="https://x", card={})  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
RemoteAgent.from_card({}, timeout="3")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
AgentDirectory("https://x", auth="token")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
