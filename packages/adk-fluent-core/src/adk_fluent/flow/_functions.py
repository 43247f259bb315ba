"""What user functions over state return, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from adk_fluent.errors import UsageError
from adk_fluent.ir import FunctionNode, Match, Node, Predicate, TransformNode

#: Keys that ADK or this library keep for themselves; no transform touches them.
RESERVED = ("_adk", "_adk_fluent")


def function_delta(node: Node, value: Any) -> Mapping[str, Any]:
    """The write a function's result stands for.

    Raises:
        UsageError: The function returned neither a mapping with str keys nor None.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(
            f"{_title(node)} returned {type(value).__name__}",
            node=node,
            found=f"an object of type {type(value).__name__}",
            help="return a mapping of state keys to values, or None",
        )
    mapping = cast("Mapping[Any, Any]", value)
    for key in mapping:
        if not isinstance(key, str):
            raise UsageError(
                f"{_title(node)} returned a key that is no string",
                node=node,
                found=f"key {key!r} of type {type(key).__name__}",
                help="state keys are strings",
            )
    return dict(mapping)


def transform_delta(
    node: TransformNode, result: Mapping[str, Any], state: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The write of a state transform: what it returned, and None for what it removes."""
    if node.semantics == "merge":
        return result
    if node.semantics == "delete_keys":
        return {key: None for key in node.affected_keys or () if state.get(key) is not None}
    gone = {
        key: None
        for key in state
        if key not in result
        and state[key] is not None
        and (node.scope == "all" or ":" not in key)
        and not key.startswith(RESERVED)
    }
    return {**gone, **result}


def matches(test: Match, state: Mapping[str, Any]) -> bool:
    """Evaluate a comparison; an absent key, or None, equals None and nothing else holds of it."""
    value: Any = state.get(test.key)
    if test.operator == "eq":  # to Python, True is 1
        return isinstance(value, bool) == isinstance(test.value, bool) and bool(value == test.value)
    if value is None:
        return False
    if test.operator == "contains":
        return test.value in value
    return bool(value > test.value) if test.operator == "gt" else bool(value < test.value)


def describe(test: Predicate) -> str:
    """A predicate in words."""
    return str(test) if isinstance(test, Match) else test.name


def _title(node: Node) -> str:
    kind = "function step" if isinstance(node, FunctionNode) else "transform"
    return f"{kind} {node.name!r}"
