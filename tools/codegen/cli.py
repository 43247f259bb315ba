"""The command line.

::

    python -m tools.codegen                write facts, setters and the reports
    python -m tools.codegen --check        write nothing; fail when one of them is out of date
    python -m tools.codegen diff A B       show what changed from version A to version B of ADK
    python -m tools.codegen diff A B --to FOLDER    and write it there, for people and programs
"""

from __future__ import annotations

import argparse
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from codegen.generate import modules
from codegen.report import compare
from codegen.snapshots import HERE, CodegenError, load, load_all, pinned

if TYPE_CHECKING:
    from collections.abc import Sequence

REPORTS: Final[Path] = HERE / "reports"
_ROOT: Final = HERE.parents[1]


def wanted() -> dict[Path, str]:
    """Every file that is generated, and what it has to hold."""
    files = modules(load_all())
    for old, new in pairwise(pinned()):
        for name, text in compare(load(old), load(new)).files().items():
            files[REPORTS / name] = text
    return files


def _outdated(files: dict[Path, str]) -> list[Path]:
    """Files that are not as they should be, or should not be."""
    stale = [path for path in REPORTS.glob("*") if path not in files]
    wrong = (
        path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text
    )
    return sorted([*wrong, *stale])


def _write(files: dict[Path, str]) -> None:
    for path in _outdated(files):
        if path in files:
            path.parent.mkdir(exist_ok=True)
            path.write_text(files[path], "utf-8", newline="\n")
            print(f"written: {path.relative_to(_ROOT)}")
        else:
            path.unlink()
            print(f"removed: {path.relative_to(_ROOT)}")


def _check(files: dict[Path, str]) -> int:
    outdated = _outdated(files)
    for path in outdated:
        print(f"out of date: {path.relative_to(_ROOT)}")
    if outdated:
        print("run: python -m tools.codegen", file=sys.stderr)
        return 1
    print("facts, setters and reports agree with the snapshots of ADK")
    return 0


def _diff(old: str, new: str, folder: Path | None) -> None:
    report = compare(load(old), load(new))
    print(report.text, end="")
    if folder is not None:
        for path in report.save(folder):
            print(f"written: {path}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Follow ADK's models.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    commands = parser.add_subparsers(dest="command")
    diff = commands.add_parser("diff", help="show what changed between two versions of ADK")
    diff.add_argument("old")
    diff.add_argument("new")
    diff.add_argument("--to", type=Path, metavar="FOLDER", help="write the report there, too")
    options = parser.parse_args(argv)
    try:
        if options.command == "diff":
            _diff(options.old, options.new, options.to)
            return 0
        if options.check:
            return _check(wanted())
        _write(wanted())
    except CodegenError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
