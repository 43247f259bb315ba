"""What of a session a step sees: the one filter behind history modes and discarded attempts.

ADK builds a prompt from the events of the session it is given. Where the right ones are not those
that ADK would choose, a step gets a copy of the session with a list of its own:

- what a discarded attempt said is left out, also that of earlier runs, and with its calls what
  the user answered to them;
- so is a call that was never answered, for its tool failed or its run was cut off: a model refuses
  such a conversation, and ADK before 2.x would send it again in every later run;
- what branches of a fork said stands in declared order, whichever was done first;
- a step inside a fork sees everything that is over (ADK's rule about branches would hide nested
  and earlier forks from it), and nothing of branches that still run beside it;
- so is what stood for the result of another step's call while a person was asked, once it has come;
- so are messages on which nothing was run, for the run waited for an answer, and answers to gates;
- so are answers that did not fit, whose agent was asked again;
- a history mode other than ``transcript`` chooses among the rest.

Everywhere else the step works on the session as it is, and none of this costs anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.adk.events.event import Event
from google.genai import types

from adk_fluent.backends._declared_order import in_declared_order
from adk_fluent.backends.adk._session._events import REQUEST_INPUT
from adk_fluent.backends.adk._session._stamps import discarded_in, stamp_of
from adk_fluent.backends.adk._waiting._answer_events import taken_apart, without_strangers
from adk_fluent.backends.adk._waiting._confirmations import Used
from adk_fluent.protocol import compose_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from google.adk.sessions.session import Session

    from adk_fluent.ir import History

_USER: Final = "user"
#: What stands for the user's turn where there is none, in ADK's own words. ADK would leave it out
#: when the agent has called a tool, and Gemini refuses a conversation that starts with a call.
_OPENING: Final = "Handle the requests as specified in the System Instruction."


class Prompts:
    """What the steps of one run see.

    Args:
        session: The session of the run.
        run: Identity of the run.
        message: What the user said.
        is_open: Whether a scope of this run is still open.
    """

    def __init__(
        self,
        session: Session,
        run: str,
        message: types.Content | None,
        is_open: Callable[[str], bool],
    ) -> None:
        self._session = session
        self._run = run
        self._message = message
        self._is_open = is_open
        self._gone = discarded_in(session.events)
        self._unanswered = _unanswered(session.events)
        self._apart = taken_apart(session.events)
        events = self._events()
        self._hidden = _hidden(events) | Used(events).repeats
        for id in self._hidden:  # on which nothing was run
            self._apart.pop(id, None)
        self._asked = any(event.actions.requested_tool_confirmations for event in session.events)
        #: Some event stands in a branch, so that ADK's rule about branches may hide it.
        #: Some answer did not fit, and its agent was asked again.
        self.retried = any("retried" in (stamp_of(event) or {}) for event in session.events)
        self.branched = any(event.branch for event in session.events)

    def discard(self, scopes: Iterable[str]) -> None:
        """What was said in these scopes is seen no more."""
        self._gone.setdefault(self._run, set()).update(scopes)

    def says(self, message: types.Content) -> None:
        """Another message stands in the place of the user's."""
        self._message = message
        put_in_place(self._session, message)

    def events_for(
        self, agent: str, history: History, path: str, attempt: str | None, branch: str | None
    ) -> list[Event] | None:
        """The events that a step sees; None means all there are, by ADK's own rule.

        Args:
            agent: The step's agent.
            history: What it wants to see.
            path: Position of the step.
            attempt: The scopes it works in.
            branch: Its branch.
        """
        filtered = self._gone or self._unanswered or self._apart or self._hidden or self._asked
        filtered = filtered or self.retried
        if history == "transcript" and not filtered and not (branch and self.branched):
            if not self.branched:
                return None
            events = in_declared_order(self._session.events, _place)
            return None if events is self._session.events else events
        events = self._visible(attempt, branch)
        if self._asked:
            events = settled(events, agent)
        events = in_declared_order(events, _place)
        if history == "transcript":
            return events
        if history == "own":
            return without_strangers(
                each
                for each in events
                if each.author in (agent, _USER) and each.actions.compaction is None
            )
        turn = without_strangers(each for each in events if self._is_own_turn(each, path))
        before = _said(_OPENING) if history == "none" else self._input(events, path)
        return [before, *turn]

    def _events(self) -> list[Event]:
        """All events, with each of the user's answers where it belongs."""
        if not self._apart:
            return self._session.events
        return [part for each in self._session.events for part in self._apart.get(each.id, [each])]

    def _visible(self, attempt: str | None, branch: str | None) -> list[Event]:
        """What is not discarded, nor said in a branch that still runs beside this one."""
        own = frozenset(attempt.split(".")) if attempt else frozenset[str]()
        seen: dict[tuple[str, str], bool] = {}
        visible: list[Event] = []
        # the user's answers are nobody's attempt
        answered = bool(self._gone or self._apart)
        for event in self._events():
            if event.id in self._hidden:
                continue
            stamp = stamp_of(event) if event.custom_metadata else None
            if stamp is not None and "retried" in stamp:
                continue
            if stamp is not None and (scopes := stamp.get("attempt")) is not None:
                key = (stamp.get("run", ""), scopes)
                if key not in seen:
                    seen[key] = self._counts(*key, own)
                if not seen[key]:
                    continue
            elif stamp is None and event.branch and event.author == _USER:
                answered = True  # ADK puts the answer to a call where the call stands
            if branch and event.branch and not f"{branch}.".startswith(f"{event.branch}."):
                event = event.model_copy(update={"branch": None})  # noqa: PLW2901
            visible.append(event)
        if answered:
            visible = without_strangers(visible)
        return _without(self._unanswered, visible) if self._unanswered else visible

    def _counts(self, run: str, attempt: str, own: Collection[str]) -> bool:
        scopes = attempt.split(".")
        gone = self._gone.get(run)
        if gone is not None and not gone.isdisjoint(scopes):
            return False
        return run != self._run or all(each in own or not self._is_open(each) for each in scopes)

    def _is_own_turn(self, event: Event, path: str) -> bool:
        """Whether the step said it before it was paused, or it answers what the step asked."""
        stamp = stamp_of(event)
        if stamp is None:
            return event.author == _USER and bool(event.get_function_responses())
        return stamp.get("run") == self._run and stamp.get("path") == path

    def _input(self, events: list[Event], path: str) -> Event:
        """What the step before put out, or what the user said, as one turn of the user."""
        said: list[tuple[str, str]] = []
        for at, event in enumerate(events):
            stamp = stamp_of(event)
            if stamp is None or stamp.get("run") != self._run or not event.is_final_response():
                continue
            if stamp.get("path") != path and not stamp.get("besides") and _shown(event.content):
                said.append((stamp.get("path", ""), str(at)))
        if not said:
            return self._message_of(events)
        chosen = compose_answer(said).split("\n\n")
        return _said(*(part for at in chosen for part in _shown(events[int(at)].content)))

    def _message_of(self, events: list[Event]) -> Event:
        """What the user said; where a run goes on with answers to calls, what they said before."""
        message = Event(author=_USER, content=self._message)
        if message.content is not None and not message.get_function_responses():
            return message
        said = (event for event in reversed(events) if event.author == _USER)
        return next((event for event in said if _shown(event.content)), _said(_OPENING))


