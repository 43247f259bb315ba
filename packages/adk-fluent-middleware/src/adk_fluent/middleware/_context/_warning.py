"""A warning before the model's context is full."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import isawaitable
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from pydantic import Field

from adk_fluent.extend import LOG
from adk_fluent.middleware._builtin import BuiltIn, builtin, dependency
from adk_fluent.protocol import ModelCall, ModelReply, NextModel, estimate_tokens

if TYPE_CHECKING:
    from typing import Self

#: What an event tells a person besides its content; ``adk-fluent run`` shows it.
NOTICE: Final = "adk_fluent_notice"
_KEY: Final = "adk_fluent_context_warned"
_Window = Annotated[int, Field(ge=1)]


@dataclass(frozen=True, slots=True)
class ContextUsage:
    """How full the context of an agent's model is.

    Attributes:
        agent: The agent.
        model: Its model.
        used: Tokens in its context: the prompt, and the answer that the next prompt will hold.
        max_context: Tokens there may be.
    """

    agent: str
    model: str
    used: int
    max_context: int

    @property
    def part(self) -> float:
        """How much of it is used; 1 is all."""
        return self.used / self.max_context

    def __str__(self) -> str:
        return (
            f"You have used {self.part:.0%} of the model's context "
            f"({self.used:,} of {self.max_context:,} tokens)."
        )


def _tell_nobody(usage: ContextUsage) -> None:
    """What is told when nobody wants to know."""


@builtin
class ContextWarningMiddleware(BuiltIn):
    """Warns when a part of the model's context is used up.

    The warning is logged, and goes with the answer for a user interface to show. It comes once in
    a session for each agent, and again only if its context was less full in between.

    Attributes:
        threshold_percent: The part of the context from which it warns; 0.5 is half of it.
        max_context: Tokens of the model's context: a number, or numbers by the model's name. None
            takes what the package `genai-prices` knows, if it is installed.
        on_warning: Called with the `ContextUsage`; may be async. What it raises is logged.
    """

    threshold_percent: Annotated[float, Field(gt=0, le=1)] = 0.5
    max_context: _Window | Mapping[str, _Window] | None = None
    on_warning: Callable[[ContextUsage], Awaitable[None] | None] = dependency(
        default_factory=lambda: _tell_nobody
    )
    _full: set[str] = field(default_factory=set[str], init=False, repr=False)
    _unknown: set[str] = field(default_factory=set[str], init=False, repr=False)

    def new(self) -> Self:
        """The instance for one run."""
        made = copy.copy(self)
        made._full = set()  # noqa: SLF001  # its own
        return made

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Call the model, and see how full its context is then."""
        model = call.request.model or str(getattr(call.model, "model", ""))
        window = self._window(model)
        if window is None:
            return await next(call)
        expected = estimate_tokens(call.request)
        try:
            reply = await next(call)
        except Exception:  # a context that is too full may be why
            await self._warns(call, ContextUsage(call.agent, model, expected, window))
            raise
        used = _used(reply, expected)
        usage = ContextUsage(call.agent, model, used, window)
        return _with(reply, str(usage)) if await self._warns(call, usage) else reply

    async def _warns(self, call: ModelCall, usage: ContextUsage) -> bool:
        """Warn if it has become full."""
        key = f"{_KEY}/{call.agent}/{self.threshold_percent:g}"
        known = call.agent in self._full or bool(call.ctx.state.get(key))
        is_full = usage.part >= self.threshold_percent
        if is_full == known:
            return False
        if not is_full:
            self._full.discard(call.agent)
            call.ctx.state[key] = None
            return False
        self._full.add(call.agent)
        call.ctx.state[key] = True
        LOG.warning("agent %s: %s", usage.agent, usage)
        try:
            told = self.on_warning(usage)
            if isawaitable(told):
                await told
        except Exception:  # noqa: BLE001  # an onlooker's; the log has all of it
            LOG.exception("on_warning of context_warning failed; the run goes on")
        return True

    def _window(self, model: str) -> int | None:
        given = self.max_context
        found = given.get(model) if isinstance(given, Mapping) else given
        found = known_window(model) if given is None else found
        if found is None and model not in self._unknown:
            self._unknown.add(model)
            LOG.warning("context_warning does not know the context of %r: give max_context", model)
        return found


def known_window(model: str) -> int | None:
    """Tokens of a model's context, if `genai-prices` is installed and knows them."""
    try:
        prices: Any = import_module("genai_prices.data_snapshot")  # not everybody has it
        _, found = prices.get_snapshot().find_provider_model(model, None, "litellm", None)
    except (ImportError, LookupError):
        return None
    return found.context_window


def _used(reply: ModelReply, expected: int) -> int:
    usage = reply.usage
    if usage is None:
        answers = [each.content for each in reply.responses if each.content is not None]
        return expected + estimate_tokens(answers)
    return usage.prompt + usage.tool + usage.output


def _with(reply: ModelReply, notice: str) -> ModelReply:
    """The reply with a notice; a copy, because whoever gave it may keep it."""
    if not reply.responses:
        return reply
    *others, last = reply.responses
    metadata = cast("dict[str, Any]", last.custom_metadata or {})
    noted = last.model_copy(update={"custom_metadata": {**metadata, NOTICE: notice}})
    return ModelReply([*others, noted])


#: `ContextWarningMiddleware` by its short name.
context_warning = ContextWarningMiddleware
