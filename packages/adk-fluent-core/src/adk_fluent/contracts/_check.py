"""`check_all`: every checker over one pipeline, into one report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent._registry import found
from adk_fluent.contracts._checkers import CORE, Registered, all_checkers
from adk_fluent.contracts._graph import Graph
from adk_fluent.contracts._layers import absent_layers
from adk_fluent.contracts._legality import LABEL, illegal_nodes
from adk_fluent.contracts._opaque import opaque_nodes
from adk_fluent.contracts._report import ContractReport
from adk_fluent.contracts._subject import node_of
from adk_fluent.errors import CheckerError, UnsupportedConfigError
from adk_fluent.ir import assert_legal, verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adk_fluent.contracts._subject import HasIR
    from adk_fluent.ir import Node


def check_all(
    node_or_builder: Node | HasIR,
    schema: type[Any] | None = None,
    inputs: Mapping[str, Any] | Iterable[str] | None = None,
    outputs: Iterable[str] | None = None,
) -> ContractReport:
    """Check a pipeline without running any of it (spec section 10).

    The rules of legal IR and core's structural checks come first, then the checks of installed
    layers, then those of `register_checker`.

    Args:
        node_or_builder: The pipeline.
        schema: The state schema to check against; needs the data-flow analysis.
        inputs: State keys that exist when the pipeline starts; needs the data-flow analysis.
        outputs: State keys that somebody reads when it is done; needs the data-flow analysis.

    Raises:
        UnsupportedConfigError: `schema`, `inputs` or `outputs` was given: this version does not
            have the data-flow analysis, and ignoring them would look like a proof.
        CheckerError: A checker failed.
        LegalityError: The IR breaks rules in such a way that it cannot be checked further.
        UsageError: `node_or_builder` is no pipeline.
    """
    for field, value in (("schema", schema), ("inputs", inputs), ("outputs", outputs)):
        if value is not None:
            raise UnsupportedConfigError(
                f"check_all({field}=...) needs the data-flow analysis, "
                "which is not part of this version",
                field=field,
                brings="a later version of adk-fluent-core",
            )
    root = node_of(node_or_builder)
    checkers = all_checkers()
    try:
        return _report(root, checkers)
    except Exception as error:
        if not isinstance(error, CheckerError) or error.layer == CORE:
            assert_legal(root)  # what is not legal may break anything of ours
        raise


def _report(root: Node, checkers: Sequence[Registered]) -> ContractReport:
    graph = Graph(root)
    findings = [finding for checker in checkers for finding in checker.run(graph)]
    if violations := verify(root):
        findings += illegal_nodes(violations, findings)
    absent = dict(absent_layers(graph, found()))
    return ContractReport.of(
        [*findings, *absent.values()],
        opaque=opaque_nodes(graph),
        checked=(LABEL, *[each.label for each in checkers]),
        absent=tuple(absent),
    )


def validate(node_or_builder: Node | HasIR) -> None:
    """Do nothing if the pipeline has no contract errors.

    Raises:
        ContractError: It has; the report is the error's `report`.
    """
    check_all(node_or_builder).raise_for_errors()
