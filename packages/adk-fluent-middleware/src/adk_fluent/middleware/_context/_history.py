"""Conversations as models are sent them: where they can be cut, and who said what.

Contents are taken by their shape, so that nothing is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: A part of a conversation: the number of its content, and its own in there.
Place = tuple[int, int]

#: How ADK begins what it tells an agent of what another one has said.
_OF_OTHERS: Final = "For context:"


def first_of(request: Any) -> int:
    """Where the conversation begins: before it may stand parts of a static instruction."""
    return getattr(request, "_static_instruction_prefix_end_index", None) or 0


def is_kept_elsewhere(request: Any) -> bool:
    """Whether the service has the conversation, and the request only what is new in it."""
    return getattr(request, "previous_interaction_id", None) is not None


def pairs(contents: Sequence[Any]) -> Iterator[tuple[Place, Place]]:
    """Every call of a tool that has a result, and that result.

    They match by identity, or where there is none (Gemini is sent none), by name and order.
    """
    waiting: list[tuple[Any, Place]] = []
    for at, content in enumerate(contents):
        for number, part in enumerate(content.parts or ()):
            if part.function_call is not None:
                waiting.append((part.function_call, (at, number)))
            elif (result := part.function_response) is not None:
                found = next((each for each in waiting if _belong(each[0], result)), None)
                if found is not None:
                    waiting.remove(found)
                    yield found[1], (at, number)


def _belong(call: Any, result: Any) -> bool:
    if call.id and result.id:
        return call.id == result.id
    return call.name == result.name


def cuts(contents: Sequence[Any]) -> list[int]:
    """Where a conversation can be cut, in order; a cut at n is before ``contents[n]``.

    A call stays with its results, and all that the model has not answered yet stays together.
    """
    unanswered = len(contents)
    while unanswered and contents[unanswered - 1].role != "model":
        unanswered -= 1
    inside = {at for call, result in pairs(contents) for at in range(call[0] + 1, result[0] + 1)}
    last = min(unanswered, len(contents) - 1)
    return [at for at in range(1, last + 1) if at not in inside]


def turns(contents: Sequence[Any]) -> list[range]:
    """What the user has said, in order; messages without anything between them are one."""
    found: list[range] = []
    for at in range(_said(contents)):
        if not is_message(contents[at]):
            continue
        if found and found[-1].stop == at:
            found[-1] = range(found[-1].start, at + 1)
        else:
            found.append(range(at, at + 1))
    return found


def _said(contents: Sequence[Any]) -> int:
    """How many contents have been said: what follows the results of tools at the end has not.

    ADK puts an instruction there that changes from call to call.
    """
    end = len(contents)
    while end and is_message(contents[end - 1]):
        end -= 1
    return end if end and has_result(contents[end - 1]) else len(contents)


def is_message(content: Any) -> bool:
    """Whether this is of the user: neither of a tool, nor of another agent."""
    parts = content.parts or ()
    if content.role != "user" or not parts or has_result(content):
        return False
    return not (parts[0].text or "").startswith(_OF_OTHERS)


def has_result(content: Any) -> bool:
    """Whether there is a result of a tool in it."""
    return any(part.function_response is not None for part in content.parts or ())
