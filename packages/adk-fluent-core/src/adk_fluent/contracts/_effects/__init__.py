"""What functions and tools do to state: as they declare, else as their source says for certain.

Source is understood as far as nobody can be wrong about it: whatever else is done with state, such
as handing it to another function, makes a function opaque, and the finding says where. It is looked
through once; what was found is kept with the code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent._calling import Calls
from adk_fluent.contracts._effects._derived import Derived, declared, unknown
from adk_fluent.ir import TapNode, TransformNode, declared_effects

if TYPE_CHECKING:
    from adk_fluent.contracts._effects._analysis import Role
    from adk_fluent.ir import FunctionNode, Ref

__all__ = [
    "Derived",
    "effects_of_callback",
    "effects_of_function",
    "effects_of_instruction",
    "effects_of_node",
    "effects_of_predicate",
    "effects_of_tool",
    "result_of",
]


def effects_of_function(ref: Ref) -> Derived:
    """What a function step does to state: ``fn(state) -> mapping or None``."""
    return _effects(ref, "step")


def effects_of_predicate(ref: Ref) -> Derived:
    """What a function does that only looks: a test, a tap, a payload, a part of `S.compute`."""
    return _effects(ref, "look")


def effects_of_instruction(ref: Ref) -> Derived:
    """What a function does that makes an instruction; it gets ADK's ReadonlyContext."""
    return _effects(ref, "instruction")


def effects_of_callback(ref: Ref) -> Derived:
    """What a callback does to state; ADK gives it a context by name."""
    return _effects(ref, "callback")


def effects_of_tool(ref: Ref) -> Derived:
    """What a tool does to state: a function, or a tool or toolset of ADK's."""
    return _effects(ref, "tool")


def result_of(ref: Ref, *, of_state: bool) -> Derived:
    """What a function gives that a transform calls, with state or with values."""
    if of_state:
        return _effects(ref, "look")
    from adk_fluent.contracts._effects._calls import result_of_builtin  # noqa: PLC0415

    return result_of_builtin(ref.value)


def effects_of_node(node: FunctionNode | TransformNode | TapNode) -> Derived:
    """What a step does to state that is made of functions: as it says itself, else as they do."""
    if not node.effects.opaque or node.fn is None:
        return declared(node.effects)
    inside = node.fn.value
    if isinstance(inside, Calls):
        from adk_fluent.contracts._effects._callables import reads_of  # noqa: PLC0415

        every = [effects_of_predicate(fn) for fn, _ in inside.functions()]
        return reads_of(every, declared(node.effects))
    if isinstance(node, TapNode):
        return effects_of_predicate(node.fn)
    merges = not isinstance(node, TransformNode) or node.semantics == "merge"
    return effects_of_function(node.fn) if merges else declared(node.effects)


def _effects(ref: Ref, role: Role) -> Derived:
    found = declared_effects(ref.value)
    if found is not None:
        return declared(found)
    # `ast` and all that walks through it are imported when a function is looked at
    from adk_fluent.contracts._effects import _callables  # noqa: PLC0415

    if role == "tool":
        tool = _callables.effects_of_adk_tool(ref.value)
        if tool is not None:
            return tool
    if not callable(ref.value):
        return unknown("it is no function")
    return _callables.effects_of_callable(ref.value, role)
