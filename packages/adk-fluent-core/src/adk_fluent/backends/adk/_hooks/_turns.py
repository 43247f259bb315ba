"""The calls of a model's turn: it is asked again when each of them has a result.

ADK asks it at once, with what stands in the place of the missing results; and of what a tool does
that runs when its question is answered, it follows nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions
from google.adk.flows.llm_flows import functions
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from adk_fluent.backends._config import METADATA_KEY
from adk_fluent.backends.adk._session._copies import copied
from adk_fluent.backends.adk._session._events import (
    REQUEST_CONFIRMATION,
    REQUEST_CREDENTIAL,
    REQUEST_INPUT,
)
from adk_fluent.backends.adk._session._stamps import stamp_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext

_TURN: Final = "_adk_fluent_turn"
_HELD: Final = {METADATA_KEY: {"why": "unsettled"}}
_QUESTIONS: Final = (REQUEST_CONFIRMATION, REQUEST_CREDENTIAL, REQUEST_INPUT)
_USER: Final = "user"


class Turn:
    """What the agents of one step have called and not got yet.

    Args:
        in_loop: Whether the step is in a loop, which a tool may end.
    """

    __slots__ = (
        *("_again", "_asker", "_carried", "_earlier", "_ends", "_escalates"),
        *("_in_loop", "_late", "_open", "_over", "_questioned", "_target"),
    )

    def __init__(self, *, in_loop: bool = False) -> None:
        self._in_loop = in_loop
        self._asker = ""
        self._open: dict[str, str] = {}
        self._earlier: dict[str, types.FunctionCall] = {}
        self._again: list[Event] = []
        self._late = False
        self._over: set[str] = set()
        self._carried: set[str] = set()
        self._questioned: set[str] = set()
        self._begin()

    def _begin(self) -> None:
        self._target: str | None = None
        self._ends = self._escalates = False

    def go_on(self, asker: str, events: Iterable[Event], waits: Collection[str]) -> None:
        """Take up the turn whose questions are answered.

        Args:
            asker: The agent that has asked.
            events: What it sees, with the answers.
            waits: The questions that are still open.
        """
        self._asker = asker
        asked: dict[str, str] = {}
        for event in events:
            if event.author == _USER:
                for each in event.get_function_responses():
                    self._open.pop(each.id or "", None)
                    if each.id in asked and (each.response or {}).get("confirmed") is False:
                        self._over.add(asked[each.id])
            elif event.author == asker and not event.partial:
                asked.update(_confirmations(event))
                self._carried.update((stamp_of(event) or {}).get("settled", ()))
                if calls := _calls(event):
                    self._begin()
                    self._open, self._earlier = dict.fromkeys(calls, asker), calls
                self._returned(event)
        self._carried.intersection_update(waits)
        waits = [id for id in waits if id not in self._carried]
        self._again = []
        self._late = self._target is not None or self._escalates
        # what a tool says of its result meanwhile does not settle the call
        self._open.update({id: asker for id in waits if id in self._earlier})

    def waits_for(self, tool: str) -> bool:
        """Whether a call of a tool is gone on with."""
        return any(each.name == tool for id, each in self._earlier.items() if id in self._open)

    def begin_anew(self, agent: str) -> None:
        """Forget what an agent has called: it is run once more, as it failed."""
        self._open = {id: author for id, author in self._open.items() if author != agent}

    def take(self, event: Event) -> None:
        """Take in what an agent says now."""
        if event.partial:
            return
        self._open.update(dict.fromkeys(_calls(event), event.author))
        self._returned(event)

    def _returned(self, event: Event) -> None:
        """Take in results, and what tools did that were waited for."""
        actions = event.actions
        asked = {**actions.requested_tool_confirmations, **actions.requested_auth_configs}
        given = {each.id for each in event.get_function_responses() if each.id}
        for id in given.difference(asked):
            self._open.pop(id, None)
        resumed = event.author == self._asker and not given.isdisjoint(self._questioned)
        self._questioned.update(given.intersection(asked))
        if not resumed:
            return
        if asked:  # once more; what asks also keeps the model from being asked
            self._again.append(event)
        else:
            self._ends = self._ends or bool(actions.skip_summarization)
        if actions.transfer_to_agent:
            self._target = actions.transfer_to_agent
        if actions.escalate and self._in_loop:
            self._ends = self._escalates = True

    def answer(self, call: str | None) -> None:
        """Note that a call was answered without its tool, which therefore gives no result later."""
        if call is not None:
            self._over.add(call)

    def settled(self, event: Event) -> list[str]:
        """The calls that an event settles for good: refused, or answered without their tool."""
        if not self._over and not self._carried:
            return []
        found = self._over.intersection(r.id or "" for r in event.get_function_responses())
        found |= self._carried  # in a run that failed after that
        self._carried = set()
        return sorted(found)

    def is_open(self, agent: str) -> bool:
        """Whether a call of an agent's has no result yet."""
        return agent in self._open.values()

    def holds(self, agent: str) -> bool:
        """Whether the model of an agent is not asked now."""
        return self.is_open(agent) or (
            agent == self._asker and (self._ends or self._target is not None)
        )

    def behind(self, agent: BaseAgent, ctx: InvocationContext) -> Iterator[Event]:
        """What else has to be said when an agent has come to its end.

        The questions of tools that have run with an answer; and whatever a tool did while other
        calls were open, once that is followed.
        """
        if not self._again and not self._late:
            return
        within = copied(ctx, {"agent": agent})
        parts = [types.Part(function_call=each) for each in self._earlier.values()]
        called = Event(author=agent.name, content=types.Content(role="model", parts=parts))
        for event in self._again:
            for made in (
                functions.generate_auth_event(within, event),
                functions.generate_request_confirmation_event(within, called, event),
            ):
                if made is not None:
                    yield made
        self._again = []
        if self._late and agent.name == self._asker and not self.is_open(agent.name):
            self._late = False
            actions = EventActions(transfer_to_agent=self._target, escalate=self._escalates or None)
            yield Event(
                author=agent.name,
                invocation_id=ctx.invocation_id,
                branch=ctx.branch,
                actions=actions,
            )

    def next(self, agent: BaseAgent, events: list[Event]) -> BaseAgent | None:
        """Who goes on behind an agent, because a tool that was waited for has handed over.

        Args:
            agent: The agent.
            events: What it sees; the other one is shown no answers to calls that are not its own,
                with which ADK 1.x fails.

        Raises:
            ValueError: There is no such agent; as ADK says it.
        """
        name = self._target
        if name is None or self.is_open(self._asker):
            return None
        self._begin()
        found = agent.root_agent.find_agent(name)
        if found is None:
            raise ValueError(f"Agent {name} not found in the agent tree.")
        events[:] = [self._without_answers(each) for each in events]
        return found

    def _without_answers(self, event: Event) -> Event:
        content = event.content
        given = {each.id for each in event.get_function_responses()}
        if event.author != _USER or content is None or given.isdisjoint(self._earlier):
            return event
        left = [part for part in content.parts or () if part.function_response is None]
        return event.model_copy(update={"content": types.Content(role=content.role, parts=left)})


