"""A conversation with a pipeline at a terminal."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

import click

from adk_fluent.cli._answers import Given, Person, settle
from adk_fluent.cli._conversation import exit_error
from adk_fluent.cli._failures import Call
from adk_fluent.cli._later import tell_what_waits
from adk_fluent.cli._lines import Lines
from adk_fluent.cli._parts import FileError, attached, message_of
from adk_fluent.cli._text import why_no_message
from adk_fluent.cli._transcript import note
from adk_fluent.errors import nearest_name
from adk_fluent.protocol import Resume

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from adk_fluent.cli._conversation import Conversation, Settings
    from adk_fluent.cli._parts import Attachment

_HELP: Final = '''\
/file [TYPE:]PATH  send a file with the next message; without a path, take back those that wait
/state             show the state of the session
/answer            answer questions that stand open
/new               go on in a new session
/help              show this
/quit              end the conversation; so do Ctrl-D, and Ctrl-C at an empty prompt
"""                begins and ends a message of several lines
Ctrl-C             stops the run, and not the conversation'''
_ALIASES: Final = {"/exit": "/quit", "/?": "/help"}


def converse(
    opened: Callable[[], Conversation],
    settings: Settings,
    text: str | None,
    files: list[Attachment],
) -> None:
    """Talk until the person ends it.

    Args:
        opened: Begins the conversation; what is wrong with the pipeline is raised here.
        settings: How messages are run.
        text: The first message; None asks for it.
        files: What goes with the first message.
    """
    call = click.get_current_context().find_object(Call) or Call()
    with asyncio.Runner() as runner:  # one loop: clients of models live and die with theirs
        talk = opened()
        runner.run(talk.begin())
        _Repl(talk, settings, runner, call, files).run(text)


class _Repl:
    def __init__(
        self,
        talk: Conversation,
        settings: Settings,
        runner: asyncio.Runner,
        call: Call,
        files: list[Attachment],
    ) -> None:
        self._talk = talk
        self._settings = settings
        self._runner = runner
        self._call = call
        self._files = files
        self._lines = Lines()
        self._given = Given(settings.answers)
        self._person = Person(self._lines)
        self._commands: dict[str, Callable[[str], bool]] = {
            "/answer": self._answer,
            "/file": self._file,
            "/help": self._help,
            "/new": self._new,
            "/quit": self._quit,
            "/state": self._state,
        }

    def run(self, text: str | None) -> None:
        """Read and answer until the end."""
        if self._lines.are_typed:
            note("[/help shows what can be done; Ctrl-D ends it]")
        if text is not None:
            self._say(text)
        else:
            self._show_files()
            self._begin()
        going = True
        while going and not self._person.has_left:
            typed = self._lines.read()
            if typed is None:
                break
            if typed.is_command:
                going = self._obey(typed.text)
            elif typed.text.strip():
                self._say(typed.text)
        if self._talk.pending:
            tell_what_waits(self._talk, self._settings, was_shown=True)
        elif self._talk.kept:
            note(f"[go on with --session {self._talk.session_id}]")

    def _begin(self) -> None:
        """Go on with what the session waits for, or with its run, as far as that is wished."""
        if self._settings.resume and not self._talk.pending:
            self._wait_for(self._talk.say(Resume()))
        self._settle()

    def _settle(self) -> None:
        settle(self._talk, self._wait_for, (self._given, self._person))
        if self._talk.pending and not self._person.has_left:
            note("[/answer answers what is open]")

    def _say(self, text: str) -> None:
        if (why := why_no_message(text)) is not None and (text.strip() or not self._files):
            note(f"[the message {why}]", fg="red")
            return
        files, self._files = self._files, []
        self._wait_for(self._talk.say(message_of(text.strip(), files)))
        self._settle()

    def _wait_for(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Do something to its end, or until Ctrl-C; gives None when it came to nothing.

        Raises:
            KeyboardInterrupt: Nobody types, or there was another Ctrl-C while the first one was
                obeyed.
        """
        task: asyncio.Task[Any] | None = None

        async def watched() -> Any:
            nonlocal task
            task = asyncio.current_task()
            return await work

        try:
            return self._runner.run(watched())
        except KeyboardInterrupt:
            if not self._lines.are_typed or not _has_stopped(task):
                raise
            note("[stopped; what was committed before is kept]")
        except SystemExit as error:
            self._call.report(exit_error(error))
        except Exception as error:  # noqa: BLE001  # each has a message, and the next may work
            self._call.report(error)
        return None

    # --- commands ------------------------------------------------------------------------------

    def _obey(self, line: str) -> bool:
        """Do what a command says; gives whether the conversation goes on."""
        name, _, rest = line.strip().partition(" ")
        name = _ALIASES.get(name, name)
        if name in self._commands:
            return self._commands[name](rest.strip())
        near = nearest_name(name, self._commands)
        hint = f"did you mean {near}?" if near else f"There are {', '.join(self._commands)}."
        note(
            f"[there is no command {name}: {hint} A message that begins with a slash takes a blank "
            "before it]"
        )
        return True

    def _answer(self, rest: str) -> bool:
        if not self._talk.pending:
            note("[nothing waits for an answer]")
        self._person.come_back()
        self._settle()
        return True

    def _file(self, given: str) -> bool:
        if not given:
            taken, self._files = self._files, []
            names = ", ".join(each.name for each in taken)
            note(f"[taken back: {names}]" if taken else "[no file waits; give the path of one]")
            return True
        try:
            self._files = [*self._files, attached(_unquoted(given), self._files)]
        except FileError as error:
            note(f"[{error}]", fg="red")
        else:
            self._show_files()
        return True

    def _show_files(self) -> None:
        if self._files:
            note(f"[with the next message: {'; '.join(map(str, self._files))}]")

    def _help(self, rest: str) -> bool:
        click.echo(_HELP, err=True)
        return True

    def _new(self, rest: str) -> bool:
        self._talk.begin_anew()
        return True

    def _quit(self, rest: str) -> bool:
        return False

    def _state(self, rest: str) -> bool:
        state = self._wait_for(self._talk.state())
        if state is not None:
            shown = json.dumps(state, indent=2, ensure_ascii=False, default=str)
            note(shown if state else "[the state is empty]")
        return True


def _has_stopped(task: asyncio.Task[Any] | None) -> bool:
    """Whether a run that Ctrl-C has cancelled is over, and was not torn off by a second one."""
    if task is None or not task.done():
        return False
    return task.cancelled() or task.exception() is None


def _unquoted(path: str) -> str:
    """A path without the quotes that a terminal puts around one that is dropped on it."""
    quoted = len(path) > 1 and path[0] == path[-1] and path[0] in "'\""
    return path[1:-1] if quoted else path
