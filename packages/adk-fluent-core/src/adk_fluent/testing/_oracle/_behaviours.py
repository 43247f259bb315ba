"""What the leaves of random pipelines do, as data: agents, functions and predicates that print.

Whoever runs them, each notes its call in the list that `recorded` opens.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal

from adk_fluent._scripts._replies import Asked, Call, Reply, reply
from adk_fluent._scripts._script import Script
from adk_fluent.ir import AgentNode, Ref, StateFieldRef, ToolSpec
from adk_fluent.testing._oracle._reference import Act

if TYPE_CHECKING:
    from collections.abc import Awaitable, Generator, Mapping

_CALLS: ContextVar[list[str]] = ContextVar("calls")
_CODE: Final = ("SAFETY", "it said no")
_SHOWN: Final = re.compile("«(.*)»", re.DOTALL)
_TAIL: Final = 12  # characters of a value that go on into the next one


class ScriptedError(Exception):
    """What failing leaves raise."""


@contextmanager
def recorded() -> Generator[list[str]]:
    """The names of all that is called inside, in order of call."""
    calls: list[str] = []
    token = _CALLS.set(calls)
    try:
        yield calls
    finally:
        _CALLS.reset(token)


class _Printed:
    """Prints as it is made, fields at their default left out."""

    def __repr__(self) -> str:
        own = fields(self)  # pyright: ignore[reportArgumentType]  # only dataclasses are printed
        shown: list[str] = []
        for each in own:
            value = getattr(self, each.name)
            if each.default is MISSING:
                shown.append(repr(value))
            elif value != each.default:
                shown.append(f"{each.name}={value!r}")
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(eq=False, repr=False)
class Says(_Printed, Script):
    """An agent's script: every turn is the same, but for what state holds.

    Attributes:
        name: Noted at each call.
        text: What it says.
        reads: Also says what state holds under this key, which its instruction shows it.
        pieces: In how many pieces the text is streamed.
        ticks: Turns of the event loop before it answers.
        ends: How its turn ends: it answers, raises, reports an error, leaves the loop by a tool, or
            never comes to an end.
        notes: Keys and values that a callback writes before its turn.
        keeps: Keys and values that a tool writes, which it calls before anything else.
        clings: It answers when it is cancelled, instead of ending.
        built: On ADK, an agent built by hand is used.
    """

    name: str
    text: str = ""
    reads: str | None = None
    pieces: int = 1
    ticks: int = 0
    ends: Literal["answers", "raises", "reports", "leaves", "hangs"] = "answers"
    notes: tuple[tuple[str, Any], ...] = ()
    keeps: tuple[tuple[str, Any], ...] = ()
    clings: bool = False
    built: bool = False

    def __post_init__(self) -> None:
        super().__init__(default=self._turn)

    def act(self, shown: str) -> Act:
        """What it does when it is shown this."""
        says = self.text
        if self.reads is not None:
            says = f"{says}<{shown[-_TAIL:]}>"
        return Act(
            says=says,
            writes={**dict(self.notes), **dict(self.keeps)},
            raises=ScriptedError(self.name) if self.ends == "raises" else None,
            reports=_CODE if self.ends == "reports" else None,
            escalates=self.ends == "leaves",
            hangs=self.ends == "hangs",
        )

    async def _turn(self, asked: Asked) -> Reply:
        going_on = asked.prompt.startswith(f"[result {keep.__name__}")
        if not going_on:
            _CALLS.get().append(self.name)
        for _ in range(self.ticks):
            await asyncio.sleep(0)
        if self.keeps and not going_on:
            return reply(Call(keep.__name__, {"values": dict(self.keeps)}))
        shown = _SHOWN.search(asked.system)
        act = self.act(shown[1] if shown else "")
        if act.hangs:
            await self._hang()
        if act.reports is not None:
            return reply(error_code=act.reports[0], error_message=act.reports[1])
        if act.escalates:
            return reply(*([act.says] if act.says else ()), Call(exit_loop.__name__))
        chunks = self._chunks(act.says)
        if act.raises is not None:
            return reply(chunks=chunks, raises=act.raises)
        return reply(chunks=chunks) if chunks else reply(act.says)

    async def _hang(self) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not self.clings:
                raise

    def _chunks(self, text: str) -> list[str]:
        if self.pieces < 2:
            return []
        size = -(-len(text) // self.pieces) or 1
        return [text[at : at + size] for at in range(0, len(text), size)]


def exit_loop(tool_context: Any) -> None:
    """Leave the loop, as ADK's tool of this name does."""
    tool_context.actions.escalate = True
    tool_context.actions.skip_summarization = True


