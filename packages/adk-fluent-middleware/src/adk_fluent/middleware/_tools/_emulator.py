"""Tools that are not run, and results that are made up: for development and evaluations."""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from adk_fluent.errors import RunError
from adk_fluent.extend import LOG
from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.middleware._tools._helpers import Helper, Resolved, check_helper
from adk_fluent.middleware._tools._machinery import FRAMEWORK, check_tools
from adk_fluent.protocol import ToolCall

if TYPE_CHECKING:
    from typing import Self

    from adk_fluent.protocol import AgentEvent, AgentReply, NextRun, NextTool, RunCall

#: The key of an event's `custom_metadata` that has the ids of the calls whose results are made up.
_MARK: Final = "emulated"
#: Calls before this one that whoever makes up a result is told of.
_REMEMBERED: Final = 50
_SYSTEM: Final = (
    "You stand in for the tools of an assistant that is being tested. You are given one call of a "
    "tool, how the tool is declared, and the calls before it with the results you gave. Answer "
    "with the result that the real tool might plausibly return: one JSON object, and nothing else. "
    "Stay consistent with what you answered before: the same things have the same names, ids and "
    "values, unless a call has changed them. If the arguments cannot work, answer as the tool "
    "would, with an error."
)


class Emulated(NamedTuple):
    """A call whose result was made up.

    Attributes:
        name: The tool.
        args: Its arguments.
        result: What was made up.
    """

    name: str
    args: dict[str, Any]
    result: dict[str, Any]


@builtin
class ToolEmulatorMiddleware(BuiltIn):
    """Makes up results of tools instead of running them; not for production.

    A model makes them up from how the tool is declared, the arguments, and the calls before, so
    that they are consistent within a run. That it does so is said in the log, and in the metadata
    of the events that have the results.

    Attributes:
        tools: Emulate all tools, none, or those of these names. Agents that are tools are run,
            unless they are named here; their own tools are emulated.
        exclude: Names of tools that are run.
        results: Fixed results by the tool's name, in the model's place.
        model: Who makes up results: the name of a model, or a model; None for the agent's own.
        instructions: What the model is told besides, such as facts of the world that is emulated.
        emulate: Makes up results in the model's place: a function of the call and of the calls
            before, sync or async.
    """

    tools: bool | Sequence[str] = True
    exclude: Sequence[str] = ()
    results: Mapping[str, Any] = field(default_factory=dict[str, Any])
    model: Helper = None
    instructions: str = ""
    emulate: Callable[[ToolCall, Sequence[Emulated]], Any | Awaitable[Any]] | None = dependency(
        default_factory=lambda: None
    )
    _resolved: Resolved = field(default_factory=Resolved, init=False, repr=False)
    _warned: list[bool] = field(default_factory=list[bool], init=False, repr=False)
    _calls: list[Emulated] = field(default_factory=list[Emulated], init=False, repr=False)
    _ids: set[str] = field(default_factory=set[str], init=False, repr=False)
    _stands_around: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have.
        """
        super().__post_init__()
        check_tools(self.name, self.tools)
        check_helper(self.name, self.model)

    def new(self) -> Self:
        """An instance for one run."""
        made = copy.copy(self)
        made._calls, made._ids = [], set()  # noqa: SLF001  # its own
        return made

    def begin_part(self, name: str, call: RunCall, /) -> None:
        """Note that it stands around the tools of a part of this run."""
        self._stands_around = True

    async def wrap_run(self, call: RunCall, next: NextRun) -> AgentReply:
        """Note that it stands around the tools of this run."""
        self._stands_around = True
        return await next(call)

    async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> Any:
        """Let no tool run that it does not stand around: ADK runs those of agents built by hand.

        Raises:
            RunError: It is one of those.
        """
        if not self._stands_around and self._is_chosen(tool_name):
            raise RunError(
                f"tool {tool_name!r} cannot be emulated here, and is not run",
                found="an agent that runs without a pipeline",
                help=f"run it in a pipeline, or name it: {self.name}(exclude=[{tool_name!r}])",
            )

    async def wrap_tool_call(self, call: ToolCall, next: NextTool) -> Any:
        """Make up a result, or run the tool if it is not to be emulated."""
        if not self._is_emulated(call):
            return await next(call)
        if not self._warned:
            self._warned.append(True)
            LOG.warning("tool_emulator makes up the results of tools: not for production")
        made = await self._made_up(call)
        result = cast("dict[str, Any]", made) if isinstance(made, dict) else {"result": made}
        self._calls.append(Emulated(call.name, copy.deepcopy(call.args), copy.deepcopy(result)))
        if call.call_id:
            self._ids.add(call.call_id)
        LOG.info("tool_emulator made up a result of %s", call.name)
        return result

    async def on_event(self, ctx: Any, event: AgentEvent) -> AgentEvent | None:
        """Mark the events that have results that were made up."""
        made_up = [each.call_id for each in event.tool_responses if each.call_id in self._ids]
        if not made_up:
            return None
        return replace(event, custom_metadata={**event.custom_metadata, _MARK: made_up})

    def _is_chosen(self, name: str) -> bool:
        if name in FRAMEWORK or name in self.exclude:
            return False
        return self.tools if isinstance(self.tools, bool) else name in self.tools

    def _is_emulated(self, call: ToolCall) -> bool:
        from adk_fluent.middleware._tools._machinery_adk import is_agent  # noqa: PLC0415  # needs ADK

        if not self._is_chosen(call.name):
            return False
        return not isinstance(self.tools, bool) or not is_agent(call.tool)

    async def _made_up(self, call: ToolCall) -> Any:
        if call.name in self.results:
            return copy.deepcopy(self.results[call.name])
        if self.emulate is not None:
            made = self.emulate(call, tuple(self._calls))
            return await made if isawaitable(made) else made
        return await self._imagined(call)

    async def _imagined(self, call: ToolCall) -> Any:
        """What a model makes up.

        Raises:
            RunError: It made up nothing.
        """
        from adk_fluent.middleware._tools._helpers_adk import ask, loads  # noqa: PLC0415
        from adk_fluent.middleware._tools._machinery_adk import declared, model_of  # noqa: PLC0415

        asked = {
            "tool": declared(call.tool),
            "calls before": [each._asdict() for each in self._calls[-_REMEMBERED:]],
            "call": {"name": call.name, "args": call.args},
        }
        own = None if self.model is not None else model_of(call.ctx)
        model = self._resolved.model(self.model, own)
        system = f"{_SYSTEM}\n\n{self.instructions}" if self.instructions else _SYSTEM
        text = json.dumps(asked, ensure_ascii=False, default=str)
        try:
            said = await ask(call, model, system, text)
        except ValueError as error:
            raise RunError(
                f"nobody made up a result of tool {call.name!r}",
                found=f"model {model.model!r}: {error}",
                help="give another model, results={...} or emulate=...",
            ) from error
        try:
            return loads(said)
        except ValueError:
            return said


#: `ToolEmulatorMiddleware` by its short name.
tool_emulator = ToolEmulatorMiddleware
