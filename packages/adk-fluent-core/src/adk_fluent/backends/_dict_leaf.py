"""The flow engine's port on a plain dict, for whatever runs without ADK."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from adk_fluent.backends._resources import NOTHING, Injection
from adk_fluent.flow import Facts
from adk_fluent.protocol import AgentEvent, Data

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, MutableMapping

    from adk_fluent.flow import Note, Strand
    from adk_fluent.ir import Node, Ref


class DictLeaf:
    """A leaf whose state is a dict and whose events are `AgentEvent`s; a subclass runs agents.

    Args:
        state: Session state; `commit` writes to it.
        author: Who authors the engine's own events: the root's name.
        run_id: Put on every event.
    """

    #: What functions may name, and the instances of this run.
    injection: Injection = NOTHING
    table: Mapping[str, Any] = {}  # never changed

    def __init__(self, state: MutableMapping[str, Any], author: str, run_id: str = "") -> None:
        self.state = state
        self.author: str = author
        self._run_id = run_id

    def run(
        self, node: Node, strand: Strand, answers: Mapping[str, Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run an agent."""
        raise NotImplementedError

    def call(self, node: Node, fn: Ref, strand: Strand, state: Mapping[str, Any]) -> Any:
        """Call a user's function over state."""
        return self.injection.call(fn, state, self.table)

    def event(self, node: Node, strand: Strand, **fields: Any) -> AgentEvent:
        """An event of an agent, with its place in the pipeline."""
        metadata = {"run": self._run_id, **fields.pop("metadata", {})}
        return AgentEvent(
            fields.pop("author", node.name),
            metadata=metadata,
            timestamp=time.time(),
            invocation_id=self._run_id,
            branch=strand.branch,
            path=strand.path,
            node=node.name,
            attempt=strand.attempt,
            **fields,
        )

    def write(self, node: Node, strand: Strand, delta: Mapping[str, Any], note: Note) -> AgentEvent:
        """Make the event that carries a write of the engine's own."""
        return self.event(
            node,
            strand,
            author=self.author,
            state_delta=dict(delta),
            content=note.text,
            discarded=note.discarded,
            transfer_to=note.transfer_to,
            metadata={"why": note.why},
            is_final=True,  # as ADK says of every event that calls nothing
        )

    def check(self, node: Node, delta: Mapping[str, Any]) -> None:
        """Sessions that are dicts keep whatever there is."""

    def attach(self, event: AgentEvent, delta: Mapping[str, Any]) -> None:
        """Let an event that is about to be committed write these keys, too."""
        event.state_delta.update(delta)

    def facts(self, event: AgentEvent) -> Facts | None:
        """What the engine must know of an event; None for a plain one."""
        if not (
            event.state_delta
            or event.escalate
            or event.transfer_to
            or event.is_partial
            or event.error
            or event.pending
        ):
            return None
        return Facts(
            delta=None if event.is_partial else event.state_delta,
            partial=event.is_partial,
            escalate=event.escalate,
            transfers=bool(event.transfer_to),
            error=str(event.error) if event.error else None,
            waits={each.id: each.kind for each in event.pending},
        )

    def text(self, event: AgentEvent) -> str | None:
        """The text of an event that is a final answer, else None."""
        return event.content if event.is_final and not event.is_partial else None

    def answer(self, event: AgentEvent) -> str | Data | None:
        """The text of an event that is a final answer, or its validated data, else None."""
        said = event.output is not None or "output" in event.metadata
        return Data(event.output) if said else self.text(event)

    def commit(self, event: AgentEvent) -> None:
        """Apply what an event writes."""
        if not event.is_partial:
            self.state.update(event.state_delta)
