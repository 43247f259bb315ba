"""``adk-fluent eval export`` and ``import``: cases from one format to another."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

import click

from adk_fluent.cli._transcript import note
from adk_fluent.eval._cli._load import functions_of, suite_in, suites_of, told
from adk_fluent.eval._cli._options import named_file, pairs, registry_option
from adk_fluent.eval._report._words import plural

if TYPE_CHECKING:
    from adk_fluent.eval._suite import FluentEvalSuite


@click.command()
@click.argument("target")
@click.argument("out", type=click.Path(dir_okay=False))
@click.option(
    "--config",
    type=click.Path(dir_okay=False),
    callback=named_file,
    metavar="FILE",
    help="Write the metrics there, as `adk eval --config_file_path` reads them.",
)
@registry_option
def export(target: str, out: str, config: str | None, registry: str | None) -> None:
    """Write the cases of a suite to a file.

    TARGET is as for eval run. OUT is .evalset.json, which `adk eval` and `adk web` read, .yaml or
    .jsonl. A file of that name is replaced.
    """
    suites = suites_of(target, registry=registry, as_written=True)
    if len(suites) > 1:
        names = ", ".join(repr(each.name) for each in suites)
        raise click.UsageError(f"{target} is several suites, {names}; a file holds one.")
    _write(suites[0], out, config)


@click.command("import")
@click.argument("file", type=click.Path())
@click.argument("out", type=click.Path(dir_okay=False))
@click.option(
    "--map",
    multiple=True,
    callback=pairs,
    metavar="COLUMN=FIELD",
    help="What a column of a table is; may be repeated.",
)
@click.option(
    "--config",
    type=click.Path(dir_okay=False),
    callback=named_file,
    metavar="FILE",
    help="Write the metrics there, for `adk eval`.",
)
@registry_option
@click.option("--force", is_flag=True, help="Replace OUT, and --config, if they are there.")
def import_(
    file: str,
    out: str,
    *,
    map: dict[str, str],
    config: str | None,
    registry: str | None,
    force: bool,
) -> None:
    """Turn a file of cases into one of another format.

    FILE is .evalset.json, .test.json, .yaml, .csv or .jsonl; OUT is .yaml, .jsonl or .evalset.json.
    """
    for path in filter(None, (out, config)):
        if Path(path).resolve() == Path(file).resolve():
            raise click.UsageError(f"{path} is the file that is read.")
        if not force and Path(path).exists():
            raise click.UsageError(f"{path} is there already; --force replaces it.")
    with told(), redirect_stdout(sys.stderr):
        suite = suite_in(file, map, functions_of(registry))
    _write(suite, out, config)


def _write(suite: FluentEvalSuite, out: str, config: str | None) -> None:
    suffix = Path(out).suffix.lower()
    if config is not None and suffix != ".json":
        raise click.UsageError("--config belongs to an .evalset.json.")
    if config is not None and Path(config).resolve() == Path(out).resolve():
        raise click.UsageError("OUT and --config are the same file.")
    if suffix == ".json":
        suite.to_eval_set_file(out, config_path=config)
        if config is not None and not isinstance(suite.judge_model, str | None):
            note(
                f"[who judges is not in {config}, as the suite has an object for a model: add "
                "judge_model_options to its metrics]",
                fg="yellow",
            )
    elif suffix in {".yaml", ".yml"}:
        suite.to_yaml(out)
    elif suffix == ".jsonl":
        from adk_fluent.eval._files._table import dump_jsonl  # noqa: PLC0415  # imports csv
        from adk_fluent.eval._write import write_whole  # noqa: PLC0415  # of this alone

        write_whole(out, [dump_jsonl(suite.to_data())])
    else:
        raise click.UsageError(f"{out}: write to .evalset.json, .yaml or .jsonl.")
    files = out if config is None else f"{out} and {config}"
    click.echo(f"{plural(len(suite.cases), 'case')} written to {files}")
