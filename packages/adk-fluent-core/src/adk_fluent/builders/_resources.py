"""Resources that functions get injected by the names of their parameters."""

from __future__ import annotations

from keyword import iskeyword
from typing import TYPE_CHECKING, Any, Final

from adk_fluent._arguments import one_of
from adk_fluent._words import describe
from adk_fluent.errors import UsageError
from adk_fluent.ir import RESOURCE_SCOPES, Location, Ref, ResourceNode, ResourceScope

if TYPE_CHECKING:
    from collections.abc import Callable

#: Names under which ADK, or the engine, hands something else to functions.
_TAKEN: Final = frozenset(
    {
        *("self", "state", "ctx", "context", "tool_context", "callback_context", "input_stream"),
        *("llm_request", "llm_response", "tool", "args", "error", "tool_response"),
    }
)


class Resource:
    """Something that is made when it is needed and tidied up afterwards.

    Example:
        >>> from adk_fluent import Agent, Resource
        >>> def orders():
        ...     file = open("orders.txt")
        ...     yield file
        ...     file.close()
        >>> def find_order(number: str, orders) -> str:
        ...     "Find an order by its number."
        ...     return next(line for line in orders if line.startswith(number))
        >>> Agent("clerk").tool(find_order).inject(orders=Resource(orders))
        <Agent 'clerk'>

    Args:
        factory: Makes it: a function, sync or async, a generator function, sync or async, that
            yields it and tidies up behind the ``yield``, or a function that returns a context
            manager. Its parameters get other resources by name.
        scope: How long one lives: an ``invocation`` (one run), a ``session``, or the ``app``: until
            the pipeline is closed (``aclose``) or the process ends.
        cleanup: Called with it at the end of its scope, sync or async.

    Raises:
        UsageError: The factory or cleanup cannot be called.
        UnknownNameError: There is no such scope.
    """

    __slots__ = ("cleanup", "factory", "scope")

    def __init__(
        self,
        factory: Callable[..., object],
        *,
        scope: ResourceScope = "invocation",
        cleanup: Callable[[Any], object] | None = None,
    ) -> None:
        if not callable(factory):
            raise UsageError(
                "Resource(...) takes a function that makes it",
                found=describe(factory),
                help="an object that exists already is injected as it is: .inject(name=object)",
            )
        if cleanup is not None and not callable(cleanup):
            raise UsageError(
                "Resource(cleanup=...) takes a function",
                found=describe(cleanup),
                help="it is called with what the factory made; it may be async",
            )
        self.factory: Callable[..., object] = factory
        self.scope: ResourceScope = one_of(scope, RESOURCE_SCOPES, "scope")
        self.cleanup: Callable[[Any], object] | None = cleanup

    def __repr__(self) -> str:
        name = getattr(self.factory, "__qualname__", type(self.factory).__name__)
        return f"<Resource {name} per {self.scope}>"


def as_resource(name: str, value: object) -> ResourceNode:
    """A resource as the IR holds it.

    Raises:
        UsageError: It cannot have this name.
    """
    if not name.isidentifier() or iskeyword(name) or name.startswith("_") or name in _TAKEN:
        raise UsageError(
            f"no resource can be injected as {name!r}",
            help="functions already get something else under that name: choose another one"
            if name in _TAKEN
            else "it is the name of a parameter: letters, digits and '_', not starting with '_'",
        )
    here = Location.caller()
    if not isinstance(value, Resource):
        return ResourceNode(name, Ref.to(value), location=here)
    cleanup = None if value.cleanup is None else Ref.to(value.cleanup)
    return ResourceNode(
        name, Ref.to(value.factory), value.scope, cleanup, is_factory=True, location=here
    )
