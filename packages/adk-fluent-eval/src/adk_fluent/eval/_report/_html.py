"""The report as one page of HTML that loads nothing and trusts nothing of what it shows."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from adk_fluent.eval._report._html_baseline import changes, comparison, moved, moved_share
from adk_fluent.eval._report._html_charts import durations, scores
from adk_fluent.eval._report._html_data import BUDGET, WORST_FIRST, page_data
from adk_fluent.eval._report._text import encodable, shorten
from adk_fluent.eval._report._words import (
    NONE,
    STATUS,
    count,
    dollars,
    measured,
    percent,
    plural,
    seconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from adk_fluent.eval._outcome import CaseOutcome, Status
    from adk_fluent.eval._report._compare import Delta
    from adk_fluent.eval._report._html_data import PageData
    from adk_fluent.eval._report._report import FluentEvalReport
    from adk_fluent.eval._report._summaries import MetricSummary, TagSummary

_PARTS: Final = "adk_fluent.eval._report"
_LINES: Final = 40
_LINE: Final = 1_000
_IN_TABLE: Final = 200


def page(
    report: FluentEvalReport,
    baseline: FluentEvalReport | None = None,
    *,
    title: str | None = None,
) -> str:
    """The report as a page of HTML; the same report always gives the same page.

    It holds everything it needs, asks no network, and can be written down in UTF-8 whatever models
    have said. Long texts are cut, as are all where there are very many; the page says so.

    Args:
        report: What is shown.
        baseline: An earlier report to compare it with.
        title: The heading; None is the suite's name.
    """
    from jinja2 import Environment, StrictUndefined  # noqa: PLC0415  # slow to import
    from markupsafe import Markup  # noqa: PLC0415  # comes with it

    compared = None if baseline is None else report.compare(baseline)
    tag_deltas = {} if compared is None else compared.tag_deltas
    metric_deltas = {} if compared is None else compared.metric_deltas
    data = page_data(
        report.outcomes,
        None if baseline is None else baseline.outcomes,
        changes(compared),
        report.flaky,
    )
    counting = [each for each in report.outcomes if each.status.counts]
    script = _part("page.js")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(_part("page.html.j2"))
    made = template.render(
        **_summary(report, data),
        title=report.suite if title is None else title,
        comparison=None
        if compared is None or baseline is None
        else comparison(report, baseline, compared),
        tags=[
            _tag(each, tag_deltas.get(each.tag)) for each in _worst_first(report.per_tag.values())
        ],
        metrics=[
            _metric(each, counting, metric_deltas.get(each.name))
            for each in report.per_metric.values()
        ],
        spread=durations(report.outcomes),
        runs=_runs(report),
        style=Markup(_part("page.css")),  # noqa: S704  # ours
        script=Markup(script),  # noqa: S704  # ours
        script_hash=_hash(script),
        head=Markup(data.head),  # noqa: S704  # escaped for where it stands, see in_script
        parcels=[Markup(each) for each in data.parcels],  # noqa: S704  # as above
    )
    return encodable(made)


def _part(name: str) -> str:
    return files(_PARTS).joinpath("page", name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


# --- the summary -------------------------------------------------------------------------------


def _summary(report: FluentEvalReport, data: PageData) -> dict[str, Any]:
    counts = [(status, report.counts[status]) for status in WORST_FIRST]
    counted = report.counting
    interval = report.pass_rate_ci() if counted else None
    return {
        "verdict": _verdict(report),
        "facts": list(_facts(report)),
        "rate_text": percent(report.pass_rate) if counted else NONE,
        "counted": plural(counted, "run"),
        "share": _share(report.pass_rate if counted else None, interval),
        "interval": _interval(interval),
        "stack": list(_stack(counts)),
        "counts": [
            {
                "status": status.value,
                "sign": STATUS[status][1],
                "number": count(number),
                "word": STATUS[status][0],
            }
            for status, number in counts
            if number
        ],
        "figures": list(_figures(report)),
        "failures": list(_lines(report.failures)),
        "notes": list(_lines([*report.notes, *_cuts(data)])),
    }


def _verdict(report: FluentEvalReport) -> dict[str, str]:
    if report.interrupted:
        return {"kind": "bad", "sign": "!", "word": "Interrupted"}
    if report.ok:
        return {"kind": "good", "sign": "✓", "word": "Passed"}
    return {"kind": "bad", "sign": "✗", "word": "Failed"}


def _facts(report: FluentEvalReport) -> Iterator[tuple[str, str]]:
    for name, value in (
        ("Began", f"{report.started_at:%Y-%m-%d %H:%M} UTC"),
        ("Model", report.model),
        ("Engine", report.engine),
        ("google-adk", report.adk_version),
    ):
        if value:
            yield name, value


def _figures(report: FluentEvalReport) -> Iterator[tuple[str, str, str]]:
    cases = len({each.id for each in report.outcomes})
    runs = len(report.outcomes)
    yield "Cases", count(cases), f"in {plural(runs, 'run')}" if runs != cases else ""
    yield "Time", seconds(report.duration_s), ""
    tokens = report.tokens
    cached = f"{count(tokens.cached)} cached" if tokens.cached else ""
    yield "Tokens", count(tokens.total), cached
    each = ""
    if report.cost_usd is not None and runs:
        each = f"{dollars(report.cost_usd / runs)} a run"
    yield "Cost", dollars(report.cost_usd), each or "no prices"
    if beside := report.eval_tokens.total:
        paid = report.eval_cost_usd
        yield "Judges", f"{count(beside)} tokens", dollars(paid) if paid is not None else ""
    if runs != cases:
        yield "Flaky", count(len(report.flaky)), "passed in some runs only"


def _cuts(data: PageData) -> Iterator[str]:
    """What of the transcripts is not in the page."""
    if data.shortened:
        yield (
            f"Texts of {plural(data.shortened, 'run')} are cut short, as the transcripts are very"
            " large; the JSON report has all of them."
        )
    if data.omitted:
        yield (
            f"Transcripts of {plural(data.omitted, 'run')} are left out, as there is no more room"
            f" than about {BUDGET // 1_000_000} MB; the JSON report has all of them."
        )


def _stack(counts: Sequence[tuple[Status, int]]) -> Iterator[dict[str, Any]]:
    total = sum(number for _, number in counts) or 1
    x = 0.0
    for status, number in counts:
        width = number * 100 / total
        if number:
            label = f"{count(number)} {STATUS[status][0]}"
            yield {"status": status.value, "x": x, "width": width, "label": label}
        x += width


def _share(value: float | None, interval: tuple[float, float] | None) -> dict[str, Any]:
    low, high = interval or (None, None)
    told = f"{percent(value)} passed" if value is not None else "none was counted"
    return {
        "value": None if value is None else value * 100,
        "low": None if low is None else low * 100,
        "high": None if high is None else high * 100,
        "label": f"{told}, 95% confidence {_interval(interval)}" if interval else told,
    }


def _interval(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"{percent(interval[0])} to {percent(interval[1])}"


def _lines(lines: Sequence[str]) -> Iterator[str]:
    for line in lines[:_LINES]:
        yield shorten(line, _LINE)
    if len(lines) > _LINES:
        yield f"… and {count(len(lines) - _LINES)} more"


# --- tags, metrics and runs --------------------------------------------------------------------


def _worst_first(tags: Iterable[TagSummary]) -> list[TagSummary]:
    """The worst first; where nothing was counted, last."""
    return sorted(tags, key=lambda tag: (not tag.counting, tag.pass_rate, tag.tag))


def _tag(tag: TagSummary, delta: Delta | None) -> dict[str, Any]:
    interval = tag.ci if tag.counting else None
    value = tag.pass_rate if tag.counting else None
    return {
        "name": tag.tag,
        "href": _link(tag=tag.tag),
        "share": _share(value, interval),
        "rate": percent(value),
        "interval": "" if interval is None else f"{percent(interval[0])} - {percent(interval[1])}",
        "passed": f"{count(tag.passed)} of {count(tag.counting)}",
        "moved": moved_share(delta),
    }


def _metric(
    metric: MetricSummary, counting: Sequence[CaseOutcome], delta: Delta | None
) -> dict[str, Any]:
    unit, mean = metric.unit, metric.mean
    spread = ""
    if mean is not None and metric.min != metric.max:
        ends = f"{measured(metric.min, unit)} to {measured(metric.max, unit)}"
        spread = f"{ends}, ± {measured(metric.stdev, unit)}" if metric.stdev else ends
    tally = [
        ("failed", "✗", metric.failed, "failed"),
        ("error", "!", metric.not_evaluated, "not evaluated"),
        ("passed", "✓", metric.passed, "passed"),
    ]
    told = [(kind, sign, f"{count(number)} {word}") for kind, sign, number, word in tally if number]
    return {
        "name": metric.name,
        "href": _link(metric=metric.name),
        "mean": measured(mean, unit),
        "unit": "" if unit in {"s", "USD"} else unit,
        "spread": spread,
        "moved": moved(delta),
        "chart": scores(metric.name, counting, metric.threshold),
        "tally": told or [("skipped", "»", "informs only")],
    }


def _runs(report: FluentEvalReport) -> Iterator[dict[str, str]]:
    """The table that stands where there is no script."""
    for each in report.outcomes:
        word, sign = STATUS[each.status]
        why = each.error or " · ".join(each.reasons) or each.note
        yield {
            "status": each.status.value,
            "word": word,
            "sign": sign,
            "id": each.id,
            "run": count(each.run),
            "time": seconds(each.duration_s),
            "cost": dollars(each.cost_usd),
            "why": shorten(why, _IN_TABLE),
        }


def _link(**state: str) -> str:
    """A link that filters the cases, as the script reads it."""
    return "#" + "&".join(
        f"{name}={quote(encodable(value), safe='')}" for name, value in state.items()
    )
