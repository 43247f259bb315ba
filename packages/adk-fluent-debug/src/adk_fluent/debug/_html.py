"""A recording as one page of HTML, which loads nothing and trusts nothing that it shows."""

from __future__ import annotations

import base64
import html
import json
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.debug import _show
from adk_fluent.debug._diff import COST, counted, diff_events, first_difference, lane_of
from adk_fluent.debug._run import LLMInteraction, RemoteInteraction, ToolInteraction
from adk_fluent.extend import provided
from adk_fluent.protocol import AgentEvent, Money

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.debug._run import Recorded, RecordedRun
    from adk_fluent.debug._show import Span

Data = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cost:
    """What something cost.

    Attributes:
        usd: What is known of it, in US dollars.
        unknown: Why the rest is not known; "" if all is.
    """

    usd: Decimal = Decimal(0)
    unknown: str = ""

    def __add__(self, other: Cost) -> Cost:
        """What both cost."""
        return Cost(self.usd + other.usd, self.unknown or other.unknown)

    def __str__(self) -> str:
        if self.unknown and not self.usd:
            return "unknown"
        return f"{'at least ' if self.unknown else ''}{Money(self.usd)}"


class Costs:
    """What that cost which was done in a recording: as was noted, or by an installed price book.

    Args:
        recorded_at: When it was made, as in its metadata.
    """

    def __init__(self, recorded_at: str) -> None:
        self._at = datetime.now(UTC)
        with suppress(ValueError):
            self._at = datetime.fromisoformat(recorded_at)
            self._at = self._at.replace(tzinfo=self._at.tzinfo or UTC)
        books = [each.object for each in provided("price_books")]
        self._book: Any = books[0] if books else None
        if books and not hasattr(self._book, "price"):
            self._book = self._book()

    def of_event(self, event: AgentEvent) -> Cost | None:
        """What was noted on an event; None if nothing was."""
        text = event.custom_metadata.get(COST, "[]")
        try:
            costs = [_of_record(each) for each in cast("list[Data]", json.loads(text))]
        except (TypeError, ValueError, KeyError, AttributeError, InvalidOperation):
            return Cost(unknown="what was noted cannot be read")
        return sum(costs, Cost()) if costs else None

    def of_call(self, call: LLMInteraction) -> Cost | None:
        """What a price book says of a call; None if there is none, or no tokens."""
        if self._book is None or call.usage is None:
            return None
        try:
            price: Any = self._book.price(call.model, call.usage, self._at)
        except Exception as error:  # noqa: BLE001  # somebody else's
            return Cost(unknown=f"the price book raised {type(error).__name__}: {error}")
        known = isinstance(price, Money)
        return Cost(price.usd) if known else Cost(unknown=str(getattr(price, "reason", "no price")))


def _of_record(record: Data) -> Cost:
    if "unknown" in record:
        return Cost(unknown=str(record["unknown"]) or "no price")
    usd = Decimal(record["usd"])
    return Cost(usd) if usd.is_finite() else Cost(unknown="what was noted cannot be read")


_SUMMARY: Final = 200  # characters
_GAP: Final = 0.02  # between runs on the axis, of a run


