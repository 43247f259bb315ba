"""Where two pieces of JSON data differ, and where two runs do, event by event."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from adk_fluent.debug._recorded_run import Data, counted
from adk_fluent.debug._redaction import REDACTED
from adk_fluent.extend import must_be
from adk_fluent.protocol import AgentEvent, asked_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_SHOWN: Final = 200  # characters of a value in a message


class Difference(NamedTuple):
    """The first place where two pieces of data differ.

    Attributes:
        path: Where, as ``.contents[0].parts[0].text``.
        recorded: What one has there.
        now: What the other has there.
    """

    path: str
    recorded: Any
    now: Any

    def __str__(self) -> str:
        return f"{self.path}: {shown(self.recorded)} -> {shown(self.now)}"


def first_difference(
    recorded: Any, now: Any, *, empty_is_missing: bool = False
) -> Difference | None:
    """The first difference, depth first; what was redacted is like anything.

    Args:
        recorded: One piece of data.
        now: The other one.
        empty_is_missing: An empty mapping or list is the same as none, as in requests, from which
            what is empty is left out, and in which redaction empties mappings.
    """
    todo: list[Difference] = [Difference("", recorded, now)]
    while todo:
        place = todo.pop()
        path, was, has = place
        if type(was) is type(has) and isinstance(was, dict | list):
            before, after = _parts(was), _parts(has)
            todo += [
                Difference(path + key, before.get(key, Missing), after.get(key, Missing))
                for key in reversed(before | after)
            ]
        elif empty_is_missing and _is_empty(was) and _is_empty(has):
            continue
        elif not _fits(was, has):
            return place
    return None


def shown(value: Any) -> str:
    """A value in a message, cut off where it is long."""
    if value is Missing:
        return "nothing"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


class Missing:
    """Stands for what is not there."""


def _parts(value: Any) -> Data:
    """What is in a mapping or list, by the last step of its path."""
    if isinstance(value, dict):
        return {f".{key}": each for key, each in cast("Data", value).items()}
    return {f"[{at}]": each for at, each in enumerate(value)}


def _is_empty(value: Any) -> bool:
    return value is Missing or (isinstance(value, dict | list) and not value)


def _fits(was: Any, has: Any) -> bool:
    """Whether two scalars are the same, as far as one can tell of what was redacted."""
    if was == has:
        return isinstance(was, bool) is isinstance(has, bool)
    if was == REDACTED:
        return has is not Missing
    if not (isinstance(was, str) and isinstance(has, str) and REDACTED in was):
        return False
    # anything may stand between the pieces, which are no patterns
    pieces = (re.sub(r"([*?[])", r"[\1]", each) for each in was.split(REDACTED))
    return fnmatchcase(has, "*".join(pieces))


_TEMPORARY: Final = "temp:"
#: Where adk-fluent-cost notes on an event what its calls cost, and when; a replay costs nothing.
COST: Final = "adk_fluent_cost"
#: Begins the keys of state under which a middleware notes which call it asks about.
ASKED: Final = asked_key("")
#: Begins the keys of state under which middlewares count and remember.
OURS: Final = ("adk_fluent_", "user:adk_fluent_")


@dataclass(frozen=True, slots=True)
class EventChange:
    """The first difference between an event and the one in its place.

    Attributes:
        index: Which event it is, of all or of its lane, from 0.
        lane: Who made it: the branch, if there is one, and the agent or other step.
        path: Where in the event, as ``.content``; empty if there is no event in one of the runs.
        before: What the first run has there; None if nothing.
        after: What the second run has there; None if nothing.
    """

    index: int
    lane: str
    path: str
    before: Any
    after: Any

    def __str__(self) -> str:
        where = f"event {self.index} ({self.lane})"
        if not self.path:
            return f"{where} is {'new' if self.before is None else 'gone'}"
        before, after = (Missing if v is None else v for v in (self.before, self.after))
        return f"{where} differs at {Difference(self.path, before, after)}"


@dataclass(frozen=True, slots=True)
class EventDiff:
    """What differs between the events of two runs; false if nothing does.

    Identities of events, calls, runs and attempts count by the order in which they appear, and
    times do not count, nor what adk-fluent-cost notes of costs. What was redacted in the first run
    is like anything.

    Attributes:
        first: The first event that differs, in the order of the runs; None if none does.
        by_lane: For each branch and step whose events differ, the first that does. A run whose
            events came in another order has a `first` and nothing here.
        counts: How many events the runs have.
    """

    first: EventChange | None = None
    by_lane: dict[str, EventChange] = field(default_factory=dict[str, EventChange], hash=False)
    counts: tuple[int, int] = (0, 0)
    _sides: tuple[list[AgentEvent], ...] = field(default=(), repr=False, hash=False)

    def __bool__(self) -> bool:
        return self.first is not None

    @property
    def summary(self) -> str:
        """What differs, in a few lines."""
        if self.first is None:
            return f"no difference in {counted(self.counts[0], 'event')}"
        lines = [f"{self.counts[0]} and {self.counts[1]} events; {self.first}"]
        if not self.by_lane:
            lines.append("every agent made the same events, in another order")
        rest = [each for each in self.by_lane.values() if each.lane != self.first.lane]
        lines += [f"also {each}" for each in rest]
        return "\n".join(lines)

    def unified(self, context: int = 3) -> str:
        """All differences as a unified diff of the events in JSON; empty if there is none.

        Args:
            context: Lines around each difference.
        """
        if self.first is None:
            return ""
        import difflib  # noqa: PLC0415  # seldom needed

        before, after = map(_lines, self._sides)
        return "\n".join(
            difflib.unified_diff(before, after, "before", "after", lineterm="", n=context)
        )


def diff_events(before: Iterable[AgentEvent], after: Iterable[AgentEvent]) -> EventDiff:
    """Compare the events of two runs.

    Args:
        before: The events of one run, such as `Recording.events`.
        after: Those of the other, such as what ``run`` returned.

    Raises:
        UsageError: One of them is no list of events.
    """
    first, second = _listed(before), _listed(after)
    change = _first_change(first, second)
    if change is None:
        return EventDiff(counts=(len(first), len(second)))
    lanes = dict.fromkeys(lane_of(each) for each in (*first, *second))
    by_lane: dict[str, EventChange] = {}
    for lane in lanes:
        theirs = ([each for each in side if lane_of(each) == lane] for side in (first, second))
        if (found := _first_change(*theirs)) is not None:
            by_lane[lane] = found
    return EventDiff(change, by_lane, (len(first), len(second)), (first, second))


def normalized(events: Sequence[AgentEvent]) -> list[Data]:
    """The events as data without what is another in every run of the same.

    Args:
        events: The events, in order.
    """
    names = _Names()
    return [names.put_in(event.to_dict()) for event in events]


class _Names:
    """Identities by the order in which they appear."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], str] = {}

    def _of(self, kind: str, id: str | None) -> str | None:
        if not id:
            return id
        key = (kind, id)
        return self._known.setdefault(key, f"{kind}-{len(self._known)}")

    def _key(self, key: str) -> str:
        """A key of state; the id of a call or a run in it by the order, too."""
        if key.startswith(ASKED):
            return asked_key(self._of("call", key.removeprefix(ASKED)))
        for (kind, id), name in self._known.items():
            if kind == "run" and id in key:
                return key.replace(id, name)
        return key

    def _written(self, value: Any) -> Any:
        """What a middleware has written down, which may count by runs."""
        if not isinstance(value, dict):
            return value
        held = cast("dict[str, Any]", value)
        return {self._key(key): self._written(each) for key, each in held.items()}

    def put_in(self, event: Data) -> Data:
        """The event with names for identities, and without what tells nothing of the run."""
        event.pop("timestamp", None)
        metadata: Data = event.get("metadata") or {}
        for holder, name, kind in (
            (event, "id", "event"),
            (event, "invocation_id", "invocation"),
            (metadata, "run", "run"),
            *((each, "call_id", "call") for each in event.get("tool_calls", ())),
            *((each, "call_id", "call") for each in event.get("tool_responses", ())),
            *((each, "id", "call") for each in event.get("pending", ())),
        ):
            if name in holder:
                holder[name] = self._of(kind, holder[name])
        wrote: Data = event.get("state_delta") or {}
        attached: Data = event.get("custom_metadata") or {}
        event["state_delta"] = {  # as a session keeps it
            self._key(key): self._written(value) if key.startswith(OURS) else value
            for key, value in wrote.items()
            if not key.startswith(_TEMPORARY)
        }
        event["custom_metadata"] = {key: each for key, each in attached.items() if key != COST}
        if event.get("attempt"):
            ids = event["attempt"].split(".")
            event["attempt"] = ".".join(self._of("attempt", each) or "" for each in ids)
        if "discarded" in event:
            event["discarded"] = [self._of("attempt", each) for each in event["discarded"]]
        if asked := metadata.get("requested_tool_confirmations"):
            metadata["requested_tool_confirmations"] = {
                self._of("call", key) or "": each for key, each in asked.items()
            }
        return event


