"""A recording as the data that its page shows: rows in lanes, and texts that occur in them."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from adk_fluent.debug._compare import counted
from adk_fluent.debug._costs import Cost, Costs
from adk_fluent.debug._diff import lane_of
from adk_fluent.debug._interactions import LLMInteraction, RemoteInteraction, ToolInteraction
from adk_fluent.debug._lanes import duration, error_text, rows
from adk_fluent.debug._words import SHOWN, arguments, cut, event_lines, said
from adk_fluent.protocol import AgentEvent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from adk_fluent.debug._lanes import Span
    from adk_fluent.debug._run import RecordedRun

Data = dict[str, Any]

_SUMMARY: Final = 200  # characters
_GAP: Final = 0.02  # between runs on the axis, of a run


class Recorded(Protocol):
    """A recording, as far as a page needs it; see `Recording`."""

    runs: list[RecordedRun]
    metadata: Data
    path: Path | None
    edited: bool

    @property
    def events(self) -> list[AgentEvent]:
        """The events of all runs, in order."""
        ...


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
        length, status, message = duration(run), run.status or "cut off", said(run)
        offset = self._end + (length * _GAP if number else 0)
        self._end = offset + max([length, *(each["end"] for each in run.spans)])
        head: Data = {
            "kind": "run",
            "label": f"run {number}",
            "start": offset,
            "end": self._end,
            "status": "error" if run.status in {"", "failed"} else "ok",
            "summary": f"{status}, {cut(message, _SUMMARY)}" if message else status,
            "state": [] if run.state is None else self._state({}, run.state),
        }
        self.rows.append(head)
        noted, costs = self._costs.are_noted(run), list[Cost]()
        state, waits = None if run.state is None else dict(run.state), _first_fragments(run)
        for lane, span in rows(run):
            row, what = self._row(span, offset, lane.name), span.what
            cost = None
            if isinstance(what, LLMInteraction):
                self._add_model(row, what, waits.get(what.entry))
                self.calls[number, lane.agent, lane.branch].append((len(self.rows), what))
                cost = None if noted else self._costs.of_call(what)
            elif isinstance(what, ToolInteraction):
                self._add_tool(row, what)
            elif isinstance(what, RemoteInteraction):
                self._add_remote(row, what)
            elif isinstance(what, AgentEvent):
                self._add_event(row, span, what, None if span.within else state)
                cost = self._costs.of_event(what)
            else:
                row["summary"] = ""
                row["sections"] = self._sections(("whole span", json_text(what)))
            if cost is not None:
                costs.append(cost)
                row["cost"] = str(cost) if cost.usd else ""
                row["figures"].append(["cost", ": ".join(filter(None, (str(cost), cost.unknown)))])
            self.rows.append(row)
        head["tokens"] = sum(each.usage.total for each in run.llm_interactions if each.usage)
        head["figures"] = self._run_figures(run, status, length, head["tokens"])
        if costs:
            total = sum(costs[1:], costs[0])
            head["cost"] = str(total) if total.usd else ""
            how = "as recorded" if noted else "by the price book installed here"
            head["figures"].append(["cost", f"{total}, {how}"])
        if run.data.get("error"):
            head["error"] = error_text(run.data["error"])
        answers = json_text(run.answers) if run.answers else ""
        head["sections"] = self._sections(("user", told(run.message)), ("answers", answers))

    def _run_figures(
        self, run: RecordedRun, status: str, length: float, tokens: int
    ) -> list[list[str]]:
        found = (
            ("status", status),
            ("time", milliseconds(length)),
            ("tokens", f"{tokens:,}"),
            ("model calls", str(len(run.llm_interactions))),
            ("tool calls", str(len(run.tool_interactions))),
            ("session", run.session_id),
            ("pipeline", run.ir_hash[:12]),
        )
        return [[name, value] for name, value in found if value]

    def _row(self, span: Span, offset: float, lane: str) -> Data:
        branch = getattr(span.what, "branch", None)
        figures = [["lane", lane], ["branch", branch or ""]]
        figures.append(["began", milliseconds(span.start_ms)])
        if span.kind != "event":
            figures.append(["took", milliseconds(span.end_ms - span.start_ms)])
        made: Data = {
            "kind": span.kind,
            "lane": self._lanes.setdefault(lane, len(self._lanes)),
            "label": span.label,
            "start": round(offset + max(span.start_ms, 0.0), 3),
            "end": round(offset + span.end_ms, 3),
            "status": span.status,
            "summary": "",
            "figures": [each for each in figures if each[1]],
            "sections": [],
        }
        more = {"error": span.error, "tokens": span.tokens, "within": span.within}
        return made | {name: value for name, value in more.items() if value}

    def _add_model(self, row: Data, call: LLMInteraction, wait: float | None) -> None:
        answer = "\n".join(told(each) for each in call.response_content)
        row["summary"] = answer[:_SUMMARY]
        usage = call.usage
        if usage is not None:
            names = ("prompt", "cached", "output", "thoughts", "tool")
            shares = [f"{getattr(usage, name):,} {name}" for name in names if getattr(usage, name)]
            row["figures"].append(["tokens", f"{usage.total:,} ({', '.join(shares)})"])
        if wait is not None:
            count = counted(len(call.chunks), "fragment")
            row["figures"].append(["streamed", f"{count}, the first after {milliseconds(wait)}"])
        row["prompt"] = [[who, self._text(text)] for who, text in prompt(call.request)]
        row["sections"] = self._sections(("answer", answer))

    def _add_tool(self, row: Data, call: ToolInteraction) -> None:
        how = "" if call.error or call.cancelled else f" → {cut(call.result)}"
        row["summary"] = f"{call.tool_name}({arguments(call.args)}){how}"
        wrote: Data = call.effects.get("state_delta") or {}
        effects = {key: each for key, each in call.effects.items() if key != "state_delta"}
        row["sections"] = self._sections(
            ("arguments", json_text(call.args)),
            ("result", "" if call.error or call.cancelled else json_text(call.result)),
            ("writes to state", json_text(wrote) if wrote else ""),
            ("actions", json_text(effects) if effects else ""),
        )

    def _add_remote(self, row: Data, call: RemoteInteraction) -> None:
        answer = "\n".join(told(each.get("content")) for each in call.responses)
        row["summary"] = answer[:_SUMMARY]
        row["sections"] = self._sections(
            ("is asked", json_text(call.asked)),
            ("answer", answer),
            ("whole answer", json_text(call.responses) if call.responses else ""),
        )

    def _add_event(self, row: Data, span: Span, event: AgentEvent, state: Data | None) -> None:
        row["summary"] = " · ".join([*_calls(event), *event_lines(event, span)]) or "says nothing"
        rest = event_lines(replace(event, content=None, state_delta={}), replace(span, error=""), 0)
        data = {k: v for k, v in event.to_dict().items() if k not in {"content", "state_delta"}}
        row["sections"] = self._sections(
            ("says", event.content or ""),
            ("does", "\n".join([*_calls(event, 0), *rest])),
            ("whole event", json_text(data)),
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

    def _sections(self, *found: tuple[str, str]) -> list[list[Any]]:
        return [[title, self._text(text)] for title, text in found if text]

    def _state(self, before: Data | None, wrote: Data) -> list[list[Any]]:
        """Each key with the texts of its value before and after; null where there is none."""

        def text(value: Any) -> int | None:
            return None if value is None else self._text(json_text(value))

        if before is None:
            unknown = self._text("(not recorded)")
            return [[key, unknown, text(value)] for key, value in wrote.items()]
        return [[key, text(before.get(key)), text(value)] for key, value in wrote.items()]


def _first_fragments(run: RecordedRun) -> dict[int, float]:
    """Milliseconds until each model call, by its entry, had the first fragment of its answer."""
    begun: dict[int, tuple[int, float]] = {}
    found: dict[int, float] = {}
    for at, entry in enumerate(run.tape):
        time = float(entry.get("t", 0.0))
        if "model_call" in entry:
            begun[entry["model_call"]] = (at, time)
        elif entry.get("chunk_of") in begun:
            call, start = begun[entry["chunk_of"]]
            found.setdefault(call, time - start)
    return found


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
        return f"{call.get('name')}({arguments(call.get('args') or {}, 0)})"
    if (answer := part.get("function_response")) is not None:
        return f"{answer.get('name')} → {json_text(answer.get('response'))}"
    if isinstance(part.get("text"), str):
        return f"(thought) {part['text']}" if part.get("thought") else part["text"]
    return json_text(part)


def _calls(event: AgentEvent, limit: int = SHOWN) -> Iterator[str]:
    for call in event.tool_calls:
        yield f"calls {call.tool_name}({arguments(dict(call.args), limit)})"
    for each in event.tool_responses:
        yield f"{each.tool_name} → {cut(each.result, limit)}"


def json_text(value: Any) -> str:
    """A value as indented JSON; a text as it is."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def milliseconds(value: float) -> str:
    """A time in the unit that fits."""
    return f"{value:,.1f} ms" if value < 1000 else f"{value / 1000:,.2f} s"
