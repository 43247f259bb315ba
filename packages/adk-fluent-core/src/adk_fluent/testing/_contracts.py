"""Tests that pipelines keep their contracts."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest

from adk_fluent.builders import BuilderBase
from adk_fluent.contracts import HasIR, check_all
from adk_fluent.errors import BuildError, UsageError
from adk_fluent.ir import Node, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from adk_fluent.contracts import ContractReport, Severity, SeverityName
    from adk_fluent.protocol import FieldRef, StateRules

_LISTED: Final = 8


def assert_contracts(
    pipeline: Node | HasIR,
    schema: StateRules | None = None,
    inputs: Mapping[str, Any] | Iterable[str | FieldRef] | None = None,
    outputs: Iterable[str | FieldRef] | None = None,
    *,
    severity: Mapping[str, Severity | SeverityName] | None = None,
    strict: bool = False,
) -> ContractReport:
    """Fail the test that calls it if a pipeline breaks its contracts; the report is the message.

    The arguments are those of `adk_fluent.contracts.check_all`.

    Returns:
        The report, for whoever wants to know more.
    """
    report = check_all(pipeline, schema, inputs, outputs, severity=severity, strict=strict)
    if not report.ok:
        pytest.fail(report.render(), pytrace=False)
    return report


def contract_tests(
    module: ModuleType | str,
    schema: StateRules | None = None,
    inputs: Mapping[str, Any] | Iterable[str | FieldRef] | None = None,
    outputs: Iterable[str | FieldRef] | None = None,
    *,
    severity: Mapping[str, Severity | SeverityName] | None = None,
    strict: bool = False,
    skip: Collection[str] = (),
) -> Callable[[str], None]:
    """A test of each pipeline of a module, in one line.

    ::

        test_pipelines = contract_tests("shop.pipelines")

    A pipeline is a public name of the module that holds a builder or a node, and is no part of
    another one there. What comes in and goes out is best declared by the pipelines themselves, with
    ``.contract(inputs=..., outputs=...)``.

    Args:
        module: The module, or its name.
        schema: As for `adk_fluent.contracts.check_all`, for every pipeline; so are the others.
        inputs: State keys that have a value when a pipeline starts.
        outputs: State keys that somebody reads when it is done.
        severity: How bad findings of a code are.
        strict: Warnings are errors.
        skip: Names that are left out.

    Raises:
        UsageError: The module has no pipeline, or none of a name that is to be left out.
    """
    there = module if isinstance(module, ModuleType) else import_module(module)
    found = _pipelines(there)
    if unknown := [name for name in skip if name not in found]:
        raise UsageError(
            f"module {there.__name__!r} has no pipeline {unknown[0]!r}, which is to be left out",
            found=", ".join(list(found)[:_LISTED]) or "no pipeline at all",
        )
    names = [name for name in found if name not in skip]
    if not names:
        raise UsageError(
            f"module {there.__name__!r} has no pipeline to test",
            found=", ".join(found) or "no builder and no node under a public name",
            help="name a module that has some, such as contract_tests('shop.pipelines')",
        )

    @pytest.mark.parametrize("pipeline", names)
    def test_contracts(pipeline: str) -> None:
        assert_contracts(found[pipeline], schema, inputs, outputs, severity=severity, strict=strict)

    return test_contracts


def _pipelines(module: ModuleType) -> dict[str, Node | HasIR]:
    """The pipelines of a module by name, in its order; parts of others are none of their own."""
    named: dict[str, Node | HasIR] = {
        name: value
        for name, value in vars(module).items()
        if not name.startswith("_") and isinstance(value, BuilderBase | Node)
    }
    nodes = {name: _node(value) for name, value in named.items()}
    whole = [node for node in nodes.values() if node is not None]
    return {
        name: value
        for name, value in named.items()
        if not any(_is_part(nodes[name], other) for other in whole)
    }


def _node(value: Node | HasIR) -> Node | None:
    """What a builder makes; None while it makes nothing: its test will tell why."""
    try:
        return value if isinstance(value, Node) else value.to_ir()
    except BuildError:
        return None


def _is_part(node: Node | None, other: Node) -> bool:
    """Whether it stands somewhere in another one, which is more than it."""
    if node is None or node is other:
        return False
    below = (each for child in other.children for each in walk(child))
    return any(
        each is node or (type(each) is type(node) and each.name == node.name and each == node)
        for each in below
    )