def _first_change(first: Sequence[AgentEvent], second: Sequence[AgentEvent]) -> EventChange | None:
    found = first_difference(normalized(first), normalized(second))
    if found is None:
        return None
    step, _, path = found.path.partition("]")
    index = int(step.removeprefix("["))
    was, now = (None if v is Missing else v for v in (found.recorded, found.now))
    event = (second if index < len(second) else first)[index]
    return EventChange(index, lane_of(event), path, was, now)


def lane_name(agent: str, branch: str) -> str:
    """What a lane is called: by the agent, or other step, and by the branch if that tells more."""
    inside = branch.rpartition(".")[2] == agent
    return f"{branch}/{agent}" if branch and not inside else agent


def lane_of(event: AgentEvent) -> str:
    """The lane of an event: its branch, if there is one, and the step that made it."""
    return lane_name(event.node or event.author, event.branch or "")


def _lines(events: Sequence[AgentEvent]) -> list[str]:
    made = ({k: v for k, v in each.items() if v != {}} for each in normalized(events))
    texts = (json.dumps(each, indent=1, ensure_ascii=False, sort_keys=True) for each in made)
    return [line for text in texts for line in text.split("\n")]


def _listed(events: Any) -> list[AgentEvent]:
    is_some = hasattr(events, "__iter__") and not isinstance(events, str | bytes | dict)
    made: list[Any] = list(cast("Iterable[Any]", events)) if is_some else [events]
    for each in made:
        must_be(AgentEvent, each, "diff_events takes two lists of events")
    return made
