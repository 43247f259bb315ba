"""A run as a person follows it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from adk_fluent.cli._text import plain, short

if TYPE_CHECKING:
    from adk_fluent.protocol import AgentEvent, ToolCallInfo

_Key = tuple[str, str | None]


class Transcript:
    """What agents say goes to standard output, what else happens to standard error."""

    def __init__(self) -> None:
        self._speaker: _Key | None = None  # whose text the cursor stands behind
        self._streamed: set[_Key] = set()  # whose text came in parts, and is yet to come as a whole

    def show(self, event: AgentEvent) -> None:
        """Show one event."""
        key = (event.author, event.path)
        if event.content:
            self._say(key, event)
        for call in event.tool_calls if not event.is_partial else ():
            self._note(f"[{event.author} calls {_call(call)}]")
        if event.error is not None:
            self._note(f"[{event.author} reports {event.error}]", fg="red")
        if event.discarded:
            self._note(f"[{event.node}: an attempt failed and was undone]")

    def end(self) -> None:
        """Finish the line that is being written."""
        if self._speaker is not None:
            click.echo()
            self._speaker = None

    def _note(self, text: str, fg: str | None = None) -> None:
        self.end()
        note(text, fg)

    def _say(self, key: _Key, event: AgentEvent) -> None:
        if event.is_partial:
            self._streamed.add(key)
        elif key in self._streamed:
            self._streamed.remove(key)
            self.end()
            return
        if self._speaker != key:
            self.end()
            click.echo(f"{click.style(event.author, bold=True)}: ", nl=False)
            self._speaker = key
        click.echo(plain(event.content or ""), nl=False)
        if not event.is_partial:
            self.end()


def note(text: str, fg: str | None = None) -> None:
    """Say something that is not part of the answer."""
    click.secho(plain(text), err=True, dim=fg is None, fg=fg)


def _call(call: ToolCallInfo) -> str:
    args = (f"{k}={json.dumps(v, default=str, ensure_ascii=False)}" for k, v in call.args.items())
    return f"{call.tool_name}({short(', '.join(args), 60)})"
