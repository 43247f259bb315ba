"""Whether IR is legal: whether it keeps the rules of `_rules.py`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from adk_fluent.errors import LegalityError
from adk_fluent.ir._kinds import class_of
from adk_fluent.ir._look import Look
from adk_fluent.ir._record import record
from adk_fluent.ir._ref import Location
from adk_fluent.ir._rules import NODE_RULES, ROOT_RULES, TYPED, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.ir._node import Node


@record
class Violation:
    """A node that breaks a rule.

    Attributes:
        rule: Name of the rule.
        kind: The node's type.
        node: The node's name.
        what: What is wrong, in a sentence.
        location: The builder call that made the node, if one did.
    """

    rule: str
    kind: str
    node: str
    what: str
    location: Location | None = None

    def __str__(self) -> str:
        place = f" at {self.location}" if self.location else ""
        return f"[{self.rule}] {self.kind} {self.node!r}{place}: {self.what}"


def verify(root: Node) -> tuple[Violation, ...]:
    """Every way in which a graph breaks the rules; nothing when it is legal."""
    found: list[Violation] = []
    todo, seen, kinds = [root], set[int](), set[type]()
    while todo:
        here = todo.pop()
        if id(here) in seen:
            continue
        seen.add(id(here))
        kinds.add(type(here))
        look = Look(here)
        found += _broken(look)
        todo.extend(reversed(look.children))
    if not found:
        about = [rule for rule in ROOT_RULES if any(issubclass(k, rule.kinds) for k in kinds)]
        found += _violations(about, Look(root))
    return tuple(found)


def verify_node(node: Node) -> list[Violation]:
    """The same for one node, whatever it stands in."""
    return _broken(Look(node))


def assert_legal(root: Node) -> None:
    """Check what a pass or another producer of IR made.

    Raises:
        LegalityError: With every violation.
    """
    found = verify(root)
    if found:
        raise LegalityError(
            f"this IR breaks {len(found)} rule{'s' * (len(found) > 1)}",
            node=found[0].node,
            location=found[0].location,
            violations=[str(v) for v in found],
            help="correct the pass or the code that made it; `adk_fluent.ir.RULES` lists the rules",
        )


@cache
def _rules_of(kind: type[Node]) -> tuple[Rule, ...]:
    return tuple(rule for rule in NODE_RULES if issubclass(kind, rule.kinds))


def _broken(look: Look[Node]) -> list[Violation]:
    """What is wrong with a node; rules rely on its types."""
    return _violations([TYPED] if look.misfits else _rules_of(type(look.node)), look)


def _violations(rules: Iterable[Rule], look: Look[Node]) -> list[Violation]:
    return [_violation(rule, look.node, what) for rule in rules for what in rule.check(look)]


def _violation(rule: Rule, node: Node, what: str) -> Violation:
    place = node.location if isinstance(node.location, Location) else None  # whatever a pass made
    return Violation(rule.name, class_of(node).__name__, str(node.name), what, place)
