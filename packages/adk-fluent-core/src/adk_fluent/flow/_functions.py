"""What user functions over state return, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from adk_fluent._calling import Stated
from adk_fluent._words import describe
from adk_fluent.errors import OutputMissingError, UsageError
from adk_fluent.ir import (
    SCOPES,
    FunctionNode,
    Match,
    Node,
    Predicate,
    StateFieldRef,
    TransformNode,
    is_reserved_key,
)
from adk_fluent.ir._names import is_kept_key

_PREFIXES: Final = tuple(f"{scope}:" for scope in SCOPES if scope != "session")


def function_delta(node: Node, value: Any) -> Mapping[str, Any]:
    """The write a function's result stands for.

    Raises:
        UsageError: The function returned neither a mapping with str keys nor None, or a key that is
            none of those that it is declared to write.
        OutputMissingError: It returned no value for a key that it is declared to write.
    """
    delta = _written(node, value)
    if isinstance(node, FunctionNode | TransformNode) and _is_declared(node):
        _keep_to(node, delta)
    return delta


def _written(node: Node, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise UsageError(
            f"{_title(node)} returned {type(value).__name__}",
            node=node,
            found=describe(value),
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
        bare = key.partition(":")[2] if key.startswith(_PREFIXES) else key
        if not bare.strip() or (bare.startswith("_") and is_reserved_key(bare)):
            raise UsageError(
                f"{_title(node)} returned the key {key!r}",
                node=node,
                found="a key that ADK and adk-fluent keep for themselves" if bare.strip() else None,
                help="choose another key" if bare.strip() else "name the key",
            )
    return dict(mapping)


def _is_declared(node: FunctionNode | TransformNode) -> bool:
    """Whether somebody has said what a function does; ours say so themselves."""
    if node.effects.opaque or isinstance(node, FunctionNode):
        return not node.effects.opaque
    ours = node.fn is not None and isinstance(node.fn.value, Stated)
    return node.semantics == "merge" and not ours


def _keep_to(node: FunctionNode | TransformNode, delta: Mapping[str, Any]) -> None:
    """See that a function does what it is declared to do.

    Raises:
        UsageError: It returned a key that is none of those that it is declared to write.
        OutputMissingError: It returned no value for a key that it is declared to write.
    """
    effects = node.effects
    owed = [ref.key for ref in effects.writes]
    known = {*owed, *(ref.key for ref in effects.may_write)}
    for key in delta:
        if key not in known:
            raise UsageError(
                f"{_title(node)} returned the key {key!r}, which it is not declared to write",
                node=node,
                found=f"declared are {', '.join(map(repr, sorted(known)))}" if known else None,
                help=f"@effects(may_write=[{key!r}, ...]), or leave the key out",
            )
    missing = [key for key in owed if delta.get(key) is None]
    if missing:
        raise OutputMissingError(
            f"{_title(node)} returned no {', '.join(map(repr, missing))}, "
            "which it is declared to write",
            keys=missing,
            node=node,
            found="None" if any(key in delta for key in missing) else "no such key",
            help="return a value, or declare it by @effects(may_write=...)",
        )


def transform_delta(
    node: TransformNode, result: Mapping[str, Any], state: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The write of a state transform: what it returned, and None for what it removes."""
    if node.semantics == "merge":
        return result
    listed = node.affected_keys or ()
    if node.semantics == "delete_keys":
        return {key: None for key in listed if state.get(key) is not None}
    stays = {*listed, *result}
    gone = {
        key: None
        for key, value in state.items()
        if value is not None
        and key not in stays
        and (node.scope == "all" or not key.startswith(_PREFIXES))
        and not is_kept_key(StateFieldRef(key).name)
    }
    return {**gone, **result}


def matches(test: Match, state: Mapping[str, Any]) -> bool:
    """Evaluate a comparison; an absent key equals None, and nothing is in, above or below it.

    Raises:
        UsageError: Values of these types cannot be compared.
    """
    value: Any = state.get(test.key)
    if test.operator in ("eq", "ne"):
        # to Python, True is 1
        same = isinstance(value, bool) == isinstance(test.value, bool) and value == test.value
        return bool(same) == (test.operator == "eq")
    if value is None:
        return False
    try:
        if test.operator == "contains":
            return contains(value, test.value)
        if test.operator == "contains_case":
            return test.value in value
        return bool(value > test.value) if test.operator == "gt" else bool(value < test.value)
    except TypeError:
        help = "compare it by .when(lambda state: ..., step)"
        if isinstance(value, str):
            help = (
                f'an agent writes text: for a number declare .writes(StateFieldRef("{test.key}", '
                "float)), or answer by a schema"
            )
    raise UsageError(
        f"cannot tell whether {test}", found=f"{describe(value)} under {test.key!r}", help=help
    )


def contains(value: Any, part: Any) -> bool:
    """Whether a text or a list has a part, in any letter case.

    Raises:
        TypeError: Nothing can be in a value of this type, or no such part.
    """
    if not isinstance(part, str):
        return part in value
    if isinstance(value, str):
        return part.casefold() in value.casefold()
    if part in value:
        return True
    wanted = part.casefold()
    return any(isinstance(each, str) and each.casefold() == wanted for each in value)


def in_words(test: Predicate) -> str:
    """A predicate in words."""
    return str(test) if isinstance(test, Match) else test.name


def _title(node: Node) -> str:
    kind = "function step" if isinstance(node, FunctionNode) else "transform"
    return f"{kind} {node.name!r}"