def _place(event: Event) -> tuple[str, str] | None:
    """The run and the position that an event is stamped with."""
    stamp = stamp_of(event) if event.custom_metadata else None
    return None if stamp is None else (stamp.get("run", ""), stamp.get("path", ""))


def _said(*parts: str | types.Part) -> Event:
    """One turn of the user."""
    given = [types.Part(text=each) if isinstance(each, str) else each for each in parts]
    return Event(author=_USER, content=types.Content(role=_USER, parts=given))


def _shown(content: types.Content | None) -> list[types.Part]:
    """The parts of a turn that are meant for whoever reads it."""
    return [
        part
        for part in (content.parts if content and content.parts else ())
        if not part.thought and (part.text or part.inline_data or part.file_data)
    ]


def _hidden(events: Iterable[Event]) -> set[str]:
    """Ids of the events of the user's that no model is told.

    What was said while a run waited, on which nothing was run: otherwise it would reach the agents
    after the gate without the person at the gate having seen it. And answers to gates, by whatever
    name: what counts is the question's id, and ADK 1.x fails where it finds no call of that id.
    """
    hidden: set[str] = set()
    asked: set[str | None] = set()
    for event in events:
        if event.long_running_tool_ids:
            asked.update(c.id for c in event.get_function_calls() if c.name == REQUEST_INPUT)
        if event.author == _USER:
            answers = event.get_function_responses()
            if answers and all(each.name == REQUEST_INPUT or each.id in asked for each in answers):
                hidden.add(event.id)
        elif event.custom_metadata and (held := (stamp_of(event) or {}).get("held")):
            hidden.add(held)
    return hidden


def _unanswered(events: Iterable[Event]) -> set[str]:
    """Ids of the calls that wait for nothing any more, and have no result."""
    calls: set[str] = set()
    answers: set[str | None] = set()
    for event in events:
        content = event.content
        for part in content.parts or () if content is not None else ():
            if (call := part.function_call) is not None:
                if call.id and call.id not in (event.long_running_tool_ids or ()):
                    calls.add(call.id)
            elif part.function_response is not None:
                answers.add(part.function_response.id)
    return calls - answers


def _without(calls: Collection[str], events: Iterable[Event]) -> list[Event]:
    """The events without these calls; an event of nothing else is left out."""
    kept: list[Event] = []
    for event in events:
        if not any(call.id in calls for call in event.get_function_calls()):
            kept.append(event)
            continue
        content = event.content
        given = content.parts or () if content is not None else ()
        parts = [p for p in given if p.function_call is None or p.function_call.id not in calls]
        if content is not None and parts:
            told = content.model_copy(update={"parts": parts})
            kept.append(event.model_copy(update={"content": told}))
    return kept


def settled(events: list[Event], step: str | None = None) -> list[Event]:
    """The events without what stood for a result, while a person was asked, that has come.

    Args:
        events: The events.
        step: Whose own are left as they are: ADK puts the result where it stood, and models that
            know no ids take the results in the order of the calls.
    """
    came = {
        each.id
        for event in events
        for each in event.get_function_responses()
        if each.id not in event.actions.requested_tool_confirmations
    }
    kept: list[Event] = []
    for event in events:
        stale = came.intersection(event.actions.requested_tool_confirmations)
        given, content = event.get_function_responses() if stale else (), event.content
        own = step is not None and (stamp_of(event) or {}).get("node") == step
        if content is None or own or not any(each.id in stale for each in given):
            kept.append(event)
            continue
        parts = [
            part
            for part in content.parts or ()
            if part.function_response is None or part.function_response.id not in stale
        ]
        if parts:
            told = content.model_copy(update={"parts": parts})
            kept.append(event.model_copy(update={"content": told}))
    return kept


def put_in_place(session: Session, message: types.Content) -> None:
    """Let the agents of this run see another message than the user's last one."""
    said = next((each for each in reversed(session.events) if each.author == _USER), None)
    if said is not None:
        said.content = message