class PageData:
    """What a page shows of a recording.

    Each text stands in it once: a prompt holds those of the call before it.

    Args:
        recording: The recording.

    Attributes:
        rows: Runs, and what was done in them, in order.
        events: For each of `Recording.events` its row.
        by_lane: The same by branch and author, as `diff_events` has them.
        calls: Row and call of each model call by run, agent and branch.
    """

    def __init__(self, recording: Recorded) -> None:
        self.rows: list[Data] = []
        self.events: list[int] = []
        self.by_lane: dict[str, list[int]] = {}
        self.calls: dict[tuple[int, str, str], list[tuple[int, LLMInteraction]]] = defaultdict(list)
        self._recording = recording
        self._costs = Costs(str(recording.metadata.get("recorded_at")))
        self._texts: dict[str, int] = {}
        self._lanes: dict[str, int] = {}
        self._end = 0.0
        for number, run in enumerate(recording.runs):
            self._add_run(number, run)

    def to_dict(self) -> Data:
        """The data as JSON has it."""
        metadata = self._recording.metadata
        versions: Data = metadata.get("versions") or {}
        path = self._recording.path
        return {
            "name": "recording" if path is None else path.name,
            "about": [
                repr(self._recording)[len("<Recording: ") : -1],
                *([f"recorded {metadata['recorded_at']}"] if metadata.get("recorded_at") else ()),
                *(f"{name} {version}" for name, version in versions.items() if "adk" in name),
                *(["edited after it was recorded"] if self._recording.edited else ()),
            ],
            "end": self._end,
            "lanes": list(self._lanes),
            "texts": list(self._texts),
            "rows": self.rows,
        }

    # --- a run ---------------------------------------------------------------------------------

    def _add_run(self, number: int, run: RecordedRun) -> None:
        length, status, message = _show.duration(run), run.status or "cut off", _show.said(run)
        offset = self._end + (length * _GAP if number else 0)
        self._end = offset + max([length, *(each["end"] for each in run.spans)])
        head: Data = {
            "kind": "run",
            "label": f"run {number}",
            "start": offset,
            "end": self._end,
            "status": "error" if run.status in {"", "failed"} else "ok",
            "summary": f"{status}, {_show.cut(message, _SUMMARY)}" if message else status,
            "state": [] if run.state is None else self._state({}, run.state),
        }
        self.rows.append(head)
        noted, costs = any(COST in each.custom_metadata for each in run.events), list[Cost]()
        state = None if run.state is None else dict(run.state)
        for lane, span in _show.rows(run):
            row, what = self._row(span, offset, lane.name), span.what
            cost = None
            if isinstance(what, LLMInteraction):
                self._add_model(row, what)
                self.calls[number, lane.agent, lane.branch].append((len(self.rows), what))
                cost = None if noted else self._costs.of_call(what)
            elif isinstance(what, ToolInteraction):
                self._add_tool(row, what)
            elif isinstance(what, RemoteInteraction):
                answer = "\n".join(told(each.get("content")) for each in what.responses)
                row["summary"] = answer[:_SUMMARY]
                row["sections"] = self._sections(
                    ("is asked", what.asked), ("answer", answer), ("whole answer", what.responses)
                )
            elif isinstance(what, AgentEvent):
                self._add_event(row, span, what, None if span.within else state)
                cost = self._costs.of_event(what)
            else:
                row["sections"] = self._sections(("whole span", what))
            if cost is not None:
                costs.append(cost)
                row["cost"] = str(cost) if cost.usd else ""
                row["figures"].append(["cost", ": ".join(filter(None, (str(cost), cost.unknown)))])
            self.rows.append(row)
        head["tokens"] = sum(each.usage.total for each in run.llm_interactions if each.usage)
        figures = (
            ("status", status),
            ("time", milliseconds(length)),
            ("tokens", f"{head['tokens']:,}"),
            ("model calls", str(len(run.llm_interactions))),
            ("tool calls", str(len(run.tool_interactions))),
            ("session", run.session_id),
            ("pipeline", run.ir_hash[:12]),
        )
        head["figures"] = [[name, value] for name, value in figures if value]
        if costs:
            total = sum(costs, Cost())
            head["cost"] = str(total) if total.usd else ""
            how = "as recorded" if noted else "by the price book installed here"
            head["figures"].append(["cost", f"{total}, {how}"])
        if run.data.get("error"):
            head["error"] = _show.error_text(run.data["error"])
        head["sections"] = self._sections(("user", told(run.message)), ("answers", run.answers))

    def _row(self, span: Span, offset: float, lane: str) -> Data:
        took = "" if span.kind == "event" else milliseconds(span.end_ms - span.start_ms)
        figures = (
            ("lane", lane),
            ("branch", getattr(span.what, "branch", None)),
            ("began", milliseconds(span.start_ms)),
            ("took", took),
        )
        made: Data = {
            "kind": span.kind,
            "lane": self._lanes.setdefault(lane, len(self._lanes)),
            "label": span.label,
            "start": round(offset + max(span.start_ms, 0.0), 3),
            "end": round(offset + span.end_ms, 3),
            "status": span.status,
            "summary": "",
            "figures": [[name, value] for name, value in figures if value],
            "sections": [],
        }
        more = {"error": span.error, "tokens": span.tokens, "within": span.within}
        return made | {name: value for name, value in more.items() if value}

    def _add_model(self, row: Data, call: LLMInteraction) -> None:
        answer = "\n".join(told(each) for each in call.response_content)
        row["summary"] = answer[:_SUMMARY]
        usage = call.usage
        if usage is not None:
            names = ("prompt", "cached", "output", "thoughts", "tool")
            shares = [f"{getattr(usage, name):,} {name}" for name in names if getattr(usage, name)]
            row["figures"].append(["tokens", f"{usage.total:,} ({', '.join(shares)})"])
        if call.first_chunk_ms is not None:
            count, first = counted(len(call.chunks), "fragment"), milliseconds(call.first_chunk_ms)
            row["figures"].append(["streamed", f"{count}, the first after {first}"])
        row["prompt"] = [[who, self._text(text)] for who, text in prompt(call.request)]
        row["sections"] = self._sections(("answer", answer))

    def _add_tool(self, row: Data, call: ToolInteraction) -> None:
        is_over = not (call.error or call.cancelled)
        how = f" → {_show.cut(call.result)}" if is_over else ""
        row["summary"] = f"{call.tool_name}({_show.arguments(call.args)}){how}"
        row["sections"] = self._sections(
            ("arguments", json_text(call.args)),
            ("result", json_text(call.result) if is_over else ""),
            ("writes to state", call.effects.get("state_delta")),
            ("actions", {k: each for k, each in call.effects.items() if k != "state_delta"}),
        )

    def _add_event(self, row: Data, span: Span, event: AgentEvent, state: Data | None) -> None:
        row["summary"] = (
            " · ".join([*_calls(event), *_show.event_lines(event, span)]) or "says nothing"
        )
        rest = _show.event_lines(
            replace(event, content=None, state_delta={}), replace(span, error=""), 0
        )
        data = {k: v for k, v in event.to_dict().items() if k not in {"content", "state_delta"}}
        row["sections"] = self._sections(
            ("says", event.content),
            ("does", "\n".join([*_calls(event, 0), *rest])),
            ("whole event", data),
        )
        if not span.within:
            row["number"] = len(self.events)
            self.events.append(len(self.rows))
            self.by_lane.setdefault(lane_of(event), []).append(len(self.rows))
        if event.is_partial:
            row["partial"] = True
        elif event.state_delta:
            row["state"] = self._state(state, event.state_delta)
            if state is not None:
                state.update(event.state_delta)

    # --- texts ---------------------------------------------------------------------------------

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _sections(self, *found: tuple[str, Any]) -> list[list[Any]]:
        return [[title, self._text(json_text(each))] for title, each in found if each]

    def _state(self, before: Data | None, wrote: Data) -> list[list[Any]]:
        """Each key with the texts of its value before and after; null where there is none."""

        def text(value: Any) -> int | None:
            return None if value is None else self._text(json_text(value))

        if before is None:
            unknown = self._text("(not recorded)")
            return [[key, unknown, text(value)] for key, value in wrote.items()]
        return [[key, text(before.get(key)), text(value)] for key, value in wrote.items()]


