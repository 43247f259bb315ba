"""Looking at what would run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent._hints import WHEELS
from adk_fluent._node_text import below, kind_word
from adk_fluent.backends._config import check_values
from adk_fluent.backends._keys import keys_of, tail_keys
from adk_fluent.backends.dry_run._calls import calls_of
from adk_fluent.backends.dry_run._count import NEVER, ONCE, Count
from adk_fluent.backends.dry_run._report import DryRun, Step
from adk_fluent.backends.dry_run._rules import Loops, is_run, times
from adk_fluent.contracts import Graph, HasIR, check_all
from adk_fluent.errors import UsageError
from adk_fluent.ir import AgentNode, AppNode, ExecutionConfig, Node, fold

if TYPE_CHECKING:
    from collections.abc import Iterable

#: Places that are listed.
MAX_STEPS: Final = 1_000


class DryRunBackend:
    """A compiler from pipelines to what would run; nothing is executed, and ADK not imported."""

    def compile(self, node: Node, config: ExecutionConfig | None = None) -> DryRun:
        """Look at what would run.

        Args:
            node: The pipeline.
            config: How it would be run; None is what the pipeline says, or `ExecutionConfig()`.

        Raises:
            UsageError: A field of the configuration holds a value that has no meaning.
        """
        root = node
        if isinstance(node, AppNode):
            root, config = node.root, config or node.execution
        config = config or ExecutionConfig()
        check_values(config)
        check = check_all(node)
        graph = Graph(node)
        named = {name: found[0] for name, found in graph.named.items()}
        models, remotes = calls_of(root, named, config)
        steps, more = _steps(root)
        reads, writes = _keys(graph.nodes)
        return DryRun(
            name=node.name,
            check=check,
            steps=steps,
            more_steps=more,
            models=models,
            model_calls=sum(models.values(), NEVER),
            max_llm_calls=config.max_llm_calls if config.max_llm_calls > 0 else None,
            remotes=remotes,
            tools=_tools(graph.of(AgentNode)),
            reads=reads,
            writes=writes,
            inputs=tuple(key for key in reads if key not in writes),
            absent={each: f"pip install {WHEELS.get(each, each)}" for each in check.absent},
        )


def dry_run(node_or_builder: Node | HasIR, config: ExecutionConfig | None = None) -> DryRun:
    """Look at what a pipeline would do, without running any of it.

    Args:
        node_or_builder: The pipeline.
        config: How it would be run; None is what the pipeline says, or `ExecutionConfig()`.

    Raises:
        UsageError: It is no pipeline, or a field of the configuration holds a value that has no
            meaning.
    """
    return DryRunBackend().compile(_node(node_or_builder), config)


def _node(given: object) -> Node:
    if isinstance(given, Node):
        return given
    if isinstance(given, type) or not isinstance(given, HasIR):
        raise UsageError(
            "dry_run(...) takes a pipeline",
            found=f"a {type(given).__name__}",
            help="pass a builder such as Agent(...) >> Agent(...), or its .to_ir()",
        )
    return given.to_ir()


def _steps(root: Node) -> tuple[tuple[Step, ...], int]:
    """The places in the order in which they could run, and how many are left out."""
    loops = Loops.of(root)
    found: list[Step] = []
    todo: list[tuple[Node, int, str, Count]] = [(root, 0, "", ONCE)]
    while todo and len(found) < MAX_STEPS:
        node, depth, when, runs = todo.pop()
        found.append(Step(depth, when, kind_word(node), node.name, runs))
        parts = below(node)
        counts = times(node, loops)[len(node.children) - len(parts) :]
        rows = zip(parts, counts, strict=False)
        todo += [(n, depth + 1, role, runs * count) for (role, n), count in rows][::-1]
    return tuple(found), fold(root, _places) - len(found)


def _places(node: Node, below: tuple[int, ...]) -> int:
    return is_run(node) + sum(below)


def _keys(
    nodes: Iterable[Node],
) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Each state key with the steps that read it, and with those that write it."""
    found: tuple[dict[str, dict[str, None]], ...] = ({}, {})
    for node in nodes:
        for keys in (keys_of(node), tail_keys(node)):
            for users, names in zip(found, keys, strict=True):
                for key in names:
                    users.setdefault(key, {})[node.name] = None
    reads, writes = ({key: tuple(names) for key, names in users.items()} for users in found)
    return reads, writes


def _tools(agents: Iterable[AgentNode]) -> dict[str, tuple[str, ...]]:
    users: dict[str, dict[str, None]] = {}
    for agent in agents:
        for name in (*(spec.name for spec in agent.tools), *(a.name for a in agent.agent_tools)):
            users.setdefault(name, {})[agent.name] = None
    return {tool: tuple(names) for tool, names in users.items()}
