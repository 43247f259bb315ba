"""The rules of legal IR, which files, passes and hands may break; builders keep them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from adk_fluent.contracts._reports._issues import (
    DuplicateResource,
    EmptyComposite,
    IllegalNode,
    InvalidName,
    InvalidValue,
    MisplacedNode,
    UnknownTransferTarget,
)
from adk_fluent.ir import RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from adk_fluent.contracts._reports._diagnostic import Diagnostic
    from adk_fluent.ir import Violation

#: What reports call this check.
LABEL: Final = "legality"

#: Findings of other checks that explain why a rule is broken, at the same node.
_HERE: Final[Mapping[str, type[Diagnostic]]] = {
    "typed": InvalidValue,
    "named": InvalidName,
    "keyed": InvalidValue,
    "filled": EmptyComposite,
    "positive": InvalidValue,
    "matched": InvalidValue,
    "edged": InvalidValue,
    "transformed": InvalidValue,
    "runs": MisplacedNode,
}
#: The same, at another node.
_ELSEWHERE: Final[Mapping[str, type[Diagnostic]]] = {
    "placed": MisplacedNode,
    "resources": DuplicateResource,
    "reached": UnknownTransferTarget,
}
_SAYS: Final = {rule.name: rule.says for rule in RULES}


def illegal_nodes(
    violations: Iterable[Violation], findings: Iterable[Diagnostic]
) -> Iterator[Diagnostic]:
    """Findings for what breaks a rule and is not explained by other findings."""
    known: set[object] = set()
    for each in findings:
        known |= {type(each), (type(each), each.kind, each.node)}
    for each in violations:
        here = (_HERE.get(each.rule), each.kind, each.node)
        if here not in known and _ELSEWHERE.get(each.rule) not in known:
            yield IllegalNode(
                message=f"`{each.node}` is not legal: {each.what}",
                node=each.node,
                kind=each.kind,
                location=each.location,
                help=_SAYS[each.rule],
            )
