"""``adk-fluent run``."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adk_fluent.cli._target import load
from adk_fluent.errors import CredentialsError
from adk_fluent.ir import AgentNode, ExecutionConfig, Node, walk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import AgentEvent

KEYS = ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI")


@click.command()
@click.argument("target")
@click.argument("message", required=False)
@click.option("--model", help="Model of agents that name none.")
@click.option("--session-db", type=click.Path(dir_okay=False), help="Keep sessions in this file.")
@click.option("--session", "session_id", help="Go on with this session.")
@click.option("--user", "user_id", default="user", show_default=True, help="Whose session it is.")
@click.option(
    "--state", "pairs", multiple=True, metavar="KEY=VALUE", help="Initial state; JSON or text."
)
@click.option("--max-llm-calls", type=click.IntRange(min=1), help="Model calls at most.")
@click.option("--timeout", type=click.FloatRange(min=0, min_open=True), help="Seconds at most.")
@click.option(
    "--stream/--no-stream", default=None, help="Show text as it comes. [default: on a terminal]"
)
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
def run(target: str, message: str | None, **options: Any) -> None:
    """Run a pipeline once and print its answer.

    TARGET is module:attribute or path.py:attribute; MESSAGE is read from standard input when it
    is left out.
    """
    pipeline = load(target)
    require_credentials(pipeline.to_ir(), options["model"])
    asyncio.run(_run(pipeline, message or _piped(), options))


def _piped() -> str:
    if sys.stdin.isatty():
        raise click.UsageError("give a MESSAGE, or pipe one in")
    text = sys.stdin.read().strip()
    if not text:
        raise click.UsageError("the MESSAGE is empty")
    return text


async def _run(pipeline: Builder, message: str, options: dict[str, Any]) -> None:
    stream = sys.stdout.isatty() if options["stream"] is None else options["stream"]
    defaults = ExecutionConfig()
    config = ExecutionConfig(
        default_model=options["model"],
        streaming_mode="sse" if stream else "none",
        max_llm_calls=options["max_llm_calls"] or defaults.max_llm_calls,
        timeout_seconds=options["timeout"],
    )
    events = pipeline.stream(
        message,
        config=config,
        user_id=options["user_id"],
        session_id=options["session_id"],
        session_service=session_service(options["session_db"]),
        state=dict(map(_pair, options["pairs"])),
    )
    await (_print_json(events) if options["as_json"] else _print_text(events))


async def _print_json(events: AsyncGenerator[AgentEvent, None]) -> None:
    async with aclosing(events) as stream:
        async for event in stream:
            click.echo(json.dumps(event.to_dict(), ensure_ascii=False, default=str))


async def _print_text(events: AsyncGenerator[AgentEvent, None]) -> None:
    speaker, partial = "", False
    async with aclosing(events) as stream:
        async for event in stream:
            if event.discarded:
                click.secho(
                    f"\n({event.node}: an attempt failed and was undone)", dim=True, err=True
                )
            for call in event.tool_calls:
                click.secho(f"\n[{event.author} calls {call.tool_name}]", dim=True, err=True)
            if not event.content or (partial and not event.is_partial and event.author == speaker):
                partial = partial and event.is_partial
                continue
            if event.author != speaker or not partial:
                click.echo(f"\n{click.style(event.author, bold=True)}: ", nl=False)
            click.echo(event.content, nl=False)
            speaker, partial = event.author, event.is_partial
    click.echo()


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--state")
    try:
        return key, json.loads(value)
    except json.JSONDecodeError:
        return key, value


def session_service(path: str | None) -> Any:
    """ADK's session service over a SQLite file, or None for memory."""
    if path is None:
        return None
    from google.adk.sessions.sqlite_session_service import (  # ADK is slow to import
        SqliteSessionService,
    )

    return SqliteSessionService(str(Path(path)))


def require_credentials(root: Node, default_model: str | None) -> None:
    """Stop before the first model call when Gemini is asked for and no key is there.

    Raises:
        CredentialsError: With the agent that needs one.
    """
    if any(os.environ.get(key) for key in KEYS):
        return
    for node in walk(root):
        if not isinstance(node, AgentNode) or node.mock is not None or node.selector is not None:
            continue
        model = node.model or default_model or "gemini"
        if isinstance(model, str) and model.startswith("gemini"):
            raise CredentialsError(
                f"agent {node.name!r} uses {model}, and there is no key",
                node=node,
                help=f"set {KEYS[0]} (or {KEYS[2]} with Google Cloud credentials), "
                "or give the agent a mock(...)",
            )
