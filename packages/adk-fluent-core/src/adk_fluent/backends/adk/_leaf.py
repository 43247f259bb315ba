"""The flow engine's port on ADK: runs agents, makes events."""

from __future__ import annotations

from collections import ChainMap
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from google.adk.events.event import Event
from google.adk.events.event_actions import EventActions

from adk_fluent.backends._config import STAMP
from adk_fluent.backends.adk._caps import SAID_NOTHING, merges_dicts
from adk_fluent.backends.adk._injecting import table_of
from adk_fluent.backends.adk._prompt import Prompts
from adk_fluent.errors import BuildError, OutputInvalidError
from adk_fluent.flow import Facts
from adk_fluent.ir import AgentNode

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Container, Mapping

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.agents.invocation_context import InvocationContext

    from adk_fluent.backends._answers import Answer
    from adk_fluent.backends._resources import Injection
    from adk_fluent.backends.adk._events import Stamp
    from adk_fluent.flow import Engine, Note, Strand
    from adk_fluent.ir import Node, Ref

#: Where a step leaves word for a flow below it: a key of its context's ``__dict__``, which ADK
#: carries on into every copy.
_OUTER: Final = "_adk_fluent_outer"


@dataclass(frozen=True, slots=True)
class _Outer:
    """What a flow that runs inside a step of another flow has to know of that.

    Attributes:
        stamp: What the step's events carry.
        is_open: Whether a scope is open.
        discard: Called with scopes that are discarded.
    """

    stamp: Stamp
    is_open: Callable[[str], bool]
    discard: Callable[[list[str]], None]

    @property
    def prefix(self) -> str:
        """What makes ids of scopes of the inner flow different from all others of the run."""
        return self.stamp.get("path", "").replace(".", "-") + "/"


