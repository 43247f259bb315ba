"""Where the events of a flow stand: their stamps, scopes and branches, also below another flow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from google.adk.agents.invocation_context import InvocationContext

    from adk_fluent.backends.adk._session._stamps import Stamp
    from adk_fluent.flow import Promises, Strand
    from adk_fluent.ir import Node

#: Where a step leaves word for a flow below it: a key of its context's ``__dict__``, which ADK
#: carries on into every copy.
_OUTER: Final = "_adk_fluent_outer"


@dataclass(frozen=True, slots=True)
class Outer:
    """What a flow that runs inside a step of another flow has to know of that.

    Attributes:
        stamp: What the step's events carry.
        is_open: Whether a scope is open.
        discard: Called with scopes that are discarded.
        durable: Whether each step is written down.
        kept: Whether it is kept where the run stands.
        over: Journals that say that a flow has come to its end in this step; they are emptied when
            it is written down that the step has.
        promises: What is promised about state where the step stands, and where that is.
    """

    stamp: Stamp
    is_open: Callable[[str], bool]
    discard: Callable[[list[str]], None]
    durable: bool
    kept: bool
    over: list[str] = field(default_factory=list[str])
    promises: tuple[Promises, Strand] | None = None

    @property
    def run(self) -> str:
        """The run that the step is part of."""
        return self.stamp.get("run", "")

    @property
    def prefix(self) -> str:
        """What makes ids of scopes of the inner flow different from all others of the run."""
        return self.stamp.get("path", "").replace(".", "-") + "/"


def outer_of(ctx: InvocationContext) -> Outer | None:
    """The step that a root runs in; None when it is nobody's step."""
    return vars(ctx).get(_OUTER)


def journal_of(ctx: InvocationContext, root: str) -> str:
    """The name under which the journal of a root stands.

    A root may run in several steps of one run at the same time, as below the items of a map.
    """
    outer = outer_of(ctx)
    path = None if outer is None else outer.stamp.get("path")
    return f"{root}@{path}" if path else root


class Places:
    """The places of one run.

    Args:
        root: The root of the flow.
        ctx: The root's context.
        run: Identity of the run; a flow below another one takes part in that one's run.
        durable: Whether each step is written down.
        kept: Whether it is kept where the run stands.

    Attributes:
        run: Identity of the run that it takes part in.
        root: What events of the root itself are stamped with.
        open: The flow's own scopes that are open.
    """

    def __init__(
        self, root: str, ctx: InvocationContext, run: str, *, durable: bool, kept: bool
    ) -> None:
        self._durable, self._kept = durable, kept
        self._outer: Outer | None = outer_of(ctx)
        self._ctx = ctx
        self.run: str = run if self._outer is None else self._outer.stamp.get("run", run)
        self.open: Container[str] = ()
        self.root: Stamp = {"path": "", "node": root, "run": self.run}
        if self._outer is not None:
            self._nest(self.root, self._outer)

    def stamp(self, node: Node, strand: Strand) -> Stamp:
        """What the events of a step are stamped with."""
        stamp: Stamp = {"path": strand.path, "node": node.name, "run": self.run}
        if (attempt := strand.attempt) is not None:
            stamp["attempt"] = attempt
        if self._outer is not None:
            self._nest(stamp, self._outer)
        return stamp

    def _nest(self, stamp: Stamp, outer: Outer) -> None:
        """Put a position in this flow below the one of the step it runs in."""
        above, here = outer.stamp.get("path", ""), stamp.get("path", "")
        stamp["path"] = f"{above}.{here}" if above and here else above or here
        scopes = [self.scope(each) for each in stamp.get("attempt", "").split(".") if each]
        if (attempt := outer.stamp.get("attempt")) is not None:
            scopes.insert(0, attempt)
        if scopes:
            stamp["attempt"] = ".".join(scopes)

    def scope(self, id: str) -> str:
        """The id of a scope of the flow, as nothing else in the run is called."""
        return id if self._outer is None else self._outer.prefix + id

    def is_open(self, scope: str) -> bool:
        """Whether a scope is open, of this flow or of one above."""
        if self._outer is None:
            return scope in self.open
        prefix = self._outer.prefix
        if scope.startswith(prefix):
            return scope.removeprefix(prefix) in self.open
        return self._outer.is_open(scope)

    def discard_above(self, scopes: list[str]) -> None:
        """Let the flow above know that scopes are discarded."""
        if self._outer is not None:
            self._outer.discard(scopes)

    def for_below(
        self,
        stamp: Stamp,
        discard: Callable[[list[str]], None],
        promises: tuple[Promises, Strand] | None,
    ) -> dict[str, Any]:
        """What a step has in its context for a flow below it.

        Args:
            stamp: What the step's events carry.
            discard: Called with scopes that are discarded.
            promises: What is promised about state where the step stands, and where that is.
        """
        durable, kept = self._durable, self._kept
        return {_OUTER: Outer(stamp, self.is_open, discard, durable, kept, promises=promises)}

    def branch(self, strand: Strand) -> str | None:
        """The branch of a strand's events."""
        above, here = self._ctx.branch, strand.branch
        return f"{above}.{here}" if above and here else here or above
