"""Spans of a remote call, in a process of its own: a tracer provider stays for good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.adk

SETUP = """
import asyncio, json

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)
"""

PROGRAM = """
from remote_kit import peer, says, task, text

from adk_fluent import Agent, RemoteAgent
from adk_fluent.a2a import AuthConfig
from adk_fluent.testing import ScriptedModel


async def main():
    async with peer(says(task("COMPLETED", text("R1"))), says(task("FAILED"))) as far:
        by_hand = Agent("by_hand", ScriptedModel(default="by hand")).instruct("Pay.")
        pay = RemoteAgent(
            "pay", endpoint=far.url, auth=AuthConfig("bearer", "PAY_TOKEN"), fallback=by_hand
        )
        for _ in range(2):
            await pay.run("Pay.")


asyncio.run(main())
"""

SERVED = """
from serve_kit import serving

from adk_fluent import Agent, RemoteAgent
from adk_fluent.testing import ScriptedModel


async def main():
    async with serving(Agent("desk", ScriptedModel(default="R1"))) as server:
        await RemoteAgent("bank", endpoint=server.url).run("Pay.")


asyncio.run(main())
"""

REPORT = """
names = {each.context.span_id: each.name for each in spans.get_finished_spans()}
print(json.dumps([
    {
        "name": each.name,
        "parent": names.get(each.parent.span_id) if each.parent else None,
        "trace": each.context.trace_id,
        "status": each.status.status_code.name,
        "all": each.to_json(),  # in which no secret may be
    }
    for each in spans.get_finished_spans()
]))
"""


def spans_of(program: str, **names: str) -> tuple[list[dict[str, Any]], str]:
    """The spans of a program, and all that it printed."""
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), **names}
    command = [sys.executable, "-c", SETUP + program + REPORT]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stdout


def test_a_remote_call_is_in_the_trace_of_its_run_and_shows_no_secret() -> None:
    spans, printed = spans_of(PROGRAM, PAY_TOKEN="s3cret")
    assert "s3cret" not in printed
    assert len({each["trace"] for each in spans}) == 2  # one a run
    sent = [each for each in spans if each["name"].endswith("Transport.send_message")]
    assert [each["parent"] for each in sent] == ["invoke_agent pay"] * 2
    steps = [each["status"] for each in spans if each["name"] == "invoke_agent pay"]
    assert steps == ["UNSET", "ERROR"]
    (by_hand,) = [each for each in spans if each["name"] == "invoke_agent by_hand"]
    assert by_hand["parent"] == "invoke_agent pay_or_fallback"


def test_the_trace_of_a_call_goes_on_at_the_server() -> None:
    spans, _ = spans_of(SERVED)
    (there,) = [each["trace"] for each in spans if each["name"] == "invoke_agent desk"]
    (here,) = [each["trace"] for each in spans if each["name"] == "invoke_agent bank"]
    assert there == here
    parents = {each["name"]: each["parent"] for each in spans}
    above = ["invoke_agent desk"]
    while (parent := parents.get(above[-1])) is not None:
        above.append(parent)
    assert "invoke_agent bank" in above
