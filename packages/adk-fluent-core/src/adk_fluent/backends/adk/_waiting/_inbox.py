"""What comes in at a flow root: a message, answers, or the wish to go on; and what is told."""

from __future__ import annotations

import uuid
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from google.adk.events.event import Event
from google.genai import types

from adk_fluent.backends._config import METADATA_KEY
from adk_fluent.backends._resuming import Begin, GoOn, Pipeline, Tell, Verdict, judge
from adk_fluent.backends.adk._caps import checks_answers
from adk_fluent.backends.adk._session._events import (
    REQUEST_CONFIRMATION,
    REQUEST_INPUT,
    to_agent_event,
)
from adk_fluent.backends.adk._session._stamps import stamp_of
from adk_fluent.backends.adk._waiting._confirmations import confirmation
from adk_fluent.backends.adk._waiting._elsewhere import elsewhere
from adk_fluent.backends.adk._waiting._journal import load
from adk_fluent.flow import APPROVAL
from adk_fluent.protocol import JournalEntry

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.sessions.session import Session

    from adk_fluent.backends.adk._running._places import Outer
    from adk_fluent.protocol import Pending

_USER = "user"


class Inbox:
    """What a run of a root begins with.

    Args:
        ctx: The root's context.
        root: The root.
        pipeline: What it runs.
        outer: The step in which the root runs; None when it is nobody's.
        journal: The name of its journal.
        said: What the user says now, where that stands in the session not yet.
    """

    def __init__(
        self,
        ctx: InvocationContext,
        root: BaseAgent,
        pipeline: Pipeline,
        outer: Outer | None,
        journal: str,
        *,
        said: types.Content | None = None,
    ) -> None:
        entry = load(ctx.session.state, journal)
        if entry is not None and outer is not None and entry.run != outer.run:
            entry = None  # of a run that nobody goes on with
        self.entry: JournalEntry | None = entry
        self._ctx = ctx
        self._root = root
        self._pipeline = pipeline
        self._outer = outer
        self._said = said
        self._last = next((e for e in reversed(ctx.session.events) if e.author == _USER), None)

    def verdict(self) -> Verdict:
        """What becomes of it.

        Raises:
            PlanChangedError: The pipeline is not the one whose run is to go on.
            SessionError: Somebody else does the run.
        """
        entry, answers = self.entry, self._answers()
        if entry is None and self._outer is not None:
            return Begin()
        if entry is None:
            goes_on = self._was_begun()
        elif self._outer is not None and entry.status == "running":
            entry = replace(entry, owner="")  # whoever has the outer run has this one
            goes_on = True
        else:
            goes_on = self._outer is not None or entry.invocation_id == self._ctx.invocation_id
        return judge(
            self._pipeline,
            entry,
            answers,
            goes_on=goes_on and not answers,
            was_asked=lambda id: asking(self._ctx.session.events, id) is not None,
            elsewhere=self._elsewhere,
            below=below(self._root) if answers else (),
        )

    def entry_of(self, goes_on: GoOn | None, owner: str) -> JournalEntry:
        """Where a run stands that begins or goes on now.

        Args:
            goes_on: What it goes on with.
            owner: Who does it.
        """
        if goes_on is not None:  # by the call that began it, which ADK can go on with
            return replace(goes_on.entry, answered=dict(goes_on.answers), owner=owner)
        return JournalEntry(
            "",
            run=str(uuid.uuid4()) if self._outer is None else self._outer.run,
            invocation_id=self._ctx.invocation_id,
            user_message=None if self._last is None else self._last.id,
            owner=owner,
        )

    def note(self, told: Tell) -> Event | None:
        """What the user is told when nothing is run; None in the midst of somebody's step."""
        if self._outer is not None:
            return None
        pending = questions(self._ctx.session.events, told.waits)
        lines = [told.text, *(f"- {each.name}: {each.message}" for each in pending if each.message)]
        stamp: dict[str, Any] = {"path": "", "node": self._pipeline.node.name, "why": "held"}
        stamp["pending"] = [told_again(each) for each in pending]
        if self._last is not None:
            stamp["held"] = self._last.id
        return Event(
            author=self._root.name,
            invocation_id=self._ctx.invocation_id,
            branch=self._ctx.branch,
            content=types.Content(role=None, parts=[types.Part(text="\n".join(lines))]),
            custom_metadata={METADATA_KEY: stamp},
        )

    def _was_begun(self) -> bool:
        """Whether this very call has run before, and somebody has brought it to its end since."""
        if self._root.parent_agent is not None:
            return False
        for event in reversed(self._ctx.session.events):
            if event.invocation_id == self._ctx.invocation_id:
                if event.author == _USER:
                    return False
                if stamp_of(event) is not None:  # others may append theirs before a run
                    return True
        return False

    def _answers(self) -> dict[str, Any]:
        """What came in for questions of this root and the agents below it, by id."""
        content, last = self._said or self._ctx.user_content, self._last
        given = list(content.parts or ()) if content is not None else []
        if self._said is None and last is not None and last.content is not None:
            # 2.x hands the message that began the run to what stands below an agent
            given.extend(last.content.parts or ())
        found = {
            each.id: each.response or {}
            for part in given
            if (each := part.function_response) is not None and each.id
        }
        return {id: value for id, value in found.items() if self._is_ours(id)}

    def _is_ours(self, id: str) -> bool:
        if self.entry is not None and (id in self.entry.waits or id in self.entry.answered):
            return True
        asked = asking(self._ctx.session.events, id)
        if asked is None:
            return self._root.parent_agent is None
        if self._root.find_agent(asked.author) is not None:
            return True
        return self._root.parent_agent is None and any(
            id in each.waits for each in self._elsewhere().values()
        )

    def _elsewhere(self) -> dict[str, JournalEntry]:
        return elsewhere(self._ctx.session.state, self._root)


