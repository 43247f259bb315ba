"""Reports for people: laid out like rustc's, findings first, one summary line last."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from adk_fluent.contracts._reports._diagnostic import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.contracts._opaque import Opaque
    from adk_fluent.contracts._reports._diagnostic import Diagnostic, Related
    from adk_fluent.ir import Location

_STYLES: Final = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "info": "\x1b[1;36m",
    "strong": "\x1b[1m",
    "frame": "\x1b[1;34m",
}
_END: Final = "\x1b[0m"
_WIDTH: Final = 120


def render_report(
    diagnostics: Sequence[Diagnostic], opaque: Sequence[Opaque], *, color: bool, source: bool
) -> str:
    """The whole report as text, without a newline at its end."""
    page = _Page(color=color, source=source)
    blocks = ["\n".join(page.block(each)) for each in diagnostics]
    return "\n\n".join([*blocks, "\n".join(_summary(diagnostics, opaque))])


class _Page:
    """How findings are written: with or without colour and source lines."""

    def __init__(self, *, color: bool, source: bool) -> None:
        self.color = color
        self.source = source
        self.base = Path.cwd()
        self.lines: dict[Location, str | None] = {}
        self.files: dict[str, str] = {}

    def block(self, each: Diagnostic) -> Iterator[str]:
        """The lines of one finding."""
        level = str(each.severity)
        head = self.paint(level, f"{level}[{each.code}]")
        yield head + self.paint("strong", f": {_plain(each.message)}")
        excerpt = self.excerpt(each.location)
        margin = " " * (len(str(each.location.line)) if excerpt and each.location else 1)
        if each.location is not None:
            yield f"{margin}{self.paint('frame', '-->')} {self.place(each.location)}"
        elif each.path:
            yield f"{margin}{self.paint('frame', '-->')} {_plain(each.path)}"
        if excerpt and each.location is not None:
            bar = self.paint("frame", "|")
            yield f"{margin} {bar}"
            yield f"{self.paint('frame', str(each.location.line))} {bar} {excerpt}"
            yield f"{margin} {bar}"
        for related in each.related:
            yield self.note(margin, "note", self.related(related))
        if each.help:
            yield self.note(margin, "help", _plain(each.help))

    def note(self, margin: str, label: str, text: str) -> str:
        return f"{margin} {self.paint('frame', '=')} {self.paint('strong', label)}: {text}"

    def related(self, each: Related) -> str:
        text = _plain(each.message)
        if each.location is not None:
            return f"{text} ({self.place(each.location)})"
        known = not each.node or f"`{each.node}`" in each.message
        return text if known else f"{text} (`{_plain(each.node or '')}`)"

    def place(self, location: Location) -> str:
        """The place as an editor opens it: below the working directory, by a relative path."""
        shown = self.files.get(location.file)
        if shown is None:
            path = Path(location.file)
            near = path.is_relative_to(self.base)
            shown = _plain(str(path.relative_to(self.base) if near else location.file))
            self.files[location.file] = shown
        return f"{shown}:{location.line}"

    def excerpt(self, location: Location | None) -> str | None:
        """The source line, if there is one to show."""
        if location is None or not self.source:
            return None
        if location not in self.lines:
            self.lines[location] = _source_line(location)
        return self.lines[location]

    def paint(self, style: str, text: str) -> str:
        return f"{_STYLES[style]}{text}{_END}" if self.color else text


def _source_line(location: Location) -> str | None:
    """A line of Python source or of a notebook's cell; of nothing else, whatever a file claims."""
    if not location.file.endswith(".py") and location.file not in linecache.cache:
        return None
    try:
        linecache.checkcache(location.file)
        line = _plain(linecache.getline(location.file, location.line).strip().expandtabs(4))
    except ValueError:  # no path at all, such as one with a null byte
        return None
    return line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..."


def _plain(text: str) -> str:
    """Text that cannot move the cursor or change colours, whoever chose the names in it."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _summary(diagnostics: Sequence[Diagnostic], opaque: Sequence[Opaque]) -> Iterator[str]:
    counts = dict.fromkeys(sorted(Severity, reverse=True), 0)
    for each in diagnostics:
        counts[each.severity] += 1
    parts = [
        f"{count} {level}{'s' if count > 1 and level is not Severity.INFO else ''}"
        for level, count in counts.items()
        if count
    ]
    yield f"Found {', '.join(parts)}." if parts else "Found nothing wrong."
    if opaque and not counts[Severity.ERROR]:
        first = opaque[0]
        names = {each.node for each in opaque}
        others = len(names) - 1
        more = f" and {others} other{'s' if others > 1 else ''}" if others else ""
        yield f"Not proven because of `{_plain(first.node)}`{more}: {_plain(first.why)}."
