"""What a paused run waits for, and what is answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

#: ``gate`` asks a person to go on, ``confirmation`` to let a tool run, ``tool`` waits for the
#: result of a long-running tool, ``auth`` for credentials, ``input`` for anything else (a remote
#: agent that needs more, an ADK workflow's request).
PendingKind = Literal["gate", "confirmation", "tool", "auth", "input"]


@dataclass(frozen=True, slots=True)
class Pending:
    """A question that a run waits on.

    Attributes:
        id: Identity of the question; an answer names it.
        kind: Who or what is asked for.
        name: The gate's name, or the tool's.
        author: The agent that asks.
        message: What a person is told.
        payload: What is shown with it, as JSON; for a confirmation and a tool the call's arguments,
            for auth the auth configuration.
        response_schema: JSON Schema of the answer, if there is one.
    """

    id: str
    kind: PendingKind
    name: str = ""
    author: str = ""
    message: str = ""
    payload: Any = field(default=None, hash=False)
    response_schema: Mapping[str, Any] | None = field(default=None, hash=False)

    def answer(self, value: Any = True) -> Answer:  # "yes" is the usual answer
        """The answer to this question: ``result.pending[0].answer(False)`` says no."""
        return Answer(self.id, value, self.kind, self.name)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a person, a tool or a service answered.

    Attributes:
        id: The question's id.
        value: The answer, as JSON: True or False, text, a mapping that fits the response schema, a
            tool's result.
        kind: The question's kind; None when only its id is known.
        name: The question's name, as far as it is known.
    """

    id: str
    value: Any = field(default=True, hash=False)
    kind: PendingKind | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Resume:
    """Goes on with the run of a session: stands where a message stands.

    Attributes:
        answers: Answers to questions it waits on; none go on with a run that failed or was cut off.
    """

    answers: tuple[Answer, ...] = ()


def resume_of(prompt: object) -> Resume | None:
    """What goes on with a run, given what a run was started with; None for a message."""
    if isinstance(prompt, Resume):
        return prompt
    if isinstance(prompt, Answer):
        return Resume((prompt,))
    if isinstance(prompt, list | tuple):
        given = tuple(cast("list[object]", prompt))
        if given and all(isinstance(each, Answer) for each in given):
            return Resume(cast("tuple[Answer, ...]", given))
    return None