def asking(events: Iterable[Event], id: str) -> Event | None:
    """The event whose call asks a question."""
    return next((e for e in events if any(c.id == id for c in e.get_function_calls())), None)


def below(root: BaseAgent) -> list[Pipeline]:
    """The pipelines of the flows below a root."""
    found: list[Pipeline] = []
    agents = list(root.sub_agents)
    while agents:
        agent = agents.pop()
        pipeline = getattr(getattr(agent, "plan", None), "pipeline", None)  # that of a flow root
        if isinstance(pipeline, Pipeline):
            found.append(pipeline)
        agents += agent.sub_agents
    return found


def questions(events: Iterable[Event], ids: Collection[str]) -> list[Pending]:
    """The questions of these ids, as they were asked."""
    found: dict[str, Pending] = {}
    for event in events if ids else ():
        if event.long_running_tool_ids and not event.long_running_tool_ids.isdisjoint(ids):
            found.update({each.id: each for each in to_agent_event(event).pending})
    return [found[id] for id in ids if id in found]


def told_again(asked: Pending) -> dict[str, Any]:
    """A question as a stamp repeats it: its fields, but for what goes without saying."""
    fields = {key: value for key, value in asdict(asked).items() if value not in (None, "")}
    if asked.kind == "gate" and asked.response_schema == APPROVAL:
        del fields["response_schema"]
    return fields


def request(asked: Iterable[Pending], ctx: InvocationContext) -> list[types.Part]:
    """The questions of gates, in the form in which ADK's own surfaces show them."""
    checks = checks_answers(ctx)
    return [
        types.Part(
            function_call=types.FunctionCall(
                id=each.id,
                name=REQUEST_INPUT,
                args={
                    "interruptId": each.id,
                    "message": each.message,
                    "payload": each.payload,
                    # ADK takes anything for one that says the same in other words
                    "response_schema": {"allOf": [each.response_schema]}
                    if checks
                    else each.response_schema,
                },
            )
        )
        for each in asked
    ]


def said_in(session: Session, event_id: Any) -> types.Content | None:
    """What the user said in an event; None when the session was loaded without it."""
    return next((e.content for e in session.events if e.id == event_id), None)


def results(session: Session, answers: Mapping[str, Any]) -> list[types.Part]:
    """Answers in the form in which a model is told them."""
    parts: list[types.Part] = []
    for id, value in answers.items():
        asked = asking(session.events, id)
        calls = asked.get_function_calls() if asked is not None else ()
        name = next((call.name for call in calls if call.id == id), None)
        given = confirmation(value) if name == REQUEST_CONFIRMATION else value
        response = types.FunctionResponse(id=id, name=name, response=given)
        parts.append(types.Part(function_response=response))
    return parts
