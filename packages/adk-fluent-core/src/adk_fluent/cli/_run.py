"""``adk-fluent run``."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from contextlib import aclosing, contextmanager, redirect_stdout
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adk_fluent.cli._failures import FINDINGS, OK
from adk_fluent.cli._keys import require_credentials
from adk_fluent.cli._sessions import session_service
from adk_fluent.cli._target import load
from adk_fluent.cli._transcript import Transcript, note
from adk_fluent.errors import RunError
from adk_fluent.ir import ExecutionConfig
from adk_fluent.protocol import RunResult

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import AgentEvent


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Any]:
    """KEY=VALUE, where VALUE is JSON or else plain text."""
    state: dict[str, Any] = {}
    for value in values:
        key, equals, text = value.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{value!r} is not KEY=VALUE.")
        try:
            state[key.strip()] = json.loads(text)
        except json.JSONDecodeError:
            state[key.strip()] = text
    return state


def _seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not isfinite(value):  # FloatRange lets nan pass
        raise click.BadParameter(f"{value} is no number of seconds.")
    return value


@click.command()
@click.argument("target")
@click.argument("message", required=False)
@click.option("--model", help="Model of agents that name none.")
@click.option(
    "--session-db",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep sessions in this SQLite file.",
)
@click.option("--session", "session_id", help="Go on with this session of --session-db.")
@click.option("--user", "user_id", default="user", show_default=True, help="Whose session it is.")
@click.option(
    "--state",
    multiple=True,
    callback=_pairs,
    metavar="KEY=VALUE",
    help="What a new session's state starts with; VALUE is JSON or text. May be repeated.",
)
@click.option("--max-llm-calls", type=click.IntRange(min=1), help="Model calls at most.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    callback=_seconds,
    help="Seconds at most.",
)
@click.option(
    "--stream/--no-stream", default=None, help="Show text as it comes. [default: on a terminal]"
)
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
@click.pass_context
def run(ctx: click.Context, target: str, message: str | None, **options: Any) -> None:
    """Run a pipeline once and show what its agents say.

    TARGET is module:attribute or path.py:attribute; MESSAGE is read from standard input when it
    is left out.
    """
    text = _checked(_piped() if message is None else message)
    if options["session_id"] is not None and options["session_db"] is None:
        raise click.UsageError("--session needs --session-db: sessions in memory end with the run.")
    pipeline = load(target)
    require_credentials(pipeline.to_ir(), options["model"])
    try:
        ctx.exit(asyncio.run(_run(pipeline, text, options)))
    except KeyboardInterrupt:
        if options["session_id"] is not None:
            note(f"[what was committed is kept; go on with --session {options['session_id']}]")
        raise
    except SystemExit as error:
        raise RunError(
            f"a step of the pipeline called exit({error.code!r})",
            help="raise an error instead: exit ends the whole program",
        ) from error


def _piped() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise click.UsageError("Give a MESSAGE, or pipe one in.")
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape").strip()


def _checked(message: str) -> str:
    if not message.strip():
        raise click.UsageError("The MESSAGE is empty.")
    try:
        message.encode()
    except UnicodeEncodeError as error:  # bytes that are no UTF-8 come as lone surrogates
        raise click.UsageError(f"The MESSAGE is not UTF-8: {error.reason}.") from error
    return message


async def _run(pipeline: Builder, message: str, options: dict[str, Any]) -> int:
    config = _config(options)
    service = None
    if options["session_db"] is not None:
        service = session_service(options["session_db"])
        await _begin(service, config, options)
    events = pipeline.stream(
        message,
        config=config,
        user_id=options["user_id"],
        session_id=options["session_id"],
        session_service=service,
        state=options["state"],
    )
    seen = RunResult()
    with _shown(options["as_json"]) as show:
        async with aclosing(events):
            async for event in events:
                show(event)
                if not event.is_partial:
                    seen.append(event)
    for question in seen.pending:
        what = question.message or f"{question.kind} {question.name}".strip()
        note(f"[{question.author or 'the run'} waits for an answer: {what}]")
    return FINDINGS if seen.errors or seen.pending else OK


def _config(options: dict[str, Any]) -> ExecutionConfig:
    stream = options["stream"]
    if stream is None:
        stream = sys.stdout.isatty() and not options["as_json"]
    return ExecutionConfig(
        default_model=options["model"],
        streaming_mode="sse" if stream else "none",
        max_llm_calls=options["max_llm_calls"] or ExecutionConfig().max_llm_calls,
        timeout_seconds=options["timeout"],
    )


async def _begin(service: Any, config: ExecutionConfig, options: dict[str, Any]) -> None:
    """Name a session that has no name, and refuse state for one that has begun."""
    if options["session_id"] is None:
        options["session_id"] = uuid.uuid4().hex
        note(f"[session {options['session_id']}]")
        return
    session = await service.get_session(
        app_name=config.app_name, user_id=options["user_id"], session_id=options["session_id"]
    )
    if session is not None and options["state"]:
        raise click.UsageError(
            f"Session {options['session_id']!r} has begun: --state is for new sessions."
        )
    if session is None:
        note(f"[session {options['session_id']} is new]")


@contextmanager
def _shown(as_json: bool) -> Generator[Callable[[AgentEvent], None]]:
    """What shows events."""
    if as_json:
        out = sys.stdout
        ascii_only = out.encoding.lower().replace("-", "") != "utf8"
        with redirect_stdout(sys.stderr):  # what tools print is no JSON
            yield lambda event: click.echo(
                json.dumps(event.to_dict(), ensure_ascii=ascii_only, default=str), file=out
            )
        return
    transcript = Transcript()
    try:
        yield transcript.show
    finally:
        transcript.end()
