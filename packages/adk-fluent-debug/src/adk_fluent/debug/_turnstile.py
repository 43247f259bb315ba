"""The order in which things happen in a replay, which is that of the recording."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from adk_fluent.debug._recorded_run import OF_CALLS, Data, number_of
from adk_fluent.extend import LOG

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.protocol import AgentEvent

#: What is alike in what one line of control does: the kind, the step, its position, a fragment.
Lane = tuple[str, str, str, bool]

#: Turns of the event loop after the end of a tape within which what is cancelled hears of it.
_GRACE: Final = 100
#: How often its patience a call that was cancelled waits for that.
_PATIENCES: Final = 10
#: Kinds of lanes beside that of events, and under which key their entries have the position.
_TURNS: Final = {"handed": "handed_in", "end": "branch_end", "expired": "expired"}
_ENDS: Final = frozenset({"end", "expired"})


class Turnstile:
    """Lets things happen one at a time, each when all that was recorded before it has happened.

    What begins (a request, a call of a tool) and what is committed (an event) is never held up: it
    follows from what was let through. Answers wait, and in steps that run at the same time also
    events that are handed in, and ends of branches. What was handed in and never committed, and
    what is not on the tape, belongs to a branch that was cancelled before: it waits for that.

    Args:
        tape: The run as it was recorded.
        patience: Seconds to wait for something that does not happen.
    """

    def __init__(self, tape: Sequence[Data], patience: float) -> None:
        self._tape = tape
        self._patience = patience
        self._lanes: dict[Lane, deque[int]] = {}
        self._order, dropped = self._read()
        self._places = {index: place for place, index in enumerate(self._order)}
        self._done = [index in dropped for index in self._order]
        self._at = 0
        self._waiting: dict[int, list[asyncio.Future[None]]] = {}
        self.open: bool = False

    def _read(self) -> tuple[list[int], set[int]]:
        """The order of the entries, and which events were handed in and never committed."""
        handed: dict[Lane, deque[int]] = {}
        for index, entry in enumerate(self._tape):
            lane = _lane_of(entry)
            if lane is None:
                continue
            self._lanes.setdefault(lane, deque()).append(index)
            if lane[0] == "handed":
                handed.setdefault(lane, deque()).append(index)
            elif lane[0] not in _ENDS and (waiting := handed.get(("handed", *lane[1:]))):
                waiting.popleft()
        dropped = {i for each in handed.values() for i in each if not self._tape[i].get("made")}
        expired = {(each["node"], each["expired"]) for each in self._tape if "expired" in each}
        late = expired | {(node, f"{path}.t0".lstrip(".")) for node, path in expired}
        dropped |= {
            index
            for index, each in enumerate(self._tape)
            if (each.get("node"), each.get("branch_end")) in late
        }
        dropped |= self._without_consequence()
        keys: dict[int, float] = {index: index for index in range(len(self._tape))}
        for index, entry in enumerate(self._tape):
            if entry.get("decides"):
                keys[index] = self._last_straggler(index, dropped) + 0.5
        return sorted(keys, key=lambda index: keys[index]), dropped

    def _without_consequence(self) -> set[int]:
        """The entries of calls in branches that were cancelled before anything came of them."""
        last: dict[str, int] = {}
        branches: dict[int | None, str] = {}
        for index, entry in enumerate(self._tape):
            if "event" in entry and (branch := entry["event"].get("branch")):
                last[branch] = index
            elif branch := entry.get("branch"):
                branches[number_of(entry)] = branch
        found: set[int] = set()
        for index, entry in enumerate(self._tape):
            number = number_of(entry, OF_CALLS)
            lost = number in branches and last.get(branches[number], -1) < index
            if lost or entry.get("cancelled"):
                found.add(index)
        return found

    def _last_straggler(self, end: int, dropped: set[int]) -> int:
        """The last thing that siblings of a branch did which ends the fork: they were at it."""
        path: str = self._tape[end]["branch_end"]
        above, _, position = path.rpartition(".")
        siblings = f"{above}.{position[0]}" if above else position[0]
        last = end
        for index in range(end + 1, len(self._tape)):
            lane = _lane_of(self._tape[index])
            if lane is None or lane[0] in _ENDS or index in dropped:
                continue
            where = lane[2]
            if where.startswith(siblings) and not f"{where}.".startswith(f"{path}."):
                last = index
        return last

    def seen(self, event: AgentEvent) -> None:
        """An event is about to be committed."""
        self._take(("event", event.node or event.author, event.path or "", event.is_partial))

    def done(self, *indexes: int) -> None:
        """Something has happened, at these places of the tape."""
        for each in indexes:
            self._done[self._places[each]] = True
        while self._at < len(self._done) and self._done[self._at]:
            self._at += 1
        for place in [each for each in self._waiting if each <= self._at]:
            for future in self._waiting.pop(place):
                if not future.done():
                    future.set_result(None)

    async def take_turn(self, kind: str, node: str, path: str, *, partial: bool = False) -> None:
        """Wait for the turn of something that is about to happen, and take it.

        Args:
            kind: An event is ``handed`` in, a branch comes to its ``end``, or a timeout has
                ``expired``, which never happens where it was not recorded.
            node: The step.
            path: Its position.
            partial: The event is a fragment.
        """
        lane = (kind, node, path, partial)
        if (index := self._next(lane)) is not None:
            await self.turn(index)
            self._take(lane)
        elif kind == "expired":
            await asyncio.get_running_loop().create_future()
        else:
            await self.stray()

    async def turn(self, index: int) -> None:
        """Wait until all has happened that was recorded before something."""
        await self._reach(self._places[index])

    async def stray(self, patience: float | None = None) -> None:
        """Hold up what is not on the tape until all is over; it may be cancelled before.

        Args:
            patience: Seconds in which nothing happens, after which it is let through, and it alone.
        """
        await self._reach(len(self._order), patience)
        for _ in range(0 if self.open else _GRACE):
            await asyncio.sleep(0)

    @property
    def is_over(self) -> bool:
        """Whether all has happened."""
        return self._at >= len(self._order)

    async def settled(self) -> None:
        """Wait until all has happened, and what follows from it; strays are held up for longer."""
        await self._reach(len(self._order))
        for _ in range(_GRACE // 2):
            await asyncio.sleep(0)

    async def quiet(self) -> None:
        """Wait until nothing has happened for many times the patience."""
        before = -1
        while before != self._at:
            before = self._at
            await asyncio.sleep(self._patience * _PATIENCES)

    def _take(self, lane: Lane) -> None:
        if (index := self._next(lane)) is not None:
            self.done(index)

    def _next(self, lane: Lane) -> int | None:
        """What is to come next in a lane; what was skipped, or never committed, is not."""
        waiting = self._lanes.get(lane, deque[int]())
        while waiting and self._done[self._places[waiting[0]]]:
            waiting.popleft()
        return waiting[0] if waiting else None

    async def _reach(self, place: int, patience: float | None = None) -> None:
        if self.open or self._at >= place:
            return
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        waiting = self._waiting.setdefault(place, [])
        waiting.append(future)

        def look(before: int) -> None:
            nonlocal timer
            if future.done():
                return
            if self._at != before:
                timer = loop.call_later(patience or self._patience, look, self._at)
            elif patience is None:
                self._give_up()
            else:
                future.set_result(None)

        timer = loop.call_later(patience or self._patience, look, self._at)
        try:
            # and nothing more: each turn of the loop more is one that was not recorded
            await future
        finally:
            timer.cancel()
            if future in waiting:
                waiting.remove(future)

    def let_go(self) -> None:
        """Hold nothing up any more: the run is not the one that was recorded."""
        self.open = True
        for future in (each for waiting in self._waiting.values() for each in waiting):
            if not future.done():
                future.set_result(None)

    def _give_up(self) -> None:
        LOG.warning(
            "replay: %s did not happen within %g s; from here on nothing is held up",
            _named(self._tape[self._order[self._at]]),
            self._patience,
        )
        self.let_go()


def _lane_of(entry: Data) -> Lane | None:
    """The lane of an entry; None for those of calls."""
    if "event" in entry:
        event: Data = entry["event"]
        who, partial = event.get("node") or event["author"], bool(event.get("is_partial"))
        return ("event", who, event.get("path") or "", partial)
    for kind, key in _TURNS.items():
        if key in entry:
            return (kind, entry["node"], entry[key], bool(entry.get("partial")))
    return None


def _named(entry: Data) -> str:
    if "event" in entry:
        return f"the event of {entry['event']['author']!r}"
    kind = next(key for key in (*OF_CALLS, *_TURNS.values()) if key in entry)
    who = entry.get("tool") or entry.get("agent") or entry.get("node") or entry[kind]
    return f"{kind} {who!r}"
