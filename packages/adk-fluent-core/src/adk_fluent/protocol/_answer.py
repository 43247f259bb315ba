"""What the answer of a run is, given what its leaves said and where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.protocol._attempts import kept_events

if TYPE_CHECKING:
    from collections.abc import Iterable

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
    finals = [
        e
        for e in kept_events(events)
        if e.is_final and e.content and not e.is_partial and e.metadata.get("why") not in NOTICES
    ]
    if not finals:
        return ""
    last_run = finals[-1].run_id
    texts = [(e.path, e.content or "") for e in finals if e.run_id == last_run]
    placed = [(path, text) for path, text in texts if path is not None]
    return compose_answer(placed) if placed else texts[-1][1]


class _Position:
    """A place in the arrangement, with the places below it by letter and number."""

    __slots__ = ("below", "text")

    def __init__(self) -> None:
        self.below: dict[tuple[str, int], _Position] = {}
        self.text = ""


def compose_answer(texts: Iterable[tuple[str, str]]) -> str:
    """The answer that texts at dotted positions amount to, in whatever order positions arrived.

    Args:
        texts: (path, text) in order of arrival. A path is like ``s2.p1.l3``: the kind of each
            arrangement on the way down and the number of the position in it; "" is the root.
            Of several texts at one position the last counts; where there are texts at a position
            and below it, those below.

    Raises:
        ValueError: A path is not of that form.
    """
    root = _Position()
    for path, text in texts:
        if not text:
            continue
        here = root
        for part in path.split(".") if path else ():
            here = here.below.setdefault((part[:1], int(part[1:])), _Position())
        here.text = text
    answer: list[str] = []
    todo = [root]
    while todo:
        here = todo.pop()
        if not here.below:
            answer.append(here.text)
            continue
        last = max(here.below)
        if last[0] in ALL_COUNT:
            todo.extend(here.below[each] for each in sorted(here.below, reverse=True))
        else:
            todo.append(here.below[last])
    return "\n\n".join(answer)
