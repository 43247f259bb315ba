"""What changed in ADK's models between two versions, and what a person has to look at."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from codegen.snapshots import Field, Snapshot

#: ``auto-merge``: nothing that worked can stop working. ``BREAKING``: a person has to review it.
Verdict: TypeAlias = Literal["auto-merge", "BREAKING"]

#: What of a field is compared; its docstring and the class that declares it may change at will.
COMPARED: Final = ("type", "default", "deprecated")


@dataclass(frozen=True, slots=True)
class Appeared:
    """A field that only one of both versions has."""

    model: str
    field: str
    type: str
    default: str
    verdict: Verdict

    def __str__(self) -> str:
        default = "" if self.default == "required" else f" = {self.default}"
        return f"{self.model}.{self.field}: {self.type}{default}"


@dataclass(frozen=True, slots=True)
class Changed:
    """A field that both versions have, and what of it differs."""

    model: str
    field: str
    what: str
    old: Any
    new: Any
    verdict: Verdict = "BREAKING"

    def __str__(self) -> str:
        return f"{self.model}.{self.field}, {self.what}: {self.old} -> {self.new}"


@dataclass(frozen=True, slots=True)
class DiffReport:
    """The difference between two versions of ADK (v4, section 3.5).

    Attributes:
        adk_version: The newer version.
        since: The older one.
        added: Fields that only the newer one has.
        removed: Fields that only the older one has.
        changed: Fields that differ.
    """

    adk_version: str
    since: str
    added: list[Appeared] = field(default_factory=list[Appeared])
    removed: list[Appeared] = field(default_factory=list[Appeared])
    changed: list[Changed] = field(default_factory=list[Changed])

    @property
    def verdict(self) -> Verdict:
        """The worst of all verdicts."""
        entries = (*self.added, *self.removed, *self.changed)
        return "BREAKING" if any(e.verdict == "BREAKING" for e in entries) else "auto-merge"

    @property
    def json(self) -> str:
        """The report for programs."""
        head = {"adk_version": self.adk_version, "since": self.since, "verdict": self.verdict}
        return json.dumps({**head, **asdict(self)}, indent=2) + "\n"

    @property
    def text(self) -> str:
        """The report for people."""
        return "\n".join([*self._lines(), ""])

    def _lines(self) -> Iterator[str]:
        yield f"google-adk {self.since} -> {self.adk_version}: {self.verdict}"
        for title in ("added", "removed", "changed"):
            entries: list[Appeared | Changed] = getattr(self, title)
            if entries:
                yield f"\n{title}"
                yield from (f"  {entry.verdict:<10}  {entry}" for entry in entries)

    def files(self) -> dict[str, str]:
        """Both forms, by the name of their file."""
        name = f"ir_diff_{self.adk_version}"
        return {f"{name}.json": self.json, f"{name}.txt": self.text}

    def save(self, folder: Path) -> list[Path]:
        """Write both forms into a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / name for name in self.files()]
        for path, text in zip(paths, self.files().values(), strict=True):
            path.write_text(text, "utf-8", newline="\n")
        return paths


def compare(old: Snapshot, new: Snapshot) -> DiffReport:
    """Compare two versions."""
    report = DiffReport(new.version, old.version)
    for model in sorted({*old.classes, *new.classes}):
        before, after = old.classes.get(model, {}), new.classes.get(model, {})
        for name in after.keys() - before.keys():
            report.added.append(_appeared(model, after[name], _added(after[name])))
        for name in before.keys() - after.keys():
            report.removed.append(_appeared(model, before[name], "BREAKING"))
        for name in before.keys() & after.keys():
            report.changed.extend(_changes(model, before[name], after[name]))
    for entries in (report.added, report.removed, report.changed):
        entries.sort(key=lambda entry: (entry.model, entry.field))
    return report


def _added(new: Field) -> Verdict:
    """A field that must be set breaks everyone who does not."""
    return "BREAKING" if new.default == "required" else "auto-merge"


def _appeared(model: str, it: Field, verdict: Verdict) -> Appeared:
    return Appeared(model, it.name, it.type, it.default, verdict)


def _changes(model: str, old: Field, new: Field) -> Iterator[Changed]:
    for what in COMPARED:
        before, after = getattr(old, what), getattr(new, what)
        if before != after:
            yield Changed(model, new.name, what, before, after)
