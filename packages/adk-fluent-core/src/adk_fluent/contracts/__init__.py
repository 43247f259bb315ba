"""Contracts: what is wrong with a pipeline, found before the first model call.

`check_all` runs every checker and gives a `ContractReport` of `Diagnostic`s. Each kind of finding
is a class here, with a stable code that `CODES` explains. `register_checker` adds your own checks.
"""

from __future__ import annotations

from adk_fluent.contracts._check import check_all, validate
from adk_fluent.contracts._checkers import Checker, register_checker, unregister_checker
from adk_fluent.contracts._content import check_modality_contracts
from adk_fluent.contracts._diagnostic import CODES, RESERVED, Code, Diagnostic, Related, Severity
from adk_fluent.contracts._graph import Graph
from adk_fluent.contracts._issues import (
    AmbiguousTransferTarget,
    DiscardedStream,
    DuplicateGate,
    DuplicateMiddleware,
    DuplicateName,
    DuplicateResource,
    DuplicateTool,
    EmptyComposite,
    GateInRace,
    HeldStream,
    IllegalNode,
    InertEdge,
    InertPlaceholder,
    InvalidName,
    InvalidValue,
    IrreversibleWrite,
    LayerAbsent,
    LiveEdge,
    LoopWithoutExit,
    MisplacedNode,
    MissingOutputSchema,
    ModalityMismatch,
    OversizedContent,
    RouteWithoutDefault,
    ShadowedKey,
    SingleAlternative,
    StreamingRouteConflict,
    StructuredStream,
    TransferCycle,
    UncallableFunction,
    UnfinishedRead,
    UnknownTransferTarget,
    UnreachableBranch,
    UnrequestedModality,
    UnseenStream,
    UnsupportedModality,
    UnusableMiddleware,
)
from adk_fluent.contracts._layers import (
    check_a2a_contracts,
    check_boundary_contracts,
    check_cost_contracts,
)
from adk_fluent.contracts._models import ModelCapabilities, register_model_capabilities
from adk_fluent.contracts._opaque import Opaque
from adk_fluent.contracts._report import ContractReport
from adk_fluent.contracts._streaming import check_streaming_contracts
from adk_fluent.contracts._subject import Checkable, HasIR

__all__ = [
    "CODES",
    "RESERVED",
    "AmbiguousTransferTarget",
    "Checkable",
    "Checker",
    "Code",
    "ContractReport",
    "Diagnostic",
    "DiscardedStream",
    "DuplicateGate",
    "DuplicateMiddleware",
    "DuplicateName",
    "DuplicateResource",
    "DuplicateTool",
    "EmptyComposite",
    "GateInRace",
    "Graph",
    "HasIR",
    "HeldStream",
    "IllegalNode",
    "InertEdge",
    "InertPlaceholder",
    "InvalidName",
    "InvalidValue",
    "IrreversibleWrite",
    "LayerAbsent",
    "LiveEdge",
    "LoopWithoutExit",
    "MisplacedNode",
    "MissingOutputSchema",
    "ModalityMismatch",
    "ModelCapabilities",
    "Opaque",
    "OversizedContent",
    "Related",
    "RouteWithoutDefault",
    "Severity",
    "ShadowedKey",
    "SingleAlternative",
    "StreamingRouteConflict",
    "StructuredStream",
    "TransferCycle",
    "UncallableFunction",
    "UnfinishedRead",
    "UnknownTransferTarget",
    "UnreachableBranch",
    "UnrequestedModality",
    "UnseenStream",
    "UnsupportedModality",
    "UnusableMiddleware",
    "check_a2a_contracts",
    "check_all",
    "check_boundary_contracts",
    "check_cost_contracts",
    "check_modality_contracts",
    "check_streaming_contracts",
    "register_checker",
    "register_model_capabilities",
    "unregister_checker",
    "validate",
]
