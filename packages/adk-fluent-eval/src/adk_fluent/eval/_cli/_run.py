"""``adk-fluent eval run``."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from typing import TYPE_CHECKING, Any, get_args

import click

from adk_fluent.eval._cli._agents import agent_folder
from adk_fluent.eval._cli._finish import finish
from adk_fluent.eval._cli._options import (
    IN,
    check_files,
    named_file,
    output_options,
    registry_option,
    seconds,
    shard,
    share,
)
from adk_fluent.eval._cli._plan import planned
from adk_fluent.eval._cli._progress import display
from adk_fluent.eval._cli._session import Session, check
from adk_fluent.eval._running._settings import EngineName

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from adk_fluent.eval._cli._progress import Silent


@click.command()
@click.argument("target")
@click.option("--pipeline", metavar="TARGET", help="What is evaluated, for a file of cases.")
@registry_option
@click.option("--tag", "tags", multiple=True, help="Run cases of this tag; may be repeated.")
@click.option(
    "--case", "cases", metavar="ID", multiple=True, help="Run this case; may be repeated."
)
@click.option("--runs", type=click.IntRange(min=1), help="How often each case is run.")
@click.option("--shard", callback=shard, metavar="I/N", help="Run one part of the cases: 1/4.")
@click.option(
    "--parallelism",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Cases at the same time, at most.",
)
@click.option(
    "--engine",
    type=click.Choice(get_args(EngineName)),
    default="auto",
    show_default=True,
    help="Who runs the cases: light, or ADK's own service, local, which needs an extra.",
)
@click.option(
    "--model",
    "models",
    metavar="NAME",
    multiple=True,
    help="The model that answers in the place of all others. If repeated, all are run, and held "
    "against each other.",
)
@click.option("--judge-model", metavar="NAME", help="The model that judges.")
@click.option(
    "--timeout", type=float, callback=seconds, help="Seconds after which a run of a case is ended."
)
@click.option("--fail-fast", is_flag=True, help="Begin nothing more once a case did not pass.")
@click.option(
    "--baseline",
    type=IN,
    callback=named_file,
    metavar="FILE",
    help="Hold the results against this report, as JSON.",
)
@click.option(
    "--update-baseline",
    is_flag=True,
    help="Write the results to --baseline, in the place of failing for what got worse.",
)
@click.option(
    "--max-regressions",
    type=click.IntRange(min=0),
    metavar="N",
    help="Cases that may have got worse than --baseline.",
)
@click.option(
    "--min-pass-rate", callback=share, metavar="P", help="Share of runs that pass: 0.95 or 95%."
)
@click.option(
    "--journal",
    type=click.Path(dir_okay=False),
    callback=named_file,
    metavar="FILE",
    help="Note there what is done. With the same file an interrupted run goes on.",
)
@click.option(
    "--cache",
    type=click.Path(file_okay=False),
    callback=named_file,
    metavar="DIR",
    help="Keep answers of models there, and replay them.",
)
@click.option("--record", is_flag=True, help="Ask for all answers of --cache anew.")
@click.option("--replay", is_flag=True, help="Ask no model: what --cache has not is an error.")
@output_options("json", "html", "junit", "markdown")
@click.option(
    "--results",
    type=IN,
    metavar="AGENTS_DIR",
    help="Write results for `adk web`, which is started with this folder.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show the verdict alone.")
@click.option("--no-progress", is_flag=True, help="Do not show how far it is.")
@click.pass_context
def run(ctx: click.Context, target: str, **options: Any) -> None:
    """Run suites of cases, and say whether they pass.

    TARGET is module:attribute or path.py:attribute of a FluentEvalSuite, a list of them, or a
    function that returns one; without an attribute, the only suite of the module. Or it is a file
    of cases (.yaml, .json, .csv, .jsonl) that are run against --pipeline.

    Ctrl-C ends what runs and keeps what is done, in reports and in the --journal; twice, it does so
    at once, whatever still runs. So does SIGTERM.
    """
    from adk_fluent.eval._cli._interrupts import Interrupts  # noqa: PLC0415  # imports asyncio

    check_files(
        options,
        *("json", "html", "junit", "markdown", "journal"),
        inputs=(target, options["pipeline"], options["registry"]),
        both=("baseline",),
    )
    agents = agent_folder(options["results"], target) if options["results"] else None
    units = planned(target, options)
    check(units)
    with Interrupts() as interrupts:
        shown = display(wanted=not (options["quiet"] or options["no_progress"]))
        session = Session(units, interrupts, shown)
        interrupts.keeping(_last_words(session, shown, options, agents))
        result = session.run()
        code = interrupts.finish(lambda: finish(result, options, agents))
    if result.error is not None:
        raise result.error
    ctx.exit(interrupts.code if result.interrupted else code)


def _last_words(
    session: Session, shown: Silent, options: dict[str, Any], agents: tuple[Path, str] | None
) -> Callable[[], None]:
    """What writes and shows what is done where a run cannot be ended."""
    stdout = sys.stdout  # tools have standard error in its place while they run

    def write() -> None:
        shown.end()
        with redirect_stdout(stdout):
            finish(session.so_far(), options, agents)

    return write
