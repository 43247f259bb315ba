"""What is under test: a backend, and what it says that it can do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from adk_fluent.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from adk_fluent.protocol import Backend
    from adk_fluent.testing.conformance._bench import LongRunning, Native

Word = Literal["works", "not yet", "never"]


@dataclass(frozen=True, slots=True)
class Status:
    """Whether a backend has a capability.

    Attributes:
        word: ``works``, ``not yet`` or ``never``.
        reason: Why not; a sentence without its full stop.
    """

    word: Word
    reason: str = ""

    def __post_init__(self) -> None:
        if (self.word == "works") == bool(self.reason):
            raise UsageError(
                "a capability that is lacking has a reason, and no other has",
                found=f"Status({self.word!r}, {self.reason!r})",
            )


WORKS: Final = Status("works")


def not_yet(reason: str) -> Status:
    """The backend lacks something that it may learn."""
    return Status("not yet", reason)


def never(reason: str) -> Status:
    """The backend lacks something that it will not have."""
    return Status("never", reason)


#: What programs ask for, with what it means.
CAPABILITIES: Final[Mapping[str, str]] = {
    "agent": "agents: what they say and write, and how they fail",
    "native agent": "agents that were built with ADK",
    "function": "functions of state, sync and async",
    "transform": "`S`, changes to state",
    "tap": "`tap`",
    "expect": "`expect`",
    "sequence": "`a >> b`",
    "parallel": "`a \\| b`",
    "race": '`race`, and `FanOut(merge="first_complete")`',
    "fallback": "`a // b`",
    "loop": "`a * 3`, `a * until(...)`",
    "route": "`Route`",
    "map_over": "`map_over`",
    "timeout": "`timeout`, and `timeout_seconds`",
    "transfer": "`transfer`",
    "gate": "`gate`, and going on with an answer",
    "session": "sessions that go on, and several runs at the same time",
    "history": "`.history(...)`: what an agent is shown",
    "typed answer": "answers of a type, several keys",
    "streamed text": "fragments of answers",
    "resource": "`.inject(...)`",
    "model calls": "`max_llm_calls`",
    "confirmation": "tools that a person confirms",
    "long-running tool": "tools whose results come later",
    "delegation": "agents that hand over: `.delegates(...)`",
    "agent tool": "agents that are tools: `.agent_tool(...)`",
    "tool": "functions that a model calls",
    "callback": "callbacks of agents",
    "state contract": "`.state(...)`, `.contract(...)`, `@effects`: what runs hold to",
    "middleware": "`.middleware(...)`",
    "telemetry": "`telemetry=`",
    "remote agent": "`RemoteAgent`",
    "model choice": "`.model_select(...)`",
    "streaming edge": '`.stream_to(...)` other than `"full"`',
    "live": '`streaming_mode="bidi"`',
    "workflow target": '`target="workflow"`',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A backend under test.

    Attributes:
        name: What the column of the table is called.
        backend: Makes a backend. Each program gets one of its own.
        lacks: Capabilities it lacks, and why; it has all others.
        options: Keyword arguments of every run, beside ``user_id``, ``session_id`` and
            ``state``.
        reopen: Makes another backend that goes on with the sessions of one, as after a restart;
            None takes the same one again.
        native: Makes a step that stands for an agent built with ADK, of its name and script; None
            makes an `AdkAgentNode` that holds the script.
        long_running: Makes a tool of a function whose result comes later; None makes what looks
            like ADK's.
    """

    name: str
    backend: Callable[[], Backend[Any]]
    lacks: Mapping[str, Status] = field(default_factory=dict[str, Status])
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    reopen: Callable[[Backend[Any]], Backend[Any]] | None = None
    native: Native | None = None
    long_running: LongRunning | None = None

    def __post_init__(self) -> None:
        for each in self.lacks:
            if each not in CAPABILITIES:
                raise UnknownNameError(
                    f"there is no capability {each!r}", unknown=each, known=CAPABILITIES
                )

    def status(self, capability: str) -> Status:
        """Whether the backend has a capability."""
        return self.lacks.get(capability, WORKS)
