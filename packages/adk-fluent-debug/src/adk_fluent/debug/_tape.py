"""A recording while it is replayed: which run and call of it is which of now, and what is left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, get_args

from adk_fluent.debug._diff import Difference, first_difference, shown
from adk_fluent.debug._errors import ReplayMismatchError, UnusedInteractionsError
from adk_fluent.debug._recorded_run import Data, called, counted, number_of
from adk_fluent.debug._recorder import Recorder
from adk_fluent.debug._recording import Recording, check_usable
from adk_fluent.debug._redaction import Redact, Redaction
from adk_fluent.errors import UsageError
from adk_fluent.extend import LOG, describe, must_be, one_of
from adk_fluent.ir import AdkAgentNode, walk

if TYPE_CHECKING:
    from contextlib import ExitStack

    from adk_fluent.debug._recorded_run import Interaction, RecordedRun
    from adk_fluent.debug._turnstile import Turnstile
    from adk_fluent.ir import Node

OnMismatch = Literal["error", "skip", "live", "live_then_record"]
ToolMode = Literal["replay", "live"]


class Tapes:
    """The runs of a recording that is replayed: what a `ReplayerBackend` is beside a backend.

    Args:
        recording: See `ReplayerBackend`, as for the others.
        on_mismatch: What a call is answered that was not recorded so.
        tools: What is done about tools.
        redact: What was taken out of the recording.
        session_service: Where sessions are kept.
        patience: Seconds to wait for something that was recorded and does not happen.
    """

    def __init__(
        self,
        recording: Recording | str | PathLike[str],
        on_mismatch: OnMismatch = "error",
        tools: ToolMode | Mapping[str, ToolMode] = "replay",
        *,
        redact: Redact | None = None,
        session_service: Any = None,
        patience: float = 10.0,
    ) -> None:
        one_of(on_mismatch, get_args(OnMismatch), "on_mismatch")
        modes: Mapping[str, Any] = {"": tools} if isinstance(tools, str) else tools
        must_be(Mapping, modes, "tools= takes 'replay', 'live' or a mapping")
        for each in modes.values():
            one_of(each, get_args(ToolMode), "tools")
        if not isinstance(patience, int | float) or not patience > 0:  # pyright: ignore[reportUnnecessaryIsInstance]  # callers may be untyped
            raise UsageError("patience= is a number of seconds above 0", found=describe(patience))
        loaded = Recording.load(recording) if isinstance(recording, str | PathLike) else recording
        must_be(Recording, loaded, "a replay takes a Recording, or its file")
        check_usable(loaded, "replayed")
        if not loaded.runs:
            raise UsageError("this recording cannot be replayed: it holds no run")
        self.recording: Recording = loaded
        self.redaction: Redaction = Redaction(redact)
        self.on_mismatch: OnMismatch = on_mismatch
        self.patience: float = patience
        self.missed: int = 0
        self.begun: int = 0
        self.cancels: bool = False
        self._tools = dict(modes)
        self._service = session_service
        self._recorder = Recorder(redact=redact) if on_mismatch == "live_then_record" else None
        self._blocks: list[tuple[ExitStack, int]] = []
        self._taken: set[int] = set()
        self._used: set[tuple[int, int]] = set()

    def is_live(self, tool: str) -> bool:
        """Whether a tool is to run itself."""
        return self._tools.get(tool, self._tools.get("", "replay")) == "live"

    def check_tools(self, root: Node | None) -> None:
        """Refuse names of tools in ``tools=`` that neither the recording nor the pipeline has.

        Raises:
            UnknownNameError: There is one.
        """
        recorded = {each.tool_name for each in self.recording.tool_interactions}
        named = self._tools.keys() - {"", *recorded}
        if not named or root is None:
            return
        nodes = list(walk(root))
        tools = [each.tool for node in nodes for each in getattr(node, "tools", ())]
        if any(isinstance(node, AdkAgentNode) for node in nodes) or any(
            hasattr(each.value, "get_tools") for each in tools
        ):
            return  # what else they have is known when it is asked
        known = recorded | {each.name for each in (*tools, *nodes)}
        for name in sorted(named):
            one_of(name, sorted(known), "tools")

    def take(self, message: Data | None, *, resumed: bool) -> tuple[int, Tape]:
        """The recorded run that a run which begins now replays, and a fresh tape of it."""
        number = self.next_run(message, resumed=resumed)
        self.begun += 1
        self._taken.add(number)
        if len(self._taken) == len(self.recording.runs):
            self._taken.clear()
        return number, Tape(self.recording.runs[number], self.patience)

    def next_run(self, message: Data | None, *, resumed: bool = False) -> int:
        """Which recorded run one with this message is."""
        runs = self.recording.runs
        free = [each for each in range(len(runs)) if each not in self._taken]
        alike = [each for each in free if runs[each].resumed == resumed] or free[:1]
        said = _text_of(message)
        return next((n for n in alike if message and _text_of(runs[n].message) == said), alike[0])

    def note(self, number: int, tape: Tape) -> None:
        """Take in what a run has used, when it is over."""
        self._used |= {(number, each) for each in tape.used}
        left = [each for each in tape.calls if each.entry not in tape.used and not each.cancelled]
        if left:
            names = ", ".join(map(called, left))
            LOG.warning("replay: %s not asked for: %s", counted(len(left), "recorded call"), names)

    @property
    def unused(self) -> list[Interaction]:
        """The calls of the recording that no run has asked for, in order.

        Those that were cancelled before they were answered do not count.
        """
        return [
            each
            for number, run in enumerate(self.recording.runs)
            for each in run.interactions
            if (number, each.entry) not in self._used and not each.cancelled
        ]

    def check_unused(self) -> None:
        """Refuse a replay that left calls of the recording unused.

        Raises:
            UnusedInteractionsError: There are some.
        """
        if unused := self.unused:
            path = self.recording.path
            name = "the recording" if path is None else path.name
            raise UnusedInteractionsError(
                f"{name} holds {counted(len(unused), 'call')} not asked for",
                found=", ".join(map(called, unused)),
                help="record again, or allow it: allow_unused=True in the mark `recording`",
            )


def _text_of(message: Data | None) -> str:
    return json.dumps(message and message.get("parts"), sort_keys=True)


class Tape:
    """A recorded run that is being replayed.

    Args:
        run: The run.
        patience: Seconds to wait for what was recorded and does not happen.

    Attributes:
        entries: Everything that was recorded, in order.
        turnstile: Keeps the order.
        calls: The calls that were recorded.
        used: Where those begin that were asked for.
        status: How the run ended.
    """

    def __init__(self, run: RecordedRun, patience: float) -> None:
        from adk_fluent.debug._turnstile import Turnstile  # noqa: PLC0415  # asyncio, slow to import

        self.entries: list[Data] = run.tape
        self.status: str = run.status
        self.turnstile: Turnstile = Turnstile(run.tape, patience)
        if run.data.get("unordered"):
            self.turnstile.let_go()
        self.calls: list[Interaction] = run.calls
        self.used: set[int] = set()

    def end_of(self, call: Interaction) -> Data:
        """The entry where a call ends."""
        return {"cancelled": True} if call.end is None else self.entries[call.end]

    def expects(self, agent: str, asked: Any) -> bool:
        """Whether a request of an agent is one that was recorded, and not made yet."""
        return any(
            _changed(each, asked) is None
            for each in self.calls
            if _is_of(each, agent, None) and each.entry not in self.used
        )

    def skip(self, call: Interaction) -> None:
        """Take all that was recorded within a tool call for done: its body is not run."""
        inside = {self.entries[call.entry]["tool_call"]}
        for index, entry in enumerate(self.entries):
            if entry.get("within") in inside:
                inside.add(entry.get("tool_call", -1))
                self.used.add(index)
                self.turnstile.done(index)

    def find(
        self, agent: str, branch: str | None, asked: Any, kind: str, tool: str | None = None
    ) -> Interaction:
        """The call on the tape that a call of the run is.

        Args:
            agent: The agent that calls.
            branch: ADK's branch in which it does.
            asked: The request or the arguments.
            kind: What errors call it.
            tool: The tool that is called; None if a model or an agent elsewhere is.

        Raises:
            ReplayMismatchError: There is none.
        """
        who = f"tool {tool!r}, called by agent {agent!r}" if tool else f"agent {agent!r}"
        alike = [each for each in self.calls if _is_of(each, agent, tool)]
        nearest: tuple[int, Difference] | None = None
        for each in sorted(alike, key=lambda each: each.branch != branch):
            if each.entry in self.used:
                continue
            difference = _changed(each, asked)
            if difference is None:
                self.used.add(each.entry)
                if each.end is None:
                    raise self._unanswered(f"replay: {who}", each)
                self.turnstile.done(each.entry)
                return each
            if nearest is None and each.branch == branch:
                nearest = (alike.index(each) + 1, difference)
        if nearest is None:
            count = f"{counted(len(alike), 'such call')}, all used already"
            raise ReplayMismatchError(
                f"replay: {who} makes {kind} #{len(alike) + 1}, which was not recorded",
                agent=agent,
                found=f"the recording has {count if alike else 'no such call'}",
            )
        number, (path, recorded, now) = nearest
        kind, part = ("call", "arguments differ") if tool else (kind, "request differs")
        raise ReplayMismatchError(
            f"replay: {who}, {kind} #{number}: the {part} from the recording"
            f" at {path or 'the top'}",
            agent=agent,
            path=path,
            recorded=recorded,
            now=now,
            found=f"recorded: {shown(recorded)}\n         now:      {shown(now)}",
        )

    def _unanswered(self, who: str, call: Interaction) -> ReplayMismatchError:
        number = number_of(self.entries[call.entry])
        what = "makes a call whose answer is missing in the recording"
        found = f"entry {call.entry} of its tape begins call {number}, and none ends it"
        help = "put the answer back if the file was edited, or record again"
        if not self.status:
            what = "was at work where the recording ends"
            found = "the run was cut off before this call was answered"
            help = "replay with on_mismatch='live' to go on from here"
        return ReplayMismatchError(f"{who} {what}", agent=call.agent_name, found=found, help=help)


def _is_of(call: Interaction, agent: str, tool: str | None) -> bool:
    return call.agent_name == agent and getattr(call, "tool_name", None) == tool


def _changed(call: Interaction, asked: Any) -> Difference | None:
    return first_difference(call.asked, asked, empty_is_missing=True)
