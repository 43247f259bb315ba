"""What the answer of a run is, given what its leaves said and where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from adk_fluent.protocol._attempts import kept_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from adk_fluent.protocol._event import AgentEvent

#: Arrangements all of whose positions count; of every other one only the last that has an answer.
ALL_COUNT = frozenset("pm")
#: What events are for (``metadata["why"]``) whose text is no agent's.
NOTICES = frozenset({"refused", "held"})


def final_text(events: Iterable[AgentEvent]) -> str:
    """The answer of a run: what its last step said, "" if nobody said anything.

    Only final texts count (`AgentEvent.is_final`), not streamed fragments, not what a discarded
    attempt said, and not what the user is told of a refusal or an open question, which no agent
    says. Each stands at a position, `AgentEvent.path`:

    - a sequence, loop, route, fallback, race, timeout or transfer answers what its last position
      that has an answer says;
    - a parallel or a map answers what all its positions say, in declared order, with blank lines
      between them;
    - an agent that gave several final texts answers the last of them.

    Events of several runs give the answer of the last one. Where no event has a position (a
    backend of somebody else's) the answer is the last final text.
    """
    answers = finals(events)
    placed = [(e.path, e.content or "") for e in answers if e.path is not None]
    if placed or not answers:
        return compose_answer(placed)
    return answers[-1].content or ""


def finals(events: Iterable[AgentEvent]) -> list[AgentEvent]:
    """The events with final texts of agents that `final_text` chooses among."""
    found = [
        e
        for e in kept_events(events)
        if e.is_final and e.content and not e.is_partial and e.metadata.get("why") not in NOTICES
    ]
    return [e for e in found if e.run_id == found[-1].run_id]


class Data(NamedTuple):
    """The validated data of a typed answer, beside which a text is just a `str`.

    Attributes:
        value: The data; a list of one also stands for it, which JSON makes of this.
    """

    value: Any


class _Position:
    """A place in the arrangement, with the places below it by letter and number."""

    __slots__ = ("below", "said")

    def __init__(self) -> None:
        self.below: dict[tuple[str, int], _Position] = {}
        self.said: str | Data = ""

    @property
    def is_one(self) -> bool:
        """Whether only one of those below counts."""
        return max(self.below)[0] not in ALL_COUNT

    def counting(self) -> Sequence[_Position]:
        """Those below that count, in declared order."""
        if not self.below:
            return ()
        if self.is_one:
            return (self.below[max(self.below)],)
        return [self.below[each] for each in sorted(self.below)]


def compose_answer(texts: Iterable[tuple[str, str]]) -> str:
    """The text that texts at dotted positions amount to, in whatever order positions arrived.

    Args:
        texts: (path, text) in order of arrival. A path is like ``s2.p1.l3``: the kind of each
            arrangement on the way down and the number of the position in it; "" is the root.
            Of several texts at one position the last counts; where there are texts at a position
            and below it, those below.

    Raises:
        ValueError: A path is not of that form.
    """
    return compose_value(texts)


def compose_value(said: Iterable[tuple[str, str | Data]]) -> Any:
    """The value that texts and data at dotted positions amount to.

    Where there is no data it is the text of `compose_answer`. Else it is the data; of a parallel or
    map a list, with the data or the text of each position.

    Args:
        said: (path, text or data) in order of arrival, as for `compose_answer`.

    Raises:
        ValueError: A path is not of that form.
    """
    answer = composed(said)
    return answer if isinstance(answer, str) else answer.value


def composed(said: Iterable[tuple[str, str | Data]]) -> str | Data:
    """The same, with data still told from text."""
    root = _Position()
    for path, each in said:
        if each == "":
            continue
        here = root
        for part in path.split(".") if path else ():
            here = here.below.setdefault((part[:1], int(part[1:])), _Position())
        here.said = each if isinstance(each, str) else Data(*each)
    order: list[_Position] = []
    todo = [root]
    while todo:
        here = todo.pop()
        order.append(here)
        todo.extend(here.counting())
    for here in reversed(order):
        counting = here.counting()
        if counting:
            here.said = counting[0].said if here.is_one else _joined(counting)
    return root.said


def _joined(positions: Sequence[_Position]) -> str | Data:
    said = [each.said for each in positions]
    if any(isinstance(each, Data) for each in said):
        return Data([each.value if isinstance(each, Data) else each for each in said])
    return "\n\n".join(str(each) for each in said)
