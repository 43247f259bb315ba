"""``adk-fluent run``."""

from __future__ import annotations

import asyncio
import sys
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from adk_fluent._registry import offers
from adk_fluent.cli._answers import Given, Person, settle
from adk_fluent.cli._conversation import Conversation, Settings, exit_error
from adk_fluent.cli._failures import FINDINGS
from adk_fluent.cli._keys import require_credentials
from adk_fluent.cli._later import tell_what_waits
from adk_fluent.cli._lines import Lines
from adk_fluent.cli._parts import Attachment, FileError, attached, message_of
from adk_fluent.cli._state_option import state_option
from adk_fluent.cli._target import load
from adk_fluent.cli._text import why_no_message
from adk_fluent.cli._transcript import note
from adk_fluent.errors import SessionError
from adk_fluent.ir import ExecutionConfig
from adk_fluent.protocol import Resume

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from adk_fluent._registry import Offer
    from adk_fluent.protocol import RunOption

#: Where layers put options of this command.
_SLOT: Final = "run_options"


def _seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not isfinite(value):  # FloatRange lets nan pass
        raise click.BadParameter(f"{value} is no number of seconds.")
    return value


def _name(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("It is empty.")
    if value is not None and value != value.strip():
        raise click.BadParameter(f"{value!r} begins or ends with a blank.")
    return value


def _files(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> list[Attachment]:
    files: list[Attachment] = []
    for value in values:
        try:
            files.append(attached(value, files))
        except FileError as error:
            raise click.BadParameter(str(error)) from error
    return files


class _Command(click.Command):
    """The command with the options of layers, which are imported when they are given."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = super().get_params(ctx)
        taken = {name for param in own for name in param.opts}
        added = [_flag(each) for each in offers(_SLOT) if _spelt(each) not in taken]
        return [*own, *added]


def _spelt(offer: Offer) -> str:
    return f"--{offer.name.replace('_', '-')}"


def _flag(offer: Offer) -> click.Option:
    def note_it(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta.setdefault(_SLOT, []).append(offer)

    return click.Option(
        [_spelt(offer), f"of_{offer.layer}_{offer.name}"],
        is_flag=True,
        expose_value=False,
        callback=note_it,
        help=offer.entry.help,
    )


@contextmanager
def _reported(options: Sequence[RunOption], *, as_json: bool) -> Generator[None]:
    """Print the reports of layers at the end, whatever that is: what was spent, was spent."""
    try:
        yield
    finally:
        for each in options:
            text = each.report(as_json=as_json)
            if text and as_json:
                click.echo(text)
            elif text:
                note(text)


@click.command(cls=_Command)
@click.argument("target")
@click.argument("message", required=False)
@click.option(
    "--file",
    "files",
    multiple=True,
    callback=_files,
    metavar="[TYPE:]PATH",
    help="Send this file, too: text, an image, audio, video or PDF. TYPE is a MIME type such as "
    "image/png, for files whose name does not tell. May be repeated.",
)
@click.option(
    "-i",
    "--interactive",
    is_flag=True,
    help="Open a conversation; MESSAGE, if there is one, begins it.",
)
@click.option("--model", help="Model of agents that name none.")
@click.option(
    "--session-db",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Keep sessions in this SQLite file.",
)
@click.option(
    "--session", "session_id", callback=_name, help="Go on with this session of --session-db."
)
@click.option(
    "--user", "user_id", default="user", show_default=True, callback=_name, help="Whose it is."
)
@click.option(
    "--app",
    "app_name",
    default=ExecutionConfig().app_name,
    show_default=True,
    callback=_name,
    help="The app it belongs to.",
)
@state_option
@click.option("--max-llm-calls", type=click.IntRange(min=1), help="Model calls at most, per run.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    callback=_seconds,
    help="Seconds at most, per run.",
)
@click.option(
    "--stream/--no-stream", default=None, help="Show text as it comes. [default: on a terminal]"
)
@click.option(
    "--answer",
    "answers",
    multiple=True,
    metavar="[NAME=]VALUE",
    help="Answer the question of that name or id, or else the next one: yes, no, JSON or text. May "
    "be repeated.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with the last run of --session, which waits, failed or was cut off.",
)
@click.option("--json", "as_json", is_flag=True, help="Print each event as a line of JSON.")
@click.pass_context
def run(
    ctx: click.Context,
    target: str,
    message: str | None,
    files: list[Attachment],
    interactive: bool,
    **options: Any,
) -> None:
    """Run a pipeline on a message, or in a conversation, and show what its agents say.

    TARGET is module:attribute or path.py:attribute. Without a MESSAGE, what is piped in is the
    message; at a terminal, a conversation opens. Questions of gates and tools are asked at a
    terminal, or answered by --answer.
    """
    chosen: list[Offer] = ctx.meta.get(_SLOT, [])
    added: list[RunOption] = [each.load()() for each in chosen]
    settings = Settings(target=target, options=tuple(added), **options)
    if settings.session_id is not None and settings.session_db is None:
        raise click.UsageError("--session needs --session-db: sessions in memory end with the run.")
    goes_on = message is None and _goes_on(settings)
    talks = interactive or (message is None and not goes_on and _is_terminal())
    if message is None and not talks and not goes_on:
        message = _piped()
    if settings.resume and (message is not None or files):
        raise click.UsageError("--resume goes on with a run, and takes no MESSAGE and no --file.")
    if message is not None and (message.strip() or not files):
        why = why_no_message(message)
        if why is not None:
            raise click.UsageError(f"The MESSAGE {why}")
    pipeline = load(target)
    require_credentials(pipeline.to_ir(), settings.model)
    with _reported(added, as_json=settings.as_json):
        if talks:
            from adk_fluent.cli._repl import converse  # of no use to all others

            converse(lambda: Conversation(pipeline, settings), settings, message, files)
        else:
            start = Resume() if goes_on else message_of(message, files)
            ctx.exit(_once(lambda: Conversation(pipeline, settings), settings, start))


def _goes_on(settings: Settings) -> bool:
    """Whether a run of a session is gone on with, which needs no message.

    Raises:
        UsageError: It is to be, and no session is named.
    """
    if settings.resume and settings.session_id is None:
        raise click.UsageError("--resume needs --session-db and --session: whose run goes on?")
    return settings.resume or (bool(settings.answers) and settings.session_id is not None)


def _once(opened: Callable[[], Conversation], settings: Settings, start: Any) -> int:
    """Send one message, or go on with a run; gives an exit code."""
    with asyncio.Runner() as runner:
        talk = opened()
        runner.run(talk.begin())
        asked = isinstance(start, Resume) and (settings.answers or talk.pending)
        if asked and not talk.pending:
            raise SessionError(
                f"nothing waits for an answer in session {talk.session_id!r}",
                help="its questions were answered; --resume alone goes on with a run that failed",
            )
        try:
            code = FINDINGS if asked else runner.run(talk.say(start))
            asks = talk.pending and _is_terminal() and not settings.as_json
            person = [Person(Lines())] if asks else []
            settled = settle(talk, runner.run, [Given(settings.answers), *person])
        except SystemExit as error:
            raise exit_error(error) from error
        except BaseException:  # Ctrl-C, too
            if talk.kept:
                note(f"[what was committed is kept; go on with --session {talk.session_id}]")
            raise
    if talk.pending:
        tell_what_waits(talk, settings, was_shown=bool(person))
    return code if settled is None else settled


def _is_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()


def _piped() -> str:
    if sys.stdin is None:
        raise click.UsageError("Give a MESSAGE, or pipe one in.")
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape").strip()
