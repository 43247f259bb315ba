"""User code that type checkers accept without a word: capabilities, resources, presets, remotes."""
# ruff: noqa: TC003  # users import as they please

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

from google.adk.planners import PlanReActPlanner
from pydantic import BaseModel

from adk_fluent import Agent, FanOut, Pipeline, Preset, RemoteAgent, Resource, agent
from adk_fluent.ir import (
    AuthConfig,
    Modality,
    ModelCandidate,
    RetryConfig,
    ScalingConfig,
    TransportConfig,
)


class Ticket(BaseModel):
    intent: str
    score: float = 0.0


@dataclass
class Order:
    number: str


class Draft(TypedDict):
    text: str


def search(query: str) -> list[str]:
    """Search the knowledge base."""
    return [query]


# --- what an agent takes and gives ---------------------------------------------------------------

reader = (
    Agent("reader")
    .accepts(Modality.IMAGE, Modality.PDF, max_tokens=4000)
    .produces_modality(Modality.STRUCTURED, max_tokens=500)
    .consumes(Order)
    .produces(Ticket)
    .stream_to("chunked", chunk_size=32, backpressure=True)
)
assert_type(reader, Agent)
assert_type(Agent("writer").consumes(Draft).stream_to(), Agent)
chosen = Agent("chosen").model_select(
    strategy="cost_optimized",
    candidates=[
        ModelCandidate("gemini-2.5-flash", 0.0003, 0.0025, quality_tier=1),
        ModelCandidate("gemini-2.5-pro", prices={"input": 1.25, "output": 10}),
        ModelCandidate("gemini-2.5-pro", condition=lambda ctx, request: True),
    ],
    budget_key="temp:left",
    fallback_model="gemini-2.5-flash",
)
assert_type(chosen.model_select(candidates=[], judge=lambda reply: len(reply.text) > 3), Agent)
assert_type(chosen, Agent)
heavy = (reader >> chosen).execution_boundary(
    serialization="arrow",
    transport=TransportConfig("queue", "pubsub://heavy"),
    isolation="process",
    scaling=ScalingConfig(max_instances=20),
)
assert_type(heavy, Pipeline)
assert_type((reader | chosen).execution_boundary(isolation="container"), FanOut)

# --- resources -----------------------------------------------------------------------------------


def database() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:")
    yield connection
    connection.close()


async def client() -> AsyncIterator[list[str]]:
    yield []


@contextmanager
def session(db: sqlite3.Connection) -> Generator[sqlite3.Cursor]:
    yield db.cursor()


@asynccontextmanager
async def lease() -> AsyncGenerator[int]:
    yield 3


def find_order(number: str, db: sqlite3.Connection) -> str:
    """Find an order by its number."""
    return str(db.execute("select ?", [number]).fetchone())


clerk = (
    Agent("clerk")
    .tool(find_order)
    .inject(
        db=Resource(database, scope="app"),
        http=Resource(client, scope="session"),
        cursor=Resource(session),
        left=Resource(lease, scope="invocation"),
        cache=Resource(dict[str, Any], cleanup=lambda cache: cache.clear()),
        limit=3,
    )
)
assert_type(clerk, Agent)
assert_type((clerk >> reader).inject(region="eu"), Pipeline)

# --- presets, and agents as functions ------------------------------------------------------------

careful = Preset(
    model="gemini-2.5-pro",
    history="own",
    tool=[search, find_order],
    writes=["intent", "user:tier"],
    before_model=[print],
    planner=PlanReActPlanner(),
    accepts=[Modality.TEXT, Modality.IMAGE],
)
checked = Preset(careful, output_schema=Ticket, disallow_transfer_to_peers=True, tool=search)
assert_type(Agent("reviewer").use(careful, checked).instruct("Review."), Agent)


@agent
def classify() -> None:
    """One word: billing or other?"""


@agent("triage", careful, model="gemini-2.5-flash", writes="intent")
async def triage(context: Any) -> str:
    """Sorts tickets."""
    return f"Sort {context.state['ticket']}."


assert_type(classify, Agent)
assert_type(triage, Agent)
assert_type(classify >> triage, Pipeline)

# --- agents elsewhere ----------------------------------------------------------------------------

payments = (
    RemoteAgent(
        "payments",
        endpoint="https://payments.internal/a2a",
        capabilities=("process_refund",),
        input_schema=Order,
        output_schema=Ticket,
        auth=AuthConfig("bearer", "PAYMENTS_TOKEN"),
        timeout=15,
        retry=RetryConfig(),
        fallback=Agent("by_hand"),
    )
    .reads("order")
    .writes("paid")
)
assert_type(payments, RemoteAgent)
assert_type(triage >> payments >> clerk, Pipeline)
