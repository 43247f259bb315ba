"""The one root agent: drives the flow engine, and owns everything that lives as long as a run."""

from __future__ import annotations

import uuid
from contextlib import AsyncExitStack, aclosing, suppress
from inspect import currentframe
from typing import TYPE_CHECKING, Any, TypeVar

from google.adk.agents.base_agent import BaseAgent
from pydantic import Field

from adk_fluent.backends._owner import Holder
from adk_fluent.backends._recording import recorded
from adk_fluent.backends._resuming import GoOn, Tell, check_free
from adk_fluent.backends.adk._config import merged
from adk_fluent.backends.adk._hooks._around import AdkAround, user_message
from adk_fluent.backends.adk._hooks._chain import Chain, attach, attached_for, greet, greeted
from adk_fluent.backends.adk._hooks._line import goes_on, line_of
from adk_fluent.backends.adk._hooks._plugin import ensure_plugin
from adk_fluent.backends.adk._running._leaf import AdkLeaf
from adk_fluent.backends.adk._running._live import LiveLeaf, check_live, followed
from adk_fluent.backends.adk._running._noticing import notices
from adk_fluent.backends.adk._running._places import journal_of, outer_of
from adk_fluent.backends.adk._running._plan import Plan  # noqa: TC001  # pydantic looks it up
from adk_fluent.backends.adk._running._prompt import put_in_place
from adk_fluent.backends.adk._running._routing import is_runner
from adk_fluent.backends.adk._session._compaction import compact, own_compaction
from adk_fluent.backends.adk._session._writes import Writes
from adk_fluent.backends.adk._waiting._claim import Claim, held
from adk_fluent.backends.adk._waiting._confirmations import askers
from adk_fluent.backends.adk._waiting._inbox import Inbox, said_in
from adk_fluent.backends.adk._waiting._journal import Progress, is_done, load
from adk_fluent.backends.adk._waiting._keeper import AdkKeeper, still_done
from adk_fluent.errors import PlanChangedError, SessionError
from adk_fluent.flow import Engine, promises_inside

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.genai import types

L = TypeVar("L", bound=AdkLeaf)


