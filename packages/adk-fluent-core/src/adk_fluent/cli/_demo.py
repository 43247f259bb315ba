"""``adk-fluent demo``."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections import Counter
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from adk_fluent.cli._failures import FINDINGS, OK
from adk_fluent.cli._run import KEYS
from adk_fluent.ir import ExecutionConfig

if TYPE_CHECKING:
    from adk_fluent.demo import Database, Outcome, Ticket
    from adk_fluent.protocol import AgentEvent

PRIMARY = "gemini-2.5-flash"
BACKUP = "gemini-2.5-flash-lite"


@click.command()
@click.option("--tickets", "count", type=click.IntRange(1, 50), default=50, show_default=True)
@click.option(
    "--offline/--real",
    default=None,
    help="Scripted model or Gemini. [default: Gemini if there is a key]",
)
@click.option("--model", default=PRIMARY, show_default=True, help="Gemini model of a real run.")
@click.option(
    "--backup-model", default=BACKUP, show_default=True, help="Drafts when the other fails."
)
@click.option(
    "--database",
    type=click.Path(dir_okay=False),
    help="Where the SQLite file is made. [default: a temporary one]",
)
@click.option("--show", is_flag=True, help="Print every reply.")
@click.pass_context
def demo(ctx: click.Context, count: int, offline: bool | None, **options: Any) -> None:
    """Run a support desk over fifty tickets.

    Each ticket is classified, looked up in parallel with tools over a SQLite file, answered by a
    draft-and-review loop whose model has a fallback, and filed.
    """
    from adk_fluent.demo import Database, script, support_desk, tickets  # only now

    if offline is None:
        offline = not any(os.environ.get(key) for key in KEYS)
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(options["database"] or Path(folder) / "desk.sqlite")
        database = Database(path)
        if offline:
            from adk_fluent.testing import ScriptedModel  # imports ADK

            model = ScriptedModel(script=script())
            desk, what = (
                support_desk(database, model, model),
                "the built-in scripted model (no network)",
            )
        else:
            desk = support_desk(database, options["model"], options["backup_model"])
            what = f"Gemini: {options['model']}, backup {options['backup_model']}"
        console.print(f"Support desk over {count} tickets, on {what}.")
        outcomes = asyncio.run(_work(desk, tickets()[:count], console))
        _summary(console, outcomes, database, what)
        if options["show"]:
            for outcome in outcomes:
                console.rule(f"{outcome.ticket.id} {outcome.ticket.subject}")
                console.print(Text(outcome.reply))
    ctx.exit(FINDINGS if any(outcome.error for outcome in outcomes) else OK)


async def _work(desk: Any, todo: tuple[Ticket, ...], console: Console) -> list[Outcome]:
    from adk_fluent.demo import work_off  # only now

    doing: dict[str, str] = {}
    outcomes: list[Outcome] = []

    def on_event(ticket: Ticket, event: AgentEvent) -> None:
        doing[ticket.id] = event.node or event.author
        live.update(_progress(doing, len(outcomes), len(todo)))

    with Live(console=console, refresh_per_second=8, transient=True) as live:
        stream = work_off(
            desk, todo, config=ExecutionConfig(app_name="support_desk"), on_event=on_event
        )
        async with aclosing(stream) as done:
            async for outcome in done:
                doing.pop(outcome.ticket.id, None)
                outcomes.append(outcome)
                live.console.print(_line(outcome))
    return sorted(outcomes, key=lambda outcome: outcome.ticket.id)


def _progress(doing: dict[str, str], done: int, total: int) -> Text:
    now = "  ".join(f"{ticket} {step}" for ticket, step in sorted(doing.items()))
    return Text(f"{done}/{total} done   {now}", style="dim")


def _line(outcome: Outcome) -> Text:
    ticket = outcome.ticket
    if outcome.error is not None:
        return Text(f"✗ {ticket.id} {type(outcome.error).__name__}: {outcome.error}", style="red")
    marks = [f"{outcome.drafts} drafts"] if outcome.drafts > 1 else []
    marks += ["backup model"] if outcome.backup else []
    tail = f"  ({', '.join(marks)})" if marks else ""
    return Text(f"✓ {ticket.id} {outcome.category:<9} {ticket.subject}{tail}")


def _summary(console: Console, outcomes: list[Outcome], database: Database, what: str) -> None:
    good = [outcome for outcome in outcomes if outcome.error is None]
    right = sum(outcome.category == outcome.ticket.expected for outcome in good)
    steps = sum((outcome.steps for outcome in outcomes), Counter[str]())
    seconds = sorted(outcome.seconds for outcome in outcomes)
    drafts, revised = sum(o.drafts for o in good), sum(o.drafts > 1 for o in good)
    rows = (
        ("Ran on", what),
        ("Tickets", f"{len(good)} answered, {len(outcomes) - len(good)} failed"),
        ("Classified", f"{right} of {len(good)} as a person would"),
        (
            "Categories",
            ", ".join(f"{c} {n}" for c, n in Counter(o.category for o in good).most_common()),
        ),
        (
            "Drafts",
            f"{drafts} for {len(good)} tickets, {revised} revised after review",
        ),
        ("Fallback", f"{sum(o.backup for o in good)} replies by the backup model"),
        (
            "Tool calls",
            f"{sum(o.tool_calls for o in outcomes)} on SQLite; {database.replies()} replies filed",
        ),
        ("Events", ", ".join(f"{name} {n}" for name, n in steps.most_common())),
        ("Tokens", f"{sum(o.tokens for o in outcomes):,}"),
        ("Time", f"median {seconds[len(seconds) // 2]:.2f} s a ticket"),
    )
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    for name, text in rows:
        table.add_row(Text(name, style="bold"), Text(text))
    console.print(table)
