"""The tape of one run while it is replayed: which call is answered by what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from adk_fluent.debug._compare import Difference, first_difference, shown
from adk_fluent.debug._errors import ReplayMismatchError
from adk_fluent.debug._turnstile import Turnstile, call_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.debug._run import RecordedRun

Data = dict[str, Any]


@dataclass(slots=True, eq=False)
class Taped:
    """A call on a tape.

    Attributes:
        entry: The entry where it begins.
        start: The index of that entry.
        asked: What is compared: the request, or the arguments.
        chunks: The indexes of the fragments of its answer.
        end: The index of the entry where it ends; None if it never did.
        used: A run has asked for it.
    """

    entry: Data
    start: int
    asked: Any
    chunks: list[int] = field(default_factory=list[int])
    end: int | None = None
    used: bool = False

    @property
    def agent(self) -> str:
        """The agent that makes it."""
        return self.entry["agent"]

    @property
    def tool(self) -> str | None:
        """The tool that is called; None if a model or an agent elsewhere is."""
        return self.entry.get("tool")

    @property
    def indexes(self) -> list[int]:
        """All its entries."""
        return [self.start, *self.chunks, *(() if self.end is None else (self.end,))]

    def __str__(self) -> str:
        what = "agent" if "remote_call" in self.entry else "model"
        return f"{self.agent}: " + (f"tool {self.tool}" if self.tool else what)


class Tape:
    """A recorded run that is being replayed.

    Args:
        run: The run.
        patience: Seconds to wait for what was recorded and does not happen.

    Attributes:
        entries: Everything that was recorded, in order.
        turnstile: Keeps the order.
    """

    def __init__(self, run: RecordedRun, patience: float) -> None:
        self.entries: list[Data] = run.tape
        self._is_cut_off = not run.status
        self.turnstile: Turnstile = Turnstile(run.tape, patience)
        if run.data.get("unordered"):
            self.turnstile.let_go()
        self.calls: list[Taped] = []
        self._by_number: dict[int, Taped] = {}
        for index, entry in enumerate(run.tape):
            self._read(index, entry)

    def _read(self, index: int, entry: Data) -> None:
        number = call_of(entry)
        if number is not None:
            asked = entry.get("request" if "model_call" in entry else "args", {})
            taped = self._by_number[number] = Taped(entry, index, asked)
            self.calls.append(taped)
        elif (of := entry.get("chunk_of")) is not None and of in self._by_number:
            self._by_number[of].chunks.append(index)
        elif (of := entry.get("reply_of", entry.get("result_of"))) in self._by_number:
            self._by_number[of].end = index

    def is_cancelled(self, taped: Taped) -> bool:
        """Whether a call was cancelled before it was answered."""
        return taped.end is None or bool(self.entries[taped.end].get("cancelled"))

    def skip(self, taped: Taped) -> None:
        """Take all that was recorded within a tool call for done: its body is not run."""
        inside = {taped.entry["tool_call"]}
        for index, entry in enumerate(self.entries):
            if entry.get("within") in inside:
                inside.add(entry.get("tool_call", -1))
                self.turnstile.done(index)
        for each in self.calls:
            each.used = each.used or each.entry.get("within") in inside

    def find(
        self,
        agent: str,
        branch: str | None,
        asked: Any,
        tool: str | None = None,
        *,
        kind: str = "model call",
    ) -> Taped:
        """The call on the tape that a call of the run is.

        Args:
            agent: The agent that calls.
            branch: ADK's branch in which it does.
            asked: The request or the arguments.
            tool: The tool that is called; None if a model or an agent elsewhere is.
            kind: What errors call it that is no call of a tool.

        Raises:
            ReplayMismatchError: There is none.
        """
        of_agent = [
            each
            for each in self.calls
            if each.agent == agent and (each.tool is None) == (tool is None)
        ]
        here = [each for each in of_agent if each.entry.get("branch") == branch]
        nearest: tuple[Taped, Difference] | None = None
        for each in (*here, *(each for each in of_agent if each not in here)):
            if each.used or each.tool != tool:
                continue
            difference = first_difference(each.asked, asked, empty_is_missing=True)
            if difference is None:
                each.used = True
                if each.end is None and self._is_cut_off:
                    raise _cut_off(each)
                self.turnstile.done(each.start)
                return each
            if nearest is None and each in here:
                nearest = (each, difference)
        raise _mismatch(agent, of_agent, nearest, tool, kind)


def _mismatch(
    agent: str,
    of_agent: Sequence[Taped],
    nearest: tuple[Taped, Difference] | None,
    tool: str | None,
    kind: str,
) -> ReplayMismatchError:
    what = f"tool {tool!r}, called by agent {agent!r}" if tool else f"agent {agent!r}"
    if nearest is None:
        known = [each for each in of_agent if each.tool == tool]
        count = f"{len(known)} such call{'' if len(known) == 1 else 's'}, all used already"
        kind = "tool call" if tool else kind
        return ReplayMismatchError(
            f"replay: {what} makes {kind} #{len(known) + 1}, which was not recorded",
            agent=agent,
            node=agent,
            found=f"the recording has {count}" if known else "the recording has no such call",
            help=_HELP,
        )
    taped, difference = nearest
    number = [each for each in of_agent if each.tool == tool].index(taped) + 1
    kind, part = ("call", "arguments differ") if tool else (kind, "request differs")
    return ReplayMismatchError(
        f"replay: {what}, {kind} #{number}: the {part} from the recording"
        f" at {difference.path or 'the top'}",
        agent=agent,
        path=difference.path,
        recorded=difference.recorded,
        now=difference.now,
        node=agent,
        found=f"recorded: {shown(difference.recorded)}\n         now:      {shown(difference.now)}",
        help=_HELP,
    )


def _cut_off(taped: Taped) -> ReplayMismatchError:
    what = f"tool {taped.tool!r}, called by agent" if taped.tool else "agent"
    return ReplayMismatchError(
        f"replay: {what} {taped.agent!r} was at work where the recording ends",
        agent=taped.agent,
        node=taped.agent,
        found="the run was cut off before this call was answered",
        help="replay with on_mismatch='live' to go on from here",
    )


_HELP = "record again if the change is meant, or replay with on_mismatch='live'"
