"""Whether a pipeline may run: what is proven wrong does not, whoever starts it and with what."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final

from adk_fluent._logs import LOG

if TYPE_CHECKING:
    from adk_fluent.contracts import ContractReport
    from adk_fluent.ir import ExecutionConfig, Node

_KEPT: Final = 128
_log: Final = LOG.getChild("contracts")
_known: OrderedDict[str, ContractReport] = OrderedDict()
_lock: Final = Lock()


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
    """What is known of a pipeline; one that has the same content was looked at before."""
    from adk_fluent.contracts import check_runs  # noqa: PLC0415  # slow to import
    from adk_fluent.ir import content_hash  # noqa: PLC0415  # see above

    key = content_hash(node)
    with _lock:
        if key in _known:
            _known.move_to_end(key)
            return _known[key]
    report = check_runs(node)
    with _lock:
        _known[key] = report
        while len(_known) > _KEPT:
            _known.popitem(last=False)
    return report
