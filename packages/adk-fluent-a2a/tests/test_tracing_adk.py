"""Spans of a remote call, in a process of its own: a tracer provider stays for good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.adk

PROGRAM = """
import asyncio, json

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

spans, provider = InMemorySpanExporter(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(spans))
trace.set_tracer_provider(provider)

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


def test_a_remote_call_is_in_the_trace_of_its_run_and_shows_no_secret() -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PAY_TOKEN": "s3cret"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stderr
    spans = json.loads(done.stdout)
    assert "s3cret" not in done.stdout
    assert len({each["trace"] for each in spans}) == 2  # one a run
    sent = [each for each in spans if each["name"].endswith("Transport.send_message")]
    assert [each["parent"] for each in sent] == ["invoke_agent pay"] * 2
    steps = [each["status"] for each in spans if each["name"] == "invoke_agent pay"]
    assert steps == ["UNSET", "ERROR"]
    (by_hand,) = [each for each in spans if each["name"] == "invoke_agent by_hand"]
    assert by_hand["parent"] == "invoke_agent pay_or_fallback"
