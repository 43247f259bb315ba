"""What is replayed, and how much of it was asked for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Literal

from adk_fluent import extend
from adk_fluent.debug._errors import UnusedInteractionsError
from adk_fluent.debug._run import Data, called, counted
from adk_fluent.ir import AdkAgentNode, walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.debug._recording import Recording
    from adk_fluent.debug._redaction import Redaction
    from adk_fluent.debug._run import Interaction
    from adk_fluent.debug._tape import Tape
    from adk_fluent.ir import Node

OnMismatch = Literal["error", "skip", "live", "live_then_record"]
ToolMode = Literal["replay", "live"]


class Replays:
    """What is replayed: what a `ReplayerBackend` is beside a backend.

    Args:
        recording: What is replayed.
        redaction: What is taken out of calls before they are compared.
        on_mismatch: What a call is answered that was not recorded so.
        tools: What is done about tools by name; "" is about all others.
        patience: Seconds to wait for something that was recorded and does not happen.
    """

    def __init__(
        self,
        recording: Recording,
        redaction: Redaction,
        on_mismatch: OnMismatch,
        tools: Mapping[str, ToolMode],
        patience: float,
    ) -> None:
        self.recording: Recording = recording
        self.redaction: Redaction = redaction
        self.on_mismatch: OnMismatch = on_mismatch
        self.patience: float = patience
        self.missed: int = 0
        self._tools = tools
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
            extend.one_of(name, sorted(known), "tools")

    def take(self, message: Data | None, *, resumed: bool) -> tuple[int, Tape]:
        """The recorded run that a run which begins now replays, and a fresh tape of it."""
        number = self.next_run(message, resumed=resumed)
        self._taken.add(number)
        if len(self._taken) == len(self.recording.runs):
            self._taken.clear()
        from adk_fluent.debug._tape import Tape  # noqa: PLC0415  # asyncio

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
            extend.LOG.warning(
                "replay: %s not asked for: %s", counted(len(left), "recorded call"), names
            )

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
