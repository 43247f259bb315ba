"""What all runs of a suite share: its targets, the model that judges, and what is kept open."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

from adk_fluent._logs import LOG
from adk_fluent.backends.adk import resolve_model
from adk_fluent.eval._running._models_adk import Recording

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.adk.models.base_llm import BaseLlm
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_toolset import BaseToolset

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.eval._running._settings import Settings
    from adk_fluent.eval._running._target_adk import Target, Targets
    from adk_fluent.eval._scoring._wanted import Metrics

_CLOSING: Final = 10.0  # seconds for what is closed


class Shared:
    """What all runs of a suite share.

    Args:
        targets: What is run.
        metrics: What it is scored by.
        settings: How.

    Attributes:
        settings: How cases are run.
        recording: Where answers of models are kept; None keeps none.
    """

    def __init__(self, targets: Targets, metrics: Metrics, settings: Settings) -> None:
        self._targets = targets
        self._metrics = metrics
        self.settings = settings
        self._judge: BaseLlm | None = None
        self.recording: Recording | None = Recording(settings.cache) if settings.cache else None
        self._open: dict[int, BasePlugin | BaseToolset] = {}
        self._used: Counter[int] = Counter()

    def target(self, case: FluentCase) -> Target:
        """What a run of a case runs; it has to be released when the run ends."""
        target = self._targets.for_run(case)
        self._open |= _held(target)
        self._used.update([*_held(target)])
        return target

    async def release(self, target: Target) -> None:
        """Close what was made for a run that ends, unless another run has it, too.

        What all runs share stays open until `close`.
        """
        if not self._targets.is_factory:
            return
        self._used.subtract([*_held(target)])
        done = [self._open.pop(each) for each in _held(target) if not self._used[each]]
        self._used = +self._used
        await _close_all(done)

    def metrics(self) -> Metrics:
        """What cases are scored by."""
        return self._metrics

    def judge(self) -> BaseLlm | None:
        """The model that judges, one for all runs; None if none of the metrics needs one."""
        if self._judge is None and self._metrics.asks_a_judge:
            self._judge = resolve_model(self.settings.judge_model)
        return self._judge

    async def close(self) -> None:
        """Close what the pipelines hold, each once: plugins, with their middlewares, and toolsets.

        What cannot be closed is logged: there are results by now, and they are not lost for it.
        """
        held = [*self._open.values()]
        self._open.clear()
        await _close_all(held)


def _held(target: Target) -> dict[int, BasePlugin | BaseToolset]:
    """What a target holds open, by identity: two may be equal, and one may stand in two places."""
    return {id(each): each for each in (*target.app.plugins, *target.toolsets)}


async def _close_all(held: Iterable[BasePlugin | BaseToolset]) -> None:
    async with AsyncExitStack() as stack:  # the rest is closed also when this one is cancelled
        for each in held:
            stack.push_async_callback(_close, each)


async def _close(each: BasePlugin | BaseToolset) -> None:
    try:
        async with asyncio.timeout(_CLOSING):
            await each.close()
    except Exception:  # noqa: BLE001  # it is the user's: anything may happen
        name = getattr(each, "name", None) or type(each).__name__
        LOG.exception("after an evaluation, %s could not be closed", name)
