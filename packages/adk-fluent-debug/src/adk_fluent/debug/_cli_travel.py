"""``adk-fluent state`` and ``fork``: time travel in a database of sessions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from adk_fluent.cli import note, session_owners, session_service, state_option
from adk_fluent.debug._show import json_of
from adk_fluent.debug._time_travel import TimeTravel
from adk_fluent.errors import SessionError
from adk_fluent.extend import json_safe, run_sync

if TYPE_CHECKING:
    from collections.abc import Callable


class _Wanted(NamedTuple):
    """A session that is looked at, as `TimeTravel` takes one."""

    session_id: str
    app_name: str
    user_id: str


def _place(_: click.Context, __: click.Parameter, value: str) -> int | str:
    """An index or an id of an event."""
    return int(value) if value.lstrip("-").isdecimal() else value


def _session_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--app", "app_name", help="Its app, where several have one of that id."),
        click.option("--user", "user_id", help="Its user, where several have one of that id."),
        click.option(
            "--at",
            default="-1",
            show_default=True,
            metavar="EVENT",
            callback=_place,
            help="The event: its index in the session, from the end where negative, or its id.",
        ),
        click.argument("session"),
        click.argument("database", type=click.Path(path_type=Path, exists=True, dir_okay=False)),
    ):
        command = option(command)
    return command


def _find(
    database: Path, session: str, app_name: str | None, user_id: str | None
) -> tuple[TimeTravel, Any]:
    travel = TimeTravel(session_service(database))
    found = [
        (app, user)
        for app, user in session_owners(database, session)
        if app_name in {None, app} and user_id in {None, user}
    ]
    if len(found) != 1:
        whose = ", ".join(f"--app {app} --user {user}" for app, user in found)
        raise SessionError(
            f"there is no such session {session!r} in {database.name}"
            if not found
            else f"several sessions in {database.name} have the id {session!r}",
            found=whose or None,
            help="say whose it is: --app and --user" if found else "look at id, app and user",
        )
    return travel, _Wanted(session, *found[0])


@click.command()
@_session_options
def state(
    database: Path, session: str, at: int | str, user_id: str | None, app_name: str | None
) -> None:
    """Print the state of SESSION in DATABASE after an event, as JSON.

    DATABASE is the SQLite file of --session-db. Nothing is executed or changed.
    """
    travel, wanted = _find(database, session, app_name, user_id)
    found: Any = run_sync("state", lambda: travel.state_at(wanted, at))
    click.echo(json_of(json_safe(found)))


@click.command()
@_session_options
@state_option
@click.option("--id", "session_id", help="The id of the new session.")
def fork(  # noqa: PLR0917  # click calls it by name
    database: Path,
    session: str,
    at: int | str,
    user_id: str | None,
    app_name: str | None,
    state: dict[str, Any],
    session_id: str | None,
) -> None:
    """Make a session that holds the events of SESSION up to one of them, and print its id.

    DATABASE is the SQLite file of --session-db. Nothing is executed, and SESSION stays as it is;
    adk-fluent run --session ID goes on in the new one, and executes what comes then.
    """
    travel, wanted = _find(database, session, app_name, user_id)
    made: Any = run_sync(
        "fork", lambda: travel.fork(wanted, at, state or None, session_id=session_id)
    )
    click.echo(made.id)
    note(f"{len(made.events)} events are kept; to go on: --session {made.id}")
