"""Questions of a paused run as messages of the protocol, and messages as their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from adk_fluent.extend import json_safe
from adk_fluent.serve._parts_adk import data_part, text_part

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a.types import Part

    from adk_fluent.protocol import Answer, Pending
    from adk_fluent.serve._parts_adk import Heard


def question_parts(questions: Sequence[Pending], note: str = "") -> list[Part]:
    """What the client is asked: a text for people, and the questions as data for programs.

    Args:
        questions: All that are open.
        note: What is said before, such as why an answer was none.
    """
    says = [note] if note else []
    says += [each.message or f"{each.name or each.kind}?" for each in questions]
    told = [
        {
            "id": each.id,
            "kind": each.kind,
            "name": each.name,
            "message": each.message,
            "payload": json_safe(each.payload),
            "responseSchema": json_safe(each.response_schema),
        }
        for each in questions
    ]
    return [text_part("\n".join(says)), data_part({"questions": told})]


def answers_in(said: Heard, questions: Sequence[Pending]) -> list[Answer]:
    """The answers that a message gives.

    A data part whose keys are all ids or names of open questions answers each of them; every other
    message answers the first one, a data part with its value and a text with its words.

    Args:
        said: The message.
        questions: All that are open, at least one.
    """
    data: Any = said.data
    if isinstance(data, dict) and data:
        given = cast("dict[str, Any]", data)
        known = {each.id: each for each in questions}
        if len(questions) > 1:
            known |= {each.name: each for each in questions if each.name}
        if all(key in known for key in given):
            return [known[key].answer(value) for key, value in given.items()]
    value: Any = said.text if data is None else cast("Any", data)
    return [questions[0].answer(value)]
