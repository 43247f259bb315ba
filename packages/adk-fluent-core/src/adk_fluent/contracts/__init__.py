"""Contracts: what is wrong with a pipeline, found before the first model call.

`check_all` runs every checker and gives a `ContractReport` of `Diagnostic`s. Each kind of finding
is a class here, with a stable code that `CODES` explains. `register_checker` adds your own checks.
"""

from __future__ import annotations

from adk_fluent.contracts._check import check_all, validate
from adk_fluent.contracts._checkers import Checker, register_checker, unregister_checker
from adk_fluent.contracts._diagnostic import CODES, RESERVED, Code, Diagnostic, Related, Severity
from adk_fluent.contracts._graph import Graph
from adk_fluent.contracts._issues import (
    AmbiguousTransferTarget,
    DuplicateGate,
    DuplicateMiddleware,
    DuplicateName,
    DuplicateResource,
    DuplicateTool,
    EmptyComposite,
    GateInRace,
    IllegalNode,
    InertPlaceholder,
    InvalidName,
    InvalidValue,
    IrreversibleWrite,
    LayerAbsent,
    LoopWithoutExit,
    MisplacedNode,
    RouteWithoutDefault,
    ShadowedKey,
    SingleAlternative,
    TransferCycle,
    UncallableFunction,
    UnknownTransferTarget,
    UnreachableBranch,
    UnusableMiddleware,
)
from adk_fluent.contracts._opaque import Opaque
from adk_fluent.contracts._report import ContractReport
from adk_fluent.contracts._subject import HasIR

__all__ = [
    "CODES",
    "RESERVED",
    "AmbiguousTransferTarget",
    "Checker",
    "Code",
    "ContractReport",
    "Diagnostic",
    "DuplicateGate",
    "DuplicateMiddleware",
    "DuplicateName",
    "DuplicateResource",
    "DuplicateTool",
    "EmptyComposite",
    "GateInRace",
    "Graph",
    "HasIR",
    "IllegalNode",
    "InertPlaceholder",
    "InvalidName",
    "InvalidValue",
    "IrreversibleWrite",
    "LayerAbsent",
    "LoopWithoutExit",
    "MisplacedNode",
    "Opaque",
    "Related",
    "RouteWithoutDefault",
    "Severity",
    "ShadowedKey",
    "SingleAlternative",
    "TransferCycle",
    "UncallableFunction",
    "UnknownTransferTarget",
    "UnreachableBranch",
    "UnusableMiddleware",
    "check_all",
    "register_checker",
    "unregister_checker",
    "validate",
]
