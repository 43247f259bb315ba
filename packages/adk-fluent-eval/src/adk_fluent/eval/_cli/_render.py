"""``adk-fluent eval report``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from adk_fluent.cli._failures import FINDINGS, INFRASTRUCTURE, OK
from adk_fluent.eval._cli._compared import comparison_lines
from adk_fluent.eval._cli._options import IN, check_files, named_file, output_options
from adk_fluent.eval._cli._outputs import Written
from adk_fluent.eval._cli._summary import matrix_lines, summary_lines
from adk_fluent.eval._errors import EvalFileError
from adk_fluent.eval._report._report import FluentEvalReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.eval._report._matrix import ModelMatrix


@click.command()
@click.argument("files", nargs=-1, required=True, type=IN, metavar="FILE...")
@click.option(
    "--baseline",
    type=IN,
    callback=named_file,
    metavar="FILE",
    help="Hold it against this report.",
)
@output_options("json", "html", "junit", "markdown")
@click.option("--gate", is_flag=True, help="End with 1 if the gate of the report is not met.")
@click.pass_context
def report(
    ctx: click.Context, files: Sequence[str], baseline: str | None, gate: bool, **options: Any
) -> None:
    """Show saved reports, or turn them into other formats.

    FILEs are what eval run --json wrote. Several are parts of one run, such as shards, and are
    merged.
    """
    check_files(options, "json", "html", "junit", "markdown", inputs=(*files, baseline))
    written = Written(options)
    matrix = _matrix(files, options, baseline)
    if matrix is None:
        ok = _show_report(files, baseline, written)
    else:
        written.say(matrix_lines(matrix))
        written.matrix(matrix)
        ok = matrix.ok
    written.tell()
    ctx.exit(INFRASTRUCTURE if written.failed else FINDINGS if gate and not ok else OK)


def _show_report(files: Sequence[str], baseline: str | None, written: Written) -> bool:
    reports = [FluentEvalReport.load(each) for each in files]
    merged = reports[0] if len(reports) == 1 else FluentEvalReport.merge(*reports)
    known = None if baseline is None else FluentEvalReport.load(baseline)
    if known is not None:
        merged.baseline = known
    written.say(summary_lines(merged))
    if known is not None:
        written.say(["", "against the baseline:"])
        lines = comparison_lines(merged.compare(known))
        written.say(f"  {line}" if line else "" for line in lines)
    written.report(merged, baseline=known)
    return merged.ok


def _matrix(
    files: Sequence[str], options: dict[str, Any], baseline: str | None
) -> ModelMatrix | None:
    """The models of a file that holds several; None if it is of one.

    Raises:
        UsageError: Something is asked for that there is of a single report alone.
    """
    from adk_fluent.eval._report._json import MATRIX  # noqa: PLC0415  # of this alone
    from adk_fluent.eval._report._matrix import ModelMatrix  # noqa: PLC0415  # of this alone

    if len(files) > 1:
        return None
    try:
        matrix = ModelMatrix.load(files[0])
    except EvalFileError as error:
        if error.field == "adk_fluent.kind":
            return None
        raise
    for name in ("html", "junit"):
        if options[name] is not None:
            raise click.UsageError(f"--{name} is of one report, and {files[0]} is an {MATRIX}.")
    if baseline is not None:
        raise click.UsageError(f"--baseline is of one report, and {files[0]} is an {MATRIX}.")
    return matrix
