"""From ADK's events to what was observed."""

from __future__ import annotations

import copy
import math
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.backends.adk._session._events import to_agent_event
from adk_fluent.backends.adk._session._stamps import is_journal
from adk_fluent.eval._cases._case import text_of
from adk_fluent.eval._checks._same import plain
from adk_fluent.eval._outcome import Step, ToolUse, TurnOutcome
from adk_fluent.eval._running._cost import Cost
from adk_fluent.protocol import RunResult, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from google.adk.events.event import Event
    from google.genai import types

    from adk_fluent.eval._checks._observed import Observed
    from adk_fluent.eval._running._instead import Instead
    from adk_fluent.eval._running._plugin_adk import Beneath
    from adk_fluent.protocol import AgentEvent, Pending, PriceBook

#: What ADK's own evaluation leaves in state.
LEFT_BEHIND: Final = "__llm_request_key__"
_TEMP: Final = "temp:"
_USER: Final = "user"
#: What an event tells whose usage has no counts.
_NOTHING: Final = Usage()
#: What only an answer of a model has.
_OF_MODELS: Final = ("model_version", "finish_reason")


class Watch:
    """Notes what happens in one run of a case, turn by turn.

    Args:
        seen: Where it is noted.
        state: What the session starts with.
        prices: What tokens cost; None leaves them without a price.
        models: Agent to the name of its model, for answers that do not tell.
        instead: The mocks.
        beneath: What the plugin notes, turn by turn, of what events do not tell; None where ADK's
            service runs no plugin, so that events have to do.
    """

    def __init__(
        self,
        seen: Observed,
        state: Mapping[str, Any],
        *,
        prices: PriceBook | None,
        models: Mapping[str, str],
        instead: Instead,
        beneath: Sequence[Beneath] | None = None,
    ) -> None:
        self._seen = seen
        self._state = dict(state)
        self._cost = Cost(prices)
        self._models = models
        self._instead = instead
        self._beneath = beneath
        self._events: list[AgentEvent] = []
        self._raw: list[Event] = []
        self._uses: dict[tuple[str, str], ToolUse] = {}
        self._inner = 0
        self._telling: list[AgentEvent] = []
        self._turn: TurnOutcome | None = None
        self._began = 0.0
        self._note_cost()

    def begin(self, message: types.Content) -> None:
        """The user says something."""
        self._turn = TurnOutcome(text_of(message))
        self._events, self._raw, self._uses, self._inner, self._telling = [], [], {}, 0, []
        self._seen.turns.append(self._turn)
        self._seen.events.append(self._raw)
        self._began = time.perf_counter()

    def add(self, event: Event, *, is_live: bool = True) -> None:
        """Something happens.

        Args:
            event: What.
            is_live: It happens now, so that all that is noted has happened before it; else time
                tells.
        """
        turn = self._turn
        if turn is None or event.partial:
            return
        if event.author == _USER and not self._raw:
            return
        turn.invocation_id = turn.invocation_id or event.invocation_id
        self._raw.append(event)
        self._note_inner(turn, math.inf if is_live else event.timestamp)
        made = to_agent_event(event)
        self._events.append(made)
        self._telling.append(made)
        self._note_writes(made)
        self._note_steps(turn, made, event)

    def end(self, error: str | None = None, seconds: float | None = None) -> str | None:
        """The turn is over.

        Args:
            error: What it raised.
            seconds: How long it took; None is since `begin`.

        Returns:
            What went wrong, also if nothing was raised: an error that an agent reported and nothing
            made good, or a question that nobody answers.
        """
        turn, seen = self._turn, self._seen
        if turn is None:
            return error
        self._turn = None
        turn.duration_s = time.perf_counter() - self._began if seconds is None else seconds
        seen.duration_s += turn.duration_s
        self._note_inner(turn)
        self._note_usage(turn)
        result = RunResult(self._events)
        turn.response = result.text
        seen.state = _shown(self._state)
        seen.state_after.append(seen.state)
        seen.written_after.append({step: dict(keys) for step, keys in seen.written.items()})
        self._note_tools(turn, error)
        problems = [*self._instead.problems, *map(str, result.errors), *map(_asked, result.pending)]
        return error or (problems[0] if problems else None)

    def settle(self, state: Mapping[str, Any]) -> None:
        """Take the state that a service holds for what it is in the end: some merge dicts."""
        self._seen.state = _shown(state)
        if self._seen.state_after:
            self._seen.state_after[-1] = self._seen.state

    def _note_writes(self, made: AgentEvent) -> None:
        delta = {key: _kept(each) for key, each in made.state_delta.items() if key != LEFT_BEHIND}
        made.state_delta = delta
        if not delta:
            return
        self._state.update(delta)
        self._note_written(made)

    def _note_written(self, made: AgentEvent) -> None:
        for step in {made.author, made.node or made.author} if made.state_delta else ():
            self._seen.written.setdefault(step, {}).update(made.state_delta)

    def _note_inner(self, turn: TurnOutcome, until: float = math.inf) -> None:
        """What happened inside of tools up to a time, which the turn's own events do not tell."""
        inner = beneath.inner if (beneath := self._of(turn)) is not None else ()
        while self._inner < len(inner) and inner[self._inner][1].timestamp <= until:
            inside, event = inner[self._inner]
            self._inner += 1
            made = to_agent_event(event)
            self._telling.append(made)
            made.state_delta = {key: _kept(each) for key, each in made.state_delta.items()}
            self._note_written(made)  # to the state it comes with the tool's answer
            self._note_steps(turn, made, event, inside)

    def _of(self, turn: TurnOutcome) -> Beneath | None:
        at = len(self._seen.turns) - 1
        return self._beneath[at] if self._beneath is not None and at < len(self._beneath) else None

    def _note_steps(
        self, turn: TurnOutcome, made: AgentEvent, event: Event, inside: str = ""
    ) -> None:
        author, steps = made.node or made.author, turn.steps
        parts = event.content.parts if event.content is not None else None
        thoughts = [part.text for part in parts or () if part.thought and part.text]
        if thoughts:
            steps.append(Step(author, "".join(thoughts), thought=True, inside=inside))
        if made.content:
            steps.append(Step(author, made.content, inside=inside))
        for call in made.tool_calls:
            use = ToolUse(
                call.tool_name, plain(call.args), agent=author, call_id=call.call_id or ""
            )
            self._uses[inside, use.call_id] = use
            steps.append(Step(author, tool=use, inside=inside))
        for response in made.tool_responses:
            use = self._uses.get((inside, response.call_id or ""))
            if use is not None:
                use.response = plain(response.result)
        if made.state_delta and author != _USER:
            steps.append(Step(author, state=plain(made.state_delta), inside=inside))
        if made.error is not None:
            steps.append(Step(author, error=str(made.error), inside=inside))

    def _note_usage(self, turn: TurnOutcome) -> None:
        """What models told that they took: in answers, and in events of which there is no answer.

        Such events have agents that are no models of ADK's, and callbacks that answer in the place
        of a model. Where no plugin runs, there are events alone.
        """
        beneath = self._of(turn)
        answers = [] if beneath is None else beneath.answers
        for each in answers:
            self._count(turn, each.agent, each.model, each.usage, each.at, failed=each.failed)
        known = [each.usage for each in answers]
        for made in self._telling:
            usage = made.usage
            if usage in known:
                known.remove(usage)
            elif self._is_of_a_model(made):
                at = datetime.fromtimestamp(made.timestamp, UTC)
                model = made.metadata.get("model_version") or ""
                told = None if usage == _NOTHING else usage
                self._count(turn, made.author, model, told, at, failed=made.error is not None)
        self._note_cost()

    def _is_of_a_model(self, made: AgentEvent) -> bool:
        if made.usage is not None:
            return made.usage != _NOTHING or self._beneath is None
        return self._beneath is None and any(each in made.metadata for each in _OF_MODELS)

    def _count(
        self,
        turn: TurnOutcome,
        agent: str,
        model: str,
        usage: Usage | None,
        at: datetime,
        *,
        failed: bool,
    ) -> None:
        turn.model_calls += 1
        if usage is not None or not failed:  # a failure need not say what it took
            turn.tokens += self._cost.add(model or self._models.get(agent, ""), usage, at)

    def _note_cost(self) -> None:
        seen, cost = self._seen, self._cost
        seen.cost_usd, seen.unpriced, seen.untold = cost.usd, cost.unpriced, cost.untold

    def _note_tools(self, turn: TurnOutcome, error: str | None) -> None:
        instead = self._instead
        waiting = [use for use in turn.tool_uses if use.response is None]
        for use in turn.all_tool_uses:
            use.mocked = use.call_id in instead.mocked
            use.error = instead.errors.get(use.call_id, "")
        if error is not None and len(waiting) == 1 and not waiting[0].error:
            waiting[0].error = error  # it was the one tool under way when the run ended


def _shown(state: Mapping[str, Any]) -> dict[str, Any]:
    """State without what is temporary, or of ADK's and the engine's own."""
    return {
        key: value
        for key, value in state.items()
        if value is not None
        and key != LEFT_BEHIND
        and not key.startswith(_TEMP)
        and not is_journal(key)
    }


def _kept(value: Any) -> Any:
    """A value as it is now: whoever wrote it may change it later."""
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001  # of whatever it is
        return value


#: What can be done about a question that nobody answers.
_HELP: Final = {
    "tool": "mock it: mock_tool_outputs",
    "auth": "mock the tool that asks for it: mock_tool_outputs",
}


def _asked(pending: Pending) -> str:
    """A question on which a run waits."""
    what = f"{pending.kind} {pending.name!r}" if pending.name else pending.kind
    of = f" of {pending.author}" if pending.author else ""
    said = f": {pending.message}" if pending.message else ""
    help = _HELP.get(pending.kind, "nobody is there to give one")
    return f"it waits for an answer to {what}{of}{said}; {help}"
