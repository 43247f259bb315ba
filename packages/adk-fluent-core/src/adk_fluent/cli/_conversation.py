"""Messages to a pipeline, all of them in one session, and what becomes of them on the screen."""

from __future__ import annotations

import json
import sys
import uuid
from contextlib import aclosing, contextmanager, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from adk_fluent.cli._failures import FINDINGS, OK
from adk_fluent.cli._sessions import session_owners, session_service
from adk_fluent.cli._status import Status, is_interactive
from adk_fluent.cli._transcript import Transcript, note
from adk_fluent.errors import RunError
from adk_fluent.ir import AgentNode, ExecutionConfig, walk
from adk_fluent.protocol import RunResult, collect_discarded, resume_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from adk_fluent.builders import Builder
    from adk_fluent.protocol import AgentEvent, Pending, RunOption


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How messages are run.

    Attributes:
        target: The pipeline, as the person names it.
        model: Model of agents that name none.
        app_name: The app that sessions belong to.
        user_id: Whose sessions they are.
        session_db: The SQLite file that keeps them; None is memory.
        session_id: The session to go on with, or the name of a new one; None makes one up.
        state: What a new session's state starts with.
        max_llm_calls: Model calls of one run at most; None is the default.
        timeout: Seconds of one run at most.
        stream: Whether text is shown as it comes; None is on a terminal.
        as_json: Whether each event is printed as a line of JSON.
        answers: What is answered when something is asked.
        resume: Whether to go on with the last run of the session.
        options: What options of layers add.
    """

    target: str
    model: str | None
    app_name: str
    user_id: str
    session_db: Path | None
    session_id: str | None
    state: dict[str, Any]
    max_llm_calls: int | None
    timeout: float | None
    stream: bool | None
    as_json: bool
    answers: tuple[str, ...] = ()
    resume: bool = False
    options: tuple[RunOption, ...] = ()

    def config(self) -> ExecutionConfig:
        """The same as a configuration of runs."""
        stream = self.stream
        if stream is None:
            stream = sys.stdout.isatty() and not self.as_json
        return ExecutionConfig(
            app_name=self.app_name,
            default_model=self.model,
            streaming_mode="sse" if stream else "none",
            max_llm_calls=self.max_llm_calls or ExecutionConfig().max_llm_calls,
            timeout_seconds=self.timeout,
            resumable=self.session_db is not None,
            middlewares=tuple(made for each in self.options for made in each.middlewares),
        )


class Conversation:
    """A pipeline, and the session in which it is spoken to.

    Args:
        pipeline: Who answers.
        settings: How.

    Attributes:
        session_id: The session.
        kept: Whether it outlives this process.
        pending: The questions that its run waits on.
    """

    def __init__(self, pipeline: Builder, settings: Settings) -> None:
        self.kept = settings.session_db is not None
        self.session_id = settings.session_id or uuid.uuid4().hex
        self.pending: list[Pending] = []
        self._settings = settings
        ir = pipeline.to_ir()
        self._has_agents = any(isinstance(node, AgentNode) for node in walk(ir))
        status = Status(on=is_interactive(sys.stderr) and not settings.as_json)
        self._transcript = Transcript(status)
        with status.shown("getting ready"):  # ADK is slow to import
            database = settings.session_db
            service = None if database is None else session_service(database)
            self._backend = _backend(status, service)
            self._compiled = self._backend.compile(ir, settings.config())

    async def begin(self) -> None:
        """Say which session it is, and look whether it is there.

        Raises:
            UsageError: It is somebody else's, or it is there and state for a new one is given.
        """
        settings = self._settings
        if settings.session_db is None:
            return
        if settings.session_id is None:
            note(f"[session {self.session_id}]")
            return
        session = await self._session()
        self.pending = self._open(session)
        if session is None:
            _refuse_foreign(settings.session_db, settings)
            note(f"[session {self.session_id} is new]")
        elif settings.state:
            raise click.UsageError(
                f"Session {self.session_id!r} has begun: --state is for new sessions."
            )

    def begin_anew(self) -> None:
        """Go on in a new session, which starts as the first one did."""
        self.session_id, self.pending = uuid.uuid4().hex, []
        note(f"[session {self.session_id}]" if self.kept else "[a new session]")

    async def say(self, message: Any) -> int:
        """Run the pipeline on a message or go on with a run, and show what comes.

        Args:
            message: The message, or answers to `pending`, or `Resume`.

        Returns:
            An exit code.
        """
        settings, seen = self._settings, RunResult()
        events = self._backend.stream(
            self._compiled,
            message,
            user_id=settings.user_id,
            session_id=self.session_id,
            state=settings.state,
        )
        with _json_lines() if settings.as_json else self._followed() as show:
            with collect_discarded() as discarded:
                async with aclosing(events):
                    async for event in events:
                        show(event)
                        if not event.is_partial:
                            seen.append(event)
            for attempt in () if settings.as_json else discarded:
                self._transcript.left_out(attempt)
        self.pending = self._open(await self._session())
        if self.pending or seen.status not in ("completed", "escalated"):
            return FINDINGS
        goes_on = resume_of(message) is not None
        if self._has_agents and not goes_on and not any(event.content for event in seen):
            note("[nobody answered]")
            return FINDINGS
        return OK

    async def state(self) -> dict[str, Any]:
        """What the state of the session holds now."""
        from adk_fluent.backends.adk._session._stamps import is_journal_key  # ADK is slow to import

        session = await self._session()
        held = self._settings.state if session is None else session.state
        return {key: value for key, value in held.items() if not is_journal_key(key)}

    async def _session(self) -> Any:
        return await self._backend.session_service.get_session(
            app_name=self._settings.app_name,
            user_id=self._settings.user_id,
            session_id=self.session_id,
        )

    def _open(self, session: Any) -> list[Pending]:
        from adk_fluent.cli._open_adk import open_questions  # ADK is slow to import

        return open_questions(self._compiled, session)

    @contextmanager
    def _followed(self) -> Generator[Callable[[AgentEvent], None]]:
        """Events as a person follows them."""
        self._transcript.begin()
        try:
            yield self._transcript.show
        finally:
            self._transcript.end()


@contextmanager
def _json_lines() -> Generator[Callable[[AgentEvent], None]]:
    """Events as lines of JSON; what tools print goes elsewhere, as it is none."""
    out = sys.stdout
    ascii_only = out.encoding.lower().replace("-", "") != "utf8"
    with redirect_stdout(sys.stderr):
        yield lambda event: click.echo(
            json.dumps(event.to_dict(), ensure_ascii=ascii_only, default=str), file=out
        )


def _backend(status: Status, service: Any) -> Any:
    """ADK; it says what is at work where somebody looks."""
    from adk_fluent.backends.adk import ADKBackend
    from adk_fluent.cli._watch_adk import WatchedBackend

    return WatchedBackend(status.tell, service) if status.on else ADKBackend(service)


def exit_error(error: SystemExit) -> RunError:
    """The error about a step that would have ended this program."""
    return RunError(
        f"a step of the pipeline called exit({error.code!r})",
        help="raise an error instead: exit ends the whole program",
    )


def _refuse_foreign(path: Path, settings: Settings) -> None:
    """A session of that id is there, but for another user or app: that is hardly what was meant.

    Raises:
        UsageError: It is so.
    """
    for app, user in session_owners(path, settings.session_id or ""):
        options = [f"--app {app}"] if app != settings.app_name else []
        options += [f"--user {user}"] if user != settings.user_id else []
        raise click.UsageError(
            f"Session {settings.session_id!r} of {path} belongs to user {user!r} in app {app!r}, "
            f"and not to user {settings.user_id!r} in app {settings.app_name!r}. Go on with it by "
            f"{' '.join(options)}, or choose another id for a new one."
        )
