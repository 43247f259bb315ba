"""The commands of recordings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import click

from adk_fluent.cli import FINDINGS, OK, load, note
from adk_fluent.debug._diff import diff_events
from adk_fluent.debug._errors import PipelineMismatchError, ReplayMismatchError
from adk_fluent.debug._file import check_replaced
from adk_fluent.debug._recorded_run import counted
from adk_fluent.debug._recorder import Recorder
from adk_fluent.debug._recording import Recording
from adk_fluent.debug._replay_report import replay as replay_recording
from adk_fluent.debug._show import text_of

_FILE = click.Path(path_type=Path)
_UNIFIED = click.option("--unified", is_flag=True, help="Print a unified diff.")
_JSON = click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")


def _end(ctx: click.Context, text: str, data: Any, *, as_json: bool, ok: bool) -> None:
    click.echo(json.dumps(data) if as_json else text)
    ctx.exit(OK if ok else FINDINGS)


@click.command()
@click.argument("file", type=_FILE)
@click.argument("target")
@click.option(
    "--on-mismatch",
    type=click.Choice(["error", "skip", "live"]),
    default="error",
    show_default=True,
    help="What a call is answered that was not recorded so.",
)
@click.option("--live-tools", is_flag=True, help="Run the tools, instead of answering for them.")
@_UNIFIED
@_JSON
@click.pass_context
def replay(
    ctx: click.Context,
    file: Path,
    target: str,
    on_mismatch: Any,
    *,
    live_tools: bool,
    unified: bool,
    as_json: bool,
) -> None:
    """Replay recording FILE on pipeline TARGET, and print what differs.

    TARGET is module:attribute or path.py:attribute. No model is asked and no tool runs. Exits with
    1 if events, state or errors differ, or recorded calls were not asked for.
    """
    recording = Recording.load(file)
    tools = "live" if live_tools else "replay"
    try:
        report = replay_recording(load(target), recording, on_mismatch=on_mismatch, tools=tools)
    except (ReplayMismatchError, PipelineMismatchError) as error:
        data: Any = {"ok": False, "error": error.what, "found": error.found}
        return _end(ctx, f"error[{error.code}]: {error}", data, as_json=as_json, ok=False)
    data = {
        "ok": report.ok,
        "events": len(report.events),
        "difference": None if report.diff.first is None else str(report.diff.first),
        "problems": report.problems,
        "unused": len(report.unused),
    }
    text = f"{counted(len(recording.runs), 'run')} replayed: {report.summary}"
    more = f"\n{report.diff.unified()}" if unified and report.diff else ""
    return _end(ctx, text + more, data, as_json=as_json, ok=report.ok)


def _run_command(ctx: click.Context) -> click.Command:
    """``adk-fluent run``."""
    found = cast("click.Group", ctx.find_root().command).get_command(ctx, "run")
    assert found is not None  # noqa: S101  # core has it
    return found


class _LikeRun(click.Command):
    """A command that takes what ``adk-fluent run`` takes, too."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        own = super().get_params(ctx)
        names = {each.name for each in own}
        theirs = _run_command(ctx).get_params(ctx)
        return [*(each for each in theirs if each.name not in names), *own]


@click.command(cls=_LikeRun)
@click.option("-o", "--output", type=_FILE, required=True, help="The file to write.")
@click.option("--without-content", is_flag=True, help="Record no prompts, answers and arguments.")
@click.option("--spans", is_flag=True, help="Record OpenTelemetry's spans, too.")
@click.pass_context
def record(
    ctx: click.Context, output: Path, *, without_content: bool, spans: bool, **options: Any
) -> None:
    """Run a pipeline as adk-fluent run does, and record it.

    TARGET is module:attribute or path.py:attribute. A FILE that ends with .jsonl is written while
    the run goes on. Exits with 1 if a question is left open.
    """
    check_replaced(output)  # before anything is paid for
    stream = output if output.suffix == ".jsonl" else None
    recorder = Recorder(not without_content, stream=stream, overwrite=True, spans=spans)
    try:
        with recorder:
            ctx.invoke(_run_command(ctx), **options)
    finally:
        if recorder.recording.runs:  # a run that failed is what one wants to look at
            if stream is None:
                recorder.save(output)
            note(f"{recorder.recording!r} in {output}")


@click.command()
@click.argument("file", type=_FILE)
@click.option("--full", is_flag=True, help="Cut no value off.")
def show(file: Path, *, full: bool) -> None:
    """Show what recording FILE holds: who did what, when, and what came of it."""
    click.echo(text_of(Recording.load(file), full=full))


@click.command()
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
@_UNIFIED
@_JSON
@click.pass_context
def diff(ctx: click.Context, before: Path, after: Path, *, unified: bool, as_json: bool) -> None:
    """Show where the events of two recordings differ; exits with 1 if they do."""
    found = diff_events(Recording.load(before).events, Recording.load(after).events)
    lanes = {lane: str(each) for lane, each in found.by_lane.items()}
    first = None if found.first is None else str(found.first)
    data = {"ok": not found, "events": found.counts, "difference": first, "lanes": lanes}
    text = found.unified() if unified and found else found.summary
    _end(ctx, text, data, as_json=as_json, ok=not found)


@click.command()
@click.argument("file", type=_FILE)
@click.option("--against", type=_FILE, help="A recording to show beside it.")
@click.option("-o", "--output", type=_FILE, required=True, help="The file to write.")
def html(file: Path, against: Path | None, output: Path) -> None:
    """Write recording FILE as one page of HTML, to look at in a browser.

    The page holds all that the recording holds, and loads nothing.
    """
    other = None if against is None else Recording.load(against)
    Recording.load(file).to_html(output, against=other)
    note(f"written to {output}")
