"""From an exception to what a person reads and the code a script sees."""

from __future__ import annotations

import sqlite3
import sys
import traceback
from dataclasses import dataclass
from typing import Final

import click

from adk_fluent.cli._color import wanted
from adk_fluent.cli._gemini import explained, raised_in
from adk_fluent.cli._keys import without_keys
from adk_fluent.cli._text import plain
from adk_fluent.errors import (
    AdkFluentError,
    BuildError,
    ContractError,
    CredentialsError,
    ExpectationError,
    LayerError,
    MissingLayerError,
    RemoteError,
    RunError,
    SessionStoreError,
    unwrap,
)
from adk_fluent.protocol import classify

#: Exit code: all is well.
OK: Final = 0
#: Exit code: there are findings, a gate failed, or a step of the pipeline did.
FINDINGS: Final = 1
#: Exit code: the command was called with something that it does not take.
USAGE: Final = 2
#: Exit code: a model, a key, a session database, the network or a layer is out of order.
INFRASTRUCTURE: Final = 3
#: Exit code: interrupted by the person.
INTERRUPTED: Final = 130

_CODES: Final[tuple[tuple[type[BaseException], int], ...]] = (
    (ContractError, FINDINGS),
    (ExpectationError, FINDINGS),
    (BuildError, USAGE),
    (CredentialsError, INFRASTRUCTURE),
    (SessionStoreError, INFRASTRUCTURE),
    (RemoteError, INFRASTRUCTURE),
    (MissingLayerError, INFRASTRUCTURE),
    (LayerError, INFRASTRUCTURE),
    (RunError, FINDINGS),
)
#: What errors of clients of models and other services have, and hardly any others.
_OF_A_SERVICE: Final = ("status", "status_code", "response")
_SESSIONS: Final = "google.adk.sessions"


@dataclass(slots=True)
class Call:
    """One call of the command line; a command finds it with ``ctx.find_object(Call)``.

    Attributes:
        debug: Whether tracebacks are shown.
    """

    debug: bool = False

    def report(self, error: BaseException) -> int:
        """Tell the person what went wrong, and return the exit code.

        Args:
            error: What was raised.
        """
        traced = self.debug and not isinstance(error, click.ClickException)
        if traced:
            sys.stderr.write(without_keys("".join(traceback.format_exception(error))))
        return report(error, traced=traced)


def report(error: BaseException, *, traced: bool = False) -> int:
    """Tell the person what went wrong, and return the exit code; `traced`: with the traceback."""
    if isinstance(error, click.Abort):
        error = error.__cause__ or error  # click makes one of Ctrl-C and of an end of input
    if isinstance(error, click.ClickException):
        error.show()
        return USAGE
    if isinstance(error, click.Abort | KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    error = translated(unwrap(error))
    head = click.style(f"error{_code(error)}:", fg="red", bold=True)
    click.echo(f"{head} {text_of(error, traced=traced)}", err=True, color=wanted())
    return exit_code(error)


def _code(error: BaseException) -> str:
    """What the page of errors explains it under."""
    if isinstance(error, AdkFluentError) and error.code != AdkFluentError.code:
        return f"[{error.code}]"
    return ""


def exit_code(error: BaseException) -> int:
    """The exit code an error stands for."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    of_a_service = any(getattr(error, name, None) is not None for name in _OF_A_SERVICE)
    if of_a_service or isinstance(error, OSError) or classify(error) == "retriable":
        return INFRASTRUCTURE
    return FINDINGS


def text_of(error: BaseException, *, traced: bool = False) -> str:
    """An error with the notes that say where it happened, and without keys."""
    ours = isinstance(error, AdkFluentError)
    what = str(error) if ours else f"{type(error).__name__}: {error}"
    notes: list[str] = getattr(error, "__notes__", [])
    hint = [] if ours or traced else ["--debug shows the traceback"]
    return without_keys(plain("\n  ".join([what, *notes, *hint])))


def translated(error: BaseException) -> BaseException:
    """Errors of what we stand on, as errors that say what to do."""
    better = explained(error)
    if better is None and isinstance(error, sqlite3.Error) and raised_in(error, _SESSIONS):
        better = SessionStoreError(
            "the session database cannot be used",
            found=f"{type(error).__name__}: {error}",
            help="free space or restore the file; what was committed before is still there",
        )
    if better is None:
        return error
    for note in getattr(error, "__notes__", ()):  # where it happened
        better.add_note(note.partition("\n  help:")[0] if getattr(better, "help", None) else note)
    return better
