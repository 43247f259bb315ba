"""Summaries of old events: ADK does the work, also where nobody but our root agent knows of it."""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from google.adk.apps import compaction
from google.adk.apps.app import App, EventsCompactionConfig
from google.adk.apps.base_events_summarizer import BaseEventsSummarizer
from google.adk.apps.llm_event_summarizer import LlmEventSummarizer
from pydantic import ValidationError

from adk_fluent._logs import LOG
from adk_fluent.backends.adk._caps import CAPS
from adk_fluent.backends.adk._session._sessions import is_stale
from adk_fluent.backends.adk._session._stamps import discarded_in, is_discarded
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.base_llm import BaseLlm

    from adk_fluent.ir import CompactionConfig


class KeptEventsSummarizer(BaseEventsSummarizer):
    """ADK's summarizer, which is not told what discarded attempts said."""

    def __init__(self, llm: BaseLlm) -> None:
        self._inner = LlmEventSummarizer(llm)

    async def maybe_summarize_events(self, *, events: list[Event]) -> Event | None:
        """Summarise these events; None when there is nothing to summarise."""
        gone = discarded_in(events)
        kept = [each for each in events if not is_discarded(each, gone)] if gone else events
        summary = await self._inner.maybe_summarize_events(events=kept)
        if summary is not None and summary.actions.compaction is not None:
            # ADK goes on from where the summary ends: the discarded events are dealt with, too
            summary.actions.compaction.start_timestamp = events[0].timestamp
            summary.actions.compaction.end_timestamp = events[-1].timestamp
        return summary


def compaction_config(config: CompactionConfig, llm: BaseLlm) -> EventsCompactionConfig:
    """ADK's configuration.

    Raises:
        UsageError: ADK refuses the values.
    """
    try:
        return EventsCompactionConfig(
            summarizer=KeptEventsSummarizer(llm),
            compaction_interval=config.interval,
            overlap_size=config.overlap,
            token_threshold=config.token_threshold,
            event_retention_size=config.event_retention_size,
        )
    except ValidationError as error:
        reasons = "; ".join(each["msg"] for each in error.errors())
        raise UsageError(
            "ADK refuses this CompactionConfig", found=repr(config), help=reasons
        ) from error


def own_compaction(
    config: EventsCompactionConfig | None, ctx: InvocationContext
) -> EventsCompactionConfig | None:
    """What a root agent must see to itself; None when there is nothing, or its App does it.

    Args:
        config: The agent's own configuration.
        ctx: Its context; newer versions of ADK summarise during a run, too, if this tells them how.
    """
    if config is not None and CAPS.compaction_in_run:
        if ctx.events_compaction_config is not None:
            return None
        ctx.events_compaction_config = config
    return config


async def compact(config: EventsCompactionConfig, root: BaseAgent, ctx: InvocationContext) -> None:
    """What ADK's Runner does at the end of a run when its App has compaction.

    A root agent that is run under somebody else's App does it itself.
    """
    app = App(name="adk_fluent_app", root_agent=root, events_compaction_config=config)
    # the only private function of ADK used: what it does (which events, when) has no other door
    run: Any = compaction._run_compaction_for_sliding_window  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    made: Any = run(app, ctx.session, ctx.session_service)
    if isawaitable(made):  # 1.x appends what it made
        await made
        return
    try:
        async for event in made:
            await ctx.session_service.append_event(session=ctx.session, event=event)
    except ValueError as error:
        if not is_stale(error):
            raise
        LOG.info("a newer turn wrote to session %s: its summary has to wait", ctx.session.id)
