"""The command ``adk-fluent eval``: run, compare, merge and list."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from contextlib import contextmanager, redirect_stdout
from copy import copy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, get_args

import click

from adk_fluent import cli
from adk_fluent.cli import is_interactive
from adk_fluent.errors import AdkFluentError
from adk_fluent.eval._cases._turn import text_of
from adk_fluent.eval._errors import EvalError, EvalFileError
from adk_fluent.eval._files._source import Source
from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._report._documents import document
from adk_fluent.eval._report._report import FluentEvalReport, in_form, outcome_line
from adk_fluent.eval._running._kept import CacheMode, ResponseCache
from adk_fluent.eval._running._options import Engine, Progress, RunOptions
from adk_fluent.eval._running._plan import MetricPlan
from adk_fluent.eval._running._suite_run_adk import SuiteRun
from adk_fluent.eval._suite import FluentEvalSuite
from adk_fluent.eval._text import encodable
from adk_fluent.extend import describe, one_line, plural
from adk_fluent.ir import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping


#: Errors of clients of models and of what carries their calls.
_OF_SERVICES: Final = re.compile(
    r"(gaierror|\w*(API|Auth|Client|Connect|Connection|Credentials|Server|SSL|Transport)\w*"
    r"(Error|Timeout))$"
)
_FROM_0: Final = click.IntRange(min=0)
_COUNT: Final = click.IntRange(min=1)
_FOLDER: Final = click.Path(file_okay=False)
_SECONDS: Final = click.FloatRange(min=0, min_open=True)
#: What reads a file of cases, by its ending.
_READERS: Final = {
    **dict.fromkeys((".yaml", ".yml"), FluentEvalSuite.from_yaml),
    **dict.fromkeys((".csv", ".jsonl", ".ndjson"), FluentEvalSuite.from_table),
    ".json": FluentEvalSuite.from_eval_set,
}


def _load_suite(text: str, pipeline: str | None = None) -> FluentEvalSuite:
    """Return the suite that a target names.

    Modules print to standard error while they are imported: standard output is for results.

    Args:
        text: The target, of a module or a file of cases.
        pipeline: The target of what the cases of a file are for.
    """
    if read := _READERS.get(Path(text).suffix.lower()):
        with redirect_stdout(sys.stderr):
            given = None if pipeline is None else _attribute(cli.Target.parse(pipeline))
        return read(text, given)
    if pipeline is not None:
        raise click.UsageError("--pipeline is for files of cases; the suite of a module has one.")
    target = cli.Target.parse(text)
    with redirect_stdout(sys.stderr):
        module = cli.module_of(target)
        known = [name for name, each in vars(module).items() if isinstance(each, FluentEvalSuite)]
        names = ", ".join(known) or "none"
        if target.attribute is not None:
            value = cli.attribute_of(target, module)
        elif len(known) == 1:
            value = vars(module)[known[0]]
        else:
            help = f"name one: {target.source}:{(*known, 'suite')[0]}"
            raise target.error(f"{text} names no suite", help, found=names)
        value = cli.call_factory(target, value)
    if not isinstance(value, FluentEvalSuite):
        what = f"{text} is not a FluentEvalSuite"
        raise target.error(what, f"suites in the module: {names}", found=describe(value))
    return value


def _attribute(target: cli.Target) -> Any:
    """What a target names, as it is: a suite takes graphs and Apps of ADK, too."""
    return cli.call_factory(target, cli.attribute_of(target, cli.module_of(target)))


_STDOUT: Final = "-"
_OUT: Final = click.Path(dir_okay=False, allow_dash=True)
_SUMMARY: Final = "GITHUB_STEP_SUMMARY"
_SUMMARY_BYTES: Final = 1 << 20  # GitHub shows nothing of a longer one
_CUT: Final = "\n\nCut here: GitHub shows no more than 1 MiB.\n"
_TITLES: Final = {"json": "JSON", "junit": "JUnit", "markdown": "Markdown", "html": "HTML"}
#: The documents that a report can be.
_FORMS: Final = tuple(_TITLES)


def _output_options(*forms: str) -> Callable[[Any], Any]:
    """Return a decorator that adds an option for each form."""

    def add(command: Any) -> Any:
        for form in reversed(forms):
            help = f"Write {_TITLES[form]} there; - is stdout."
            command = click.option(f"--{form}", type=_OUT, metavar="FILE", help=help)(command)
        return command

    return add


class Output:
    """The files of one command, and in a step of GitHub Actions its summary."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.options = options
        self.failed = False

    def write(self, form: str, make: Callable[[], str]) -> None:
        """Write a document if its form was asked for."""
        path: str | None = self.options.get(form)
        if path == _STDOUT:
            sys.stdout.write(f"{encodable(make()).rstrip()}\n")
        elif path is not None:
            self.save(path, make, Source.write_page if form == "html" else Source.write)

    def save(
        self, path: str, make: Callable[[], str], write: Callable[..., None] = Source.write
    ) -> None:
        """Write a document to a file; a failure is noted, and the others are still written."""
        text = encodable(make())
        with self.noting():
            write(path, [text])

    @contextmanager
    def noting(self) -> Generator[None]:
        """Note a file that cannot be written, and go on."""
        try:
            yield
        except OSError as error:
            self.failed = True
            own = isinstance(error, AdkFluentError)
            what = error if own else f"{error.filename} cannot be written: {error.strerror}"
            cli.note(f"error: {what}", fg="red")

    def summarize(self, make: Callable[[], str]) -> None:
        """Add Markdown to the summary that GitHub shows of a step, as much as it has room for."""
        if not (path := os.environ.get(_SUMMARY)):
            return
        page = f"{encodable(make())}\n".encode()
        with self.noting(), Path(path).open("ab") as file:
            room = _SUMMARY_BYTES - file.tell()
            if len(page) > room:
                end = page.rfind(b"\n", 0, max(0, room - len(_CUT)))
                page = page[:end] + _CUT.encode() if end > 0 else b""
            file.write(page)

    def write_report(
        self, report: FluentEvalReport, baseline: FluentEvalReport | None = None
    ) -> None:
        """Write the documents of a report that were asked for."""
        for form in _FORMS:
            self.write(form, partial(in_form, report, form, baseline))
        self.summarize(report.to_markdown)

    def say(self, lines: Iterable[str]) -> None:
        """Print lines for the person: on standard error if standard output is a document."""
        for line in lines:
            click.echo(line, err=_STDOUT in self.options.values())

    def say_report(self, report: FluentEvalReport, *, quiet: bool = False) -> None:
        """Print the verdict, and the report."""
        verdict = _styled("passed" if report.ok else "not passed", ok=report.ok)
        lines = document("report.md.j2", report=report).splitlines()
        self.say([f"{one_line(report.suite)}: {verdict}, {lines[0]}"])
        self.say([] if quiet else lines[2:])

    def code(self, *, ok: bool) -> int:
        """Return the exit code of a command whose documents are written."""
        return cli.INFRASTRUCTURE if self.failed else cli.OK if ok else cli.FINDINGS


