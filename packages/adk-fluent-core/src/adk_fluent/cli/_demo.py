"""``adk-fluent demo``."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections import Counter
from contextlib import aclosing
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.text import Text

from adk_fluent._texts import plural
from adk_fluent.cli._failures import FINDINGS, INFRASTRUCTURE, OK, exit_code
from adk_fluent.cli._gemini import no_answer, said
from adk_fluent.cli._interrupts import run_interruptible
from adk_fluent.cli._keys import KEYS, credentials, no_key
from adk_fluent.cli._status import is_interactive
from adk_fluent.cli._text import plain, short

if TYPE_CHECKING:
    from adk_fluent.builders import Pipeline
    from adk_fluent.demo import Database, Outcome, Ticket
    from adk_fluent.protocol import AgentEvent

PRIMARY: Final = "gemini-2.5-flash"
BACKUP: Final = "gemini-2.5-flash-lite"
_PATIENCE: Final = 4  # tickets without an answer from Gemini, before the others are given up


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
    type=click.Path(dir_okay=False, path_type=Path),
    help="Make the SQLite file here, and keep it. [default: a temporary one]",
)
@click.option("--show", is_flag=True, help="Print every reply.")
@click.pass_context
def demo(
    ctx: click.Context,
    *,
    count: int,
    offline: bool | None,
    model: str,
    backup_model: str,
    database: Path | None,
    show: bool,
) -> None:
    """Run a support desk over fifty tickets.

    Each ticket is classified, looked up in parallel with tools over a SQLite file, answered by a
    draft-and-review loop whose model has a fallback, and filed.
    """
    from adk_fluent.demo import tickets  # only now

    if offline is None:
        offline = credentials() is None
    elif not offline and credentials() is None:
        raise no_key("a real run uses Gemini", "run it with --offline")
    what = "the built-in scripted model, offline" if offline else f"{model}, backup {backup_model}"
    view = _View(Console(highlight=False), count, what)
    with tempfile.TemporaryDirectory() as folder:
        made = _made(database or Path(folder) / "desk.sqlite")
        view.title()  # first: ADK takes seconds to import
        desk = _offline(made) if offline else _real(made, model, backup_model)
        try:
            run_interruptible(view.follow(desk, tickets()[:count]))
        finally:  # also after Ctrl-C and SIGTERM: what is done is done
            view.summary(made, kept=database is not None)
    if show:
        view.replies()
    if offline:
        view.hint()
    elif (error := view.unanswered()) is not None:
        raise no_answer("Gemini answered no ticket", error) from error
    ctx.exit(FINDINGS if any(outcome.error for outcome in view.outcomes) else OK)


def _made(path: Path) -> Database:
    from adk_fluent.demo import Database

    if path.exists():
        raise click.BadParameter(f"{path} exists; name a new file.", param_hint="--database")
    try:
        return Database(path)
    except sqlite3.Error as error:
        text = f"{path} cannot be made: {error}."
        raise click.BadParameter(text, param_hint="--database") from error


def _offline(database: Database) -> Pipeline:
    from adk_fluent.demo import script, support_desk
    from adk_fluent.testing import ScriptedModel

    model = ScriptedModel(script=script())
    return support_desk(database, model, model)


def _real(database: Database, model: str, backup: str) -> Pipeline:
    from adk_fluent.demo import support_desk

    desk = support_desk(database, model, backup)
    desk.to_app()  # a model that ADK does not know stops it here, and not fifty times
    return desk


class _View:
    """What is printed: a line when a ticket is done, progress on a terminal, and a summary."""

    def __init__(self, console: Console, total: int, what: str) -> None:
        self.outcomes: list[Outcome] = []
        self._console = console
        self._total = total
        self._what = what
        self._began = 0.0
        fancy = console.encoding.lower().startswith("utf")
        self._good, self._bad = ("✓", "✗") if fancy else ("+", "x")

    def title(self) -> None:
        """Say what is going to run."""
        self._print(f"Support desk: {plural(self._total, 'ticket')} on {self._what}", style="bold")

    async def follow(self, desk: Pipeline, todo: tuple[Ticket, ...]) -> None:
        """Work the tickets off."""
        from adk_fluent.demo import work_off

        progress = Progress(
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}", style="dim"),
            console=self._console,
            transient=True,
            disable=not is_interactive(self._console.file),  # FORCE_COLOR makes anything one
        )
        bar = progress.add_task("", total=self._total)
        doing: dict[str, str] = {}
        self._began = time.perf_counter()

        def on_event(ticket: Ticket, event: AgentEvent) -> None:
            doing[ticket.id] = event.node or event.author
            now = "   ".join(f"{name} {step}" for name, step in sorted(doing.items()))
            progress.update(bar, description=now)

        with progress:
            async with aclosing(work_off(desk, todo, on_event=on_event)) as done:
                async for outcome in done:
                    doing.pop(outcome.ticket.id, None)
                    self.outcomes.append(outcome)
                    self._line(outcome)
                    progress.update(bar, advance=1, refresh=True)
                    if len(self.outcomes) >= _PATIENCE and self.unanswered() is not None:
                        break

    def unanswered(self) -> BaseException | None:
        """The error of the last ticket, when a service that is out of order failed every one."""
        errors = [outcome.error for outcome in self.outcomes]
        if all(error is not None and exit_code(error) == INFRASTRUCTURE for error in errors):
            return errors[-1] if errors else None
        return None

    def _line(self, outcome: Outcome) -> None:
        ticket, error = outcome.ticket, outcome.error
        if error is not None:
            self._print(f"{self._bad} {ticket.id} {short(said(error), 200)}", style="red")
            return
        marks = [f"{outcome.drafts} drafts"] if outcome.drafts > 1 else []
        marks += ["backup model"] if outcome.backup else []
        marks += [f"not {ticket.expected}"] if outcome.category != ticket.expected else []
        line = Text.assemble(
            (self._good, "green"), f" {ticket.id} {outcome.category:<10} {plain(ticket.subject)}"
        )
        if marks:
            line.append(f"  ({', '.join(marks)})", style="yellow")
        self._print(line)

    def summary(self, database: Database, *, kept: bool) -> None:
        """Say what came of it."""
        good = [outcome for outcome in self.outcomes if outcome.error is None]
        failed = len(self.outcomes) - len(good)
        left = self._total - len(self.outcomes)
        categories = Counter(outcome.category for outcome in good).most_common()
        right = sum(outcome.category == outcome.ticket.expected for outcome in good)
        drafts = sum(outcome.drafts for outcome in good)
        seconds = [outcome.seconds for outcome in self.outcomes]
        rows = {
            "Ran on": self._what,
            "Tickets": f"{len(good)} answered, {failed} failed"
            + (f", {left} not begun or not finished" if left else ""),
            "Replies": f"{database.replies()} filed" + (f" in {database.path}" if kept else ""),
            "Categories": ", ".join(f"{name} {n}" for name, n in categories) or "none",
            "Classified": f"{right} of {len(good)} as a person would",
            "Drafts": f"{drafts}, of which {drafts - len(good)} because the review asked for it",
            "Fallback": f"{sum(o.backup for o in good)} by the backup model",
            "Tool calls": f"{sum(o.tool_calls for o in self.outcomes)} on SQLite",
            "Model calls": f"{sum(o.model_calls for o in self.outcomes)}, "
            f"{sum(o.tokens for o in self.outcomes):,} tokens",
            "Time": f"{time.perf_counter() - self._began:.1f} s"
            + (f", median {median(seconds):.2f} s a ticket" if seconds else ""),
        }
        self._print("")
        for name, text in rows.items():
            self._print(Text.assemble((f"{name:<13}", "bold"), text))

    def hint(self) -> None:
        """Say what to try next."""
        self._print(f"\nSet {KEYS[0]} and run it again to see it on Gemini.", style="dim")

    def replies(self) -> None:
        """Print every reply."""
        for outcome in sorted(self.outcomes, key=lambda outcome: outcome.ticket.id):
            ticket = outcome.ticket
            self._print(f"\n{ticket.id} {plain(ticket.subject)}", style="bold")
            error = outcome.error
            self._print(plain(outcome.reply if error is None else said(error)))

    def _print(self, text: str | Text, style: str | None = None) -> None:
        """One line of text as it is: no markup, and no folding where nobody looks."""
        line = Text(text) if isinstance(text, str) else text
        self._console.print(line, style=style, soft_wrap=not self._console.is_terminal)
