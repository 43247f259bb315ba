"""A run as a person follows it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import click

from adk_fluent.cli._status import Status
from adk_fluent.cli._text import plain, short

if TYPE_CHECKING:
    from adk_fluent.protocol import AgentEvent, DiscardedAttempt, ToolCallInfo

#: Who speaks: author, position in the pipeline, attempt.
_Speaker = tuple[str, str | None, str | None]
#: Of names of agents, in the order in which they first speak; errors are red.
_COLORS: Final = ("cyan", "green", "magenta", "yellow", "blue", "bright_cyan", "bright_green")
#: Where an event says something to the user that is not part of the answer.
_NOTICE: Final = "adk_fluent_notice"
#: What events are for whose text no agent says.
_NOTICES: Final = ("refused", "held")
#: Characters of the reason for which something was left out.
_WHY: Final = 200


class Transcript:
    """What agents say goes to standard output, what else happens to standard error.

    Of agents that stream at the same time one has the floor; the others are heard after it.

    Args:
        status: Shows what is at work while nobody speaks; None is nothing.
    """

    def __init__(self, status: Status | None = None) -> None:
        self._status = status or Status(on=False)
        self._colors: dict[str, str] = {}  # by author
        self._floor: _Speaker | None = None  # behind whose text the cursor stands
        self._heard: set[_Speaker] = set()  # of whose streamed text something was shown
        self._unheard: dict[_Speaker, str] = {}  # streamed text that was not shown yet
        self._waiting: list[tuple[_Speaker, str]] = []  # whole texts that were not shown yet

    def begin(self) -> None:
        """Show that a run has begun."""
        self._status.tell("")
        self._status.show()

    def show(self, event: AgentEvent) -> None:
        """Show one event."""
        speaker = (event.author, event.path, event.attempt)
        if event.is_partial:
            self._unheard[speaker] = self._unheard.get(speaker, "") + (event.content or "")
        elif event.content and event.metadata.get("why") in _NOTICES:
            self._note(f"[{event.content}]", fg="yellow")
        elif event.content:
            self._complete(speaker, event.content)
        self._give_floor()
        for call in event.tool_calls if not event.is_partial else ():
            self._note(f"[{event.author} calls {_call(call)}]")
        if event.error is not None:
            self._note(f"[{event.author} reports {event.error}]", fg="red")
        if wrong := event.metadata.get("retried"):
            self._note(f"[{event.author} is asked again: {wrong}]", fg="yellow")
        notice = None if event.is_partial else event.custom_metadata.get(_NOTICE)
        if notice:
            self._note(f"[{event.author}: {notice}]", fg="yellow")
        if event.discarded:
            self._note(f"[{event.node}: an attempt failed and was undone]")
        if self._floor is None:
            self._status.show()

    def left_out(self, attempt: DiscardedAttempt) -> None:
        """Show what a fallback or a map went on without, and why."""
        where = f", {attempt.place.splitlines()[-1]}" if attempt.place else ""
        why = short(f"{attempt.error.code}: {attempt.error.message}", _WHY)
        self._note(f"[{attempt.fallback} went on without {attempt.step}: {why}{where}]", "yellow")

    def end(self) -> None:
        """Show what was kept back, and finish the line."""
        self._status.hide()
        self._finish_line()
        for speaker, text in [*self._waiting, *self._unheard.items()]:
            self._say(speaker, text)
            self._finish_line()
        self._waiting, self._unheard, self._heard = [], {}, set()

    def _complete(self, speaker: _Speaker, content: str) -> None:
        rest = self._unheard.pop(speaker, "")
        if speaker in self._heard:
            self._heard.remove(speaker)
            content = rest
        if self._floor not in {None, speaker}:
            self._waiting.append((speaker, content))
            return
        self._say(speaker, content)
        self._finish_line()

    def _give_floor(self) -> None:
        """Let the one who has the floor go on, or those who waited speak."""
        if self._floor is None:
            for speaker, text in self._waiting:
                self._say(speaker, text)
                self._finish_line()
            self._waiting = []
        speaker = self._floor or next(iter(self._unheard), None)
        if speaker in self._unheard:
            self._heard.add(speaker)
            self._say(speaker, self._unheard.pop(speaker))

    def _say(self, speaker: _Speaker, text: str) -> None:
        if not text:
            return
        self._status.hide()
        if self._floor != speaker:
            click.echo(f"{self._name(speaker[0])}: ", nl=False)
            self._floor = speaker
        click.echo(plain(text), nl=False)

    def _finish_line(self) -> None:
        if self._floor is not None:
            click.echo()
            self._floor = None

    def _name(self, author: str) -> str:
        color = self._colors.setdefault(author, _COLORS[len(self._colors) % len(_COLORS)])
        return click.style(plain(author), fg=color, bold=True)

    def _note(self, text: str, fg: str | None = None) -> None:
        self._status.hide()
        self._finish_line()
        note(text, fg)


def note(text: str, fg: str | None = None) -> None:
    """Print something that is not part of the answer, on standard error.

    Args:
        text: The text; what a terminal would obey is taken out.
        fg: Its colour, as click calls it; None is dim.
    """
    click.secho(plain(text), err=True, dim=fg is None, fg=fg)


def _call(call: ToolCallInfo) -> str:
    args = (f"{k}={json.dumps(v, default=str, ensure_ascii=False)}" for k, v in call.args.items())
    return f"{call.tool_name}({short(', '.join(args), 60)})"
