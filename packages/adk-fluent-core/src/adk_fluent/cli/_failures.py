"""From an exception to what a person reads and the code a script sees."""

from __future__ import annotations

import sqlite3
from typing import Final

import click

from adk_fluent.errors import (
    AdkFluentError,
    BuildError,
    ContractError,
    CredentialsError,
    ExpectationError,
    LayerError,
    MissingLayerError,
    RunError,
    SessionStoreError,
    unwrap,
)
from adk_fluent.protocol import classify

OK: Final = 0
FINDINGS: Final = 1
USAGE: Final = 2
INFRASTRUCTURE: Final = 3
INTERRUPTED: Final = 130

_CODES: Final[tuple[tuple[type[BaseException], int], ...]] = (
    (ContractError, FINDINGS),
    (ExpectationError, FINDINGS),
    (BuildError, USAGE),
    (CredentialsError, INFRASTRUCTURE),
    (SessionStoreError, INFRASTRUCTURE),
    (MissingLayerError, INFRASTRUCTURE),
    (LayerError, INFRASTRUCTURE),
    (RunError, FINDINGS),
)


def report(error: BaseException) -> int:
    """Tell the person what went wrong, and return the exit code."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.ClickException):
        error.show()
        return USAGE
    if isinstance(error, click.Abort | KeyboardInterrupt):
        click.echo("interrupted; what was committed to the session stays there", err=True)
        return INTERRUPTED
    error = translated(unwrap(error))
    click.echo(f"{click.style('error:', fg='red', bold=True)} {text_of(error)}", err=True)
    return exit_code(error)


def exit_code(error: BaseException) -> int:
    """The exit code an error stands for."""
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code
    retriable = classify(error) == "retriable" or hasattr(error, "status")
    return INFRASTRUCTURE if retriable or isinstance(error, OSError) else FINDINGS


def text_of(error: BaseException) -> str:
    """An error with the notes that say where it happened."""
    what = str(error) if isinstance(error, AdkFluentError) else f"{type(error).__name__}: {error}"
    notes: list[str] = getattr(error, "__notes__", [])
    hint = [] if isinstance(error, AdkFluentError) else ["--debug shows the traceback"]
    return "\n  ".join([what, *notes, *hint])


def translated(error: BaseException) -> BaseException:
    """Errors of what we stand on, as errors that say what to do."""
    if isinstance(error, sqlite3.DatabaseError) or isinstance(
        error.__cause__, sqlite3.DatabaseError
    ):
        cause = error if isinstance(error, sqlite3.DatabaseError) else error.__cause__
        return SessionStoreError(
            "the session database cannot be used",
            found=str(cause),
            help="name another file with --session-db, or restore this one; it was not changed",
        )
    return error