def _calls(event: Event) -> dict[str, types.FunctionCall]:
    """The calls of tools, by id."""
    return {
        each.id: each
        for each in event.get_function_calls()
        if each.id and each.name not in _QUESTIONS
    }


def _confirmations(event: Event) -> dict[str, str]:
    """The calls that a person is asked about, by id of the question."""
    found: dict[str, str] = {}
    for each in event.get_function_calls():
        if each.name == REQUEST_CONFIRMATION and each.id:
            asked: Any = (each.args or {}).get("originalFunctionCall") or {}
            found[each.id] = asked.get("id") or ""
    return found


def keep_turn(changes: dict[str, Any], turn: Turn) -> None:
    """Let the agents of a step find their turn.

    Args:
        changes: What its context has and the one it is made of has not.
        turn: The turn.
    """
    changes[_TURN] = turn


def turn_in(context: Mapping[str, Any]) -> Turn | None:
    """The turn that a context keeps."""
    return context.get(_TURN)


def held_back() -> LlmResponse:
    """What stands for the answer of a model that is not asked: ADK ends the agent with it."""
    content = types.Content(role="model", parts=[])
    return LlmResponse(content=content, custom_metadata=dict(_HELD))


def is_held_back(event: Event) -> bool:
    """Whether an event says that a model was not asked; it goes no further."""
    metadata = event.custom_metadata
    return metadata is not None and metadata.get(METADATA_KEY) == _HELD[METADATA_KEY]
