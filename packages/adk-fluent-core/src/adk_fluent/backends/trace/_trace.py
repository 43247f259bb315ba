"""Following a run step by step."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._node_text import kind_word
from adk_fluent.backends.trace._places import Places
from adk_fluent.backends.trace._rows import Change, Open, Row, table
from adk_fluent.ir import Node
from adk_fluent.protocol import ErrorInfo, Redactor, SystemClock, Usage
from adk_fluent.protocol._json import json_safe

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from types import TracebackType
    from typing import Self

    from adk_fluent.contracts import HasIR
    from adk_fluent.protocol import AgentEvent, Clock

_HIDDEN: Final = "..."


class Trace:
    """A table of the steps of a run: when each began, how long it took, what it changed in state.

    A listener: ``pipeline.run(..., listeners=[trace])``. Used in a ``with`` block, its times count
    from there, and an exception that ends the block is noted. A step begins when the one before it
    ended; that of a later run in the same trace, at a time that is not known.

    Args:
        pipeline: Tells of what kind each step is.
        state: State at the beginning, to show what was there before.
        clock: Tells the time when an event comes.
        redactor: Says which state keys hold credentials; what they hold is not kept.

    Attributes:
        error: The exception that ended the block; None if there was none.
    """

    def __init__(
        self,
        pipeline: Node | HasIR | None = None,
        *,
        state: Mapping[str, Any] | None = None,
        clock: Clock | None = None,
        redactor: Redactor | None = None,
    ) -> None:
        self._clock: Clock = clock or SystemClock()
        self._redactor = redactor or Redactor()
        self._kinds = _kinds(pipeline)
        self._state: dict[str, Any] = dict(state or {})
        self._steps: list[Open] = []
        self._places: dict[str, Places] = {}
        self._latest: dict[tuple[str, str, str], Open] = {}
        self._discarded: set[tuple[str, str]] = set()
        self._began: float | None = self._clock.now()
        self.error: ErrorInfo | None = None

    def __enter__(self) -> Self:
        self._began = self._clock.now()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        if error is not None:
            self.error = ErrorInfo(type(error).__name__, str(error))

    # --- listening -----------------------------------------------------------------------------

    def on_event(self, event: AgentEvent, /) -> None:
        """Take note of an event."""
        self._note(event, self._clock.now())

    def on_notice(self, notice: AgentEvent, /) -> None:
        """Take note of a step that failed, or of attempts that were discarded."""
        self._discard(notice)
        if notice.error is not None:
            now = self._clock.now()
            step = self._step(notice, now, whole=True)
            self._extend(step, notice, now)
            step.error = step.error or notice.error  # what it reported says more

    @classmethod
    def of(
        cls,
        events: Iterable[AgentEvent],
        pipeline: Node | HasIR | None = None,
        *,
        state: Mapping[str, Any] | None = None,
    ) -> Self:
        """The trace of events that were kept; times are those that the events carry."""
        made = cls(pipeline, state=state)
        made._began = None
        for event in events:
            if made._began is None:
                made._began = event.timestamp
            made._note(event, event.timestamp)
        return made

    def _note(self, event: AgentEvent, now: float) -> None:
        self._discard(event)
        step = self._step(event, now)
        self._extend(step, event, now)
        step.events += 1
        step.error = event.error or step.error
        step.works = step.works or bool(event.usage or event.content or event.tool_calls)
        if event.is_partial:
            return
        step.tools += [call.tool_name for call in event.tool_calls]
        if event.usage is not None:
            step.usage = (step.usage or Usage()) + event.usage
        for key, value in event.state_delta.items():
            step.before.setdefault(key, self._state.get(key))
            step.after[key] = self._state[key] = value

    def _discard(self, event: AgentEvent) -> None:
        self._discarded.update((event.run_id, scope) for scope in event.discarded)

    def _extend(self, step: Open, event: AgentEvent, now: float) -> None:
        self._places[step.run].end(step.path, now)
        step.last = max(step.last, now)
        step.attempt = event.attempt or step.attempt

    def _step(self, event: AgentEvent, now: float, *, whole: bool = False) -> Open:
        """The step that an event belongs to; what comes back to a place later is another one."""
        path, node = event.path or "", event.node or event.author
        known = self._latest.get((event.run_id, path, node))
        if known is not None:
            return known
        run = event.run_id
        first_run = next(iter(self._places), run) == run
        before = self._places.setdefault(run, Places()).begin(path, whole=whole)
        start = before if before is not None else self._began if first_run else None
        step = Open(path, node, run, start, now)
        self._steps.append(step)
        self._latest[run, path, node] = step
        return step

    # --- what was noted ------------------------------------------------------------------------

    @property
    def rows(self) -> tuple[Row, ...]:
        """The steps so far, in the order in which their first events came."""
        return tuple(self._row(step) for step in self._steps)

    def __str__(self) -> str:
        lines = [table(self.rows)]
        if self.error is not None:
            lines.append(f"ended by {self.error}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The trace as JSON data."""
        return {
            "steps": [row.to_dict() for row in self.rows],
            "error": None if self.error is None else str(self.error),
        }

    def to_json(self) -> str:
        """The trace as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def _row(self, step: Open) -> Row:
        scopes = step.attempt.split(".") if step.attempt else ()
        start = step.start
        return Row(
            path=step.path,
            node=step.node,
            kind=self._kinds.get(step.node) or ("agent" if step.works else "step"),
            start=None if start is None or self._began is None else start - self._began,
            seconds=None if start is None else step.last - start,
            usage=step.usage,
            changes=tuple(self._changes(step)),
            tools=tuple(step.tools),
            events=step.events,
            discarded=any((step.run, scope) in self._discarded for scope in scopes),
            error=step.error,
            run=step.run,
        )

    def _changes(self, step: Open) -> Iterable[Change]:
        for key, after in step.after.items():
            before = step.before[key]
            if self._redactor.hides(key):
                yield Change(key, before and _HIDDEN, after and _HIDDEN)
            else:
                yield Change(key, *(json_safe(self._redactor.redact(v)) for v in (before, after)))


def trace(
    events: Iterable[AgentEvent],
    pipeline: Node | HasIR | None = None,
    *,
    state: Mapping[str, Any] | None = None,
) -> Trace:
    """The trace of a run that is over, such as of what `Builder.run` returned.

    Args:
        events: What happened, in order.
        pipeline: Tells of what kind each step is.
        state: State at the beginning, to show what was there before.
    """
    return Trace.of(events, pipeline, state=state)


def _kinds(pipeline: Node | HasIR | None) -> dict[str, str]:
    if pipeline is None:
        return {}
    todo, found, seen = [_ir(pipeline)], dict[str, str](), set[int]()
    while todo:
        node = todo.pop()
        if id(node) not in seen:
            seen.add(id(node))
            found.setdefault(node.name, kind_word(node))
            todo.extend(reversed(node.children))
    return found


def _ir(pipeline: Node | HasIR) -> Node:
    return pipeline if isinstance(pipeline, Node) else pipeline.to_ir()
