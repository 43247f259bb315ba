"""``adk-fluent replay``, ``record``, ``show``, ``diff`` and ``html``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from adk_fluent.cli import FINDINGS, OK, Given, load, note, require_credentials, state_option
from adk_fluent.debug._diff import counted, diff_events
from adk_fluent.debug._errors import PipelineMismatchError, ReplayMismatchError
from adk_fluent.debug._recorder import Recorder
from adk_fluent.debug._recording import Recording
from adk_fluent.debug._replaying import replay as replay_recording
from adk_fluent.debug._show import data_of, json_of, text_of
from adk_fluent.extend import run_sync

if TYPE_CHECKING:
    from adk_fluent.protocol import RunResult

_FILE = click.Path(path_type=Path)
_LINES = ".jsonl"
_UNIFIED = click.option(
    "--unified", is_flag=True, help="Print every difference, as a unified diff."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")


def _say(text: str, data: Any, *, as_json: bool) -> None:
    click.echo(json.dumps(data) if as_json else text)


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
        _say(str(error), data, as_json=as_json)
        ctx.exit(FINDINGS)
    data = {
        "ok": report.ok,
        "events": len(report.events),
        "difference": None if report.diff.first is None else str(report.diff.first),
        "problems": report.problems,
        "unused": len(report.unused),
    }
    text = f"{counted(len(recording.runs), 'run')} replayed: {report.summary}"
    more = f"\n{report.diff.unified()}" if unified and report.diff else ""
    _say(text + more, data, as_json=as_json)
    ctx.exit(OK if report.ok else FINDINGS)


@click.command()
@click.argument("target")
@click.argument("message")
@click.option("-o", "--output", type=_FILE, required=True, help="The file to write.")
@state_option
@click.option(
    "--answer",
    "answers",
    metavar="[NAME=]VALUE",
    multiple=True,
    help="Answer the question of that name or id, or else the next one: yes, no, JSON or text. "
    "May be repeated.",
)
@click.option("--without-content", is_flag=True, help="Record no prompts, answers and arguments.")
@click.option("--spans", is_flag=True, help="Record OpenTelemetry's spans, too.")
@click.pass_context
def record(  # noqa: PLR0917  # click calls it by name
    ctx: click.Context,
    target: str,
    message: str,
    output: Path,
    state: dict[str, Any],
    answers: tuple[str, ...],
    *,
    without_content: bool,
    spans: bool,
) -> None:
    """Run pipeline TARGET with MESSAGE, print its answer, and record the run.

    A FILE that ends with .jsonl is written while the run goes on. Exits with 1 if a question is
    left open.
    """
    pipeline = load(target)
    require_credentials(pipeline.to_ir())
    stream = output if output.suffix == _LINES else None
    recorder = Recorder(capture_content=not without_content, stream=stream, spans=spans)
    try:
        with recorder:
            result = run_sync("record", lambda: _run(pipeline, message, state, Given(answers)))
        for each in result.pending:
            name = each.name or each.id
            note(f"it waits for an answer to {name}: {each.message}; give --answer {name}=...")
    finally:
        if recorder.recording.runs:  # a run that failed is what one wants to look at
            if stream is None:
                recorder.save(output)
            note(f"{recorder.recording!r} in {output}")
    if result.pending:
        ctx.exit(FINDINGS)


async def _run(pipeline: Any, message: str, state: dict[str, Any], given: Given) -> RunResult:
    result: RunResult = await pipeline.run(message, state=state)
    click.echo(result.text)
    while answers := given(result.pending):
        result = await pipeline.resume(*answers, session_id=result.session_id)
        if result.text:
            click.echo(result.text)
    return result


@click.command()
@click.argument("file", type=_FILE)
@click.option("--full", is_flag=True, help="Cut no value off.")
@click.option("--state-at", type=int, metavar="N", help="Print state after event N alone, as JSON.")
@_JSON
def show(file: Path, state_at: int | None, *, full: bool, as_json: bool) -> None:
    """Show what recording FILE holds: who did what, when, and what came of it."""
    recording = Recording.load(file)
    if state_at is not None:
        states = recording.state_snapshots
        if not -len(states) <= state_at < len(states):
            raise click.BadParameter(f"there are {len(states)} events", param_hint="--state-at")
        click.echo(json_of(states[state_at]))
    else:
        click.echo(json_of(data_of(recording)) if as_json else text_of(recording, full=full))


@click.command("diff")
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
    _say(found.unified() if unified and found else found.summary, data, as_json=as_json)
    ctx.exit(FINDINGS if found else OK)


@click.command("html")
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
