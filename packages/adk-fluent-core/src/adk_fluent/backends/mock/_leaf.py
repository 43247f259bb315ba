"""The flow engine's port on scripts: what agents are asked, and what their answers become."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.backends._answers import Answer, answer_of
from adk_fluent.backends._dict_leaf import DictLeaf
from adk_fluent.backends.mock._prompt import instruction, turns, visible
from adk_fluent.backends.mock._responses import Writes
from adk_fluent.errors import (
    BuildError,
    OutputInvalidError,
    RemoteError,
    RunError,
    UsageError,
)
from adk_fluent.ir import AgentNode
from adk_fluent.protocol import (
    AgentEvent,
    ErrorInfo,
    ToolCallInfo,
    ToolResponseInfo,
)
from adk_fluent.testing import Asked, Call, Reply, Thought

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping

    from adk_fluent.flow import Engine, Strand
    from adk_fluent.ir import ExecutionConfig, Node
    from adk_fluent.testing import Script

#: ADK's tool that ends a loop, and, like it, everything else of this name.
_EXIT: Final = "exit_loop"


@dataclass(slots=True)
class Session:
    """What is remembered from one run to the next.

    Attributes:
        state: Session state.
        events: All that was said, the user's messages included.
    """

    state: dict[str, Any] = field(default_factory=dict[str, Any])
    events: list[AgentEvent] = field(default_factory=list[AgentEvent])


class MockLeaf(DictLeaf):
    """Runs the agents of one run from scripts.

    Args:
        session: The session the run is part of.
        author: Who authors the engine's own events.
        run_id: Identity of the run.
        config: How it runs.
        script_for: Chooses the script that answers an agent; it records what was asked.
        message: What the user said.

    Attributes:
        missing: The first agent's error that nobody had told what to say.
    """

    def __init__(
        self,
        session: Session,
        author: str,
        run_id: str,
        *,
        config: ExecutionConfig,
        script_for: Callable[[Node, Asked], Script],
        message: str,
    ) -> None:
        super().__init__(session.state, author, run_id)
        self.missing: BuildError | None = None
        self._session = session
        self._config = config
        self._script_for = script_for
        self._message = message
        self._calls = 0
        self._answers: dict[int, Answer | None] = {}
        self._engine: Engine[AgentEvent] | None = None

    def bind(self, engine: Engine[AgentEvent]) -> None:
        """Name the engine that runs: it knows which scopes are open."""
        self._engine = engine

    def commit(self, event: AgentEvent) -> None:
        """Apply what an event writes, and remember it."""
        super().commit(event)
        if not event.is_partial:
            self._session.events.append(event)

    def event(self, node: Node, strand: Strand, **fields: Any) -> AgentEvent:
        """An event of an agent, with its place in the pipeline."""
        made = super().event(node, strand, **fields)
        made.custom_metadata.update(self._config.custom_metadata or {})
        return made

    async def run(
        self, node: Node, strand: Strand, answers: Mapping[str, Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Answer from the agent's script, and again after each call of a tool."""
        done = False
        while not done:
            reply = await self._ask(node, strand)
            async with aclosing(self._say(node, strand, reply)) as events:
                async for event in events:
                    done = event.is_final
                    yield event

    # --- asking --------------------------------------------------------------------------------

    async def _ask(self, node: Node, strand: Strand) -> Reply:
        self._calls += 1
        limit = self._config.max_llm_calls
        if 0 < limit < self._calls:
            raise RunError(
                f"{node.name} would make more than {limit} model calls in one run",
                node=node,
                help="a loop may have no end; or raise ExecutionConfig.max_llm_calls",
            )
        assert self._engine is not None  # noqa: S101  # bound before anything runs
        run, events = self._run_id, self._session.events
        seen = visible(events, run, strand.attempt, self._engine.log.open)
        asked = Asked(
            turns=turns(node, seen, run, strand.path, self._message),
            system=instruction(node, strand.state),
            agent=node.name,
            tools=tuple(tool.name for tool in node.tools) if isinstance(node, AgentNode) else (),
            stream=self._config.streaming_mode == "sse",
        )
        try:
            script = self._script_for(node, asked)
        except BuildError as error:
            self.missing = self.missing or error
            raise
        return await script.answer(asked)

    def _read(self, node: Node, text: str) -> dict[str, Any]:
        """What an agent's text writes."""
        if id(node) not in self._answers:
            self._answers[id(node)] = answer_of(node)
        answer = self._answers[id(node)]
        return {} if answer is None else answer.read(text)

    # --- answering -----------------------------------------------------------------------------

    async def _say(
        self, node: Node, strand: Strand, reply: Reply
    ) -> AsyncGenerator[AgentEvent, None]:
        """The events that a model's reply becomes."""
        if reply.fault is not None:
            raise UsageError(
                f"the mock backend has no connection for fault={reply.fault!r} to happen to",
                node=node,
                help="use GeminiEmulator; or reply(raises=ConnectionError('why'))",
            )
        if self._config.streaming_mode == "sse":
            for at, piece in enumerate(_pieces(reply)):
                if at and reply.pause > 0:
                    await asyncio.sleep(reply.pause)
                yield self.event(node, strand, content=piece, is_partial=True)
        if reply.raises is not None:
            raise reply.raises.with_traceback(None)  # one instance may be raised many times
        if reply.status is not None:
            raise RemoteError(
                f"{node.name}'s model failed with the scripted HTTP status {reply.status}",
                retriable=reply.status == 429 or reply.status >= 500,
                node=node,
            )
        if reply.error_code is not None:
            error = ErrorInfo(reply.error_code, reply.error_message or "")
            yield self.event(node, strand, error=error, is_final=True, usage=reply.usage)
            return
        texts, calls, delta = _parts(node, reply)
        text = "".join(texts) if texts else None
        invalid: OutputInvalidError | None = None
        if text is not None and not calls:
            try:
                delta.update(self._read(node, text))
            except OutputInvalidError as error:
                invalid = error
        yield self.event(
            node,
            strand,
            content=text,
            state_delta=delta,
            tool_calls=[ToolCallInfo(call.name, dict(call.args), call.id) for call in calls],
            is_final=not calls,
            usage=reply.usage,
        )
        if invalid is not None:
            raise invalid
        ends = [ToolResponseInfo(c.name, None, c.id) for c in calls if c.name == _EXIT]
        if ends:
            yield self.event(node, strand, tool_responses=ends, escalate=True, is_final=True)


def _parts(node: Node, reply: Reply) -> tuple[list[str], list[Call], dict[str, Any]]:
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
                    f"the mock backend cannot answer with a {type(part).__name__}",
                    node=node,
                    help="give a text, a mapping, Call(...), Thought(...) or reply(...)",
                )
    return texts, calls, delta


def _pieces(reply: Reply) -> list[str]:
    """What is streamed before the whole."""
    parts = [*reply.chunks, *(reply.parts[1:] if reply.chunks else reply.parts)]
    return [part for part in parts if isinstance(part, str) and part]
