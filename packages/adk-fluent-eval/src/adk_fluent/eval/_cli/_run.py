"""``adk-fluent eval run``."""

from __future__ import annotations

import re
import sys
from collections import Counter
from contextlib import redirect_stdout
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, get_args

import click

from adk_fluent import cli
from adk_fluent.cli import is_interactive
from adk_fluent.eval._cli import _common as common
from adk_fluent.eval._cli._common import FORMS, STDOUT, Output
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._files._source import with_suite
from adk_fluent.eval._outcome import CaseOutcome, Status
from adk_fluent.eval._report._documents import document
from adk_fluent.eval._report._report import FluentEvalReport, outcome_line
from adk_fluent.eval._running._kept import CacheMode, ResponseCache
from adk_fluent.eval._running._options import Engine, Progress, RunOptions
from adk_fluent.eval._running._suite_run_adk import SuiteRun
from adk_fluent.eval._text import one_line, plural
from adk_fluent.ir import Node

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.eval._suite import FluentEvalSuite


#: Errors of clients of models and of what carries their calls.
_OF_SERVICES: Final = re.compile(
    r"(gaierror|\w*(API|Auth|Client|Connect|Connection|Credentials|Server|SSL|Transport)\w*"
    r"(Error|Timeout))$"
)


def _shard(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """A part of the cases, as ``2/5``."""
    if value is None:
        return None
    part, _, parts = value.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise click.BadParameter(f"{value!r} is not a part; write 2/5 for the second of five.")
    return int(part), int(parts)


_COUNT: Final = click.IntRange(min=1)
_FOLDER: Final = click.Path(file_okay=False)
_SECONDS: Final = click.FloatRange(min=0, min_open=True)


@click.command("run", short_help="Run suites, and report whether they pass.")
@click.argument("target")
@common.pipeline_option
@common.registry_option
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
@click.option("--max-regressions", type=common.FROM_0, help="Cases that may regress.")
@click.option("--min-pass-rate", type=click.FloatRange(0, 1), help="Such as 0.95.")
@common.output_options(*FORMS)
@click.option("--adk-results", type=_FOLDER, metavar="AGENT", help="Write there for adk web.")
@click.option("-q", "--quiet", is_flag=True, help="Print the verdict only.")
@click.pass_context
def run(ctx: click.Context, target: str, **options: Any) -> None:
    """Run suites, and report whether they pass.

    TARGET is module:attribute or path.py:attribute of a FluentEvalSuite, a list of them, or a
    function that returns one; a module with one suite; or a file of cases (.yaml, .json), which
    needs --pipeline.

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
    suites = common.load_suites(target, options["pipeline"], options["registry"])
    if len(suites) > 1 and STDOUT in options.values():
        raise click.UsageError("- takes the document of one suite; name a file.")
    jobs = [_Job(each, options, label=each.name if len(suites) > 1 else "") for each in suites]
    for job in jobs:
        with redirect_stdout(sys.stderr):
            job.check()
    reports: list[FluentEvalReport] = []
    output = Output(options)
    for job in jobs:
        reports.append(job.run(output))  # and write at once: nothing later can lose it
        if reports[-1].interrupted or (options["fail_fast"] and not reports[-1].ok):
            break
    ctx.exit(_code(reports, output))


def _code(reports: Sequence[FluentEvalReport], output: Output) -> int:
    if reports[-1].interrupted and not reports[-1].notes:  # by Ctrl-C, not by --fail-fast
        count = sum(len(report.outcomes) for report in reports)
        cli.note(f"[interrupted with {plural(count, 'run')} done]", fg="yellow")
        return cli.INTERRUPTED
    code = output.code(ok=all(report.ok for report in reports))
    counting = [each for report in reports for each in report.outcomes if each.status.counts]
    if code == cli.FINDINGS and counting and all(map(_reached_no_model, counting)):
        cli.note("[no model could be reached]", fg="red")
        return cli.INFRASTRUCTURE
    return code


def _reached_no_model(outcome: CaseOutcome) -> bool:
    """Whether a client of a model failed, and not one of a tool after a model answered."""
    kind = (outcome.error or "").partition(":")[0]
    answered = any(turn.model_calls for turn in outcome.turns)
    return not answered and _OF_SERVICES.match(kind) is not None


class _Job:
    """One suite to run, with the options of the command."""

    def __init__(self, suite: FluentEvalSuite, options: dict[str, Any], *, label: str) -> None:
        self._label, self._options = label, options
        path = self._baseline_path = options["baseline"] and with_suite(options["baseline"], label)
        is_new = not path or not Path(path).exists()
        if path and is_new and not options["update_baseline"]:
            help = "write one with --update-baseline"
            raise EvalFileError("there is no baseline", path=path, help=help)
        self._baseline = None if is_new else FluentEvalReport.load(path)
        asked = {name: options[name] for name in ("min_pass_rate", "max_regressions")}
        changes = {name: each for name, each in asked.items() if each is not None}
        self.suite = copy(suite)  # the module's own stays unchanged
        self.suite.gate = replace(suite.gate, **changes)
        given: dict[str, Any] = {
            name: options[name] or None for name in RunOptions.__annotations__ if name in options
        }
        given["baseline"] = None if options["update_baseline"] else self._baseline
        if options["cache"]:
            given["cache"] = ResponseCache(options["cache"], options["cache_mode"])
        if options["journal"]:
            given["journal"] = with_suite(options["journal"], label)
        self._given = cast("RunOptions", given)

    def check(self) -> None:
        """Check everything that the suite names, and that there is a key for Gemini."""
        self.suite.check(**self._given)
        given = self.suite.pipeline
        root = given.to_ir() if hasattr(given, "to_ir") and not isinstance(given, type) else given
        if isinstance(root, Node):
            cli.require_credentials(root)

    def run(self, output: Output) -> FluentEvalReport:
        """Run the suite, write and print; what is done when Ctrl-C stops it becomes the report."""
        options, path = self._options, self._baseline_path
        display = _ProgressDisplay(self.suite.name, on=not options["quiet"])
        run = SuiteRun(self.suite, {**self._given, "progress": display})
        try:
            with display.bar, redirect_stdout(sys.stderr):  # tools may print
                report = common.run_interruptible(run.report())
        except KeyboardInterrupt:
            report = run.interrupted_report()
        output.write_report(report, self._baseline, self._label)
        if options["adk_results"] is not None:
            agent = Path(options["adk_results"]).resolve()
            with output.noting():
                report.save_adk_results(agent.parent, agent.name)
        if options["update_baseline"] and path is not None:
            if report.interrupted or report.counts[Status.ERROR]:
                cli.note(f"[{path} is unchanged: the run has errors]", fg="yellow")
            else:
                output.save(path, report.to_json)
        output.say_report(report, quiet=options["quiet"])
        if self._baseline is not None and not options["quiet"]:
            comparison = document("comparison.md.j2", made=report.compare(self._baseline))
            output.say(["\ncompared with the baseline:", comparison.rstrip()])
        return report


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
