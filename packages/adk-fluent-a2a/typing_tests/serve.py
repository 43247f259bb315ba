"""What type checkers know about servers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

from adk_fluent import Agent
from adk_fluent.ir import ExecutionConfig
from adk_fluent.serve import A2AServer, ApiKeyAuth, BearerAuth, DirectoryServer, JwtAuth, Limits

if TYPE_CHECKING:
    from starlette.requests import Request

desk = Agent("desk").instruct("Help.") >> Agent("letter")


async def by_header(request: Request) -> str | None:
    return request.headers.get("x-client-name")


server = A2AServer(
    desk,
    card=desk.to_agent_card(endpoint="https://desk.example.com", version="2.0.0"),
    config=ExecutionConfig(streaming_mode="sse"),
    auth=BearerAuth({"token": "ann"}),
    task_store="sqlite:///tasks.db",
    limits=Limits(parts=3),
    inputs=["order", "user:tier"],
    outputs="receipt",
    answers=["gate"],
)
A2AServer(desk, auth=ApiKeyAuth({"key": "ann"}, header="X-Key"))
A2AServer(desk, auth=JwtAuth("key", audience="here"))
A2AServer(desk, auth=by_header)

directory = DirectoryServer("agents.db", auth=by_header, per_owner=3, lease=30)


async def main() -> None:
    await directory.start(port=8090)
    assert_type(await server.start(port=8080), None)
    assert_type(server.url, str)
    await server.stop(grace=3)


def wrong(request: Any) -> str:
    return "ann"


A2AServer(desk, auth=wrong)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
A2AServer(desk, auth="token")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
A2AServer("desk")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
A2AServer(desk, limits=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
A2AServer(desk, answers=["all"])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]
A2AServer(desk, inputs=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
BearerAuth({"token": 3})  # type: ignore[dict-item]  # pyright: ignore[reportArgumentType]
desk.to_agent_card()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
desk.to_agent_card(endpoint="https://x", colour="red")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
DirectoryServer(7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
