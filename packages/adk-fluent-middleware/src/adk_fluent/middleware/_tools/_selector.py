"""Of many tools the few that a model needs to know of."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from inspect import isawaitable
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from pydantic import BaseModel, Field

from adk_fluent.extend import LOG
from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.middleware._tools._helpers import Helper, Resolved, check_helper
from adk_fluent.middleware._tools._machinery import FRAMEWORK
from adk_fluent.protocol import ModelCall
from adk_fluent.telemetry import count

if TYPE_CHECKING:
    from typing import Self

    from adk_fluent.protocol import ModelReply, NextModel

#: Characters of the conversation that the one who chooses is shown.
_SHOWN: Final = 8_000
_SYSTEM: Final = (
    "You choose tools for another assistant. Given the end of its conversation and all its tools, "
    "name those that it may need for what the user asks for next, the most useful ones first, at "
    "most {n} of them. Name tools exactly as they are called. Choose too many rather than too few. "
    "Do not answer the user."
)


class Chosen(BaseModel):
    """What the one who chooses answers with."""

    tools: list[str] = Field(description="Names of tools, the most useful ones first.")


class _Choice(NamedTuple):
    """What was chosen of which tools; None for all."""

    of: frozenset[str]
    chosen: frozenset[str] | None


@builtin
class ToolSelectorMiddleware(BuiltIn):
    """Shows a model only those of many tools that fit what is asked.

    It chooses once for each message that an agent answers, so that what comes before the
    conversation stays the same while the agent works, and providers can cache it. If the choice
    fails, the model is shown all tools.

    Attributes:
        max_tools: Tools that are shown at most, besides those that always are. Agents with no more
            than that are left alone.
        always: Names of tools that are always shown, and do not count.
        model: Who chooses: the name of a small model, or a model; None for the agent's own.
        select: Chooses in the model's place: a function of the call and of the tools' names and
            descriptions, sync or async, that returns names, the most useful ones first.
    """

    max_tools: Annotated[int, Field(ge=1)] = 10
    always: Sequence[str] = ()
    model: Helper = None
    select: (
        Callable[[ModelCall, Mapping[str, str]], Sequence[str] | Awaitable[Sequence[str]]] | None
    ) = dependency(default_factory=lambda: None)
    _resolved: Resolved = field(default_factory=Resolved, init=False, repr=False)
    _chosen: dict[int, tuple[object, _Choice]] = field(
        default_factory=dict[int, "tuple[object, _Choice]"], init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have.
        """
        super().__post_init__()
        check_helper(self.name, self.model)

    def new(self) -> Self:
        """An instance for one run."""
        made = copy.copy(self)
        made._chosen = {}  # noqa: SLF001  # its own
        return made

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Leave tools out of the request; ADK still knows all of them."""
        from adk_fluent.middleware._tools._selector_adk import offered, show  # noqa: PLC0415

        tools = {
            name: said
            for name, said in offered(call.request).items()
            if name not in FRAMEWORK and name not in self.always
        }
        if len(tools) > self.max_tools:
            chosen = await self._of_this_run(call, tools)
            if chosen is not None:
                show(call.request, lambda name: name not in tools or name in chosen)
        return await next(call)

    async def _of_this_run(
        self, call: ModelCall, tools: Mapping[str, str]
    ) -> frozenset[str] | None:
        """What is chosen while the agent answers a message; again if it has other tools by now."""
        from adk_fluent.middleware._tools._machinery_adk import agent_run  # noqa: PLC0415

        run = agent_run(call.ctx)
        _, choice = self._chosen.get(id(run), (run, None))
        if choice is None or choice.of != frozenset(tools):
            choice = _Choice(frozenset(tools), await self._choose(call, tools))
            self._chosen[id(run)] = (run, choice)  # kept, so that its id stays its own
        return choice.chosen

    async def _choose(self, call: ModelCall, tools: Mapping[str, str]) -> frozenset[str] | None:
        """The names of the tools to show; None for all."""
        try:
            names = await self._asked(call, tools)
            known = [name for name in dict.fromkeys(names) if name in tools]
            if not known and names:
                raise ValueError(f"none of the tools it chose is there: {names[:5]}")
        except Exception as error:  # noqa: BLE001  # the model can do with all tools
            LOG.warning("tool_selector shows %s all tools: %s", call.agent, error)
            self._count("failed")
            return None
        self._count("chosen")
        return frozenset(known[: self.max_tools])

    async def _asked(self, call: ModelCall, tools: Mapping[str, str]) -> list[str]:
        if self.select is not None:
            names = self.select(call, tools)
            return list(await names if isawaitable(names) else names)
        from adk_fluent.middleware._tools._helpers_adk import ask, loads, told  # noqa: PLC0415

        model = self._resolved.model(self.model, call.model)
        listed = "\n".join(f"- {name}: {' '.join(said.split())}" for name, said in tools.items())
        conversation = told(call.request.contents, _SHOWN)
        text = f"<tools>\n{listed}\n</tools>\n<conversation>\n{conversation}\n</conversation>"
        said = await ask(call, model, _SYSTEM.format(n=self.max_tools), text, Chosen)
        return Chosen.model_validate(loads(said)).tools

    def _count(self, outcome: str) -> None:
        count("adk_fluent.selector.choices", 1, {"adk_fluent.outcome": outcome})


#: `ToolSelectorMiddleware` by its short name.
tool_selector = ToolSelectorMiddleware
