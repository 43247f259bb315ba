"""One step of a run: the agent that stands there, and those it hands over to."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from adk_fluent._scripts._replies import Call, Reply, Thought
from adk_fluent._words import describe
from adk_fluent.backends._answers import correction
from adk_fluent.backends.mock._calls import (
    Outcome,
    as_result,
    confirmed,
    long_running,
    new_id,
    outcome_of,
)
from adk_fluent.backends.mock._prompt import USER
from adk_fluent.backends.mock._responses import Writes
from adk_fluent.backends.mock._session import Question
from adk_fluent.backends.mock._tools import is_flow
from adk_fluent.errors import OutputInvalidError, RemoteError, UsageError
from adk_fluent.ir import UNSET
from adk_fluent.protocol import AgentEvent, ErrorInfo, ToolCallInfo, ToolResponseInfo
from adk_fluent.protocol._decision import Decision, decide

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Mapping

    from adk_fluent.backends.mock._scripted import ScriptedLeaf
    from adk_fluent.flow import Strand
    from adk_fluent.ir import Node


class Step:
    """What agents of one step say and do.

    Args:
        leaf: Makes the events, and asks the scripts.
        node: The agent that stands there.
        strand: Where that is.
    """

    def __init__(self, leaf: ScriptedLeaf, node: Node, strand: Strand) -> None:
        self._leaf = leaf
        self._node = node
        self._strand = strand
        self._path = leaf.path_of(strand)
        self._agents = leaf.agents_of(node)
        self._next: Node | None = node

    async def run(self, answers: Mapping[str, Any]) -> AsyncGenerator[AgentEvent, None]:
        """The events of the step.

        Args:
            answers: What came in for questions that somebody in it asked.
        """
        if answers:
            self._next = self._asker(answers)
        while (here := self._next) is not None:
            self._next = None
            made = self._flow(here, answers) if is_flow(here) else self._agent(here, answers)
            async with aclosing(made) as events:
                async for event in events:
                    yield event
            answers = {}

    def _asker(self, answers: Mapping[str, Any]) -> Node:
        """Who goes on when answers come: it may have been handed over to before it asked."""
        question = self._leaf.session.asked.get((self._path, next(iter(answers))))
        found = None if question is None else self._agents.named(question.asker)
        return found or self._node

    async def _flow(
        self, flow: Node, answers: Mapping[str, Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        """The events of a pipeline that an agent has handed over to."""
        below = self._leaf.run_below(self._node, self._strand, flow, answers)
        async with aclosing(below) as events:
            async for event in events:
                for asked in event.pending:
                    self._asked(asked.id, Question(flow.name))
                yield event

    # --- one agent -----------------------------------------------------------------------------

    async def _agent(
        self, agent: Node, answers: Mapping[str, Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        """What an agent says until it is done, waits, or hands over."""
        targets = self._agents.targets(agent)
        told = self._told(agent, answers)
        if told:
            yield self._event(agent, tool_responses=told)
        if self._still_waits(agent, answers):
            return
        left: int = getattr(agent, "output_retries", 0)
        wrongs: list[str] = []
        while True:
            calls: list[ToolCallInfo] = []
            wrong: str | None = None
            reply = await self._leaf.ask(agent, self._strand, targets, wrongs)
            async with aclosing(self._say(agent, reply, again=left > 0)) as events:
                async for event in events:
                    calls = event.tool_calls
                    wrong = event.metadata.get("retried")
                    yield event
            if wrong is not None:
                left -= 1
                wrongs.append(correction(wrong))
                continue
            if not calls:
                return
            outcome = await outcome_of(agent, calls, targets, self._call_agent)
            for event in self._outcome(agent, outcome):
                yield event
            if outcome.hands_over is not None:
                self._next = self._target(agent, outcome.hands_over, targets)
                return
            waits = outcome.asked or long_running(agent, calls)
            if waits or outcome.escalates or not outcome.settled:
                return

    def _call_agent(
        self, node: Node, args: Mapping[str, Any]
    ) -> Awaitable[tuple[Any, dict[str, Any]]]:
        return self._leaf.call_agent(node, self._strand, args)

    def _told(self, agent: Node, answers: Mapping[str, Any]) -> list[ToolResponseInfo]:
        """The results of calls that a person confirmed, or did not.

        What a long-running tool answers comes from outside, and is no event of the agent's.
        """
        told: list[ToolResponseInfo] = []
        for id, value in answers.items():
            question = self._leaf.session.asked.get((self._path, id))
            if question is None or question.call is None:
                continue  # of another step; or it was told in a run that was cut off
            call, question.call = question.call, None
            if id == call.call_id:
                given = ToolResponseInfo(call.tool_name, dict(as_result(value)), id)
                event = self._event(agent, author=USER, tool_responses=[given])
                self._leaf.session.events.append(event)
            else:
                decision = decide(None, value)
                approved = isinstance(decision, Decision) and decision.approved
                told.append(confirmed(call, approved=approved))
        return told

    def _still_waits(self, agent: Node, answers: Mapping[str, Any]) -> bool:
        """Whether not all that an agent asked is answered: its model is asked when it is."""
        asked: Mapping[str, str] = self._strand.frames[-1].get("waits", {}) if answers else {}
        questions = (
            self._leaf.session.asked.get((self._path, id)) for id in asked if id not in answers
        )
        return any(each is not None and each.asker == agent.name for each in questions)

    def _outcome(self, agent: Node, outcome: Outcome) -> list[AgentEvent]:
        """The events of what came of calls: first what can be told, then what is asked for."""
        events: list[AgentEvent] = []
        if outcome.results:
            last = bool(outcome.escalates or (outcome.asked and not outcome.settled))
            events.append(
                self._event(
                    agent,
                    tool_responses=outcome.results,
                    state_delta=outcome.writes,
                    transfer_to=outcome.hands_over,
                    escalate=outcome.escalates,
                    is_final=last,
                    metadata={"skip_summarization": True} if last else {},
                )
            )
        if outcome.asked:
            asks = self._event(agent, pending=tuple(asked for asked, _ in outcome.asked))
            asks.is_final = True
            for asked, call in outcome.asked:
                self._asked(asked.id, Question(agent.name, call))
            events.insert(1 if outcome.settled else 0, asks)
        return events

    def _target(self, agent: Node, name: str, targets: Mapping[str, Node]) -> Node:
        """Who goes on.

        Raises:
            ValueError: Nobody of this name may be handed over to; as ADK says it.
        """
        if name == agent.name:
            return agent
        if name in targets:
            return targets[name]
        if name in self._leaf.known or self._agents.named(name) is not None:
            raise ValueError(f"Agent {agent.name} is not allowed to transfer to agent {name}.")
        raise ValueError(f"Agent {name} not found in the agent tree.")

    # --- what it says --------------------------------------------------------------------------

    async def _say(
        self, agent: Node, reply: Reply, *, again: bool = False
    ) -> AsyncGenerator[AgentEvent, None]:
        """The events that a model's reply becomes; `again`, if it is asked again when wrong."""
        if reply.fault is not None:
            raise UsageError(
                f"the mock backend has no connection for fault={reply.fault!r} to happen to",
                node=agent,
                help="use GeminiEmulator; or reply(raises=ConnectionError('why'))",
            )
        if self._leaf.streams:
            for at, piece in enumerate(_pieces(reply)):
                if at and reply.pause > 0:
                    await asyncio.sleep(reply.pause)
                yield self._event(agent, content=piece, is_partial=True)
        if reply.raises is not None:
            raise reply.raises.with_traceback(None)  # one instance may be raised many times
        if reply.status is not None:
            raise RemoteError(
                f"{agent.name}'s model failed with the scripted HTTP status {reply.status}",
                retriable=reply.status == 429 or reply.status >= 500,
                node=agent,
            )
        if reply.error_code is not None:
            error = ErrorInfo(reply.error_code, reply.error_message or "")
            yield self._event(agent, error=error, is_final=True, usage=reply.usage)
            return
        texts, called, delta = _parts(agent, reply)
        text = "".join(texts) if texts else None
        invalid: OutputInvalidError | None = None
        output: Any = UNSET
        if text is not None and not called:
            try:
                writes, output = self._leaf.read(agent, text)
                delta.update(writes)
            except OutputInvalidError as error:
                invalid = error
        calls = [ToolCallInfo(c.name, dict(c.args), c.id or new_id(c.name)) for c in called]
        later = long_running(agent, calls)
        for asked in later:
            call = next(call for call in calls if call.call_id == asked.id)
            self._asked(asked.id, Question(agent.name, call))
        retried = invalid is not None and again
        yield self._event(
            agent,
            content=text,
            state_delta=delta,
            tool_calls=calls,
            pending=later,
            is_final=bool(later or not calls) and not retried,
            metadata={
                **({"retried": invalid.what} if invalid is not None and again else {}),
                **({"output": None} if output is None else {}),  # which is data, too
            },
            usage=reply.usage,
            output=None if output is UNSET else output,
        )
        if invalid is not None and not again:
            raise invalid

    def _event(self, agent: Node, **fields: Any) -> AgentEvent:
        return self._leaf.event(self._node, self._strand, **{"author": agent.name, **fields})

    def _asked(self, id: str, question: Question) -> None:
        self._leaf.session.asked[self._path, id] = question


def _parts(agent: Node, reply: Reply) -> tuple[list[str], list[Call], dict[str, Any]]:
    """The texts, calls and writes of a reply."""
    texts: list[str] = []
    calls: list[Call] = []
    delta: dict[str, Any] = {}
    for part in reply.parts:
        match part:
            case str():
                texts.append(part)
            case Call():
                calls.append(part)
            case Writes():
                delta.update(part.delta)
            case Thought():
                continue
            case _:
                raise UsageError(
                    f"the mock backend cannot answer with {describe(part)}",
                    node=agent,
                    help="give a text, a mapping, Call(...), Thought(...) or reply(...)",
                )
    return texts, calls, delta


def _pieces(reply: Reply) -> list[str]:
    """What is streamed before the whole."""
    parts = [*reply.chunks, *(reply.parts[1:] if reply.chunks else reply.parts)]
    return [part for part in parts if isinstance(part, str) and part]
