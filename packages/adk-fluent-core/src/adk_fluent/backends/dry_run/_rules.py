"""How often the parts of a node run when it runs once, and what a leaf calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adk_fluent._node_text import model_text
from adk_fluent.backends.dry_run._count import ANY, NEVER, ONCE, PERHAPS, Count
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    AppNode,
    FallbackNode,
    LoopNode,
    MapOverNode,
    ModelSelectorNode,
    Node,
    ParallelNode,
    RaceNode,
    RemoteAgentNode,
    ResourceNode,
    RouteNode,
    SequenceNode,
    TransferNode,
    fold,
)

if TYPE_CHECKING:
    from adk_fluent.ir import ExecutionConfig


@dataclass(frozen=True, slots=True)
class Loops:
    """What loops make uncertain.

    Attributes:
        inside: Ids of the nodes that stand in a loop, in one of their places.
        enders: Ids of the nodes that may end a loop around them before its end.
    """

    inside: set[int]
    enders: set[int]

    @classmethod
    def of(cls, root: Node) -> Loops:
        """Those of a pipeline."""
        enders: set[int] = set()

        def ends(here: Node, below: tuple[bool, ...]) -> bool:
            match here:
                case AgentNode():
                    found = bool(here.tools or here.callbacks or here.agent_tools or here.delegates)
                case AdkAgentNode() | RemoteAgentNode() | TransferNode():
                    found = True  # nobody sees into it
                case LoopNode():
                    found = False  # it is this loop that ends
                case _:
                    found = any(below)
            if found:
                enders.add(id(here))
            return found

        fold(root, ends)
        return cls(_looped(root), enders)


def _looped(root: Node) -> set[int]:
    """Ids of the nodes that stand in a loop, in one of their places."""
    seen: set[tuple[int, bool]] = set()
    todo = [(root, False)]
    while todo:
        node, inside = todo.pop()
        if (id(node), inside) not in seen:
            seen.add((id(node), inside))
            inside = inside or isinstance(node, LoopNode)
            todo.extend((each, inside) for each in node.children)
    return {each for each, inside in seen if inside}


def times(node: Node, loops: Loops) -> tuple[Count, ...]:  # noqa: PLR0911
    """For each child, how often it runs when the node does once."""  # a row for each kind
    many = len(node.children)
    match node:
        case SequenceNode():
            return _in_order(node, loops)
        case LoopNode():
            least = (
                1
                if node.until is not None or id(node.body) in loops.enders
                else node.max_iterations
            )
            return (Count(least, node.max_iterations),)
        case RouteNode() | RaceNode():
            return ((PERHAPS,) if many > 1 or isinstance(node, RouteNode) else (ONCE,)) * many
        case ParallelNode(merge="first_complete"):
            return (PERHAPS if many > 1 else ONCE,) * many
        case FallbackNode():
            return (ONCE, *(PERHAPS,) * (many - 1)) if many else ()
        case MapOverNode():
            return (ANY,)
        case AgentNode():
            selector = node.selector is not None
            return (*(NEVER,) * selector, *(ANY,) * (many - selector))
        case RemoteAgentNode():
            return (PERHAPS,) * many
        case AppNode():
            return (ONCE, *(NEVER,) * (many - 1))
        case _:
            return (ONCE,) * many


def _in_order(node: SequenceNode, loops: Loops) -> tuple[Count, ...]:
    """Steps run once, but not for sure behind one that may end the loop around them."""
    found: list[Count] = []
    ended, in_loop = False, id(node) in loops.inside
    for step in node.steps:
        found.append(PERHAPS if ended else ONCE)
        ended = ended or (in_loop and id(step) in loops.enders)
    return tuple(found)


def is_run(node: Node) -> bool:
    """Whether a node is a step, and not a part of one."""
    return not isinstance(node, ResourceNode | ModelSelectorNode | AppNode)


def models_called(node: Node, config: ExecutionConfig | None) -> dict[str, Count]:
    """How often an agent by itself calls which model when it runs once."""
    if not isinstance(node, AgentNode) or node.mock is not None:
        return {}
    settings = {name for name, _ in node.settings}
    again = node.tools or node.agent_tools or node.delegates or "code_executor" in settings
    skips = {name for name, _ in node.callbacks} & {"before_agent", "before_model"}
    call = Count(0 if skips else 1, None if again else 1)
    if node.selector is not None:
        names = dict.fromkeys(each.name for each in node.selector.candidates)
        fallback = node.selector.fallback_model
        if fallback is not None:
            names[fallback if isinstance(fallback, str) else fallback.name] = None
        return {name: call if len(names) == 1 else Count(0, call.at_most) for name in names}
    return {model_text(node, config)[0]: call}


def remotes_called(node: Node) -> dict[str, Count]:
    """How often a remote agent is asked when its node runs once."""
    if not isinstance(node, RemoteAgentNode):
        return {}
    return {node.name: Count(1, node.retry.max_attempts if node.retry else 1)}