class AdkLeaf:
    """Runs the agents of one run, and makes the events that the engine itself writes.

    Args:
        author: Who authors the engine's own events.
        agents: The agents to run, by name.
        ctx: The context of the agent that drives the engine.
        run: Identity of the run; a flow below another one takes part in that one's run.
        metadata: Put on every event.
        nesting: Names of agents that flows may run below.
        injection: What functions may name.
        answers: How the answers of agents are read, by name of the agent.
    """

    def __init__(
        self,
        author: str,
        agents: Mapping[str, BaseAgent],
        ctx: InvocationContext,
        *,
        run: str,
        metadata: Mapping[str, Any],
        nesting: Container[str],
        injection: Injection,
        answers: Mapping[str, Answer],
    ) -> None:
        self.state: dict[str, Any] = ctx.session.state
        self._author = author
        self._agents = agents
        self._ctx = ctx
        self._metadata = metadata
        self._nesting = nesting
        self._injection = injection
        self._answers = answers
        self._table: Mapping[str, Any] = table_of(ctx) if injection.names else {}
        self._outer: _Outer | None = ctx.__dict__.get(_OUTER)
        self._run = run if self._outer is None else self._outer.stamp.get("run", run)
        self._engine: Engine[Event] | None = None
        self._merging = merges_dicts(ctx.session_service)
        self._prompts = Prompts(ctx.session, self._run, ctx.user_content, self._is_open)

    def bind(self, engine: Engine[Event]) -> None:
        """Name the engine that runs: it knows which scopes are open."""
        self._engine = engine

    # --- the port ------------------------------------------------------------------------------

    async def run(
        self, node: Node, strand: Strand, answers: Mapping[str, Any]
    ) -> AsyncGenerator[Event, None]:
        """Run an agent."""
        stamp = self._stamp(node, strand)
        branch = self._branch(strand)
        agent = self._agents.get(node.name) or self._below(node)
        drafts = self._drafts(strand)
        ctx, seen = self._context(node, agent.name, strand, stamp, drafts)
        answer = self._answers.get(node.name)
        async with aclosing(agent.run_async(ctx)) as events:
            async for event in events:
                self._mark(event, stamp)
                invalid: OutputInvalidError | None = None
                if answer is not None and event.author == agent.name:
                    invalid = self._put_out(answer, event)
                before = len(self._ctx.session.events)
                yield event
                if invalid is not None:
                    raise invalid
                if drafts is not None and not event.partial:
                    _drop_committed(drafts, event.actions.state_delta)
                if branch or seen is not None:
                    self._committed(event, before, branch, seen)

    def call(self, node: Node, fn: Ref, strand: Strand, state: Mapping[str, Any]) -> Any:
        """Call a user's function over state."""
        return self._injection.call(fn, state, self._table)

    def write(self, node: Node, strand: Strand, delta: Mapping[str, Any], note: Note) -> Event:
        """Make the event that carries a write of the engine's own."""
        stamp = self._stamp(node, strand)
        stamp["why"] = note.why
        if note.discarded:
            stamp["discarded"] = [self._scope(each) for each in note.discarded]
            self._discard(stamp["discarded"])
        event = Event(
            author=self._author,
            invocation_id=self._ctx.invocation_id,
            branch=self._branch(strand),
            actions=EventActions(state_delta=dict(delta), transfer_to_agent=note.transfer_to),
        )
        self._mark(event, stamp)
        return event

    def facts(self, event: Event) -> Facts | None:
        """What the engine must know of an event; None for a plain one."""
        actions, waits = event.actions, event.long_running_tool_ids
        if not (
            actions.state_delta
            or actions.escalate
            or actions.transfer_to_agent
            or event.partial
            or event.error_code
            or waits
        ):
            return None
        error = None if event.error_code == SAID_NOTHING else event.error_code
        if error and event.error_message:
            error = f"{error}: {event.error_message}"
        calls = event.get_function_calls() if waits and not event.partial else ()
        return Facts(
            delta=None if event.partial else actions.state_delta,
            partial=bool(event.partial),
            escalate=bool(actions.escalate),
            transfers=bool(actions.transfer_to_agent),
            error=error or None,
            waits={c.id: c.name or "" for c in calls if c.id and c.id in (waits or ())},
        )

    def text(self, event: Event) -> str | None:
        """The text of an event that is a final answer, else None."""
        if event.partial or event.content is None or not event.is_final_response():
            return None
        return "".join(p.text for p in event.content.parts or () if p.text and not p.thought)

    def _put_out(self, answer: Answer, event: Event) -> OutputInvalidError | None:
        """Write what an agent answers; gives the error of an answer that does not fit.

        2.x puts all the agent said in the turn under its key, also what stood beside tool calls;
        1.x leaves out what a callback answered, and 1.25 blanks the key when a tool ends a loop or
        a call waits for an answer.
        """
        text = self.text(event)
        if text is None:
            return None
        delta, key, of_tools = event.actions.state_delta, answer.text_key, _is_of_tools(event)
        if key is not None and of_tools and delta.get(key) == "":
            del delta[key]
        if (key is not None and not text) or (key is None and of_tools):
            return None  # ADK has written an empty text; what stands beside a call is no answer
        try:
            delta.update(answer.read(text))
        except OutputInvalidError as error:
            return error
        return None

    # --- marks ---------------------------------------------------------------------------------

    def _stamp(self, node: Node, strand: Strand) -> Stamp:
        stamp: Stamp = {"path": strand.path, "node": node.name, "run": self._run}
        if (attempt := strand.attempt) is not None:
            stamp["attempt"] = attempt
        if self._outer is not None:
            self._nest(stamp, self._outer)
        return stamp

    def _nest(self, stamp: Stamp, outer: _Outer) -> None:
        """Put a position in this flow below the one of the step it runs in."""
        above, here = outer.stamp.get("path", ""), stamp.get("path", "")
        stamp["path"] = f"{above}.{here}" if above and here else above or here
        scopes = [self._scope(each) for each in stamp.get("attempt", "").split(".") if each]
        if (attempt := outer.stamp.get("attempt")) is not None:
            scopes.insert(0, attempt)
        if scopes:
            stamp["attempt"] = ".".join(scopes)

    def _scope(self, id: str) -> str:
        return id if self._outer is None else self._outer.prefix + id

    def _is_open(self, scope: str) -> bool:
        assert self._engine is not None  # noqa: S101  # bound before anything runs
        if self._outer is None:
            return scope in self._engine.log.open
        prefix = self._outer.prefix
        if scope.startswith(prefix):
            return scope.removeprefix(prefix) in self._engine.log.open
        return self._outer.is_open(scope)

    def _discard(self, scopes: list[str]) -> None:
        self._prompts.discard(scopes)
        if self._outer is not None:
            self._outer.discard(scopes)

    def _mark(self, event: Event, stamp: Stamp) -> None:
        metadata = event.custom_metadata
        if metadata is None:
            event.custom_metadata = {**self._metadata, STAMP: stamp}
        elif STAMP not in metadata:  # an inner flow's events are marked already
            event.custom_metadata = {**self._metadata, **metadata, STAMP: stamp}

    # --- what an agent is given ----------------------------------------------------------------

    def _branch(self, strand: Strand) -> str | None:
        above, here = self._ctx.branch, strand.branch
        return f"{above}.{here}" if above and here else here or above

    def _below(self, node: Node) -> BaseAgent:
        """The agent of a delegate that the flow itself transfers to.

        Raises:
            BuildError: There is no such agent in the compiled pipeline.
        """
        for agent in self._agents.values():
            if (found := agent.find_agent(node.name)) is not None:
                return found
        raise BuildError(
            f"no agent of this pipeline is called {node.name!r}",
            node=node,
            help="compile the pipeline again: its agents were changed or removed",
        )

    def _drafts(self, strand: Strand) -> dict[str, Any] | None:
        """Where a step's writes go until they are committed, if they must not show before that.

        ADK writes what tools and callbacks set into the session's state at once. In a step that
        may be discarded nobody else may see that; and where dicts are merged, the value that the
        service has must be known.
        """
        return {} if strand.scope is not None or self._merging else None

    def _context(
        self, node: Node, name: str, strand: Strand, stamp: Stamp, drafts: dict[str, Any] | None
    ) -> tuple[InvocationContext, list[Event] | None]:
        """The context for a step, and the events it sees if those are not simply the session's."""
        ctx, branch = self._ctx, self._branch(strand)
        changes: dict[str, Any] = {}
        if branch != ctx.branch:
            changes["branch"] = branch
        if name in self._nesting:
            changes[_OUTER] = _Outer(stamp, self._is_open, self._discard)
        session: dict[str, Any] = {}
        seen = self._prompts.events_for(
            name,
            node.history if isinstance(node, AgentNode) else "transcript",
            stamp.get("path", ""),
            stamp.get("attempt"),
            branch,
        )
        if seen is not None:
            session["events"] = seen
        if drafts is not None:
            below = strand.state
            maps = below.maps if isinstance(below, ChainMap) else [self.state]
            session["state"] = ChainMap(drafts, *maps)
        if session:
            changes["session"] = ctx.session.model_copy(update=session)
            if getattr(ctx, "events_compaction_config", None) is not None:
                # ADK would append the summary to the copy, and the session itself would be stale;
                # it summarises at the end of the run, too
                changes["events_compaction_config"] = None
        return (ctx.model_copy(update=changes) if changes else ctx), seen

    def _committed(
        self, event: Event, before: int, branch: str | None, seen: list[Event] | None
    ) -> None:
        """Show a step what it said itself, as it stands in the session now."""
        if event.partial:
            return
        if branch:
            self._prompts.branched = True
        if seen is not None:
            kept = self._ctx.session.events[before:]
            seen.append(next((each for each in kept if each.id == event.id), event))


def _is_of_tools(event: Event) -> bool:
    return bool(event.get_function_calls() or event.get_function_responses())


def _drop_committed(drafts: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """From here on the committed value counts, unless the step has written again meanwhile."""
    for key, value in delta.items():
        if key in drafts and (drafts[key] is value or drafts[key] == value):
            del drafts[key]
