"""Whether a pipeline may run: what is proven wrong does not, whoever starts it and with what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from adk_fluent._logs import LOG

if TYPE_CHECKING:
    from adk_fluent.contracts import ContractReport
    from adk_fluent.ir import ExecutionConfig, Node

_log: Final = LOG.getChild("contracts")
#: What was found in pipelines, as long as they live.
_known: Final[WeakKeyDictionary[Node, ContractReport]] = WeakKeyDictionary()


def hold(node: Node, config: ExecutionConfig) -> None:
    """Check a pipeline that is about to run, as `ExecutionConfig.contracts` says.

    Nothing is taken for known about the state it will find, unless the pipeline declares it: an
    error is one whatever a session holds.

    Raises:
        ContractError: It has errors.
    """
    if config.contracts == "off":
        return
    report = _report(node)
    if config.contracts == "error":
        report.raise_for_errors()
    elif not report.ok:
        _log.warning("%s", report.render(source=False))


def _report(node: Node) -> ContractReport:
    """What is known of a pipeline; a living one of the same content was looked at before.

    That is asked of `Node.__hash__` and `__eq__`: `content_hash` takes longer than the check.
    """
    from adk_fluent.contracts import check_runs  # noqa: PLC0415  # slow to import

    try:
        known = _known.get(node)
    except Exception:  # noqa: BLE001  # of a value in it, which has no hash, or cannot be compared
        return check_runs(node)
    if known is None:
        known = _known[node] = check_runs(node)
    return known
