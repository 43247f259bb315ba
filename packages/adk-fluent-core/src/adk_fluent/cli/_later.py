"""How to go on with a run that waits, once this program is over."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from adk_fluent.cli._questions import NOT_HERE, example, shown
from adk_fluent.cli._transcript import note
from adk_fluent.ir import ExecutionConfig

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adk_fluent.cli._conversation import Conversation, Settings
    from adk_fluent.protocol import Pending


def tell_what_waits(talk: Conversation, settings: Settings, *, was_shown: bool) -> None:
    """Say what a run waits on, and how to answer it.

    Args:
        talk: What the questions are asked in.
        settings: How it was run.
        was_shown: Whether the person has seen the questions.
    """
    if settings.as_json:
        record = {"session_id": talk.session_id, "pending": [asdict(each) for each in talk.pending]}
        click.echo(json.dumps(record, default=str))
        return
    for question in () if was_shown else talk.pending:
        note(shown(question), fg="yellow")
    answerable = [each for each in talk.pending if each.kind != "auth"]
    if not answerable:
        note(f"[{NOT_HERE.help}]")
    elif settings.session_db is None:
        again = " ".join(_options(answerable, by_name=True))
        note(
            "[nothing keeps this session: to answer later give --session-db FILE, to answer at "
            f"once {again}]"
        )
    else:
        note(f"[answer with: {command(settings, talk.session_id, _options(answerable))}]")


def command(settings: Settings, session_id: str, rest: Iterable[str]) -> str:
    """The command line that goes on with a session."""
    given: dict[str, Any] = {
        "--session-db": settings.session_db,
        "--session": session_id,
        "--app": None if settings.app_name == ExecutionConfig().app_name else settings.app_name,
        "--user": None if settings.user_id == "user" else settings.user_id,
        "--model": settings.model,
        "--max-llm-calls": settings.max_llm_calls,
        "--timeout": settings.timeout,
    }
    options = [part for name, value in given.items() if value is not None for part in (name, value)]
    return _quoted(["adk-fluent", "run", settings.target, *map(str, options), *rest])


def _options(questions: Sequence[Pending], *, by_name: bool = False) -> list[str]:
    options: list[str] = []
    for each in questions:
        asked = each.name if by_name else each.id
        # a question of a remote agent has no name
        options += ["--answer", f"{asked}={example(each)}" if asked else example(each)]
    return options


def _quoted(words: list[str]) -> str:
    return subprocess.list2cmdline(words) if os.name == "nt" else shlex.join(words)
