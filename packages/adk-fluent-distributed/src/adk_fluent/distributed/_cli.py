"""``adk-fluent submit``, ``status``, ``answer``, ``cancel``, ``prune`` and ``worker``."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import time
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from adk_fluent.cli import FINDINGS, Target, load, note
from adk_fluent.distributed._database import Address
from adk_fluent.distributed._dbos import DbosEngine
from adk_fluent.distributed._deploy import files, write
from adk_fluent.distributed._errors import DistributedRunError, EngineError
from adk_fluent.distributed._page import page
from adk_fluent.distributed._processes import ProcessIsolation
from adk_fluent.distributed._runs import said, unknown_run
from adk_fluent.distributed._segments import split
from adk_fluent.distributed._watch import counted, table, watch
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence

    from adk_fluent.distributed._call import RunStatus
    from adk_fluent.distributed._summaries import RunSummary
    from adk_fluent.protocol import Answer, Pending

T = TypeVar("T")
_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_DIGITS: Final = 6  # of an age

_database = click.option(
    "--database",
    envvar="ADK_FLUENT_DATABASE",
    default="sqlite:///runs.sqlite",
    show_default=True,
    metavar="URL",
    help="Where runs are; also ADK_FLUENT_DATABASE.",
)
_json = click.option("--json", "as_json", is_flag=True, help="For programs.")


def _seconds(
    name: str, help: str, *, default: float | None = None, least: float | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """An option in seconds; without `least` they are above 0."""
    return click.option(
        name,
        type=click.FloatRange(0, min_open=True) if least is None else click.FloatRange(least),
        default=default,
        show_default=default is not None,
        metavar="SECONDS",
        help=help,
    )


@click.command()
@click.argument("target")
@click.argument("message")
@click.option("--run-id", metavar="ID", help="The run's id; a run with this id is not begun again.")
@click.option("--state", metavar="KEY=VALUE", multiple=True, help="Initial state; JSON or text.")
@click.option("--user", default="user", show_default=True, help="Whose run it is.")
@click.option(
    "--max-queued",
    type=click.IntRange(1),
    metavar="N",
    help="Refuse the run where N calls wait already.",
)
@_database
@_json
def submit(  # noqa: PLR0917  # click calls it by name
    target: str,
    message: str,
    run_id: str | None,
    state: tuple[str, ...],
    user: str,
    max_queued: int | None,
    database: str,
    as_json: bool,
) -> None:
    """Submit a run of TARGET on MESSAGE to workers, and print its id.

    TARGET is module:attribute or path.py:attribute.
    """
    pipeline = load(target)
    given = dict(_pair(each) for each in state)

    async def call(engine: DbosEngine) -> RunStatus:
        return await engine.submit(pipeline, message, run_id=run_id, state=given, user_id=user)

    stands = _in_engine(database, call, max_queued=max_queued)
    _show(stands, as_json=as_json)


@click.command()
@click.argument("run", required=False)
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a page of all runs and workers.",
)
@click.option("--watch", "live", is_flag=True, help="Go on showing it until Ctrl-C.")
@_seconds("--interval", "Between two looks of --watch.", default=1.0, least=0.1)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Show so many runs, those submitted last.",
)
@_database
@_json
def status(  # noqa: PLR0917  # click calls it by name
    run: str | None,
    html: Path | None,
    live: bool,
    interval: float,
    limit: int,
    database: str,
    as_json: bool,
) -> None:
    """Show how RUN stands: its answer, state, open questions and error. Without RUN, list runs.

    With --watch, RUN is shown until it is over or waits, all runs until Ctrl-C.
    """
    if html is not None and (run is not None or live or as_json):
        raise UsageError("--html is a page of all runs", help="leave out RUN, --watch and --json")
    if live and as_json:
        raise UsageError("--watch is for people", help="leave out --json, or --watch")
    if html is not None:
        _write_page(database, html, limit)
    elif live:
        with suppress(KeyboardInterrupt):  # that is how it ends
            _on_runs(database, lambda engine: _watched(engine, run, interval, limit))
    elif run is None:
        runs = _on_runs(database, lambda engine: engine.runs(limit=limit))
        data = [each.to_dict() for each in runs]
        told = [counted(runs), *(table(runs) if runs else ())]
        click.echo(json.dumps(data, ensure_ascii=False, indent=2) if as_json else "\n".join(told))
    else:
        _show(_on_runs(database, lambda engine: engine.status(run)), as_json=as_json)


def _write_page(database: str, file: Path, limit: int) -> None:
    """Write the page of runs.

    Raises:
        UsageError: The file cannot be written.
    """

    async def read(engine: DbosEngine) -> str:
        runs, workers = await engine.runs(limit=limit), await engine.workers()
        return page(engine.url, runs, workers, limit=limit, now=time.time())

    made = _on_runs(database, read)
    try:
        file.write_text(made, encoding="utf-8")
    except OSError as error:
        raise UsageError("the page cannot be written", found=f"{file}: {error.strerror}") from error
    note(f"[wrote {file}]")


async def _watched(engine: DbosEngine, run: str | None, seconds: float, limit: int) -> None:
    """Show one run until it is over, or all of them.

    Raises:
        DistributedRunError: There is no such run.
    """

    async def read() -> list[RunSummary]:
        found = await engine.runs(limit=limit, run_id=run)
        if run is not None and not found:
            raise unknown_run(run)
        return found

    def over(runs: Sequence[RunSummary]) -> bool:
        return run is not None and runs[0].status != "running"

    await watch(read, seconds=seconds, over=over)


@click.command()
@click.argument("run")
@click.argument("values", metavar="[NAME=]VALUE", nargs=-1)
@_database
@_json
def answer(run: str, values: tuple[str, ...], database: str, as_json: bool) -> None:
    """Answer what RUN waits on; without a value, resume a failed run.

    VALUE is JSON or text. NAME is the name or the id of the question; without it, questions are
    answered in the order of status.
    """

    async def call(engine: DbosEngine) -> RunStatus:
        stands = await engine.status(run)
        return await engine.answer(run, *_answers(stands, values))

    _show(_on_runs(database, call), as_json=as_json)


@click.command()
@click.argument("run")
@_database
@_json
def cancel(run: str, database: str, as_json: bool) -> None:
    """Cancel RUN: a step that is running is cancelled, and nothing after it runs."""
    _show(_on_runs(database, lambda engine: engine.cancel(run)), as_json=as_json)


@click.command()
@click.argument("age")
@click.option("--dry-run", is_flag=True, help="Show them, and remove nothing.")
@_database
@_json
def prune(age: str, dry_run: bool, database: str, as_json: bool) -> None:
    """Remove runs that ended longer than AGE ago, such as 30d, 12h, 90m or 45s.

    Those that are completed, rejected or cancelled go, with their transcripts, state and artifacts.
    Those that run, wait or failed stay.
    """
    ago = _age(age)
    runs = _on_runs(database, lambda engine: engine.prune(ago, dry_run=dry_run))
    data = [each.to_dict() for each in runs]
    what = "would be removed" if dry_run else "removed"
    told = [f"{what}: {counted(runs)}", *(table(runs) if dry_run and runs else ())]
    click.echo(json.dumps(data, ensure_ascii=False, indent=2) if as_json else "\n".join(told))


def _age(text: str) -> timedelta:
    """A time as people write it.

    Raises:
        UsageError: It is none.
    """
    number, unit = text[:-1], _UNITS.get(text[-1:])
    if unit is None or not (number.isascii() and number.isdecimal() and len(number) <= _DIGITS):
        raise UsageError(f"{text!r} is no age", help="such as 30d, 12h, 90m or 45s")
    return timedelta(**{unit: int(number)})


@click.command()
@click.argument("target")
@click.option("--segment", metavar="NAME", multiple=True, help="A segment to serve; default: all.")
@click.option("--concurrency", type=click.IntRange(1), default=4, show_default=True)
@_seconds(
    "--lease",
    "Without a sign of life for so long, the worker counts as dead on another machine.",
    default=30.0,
)
@_seconds(
    "--drain", "What runs may come to its end for so long after SIGTERM.", default=30.0, least=0.0
)
@click.option(
    "--memory-mb",
    type=click.IntRange(1),
    metavar="MIB",
    help="Memory of each process of a segment with isolation='process'; on Linux.",
)
@_seconds("--timeout", "What a call in such a process may take, after which the process is killed.")
@_database
def worker(  # noqa: PLR0917  # click calls it by name
    target: str,
    segment: tuple[str, ...],
    concurrency: int,
    lease: float,
    drain: float,
    memory_mb: int | None,
    timeout: float | None,
    database: str,
) -> None:
    """Run segments of submitted runs of TARGET, until interrupted or told to end by SIGTERM.

    A segment is named after the step it bounds; what stands outside of every boundary is named
    after the pipeline.
    """
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")  # of warnings and errors
    pipeline = load(target)

    async def call(engine: DbosEngine) -> None:
        plan = engine.register(pipeline)
        names = [plan[each].name for each in segment] or [*plan.names]
        told = f"[serving {', '.join(names)} of {engine.url}]"
        serving = asyncio.ensure_future(
            engine.serve(segment or None, ready=lambda: note(told), drain_seconds=drain)
        )

        def drained() -> None:
            note("[draining]")
            serving.cancel()

        with _on_termination(drained), suppress(asyncio.CancelledError):
            await serving

    isolation = ProcessIsolation(target, memory_mb, timeout)
    _in_engine(database, call, concurrency=concurrency, lease_seconds=lease, isolation=isolation)


@click.command()
@click.argument("target")
@click.option(
    "--output",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where the files go; what is there already is not written over.",
)
@click.option("--image", default="adk-fluent-worker:latest", show_default=True, help="The image.")
@click.option("--concurrency", type=click.IntRange(1), default=4, show_default=True)
@click.option("--drain", type=click.IntRange(0), default=30, show_default=True, metavar="SECONDS")
def deploy(target: str, output: Path, image: str, concurrency: int, drain: int) -> None:
    """Write a Dockerfile and a manifest for Kubernetes that run the workers of TARGET.

    Nothing is built or started.
    """
    made = files(
        split(load(target)),
        Target.parse(target),
        image=image,
        concurrency=concurrency,
        drain=drain,
    )
    try:
        for path in write(output, made):
            click.echo(path)
    except OSError as error:
        raise UsageError(
            "the files cannot be written",
            found=f"{type(error).__name__}: {error}",
            help="name a folder of its own: --output deploy",
        ) from error


@contextmanager
def _on_termination(call: Callable[[], object]) -> Generator[None]:
    """Meanwhile, SIGTERM calls this; where a loop cannot hear it, it ends the process as ever."""
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(signal.SIGTERM, call)
    except NotImplementedError:  # on Windows
        yield
        return
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


def _in_engine(
    url: str, call: Callable[[DbosEngine], Coroutine[Any, Any, Any]], **options: Any
) -> Any:
    async def main() -> Any:
        async with DbosEngine(url, **options) as engine:
            return await call(engine)

    return asyncio.run(main())


def _on_runs(url: str, call: Callable[[DbosEngine], Coroutine[Any, Any, T]]) -> T:
    """The same for runs that are there: a database that is missing is not made.

    Raises:
        EngineError: It is missing.
    """
    path = Address.of(url).path
    if path is not None and not path.exists():
        raise EngineError(
            "there is no such database of runs",
            found=str(path),
            help="name the one that runs are submitted to: --database sqlite:///FILE",
        )
    return _in_engine(url, call)


def _show(stands: RunStatus, *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(stands.to_dict(), ensure_ascii=False, indent=2))
    else:
        click.echo(f"{stands.run_id}: {stands.status} in segment {stands.segment}")
        for each in stands.pending:
            click.echo(f"  {each.name or each.id} asks: {each.message}")
        if stands.error is not None:
            for line in _explained(stands.error):
                click.echo(f"  {line}")
            if stands.status == "failed":
                click.echo(f"  adk-fluent answer {stands.run_id} goes on with it")
        if stands.answer and stands.is_over:
            click.echo(stands.answer)
    if stands.status == "failed":
        click.get_current_context().exit(FINDINGS)


def _explained(error: Mapping[str, str]) -> Iterator[str]:
    """An error, a line for each part of it."""
    yield said(error)
    if error["node"]:
        yield f"where: node {error['node']!r}" + (error["location"] and f" at {error['location']}")
    if error["help"]:
        yield f"help: {error['help']}"


def _answers(stands: RunStatus, values: tuple[str, ...]) -> list[Answer]:
    """Each value as the answer to its question.

    Raises:
        DistributedRunError: There is no such question left.
    """
    left, found = list(stands.pending), list[Any]()
    for value in values:
        name, equals, rest = value.partition("=")
        asked = next((each for each in left if equals and name in (each.name, each.id)), None)
        if left and equals and asked is None and name.isidentifier():
            raise DistributedRunError(
                f"run {stands.run_id!r} has no open question {name!r}",
                run_id=stands.run_id,
                found=", ".join(each.name or each.id for each in left),
                help=f"name one of these; a text with a `=` takes the name, too: NAME={value}",
            )
        asked, text = (asked, rest) if asked is not None else (_next(stands, left), value)
        left.remove(asked)
        found.append(asked.answer(_value(text)))
    return found


def _next(stands: RunStatus, left: list[Pending]) -> Pending:
    if not left:
        raise DistributedRunError(
            f"run {stands.run_id!r} has no open question for this answer",
            run_id=stands.run_id,
            found=f"it is {stands.status}, with {len(stands.pending)} open",
            help=f"adk-fluent status {stands.run_id} shows its questions",
        )
    return left[0]


def _pair(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise UsageError("--state takes KEY=VALUE", found=repr(text))
    return key, _value(value)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
