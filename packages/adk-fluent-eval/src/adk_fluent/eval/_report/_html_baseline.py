"""What the page says of a report against its baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from adk_fluent.eval._report._text import shorten
from adk_fluent.eval._report._words import (
    change,
    count,
    measured,
    percent,
    plural,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.eval._report._compare import Delta, RegressionReport
    from adk_fluent.eval._report._report import FluentEvalReport

_REMOVED: Final = 200
_ID: Final = 300


def changes(compared: RegressionReport | None) -> dict[str, str]:
    """Case to what became of it since: ``regressed``, ``improved`` or ``added``."""
    if compared is None:
        return {}
    return {
        **dict.fromkeys(compared.added, "added"),
        **{each.id: "improved" for each in compared.improved},
        **{each.id: "regressed" for each in compared.regressed},
    }


def comparison(
    now: FluentEvalReport, before: FluentEvalReport, compared: RegressionReport
) -> dict[str, Any]:
    """What the template needs of the comparison."""
    return {
        "ok": compared.ok,
        "verdict": _verdict(compared),
        "power": _power(compared),
        "changes": [
            {
                "kind": kind,
                "sign": sign,
                "number": count(number),
                "word": kind,
                "href": f"#change={kind}" if number and kind != "removed" else "",
            }
            for kind, sign, number in (
                ("regressed", "↓", len(compared.regressed)),
                ("improved", "↑", len(compared.improved)),
                ("added", "+", len(compared.added)),
                ("removed", "-", len(compared.removed)),
            )
        ],
        "rows": list(_rows(now, before, compared)),
        "removed": list(_removed(compared.removed)),
    }


def _verdict(compared: RegressionReport) -> str:
    if not compared.compared:
        return "No case can be compared with the baseline."
    worse, better = len(compared.regressed), len(compared.improved)
    of = f"of {plural(compared.compared, 'case')} in both"
    if not worse and not better:
        return f"None {of} passes more or less often than before."
    told = f"{count(worse)} {of} got worse" if worse else f"None {of} got worse"
    told += f", {count(better)} better" if better else ""
    chance = "no accident" if compared.significant else "which may be accident"
    return f"{told}: {chance} (p = {compared.p_value:.3g})."


def _power(compared: RegressionReport) -> str:
    """How small a change so many cases can tell."""
    if not compared.compared:
        return ""
    told = (
        "With so few cases, no drop of the pass rate can be told from accident."
        if compared.detectable > 1
        else f"With so many cases, a drop of the pass rate by {percent(compared.detectable)} or"
        " more can be told from accident."
    )
    if compared.uneven:
        told += (
            f" {plural(compared.uneven, 'case')} ran more often in one than in the other: the first"
            " runs are compared, as many as both have."
        )
    return told


def _rows(
    now: FluentEvalReport, before: FluentEvalReport, compared: RegressionReport
) -> Iterator[list[str]]:
    """Figure, now, in the baseline, the difference, and whether that is better or worse."""
    if compared.compared:
        rate, was = compared.now, compared.before
        yield [
            *("Pass rate of cases in both", percent(rate), percent(was)),
            *(_points(rate, was), _direction(rate, was)),
        ]
    yield _row("Tokens", now.tokens.total, before.tokens.total, "tokens")
    yield _row("Cost", now.cost_usd, before.cost_usd, "USD")
    yield _row("Time", now.duration_s, before.duration_s, "s")


def _row(name: str, now: float | None, before: float | None, unit: str) -> list[str]:
    return [name, measured(now, unit), measured(before, unit), change(now, before, unit), ""]


def moved(delta: Delta | None) -> dict[str, str] | None:
    """How a metric's mean moved since the baseline; None if that is not known."""
    if delta is None:
        return None
    told = change(delta.now, delta.before, delta.unit)
    if not told or delta.direction == "same":
        return {"text": "as before", "direction": ""}
    return {"text": told, "direction": delta.direction}


def moved_share(delta: Delta | None) -> dict[str, str] | None:
    """How a tag's pass rate moved since the baseline; None if that is not known."""
    if delta is None:
        return None
    told = _points(delta.now, delta.before)
    return {"text": told or "as before", "direction": _direction(delta.now, delta.before)}


def _points(now: float, before: float) -> str:
    told = change(round(now * 100, 1), round(before * 100, 1))
    return f"{told} points" if told else ""


def _direction(now: float, before: float) -> str:
    return "" if now == before else "better" if now > before else "worse"


def _removed(ids: tuple[str, ...]) -> Iterator[str]:
    for each in ids[:_REMOVED]:
        yield shorten(each, _ID)
    if len(ids) > _REMOVED:
        yield f"… and {count(len(ids) - _REMOVED)} more"
