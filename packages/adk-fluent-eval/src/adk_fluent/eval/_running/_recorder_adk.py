"""Recording what a run of a case does, and answering what it asks.

Events, state, tool calls, tokens and cost; gates, tools to be confirmed, and long-running tools.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.evaluation.app_details import AgentDetails, AppDetails
from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from adk_fluent.backends import adk
from adk_fluent.errors import AgentReportedError
from adk_fluent.eval._cases._turn import text_of
from adk_fluent.eval._outcome import Step, ToolUse, TurnOutcome
from adk_fluent.eval._running._mocks import answers_of
from adk_fluent.eval._text import plain
from adk_fluent.extend import error_line, kept_state, plural, price_of, report_end, to_agent_event
from adk_fluent.protocol import AgentEvent, Money, Pending, PriceBook, RunResult, Unknown, Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.eval._checks._checks import Observation
    from adk_fluent.eval._running._mocks import Mocks
    from adk_fluent.eval._running._pipeline_adk import Target

_LEFT: Final = "__llm_request_key__"  # what ADK's LocalEvalService leaves in state
_USER: Final = "user"
#: The name of the plugin that records.
PLUGIN: Final = "adk_fluent_eval"
#: The counts of ``usage_metadata`` that tell prompt from answer; a sum alone has no price.
_COUNTS: Final = ("prompt_token_count", "candidates_token_count", "thoughts_token_count")
_NO_USAGE: Final = Usage()
#: What becomes of a run by what an agent reports as an error.
_ERRORS: Final = ("rejected", "truncated", "failed")


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer of a model: the agent, the model if known, and the usage if reported."""

    agent: str
    model: str
    usage: Usage | None
    failed: bool


