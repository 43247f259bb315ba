"""A recording as one page of HTML, which loads nothing and trusts nothing that it shows."""

from __future__ import annotations

import html
import json
from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict, replace
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from importlib.resources import files
from string import Template
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.debug import _show
from adk_fluent.debug._diff import COST, diff_events, first_difference
from adk_fluent.debug._recorded_run import Data, LLMInteraction, RemoteInteraction, ToolInteraction
from adk_fluent.extend import price_book, price_of, script_source
from adk_fluent.protocol import AgentEvent, Money, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from adk_fluent.debug._recorded_run import Recorded, RecordedRun


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
        self._book = price_book()

    def of_event(self, event: AgentEvent) -> list[Money | Unknown]:
        """What was noted on an event."""
        text = event.custom_metadata.get(COST, "[]")
        try:
            return [_of_record(each) for each in cast("list[Data]", json.loads(text))]
        except (TypeError, ValueError, KeyError, AttributeError, InvalidOperation):
            return [Unknown("what was noted cannot be read")]

    def of_call(self, call: LLMInteraction) -> list[Money | Unknown]:
        """What a price book says of a call; nothing if there is none, or no tokens."""
        if self._book is None or call.usage is None:
            return []
        return [price_of(self._book, call.model, call.usage, self._at)]


def _of_record(record: Data) -> Money | Unknown:
    if "unknown" in record:
        return Unknown(str(record["unknown"]) or "no price")
    usd = Decimal(record["usd"])
    return Money(usd) if usd.is_finite() else Unknown("what was noted cannot be read")


def _total(costs: Sequence[Money | Unknown]) -> Data:
    """What is known of costs, and why the rest is not."""
    known = [each for each in costs if isinstance(each, Money)]
    rest = (each for each in costs if not isinstance(each, Money))
    reasons = (str(getattr(each, "reason", "no price")) for each in rest)
    return {"usd": str(sum(known, Money())), "unknown": next(reasons, "")}


_SUMMARY: Final = 200  # characters


class Side:
    """What a page shows of a recording.

    Each text stands in it once: a prompt holds those of the call before it.

    Args:
        recording: The recording.

    Attributes:
        rows: Runs, and what was done in them, in order.
        events: Of each event the row and the lane.
        calls: Row and call of each model call by run and lane.
    """

    def __init__(self, recording: Recorded) -> None:
        self.rows: list[Data] = []
        self.events: list[tuple[int, str]] = []
        self.calls: dict[tuple[int, str], list[tuple[int, LLMInteraction]]] = defaultdict(list)
        self._recording = recording
        self._costs = Costs(str(recording.metadata.get("recorded_at")))
        self._texts: dict[str, int] = {}
        for number, run in enumerate(recording.runs):
            self._add_run(number, run)

    def to_dict(self) -> Data:
        """The data as JSON has it."""
        return {**_show.head_of(self._recording), "texts": list(self._texts), "rows": self.rows}

    def find(self, index: int, lane: str | None = None) -> tuple[int, int] | None:
        """Number and row of an event, of all or of its lane; None if there are not so many."""
        pairs = enumerate(self.events)
        found = [(number, row) for number, (row, where) in pairs if lane in {None, where}]
        return found[index] if index < len(found) else None

    def _add_run(self, number: int, run: RecordedRun) -> None:
        noted = any(COST in each.custom_metadata for each in run.events)
        head: Data = _show.run_data(run) | {
            "kind": "run",
            "label": f"run {number}",
            "end_ms": max([_show.duration(run), *(each["end"] for each in run.spans)]),
            "state": None if run.state is None else self._texts_of(run.state),
            "session": run.session_id,
            "pipeline": run.ir_hash[:12],
            "noted": noted,
            "sections": self._sections(("user", told(run.message)), ("answers", run.answers)),
        }
        self.rows.append(head)
        costs: list[Money | Unknown] = []
        for row in _show.rows(run):
            what, cost = row.what, list[Money | Unknown]()
            if isinstance(what, LLMInteraction):
                more = self._model(what)
                self.calls[number, row.lane].append((len(self.rows), what))
                cost = [] if noted else self._costs.of_call(what)
            elif isinstance(what, ToolInteraction):
                more = self._tool(what)
            elif isinstance(what, RemoteInteraction):
                answer, whole = answer_of(what.responses), ("whole answer", what.responses)
                more = self._said(answer, ("is asked", what.asked), ("answer", answer), whole)
            elif isinstance(what, AgentEvent):
                more = self._event(what)
                cost = self._costs.of_event(what)
                if not row.within:
                    self.events.append((len(self.rows), row.lane))
            else:
                more = self._said("", ("whole span", what))
            if cost:
                more["cost"] = _total(cost)
                costs += cost
            self.rows.append(row.to_dict() | more)
        if costs:
            head["cost"] = _total(costs)

    def _model(self, call: LLMInteraction) -> Data:
        answer = answer_of(call.responses)
        return {
            **self._said(answer, ("answer", answer)),
            "prompt": [[who, self._text(text)] for who, text in prompt(call.request)],
            "usage": call.usage and asdict(call.usage),
            "fragments": len(call.chunks),
            "first_ms": call.first_chunk_ms,
        }

    def _tool(self, call: ToolInteraction) -> Data:
        is_over = not (call.error or call.cancelled)
        how = f" → {_show.cut(call.result)}" if is_over else ""
        return self._said(
            f"{call.tool_name}({_show.arguments(call.args)}){how}",
            ("arguments", json_text(call.args)),
            ("result", json_text(call.result) if is_over else ""),
            ("writes to state", call.effects.get("state_delta")),
            ("actions", {k: each for k, each in call.effects.items() if k != "state_delta"}),
        )

    def _event(self, event: AgentEvent) -> Data:
        rest = {k: v for k, v in event.to_dict().items() if k not in {"content", "state_delta"}}
        made = self._said(
            " · ".join([*_calls(event), *_show.event_lines(event)]) or "says nothing",
            ("says", event.content),
            ("whole event", rest),
        )
        if event.is_partial:
            return {**made, "partial": True}
        return {**made, "writes": self._texts_of(event.state_delta)}

    # --- texts ---------------------------------------------------------------------------------

    def _text(self, text: str) -> int:
        return self._texts.setdefault(text, len(self._texts))

    def _texts_of(self, state: Data) -> list[list[Any]]:
        """Each key with the text of its value; null where it is removed."""
        return [
            [key, None if each is None else self._text(json_text(each))]
            for key, each in state.items()
        ]

    def _sections(self, *found: tuple[str, Any]) -> list[list[Any]]:
        return [[title, self._text(json_text(each))] for title, each in found if each]

    def _said(self, summary: str, *found: tuple[str, Any]) -> Data:
        return {"summary": summary[:_SUMMARY], "sections": self._sections(*found)}