def prompt(request: Data) -> Iterator[tuple[str, str]]:
    """What a model was asked, in pieces: who says it, and the text.

    Args:
        request: The request, as `LLMInteraction.request` has it.
    """
    config: Data = dict(request.get("config") or {})
    instruction, tools = config.pop("system_instruction", None), config.pop("tools", None)
    if instruction:
        plain = isinstance(instruction, str) or not isinstance(instruction, dict)
        yield "instruction", json_text(instruction) if plain else told(cast("Data", instruction))
    for name, each in (("tools", tools), ("settings", config)):
        if each:
            yield name, json_text(each)
    for content in request.get("contents") or ():
        yield str(content.get("role") or "user"), told(content)


def told(content: Data | None) -> str:
    """A message, ADK's Content in JSON, as text."""
    parts: list[Data] = (content or {}).get("parts") or []
    return "\n".join(_part(each) for each in parts)


def _part(part: Data) -> str:
    if (call := part.get("function_call")) is not None:
        return f"{call.get('name')}({_show.arguments(call.get('args') or {}, 0)})"
    if (answer := part.get("function_response")) is not None:
        return f"{answer.get('name')} → {json_text(answer.get('response'))}"
    if isinstance(part.get("text"), str):
        return f"(thought) {part['text']}" if part.get("thought") else part["text"]
    return json_text(part)


def _calls(event: AgentEvent, limit: int = _show.SHOWN) -> Iterator[str]:
    for call in event.tool_calls:
        yield f"calls {call.tool_name}({_show.arguments(dict(call.args), limit)})"
    for each in event.tool_responses:
        yield f"{each.tool_name} → {_show.cut(each.result, limit)}"


def json_text(value: Any) -> str:
    """A value as indented JSON; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def milliseconds(value: float) -> str:
    """A time in the unit that fits."""
    return f"{value:,.1f} ms" if value < 1000 else f"{value / 1000:,.2f} s"


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
    title = html.escape(name if name.isprintable() else repr(name))
    hashes = {"style_hash": _hash(style), "script_hash": _hash(script)}
    page = Template(_read("viewer.html"))
    return page.substitute(hashes, title=title, style=style, script=script, data=data)


def _data(recording: Recorded, against: Recorded | None) -> Data:
    page = PageData(recording)
    if against is None:
        return {"sides": [page.to_dict()]}
    other = PageData(against)
    diff = diff_events(recording.events, against.events)
    found = list(_requests(page, other))
    for lane, change in diff.by_lane.items():
        rows = [_at(each.by_lane.get(lane, []), change.index) for each in (page, other)]
        pairs = zip((page, other), rows, strict=True)
        # of all events, not of its lane
        number = next(side.rows[row]["number"] for side, row in pairs if row is not None)
        found.append({"rows": rows, "text": str(replace(change, index=number))})
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
                what = f"the prompt of model call {number} of {call.agent_name}"
                yield {"rows": [row, beside], "text": f"{what} differs at {change}"}
                break


def _at(rows: list[int], index: int) -> int | None:
    return rows[index] if index < len(rows) else None


def _read(name: str) -> str:
    return files(_PACKAGE).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    from hashlib import sha256  # noqa: PLC0415  # OpenSSL, which is slow to import

    return base64.b64encode(sha256(text.encode()).digest()).decode()
