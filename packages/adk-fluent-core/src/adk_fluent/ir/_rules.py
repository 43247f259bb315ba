"""What makes IR legal: rules that every pass and every producer of IR keeps.

A mistake that users can make in a program is a finding of `adk_fluent.contracts`; what stands here
is what backends, hashes and files rely on, whoever made the IR.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Any, Final, TypeVar

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
from adk_fluent.ir._names import why_reserved
from adk_fluent.ir._node import Node, distinct, held_by
from adk_fluent.ir._record import record
from adk_fluent.ir._state import UNSET
from adk_fluent.ir._types import misfits, parts, records

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
Check = Callable[[Node], Iterable[str]]


@record
class Rule:
    """One rule of legal IR.

    Attributes:
        name: A short name, for messages.
        says: What has to hold.
        check: Looks at one node, or at a graph by its root.
    """

    name: str
    says: str
    check: Check


# --- checks of one node --------------------------------------------------------------------------


def _typed(node: Node) -> Iterator[str]:
    yield from misfits(node)
    for name, value in _data(node):
        for part in records(value):
            yield from (f"{name}: {class_of(part).__name__}.{what}" for what in misfits(part))


def _plain(node: Node) -> Iterator[str]:
    for name, value in _data(node):
        for part in parts(value):
            if isinstance(part, Node):
                yield f"{name} holds the node {part.name!r}, which only a child field may hold"
            elif class_of(part) in (list, dict, set, bytearray):
                yield f"{name} holds a {class_of(part).__name__}, which could change; use a tuple"
            elif not _is_plain(part):
                yield f"{name} holds a {class_of(part).__name__}; wrap live objects in a Ref"


def _named(node: Node) -> Iterator[str]:
    if not node.name:
        yield "its name is empty"
    elif why_reserved(node.name):
        yield f"the name {node.name!r} is ADK's own"


def _keyed(node: Node) -> Iterator[str]:
    for holder in (node, *(r for _, value in _data(node) for r in records(value))):
        for name in holder.__record__.compared:
            if (name == "key" or name.endswith("_key")) and getattr(holder, name) == "":
                yield f"{class_of(holder).__name__}.{name} is empty; it is the name of a state key"


def _placed(node: Node) -> Iterator[str]:
    for name in node.__record__.children:
        place = (class_of(node), name)
        for below in held_by(node, name):
            if isinstance(below, AppNode):
                yield f"{name} holds the AppNode {below.name!r}, which can only be the root"
            if isinstance(below, ResourceNode) != (place == (AppNode, "resources")):
                yield f"{name} holds {_label(below)}; resources belong in AppNode.resources"
            if isinstance(below, ModelSelectorNode) and place != (AgentNode, "selector"):
                yield f"{name} holds {_label(below)}, which belongs in AgentNode.selector"


def _filled(node: Node) -> Iterator[str]:
    match node:
        case SequenceNode(steps=()):
            yield "it has no steps"
        case ParallelNode(branches=()) | RaceNode(branches=()):
            yield "it has no branches"
        case RouteNode(branches=(), default=None):
            yield "it has neither branches nor a default"
        case FallbackNode(attempts=()):
            yield "it has no attempts"
        case _:
            return


def _positive(node: Node) -> Iterator[str]:
    limits: dict[str, float | None] = {}
    match node:
        case TimeoutNode():
            limits["seconds"] = node.seconds
        case LoopNode():
            limits["max_iterations"] = node.max_iterations
        case MapOverNode():
            limits["concurrency"] = node.concurrency
        case RemoteAgentNode():
            limits["timeout_seconds"] = node.timeout_seconds
        case AppNode(execution=execution) if execution is not None:
            limits["execution.timeout_seconds"] = execution.timeout_seconds
        case _:
            return
    for name, limit in limits.items():
        if limit is not None and not limit > 0:  # also when it is not a number
            yield f"{name} is {limit}; it has to be positive"


def _matched(node: RouteNode) -> Iterator[str]:
    if len(node.tests) != len(node.branches):
        yield f"it has {len(node.tests)} tests for {len(node.branches)} branches"


def _edged(node: SequenceNode) -> Iterator[str]:
    edges, steps = len(node.edge_semantics), len(node.steps)
    if edges not in (0, steps):
        yield f"it has {edges} edge_semantics for {steps} steps; give none, or one a step"


def _called(node: AgentNode) -> Iterator[str]:
    for name, count in Counter(name for name, _ in node.callbacks).items():
        if name not in CALLBACKS:
            yield f"{name!r} is none of ADK's callbacks: {', '.join(CALLBACKS)}"
        if count > 1:
            yield f"callbacks lists {name!r} {count} times"


def _sorted_settings(node: AgentNode | AppNode) -> Iterator[str]:
    names = [name for name, _ in node.settings]
    if names != sorted(set(names)):
        yield f"settings are {names}; they have to be sorted by field, each field once"


def _transformed(node: TransformNode) -> Iterator[str]:
    if node.semantics == "delete_keys":
        if not node.affected_keys:
            yield "delete_keys without affected_keys deletes nothing"
    elif node.fn is None:
        yield f"{node.semantics} needs fn, which computes the values"


def _only_looks(node: TapNode) -> Iterator[str]:
    if node.effects.writes:
        yield f"a tap writes nothing, but its effects list {[str(w) for w in node.effects.writes]}"


def _asks(node: GateNode) -> Iterator[str]:
    import json  # noqa: PLC0415  # only for gates that have a schema

    if node.response_schema is not None:
        try:
            schema = json.loads(node.response_schema)
        except (ValueError, RecursionError):
            schema = None
        if not isinstance(schema, dict | bool):
            yield "response_schema is not the text of a JSON Schema"


def _distinct_resources(node: AppNode) -> Iterator[str]:
    for name, count in Counter(each.name for each in node.resources).items():
        if count > 1:
            yield f"{count} resources are called {name!r}; functions get them by name"


def _data(node: Node) -> Iterator[tuple[str, Any]]:
    fields = node.__record__.fields
    for name in node.__record__.compared:
        value = getattr(node, name)
        if value is not fields[name].default:
            yield name, value


def _is_plain(part: Any) -> bool:
    scalar = part is None or part is UNSET or isinstance(part, str | int | float | bytes | Enum)
    return scalar or isinstance(part, tuple | frozenset) or hasattr(class_of(part), "__record__")


def _label(node: Node) -> str:
    return f"the {class_of(node).__name__} {node.name!r}"


# --- checks of a whole graph ---------------------------------------------------------------------


def _runs(root: Node) -> Iterator[str]:
    if isinstance(root, ResourceNode | ModelSelectorNode):
        yield "it cannot be the root: it is a part of another node and does not run"


def _reached(root: Node) -> Iterator[str]:
    names = {n.name for n in distinct(root) if not isinstance(n, TransferNode)}
    for node in distinct(root):
        if isinstance(node, TransferNode) and node.target not in names:
            yield f"{node.name!r} transfers to {node.target!r}, which is not in this pipeline"


# --- the list ------------------------------------------------------------------------------------

S = TypeVar("S")


def _of(kind: type[S] | tuple[type[S], ...], check: Callable[[S], Iterable[str]]) -> Check:
    """The check, for some kinds of nodes only."""

    def checked(node: Node) -> Iterable[str]:
        return check(node) if isinstance(node, kind) else ()

    return checked


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
    Rule("filled", "A composite has something in it.", _filled),
    Rule("positive", "Limits of time and number are positive.", _positive),
    Rule("matched", "A route has one test a branch.", _of(RouteNode, _matched)),
    Rule("edged", "A sequence has no edge semantics or one a step.", _of(SequenceNode, _edged)),
    Rule("called", "An agent's callbacks are ADK's, each listed once.", _of(AgentNode, _called)),
    Rule(
        "settings",
        "Settings are sorted by field, each field once.",
        _of((AgentNode, AppNode), _sorted_settings),
    ),
    Rule(
        "transformed",
        "A transform has fn, or deletes the keys it lists.",
        _of(TransformNode, _transformed),
    ),
    Rule("looks", "A tap writes nothing.", _of(TapNode, _only_looks)),
    Rule("asks", "A gate's response_schema is the text of a JSON Schema.", _of(GateNode, _asks)),
    Rule("resources", "Resources of an app differ in name.", _of(AppNode, _distinct_resources)),
)

ROOT_RULES: Final = (
    Rule("runs", "The root is something that runs.", _runs),
    Rule("reached", "What a transfer hands over to is in the same pipeline.", _reached),
)

#: Every rule, in the order in which they are checked.
RULES: Final[tuple[Rule, ...]] = (TYPED, *NODE_RULES, *ROOT_RULES)
