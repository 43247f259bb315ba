"""A recording as one page of HTML, which loads nothing and trusts nothing that it shows."""

from __future__ import annotations

import base64
import html
import json
from dataclasses import replace
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.debug._compare import first_difference, shown
from adk_fluent.debug._diff import diff_events
from adk_fluent.debug._html_data import PageData

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.debug._html_data import Recorded

Data = dict[str, Any]

_PACKAGE: Final = "adk_fluent.debug"
#: What could end the element in which the data stands; JSON has another spelling of each.
_ESCAPED: Final = {ord(each): f"\\u{ord(each):04x}" for each in "<>&"}


def html_page(recording: Recorded, against: Recorded | None = None) -> str:
    """Return a recording as a page; the same recording gives the same page.

    Args:
        recording: What is shown.
        against: What is shown beside it, with the first difference marked.
    """
    data = json.dumps(_data(recording, against)).translate(_ESCAPED)
    style, script = _read("viewer.css"), _read("viewer.js")
    name = "recording" if recording.path is None else recording.path.name
    return Template(_read("viewer.html")).substitute(
        title=html.escape(name if name.isprintable() else repr(name)),
        style_hash=_hash(style),
        script_hash=_hash(script),
        style=style,
        script=script,
        data=data,
    )


def _data(recording: Recorded, against: Recorded | None) -> Data:
    page = PageData(recording)
    if against is None:
        return {"sides": [page.to_dict()]}
    other = PageData(against)
    diff = diff_events(recording.events, against.events)
    found = list(_requests(page, other))
    for lane, change in diff.by_lane.items():
        rows = [_at(each.by_lane.get(lane, []), change.index) for each in (page, other)]
        numbers = [
            side.rows[row]["number"]  # of all events, not of its lane
            for side, row in zip((page, other), rows, strict=True)
            if row is not None
        ]
        counted = replace(change, index=numbers[0])
        found.append({"rows": rows, "text": str(counted)})
    if diff.first is not None and not diff.by_lane:
        rows = [_at(each.events, diff.first.index) for each in (page, other)]
        found.append({"rows": rows, "text": diff.summary})
    found.sort(key=lambda each: min(at for at in each["rows"] if at is not None))
    return {
        "sides": [page.to_dict(), other.to_dict()],
        "differences": found,
        "summary": diff.summary,
    }


def _requests(page: PageData, other: PageData) -> Iterator[Data]:
    """For each agent and branch of each run the first model call that was asked something else."""
    for lane, calls in page.calls.items():
        for number, ((row, call), (beside, now)) in enumerate(
            zip(calls, other.calls.get(lane, ()), strict=False), start=1
        ):
            same = call.request == now.request  # which is quick to tell
            change = None if same else first_difference(call.request, now.request)
            if change is not None:
                was, has = shown(change.recorded), shown(change.now)
                what = f"the prompt of model call {number} of {call.agent_name}"
                text = f"{what} differs at {change.path}: {was} -> {has}"
                yield {"rows": [row, beside], "text": text}
                break


def _at(rows: list[int], index: int) -> int | None:
    return rows[index] if index < len(rows) else None


def _read(name: str) -> str:
    return files(_PACKAGE).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    from hashlib import sha256  # noqa: PLC0415  # OpenSSL, which is slow to import

    return base64.b64encode(sha256(text.encode()).digest()).decode()
