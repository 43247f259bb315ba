"""What of a session a step sees: the one filter behind history modes and discarded attempts.

ADK builds a prompt from the events of the session it is given. Where the right ones are not those
that ADK would choose, a step gets a copy of the session with a list of its own:

- what a discarded attempt said is left out, also that of earlier runs;
- a step inside a fork sees everything that is over (ADK's rule about branches would hide nested
  and earlier forks from it), and nothing of branches that still run beside it;
- a history mode other than ``transcript`` chooses among the rest.

Everywhere else the step works on the session as it is, and none of this costs anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.events.event import Event
from google.genai import types

from adk_fluent.backends.adk._stamps import discarded_in, stamp_of
from adk_fluent.protocol import compose_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from google.adk.sessions.session import Session

    from adk_fluent.ir import History

_USER = "user"


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
        #: Some event stands in a branch, so that ADK's rule about branches may hide it.
        self.branched = any(event.branch for event in session.events)

    def discard(self, scopes: Iterable[str]) -> None:
        """What was said in these scopes is seen no more."""
        self._gone.setdefault(self._run, set()).update(scopes)

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
        if history == "transcript" and not self._gone and not (branch and self.branched):
            return None
        events = self._visible(attempt, branch)
        if history == "transcript":
            return events
        if history == "own":
            return _answered(
                each
                for each in events
                if each.author in (agent, _USER) and each.actions.compaction is None
            )
        turn = _answered(each for each in events if self._is_own_turn(each, path))
        return turn if history == "none" else [*self._input(events, path), *turn]

    def _visible(self, attempt: str | None, branch: str | None) -> list[Event]:
        """What is not discarded, nor said in a branch that still runs beside this one."""
        own = frozenset(attempt.split(".")) if attempt else frozenset[str]()
        seen: dict[tuple[str, str], bool] = {}
        visible: list[Event] = []
        for event in self._session.events:
            stamp = stamp_of(event) if event.custom_metadata else None
            if stamp is not None and (scopes := stamp.get("attempt")) is not None:
                key = (stamp.get("run", ""), scopes)
                if key not in seen:
                    seen[key] = self._counts(*key, own)
                if not seen[key]:
                    continue
            elif stamp is None and event.branch and event.author == _USER:
                visible.append(event)  # the answer to a call: seen where the call is
                continue
            if branch and event.branch and not f"{branch}.".startswith(f"{event.branch}."):
                event = event.model_copy(update={"branch": None})  # noqa: PLW2901
            visible.append(event)
        return visible

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

    def _input(self, events: list[Event], path: str) -> list[Event]:
        """What the step before put out, or what the user said, as one turn of the user."""
        said: list[tuple[str, str]] = []
        for at, event in enumerate(events):
            stamp = stamp_of(event)
            if stamp is None or stamp.get("run") != self._run or not event.is_final_response():
                continue
            if stamp.get("path") != path and _shown(event):
                said.append((stamp.get("path", ""), str(at)))
        if not said:
            content = self._message
        else:
            chosen = compose_answer(said).split("\n\n")
            parts = [part for at in chosen for part in _shown(events[int(at)])]
            content = types.Content(role=_USER, parts=parts)
        return [] if content is None else [Event(author=_USER, content=content)]


def _shown(event: Event) -> list[types.Part]:
    """The parts of an event that are meant for whoever reads it."""
    content = event.content
    return [
        part
        for part in (content.parts if content and content.parts else ())
        if not part.thought and (part.text or part.inline_data or part.file_data)
    ]


def _answered(events: Iterable[Event]) -> list[Event]:
    """The events without answers of the user's to calls that are not among them."""
    calls: set[str | None] = set()
    kept: list[Event] = []
    for event in events:
        calls.update(call.id for call in event.get_function_calls())
        answers = event.get_function_responses() if event.author == _USER else ()
        if not answers or any(each.id in calls for each in answers):
            kept.append(event)
    return kept
