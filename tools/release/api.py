"""What changed in the public surface of a package since its last release."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, Literal

import griffe

from release.surface import Item, Surface, surface

if TYPE_CHECKING:
    from collections.abc import Iterator

    from release.repository import Package, Repository
    from release.versions import Version

Kind = Literal["removed", "changed", "added"]

#: What griffe reports and `_changes` finds itself, with the names that users know.
_OURS: Final = {griffe.BreakageKind.OBJECT_REMOVED, griffe.BreakageKind.OBJECT_CHANGED_KIND}


@dataclass(frozen=True, slots=True)
class Change:
    """One difference.

    Attributes:
        kind: What happened.
        path: What users call the thing.
        breaking: Whether it can break code that uses it.
        old: What it was, empty when it is new.
        new: What it is, empty when it is gone.
        why: What makes it breaking, when that is no removal.
        others: How many other names of it changed in the same way.
    """

    kind: Kind
    path: str
    breaking: bool
    old: str = ""
    new: str = ""
    why: str = ""
    others: int = 0

    def __str__(self) -> str:
        others = f" (and {self.others} other names of it)" if self.others else ""
        word = "BREAKING " if self.breaking else ""
        lines = [f"{word}{self.kind}: {self.path}{others}"]
        lines += [f"  was: {self.old}"] if self.old else []
        lines += [f"  now: {self.new}"] if self.new else []
        lines += [f"  why: {self.why}"] if self.why else []
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Report:
    """The comparison of a package with its last release.

    Attributes:
        package: The package.
        since: The last release and its tag; None before the first.
        names: How many public names there are.
        changes: What differs, the worst first.
    """

    package: Package
    since: tuple[Version, str] | None
    names: int
    changes: tuple[Change, ...] = ()

    @property
    def least(self) -> Version | None:
        """The least version that these changes ask for; None before the first release."""
        if self.since is None:
            return None
        return self.since[0].next(
            breaking=any(each.breaking for each in self.changes),
            added=any(each.kind == "added" for each in self.changes),
        )

    def too_small(self, version: Version) -> str:
        """Say why a version is too small for the changes; empty when it is not."""
        if not self.changes or self.since is None or self.least is None or version >= self.least:
            return ""
        breaking = sum(each.breaking for each in self.changes)
        what = f"{breaking} breaking" if breaking else f"{len(self.changes)}"
        return (
            f"{self.package.name}: {version} is too small for {what} change(s) to the public API "
            f"since {self.since[0]}; the least is {self.least}"
        )

    @property
    def text(self) -> str:
        """The report for people."""
        name = self.package.name
        if self.since is None:
            tag = f"{name}-v*"
            return f"{name}: no tag {tag} to compare with; {self.names} public names"
        lines = [f"{name}: public API since {self.since[1]}, {self.names} names"]
        lines += map(str, self.changes)
        breaking = sum(each.breaking for each in self.changes)
        count = f"{len(self.changes)} change(s), {breaking} breaking"
        lines.append(f"{count}; the next release is {self.least} or later")
        return "\n".join(lines)


def compare(repository: Repository, package: Package) -> Report:
    """Compare the working tree with the last release before HEAD.

    Raises:
        ReleaseError: git cannot give the sources of that release.
    """
    since = repository.last_tag(package)
    with TemporaryDirectory() as folder:
        paths = {name: Path(folder, name) for name in ("old", "new")}
        for path in paths.values():
            path.mkdir()
        new = surface(repository, package, None, paths["new"])
        if since is None:
            return Report(package, None, len(new.items))
        old = surface(repository, package, since[1], paths["old"])
        return Report(package, since, len(new.items), tuple(differences(old, new)))


def differences(old: Surface, new: Surface) -> list[Change]:
    """What differs, the worst first; a thing with several names is told once."""
    told: dict[tuple[object, ...], list[Change]] = defaultdict(list)
    for home, change in _changes(old, new):
        told[home, change.kind, change.old, change.new].append(change)
    changes: list[Change] = []
    for group in told.values():
        first = min(group, key=lambda each: (each.path.count("."), each.path))
        worst = any(each.breaking for each in group)
        changes.append(replace(first, others=len(group) - 1, breaking=worst))
    order: list[Kind] = ["removed", "changed", "added"]
    return sorted(changes, key=lambda each: (not each.breaking, order.index(each.kind), each.path))


def _changes(old: Surface, new: Surface) -> Iterator[tuple[str, Change]]:
    reasons = _reasons(old, new)
    gone = old.items.keys() - new.items.keys()
    for item in (old.items[path] for path in gone):
        if item.owner not in gone:
            yield item.home, Change("removed", item.path, breaking=True, old=item.text)
    for path, item in new.items.items():
        before = old.items.get(path)
        if before is None:
            if item.owner in old.items or item.owner not in new.items:
                yield item.home, _addition(item, old)
        elif before.text != item.text:
            why = _why_changed(before, item, new, reasons.get(item.home, ""))
            yield item.home, Change("changed", path, bool(why), before.text, item.text, why)


def _why_changed(old: Item, new: Item, there: Surface, reason: str) -> str:
    """Why a change is breaking; empty when nothing says that it is."""
    owner = there.items.get(new.owner)
    if new.path.startswith("oldest "):
        return "a supported version is dropped"
    if reason:
        return reason
    if old.text.split(" ", 1)[0] != new.text.split(" ", 1)[0]:
        return "it is another kind of thing"
    if old.value != new.value and owner is not None and owner.text.startswith("class "):
        return "its value or default is another"  # at a module's level it is a table, and may grow
    return ""


def _addition(item: Item, old: Surface) -> Change:
    owner = old.items.get(item.owner)
    breaking = item.demanding and owner is not None and owner.text.startswith("class ")
    why = "everybody who makes or implements one has to give it" if breaking else ""
    return Change("added", item.path, breaking, new=item.text, why=why)


def _reasons(old: Surface, new: Surface) -> dict[str, str]:
    """What griffe finds breaking, by where the thing is defined."""
    reasons: dict[str, str] = {}
    for found in griffe.find_breaking_changes(old.tree, new.tree):
        if found.kind not in _OURS:
            name = getattr(found.old_value or found.new_value, "name", "")
            reason = f"{found.kind.value}{name and f': {name}'}"
            reasons.setdefault(found.obj.path, reason[0].lower() + reason[1:])
    return reasons
