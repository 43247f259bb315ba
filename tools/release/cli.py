"""The command line.

::

    python -m tools.release prepare PACKAGE {major,minor,patch,X.Y.Z}   edit version and changelog
    python -m tools.release tag PACKAGE       tag the prepared release; pushing is up to you
    python -m tools.release build [PACKAGE]   build twice, compare, put the archives into dist/
    python -m tools.release check [PACKAGE]   the archives, their metadata, README and changelog
    python -m tools.release smoke [PACKAGE]   install the archives elsewhere and use them
    python -m tools.release api [PACKAGE]     what changed in public since the last tag
    python -m tools.release notes PACKAGE     the changelog's section of the version
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from release.repository import ROOT, Package, ReleaseError, Repository

if TYPE_CHECKING:
    from collections.abc import Sequence

Command = Callable[[Repository, Package, argparse.Namespace], None]


def _prepare(repository: Repository, package: Package, options: argparse.Namespace) -> None:
    from release.prepare import plan  # noqa: PLC0415  # smoke has to start without griffe

    made = plan(
        repository,
        package,
        options.version,
        day=datetime.now(UTC).date(),
        branch=options.branch,
        accept_breaking=options.accept_breaking,
    )
    print(made.diff(repository.root), end="")
    for remark in made.remarks:
        print(f"note: {remark}")
    title = f"Release {package.name} {made.version}"
    if options.dry_run:
        print("dry run: nothing is written")
        return
    made.write()
    paths = " ".join(path.relative_to(repository.root).as_posix() for path in made.edits)
    print(f"then: git commit -m {title!r} -- {paths}")
    print(f"once it is on {options.branch}: python -m tools.release tag {package.name}")


def _tag(repository: Repository, package: Package, options: argparse.Namespace) -> None:
    from release.prepare import tag  # noqa: PLC0415  # smoke has to start without griffe

    made = tag(repository, package, branch=options.branch, dry=options.dry_run)
    print(f"dry run: HEAD would be tagged {made}" if options.dry_run else f"tagged HEAD as {made}")
    print(f"then: git push origin {made}")


def _build(repository: Repository, package: Package, options: argparse.Namespace) -> None:
    from release.build import build  # noqa: PLC0415  # a command imports what it runs

    for path in build(repository, package, options.dist):
        print(f"built twice, the same bytes: {path}")


def _check(repository: Repository, package: Package, options: argparse.Namespace) -> None:
    from release.check import problems  # noqa: PLC0415  # smoke has to start without packaging

    found = problems(repository, package, options.dist, tag=options.tag)
    if found:
        raise ReleaseError("\n".join(found))
    print(
        f"{package.name} {package.version}: archives, metadata, README and changelog are in order"
    )


def _smoke(repository: Repository, package: Package, options: argparse.Namespace) -> None:
    from release.smoke import smoke  # noqa: PLC0415  # a command imports what it runs

    say = partial(print, flush=True)
    smoke(package, options.dist, python=options.python, pins=options.constraints, say=say)


def _api(repository: Repository, package: Package, options: argparse.Namespace) -> None:
    from release.api import compare  # noqa: PLC0415  # smoke has to start without griffe

    report = compare(repository, package)
    print(report.text)
    prepared = report.since is not None and package.version != report.since[0]
    small = report.too_small(package.version) if prepared else ""
    if small:
        raise ReleaseError(small)


def _notes(repository: Repository, package: Package, options: argparse.Namespace) -> None:
    from release import changelog  # noqa: PLC0415  # a command imports what it runs

    history = changelog.read(package.changelog)
    section = history.release(package.version)
    if section is None and not options.dry_run:
        raise ReleaseError(f"{package.name}/CHANGELOG.md: no section for {package.version}")
    print((section or history.unreleased).body.strip())


COMMANDS: Final[dict[str, tuple[Command, str]]] = {
    "prepare": (_prepare, "edit version, changelog, and what other packages ask of core"),
    "tag": (_tag, "tag HEAD as the release that was prepared"),
    "build": (_build, "build the archives twice and compare them"),
    "check": (_check, "look for mistakes in the archives and their metadata"),
    "smoke": (_smoke, "install the archives outside the tree and use them"),
    "api": (_api, "show what changed in public since the last tag"),
    "notes": (_notes, "print the changelog's section of the version"),
}


def parser() -> argparse.ArgumentParser:
    """Give the parser of the command line."""
    top = argparse.ArgumentParser(
        prog="python -m tools.release", description="Release a package of the workspace."
    )
    commands = top.add_subparsers(dest="command", required=True)
    made = {name: commands.add_parser(name, help=text) for name, (_, text) in COMMANDS.items()}
    for name in ("prepare", "tag", "notes"):
        made[name].add_argument("package", nargs=1, metavar="PACKAGE")
    for name in ("build", "check", "smoke", "api"):
        made[name].add_argument("package", nargs="*", metavar="PACKAGE", help="default: all")
    made["prepare"].add_argument("version", metavar="VERSION", help="major, minor, patch or X.Y.Z")
    made["prepare"].add_argument("--accept-breaking", action="store_true")
    for name in ("prepare", "tag"):
        made[name].add_argument("--branch", default="main", help="where releases are made from")
        made[name].add_argument("--dry-run", action="store_true", help="change nothing")
    made["notes"].add_argument("--dry-run", action="store_true", help="or what is unreleased")
    for name in ("build", "check", "smoke"):
        made[name].add_argument("--dist", type=Path, default=Path("dist"), help="default: dist")
    made["check"].add_argument("--tag", help="the tag that the archives are released by")
    made["smoke"].add_argument("--python", default=sys.executable, help="the Python to try")
    made["smoke"].add_argument("--constraints", type=Path, help="versions of what it needs")
    return top


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the command line."""
    options = parser().parse_args(argv)
    repository = Repository(root)
    failed = False
    try:
        names: list[str] = options.package
        found = [repository.package(name) for name in names] or repository.packages()
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 2
    for package in found:
        try:
            COMMANDS[options.command][0](repository, package, options)
        except ReleaseError as error:
            print(error, file=sys.stderr)
            failed = True
    return 1 if failed else 0
