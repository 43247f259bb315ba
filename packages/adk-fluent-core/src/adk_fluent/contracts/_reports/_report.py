"""What a check found, as a whole."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.contracts._reports._diagnostic import Severity
from adk_fluent.contracts._reports._render import render_report
from adk_fluent.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from adk_fluent.contracts._opaque import Opaque
    from adk_fluent.contracts._reports._diagnostic import Diagnostic

#: Version of what `to_dict` gives.
FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class ContractReport:
    """What a check found; iterating gives the findings, the worst first.

    Attributes:
        diagnostics: The findings: by severity, then by place; the same check twice gives the same.
        opaque: What no checker could see into.
        checked: Names of the checkers that ran.
        absent: Layers the pipeline needs whose checkers could not run.
        allowed: Findings that are meant to be so, as `.allow(...)` says; they are in nothing else.
    """

    diagnostics: tuple[Diagnostic, ...] = ()
    opaque: tuple[Opaque, ...] = ()
    checked: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    allowed: tuple[Diagnostic, ...] = ()

    @classmethod
    def of(
        cls,
        diagnostics: Iterable[Diagnostic],
        *,
        opaque: tuple[Opaque, ...] = (),
        checked: tuple[str, ...] = (),
        absent: tuple[str, ...] = (),
    ) -> ContractReport:
        """A report over findings in any order; one that was found twice is kept once."""
        distinct = sorted(dict.fromkeys(diagnostics), key=_rank)
        found = tuple(each for each in distinct if not each.allowed)
        allowed = tuple(each for each in distinct if each.allowed)
        return cls(found, opaque, checked, absent, allowed)

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.errors

    @property
    def proven(self) -> bool:
        """Whether what was `checked` holds in every run: nothing is opaque, and nothing in doubt.

        No run then finds a key without a value, or of another type, that it says it reads.
        """
        if not self.ok or self.opaque or self.absent:
            return False
        return not any(each.doubtful for each in (*self.diagnostics, *self.allowed))

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings that are errors."""
        return tuple(d for d in self.diagnostics if d.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """The findings that are warnings."""
        return tuple(d for d in self.diagnostics if d.severity is Severity.WARNING)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.diagnostics)

    def __str__(self) -> str:
        return self.render()

    def render(self, *, color: bool = False, source: bool = True) -> str:
        """The report for people, as rustc and ruff write it.

        Args:
            color: With ANSI colours.
            source: With the source lines, where they can be read.
        """
        return render_report(self.diagnostics, self.opaque, color=color, source=source)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON values."""
        return {
            "format": FORMAT,
            "ok": self.ok,
            "proven": self.proven,
            "diagnostics": [each.to_dict() for each in self.diagnostics],
            "opaque": [each.to_dict() for each in self.opaque],
            "checked": list(self.checked),
            "absent": list(self.absent),
            "allowed": [each.to_dict() for each in self.allowed],
        }

    def to_json(self) -> str:
        """The report as JSON text, for programs."""
        return json.dumps(self.to_dict(), indent=2)

    def to_sarif(self) -> str:
        """The findings as a SARIF 2.1.0 log, which code hosts show beside the code."""
        from adk_fluent.contracts._reports._formats import to_sarif  # noqa: PLC0415  # seldom needed

        return to_sarif(self.diagnostics)

    def to_github(self) -> str:
        """The findings as workflow commands of GitHub Actions, one a line."""
        from adk_fluent.contracts._reports._formats import to_github  # noqa: PLC0415  # seldom needed

        return to_github(self.diagnostics)

    def raise_for_errors(self) -> None:
        """Do nothing if the report is `ok`.

        Raises:
            ContractError: There are errors; it carries this report.
        """
        if self.ok:
            return
        worst, *others = self.errors
        more = f" ({len(others)} more in .report)" if others else ""
        raise ContractError(
            f"the pipeline breaks its contracts: {worst.message}{more}",
            report=self,
            node=worst.node,
            location=worst.location,
            help=worst.help,
        )


def _rank(each: Diagnostic) -> tuple[Any, ...]:
    place = each.location
    where = (1, "", 0) if place is None else (0, place.file, place.line)
    return (-each.severity, *where, each.code, each.path, each.message)
