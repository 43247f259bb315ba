"""What the agents of a run on scripts are asked, and the events of what they answer."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from adk_fluent._scripts._replies import Asked, Turn
from adk_fluent.backends._answers import Answer, answer_of
from adk_fluent.backends._dict_leaf import DictLeaf
from adk_fluent.backends.mock._prompt import USER, instruction, turns, visible
from adk_fluent.backends.mock._tools import TRANSFER, Agents, tool_names
from adk_fluent.errors import BuildError, RunError
from adk_fluent.ir import UNSET
from adk_fluent.protocol import AgentEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence

    from adk_fluent._scripts._replies import Reply
    from adk_fluent._scripts._script import Script
    from adk_fluent.backends._listeners import Listeners
    from adk_fluent.backends.mock._session import Session
    from adk_fluent.flow import Engine, Facts, Strand
    from adk_fluent.ir import ExecutionConfig, Node


class ScriptedLeaf(DictLeaf, ABC):
    """What agents of one run are asked and answer; a subclass runs flows below them.

    Args:
        session: The session the run is part of.
        author: Who authors the engine's own events.
        run_id: Identity of the run.
        config: How it runs.
        script_for: Chooses the script that answers an agent; it records what was asked.
        message: What the user said.
        known: Names of all agents, for errors.

    Attributes:
        session: The session the run is part of.
        run_id: Identity of the run.
        config: How it runs.
        script_for: Chooses the script that answers an agent.
        message: What the user said.
        known: Names of all agents, for errors.
        missing: The first agent's error that nobody had told what to say.
        told: Who is told of what happens; None is nobody.
        engine: What runs, once it does.
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
        known: Collection[str] = (),
    ) -> None:
        super().__init__(session.state, author, run_id)
        self.session: Session = session
        self.known: Collection[str] = known
        self.missing: BuildError | None = None
        self.told: Listeners | None = None
        self.run_id: str = run_id
        self.config: ExecutionConfig = config
        self.script_for: Callable[[Node, Asked], Script] = script_for
        self.message: str = message
        self._calls = 0
        self._answers: dict[int, Answer | None] = {}
        self._agents: dict[int, Agents] = {}
        self.engine: Engine[AgentEvent] | None = None

    def bind(self, engine: Engine[AgentEvent]) -> None:
        """Name the engine that runs: it knows which scopes are open."""
        self.engine = engine

    def is_open(self, scope: str) -> bool:
        """Whether it is not decided yet if what is done in a scope counts."""
        return self.engine is not None and scope in self.engine.log.open

    @property
    def streams(self) -> bool:
        """Whether fragments of answers are wanted."""
        return self.config.streaming_mode == "sse"

    def path_of(self, strand: Strand) -> str:
        """The position of a strand in the whole run."""
        return strand.path

    def attempt_of(self, strand: Strand) -> str | None:
        """The open scopes that a strand works in, in the whole run."""
        return strand.attempt

    # --- events --------------------------------------------------------------------------------

    def commit(self, event: AgentEvent) -> None:
        """Apply what an event writes, and remember it."""
        super().commit(event)
        if not event.is_partial:
            self.session.events.append(event)

    def event(self, node: Node, strand: Strand, **fields: Any) -> AgentEvent:
        """An event of an agent, with its place in the pipeline."""
        made = super().event(node, strand, **fields)
        made.custom_metadata.update(self.config.custom_metadata or {})
        return made

    def note(self, why: str, **fields: Any) -> AgentEvent:
        """An event of the run itself, of no step."""
        return AgentEvent(
            self.author,
            metadata={"run": self.run_id, "why": why},
            timestamp=time.time(),
            invocation_id=self.run_id,
            path="",
            node=self.author,
            is_final=True,
            **fields,
        )

    def facts(self, event: AgentEvent) -> Facts | None:
        """What the engine must know of an event; None for a plain one."""
        facts = super().facts(event)
        if facts is not None and event.metadata.get("why") == "refused":  # in a flow below this one
            facts.stop = True
        return facts

    # --- agents --------------------------------------------------------------------------------

    def agents_of(self, node: Node) -> Agents:
        """The agents of a step."""
        if id(node) not in self._agents:
            self._agents[id(node)] = Agents(node)
        return self._agents[id(node)]

    async def ask(
        self, agent: Node, strand: Strand, targets: Collection[str], told: Sequence[str] = ()
    ) -> Reply:
        """What an agent's script answers in this place.

        Args:
            agent: The agent.
            strand: Where it stands.
            targets: Names of whom it may hand over to.
            told: What was wrong with its answers so far; the last one stands at the end.

        Raises:
            RunError: More models would be called than the configuration allows.
            UnknownNameError: Nobody said what it answers.
        """
        self.count(agent)
        path, attempt = self.path_of(strand), self.attempt_of(strand)
        events = visible(self.session.events, self.run_id, attempt, self.is_open)
        asked = Asked(
            turns=(
                *turns(agent, events, self.run_id, path, self.message),
                *(Turn(USER, each) for each in told[-1:]),
            ),
            system=instruction(agent, strand.state),
            agent=agent.name,
            tools=(*((TRANSFER,) if targets else ()), *tool_names(agent)),
            stream=self.streams,
        )
        try:
            script = self.script_for(agent, asked)
        except BuildError as error:
            self.lacks(error)
            raise
        return await script.answer(asked)

    def count(self, agent: Node) -> None:
        """Count one more call of a model.

        Raises:
            RunError: More are made than the configuration allows.
        """
        self._calls += 1
        limit = self.config.max_llm_calls
        if 0 < limit < self._calls:
            raise RunError(
                f"{agent.name} would make more than {limit} model calls in one run",
                node=agent,
                help="a loop may have no end; or raise ExecutionConfig.max_llm_calls",
            )

    def lacks(self, error: BuildError) -> None:
        """Remember that nobody said what an agent answers."""
        self.missing = self.missing or error

    def read(self, agent: Node, text: str) -> tuple[dict[str, Any], Any]:
        """What an agent's text writes, and the data in it; `UNSET` where it is just text.

        Raises:
            OutputInvalidError: It does not fit the schema.
        """
        if id(agent) not in self._answers:
            self._answers[id(agent)] = answer_of(agent)
        answer = self._answers[id(agent)]
        if answer is None:
            return {}, UNSET
        data = answer.data(text)
        return answer.written(text, data), data

    # --- what agents call, and what they hand over to --------------------------------------------

    @abstractmethod
    def run_below(
        self, node: Node, strand: Strand, flow: Node, answers: Mapping[str, Any]
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run a pipeline that the agent of a step has handed over to."""

    @abstractmethod
    async def call_agent(
        self, node: Node, strand: Strand, args: Mapping[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        """Run an agent that is a tool; give its last answer and what it wrote."""
