"""The checkers: core's, those of layers, and those that users register."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar, overload

from adk_fluent._registry import usable
from adk_fluent._texts import error_line
from adk_fluent.contracts._dataflow import _checks, _reducers
from adk_fluent.contracts._graph import Graph
from adk_fluent.contracts._reports._diagnostic import Diagnostic
from adk_fluent.contracts._streams import _content, _streaming
from adk_fluent.contracts._structure import (
    _agents,
    _application,
    _attempts,
    _functions,
    _gates,
    _names,
    _nesting,
    _routes,
    _transfers,
    _values,
)
from adk_fluent.errors import CheckerError, LayerError, UsageError

#: Looks at a pipeline and gives what it finds; it must not change anything.
Checker = Callable[[Graph], Iterable[Diagnostic]]
C = TypeVar("C", bound=Checker)
#: The layer of our own checkers.
CORE: Final = "core"
#: The "layer" of checkers that are registered without one.
USER: Final = "user"
_SLOT: Final = "checkers"


@dataclass(frozen=True, slots=True)
class Registered:
    """A checker with the name and the layer that reports and errors call it by."""

    name: str
    layer: str
    fn: Checker

    @property
    def label(self) -> str:
        """What reports call it."""
        return self.name if self.layer == CORE else f"{self.layer}.{self.name}"

    def run(self, graph: Graph) -> list[Diagnostic]:
        """What it finds.

        Raises:
            CheckerError: It raised, or gave something that is no finding.
        """
        found: list[Diagnostic] = []
        try:
            for each in self.fn(graph):
                _expect_diagnostic(each)
                found.append(each)
        except Exception as error:
            whose = "" if self.layer == USER else f" of layer {self.layer!r}"
            raise CheckerError(
                f"checker {self.name!r}{whose} failed: {error_line(error, None)}",
                checker=self.name,
                layer=self.layer,
            ) from error
        return found


def _name(fn: object) -> str:
    name = str(getattr(fn, "__name__", type(fn).__name__))
    return name.removeprefix("check_").removesuffix("_contracts")


STRUCTURAL: Final[tuple[Registered, ...]] = tuple(
    Registered(_name(fn), CORE, fn)
    for fn in (
        _names.check_names,
        _names.check_agent_names,
        _names.check_keys,
        _nesting.check_composites,
        _nesting.check_placement,
        _values.check_values,
        _nesting.check_loops,
        _nesting.check_maps,
        _reducers.check_reducers,
        _routes.check_routes,
        _transfers.check_transfer_targets,
        _transfers.check_transfer_cycles,
        _attempts.check_gates,
        _gates.check_gate_names,
        _attempts.check_lasting_writes,
        _agents.check_tools,
        _agents.check_tool_parameters,
        _agents.check_placeholders,
        _agents.check_answers,
        _functions.check_functions,
        _checks.check_dataflow_contracts,
        _checks.check_type_contracts,
        _streaming.check_streaming_contracts,
        _content.check_modality_contracts,
        _application.check_resources,
        _application.check_middleware_names,
        _application.check_middlewares,
    )
)

_users: dict[tuple[str, str], Registered] = {}


@overload
def register_checker(fn: C, *, name: str | None = None, layer: str = USER) -> C: ...
@overload
def register_checker(*, name: str | None = None, layer: str = USER) -> Callable[[C], C]: ...
def register_checker(
    fn: Checker | None = None, *, name: str | None = None, layer: str = USER
) -> Any:
    """Have a checker of your own run in every `check_all`; also a decorator.

    ::

        @register_checker
        def check_budget(graph: Graph) -> Iterator[Diagnostic]:
            for node in graph.of(ModelSelectorNode):
                if node.budget_key is None:
                    yield NoBudget.at(graph, node, f"`{node.name}` has no budget")

    Checkers run in the order of their registration. Defining the same function again (a notebook
    cell, a reload) replaces it.

    Args:
        fn: Takes the `Graph` and gives its findings; may be a generator.
        name: What reports call it; the function's name without ``check_`` otherwise.
        layer: Where it comes from.

    Raises:
        UsageError: `fn` cannot be called, or another checker has this name and layer.
    """
    if fn is None:
        return partial(register_checker, name=name, layer=layer)
    if not callable(fn):
        raise UsageError(
            "a checker is a function of the graph",
            found=type(fn).__name__,
            help="def check_it(graph): yield SomeDiagnostic.at(graph, node, '...')",
        )
    called = name or _name(fn)
    old = _users.get((layer, called))
    if old is not None and _origin(old.fn) != _origin(fn):
        raise UsageError(
            f"layer {layer!r} has a checker {called!r} already",
            found=".".join(_origin(old.fn)),
            help="give one of them another name=",
        )
    _users[layer, called] = Registered(called, layer, fn)
    return fn


def unregister_checker(fn: Checker) -> None:
    """Take a registered checker away again.

    Raises:
        LookupError: It is not registered.
    """
    keys = [key for key, each in _users.items() if each.fn is fn]
    if not keys:
        raise LookupError(f"{'.'.join(_origin(fn))} is not a registered checker")
    for key in keys:
        del _users[key]


def _expect_diagnostic(thing: object) -> None:
    if not isinstance(thing, Diagnostic):
        raise TypeError(f"a checker gives Diagnostics, not a {type(thing).__name__}")


def _origin(fn: object) -> tuple[str, str]:
    kind: Any = fn if hasattr(fn, "__qualname__") else type(fn)  # an object with __call__
    return kind.__module__, kind.__qualname__


def all_checkers() -> tuple[tuple[Registered, ...], tuple[LayerError, ...]]:
    """Core's, then those of layers by the layer's name, then those registered, in order.

    And why others of installed layers cannot be had.
    """
    things, errors = usable(_SLOT)
    layers = [Registered(e.name or _name(e.object), e.layer, e.object) for e in things]
    known = {id(each.fn) for each in layers}  # a layer may also have used the decorator
    users = (each for each in _users.values() if id(each.fn) not in known)
    return (*STRUCTURAL, *layers, *users), tuple(errors)
