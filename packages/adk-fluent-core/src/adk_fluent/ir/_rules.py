"""What makes IR legal: rules that every pass and every producer of IR keeps.

A mistake that users can make in a program is a finding of `adk_fluent.contracts`; what stands here
is what backends, hashes and files rely on, whoever made the IR.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Final

from adk_fluent.ir._agents import (
    AgentNode,
    ModelSelectorNode,
    RemoteAgentNode,
    TapNode,
    TransformNode,
)
from adk_fluent.ir._flow import (
    AppNode,
    FallbackNode,
    GateNode,
    LoopNode,
    MapOverNode,
    ParallelNode,
    RaceNode,
    ResourceNode,
    RouteNode,
    SequenceNode,
    TimeoutNode,
    TransferNode,
)
from adk_fluent.ir._kinds import class_of
from adk_fluent.ir._look import Look
from adk_fluent.ir._names import why_reserved
from adk_fluent.ir._node import Node, distinct, held_by
from adk_fluent.ir._record import record
from adk_fluent.ir._state import UNSET

#: Callbacks of an agent; ADK's LlmAgent has a field for each, with ``_callback`` behind the name.
CALLBACKS: Final = (
    "before_agent",
    "after_agent",
    "before_model",
    "after_model",
    "on_model_error",
    "before_tool",
    "after_tool",
    "on_tool_error",
)

#: Gives a sentence for each way in which a node breaks a rule.
Check = Callable[[Look[Any]], Iterable[str]]


@record
class Rule:
    """One rule of legal IR.

    Attributes:
        name: A short name, for messages.
        says: What has to hold.
        check: Looks at one node, or at a graph by its root.
        kinds: The types of nodes it is about; of a graph, where any of them is in it.
    """

    name: str
    says: str
    check: Check
    kinds: tuple[type[Node], ...] = (Node,)


# --- checks of one node --------------------------------------------------------------------------


def _typed(look: Look[Node]) -> Iterable[str]:
    return look.misfits


def _plain(look: Look[Node]) -> Iterable[str]:
    if not look.strange:
        return ()
    return [f"{field} holds {what}" for field, part in look.strange if (what := _living(part))]


def _living(part: Any) -> str | None:
    """What is wrong with something in a data field, if it is no data that never changes."""
    kind = class_of(part)
    if isinstance(part, Node):
        return f"the node {part.name!r}, which only a child field may hold"
    if part is UNSET or isinstance(part, str | int | float | bytes | Enum):
        return None
    if kind in (list, dict, set, bytearray):
        return f"a {kind.__name__}, which could change; use a tuple"
    return f"a {kind.__name__}; wrap live objects in a Ref"


def _named(look: Look[Node]) -> Iterable[str]:
    name = look.node.name
    if not name:
        return ("its name is empty",)
    return (f"the name {name!r} is ADK's own",) if why_reserved(name) else ()


def _keyed(look: Look[Node]) -> Iterable[str]:
    if not look.nameless:
        return ()
    return [f"{field} is empty; it is the name of a state key" for field in look.nameless]


def _placed(look: Look[Node]) -> Iterable[str]:
    return _misplaced(look.node) if look.children else ()


def _misplaced(node: Node) -> Iterator[str]:
    for name in node.__record__.children:
        place = (class_of(node), name)
        for below in held_by(node, name):
            if isinstance(below, AppNode):
                yield f"{name} holds the AppNode {below.name!r}, which can only be the root"
            if isinstance(below, ResourceNode) != (place == (AppNode, "resources")):
                yield f"{name} holds {_label(below)}; resources belong in AppNode.resources"
            if isinstance(below, ModelSelectorNode) and place != (AgentNode, "selector"):
                yield f"{name} holds {_label(below)}, which belongs in AgentNode.selector"


def _filled(look: Look[Node]) -> Iterable[str]:
    match look.node:
        case SequenceNode(steps=()):
            return ("it has no steps",)
        case ParallelNode(branches=()) | RaceNode(branches=()):
            return ("it has no branches",)
        case RouteNode(branches=(), default=None):
            return ("it has neither branches nor a default",)
        case FallbackNode(attempts=()):
            return ("it has no attempts",)
        case _:
            return ()


def _positive(look: Look[Node]) -> Iterator[str]:
    limits: dict[str, float | None] = {}
    match look.node:
        case TimeoutNode() as node:
            limits["seconds"] = node.seconds
        case LoopNode() as node:
            limits["max_iterations"] = node.max_iterations
        case MapOverNode() as node:
            limits["concurrency"] = node.concurrency
        case RemoteAgentNode() as node:
            limits["timeout_seconds"] = node.timeout_seconds
        case AppNode(execution=execution) if execution is not None:
            limits["execution.timeout_seconds"] = execution.timeout_seconds
        case _:
            return
    for name, limit in limits.items():
        if limit is not None and not limit > 0:  # also when it is not a number
            yield f"{name} is {limit}; it has to be positive"


def _matched(look: Look[RouteNode]) -> Iterable[str]:
    tests, branches = len(look.node.tests), len(look.node.branches)
    return () if tests == branches else (f"it has {tests} tests for {branches} branches",)


def _edged(look: Look[SequenceNode]) -> Iterable[str]:
    edges, steps = len(look.node.edge_semantics), len(look.node.steps)
    if edges in (0, steps):
        return ()
    return (f"it has {edges} edge_semantics for {steps} steps; give none, or one a step",)


def _called(look: Look[AgentNode]) -> Iterable[str]:
    if not look.node.callbacks:
        return ()
    names = [name for name, _ in look.node.callbacks]
    unknown = [name for name in dict.fromkeys(names) if name not in CALLBACKS]
    return [
        *[f"{name!r} is none of ADK's callbacks: {', '.join(CALLBACKS)}" for name in unknown],
        *[f"callbacks lists {name!r} {count} times" for name, count in _repeated(names)],
    ]


def _sorted_settings(look: Look[AgentNode | AppNode]) -> Iterable[str]:
    if not look.node.settings:
        return ()
    names = [name for name, _ in look.node.settings]
    if names == sorted(set(names)):
        return ()
    return (f"settings are {names}; they have to be sorted by field, each field once",)


def _transformed(look: Look[TransformNode]) -> Iterable[str]:
    node = look.node
    if node.semantics == "delete_keys":
        return () if node.affected_keys else ("delete_keys without affected_keys deletes nothing",)
    if node.fn is not None or (node.semantics != "merge" and node.affected_keys):
        return ()
    return (f"{node.semantics} needs fn, which computes the values",)


def _only_looks(look: Look[TapNode]) -> Iterable[str]:
    writes = [str(each) for each in look.node.effects.writes]
    return (f"a tap writes nothing, but its effects list {writes}",) if writes else ()


def _asks(look: Look[GateNode]) -> Iterator[str]:
    import json  # noqa: PLC0415  # only for gates that have a schema

    if look.node.response_schema is not None:
        try:
            schema = json.loads(look.node.response_schema)
        except (ValueError, RecursionError):
            schema = None
        if not isinstance(schema, dict | bool):
            yield "response_schema is not the text of a JSON Schema"


def _distinct_resources(look: Look[AppNode]) -> Iterable[str]:
    twice = _repeated([str(each.name) for each in look.node.resources])
    return [
        f"{count} resources are called {name!r}; functions get them by name"
        for name, count in twice
    ]


def _repeated(names: list[str]) -> list[tuple[str, int]]:
    """The names that occur more than once, and how often."""
    if len(names) < 2:
        return []
    return [(name, count) for name, count in Counter(names).items() if count > 1]


def _label(node: Node) -> str:
    return f"the {class_of(node).__name__} {node.name!r}"


# --- checks of a whole graph ---------------------------------------------------------------------


def _runs(look: Look[Node]) -> Iterable[str]:
    if not isinstance(look.node, ResourceNode | ModelSelectorNode):
        return ()
    return ("it cannot be the root: it is a part of another node and does not run",)


def _reached(look: Look[Node]) -> Iterator[str]:
    nodes = list(distinct(look.node))
    names = {node.name for node in nodes if not isinstance(node, TransferNode)}
    for node in nodes:
        if isinstance(node, TransferNode) and node.target not in names:
            yield f"{node.name!r} transfers to {node.target!r}, which is not in this pipeline"


# --- the list ------------------------------------------------------------------------------------

TYPED: Final = Rule(
    "typed",
    "A field holds a value of its declared type: a Ref where a live object stands, one of the "
    "listed words where a Literal is declared, nodes in child fields.",
    _typed,
)

NODE_RULES: Final = (
    Rule(
        "plain", "Data never changes: no node, list, dict, set or live object outside Ref.", _plain
    ),
    Rule("named", "A name is not empty and not one of ADK's own.", _named),
    Rule("keyed", "A state key is not empty.", _keyed),
    Rule("placed", "App at the root, resources in the app, selectors in agents.", _placed),
    Rule(
        "filled",
        "A composite has something in it.",
        _filled,
        (SequenceNode, ParallelNode, RaceNode, RouteNode, FallbackNode),
    ),
    Rule(
        "positive",
        "Limits of time and number are positive.",
        _positive,
        (TimeoutNode, LoopNode, MapOverNode, RemoteAgentNode, AppNode),
    ),
    Rule("matched", "A route has one test a branch.", _matched, (RouteNode,)),
    Rule("edged", "A sequence has no edge semantics or one a step.", _edged, (SequenceNode,)),
    Rule("called", "An agent's callbacks are ADK's, each listed once.", _called, (AgentNode,)),
    Rule(
        "settings",
        "Settings are sorted by field, each field once.",
        _sorted_settings,
        (AgentNode, AppNode),
    ),
    Rule(
        "transformed",
        "A transform has fn, or deletes or keeps the keys it lists.",
        _transformed,
        (TransformNode,),
    ),
    Rule("looks", "A tap writes nothing.", _only_looks, (TapNode,)),
    Rule("asks", "A gate's response_schema is the text of a JSON Schema.", _asks, (GateNode,)),
    Rule("resources", "Resources of an app differ in name.", _distinct_resources, (AppNode,)),
)

ROOT_RULES: Final = (
    Rule("runs", "The root is something that runs.", _runs),
    Rule(
        "reached",
        "What a transfer hands over to is in the same pipeline.",
        _reached,
        (TransferNode,),
    ),
)

#: Every rule, in the order in which they are checked.
RULES: Final[tuple[Rule, ...]] = (TYPED, *NODE_RULES, *ROOT_RULES)
