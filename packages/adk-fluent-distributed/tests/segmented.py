"""A backend that cuts what it is given at random steps, and runs it one segment after the other.

To whoever asks it is ADK's backend, so the suite of conformance says whether boundaries show.
"""

from __future__ import annotations

import random
import zlib
from collections import Counter
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from adk_fluent.distributed import SegmentPlan, split
from adk_fluent.errors import SessionError
from adk_fluent.ir import (
    AgentNode,
    AppNode,
    ExecutionBoundary,
    ExecutionConfig,
    Node,
    ParallelNode,
    RaceNode,
    map,
    walk,
)
from adk_fluent.protocol import BackendBase, Resume, RunResult

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from adk_fluent.backends.adk import ADKBackend, Compiled
    from adk_fluent.protocol import AgentEvent, Pending

RESUME = Resume(())


def cuttable(root: Node) -> list[Node]:
    """The steps of a pipeline at which a run can be cut, of those with names of their own."""
    app = isinstance(root, AppNode)
    inner = root.root if isinstance(root, AppNode) else root
    names = Counter(each.name for each in walk(inner))
    todo, found = [inner], list[Node]()
    while todo:
        node = todo.pop()
        if names[node.name] == 1 and (node is not inner or not app):
            found.append(node)
        race = isinstance(node, RaceNode)
        race = race or (isinstance(node, ParallelNode) and node.merge == "first_complete")
        if not race and not isinstance(node, AgentNode):
            todo.extend(reversed(node.children))
    return found


def cut(root: Node, seed: int) -> Node:
    """A pipeline with boundaries at random steps, half of them on average."""
    chance = random.Random(seed)
    names = {each.name for each in cuttable(root) if chance.random() < 0.5}
    names.discard(root.root.name if isinstance(root, AppNode) else root.name)

    def bounded(node: Node) -> Node:
        return node.replace(boundary=ExecutionBoundary()) if node.name in names else node

    return map(root, bounded)


class Cut:
    """What `CutBackend` compiles: a plan and its segments."""

    def __init__(
        self,
        backend: ADKBackend,
        plan: SegmentPlan,
        config: ExecutionConfig | None,
        *,
        together: bool,
    ) -> None:
        self.plan = plan
        parts = [each.part for each in plan.segments]
        beside = parts if together else ()
        self.segments: dict[str, Compiled] = {
            part: backend.compile_segment(plan.node, config, segment=part, beside=beside)
            for part in parts
        }
        self.first = self.segments[plan[plan.first].part]


class CutBackend(BackendBase[Cut]):
    """Runs a pipeline in segments.

    Attributes:
        adk: Runs each.
        together: Whether branches of different segments run at the same time.
        hops: How often a boundary was crossed.
    """

    def __init__(self, adk: ADKBackend, *, together: bool = True) -> None:
        self.adk = adk
        self.together = together
        self.hops = 0

    def compile(self, node: Node, config: ExecutionConfig | None = None) -> Cut:
        kinds = ".".join(f"{type(each).__name__}{each.name}" for each in walk(node))
        plan = split(cut(node, zlib.crc32(kinds.encode())))
        return Cut(self.adk, plan, config, together=self.together)

    async def stream(
        self, compiled: Cut, prompt: Any, **kwargs: Any
    ) -> AsyncGenerator[AgentEvent, None]:
        here, said = compiled.first, prompt
        kwargs.setdefault("session_id", "one")
        where = {
            key: kwargs[key]
            for key in ("user_id", "session_id", "session_service")
            if key in kwargs
        }
        while True:
            async with aclosing(self.adk.stream(here, said, **kwargs)) as events:
                async for event in events:
                    yield event
            try:
                entry = (await self.adk.recall(here, **where)).entry
            except SessionError:
                return
            if entry is None or entry.status != "boundary":
                return
            self.hops += 1
            here, said = compiled.segments[entry.segments[0]], RESUME
            kwargs.pop("state", None)

    async def run(self, compiled: Cut, prompt: Any, **kwargs: Any) -> RunResult:
        kwargs.setdefault("session_id", "one")
        async with aclosing(self.stream(compiled, prompt, **kwargs)) as events:
            made = [event async for event in events]
        where = {
            key: kwargs[key]
            for key in ("user_id", "session_id", "session_service")
            if key in kwargs
        }
        told = (await self.adk.recall(compiled.first, **where)).result()
        return RunResult(
            made,
            state=told.state,
            session_id=told.session_id,
            user_id=told.user_id,
            app_name=told.app_name,
        )

    async def pending(self, compiled: Cut, **kwargs: Any) -> list[Pending]:
        return await self.adk.pending(compiled.first, **kwargs)
