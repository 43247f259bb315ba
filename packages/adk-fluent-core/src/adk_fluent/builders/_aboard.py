"""What parts of a pipeline bring along for the whole: middlewares and resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from adk_fluent.errors import UsageError
from adk_fluent.ir import MiddlewareRef, Ref, ResourceNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from adk_fluent.ir import AppNode


class Aboard(NamedTuple):
    """What a builder has for the run it becomes part of.

    Attributes:
        middlewares: Outermost first.
        resources: Each with a name of its own.
    """

    middlewares: tuple[object, ...] = ()
    resources: tuple[ResourceNode, ...] = ()

    @classmethod
    def of(cls, app: AppNode) -> Aboard:
        """What an application has."""
        resources = tuple(each for each in app.resources if isinstance(each, ResourceNode))
        held = (ref.value if isinstance(ref, Ref) else ref for ref in app.middlewares)
        return cls(tuple(held), resources)

    @property
    def stack(self) -> tuple[Ref | MiddlewareRef, ...]:
        """The middlewares as the IR holds them."""
        return as_stack(self.middlewares)

    def joined(self, other: Aboard) -> Aboard:
        """Both, each thing once.

        Raises:
            UsageError: Two different resources have the same name.
        """
        if not any(other):
            return self
        known = {id(each) for each in self.middlewares}
        more = tuple(each for each in other.middlewares if id(each) not in known)
        names = {each.name: each for each in self.resources}
        for each in other.resources:
            first = names.setdefault(each.name, each)
            if first != each:
                raise _injected_twice(first)
        return Aboard(self.middlewares + more, tuple(names.values()))


def as_stack(middlewares: Iterable[object]) -> tuple[Ref | MiddlewareRef, ...]:
    """Middlewares as the IR holds them."""
    return tuple(each if isinstance(each, MiddlewareRef) else Ref.to(each) for each in middlewares)


def check_scoped(middleware: object) -> None:
    """Refuse a middleware around a part if it could do nothing there, or not what it says.

    Raises:
        UsageError: All its hooks are of runs, or it refuses to stand there itself.
    """
    from adk_fluent.protocol import HOOKS_OF_RUNS, hooks_of  # noqa: PLC0415  # slow to import
    from adk_fluent.protocol._middleware import has_method  # noqa: PLC0415  # slow to import

    hooks = hooks_of(middleware)
    of_runs = hooks and hooks <= HOOKS_OF_RUNS and not has_method(middleware, "see_event")
    if of_runs and not isinstance(middleware, MiddlewareRef):
        raise UsageError(
            f"{type(middleware).__name__} has hooks of whole runs only, and this is a part of one",
            found=", ".join(sorted(hooks)),
            help=".middleware(m), without scope",
        )
    refuses: Callable[[], str | None] | None = getattr(middleware, "refuses_scope", None)
    why = None if refuses is None else refuses()
    if why is not None:
        raise UsageError(why, help=".middleware(m), without scope")


def _injected_twice(first: ResourceNode) -> UsageError:
    place = f", first at {first.location}" if first.location else ""
    return UsageError(
        f"two different resources are injected as {first.name!r}{place}",
        help="functions get a resource by its name, in the whole pipeline: give one another name",
    )
