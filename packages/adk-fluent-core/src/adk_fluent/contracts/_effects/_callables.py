"""What users hand over as functions: which one it is in the end, and what it is called with."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from operator import itemgetter
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent.contracts._effects._analysis import Role, analysed
from adk_fluent.contracts._effects._calls import looks_only
from adk_fluent.contracts._effects._derived import Derived, unknown
from adk_fluent.contracts._effects._log import Log
from adk_fluent.ir import StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: ADK tools that are nothing but the function they hold.
_FUNCTION_TOOLS: Final = (
    "google.adk.tools.function_tool:FunctionTool",
    "google.adk.tools.long_running_tool:LongRunningFunctionTool",
)
#: What `adk_fluent.state.tool` notes on what it makes: the function that it gives bound state.
_STATE_TOOL: Final = "__state_tool__"
#: What says that a function takes other arguments than its code does, such as ADK's context.
_OTHER_SIGNATURE: Final = frozenset({"__wrapped__", "__signature__"})


def effects_of_callable(
    value: Any,
    role: Role,
    bound: Sequence[Any] = (),
    named: Mapping[str, Any] | None = None,
) -> Derived:
    """What something that can be called does to state.

    Args:
        value: What is called.
        role: What it is called with.
        bound: What its first parameters get already.
        named: What it gets by name already.
    """
    named = named or {}
    if isinstance(value, FunctionType):
        return _of_function(value, role, bound, named)
    if isinstance(value, MethodType):
        return effects_of_callable(value.__func__, role, (value.__self__, *bound), named)
    if type(value) is partial:
        inner = cast("partial[Any]", value)
        first, more = (*inner.args, *bound), {**inner.keywords, **named}
        return effects_of_callable(inner.func, role, first, more)
    if isinstance(value, type | BuiltinFunctionType) or type(value) is itemgetter:
        return _built_in(value, role)
    kind = cast("type[Any]", type(value))
    call = kind.__call__ if callable(value) else None
    if isinstance(call, FunctionType):
        return analysed(call, role, (value, *bound), named)
    return unknown("its source is not there")


def _of_function(
    function: FunctionType, role: Role, bound: Sequence[Any], named: Mapping[str, Any]
) -> Derived:
    if role == "tool" and (inner := getattr(function, _STATE_TOOL, None)) is not None:
        return effects_of_callable(inner, role, bound, named)
    if role == "tool" and not _OTHER_SIGNATURE.isdisjoint(vars(function)):
        return unknown("it stands around another function")
    return analysed(function, role, bound, named)


def _built_in(value: Any, role: Role) -> Derived:
    if role in ("tool", "callback"):
        return unknown("its source is not there")
    if type(value) is itemgetter and role == "look":
        keys = cast("tuple[Any, ...]", value.__reduce__()[1])
        if all(isinstance(key, str) for key in keys):
            return Derived(tuple(StateFieldRef(key) for key in keys))
    if role == "look" and looks_only(value):
        return Derived(reads_all=True)
    return unknown("its source is not there")


def effects_of_adk_tool(tool: Any) -> Derived | None:
    """What an ADK tool object does to state; None if it is no such object."""
    every = [f"{base.__module__}:{base.__name__}" for base in type(tool).__mro__]
    if every[0] in _FUNCTION_TOOLS:
        return _asking_first(effects_of_callable(tool.func, "tool"), tool)
    if "google.adk.tools.base_tool:BaseTool" in every:
        return unknown(f"it is ADK's {type(tool).__name__}")
    if "google.adk.tools.base_toolset:BaseToolset" in every:
        return unknown("it is a toolset, whose tools are known when it runs")
    return None


def _asking_first(done: Derived, tool: Any) -> Derived:
    """What a tool does that may ask a person first, and then does nothing until it is called again.

    The function that says whether to ask gets what the tool gets.
    """
    confirm = getattr(tool, "_require_confirmation", False)
    if not confirm:
        return done
    every = [done, *([effects_of_callable(confirm, "tool")] if callable(confirm) else [])]
    writes = {ref.key: ref for each in every for ref in (*each.writes, *each.may_write)}
    removes = [key for each in every for key in (*each.removes, *each.may_remove)]
    reading = reads_of(every, Derived())
    return replace(
        reading,
        may_write=tuple(writes.values()),
        may_remove=tuple(dict.fromkeys(removes)),
        assumed=tuple(dict.fromkeys(key for each in every for key in each.assumed)),
        escalates=any(each.escalates for each in every),
        transfers=any(each.transfers for each in every),
    )


def reads_of(every: Sequence[Derived], writes: Derived) -> Derived:
    """What a step does that calls several functions, each with state, and writes what they give."""
    log = Log()
    for ref in (ref for each in every for ref in each.reads):
        log.read(ref.key, ref.default, ref.type)
    return Derived(
        log.reads,
        writes.writes,
        writes.may_write,
        assumed=tuple(ref.key for ref in writes.writes),
        opaque=next((each.opaque for each in every if each.opaque), None),
        reads_all=any(each.reads_all for each in every),
    )
