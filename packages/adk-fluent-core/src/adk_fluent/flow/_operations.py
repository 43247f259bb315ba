"""What rules ask for, done: leaves are run, functions called, people asked, and writes made."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, cast

from adk_fluent.flow._commit import Commit
from adk_fluent.flow._current import STANDING
from adk_fluent.flow._ending import Ending
from adk_fluent.flow._failures import cancelled_inside, failure, note_mistake
from adk_fluent.flow._functions import matches
from adk_fluent.flow._gates import question
from adk_fluent.flow._port import E, Leaf
from adk_fluent.flow._signals import PAUSE, Ask, Call, Emit, Returned, Signal, Test
from adk_fluent.flow._view import StateView, TapView
from adk_fluent.ir import GateNode, Match, Node, Predicate, TapNode
from adk_fluent.protocol._decision import Fault, decide

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from adk_fluent.flow._port import Watch
    from adk_fluent.flow._strand import Frame, Strand
    from adk_fluent.protocol import Pending


class Operations(Generic[E]):
    """Does what rules ask for, at the step where a strand stands.

    Args:
        leaf: Who runs leaves and makes events.
        answers: Answers to calls that wait, by call id.
        watch: Is told of steps that fail.

    Attributes:
        pending: Calls that wait for an answer: call id to what is asked and by which node.
        questions: What gates ask that did not ask before, in order.
    """

    def __init__(
        self,
        leaf: Leaf[E],
        answers: Mapping[str, Any],
        watch: Watch | None,
    ) -> None:
        self.pending: dict[str, dict[str, Any]] = {}
        self.questions: list[Pending] = []
        self._leaf = leaf
        self._answers = answers
        self._watch = watch
        self._above = STANDING.get()  # of the step that this flow runs inside of

    def is_answered(self, waits: Mapping[str, str]) -> bool:
        """Whether one of these calls has an answer."""
        return any(call in self._answers for call in waits)

    def ending(self, s: Strand, node: Node, frame: Frame) -> Ending:
        """How a leaf ends that is about to be run."""
        waits: dict[str, str] = frame.get("waits", {})
        if waits:
            waits = {call: kind for call, kind in waits.items() if call not in self._answers}
        return Ending(s, node, frame, waits)

    async def run(
        self, s: Strand, node: Node, frame: Frame, ending: Ending
    ) -> AsyncGenerator[Commit[E], None]:
        """Run a leaf until it ends or waits; how it ended is in `ending`."""
        leaf, answers = self._leaf, self._answers
        waits: dict[str, str] = frame.get("waits", {})
        if waits and not _goes_on(waits, answers):
            self._wait(node, ending.waits)
            ending.signal = PAUSE
            return
        given = {call: answers[call] for call in waits if call in answers} if waits else {}
        standing = (s, self._above)
        STANDING.set(standing)
        try:
            async with aclosing(leaf.run(node, s, given)) as events:
                async for event in events:
                    facts = leaf.facts(event)
                    if facts is not None:
                        if facts.partial and s.muted:
                            continue
                        ending.take(facts)
                    if s.scope is not None:
                        s.scope.data["t"] = 1
                        if s.scope.listens and (said := leaf.answer(event)):
                            s.scope.say(s.path, said)
                    delta = None if facts is None or facts.partial else facts.delta
                    yield Commit(event, s.scope, delta, strand=s)
                    STANDING.set(standing)  # whoever asks for the next event may be another task
        except asyncio.CancelledError as error:
            ending.signal = cancelled_inside(error, node)
        except Exception as error:  # noqa: BLE001  # passed up as the step's failure
            ending.signal = failure(error, node)
        finally:
            STANDING.set(self._above)
        ending.end()
        if ending.signal is PAUSE:
            self._wait(node, ending.waits)
        elif isinstance(ending.signal, Exception):
            self._failed(s, ending.signal)

    def emit(self, s: Strand, node: Node, todo: Emit) -> Commit[E]:
        """A write of the engine's own, made in the moment it is committed."""
        if s.scope is not None:
            s.scope.data["t"] = 1
        make = partial(self._make, s, node, todo)
        return Commit(None, make=make, after=todo.committed, strand=s)

    def _make(self, s: Strand, node: Node, todo: Emit) -> E | None:
        delta = todo.delta()
        return None if todo.optional and not delta else self._leaf.write(node, s, delta, todo.note)

    async def call(self, s: Strand, node: Node, todo: Call | Test | Ask) -> Any:
        """Call a user's function or predicate, or ask a person."""
        if isinstance(todo, Ask):
            return await self._ask(s, cast("GateNode", node), s.frames[-1])
        before = STANDING.set((s, self._above))
        try:
            if isinstance(todo, Call):
                view = TapView if isinstance(node, TapNode) else StateView
                value = self._leaf.call(node, todo.fn, s, view(s.state))
                if type(value) is not dict and inspect.isawaitable(value):
                    value = await value
                return Returned(value)
            return Signal.TRUE if await self._test(s, node, todo.predicate) else Signal.FALSE
        except asyncio.CancelledError as error:
            return self._failed(s, cancelled_inside(error, node))
        except Exception as error:  # noqa: BLE001  # passed up as the step's failure
            note_mistake(error)
            return self._failed(s, failure(error, node))
        finally:
            STANDING.reset(before)

    async def _test(self, s: Strand, node: Node, predicate: Predicate) -> bool:
        if isinstance(predicate, Match):
            return matches(predicate, s.state)
        value = self._leaf.call(node, predicate, s, StateView(s.state))
        if inspect.isawaitable(value):
            value = await value
        return bool(value)

    async def _ask(self, s: Strand, node: GateNode, frame: Frame) -> Any:
        """Ask a gate's question, or read its answer; what is no answer leaves it open."""
        waits: dict[str, str] = frame.get("waits", {})
        for id in waits:
            if id in self._answers:
                decision = decide(node.response_schema, self._answers[id], node.name)
            else:
                decision = None
            if decision is None or isinstance(decision, Fault):
                self._wait(node, waits)
                return PAUSE
            del frame["waits"]
            return decision
        payload: Any = None
        if node.payload is not None:
            returned = await self.call(s, node, Call(node.payload))
            if isinstance(returned, Exception):
                return returned
            payload = returned.value
        asked = question(node, payload)
        self.questions.append(asked)
        frame["waits"] = {asked.id: asked.kind}
        self._wait(node, frame["waits"])
        return PAUSE

    def _failed(self, s: Strand, error: Exception) -> Exception:
        if self._watch is not None:
            self._watch.failed(s.nodes[-1], s, error)
        return error

    def _wait(self, node: Node, calls: Mapping[str, str]) -> None:
        self.pending.update(
            {call: {"node": node.name, "asked": asked} for call, asked in calls.items()}
        )


def _goes_on(waits: Mapping[str, str], answers: Mapping[str, Any]) -> bool:
    """Whether a step that waits for these calls goes on with these answers.

    A model takes the results of its tools all at once. Every other answer it takes as it comes.
    """
    answered = [kind for call, kind in waits.items() if call in answers]
    return len(answered) == len(waits) or any(kind != "tool" for kind in answered)