class Recorder(BasePlugin):
    """Records one run of a case, turn by turn: the first plugin of its App.

    ADK runs the agent inside an ``AgentTool`` in a session of its own, with the same plugins; of
    what happens there, nobody else hears.
    """

    def __init__(  # noqa: PLR0917  # of one caller
        self,
        seen: Observation,
        state: Mapping[str, Any],
        target: Target,
        mocks: Mocks,
        prices: PriceBook | None,
        model: str | None = None,
        *,
        records_all: bool = False,
    ) -> None:
        super().__init__(name=PLUGIN)
        self._records_all = records_all
        self._session = ""
        self._inside: dict[str, str] = {}
        self._seen = seen
        self._state = dict(state)
        self._models = target.models if model is None else dict.fromkeys(target.models, model)
        self._mocks = mocks
        self._prices = prices
        self._turn: TurnOutcome | None = None
        self._events: list[AgentEvent] = []
        self._usages: list[AgentEvent] = []
        self._answers: list[_Answer] = []
        self._uses: dict[tuple[str, str], ToolUse] = {}
        self._asked: set[str] = set()
        self._left = {
            name: iter(answers_of(given)) if isinstance(given, list | tuple) else repeat(given)
            for name, given in (seen.case.answers or {}).items()
        }
        self._replied = 0
        self._began = 0.0
        self.problem: str | None = None
        self._requests: dict[str, dict[str, Any]] = {}
        seen.cost_usd = None if prices is None else 0.0
        seen.cost_unknown = "there is no price book" if prices is None else ""
        self._foreign = target.foreign
        if target.hidden:
            names = ", ".join(sorted(target.hidden))
            seen.tokens_unknown = f"agents inside tools run without plugins: {names}"
            seen.tools_unknown = seen.tokens_unknown if target.hidden_tools else ""

    def begin(self, message: types.Content) -> None:
        """Start a turn."""
        self._turn = TurnOutcome(text_of(message))
        self._events, self._usages, self._answers, self._uses = [], [], [], {}
        self._replied = 0
        self._seen.turns.append(self._turn)
        self._seen.events.append([])
        self._began = time.perf_counter()

    def add(self, event: Event, inside: str = "") -> None:
        """Record an event; `inside` is the agent inside a tool in whose session it happened."""
        turn = self._turn
        if turn is None or event.partial:
            return
        report_end(event)
        made = to_agent_event(event)
        if made.content is None and made.path is None and made.output is not None:
            # of a function in a graph of ADK's, which may be its end
            said = plain(made.output)
            made.content = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
        self._usages.append(made)
        made.state_delta = {key: _snapshot(each) for key, each in made.state_delta.items()}
        if made.state_delta:
            for step in {made.author, made.node or made.author}:
                self._seen.written.setdefault(step, {}).update(made.state_delta)
        if not inside:
            turn.invocation_id = turn.invocation_id or event.invocation_id
            self._seen.events[-1].append(event)
            self._events.append(made)
            self._state.update(made.state_delta)
        self._add_steps(turn, made, event, inside)

    @property
    def pending(self) -> list[Pending]:
        """What the current turn waits for; an answer that is refused leaves its question open."""
        found = [*RunResult(self._events).pending, *self._since_reply.pending]
        return [*{each.id: each for each in found}.values()]

    def reply(self) -> Event | None:
        """Answer what is open, as far as the case has answers; None if nothing was answered.

        A question is answered once, for it stays open if its answer is refused.
        """
        calls = (call for event in self._seen.events[-1] for call in event.get_function_calls())
        tools = {call.id: call.name for call in calls}
        parts: list[types.Part] = []
        steps: list[Step] = []
        for each in self.pending:
            name, id = each.name or each.kind, each.id
            if name not in self._left or id in self._asked:
                continue
            self._asked.add(id)
            for value in islice(self._left[name], 1):
                made: Any = {"id": id, "name": tools.get(id, each.name)}
                response = types.FunctionResponse(**made, response=_response(each, value))
                parts.append(types.Part(function_response=response))
                steps.append(Step(_USER, f"answer to {name}: {value}"))
                self._seen.answered[name] += 1
        if not parts:
            return None
        event = Event(author=_USER, content=types.Content(role=_USER, parts=parts))
        self.add(event)
        self._replied = len(self._events)
        if self._turn is not None:
            self._turn.steps += steps
        return event

    @property
    def _since_reply(self) -> RunResult:
        return RunResult(self._events[self._replied :])

    def app_details(self) -> dict[str, AppDetails]:
        """Return instructions and tools of the agents, by invocation."""
        return {
            invocation: AppDetails(agent_details={n: _details(n, c) for n, c in configs.items()})
            for invocation, configs in self._requests.items()
        }

    def end(self, error: str | None = None) -> str | None:
        """Finish the turn."""
        turn, seen = self._turn, self._seen
        if turn is None:
            return error
        self._turn = None
        turn.duration_s = time.perf_counter() - self._began
        self._add_usage(turn)
        result = RunResult(self._events)
        turn.response = result.text
        self.set_state(self._state)
        seen.writes.append({step: dict(keys) for step, keys in seen.written.items()})
        waiting = [use for use in turn.tool_uses if use.response is None]
        for use in turn.all_tool_uses:
            use.mocked = use.call_id in self._mocks.mocked
            use.error = self._mocks.errors.get(use.call_id, "")
        if error is not None and len(waiting) == 1 and not waiting[0].error:
            waiting[0].error = error  # the one tool that was running
        if error is None and result.errors:
            last = result.errors[-1]
            seen.failure = AgentReportedError(str(last), error_code=last.code)
        return error or next(iter([*self._mocks.problems, *self._ended(turn, result)]), None)

    def _ended(self, turn: TurnOutcome, result: RunResult) -> Iterator[str]:
        """Note what became of a turn's run, and yield what of that is a fault of the run."""
        pending, reason = self.pending, result.reason.partition("\n")[0]
        turn.status, turn.ended = ("waiting" if pending else result.status), reason
        at = -1 if self._seen.simulated else len(self._seen.turns) - 1
        wanted = self._seen.expected[at].expected_status
        as_expected = turn.status == wanted
        told = f"expected {wanted}, found {turn.status}: " if wanted and not as_expected else ""
        if not (as_expected and turn.status in _ERRORS):
            yield from (f"{told}{each}" for each in result.errors)
        for each in pending:
            refused = self._refused(each)
            if refused or not as_expected:
                yield f"{told}{refused or self._question(each)}"

    def _refused(self, pending: Pending) -> str:
        """Why the answer to a question was refused, if it was given."""
        events = self._events[: self._replied]
        if not any(call.call_id == pending.id for e in events for call in e.tool_responses):
            return ""
        why = self._since_reply.reason.partition("\n")[0]
        return f"the answer to {pending.kind} {pending.name!r} was refused: {why}"

    def _question(self, pending: Pending) -> str:
        """A question on which a run waits."""
        name, answers = pending.name or pending.kind, self._seen.case.answers or {}
        what = f"{pending.kind} {pending.name!r}" if pending.name else pending.kind
        what += f": {pending.message}" if pending.message else ""
        if name in answers:
            count = plural(len(answers_of(answers[name])), "answer")
            return f"the run waits for another answer to {what}; answers= has {count}"
        mock = ", or mock it with mock_tool_outputs" if pending.kind in {"tool", "auth"} else ""
        help = f"give answers={{{name!r}: ...}}{mock}"
        if others := [each for each in answers if not self._seen.answered[each]]:
            help += f"; nothing has asked {', '.join(map(repr, others))}"
        return f"the run waits for an answer to {what}; {help}"

    def failed(self, error: Exception) -> None:
        """Note what the run raised."""
        self._seen.failure = error

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take a state as the one after the current turn."""
        seen = self._seen
        kept = kept_state(state).items()
        seen.state = {key: value for key, value in kept if not key.startswith(_LEFT)}
        seen.states[len(seen.turns) - 1 :] = [seen.state]

    def _add_steps(self, turn: TurnOutcome, made: AgentEvent, event: Event, inside: str) -> None:
        steps, agents = turn.steps, self._models.keys() | self._foreign
        # an agent below a step, such as a delegate, did it itself
        author = made.author if made.author in agents else made.node or made.author
        parts = (event.content.parts if event.content is not None else None) or ()
        if thoughts := "".join(part.text for part in parts if part.thought and part.text):
            steps.append(Step(author, thoughts, thought=True, inside=inside))
        if made.content and author != _USER:
            steps.append(Step(author, made.content, inside=inside))
        for call in made.tool_calls:
            id = call.call_id or ""
            use = ToolUse(call.tool_name, plain(call.args), agent=author, call_id=id)
            self._uses[inside, id] = use
            steps.append(Step(author, tool=use, inside=inside))
        for response in made.tool_responses:
            use = self._uses.get((inside, response.call_id or ""))
            if use is not None:
                use.response = plain(response.result)
        if made.state_delta and author != _USER:
            steps.append(Step(author, state=plain(made.state_delta), inside=inside))
        if made.error is not None:
            steps.append(Step(author, error=str(made.error), inside=inside))

    def _add_usage(self, turn: TurnOutcome) -> None:
        """Count model calls: answers, and usage in events of agents that call models themselves."""
        known = [each.usage for each in self._answers]
        for made in self._usages:
            if made.usage is None or made.usage == _NO_USAGE:
                continue
            if made.usage in known:
                known.remove(made.usage)
            else:
                model = made.metadata.get("model_version") or ""
                self._answers.append(_Answer(made.author, model, made.usage, failed=False))
        seen = self._seen
        spoke = {made.author for made in self._usages if made.content and made.usage is None}
        told = {made.author for made in self._usages if made.usage not in {None, _NO_USAGE}}
        if silent := sorted((spoke & self._foreign) - told):
            seen.tokens_unknown = seen.tokens_unknown or f"agent {silent[0]} reports no usage"
        for each in self._answers:
            turn.model_calls += 1
            if each.usage is None:
                if not each.failed and not seen.tokens_unknown:
                    seen.tokens_unknown = f"the model of {each.agent} reports no usage"
                continue
            usage = each.usage
            turn.tokens += usage
            self._add_price(each.model or self._models.get(each.agent, ""), usage)
        if seen.tokens_unknown:
            seen.cost_usd, seen.cost_unknown = None, seen.cost_unknown or seen.tokens_unknown

    def _add_price(self, model: str, usage: Usage) -> None:
        if self._prices is None:
            return
        seen = self._seen
        price = price_of(self._prices, model, usage, datetime.now(UTC))
        if isinstance(price, Unknown):
            why = f"{price.reason}; give prices= to the run or a middleware"
            seen.cost_unknown, seen.cost_usd = seen.cost_unknown or why, None
        elif seen.cost_usd is not None:
            seen.cost_usd = float((Money.of(seen.cost_usd) + price).usd)

    # --- callbacks of ADK ----------------------------------------------------------------------

    async def before_run_callback(self, *, invocation_context: Any) -> None:
        """Note the session: the first is the case's, others are inside tools."""
        session = invocation_context.session.id
        self._session = self._session or session
        if session != self._session:
            self._inside[session] = invocation_context.agent.name

    async def on_model_error_callback(self, *, error: Exception, **_: Any) -> None:
        """Note what a model raised."""
        self.failed(error)

    async def before_model_callback(self, *, callback_context: Any, llm_request: Any) -> None:
        """Record the first request of an agent, which judges are told of."""
        agents = self._requests.setdefault(callback_context.invocation_id, {})
        agents.setdefault(callback_context.agent_name, llm_request.config)

    async def after_model_callback(self, *, callback_context: Any, llm_response: Any) -> None:
        """Record an answer of a model, wherever in the pipeline."""
        response, metadata = llm_response, llm_response.usage_metadata
        if response.partial:
            return
        known = any(getattr(metadata, each, None) for each in _COUNTS)
        usage = Usage.from_genai(metadata) if known else None
        model = getattr(response, "model_version", None) or ""
        failed = response.error_code is not None
        self._answers.append(_Answer(callback_context.agent_name, model, usage, failed))

    async def on_event_callback(self, *, invocation_context: Any, event: Event) -> None:
        """Record an event inside a tool, or any, where ADK's service has the runner."""
        inside = self._inside.get(invocation_context.session.id)
        if inside is not None or self._records_all:
            self.add(event, inside or "")

    async def before_tool_callback(self, *, tool: Any, **_: Any) -> None:
        """Route the call through the mocks, below all callbacks."""
        adk.call_site(tool)

    async def on_tool_error_callback(
        self, *, tool_context: Any, error: Exception, **_: Any
    ) -> None:
        """Note what a tool raised, even if something recovers from it."""
        self._mocks.errors.setdefault(tool_context.function_call_id or "", error_line(error))


def _details(agent: str, config: Any) -> AgentDetails:
    told = text_of(config.system_instruction)
    return AgentDetails(name=agent, instructions=told, tool_declarations=config.tools or [])


def _snapshot(value: Any) -> Any:
    """A copy of a value, as its writer may change it later."""
    try:
        return copy.deepcopy(value)
    except Exception:  # noqa: BLE001  # user objects
        return value


def _response(question: Pending, value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    return {"confirmed" if question.kind == "confirmation" else "result": value}
