"""The page of runs of ``adk-fluent status --html``: one file that loads and runs nothing."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Final

from adk_fluent.distributed._summaries import STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adk_fluent.distributed._summaries import RunSummary, WorkerSummary

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --failed: #c5221f; --waiting: #b06000;
  --running: #1a73e8; --completed: #188038; }
@media (prefers-color-scheme: dark) { :root { --failed: #f28b82; --waiting: #fdd663;
  --running: #8ab4f8; --completed: #81c995; } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 76rem;
  padding: 0 1rem; }
h1 { font-size: 1.3rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 2rem 0 .5rem; }
p { margin: .25rem 0 1rem; opacity: .8; }
fieldset { border: 0; padding: 0; margin: 0 0 1rem; display: flex; flex-wrap: wrap; gap: .5rem; }
label { border: 1px solid var(--line); border-radius: 1rem; padding: .1rem .8rem; cursor: pointer; }
label:has(:checked) { background: var(--line); font-weight: 600; }
label:focus-within { outline: 2px solid var(--running); }
input { position: absolute; opacity: 0; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .8rem .3rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
.failed .s { color: var(--failed); } .waiting .s { color: var(--waiting); }
.running .s { color: var(--running); } .completed .s { color: var(--completed); }
.s { font-weight: 600; }
@media (max-width: 48rem) {
  thead { display: none; }
  tr { display: block; padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td, td.n { display: block; border: 0; padding: 0; text-align: left; }
  td:empty { display: none; }
  td[data-of]::before { content: attr(data-of) ": "; opacity: .7; }
}
"""


def page(
    url: str,
    runs: Sequence[RunSummary],
    workers: Sequence[WorkerSummary],
    *,
    limit: int,
    now: float,
) -> str:
    """Return the page as HTML.

    Args:
        url: The database, as it may be shown.
        runs: Its runs.
        workers: Its workers.
        limit: How many runs were asked for.
        now: When they were read; seconds since 1970.
    """
    counts = Counter(each.status for each in runs)
    there = [each for each in STATUSES if counts[each]]
    rules = "\n".join(
        f"body:has(#only-{each}:checked) tr.run:not(.{each}) {{ display: none; }}" for each in there
    )
    more = f", the newest {limit:,}" if len(runs) >= limit else ""
    filters = [_filter("all", f"all {len(runs):,}", checked=True)]
    filters += [_filter(each, f"{each} {counts[each]:,}") for each in there]
    by_status = sorted(runs, key=lambda each: STATUSES.index(each.status))
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Runs of {escape(url)}</title>
<style>{_STYLE}{rules}</style>
<body>
<h1>Runs of {escape(url)}</h1>
<p>{len(runs):,} runs{more}, as of {_time(now)}</p>
<fieldset aria-label="Show">{"".join(filters)}</fieldset>
{_table("Run Status Segment Calls Changed Worker Note", map(_run, by_status), len(runs), "runs")}
<h2>Workers</h2>
{_table("Worker Segments Silent", map(_worker, workers), len(workers), "workers")}
</body>
</html>
"""


def _filter(name: str, text: str, *, checked: bool = False) -> str:
    mark = " checked" if checked else ""
    return f'<label><input type="radio" name="only" id="only-{name}"{mark}>{text}</label>'


def _table(heads: str, rows: Iterable[str], count: int, what: str) -> str:
    if not count:
        return f"<p>There are no {what}.</p>"
    head = "".join(f'<th scope="col">{each}</th>' for each in heads.split())
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{''.join(rows)}</tbody></table>"


def _run(run: RunSummary) -> str:
    return (
        f'<tr class="run {run.status}"><td>{escape(run.run_id)}</td><td class="s">{run.status}</td>'
        f'<td data-of="in">{escape(run.segment)}</td><td class="n" data-of="calls">{run.calls}</td>'
        f'<td data-of="changed">{_time(run.changed)}</td>'
        f"<td{_of('worker', run.worker)}</td><td>{escape(run.note)}</td></tr>\n"
    )


def _worker(worker: WorkerSummary) -> str:
    status = f"{worker.silent:.0f} s" if worker.is_alive else f"{worker.silent:.0f} s, dead"
    return (
        f'<tr class="{"" if worker.is_alive else "failed"}"><td>{escape(worker.id)}</td>'
        f"<td>{escape(', '.join(worker.segments))}</td>"
        f'<td class="s" data-of="silent">{status}</td></tr>\n'
    )


def _of(name: str, text: str) -> str:
    return f' data-of="{name}">{escape(text)}' if text else ">"


def _time(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