def prompt(request: Data) -> Iterator[tuple[str, str]]:
    """What a model was asked, in pieces: who says it, and the text.

    Args:
        request: The request, as `LLMInteraction.request` has it.
    """
    config: Data = dict(request.get("config") or {})
    instruction, tools = config.pop("system_instruction", None), config.pop("tools", None)
    if instruction:
        is_content = isinstance(instruction, dict)
        text = told(cast("Data", instruction)) if is_content else json_text(instruction)
        yield "instruction", text
    for name, each in (("tools", tools), ("settings", config)):
        if each:
            yield name, json_text(each)
    for content in request.get("contents") or ():
        yield str(content.get("role") or "user"), told(content)


def answer_of(responses: list[Data]) -> str:
    """What was answered, as text."""
    return "\n".join(filter(None, (told(each.get("content")) for each in responses)))


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


def _calls(event: AgentEvent) -> Iterator[str]:
    for call in event.tool_calls:
        yield f"calls {call.tool_name}({_show.arguments(dict(call.args))})"
    for each in event.tool_responses:
        yield f"{each.tool_name} → {_show.cut(each.result)}"


def json_text(value: Any) -> str:
    """A value as indented JSON; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


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
    name = _show.head_of(recording)["name"]
    title = html.escape(name if name.isprintable() else repr(name))
    hashes = {"style_source": script_source(style), "script_source": script_source(script)}
    page = Template(_read("viewer.html"))
    return page.substitute(hashes, title=title, style=style, script=script, data=data)


def _data(recording: Recorded, against: Recorded | None) -> Data:
    page = Side(recording)
    if against is None:
        return {"sides": [page.to_dict()]}
    sides = (page, Side(against))
    diff = diff_events(recording.events, against.events)
    changes: dict[str | None, Any] = {**diff.by_lane}
    if diff.first is not None and not changes:  # in another order
        changes[None] = diff.first
    found = list(_requests(*sides))
    for lane, change in changes.items():
        places = [each.find(change.index, lane) for each in sides]
        # its number is that of all events, not of its lane
        number = next(each[0] for each in places if each is not None)
        text = str(replace(change, index=number)) if lane else diff.summary
        found.append({"rows": [each and each[1] for each in places], "text": text})
    found.sort(key=lambda each: min(at for at in each["rows"] if at is not None))
    data = [each.to_dict() for each in sides]
    return {"sides": data, "differences": found, "summary": diff.summary}


def _requests(page: Side, other: Side) -> Iterator[Data]:
    """For each agent and branch of each run the first model call that was asked something else."""
    for lane, calls in page.calls.items():
        pairs = zip(calls, other.calls.get(lane, ()), strict=False)
        for number, ((row, call), (beside, now)) in enumerate(pairs, start=1):
            same = call.request == now.request  # which is quick to tell
            change = None if same else first_difference(call.request, now.request)
            if change is not None:
                what = f"the prompt of model call {number} of {call.agent_name}"
                yield {"rows": [row, beside], "text": f"{what} differs at {change}"}
                break


def _read(name: str) -> str:
    return files("adk_fluent.debug").joinpath(name).read_text("utf-8")
