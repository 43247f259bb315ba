"""``adk-fluent serve``."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from adk_fluent.cli import load, note, require_credentials
from adk_fluent.errors import AdkFluentError, UsageError
from adk_fluent.ir import ExecutionConfig
from adk_fluent.serve._logs import shorten

if TYPE_CHECKING:
    from collections.abc import Generator

    from adk_fluent.serve import A2AServer

#: JSON of tokens and their principals.
TOKENS = "ADK_FLUENT_SERVE_TOKENS"


@click.command()
@click.argument("target")
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0: a free one."
)
@click.option("--grpc-port", type=click.IntRange(0, 65535), help="Serve gRPC there, too.")
@click.option("--grpc-endpoint", metavar="URL", help="Where clients come in for gRPC.")
@click.option(
    "--endpoint", metavar="URL", help="Where clients come in; without it the address itself."
)
@click.option("--task-store", metavar="URL", help="Keep tasks and sessions, as sqlite:///tasks.db.")
@click.option("--push", is_flag=True, help="Send push notifications to public https addresses.")
@click.option("--model", help="Model of agents that name none.")
@click.option("--input", "inputs", multiple=True, metavar="KEY", help="State that data may write.")
@click.option("--output", "outputs", multiple=True, metavar="KEY", help="State that is told.")
@click.option(
    "--grace",
    type=click.FloatRange(0),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="For tasks to end when it is interrupted.",
)
def serve(target: str, **options: Any) -> None:
    """Serve TARGET to other agents over the A2A protocol, until interrupted.

    TARGET is module:attribute or path.py:attribute. Without authentication only this machine is
    served. The variable ADK_FLUENT_SERVE_TOKENS has bearer tokens and whose they are, as JSON:
    {"token": "ann"}.
    """
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")  # of warnings and errors
    for handler in logging.getLogger().handlers:
        handler.addFilter(shorten)
    pipeline = load(target)
    require_credentials(pipeline.to_ir(), options["model"])
    asyncio.run(_serve(_server(pipeline, options), options))


def _server(pipeline: Any, options: dict[str, Any]) -> A2AServer:
    from adk_fluent.serve import A2AServer, BearerAuth, PushPolicy  # noqa: PLC0415  # imports ADK

    tokens = os.environ.get(TOKENS)
    endpoint, model = options["endpoint"], options["model"]
    if endpoint is None and options["grpc_endpoint"] is not None:
        raise UsageError(
            "--grpc-endpoint stands in a card with --endpoint",
            found="no --endpoint",
            help="give --endpoint, too; without both, the card has the addresses themselves",
        )
    auth = None if tokens is None else BearerAuth(tokens_in(tokens))
    return A2AServer(
        pipeline,
        card=None
        if endpoint is None
        else pipeline.to_agent_card(
            endpoint=endpoint, auth=auth, grpc_endpoint=options["grpc_endpoint"]
        ),
        config=None if model is None else ExecutionConfig(default_model=model),
        auth=auth,
        task_store=options["task_store"],
        push=PushPolicy() if options["push"] else None,
        inputs=options["inputs"],
        outputs=options["outputs"],
    )


def tokens_in(text: str) -> dict[str, str]:
    """Tokens and whose they are, of the variable."""
    with suppress(ValueError, RecursionError):
        return json.loads(text)
    raise UsageError(
        f"{TOKENS} holds JSON: tokens and whose they are",
        found="something else",  # never the tokens themselves
        help='such as {"a-long-random-token": "ann"}',
    )


async def _serve(server: A2AServer, options: dict[str, Any]) -> None:
    ended = interruption()
    with address_told(options):
        await server.start(
            host=options["host"], port=options["port"], grpc_port=options["grpc_port"]
        )
    note(f"[serving at {server.url}; the card is at {server.card_url}]")
    await ended.wait()
    note("[stopping]")
    await server.stop(grace=options["grace"])


@contextmanager
def address_told(options: dict[str, Any]) -> Generator[None]:
    """Say which address cannot be listened at."""
    try:
        yield
    except AdkFluentError:  # such as of a database, which may be an OSError, too
        raise
    except OSError as error:
        option = "--port" if error.strerror else "--grpc-port"
        asked = f"{options['host']}:{options[option[2:].replace('-', '_')]}"
        raise UsageError(
            "the server cannot listen at its address",
            location=asked,
            found=f"{error.strerror or error}; asked for {asked}",
            help=f"give another {option}, or 0 for a free one",
        ) from error


def interruption() -> asyncio.Event:
    """What is set when the process is to end."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(each, ended.set)
        except NotImplementedError:  # of Windows: Ctrl-C ends the loop itself
            signal.signal(each, lambda _number, _frame: loop.call_soon_threadsafe(ended.set))
    return ended
