"""What a person types, or what is piped in, message by message."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from adk_fluent.cli._transcript import note

if TYPE_CHECKING:
    from collections.abc import Generator

_PROMPT: Final = "> "
_MORE: Final = ". "
_QUOTES: Final = '"""'


@dataclass(frozen=True, slots=True)
class Typed:
    """What was typed at one prompt.

    Attributes:
        text: The text.
        is_command: Whether it begins with a slash, and stands in no quotes.
    """

    text: str
    is_command: bool


class Lines:
    """Standard input, message by message: a line, or several between triple quotes.

    At a terminal, lines can be edited and called back where Python has readline.

    Attributes:
        are_typed: Whether a person types them.
    """

    def __init__(self) -> None:
        self.are_typed: bool = sys.stdin is not None and sys.stdin.isatty()
        self._edited = self.are_typed and sys.stdout.isatty()
        self._editor = _editor() if self._edited else None
        self._source = None if self._edited else _source()
        self._begun = False  # something was typed that Ctrl-C would drop

    def read(self, prompt: str = _PROMPT) -> Typed | None:
        """The next message; None at the end of the input, or after Ctrl-C at an empty prompt."""
        if sys.stdin.closed:  # exit() of a step does that
            sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  # as long as we live
        while True:
            self._begun = False
            try:
                with self._looking_at_ctrl_c():
                    return self._message(prompt)
            except UnicodeDecodeError as error:
                note(f"[the message is not UTF-8: {error.reason}]", fg="red")
            except EOFError:
                if self.are_typed:
                    click.echo(err=True)
                return None
            except KeyboardInterrupt:
                if not self.are_typed:
                    raise
                click.echo(err=True)
                if not self._begun:
                    return None

    def _message(self, prompt: str) -> Typed:
        first = self._line(prompt)
        if not first.lstrip().startswith(_QUOTES):
            return Typed(first, first.startswith("/"))
        self._begun = True
        lines = [first.lstrip().removeprefix(_QUOTES)]
        while not lines[-1].rstrip().endswith(_QUOTES):
            try:
                lines.append(self._line(_MORE))
            except EOFError:
                return Typed("\n".join(lines), is_command=False)
        lines[-1] = lines[-1].rstrip().removesuffix(_QUOTES)
        return Typed("\n".join(lines), is_command=False)

    def _line(self, prompt: str) -> str:
        """A line without its end.

        Raises:
            EOFError: There is none.
        """
        if self._source is None:
            return input(prompt)
        if self.are_typed:  # what is printed goes elsewhere
            click.echo(prompt, err=True, nl=False)
        line = self._source.readline().decode("utf-8", "surrogateescape")
        if not line:
            raise EOFError
        return line.rstrip("\r\n")

    @contextmanager
    def _looking_at_ctrl_c(self) -> Generator[None]:
        """Note whether there is text in the line when Ctrl-C comes: afterwards it is gone."""
        if self._editor is None:
            yield
            return
        editor = self._editor

        def interrupt(*_: Any) -> None:
            self._begun = self._begun or bool(editor.get_line_buffer().strip())
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)


def _source() -> BinaryIO:
    """Standard input, safe from exit() of a step, which closes `sys.stdin` and what it has read."""
    if sys.stdin is None:
        raise click.UsageError("There is no standard input to talk through.")
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except OSError:  # it is no file of the system
        return sys.stdin.buffer


def _editor() -> Any:
    """What edits lines at a terminal, once it is imported; None where Python has none."""
    try:
        import readline
    except ImportError:  # Windows has none
        return None
    return readline