def keep(values: dict[str, Any], tool_context: Any) -> str:
    """Write to state."""
    for key, value in values.items():
        tool_context.state[key] = value
    return "kept"


@dataclass(frozen=True, repr=False)
class Notes(_Printed):
    """A callback that writes to state.

    Attributes:
        writes: Keys and values it writes.
    """

    writes: tuple[tuple[str, Any], ...]

    def __call__(self, callback_context: Any) -> None:
        """Be called before an agent's turn."""
        for key, value in self.writes:
            callback_context.state[key] = value


def agent(says: Says, writes: str | None = None) -> AgentNode:
    """The agent that follows a script.

    Args:
        says: The script.
        writes: The key its answer is written to.
    """
    tools = ([keep] if says.keeps else []) + ([exit_loop] if says.ends == "leaves" else [])
    notes = Ref(Notes(says.notes), "notes")
    return AgentNode(
        says.name,
        instruction="Speak." if says.reads is None else f"«{{{says.reads}?}}»",
        tools=tuple(ToolSpec(Ref.to(each)) for each in tools),
        callbacks=(("before_agent", (notes,)),) if says.notes else (),
        writes_keys=() if writes is None else (StateFieldRef(writes),),
        mock=Ref(says, says.name),
    )


def act(node: AgentNode, state: Mapping[str, Any]) -> Act:
    """What such an agent does on a state, for the reference."""
    assert node.mock is not None  # noqa: S101  # made by `agent`
    says: Says = node.mock.value
    return says.act(shown({**state, **dict(says.notes), **dict(says.keeps)}, says.reads or ""))


def shown(state: Mapping[str, Any], key: str) -> str:
    """What an instruction shows in the place of a key."""
    value = state.get(key)
    return "" if value is None else str(value)


@dataclass(frozen=True, repr=False)
class Step(_Printed):
    """A function over state.

    Attributes:
        name: Noted at each call.
        writes: Keys and values it writes.
        tags: Keys, each with the key whose value, tagged with the step's name, is written there.
        counts: Keys it counts up.
        ticks: Turns of the event loop it takes; None is a function that is not async.
        ends: Whether it returns its writes, nothing, what is no mapping, or raises.
    """

    name: str
    writes: tuple[tuple[str, Any], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    counts: tuple[str, ...] = ()
    ticks: int | None = None
    ends: Literal["returns", "ignores", "misreturns", "raises"] = "returns"

    def __call__(self, state: Mapping[str, Any]) -> Any:
        """Be called, or begin to be."""
        _CALLS.get().append(self.name)
        return self._returns(state) if self.ticks is None else self._later(state, self.ticks)

    async def _later(self, state: Mapping[str, Any], ticks: int) -> Any:
        for _ in range(ticks):
            await asyncio.sleep(0)
        return self._returns(state)

    def _returns(self, state: Mapping[str, Any]) -> Any:
        if self.ends == "raises":
            raise ScriptedError(self.name)
        if self.ends != "returns":
            return None if self.ends == "ignores" else [self.name]
        return {
            **dict(self.writes),
            **{key: f"{shown(state, read)[-_TAIL:]}>{self.name}" for key, read in self.tags},
            **{key: (state.get(key) or 0) + 1 for key in self.counts},
        }


@dataclass(frozen=True, repr=False)
class Check(_Printed):
    """A predicate: the length of what a key holds, modulo a number, is a certain one.

    Attributes:
        name: Noted at each call.
        key: The key.
        modulus: The number.
        wanted: What is left over when it holds.
        ticks: Turns of the event loop it takes; None is a predicate that is not async.
        raises: It raises instead.
    """

    name: str
    key: str
    modulus: int = 1
    wanted: int = 0
    ticks: int | None = None
    raises: bool = False

    def __call__(self, state: Mapping[str, Any]) -> bool | Awaitable[bool]:
        """Be called, or begin to be."""
        _CALLS.get().append(self.name)
        return self._holds(state) if self.ticks is None else self._later(state, self.ticks)

    async def _later(self, state: Mapping[str, Any], ticks: int) -> bool:
        for _ in range(ticks):
            await asyncio.sleep(0)
        return self._holds(state)

    def _holds(self, state: Mapping[str, Any]) -> bool:
        if self.raises:
            raise ScriptedError(self.name)
        return len(shown(state, self.key)) % self.modulus == self.wanted
