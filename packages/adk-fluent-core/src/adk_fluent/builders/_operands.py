"""From what users write next to an operator or into a builder call to IR."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import CoroutineType, MethodType
from typing import Any, Final, NoReturn, TypeGuard, TypeVar

from adk_fluent._words import article, describe
from adk_fluent.builders._aboard import Aboard
from adk_fluent.errors import UsageError
from adk_fluent.ir import (
    OPAQUE,
    AdkAgentNode,
    AppNode,
    FunctionNode,
    Location,
    Match,
    Node,
    Predicate,
    Ref,
    declared_effects,
    why_reserved,
)

T = TypeVar("T")

#: Flags of the code of a generator and of an async generator (`inspect.CO_GENERATOR` and so on).
_GENERATOR: Final = 0x20 | 0x200

_RETURN: Final = "return a mapping of state keys to values, or None; do not yield"
_STEPS: Final = "a step is a builder, a function over state, a built ADK agent or an IR node"


class Operand:
    """What turns into a node the moment it is put into something.

    It is no ABC: ``isinstance`` of one costs more than all the rest of an operator.
    """

    __slots__ = ()

    #: The middlewares that whatever encloses this takes over.
    _aboard: Aboard

    def _snapshot(self) -> Node:
        """The node this stands for now; the same object until something changes."""
        raise NotImplementedError


class Vocabulary:
    """What has methods that make steps, and is no step itself, such as `S`."""

    __slots__ = ()


def as_node(value: object, role: str = "a step") -> Node:
    """Freeze an operand.

    Raises:
        UsageError: It cannot be a step.
    """
    if isinstance(value, Operand):
        return value._snapshot()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # its protocol
    if isinstance(value, Node):
        return _root(value, role) if isinstance(value, AppNode) else value
    if is_adk(value, "agents.base_agent", "BaseAgent"):
        name: str = getattr(value, "name")  # noqa: B009  # BaseAgent is not imported here
        return AdkAgentNode(name, Ref(value, name), location=Location.caller())
    if not callable(value) or isinstance(value, type) or _is_setter(value):
        _refuse(value, role)
    return FunctionNode(
        function_name(value, role, "step"),
        Ref.to(value),
        declared_effects(value) or OPAQUE,
        location=Location.caller(),
    )


def as_agent(value: object, role: str) -> Node:
    """Freeze an operand that a model is told about, which a bare function is not.

    Raises:
        UsageError: It is none.
    """
    if isinstance(value, Operand | Node) or is_adk(value, "agents.base_agent", "BaseAgent"):
        return as_node(value)
    raise UsageError(
        f"{role} takes agents",
        found=describe(value),
        help="pass a builder, a built ADK agent or an IR node; functions go to .tool(...)",
    )


def passengers(*values: object) -> Aboard:
    """What operands bring along for the whole pipeline.

    Raises:
        UsageError: Two of them bring different resources of one name.
    """
    found = Aboard()
    for value in values:
        if isinstance(value, Operand):
            found = found.joined(value._aboard)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # its protocol
        elif isinstance(value, AppNode):
            found = found.joined(Aboard.of(value))
        elif is_mapping(value):
            found = found.joined(passengers(*value.values()))
    return found


def as_predicate(value: object, role: str) -> Predicate:
    """A test over state.

    Raises:
        UsageError: It can be called on no state.
    """
    if isinstance(value, Match | Ref):
        return value
    if not callable(value) or isinstance(value, type):
        raise UsageError(
            f"{role} takes a function of state",
            found=describe(value),
            help='pass fn(state) -> bool, such as lambda s: s["score"] > 3',
        )
    return Ref.to(value)


def function_name(fn: object, role: str, default: str, *, help: str = _RETURN) -> str:
    """The name of a step made of a function.

    Raises:
        UsageError: It is a generator, which has no single result.
    """
    refuse_generator(fn, role, help=help)
    name = Ref.to(fn).name
    return name if name.isidentifier() and not why_reserved(name) else default


def refuse_generator(fn: object, role: str, *, help: str) -> None:
    """A generator has no single result.

    Raises:
        UsageError: It is one.
    """
    if _flags(fn) & _GENERATOR:
        raise UsageError(f"a generator cannot be {role}", found=describe(fn), help=help)


def _is_setter(value: object) -> bool:
    return isinstance(value, MethodType) and isinstance(value.__self__, Operand | Vocabulary)


def _flags(fn: Any) -> int:
    """The flags of a function's code; `inspect` tells the same and is slow to import."""
    inner = getattr(fn, "func", fn)  # functools.partial
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    return 0 if code is None else code.co_flags


def is_mapping(value: object) -> TypeGuard[Mapping[Any, Any]]:
    """Whether a value is a dict of branches."""
    return isinstance(value, Mapping) and not isinstance(value, Operand)


def is_adk(value: object, module: str, name: str) -> bool:
    """Whether a value is an instance of an ADK class; if it is, ADK has been imported already."""
    loaded = sys.modules.get(f"google.adk.{module}")
    return loaded is not None and isinstance(value, getattr(loaded, name))


def _root(app: AppNode, role: str) -> Node:
    if app.execution or app.settings:
        raise UsageError(
            f"the app {app.name!r} cannot be {role}",
            help="an app is only ever the root, and its settings are the whole run's: use its root",
        )
    return app.root


def _refuse(value: Any, role: str) -> NoReturn:
    found, hint = describe(value), _STEPS
    if isinstance(value, type):
        hint = f"make one of it first: {value.__name__}(...)"
    elif _is_setter(value):
        hint = f"call it: .{value.__name__}(...)"
    elif isinstance(value, Vocabulary):
        found, hint = repr(value), f"call one of its methods, such as {value!r}.set(key=value)"
    elif isinstance(value, str):
        hint = 'for an agent of that name write Agent("name")'
    elif isinstance(value, CoroutineType):
        value.close()
        hint = "pass the function itself, not what calling it gave"
    elif isinstance(value, list | tuple | set):
        hint = "write a >> b for one after the other, a | b for both at the same time"
    elif isinstance(value, Mapping):
        hint = "a dict of branches stands to the right of >>; elsewhere use Route(key)"
    raise UsageError(
        f"{found} cannot be {role}",
        help=hint,
    )


def some(values: tuple[T, ...], role: str, what: str) -> tuple[T, ...]:
    """Arguments of which there must be one at least.

    Raises:
        UsageError: There is none.
    """
    if values:
        return values
    raise UsageError(f"{role} needs {what} at least", found="nothing")


def instance_of(kind: type[T], value: T | None, role: str) -> T | None:
    """A value of a type, or None.

    Raises:
        UsageError: It is something else.
    """
    if value is None or isinstance(value, kind):
        return value
    name = kind.__name__
    raise UsageError(f"{role}= takes {article(name)} {name}", found=describe(value))


def positive(value: Any, role: str, *, whole: bool = False, help: str | None = None) -> Any:
    """A number above zero.

    Raises:
        UsageError: It is no number (with `whole`: no int), or not above zero.
    """
    kinds: Any = int if whole else (int, float)
    if isinstance(value, kinds) and not isinstance(value, bool) and value > 0:
        return value
    raise UsageError(
        f"{role} is {'an int' if whole else 'a number'} above 0",
        found=describe(value),
        help=help,
    )
