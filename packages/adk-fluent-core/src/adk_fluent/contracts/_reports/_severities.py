"""How bad findings are: what whoever checks says of their codes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from adk_fluent.contracts._reports._diagnostic import CODES, Severity
from adk_fluent.contracts._reports._report import ContractReport
from adk_fluent.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.contracts._reports._diagnostic import Diagnostic

#: A severity by its name; ``"off"`` is none.
SeverityName = Literal["error", "warning", "info", "off"]
_NAMES: Final[tuple[SeverityName, ...]] = get_args(SeverityName)


def judged(
    report: ContractReport, severity: Mapping[str, Severity | SeverityName], *, strict: bool
) -> ContractReport:
    """A report with other severities.

    Args:
        report: What was found.
        severity: By code.
        strict: Warnings are errors, but for codes that `severity` names.

    Raises:
        UnknownNameError: There is no such code.
        UsageError: There is no such severity.
    """
    if not severity and not strict:
        return report
    wanted = {_code(code): _level(level) for code, level in severity.items()}
    found: list[Diagnostic] = []
    for each in report.diagnostics:
        level = wanted.get(each.code, _strictly(each.severity) if strict else each.severity)
        if level is None:  # whether it is shown or not, what it doubts is not proven
            found.append(replace(each, allowed=True))
        else:
            found.append(each if level is each.severity else replace(each, severity=level))
    return ContractReport.of(
        [*found, *report.allowed],
        opaque=report.opaque,
        checked=report.checked,
        absent=report.absent,
    )


def _strictly(severity: Severity) -> Severity:
    return Severity.ERROR if severity is Severity.WARNING else severity


def _code(code: str) -> str:
    if code in CODES:
        return code
    raise UnknownNameError(
        f"no finding has the code {code!r}",
        unknown=code,
        known=CODES,
        help="adk_fluent.contracts.CODES lists them",
    )


def _level(level: Severity | SeverityName) -> Severity | None:
    if isinstance(level, Severity):
        return level
    if level not in _NAMES:
        raise UsageError(
            "there is no such severity", found=repr(level), help=f"one of {', '.join(_NAMES)}"
        )
    return None if level == "off" else Severity[cast("str", level).upper()]
