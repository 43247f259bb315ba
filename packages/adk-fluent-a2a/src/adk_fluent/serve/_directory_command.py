"""``adk-fluent directory``."""

from __future__ import annotations

import asyncio
import logging
import os
from typing import TYPE_CHECKING, Any

import click

from adk_fluent.cli import note
from adk_fluent.serve._command import TOKENS, address_told, interruption, tokens_in

if TYPE_CHECKING:
    from adk_fluent.serve import DirectoryServer


@click.command()
@click.argument("database", type=click.Path(dir_okay=False))
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen at.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8090, show_default=True, help="0: a free one."
)
@click.option(
    "--endpoint", metavar="URL", help="Where clients come in; without it the address itself."
)
@click.option("--name", default="Agents", show_default=True, help="What it is called.")
@click.option(
    "--lease",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="For agents that ask for no other.",
)
def directory(database: str, **options: Any) -> None:
    """Serve a directory of agents, kept in DATABASE, until interrupted.

    Without authentication only this machine is served. The variable ADK_FLUENT_SERVE_TOKENS has
    bearer tokens and whose they are, as JSON: {"token": "payments"}.
    """
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")  # of warnings and errors
    asyncio.run(_serve(database, options))


async def _serve(database: str, options: dict[str, Any]) -> None:
    server = _server(database, options)
    ended = interruption()
    with address_told(options):
        await server.start(host=options["host"], port=options["port"])
    note(f"[serving the directory at {server.url}]")
    await ended.wait()
    note("[stopping]")
    await server.stop()


def _server(database: str, options: dict[str, Any]) -> DirectoryServer:
    from adk_fluent.serve import BearerAuth, DirectoryServer  # noqa: PLC0415  # imports the SDK

    tokens = os.environ.get(TOKENS)
    return DirectoryServer(
        database,
        auth=None if tokens is None else BearerAuth(tokens_in(tokens)),
        endpoint=options["endpoint"],
        name=options["name"],
        lease=options["lease"],
    )