def _styled(verdict: str, *, ok: bool) -> str:
    """Return a verdict in its color."""
    return click.style(verdict, fg="green" if ok else "red", bold=True)


# --- commands ------------------------------------------------------------------------------------


@click.group("eval", context_settings={"show_default": True})
def evaluate() -> None:
    """Run a suite, compare and join reports, list cases.

    Exit codes: 0 passed, 1 a gate is not met, 2 wrong usage, 3 no service could be reached or a
    file could not be written, 130 interrupted.
    """


def _shard(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """A part of the cases, as ``2/5``."""
    if value is None:
        return None
    part, _, parts = value.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise click.BadParameter(f"{value!r} is not a part; write 2/5 for the second of five.")
    return int(part), int(parts)


@evaluate.command("run", short_help="Run a suite, and report whether it passes.")
@click.argument("target")
@click.option("--pipeline", metavar="TARGET", help="What the cases of a file are for.")
@click.option("--tag", "filter_tags", multiple=True, help="Run cases with this tag; repeatable.")
@click.option("--case", "case_ids", metavar="ID", multiple=True, help="Run this case; repeatable.")
@click.option("--runs", "num_runs", type=_COUNT, help="Runs of each case.")
@click.option("--parallelism", type=_COUNT, default=10, help="Runs at the same time, at most.")
@click.option("--timeout", "timeout_s", type=_SECONDS, help="Seconds of a run, at most.")
@click.option("--shard", callback=_shard, metavar="I/N", help="Run part I of N of the cases.")
@click.option(
    "--engine", type=click.Choice(get_args(Engine)), default="auto", help="Ours, or ADK's: local."
)
@click.option("--model", help="Answers in place of every model of the pipeline.")
@click.option("--cache", type=_FOLDER, help="Keep and replay answers there.")
@click.option(
    "--cache-mode",
    type=click.Choice(get_args(CacheMode)),
    default="auto",
    help="What --cache does: record everything anew, or replay without calling a model.",
)
@click.option("--journal", type=click.Path(dir_okay=False), help="Resume what is done there.")
@click.option("--fail-fast", is_flag=True, help="Start nothing more after a run that did not pass.")
@click.option("--baseline", type=click.Path(), metavar="FILE", help="Compare with this report.")
@click.option("--update-baseline", is_flag=True, help="Write the results to --baseline instead.")
@click.option("--max-regressions", type=_FROM_0, help="Cases that may regress.")
@click.option("--min-pass-rate", type=click.FloatRange(0, 1), help="Such as 0.95.")
@_output_options(*_FORMS)
@click.option("--adk-results", type=_FOLDER, metavar="AGENT", help="Write there for adk web.")
@click.option("-q", "--quiet", is_flag=True, help="Print the verdict only.")
@click.pass_context
def run(ctx: click.Context, target: str, **options: Any) -> None:
    """Run a suite, and report whether it passes.

    TARGET is module:attribute or path.py:attribute of a FluentEvalSuite or of a function that
    returns one; a module with one suite; or a file of cases, with --pipeline.

    Ctrl-C or SIGTERM stops the run; what is done is reported and written.
    """
    if options["baseline"] is None:
        for name in ("update_baseline", "max_regressions"):
            if options[name] not in {False, None}:
                raise click.UsageError(f"--{name.replace('_', '-')} needs --baseline FILE.")
    selects = options["filter_tags"] or options["case_ids"] or options["shard"]
    if options["update_baseline"] and selects:
        raise click.UsageError(
            "--update-baseline needs the whole suite, without --tag, --case and --shard."
        )
    if options["cache_mode"] != "auto" and options["cache"] is None:
        raise click.UsageError("--cache-mode needs --cache DIRECTORY.")
    if options["html"] not in {None, _STDOUT}:
        Source.check_page(options["html"])  # before anything is paid for
    suite = copy(_load_suite(target, options["pipeline"]))  # the module's own stays unchanged
    asked = {name: options[name] for name in ("min_pass_rate", "max_regressions")}
    changes = {name: each for name, each in asked.items() if each is not None}
    suite.gate = replace(suite.gate, **changes)
    baseline, output = _baseline_of(options), Output(options)
    display = _ProgressDisplay(suite.name, on=not options["quiet"])
    with redirect_stdout(sys.stderr):
        run = SuiteRun(suite, {**_run_options(options, baseline), "progress": display})
        _require_key(suite.pipeline)
    try:
        with display.bar, redirect_stdout(sys.stderr):  # tools may print
            report = cli.run_interruptible(run.report())
    except KeyboardInterrupt:
        report = run.interrupted_report()
    _write(report, baseline, output)
    ctx.exit(_code(report, output))


def _baseline_of(options: dict[str, Any]) -> FluentEvalReport | None:
    path = options["baseline"]
    if path is None or not Path(path).exists():
        if path is None or options["update_baseline"]:
            return None
        help = "write one with --update-baseline"
        raise EvalFileError("there is no baseline", path=path, help=help)
    return FluentEvalReport.load(path)


def _run_options(options: dict[str, Any], baseline: FluentEvalReport | None) -> RunOptions:
    given: dict[str, Any] = {
        name: options[name] or None for name in RunOptions.__annotations__ if name in options
    }
    given["baseline"] = None if options["update_baseline"] else baseline
    if options["cache"]:
        given["cache"] = ResponseCache(options["cache"], options["cache_mode"])
    return cast("RunOptions", given)


def _require_key(given: Any) -> None:
    """Check that there is a key for Gemini, if the pipeline has a model of it."""
    root = given.to_ir() if hasattr(given, "to_ir") and not isinstance(given, type) else given
    if isinstance(root, Node):
        cli.require_credentials(root)


def _write(report: FluentEvalReport, baseline: FluentEvalReport | None, output: Output) -> None:
    """Write and print a report, also that of what was done when Ctrl-C stopped the run."""
    options = output.options
    output.write_report(report, baseline)
    if options["adk_results"] is not None:
        agent = Path(options["adk_results"]).resolve()
        with output.noting():
            report.save_adk_results(agent.parent, agent.name)
    if options["update_baseline"]:
        if report.interrupted or report.counts[Status.ERROR]:
            cli.note(f"[{options['baseline']} is unchanged: the run has errors]", fg="yellow")
        else:
            output.save(options["baseline"], report.to_json)
    output.say_report(report, quiet=options["quiet"])
    if baseline is not None and not options["quiet"]:
        comparison = document("comparison.md.j2", made=report.compare(baseline))
        output.say(["\ncompared with the baseline:", comparison.rstrip()])


def _code(report: FluentEvalReport, output: Output) -> int:
    if report.interrupted and not report.notes:  # by Ctrl-C, not by --fail-fast
        cli.note(f"[interrupted with {plural(len(report.outcomes), 'run')} done]", fg="yellow")
        return cli.INTERRUPTED
    counting = [each for each in report.outcomes if each.status.counts]
    code = output.code(ok=report.ok)
    if code == cli.FINDINGS and counting and all(map(_reached_no_model, counting)):
        cli.note("[no model could be reached]", fg="red")
        return cli.INFRASTRUCTURE
    return code


def _reached_no_model(outcome: CaseOutcome) -> bool:
    """Whether a client of a model failed, and not one of a tool after a model answered."""
    kind = (outcome.error or "").partition(":")[0]
    answered = any(turn.model_calls for turn in outcome.turns)
    return not answered and _OF_SERVICES.match(kind) is not None


# --- progress ------------------------------------------------------------------------------------

_UPDATES: Final = 10  # progress lines of a run without a terminal


class _ProgressDisplay:
    """Shows the progress of one suite on standard error: a bar on terminals, otherwise lines."""

    def __init__(self, title: str, *, on: bool) -> None:
        from rich.console import Console  # noqa: PLC0415  # slow to import
        from rich.markup import escape  # noqa: PLC0415
        from rich.progress import BarColumn, MofNCompleteColumn, Progress  # noqa: PLC0415

        self._title, self._on = one_line(title, 40), on
        self._has_bar = on and is_interactive(sys.stderr)
        self._counts: Counter[Status] = Counter()
        self.bar = Progress(
            *("{task.description}", BarColumn(), MofNCompleteColumn(), "{task.fields[counts]}"),
            console=Console(stderr=True),
            transient=True,
            disable=not self._has_bar,
        )
        self._task = self.bar.add_task(escape(self._title), total=None, counts="")

    def __call__(self, progress: Progress) -> None:
        """Show a finished run."""
        outcome, done, total = progress.outcome, progress.done, progress.total
        self._counts[outcome.status] += 1
        counts = ", ".join(f"{count:,} {status}" for status, count in self._counts.items())
        self.bar.update(self._task, completed=done, total=total, counts=counts)
        lines = [outcome_line(outcome)] if outcome.status in {"failed", "error"} else []
        is_due = done * _UPDATES // total > (done - 1) * _UPDATES // total
        if is_due and not self._has_bar:
            lines.append(f"{self._title}: {done:,} of {total:,} runs, {counts}")
        for each in lines if self._on else ():
            self.bar.console.print(each, markup=False, highlight=False, soft_wrap=True)


# --- the other commands ---------------------------------------------------------------------------


@evaluate.command("compare", short_help="Compare a report with a baseline, case by case.")
@click.argument("current", type=click.Path())
@click.argument("baseline", type=click.Path())
@click.option("--max-regressions", type=_FROM_0, default=0, help="Cases that may regress.")
@_output_options("json", "markdown", "html")
@click.pass_context
def compare(ctx: click.Context, current: str, baseline: str, **options: Any) -> None:
    """Compare report CURRENT with report BASELINE, case by case.

    Both are files that eval run --json wrote. Exits with 1 if more cases regressed than allowed,
    none could be compared, or CURRENT was interrupted.
    """
    report, before = FluentEvalReport.load(current), FluentEvalReport.load(baseline)
    comparison = report.compare(before)
    worse = len(comparison.regressed)
    ok = comparison.compared > 0 and worse <= options["max_regressions"] and not report.interrupted
    output = Output(options)
    verdict = _styled("ok" if ok else "not ok", ok=ok)
    output.say([f"{one_line(comparison.suite)} compared with its baseline: {verdict}"])
    if report.interrupted:
        output.say([f"{one_line(current)} is of a run that was interrupted"])
    output.say([document("comparison.md.j2", made=comparison).rstrip()])
    if before.shard is not None and before.shard != report.shard:
        cli.note("[the baseline is of shard {} of {} alone]".format(*before.shard), fg="yellow")
    output.write("json", comparison.to_json)
    output.write("markdown", comparison.to_markdown)
    output.write("html", lambda: in_form(report, "html", before))
    output.summarize(comparison.to_markdown)
    ctx.exit(output.code(ok=ok))


@evaluate.command("merge", short_help="Join the reports of shards, and apply the gate to all.")
@click.argument("reports", nargs=-1, required=True, type=click.Path())
@_output_options(*_FORMS)
@click.pass_context
def merge(ctx: click.Context, reports: tuple[str, ...], **options: Any) -> None:
    """Join the reports of shards, and apply the gate to all of them.

    REPORTS are files that eval run --shard --json wrote, one for each shard.
    """
    report = FluentEvalReport.merge([FluentEvalReport.load(each) for each in reports])
    output = Output(options)
    output.write_report(report)
    output.say_report(report)
    ctx.exit(output.code(ok=report.ok))


@evaluate.command("list", short_help="List the cases of a suite, running nothing.")
@click.argument("target")
def list_cases(target: str) -> None:
    """List the cases of a suite, running nothing.

    TARGET is as for eval run.
    """
    suite = _load_suite(target)
    click.echo(f"{one_line(suite.name, 80)}: {plural(len(suite.cases), 'case')}")
    plan = MetricPlan(suite)
    for case in suite.cases:
        try:
            metrics = ", ".join(each.name for each in plan.of(case))
        except EvalError:  # it expects nothing, which a run refuses
            metrics = "no metric"
        tags = f" [{', '.join(case.tags)}]" if case.tags else ""
        skipped = " (skipped)" if case.skip else ""
        line = f"{case.name}{tags}{skipped}: {text_of(case.turns[0].input)}"
        click.echo(f"  {one_line(line, 120)}  -> {metrics}")