class FlowAgent(BaseAgent):
    """Runs a pipeline. Its agents are its direct sub-agents, however they are arranged.

    It holds nothing of a run, so any number of runs may go on at the same time.

    Attributes:
        plan: What it runs.
        rerun_on_resume: ADK's graph runtime runs it again with an answer, instead of taking the
            answer for all that it had to do. 2.0 to 2.11 do so where it stands below an agent.
    """

    plan: Plan = Field(exclude=True, repr=False)
    rerun_on_resume: bool = True

    def find_agent(self, name: str) -> BaseAgent | None:
        """The agent of this name, here or below; the flow itself where a Runner asks who runs."""
        found = super().find_agent(name)
        if found is not None or self.parent_agent is None:
            frame = currentframe()
            if frame is not None and is_runner(frame.f_back):
                return self
        return found

    async def take(self, ctx: InvocationContext, answer: types.Content) -> None:
        """Take the run that an answer goes on with, before the answer is written down.

        Raises:
            SessionError: Somebody else has taken it, or is at it; or the middleware that has asked
                is missing.
        """
        self._check_askers(ctx, answer)
        inbox = Inbox(ctx, self, self.plan.pipeline, None, self.name, said=answer)
        with suppress(PlanChangedError):  # raised again where ADK leaves it as it is
            verdict = inbox.verdict()
            if isinstance(verdict, GoOn):
                await Claim(ctx, self.plan.node, self.name, verdict.entry).take(Holder())

    def _check_askers(self, ctx: InvocationContext, answer: types.Content) -> None:
        plan = self.plan
        there = {getattr(each, "name", "") for each in plan.all_middlewares}
        for tool, asker in askers(ctx.session, answer):
            if asker not in there:
                raise SessionError(
                    f"{asker} has asked about tool {tool!r}, and this run is without it",
                    found="nobody would heed the answer",
                    help=f"resume with the middlewares of the run: middleware=[{asker}(...)]",
                )

    async def greeted(self, ctx: InvocationContext, message: types.Content) -> types.Content | None:
        """Ask the middlewares what a run begins with that the user begins, before it is stored.

        Returns:
            What is put in the place of what the user said.
        """
        plan = self.plan
        if not plan.middlewares or any(part.function_response for part in message.parts or ()):
            return None
        try:
            outer = attached_for(ctx, self.name)
            chain = Chain(plan.middlewares, plan.nodes, outer=outer, scopes=plan.scopes)
        except Exception as error:  # noqa: BLE001  # ADK would raise a RuntimeError
            greet(ctx, error)
            return None
        greet(ctx, chain)
        return await user_message(ctx, chain, message)

    async def _run_async_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        plan, outer = self.plan, outer_of(ctx)
        if plan.needs_plugin:  # for this run, and for the next one in this process
            ensure_plugin(ctx, plan.all_middlewares)
        journal = journal_of(ctx, self.name)
        if outer is not None and is_done(ctx.session.state, journal, outer):
            outer.over.append(journal)
            yield still_done(ctx, self.name, outer)
            return
        inbox = Inbox(ctx, self, plan.pipeline, outer, journal)
        verdict = inbox.verdict()
        if isinstance(verdict, Tell):
            note = inbox.note(verdict)
            if note is not None:
                yield note
            return
        goes_on = verdict if isinstance(verdict, GoOn) else None
        claim = None
        if goes_on is not None:
            ctx.user_content = said_in(ctx.session, goes_on.entry.user_message) or ctx.user_content
            if outer is None:  # or it is the outer one that is taken
                claim = Claim(ctx, plan.node, journal, goes_on.entry)
        ctx.resumability_config = None  # what ADK would keep of its agents is kept in our journal
        ctx.agent_states, ctx.end_of_agents = {}, {}  # or an agent looks for what it handed over to
        async with AsyncExitStack() as stack:
            holder = await stack.enter_async_context(held(claim))
            entry = inbox.entry_of(goes_on, holder.name)
            await plan.opened(ctx, stack)
            chain = await self._chain(ctx, entry.run, begins=goes_on is None and outer is None)
            ctx.run_config = merged(ctx.run_config, plan.config)
            compaction = own_compaction(plan.compaction, ctx)
            durable = plan.config.resumable or (outer is not None and outer.durable)
            kept = durable or goes_on is not None or inbox.entry is not None
            leaf = self._leaf(ctx, entry.run, chain, durable=durable, kept=kept)
            stack.callback(leaf.unbind)
            around = self._around(ctx, leaf, chain, resumed=goes_on is not None)
            promises = plan.promises
            if outer is not None and outer.promises is not None:
                promises = promises_inside(plan.node, promises, *outer.promises)
            events = recorded(
                plan.node,
                leaf,
                AdkKeeper(ctx, leaf, Progress(plan.pipeline, journal, entry, ctx.session.state)),
                goes_on,
                limit=plan.limit,
                durable=durable,
                kept=kept,
                watch=notices(ctx, leaf),
                around=around if around is not None and around.is_needed else None,
                promises=promises,
                segment=None if outer is not None else plan.segment,
                beside=plan.beside,
                order=None if around is None else around.order,
            )
            if around is not None:
                stack.push(around.close)
            await stack.enter_async_context(aclosing(events))
            made = _put_out(events, Writes(ctx, leaf.state, self.name), around)
            async for event in await stack.enter_async_context(aclosing(made)):
                yield event
            if compaction is not None:
                await compact(compaction, self, ctx)

    async def _chain(self, ctx: InvocationContext, run: str, *, begins: bool) -> Chain | None:
        """The middlewares of a run, after they were asked what it begins with.

        Raises:
            Exception: What one of them raised.
        """
        chain = greeted(ctx)
        if isinstance(chain, Exception):
            raise chain
        if chain is None:
            outer = attached_for(ctx, self.name)
            plan = self.plan
            if outer is None and not plan.middlewares and not plan.scopes:
                return None
            chain = Chain(plan.middlewares, plan.nodes, outer=outer, scopes=plan.scopes)
            if begins and ctx.user_content is not None:  # the plugin came after it
                said = await user_message(ctx, chain, ctx.user_content)
                if said is not None:
                    ctx.user_content = said
                    put_in_place(ctx.session, said)
        if chain.failure is not None:
            await chain.own.tell("on_run_error", ctx, chain.failure)
            raise chain.failure
        chain.run = run
        return chain

    def _around(
        self, ctx: InvocationContext, leaf: AdkLeaf, chain: Chain | None, *, resumed: bool
    ) -> AdkAround | None:
        """What stands around the run and its steps."""
        if chain is None:
            return None
        attach(ctx, chain)
        config = self.plan.config
        return AdkAround(chain, leaf, ctx, self.plan.node, config=config, resumed=resumed)

    def _leaf(
        self,
        ctx: InvocationContext,
        run: str,
        chain: Chain | None,
        *,
        durable: bool = False,
        kept: bool = False,
        kind: type[L] = AdkLeaf,
    ) -> L:
        """What runs the agents in one run."""
        plan = self.plan
        return kind(
            self.name,
            {agent.name: agent for agent in self.sub_agents},
            ctx,
            run=run,
            metadata=(ctx.run_config and ctx.run_config.custom_metadata) or {},
            nesting=plan.nesting,
            injection=plan.injection,
            answers=plan.answers,
            nodes=plan.nodes,
            config=plan.config,
            chain=chain,
            durable=durable,
            kept=kept,
        )

    async def _run_live_impl(self, ctx: InvocationContext) -> AsyncGenerator[Event, None]:
        """Let the agents talk with the user. Nothing of such a run is kept to go on with it."""
        plan, outer = self.plan, outer_of(ctx)
        check_live(self)
        check_free(plan.pipeline, load(ctx.session.state, journal_of(ctx, self.name)))
        ensure_plugin(ctx, plan.all_middlewares)
        line: Any = line_of(ctx)  # a queue to whoever asks no more than ADK does
        ctx.live_request_queue = line
        ctx.resumability_config = None
        async with AsyncExitStack() as stack:
            await plan.opened(ctx, stack)
            run = str(uuid.uuid4()) if outer is None else outer.run
            chain = await self._chain(ctx, run, begins=False)
            ctx.run_config = merged(ctx.run_config, plan.config)
            leaf = self._leaf(ctx, run, chain, kind=LiveLeaf)
            stack.callback(leaf.unbind)
            leaf.on(line, followed(plan.node, after=goes_on(vars(ctx))))
            around = self._around(ctx, leaf, chain, resumed=False)
            engine = Engine(
                plan.node,
                leaf,
                watch=notices(ctx, leaf),
                around=around if around is not None and around.is_needed else None,
                limit=plan.limit,
                promises=plan.promises,
            )
            leaf.bind(engine)
            if around is not None:
                stack.push(around.close)
            events = await stack.enter_async_context(aclosing(_begun(engine)))
            made = _put_out(events, Writes(ctx, leaf.state, self.name), around)
            async for event in await stack.enter_async_context(aclosing(made)):
                yield event


async def _begun(engine: Engine[Event]) -> AsyncGenerator[Event, None]:
    """The events of a run, if state is as it says that it finds it."""
    if engine.promises is not None:
        engine.promises.check_start(engine.leaf.state)
    async with aclosing(engine.run()) as events:
        async for event in events:
            yield event


async def _put_out(
    events: AsyncGenerator[Event, None], writes: Writes, around: AdkAround | None
) -> AsyncGenerator[Event, None]:
    """The events of a run as the middlewares let them be, with what else has to be written."""
    watcher = around if around is not None and around.watches else None
    try:
        async for event in events:
            if watcher is not None:
                await watcher.seen(event)
            temporary: dict[str, Any] = {}
            if event.actions.state_delta and not event.partial:
                first, temporary = writes.before(event)
                if first is not None:
                    yield first
            yield event
            writes.after(temporary)
    except Exception as error:
        if around is not None and (told := await around.failed(error)) is not None:
            yield told
        raise
