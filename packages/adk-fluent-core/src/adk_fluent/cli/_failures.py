"""From an exception to what a person reads and the code a script sees."""

from __future__ import annotations

import sqlite3
import traceback
from typing import Final

import click

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
    (RemoteError, INFRASTRUCTURE),
    (MissingLayerError, INFRASTRUCTURE),
    (LayerError, INFRASTRUCTURE),
    (RunError, FINDINGS),
)
#: What errors of clients of models and other services have, and hardly any others.
_OF_A_SERVICE: Final = ("status", "status_code", "response")


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
    click.echo(
        f"{click.style('error:', fg='red', bold=True)} {text_of(error, traced=traced)}", err=True
    )
    return exit_code(error)


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
    if isinstance(error, sqlite3.Error) and _raised_in(error, "google.adk.sessions"):
        return SessionStoreError(
            "the session database cannot be used",
            found=f"{type(error).__name__}: {error}",
            help="free space or restore the file; what was committed before is still there",
        )
    if isinstance(error, ValueError) and _raised_in(error, "google.genai._api_client"):
        return CredentialsError(
            "the Gemini client has no credentials",
            found=str(error),
            help="set GOOGLE_API_KEY, or give the agent a mock(...)",
        )
    return error


def _raised_in(error: BaseException, package: str) -> bool:
    """Whether a module of the package is on the way from where it was raised to here."""
    frames = traceback.walk_tb(error.__traceback__)
    names = (str(frame.f_globals.get("__name__")) for frame, _ in frames)
    return any(f"{name}.".startswith(f"{package}.") for name in names)
