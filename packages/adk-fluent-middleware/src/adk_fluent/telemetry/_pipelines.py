"""What is said about a pipeline, worked out once for each."""

from __future__ import annotations

import re
from functools import cache
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeVar

from adk_fluent.contracts import check_all
from adk_fluent.extend import LOG
from adk_fluent.ir import content_hash, structure_hash
from adk_fluent.telemetry._metrics import count, is_measured

if TYPE_CHECKING:
    from collections.abc import Mapping

    from adk_fluent.ir import Node

K = TypeVar("K")
V = TypeVar("V")


#: Pipelines that are remembered; a process that builds one for each run must not keep them all.
_MOST: Final = 128
_LOCK: Final = Lock()
_HASHES: Final[dict[int, tuple[Node, Mapping[str, str]]]] = {}  # kept, so that ids stay theirs
_CHECKED: Final[dict[str, None]] = {}  # by content: it may be built anew for each run


def hashes(root: Node) -> Mapping[str, str]:
    """The attributes that identify a pipeline."""
    known = _HASHES.get(id(root))
    if known is None:
        made = {
            "adk_fluent.structure_hash": structure_hash(root),
            "adk_fluent.content_hash": content_hash(root),
        }
        with _LOCK:
            _keep(_HASHES, id(root), (root, made))
        return made
    return known[1]


def count_findings(root: Node) -> None:
    """Count what the checks of contracts find in a pipeline, once, if anybody measures."""
    if not is_measured():
        return
    content = hashes(root)["adk_fluent.content_hash"]
    with _LOCK:
        if content in _CHECKED:
            return
        _keep(_CHECKED, content, None)
    try:
        found = check_all(root).diagnostics
    except Exception:  # noqa: BLE001  # a checker's own; the pipeline runs without it
        LOG.exception("the pipeline %s cannot be checked; the run goes on", root.name)
        return
    for finding in found:
        count(
            "adk_fluent.contracts.violations",
            1,
            {
                "adk_fluent.code": finding.code,
                "adk_fluent.severity": str(finding.severity),
                "adk_fluent.pipeline": root.name,
            },
        )


def node_type(node: Node | None) -> str:
    """What kind of step a node is: ``agent``, ``sequence``, ``loop`` and so on."""
    return "agent" if node is None else _word(type(node))


@cache
def _word(kind: type) -> str:
    name = kind.__name__.removesuffix("Node")
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _keep(known: dict[K, V], key: K, value: V) -> None:
    if len(known) >= _MOST:
        known.pop(next(iter(known)))
    known[key] = value
