"""How often models and tools may be called."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field

from adk_fluent.errors import UsageError
from adk_fluent.middleware._budgets._ledger import Ledger, Limit, Tally, take
from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.middleware._errors import CallLimitError
from adk_fluent.telemetry import count

if TYPE_CHECKING:
    from typing import Self

    from adk_fluent.protocol import (
        AgentReply,
        ModelCall,
        ModelReply,
        NextModel,
        NextRun,
        NextTool,
        RunCall,
        ToolCall,
    )

#: Tools with which ADK lets a model end or hand over; without them a run could not even end well.
_CONTROL: Final = frozenset({"exit_loop", "finish_task", "set_model_response", "transfer_to_agent"})
_Calls = Annotated[int, Field(ge=0)]


class _CallLimit(BuiltIn):
    """What both have: calls of a run, and of its session."""

    per_run: int | None
    per_session: int | None
    state_key: str
    ledger: Ledger
    _of_run: Tally
    _of_session: Tally

    def __post_init__(self) -> None:
        super().__post_init__()
        self.begin_anew()

    def new(self) -> Self:
        """The instance for one run; sessions are shared with all others."""
        made = copy.copy(self)
        made.begin_anew()
        return made

    def begin_anew(self) -> None:
        """Count from the beginning."""
        self._of_run = Tally("run", self.state_key)
        self._of_session = Tally("session", self.state_key)

    def begin_part(self, name: str, call: RunCall, /) -> None:
        """Find what was called before around a part; each call is written down when it begins."""
        for tally in self._tallies():
            tally.begin_part(name, call, self.ledger)

    def _tallies(self) -> list[Tally]:
        return [self._of_run] if self.per_session is None else [self._of_run, self._of_session]

    async def wrap_run(self, call: RunCall, next: NextRun) -> AgentReply:
        """Find what was called before, and write down what is called after it."""
        tallies = self._tallies()
        for tally in tallies:
            tally.begin(call, self.ledger)
        paused = False
        try:
            reply = await next(call)
            paused = reply.paused
        finally:
            for tally in tallies:
                tally.end(call.ctx.state, paused=paused)
        return reply

    def _take(self, name: str, own: int | None, ctx: Any) -> Limit | None:
        """Count a call, if every limit lets it through; else say which one does not."""
        run, session = self._of_run.account, self._of_session.account
        limits = [
            Limit(account, most, of, item)
            for account, most, of, item in (
                (run, own, f"{name} in this run", name),
                (run, self.per_run, "this run", None),
                (session, self.per_session, "this session", None),
            )
            if most is not None
        ]
        hold = take({name: 1}, limits)
        if isinstance(hold, Limit):
            return hold
        hold.settle({name: 1})  # a call that fails was made, too
        for tally in self._tallies():
            tally.copy_to(ctx.state)
        return None


@builtin
class ModelCallLimitMiddleware(_CallLimit):
    """Limits how often models are called in a run, in a session, and by each agent.

    Agents in tools and pipelines in pipelines call models of the same run. What fails counts.

    Attributes:
        per_run: Model calls of a run, also when it is paused and resumed.
        per_session: Model calls of all runs of a session.
        per_agent: Model calls of each agent in a run: a number for all, or numbers by name.
        on_exceeded: ``"error"`` raises `CallLimitError`; ``"stop"`` answers with `message` in the
            model's place.
        message: What is answered in the model's place.
        state_key: Key of the state that the count is copied to.
        ledger: Where sessions are counted; share one to share their limits.
    """

    per_run: _Calls | None = None
    per_session: _Calls | None = None
    per_agent: _Calls | Mapping[str, _Calls] | None = None
    on_exceeded: Literal["error", "stop"] = "error"
    message: str = "I have to stop here: I have worked on this as long as I may."
    state_key: Annotated[str, Field(min_length=1)] = "adk_fluent_model_calls"
    ledger: Ledger = dependency(default_factory=Ledger)
    _of_run: Tally = field(init=False, repr=False)
    _of_session: Tally = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have, or there is no limit at all.
        """
        super().__post_init__()
        if self.per_run is self.per_session is None and self.per_agent in (None, {}):
            raise _no_limit(self.name, "per_agent")

    def refuses_live(self) -> str | None:
        """A live connection is no call that could be counted."""
        return "model_call_limit() counts model calls, and a live connection is none"

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Call the model, if it may be called once more."""
        own = (
            self.per_agent.get(call.agent)
            if isinstance(self.per_agent, Mapping)
            else self.per_agent
        )
        limit = self._take(call.agent, own, call.ctx)
        if limit is None:
            return await next(call)
        count("adk_fluent.limit.denials", 1, {"adk_fluent.limit": self.name})
        if self.on_exceeded == "stop":
            from adk_fluent.middleware._budgets._stopped_adk import stopped  # noqa: PLC0415  # it is ADK's

            return stopped(self.message, self.name)
        raise _exceeded("the model", limit, call, self.name)


@builtin
class ToolCallLimitMiddleware(_CallLimit):
    """Limits how often tools are called in a run and in a session.

    Of parallel calls exactly as many are made as are left. Agents in tools and pipelines in
    pipelines call tools of the same run. What fails counts. ADK's own tools with which a model
    ends or hands over (such as ``transfer_to_agent``) count only if they are named.

    Attributes:
        per_run: Tool calls of a run, also when it is paused and resumed.
        per_session: Tool calls of all runs of a session.
        tools: Calls of single tools in a run, by name.
        on_exceeded: ``"error"`` raises `CallLimitError`; ``"stop"`` does not call the tool and
            tells the model so, as the tool's result.
        message: What the model is told.
        state_key: Key of the state that the count is copied to.
        ledger: Where sessions are counted; share one to share their limits.
    """

    per_run: _Calls | None = None
    per_session: _Calls | None = None
    tools: Mapping[str, _Calls] = field(default_factory=dict[str, int])
    on_exceeded: Literal["error", "stop"] = "error"
    message: str = "This tool was not called and will not be again: its limit is reached."
    state_key: Annotated[str, Field(min_length=1)] = "adk_fluent_tool_calls"
    ledger: Ledger = dependency(default_factory=Ledger)
    _of_run: Tally = field(init=False, repr=False)
    _of_session: Tally = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have, or there is no limit at all.
        """
        super().__post_init__()
        if self.per_run is self.per_session is None and not self.tools:
            raise _no_limit(self.name, "tools")

    async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
        """Call the tool, if it may be called once more."""
        own = self.tools.get(call.name)
        if own is None and call.name in _CONTROL:
            return await next(call)
        limit = self._take(call.name, own, call.ctx)
        if limit is None:
            return await next(call)
        what = {"adk_fluent.limit": self.name, "gen_ai.tool.name": call.name}
        count("adk_fluent.limit.denials", 1, what)
        if self.on_exceeded == "stop":
            return {"error": self.message}
        raise _exceeded(call.name, limit, call, self.name)


def _no_limit(name: str, other: str) -> UsageError:
    return UsageError(
        f"{name}() is given no limit", help=f"{name}(per_run=...), or per_session, or {other}"
    )


def _exceeded(what: str, limit: Limit, call: ModelCall | ToolCall, name: str) -> CallLimitError:
    return CallLimitError(
        f"{what} is not called: the calls of {limit.of} are used up",
        limit=limit.most,
        node=call.node or call.agent,
        found=f"{limit.account.total(limit.item)} of {limit.most} calls made",
        help=f'a higher limit, or {name}(on_exceeded="stop"); or see why so many were made',
    )


#: `ModelCallLimitMiddleware` by its short name.
model_call_limit = ModelCallLimitMiddleware
#: `ToolCallLimitMiddleware` by its short name.
tool_call_limit = ToolCallLimitMiddleware
