"""Whether a pipeline may run: what is proven wrong does not, whoever starts it and with what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from adk_fluent._logs import LOG
from adk_fluent.ir import AppNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.contracts import ContractReport, Diagnostic
    from adk_fluent.ir import ExecutionConfig, Node

_log: Final = LOG.getChild("contracts")
#: What was found in pipelines, as long as they live: of their state, and of what guards them.
_known: Final[WeakKeyDictionary[Node, ContractReport]] = WeakKeyDictionary()
_guarded: Final[WeakKeyDictionary[Node, ContractReport]] = WeakKeyDictionary()


def hold(node: Node, config: ExecutionConfig) -> None:
    """Check a pipeline that is about to run, as `ExecutionConfig.contracts` says.

    What layers find wrong with what stands around a run counts, too. Of the state it will find
    nothing is taken for known, unless the pipeline declares it: an error is one whatever a session
    holds.

    Raises:
        ContractError: It has errors.
    """
    if config.contracts == "off":
        return
    report = _report(node)
    if guards := _guards(_with(node, config)):
        report = type(report).of([*guards, *report.diagnostics, *report.allowed])
    if config.contracts == "error":
        report.raise_for_errors()
    elif not report.ok:
        _log.warning("%s", report.render(source=False))


def _with(node: Node, config: ExecutionConfig) -> Node:
    """A pipeline with the middlewares that its run has."""
    if isinstance(node, AppNode):
        return node if node.execution is config else node.replace(execution=config)
    if not config.middlewares:
        return node
    return AppNode(node.name, node, execution=config, location=node.location)


def _report(node: Node) -> ContractReport:
    """What is known of a pipeline's state; see `_looked_at`."""
    from adk_fluent.contracts import check_runs  # noqa: PLC0415  # slow to import

    return _looked_at(node, _known, check_runs)


def _guards(node: Node) -> tuple[Diagnostic, ...]:
    """What layers find wrong with what stands around a run."""
    from adk_fluent.contracts._check import check_guards  # noqa: PLC0415  # slow to import

    report = _looked_at(node, _guarded, check_guards)
    return (*report.diagnostics, *report.allowed)


def _looked_at(
    node: Node,
    known: WeakKeyDictionary[Node, ContractReport],
    check: Callable[[Node], ContractReport],
) -> ContractReport:
    """What is known of a pipeline; a living one of the same content was looked at before.

    That is asked of `Node.__hash__` and `__eq__`: `content_hash` takes longer than the check.
    """
    try:
        found = known.get(node)
    except Exception:  # noqa: BLE001  # of a value in it, which has no hash, or cannot be compared
        return check(node)
    if found is None:
        found = known[node] = check(node)
    return found
