"""Gates: what a person is asked, and what a refusal amounts to."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.errors import BuildError
from adk_fluent.flow._strand import is_race
from adk_fluent.ir import GateNode, Node, walk
from adk_fluent.protocol import Pending
from adk_fluent.protocol._decision import Fault, decide

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from adk_fluent.protocol._decision import Decision

#: The form of an answer that approves or refuses; surfaces such as ``adk web`` make a form of it.
APPROVAL: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "note": {"type": "string"}},
    "required": ["approved"],
}


def question(node: GateNode, payload: Any) -> Pending:
    """The question of a gate, with an id that no other question has."""
    return Pending(
        f"{node.name}-{uuid.uuid4().hex[:12]}",
        "gate",
        node.name,
        message=node.message,
        payload=payload,
        response_schema=APPROVAL
        if node.response_schema is None
        else json.loads(node.response_schema),
    )


def answer_fault(question: Pending, value: Any) -> Fault | None:
    """Return why a value is no answer to a gate or a confirmation: ``what`` and ``help``.

    Args:
        question: The question, also one that was read from JSON.
        value: What was answered, as JSON.

    Returns:
        None where it is one, and for questions of other kinds, which whoever asked judges.
    """
    if question.kind not in ("gate", "confirmation"):
        return None
    schema = question.response_schema
    free = schema in (None, APPROVAL) or question.kind == "confirmation"
    name = None if question.kind == "confirmation" else question.name
    found = decide(None if free else json.dumps(schema), value, name)
    return found if isinstance(found, Fault) else None


def refusal(node: GateNode, decision: Decision) -> str:
    """What is told when a person refuses."""
    note: Any = decision.value["note"]  # a refusal is always of this form
    why = f": {note.strip()}" if isinstance(note, str) and note.strip() else ""
    end = "" if why.endswith((".", "!", "?")) else "."
    return f"{node.name} was refused{why}{end} Nothing after it was run."


def check_gates(nodes: Iterable[Node]) -> None:
    """See that none of these nodes is a race with a gate in it.

    Raises:
        BuildError: One is.
    """
    for node in nodes:
        if not is_race(node):
            continue
        gate = next((each for each in walk(node) if isinstance(each, GateNode)), None)
        if gate is not None:
            raise BuildError(
                f"gate {gate.name!r} stands inside the race {node.name!r}, "
                "which cannot wait for a person",
                node=gate,
                help="put the gate before or after the race",
            )
