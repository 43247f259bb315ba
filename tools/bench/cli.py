"""The command: measure, print the table, say by the exit code whether a goal was missed."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.crew import interleaved
from bench.environments import ROOT, BenchError, prepare
from bench.judges import Finding, all_of
from bench.rows import ROWS
from bench.table import report, verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench.crew import Samples
    from bench.rows import Row

#: Processes of each side, rounds in each.
FULL, QUICK = (5, 15), (2, 4)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark.

    Returns:
        0 when no goal is missed, 1 when one is, 3 when nothing could be measured.
    """
    options = _parser().parse_args(argv)
    if options.list:
        print("\n".join(f"{row.id:16} {row.what}" for row in ROWS))
        return 0
    rows = _chosen(options.rows)
    try:
        samples, versions = _measure(rows, options)
    except BenchError as error:
        print(error, file=sys.stderr)
        return 3
    findings = {row.id: judged for row in rows if (judged := _judge(row, samples.get(row.id)))}
    print(report(rows, findings))
    for row in rows:
        for label, error in samples[row.id].failed.items() if row.id in samples else ():
            print(f"\n{row.id}, {label}: {error}")
    for side, installed in versions.items():
        print(f"\n{side}: " + ", ".join(f"{name} {v}" for name, v in installed.items()), end="")
    print()
    words = {row.id: verdict(row, findings.get(row.id)) for row in rows}
    if options.json:
        options.json.write_text(json.dumps(_data(rows, samples, findings, versions), indent=1))
    return int(any(word in ("MISSED", "failed") for word in words.values()))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer processes and rounds")
    parser.add_argument("--rows", default="", help="only rows whose ids start with one of these,…")
    parser.add_argument("--list", action="store_true", help="list the rows and stop")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write samples and figures")
    parser.add_argument("--processes", type=int, help="processes of each side, one after the other")
    parser.add_argument("--rounds", type=int, help="rounds in each process")
    parser.add_argument("--gc", action="store_true", help="collect garbage while measuring")
    parser.add_argument(
        "--env-dir",
        type=Path,
        default=ROOT / "build" / "bench",
        metavar="DIR",
        help="where environments are made",
    )
    parser.add_argument("--ours", type=Path, metavar="PYTHON", help="use this one for us and ADK")
    parser.add_argument("--mono", type=Path, metavar="PYTHON", help="use this one for the monolith")
    parser.add_argument(
        "--local", type=Path, metavar="PYTHON", help="use this for google-adk[eval]"
    )
    return parser


def _chosen(prefixes: str) -> list[Row]:
    wanted = tuple(prefix for prefix in prefixes.split(",") if prefix)
    return [row for row in ROWS if not wanted or row.id.startswith(wanted)]


def _measure(
    rows: list[Row], options: argparse.Namespace
) -> tuple[dict[str, Samples], dict[str, dict[str, str]]]:
    processes, rounds = QUICK if options.quick else FULL
    processes, rounds = options.processes or processes, options.rounds or rounds
    measured = {row.id: row for row in rows if row.cases}
    if not measured:
        return {}, {}
    own = {id: row.rounds for id, row in measured.items()}
    cases = {
        id: {label: case.quickly() if options.quick else case for label, case in row.cases.items()}
        for id, row in measured.items()
    }

    def rounds_of(row: str, generation: int) -> int:
        mine = own[row]
        if mine == 0:
            return int(generation == 0)
        return rounds if mine is None else min(mine, rounds)

    return interleaved(
        prepare(
            options.env_dir,
            options.ours,
            options.mono,
            options.local,
            with_local=any(each.side == "local" for row in cases.values() for each in row.values()),
        ),
        cases,
        rounds=rounds_of,
        processes=processes,
        collect=options.gc,
        progress=_progress,
    )


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:60}", end="", file=sys.stderr, flush=True)


def _judge(row: Row, samples: Samples | None) -> Finding | None:
    """The row's result; None when ours could not be measured."""
    return None if samples is None or "ours" in samples.failed else row.judge(samples)


def _data(
    rows: list[Row],
    samples: dict[str, Samples],
    findings: dict[str, Finding],
    versions: dict[str, dict[str, str]],
) -> dict[str, Any]:
    return {
        "versions": versions,
        "rows": {
            row.id: {
                "what": row.what,
                "goal": row.goal,
                "budget": row.budget,
                "verdict": verdict(row, findings.get(row.id)),
                "numbers": findings[row.id].numbers if row.id in findings else {},
                "seconds": all_of(samples[row.id]) if row.id in samples else {},
                "failed": samples[row.id].failed if row.id in samples else {},
            }
            for row in rows
        },
    }
