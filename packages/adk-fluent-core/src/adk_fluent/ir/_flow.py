"""Composite and control nodes: how leaves are arranged. Their meaning is `adk_fluent.flow`."""

from __future__ import annotations

from typing import Any

from adk_fluent.ir._node import Node, node
from adk_fluent.ir._record import child
from adk_fluent.ir._ref import Ref
from adk_fluent.ir._values import (
    EdgeSemantics,
    ExecutionConfig,
    Merge,
    MiddlewareRef,
    OnError,
    Predicate,
    ResourceScope,
)


@node
class SequenceNode(Node):
    """Steps one after the other.

    Attributes:
        steps: In order.
        edge_semantics: Empty, or one a step: entry i leaves step i, the last goes to the caller.
    """

    steps: tuple[Node, ...] = child(default=())
    edge_semantics: tuple[EdgeSemantics, ...] = ()


@node
class ParallelNode(Node):
    """Branches at the same time; joined in declared order.

    Attributes:
        branches: In declared order.
        merge: ``first_complete`` keeps only the first branch to succeed, like a race.
    """

    branches: tuple[Node, ...] = child(default=())
    merge: Merge = "wait_all"


@node
class LoopNode(Node):
    """A body again and again, until a predicate holds, an agent escalates or `max_iterations`.

    Attributes:
        body: What is repeated.
        max_iterations: Iterations at most.
        until: Tested after each iteration.
    """

    body: Node = child()
    max_iterations: int = 10
    until: Predicate | None = None


@node
class RouteNode(Node):
    """The first branch whose test holds, else the default, else nothing.

    Attributes:
        key: The state key the route is about, when it is about one.
        tests: One a branch, in order.
        branches: In order.
        default: Runs when no test holds.
    """

    key: str | None = None
    tests: tuple[Predicate, ...] = ()
    branches: tuple[Node, ...] = child(default=())
    default: Node | None = child(default=None)

    @property
    def rules(self) -> tuple[tuple[Predicate, Node], ...]:
        """The tests with their branches."""
        return tuple(zip(self.tests, self.branches, strict=True))


@node
class FallbackNode(Node):
    """The first attempt that succeeds; what failed attempts wrote is undone.

    Attributes:
        attempts: In order of preference.
        on: Types of errors after which the next attempt is tried; () is every error but a mistake
            in a function (`TypeError`, `KeyError`, `NameError`, `AttributeError`).
    """

    attempts: tuple[Node, ...] = child(default=())
    on: tuple[Ref, ...] = ()


@node
class RaceNode(Node):
    """All branches at once; the first success wins and the others are cancelled and undone.

    Attributes:
        branches: In declared order.
    """

    branches: tuple[Node, ...] = child(default=())


@node
class MapOverNode(Node):
    """A body for each item of a list, results in the list's order.

    Attributes:
        list_key: State key of the list.
        body: Runs once an item, on a snapshot of state.
        item_key: Where the body finds its item; seen by the body only.
        output_key: Where the list of results is written.
        result_key: The body's key that is an item's result; None takes the body's answer text.
        concurrency: Items at the same time, at most; None is all.
        on_error: What becomes of an item that fails: ``raise`` ends the map, ``collect`` gives it
            None for a result and writes its error under `errors_key`, ``skip`` leaves it out.
    """

    list_key: str
    body: Node = child()
    item_key: str = "_item"
    output_key: str = "results"
    result_key: str | None = None
    concurrency: int | None = None
    on_error: OnError = "raise"

    @property
    def errors_key(self) -> str | None:
        """Where collected errors are written, as a list beside the results; None if nowhere."""
        return f"{self.output_key}_errors" if self.on_error == "collect" else None


@node
class TimeoutNode(Node):
    """A body that is cancelled when it takes too long.

    Attributes:
        body: What is bounded.
        seconds: How long it may take.
    """

    body: Node = child()
    seconds: float = 60.0


@node
class GateNode(Node):
    """Asks a person before the next step when its predicate holds.

    Attributes:
        predicate: When to ask; None always asks.
        message: What the person is told.
        payload: ``fn(state) -> JSON`` that is shown with the message.
        response_schema: JSON Schema of the answer, as JSON text; None asks for approval.
        key: State key the answer is written to; None is the gate's name.
    """

    predicate: Predicate | None = None
    message: str = "Approval required"
    payload: Ref | None = None
    response_schema: str | None = None
    key: str | None = None


@node
class ExpectNode(Node):
    """Stops the run with an error when its predicate does not hold.

    Attributes:
        predicate: What must hold.
        message: What the error says.
    """

    predicate: Predicate
    message: str = "Expectation failed"


@node
class TransferNode(Node):
    """Hands over to another agent of the pipeline, by name; the flow goes on when it is done.

    Attributes:
        target: Name of a node of the same pipeline.
        condition: Tested first; None always transfers.
    """

    target: str
    condition: Predicate | None = None


@node
class MiddlewareNode(Node):
    """A body whose calls pass through middlewares of its own.

    Attributes:
        body: What is wrapped.
        stack: Outermost first.
    """

    body: Node = child()
    stack: tuple[Ref | MiddlewareRef, ...] = ()


@node
class ResourceNode(Node):
    """A resource that functions get injected by parameter name.

    Attributes:
        factory: The object itself, or with `is_factory` a callable (sync or async) that makes it.
        scope: How long one instance lives.
        cleanup: Called with the instance when its scope ends, sync or async.
        is_factory: Whether `factory` is called.
    """

    factory: Ref
    scope: ResourceScope = "app"
    cleanup: Ref | None = None
    is_factory: bool = False


@node
class AppNode(Node):
    """The whole application: what runs, with what and how. Only ever the root.

    Attributes:
        root: What runs.
        resources: What is injected.
        middlewares: Outermost first.
        execution: How it runs.
        settings: Other fields of ADK's App, as (field, value), sorted by field.
    """

    root: Node = child()
    resources: tuple[Node, ...] = child(default=())
    middlewares: tuple[Ref | MiddlewareRef, ...] = ()
    execution: ExecutionConfig | None = None
    settings: tuple[tuple[str, Any], ...] = ()
