"""`check_all`: every checker over one pipeline, into one report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from adk_fluent._logs import LOG
from adk_fluent._registry import found, usable
from adk_fluent.contracts._checkers import CORE, Registered, all_checkers
from adk_fluent.contracts._dataflow import _checks
from adk_fluent.contracts._graph import Graph
from adk_fluent.contracts._layers import absent_layers, broken_layers
from adk_fluent.contracts._opaque import opaque_nodes
from adk_fluent.contracts._reports._diagnostic import Severity
from adk_fluent.contracts._reports._report import ContractReport
from adk_fluent.contracts._reports._severities import judged
from adk_fluent.contracts._streams import _streaming
from adk_fluent.contracts._structure._legality import LABEL, illegal_nodes
from adk_fluent.contracts._subject import node_of
from adk_fluent.contracts._world import World, as_refs, as_rules
from adk_fluent.errors import CheckerError
from adk_fluent.ir import assert_legal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.contracts._reports._severities import SeverityName
    from adk_fluent.contracts._subject import HasIR
    from adk_fluent.contracts._world import KeyLike
    from adk_fluent.errors import LayerError
    from adk_fluent.ir import Node
    from adk_fluent.protocol import StateRules


def check_all(
    node_or_builder: Node | HasIR,
    schema: StateRules | None = None,
    inputs: Mapping[str, Any] | Iterable[KeyLike] | None = None,
    outputs: Iterable[KeyLike] | None = None,
    *,
    severity: Mapping[str, Severity | SeverityName] | None = None,
    strict: bool = False,
) -> ContractReport:
    """Check a pipeline without running any of it (spec section 10).

    The rules of legal IR and core's own checks come first, then the checks of installed layers,
    then those of `register_checker`. State is taken to be empty at the start, but for `inputs` and
    what the pipeline itself declares by ``.contract(inputs=[...])``.

    Args:
        node_or_builder: The pipeline.
        schema: A state schema that all of it keeps to.
        inputs: State keys that have a value when it starts; a mapping gives their types.
        outputs: State keys that somebody reads when it is done.
        severity: How bad findings of a code are here; ``"off"`` leaves them out.
        strict: Warnings are errors.

    Raises:
        CheckerError: A checker failed.
        LegalityError: The IR breaks rules in such a way that it cannot be checked further.
        UsageError: `node_or_builder` is no pipeline, or an argument is not what it should be.
    """
    world = World(
        as_refs(inputs, "inputs") or {}, as_refs(outputs, "outputs"), schema=as_rules(schema)
    )
    return judged(check(node_of(node_or_builder), world), severity or {}, strict=strict)


def check_runs(root: Node) -> ContractReport:
    """What fails in runs of a pipeline, whatever state they begin with.

    That is less than `check_all` finds: what a pipeline declares of its state is taken for true,
    any other key may have a value at the start, and what compiles is taken to be well built.

    Args:
        root: The pipeline.
    """
    graph = Graph(root, World(unknown=True, runs=True))
    found = (*_checks.check_dataflow_contracts(graph), *_checks.check_type_contracts(graph))
    return ContractReport.of(each for each in found if each.doubtful)


def check_guards(root: Node) -> ContractReport:
    """The errors of layers' checks that keep a pipeline from being compiled.

    Args:
        root: The pipeline, with all that stands around its run.
    """
    checkers, broken = usable("run_checkers")
    for error in broken:
        LOG.warning("what a layer has is not used: %s", error)
    if not checkers:
        return ContractReport.of(())
    graph = Graph(root)
    findings = [
        found
        for each in checkers
        for found in Registered(each.name, each.layer, each.object).run(graph)
    ]
    return ContractReport.of(each for each in findings if each.severity is Severity.ERROR)


def check(root: Node, world: World) -> ContractReport:
    """Check a pipeline, given what is known of state around it."""
    checkers, errors = all_checkers()
    try:
        return _report(root, world, checkers, errors)
    except Exception as error:
        if not isinstance(error, CheckerError) or error.layer == CORE:
            assert_legal(root)  # what is not legal may break anything of ours
        raise


def _report(
    root: Node,
    world: World,
    checkers: Sequence[Registered],
    errors: Sequence[LayerError],
) -> ContractReport:
    graph = Graph(root, world)
    findings = [finding for checker in checkers for finding in checker.run(graph)]
    if graph.violations:
        findings += illegal_nodes(graph.violations, findings)
    absent = dict(absent_layers(graph, found()))
    return ContractReport.of(
        [*findings, *absent.values(), *broken_layers(graph, errors)],
        opaque=(*opaque_nodes(graph), *_checks.doubts(graph)),
        checked=(LABEL, *[each.label for each in checkers]),
        absent=tuple(absent),
    )


def check_contracts(root: Node | HasIR, schema: StateRules | None = None) -> list[Diagnostic]:
    """What is wrong with the way a pipeline uses state (spec section 1.5).

    Args:
        root: The pipeline.
        schema: A state schema that all of it keeps to.

    Raises:
        UsageError: `root` is no pipeline, or `schema` no state schema.
    """
    graph = Graph(node_of(root), World(schema=as_rules(schema)))
    found = [
        *_checks.check_dataflow_contracts(graph),
        *_checks.check_type_contracts(graph),
        *_streaming.check_streaming_contracts(graph),
    ]
    return list(ContractReport.of(found))


def validate(node_or_builder: Node | HasIR) -> None:
    """Do nothing if the pipeline has no contract errors.

    Raises:
        ContractError: It has; `ContractError.report` has the findings.
    """
    check_all(node_or_builder).raise_for_errors()
