"""Answers to questions of a paused run: given by options, or typed by a person."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from adk_fluent.cli._questions import (
    fields_of,
    is_object,
    json_or_text,
    prompt,
    read,
    read_field,
    refusal,
    shown,
    whole,
    words_of,
)
from adk_fluent.cli._transcript import note
from adk_fluent.protocol import Answer
from adk_fluent.protocol._decision import Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from adk_fluent.cli._conversation import Conversation
    from adk_fluent.cli._lines import Lines
    from adk_fluent.protocol import Pending

_NAMED: Final = re.compile(r"([\w.-]+)=(.*)", re.DOTALL)
_HELP: Final = """\
/refuse [NOTE]  say no
/later          leave the question open
/help           show this
/quit           leave all questions open, and end; so does Ctrl-D"""


def settle(
    talk: Conversation,
    run: Callable[[Any], int | None],
    askers: Sequence[Callable[[Sequence[Pending]], list[Answer]]],
) -> int | None:
    """Answer what is asked and go on with the run, until nothing is asked that anybody answers.

    Args:
        talk: What is asked in.
        run: Waits for a run; gives its exit code, or None when it came to nothing.
        askers: Who answers; the second what the first does not, and so on.

    Returns:
        The exit code of the last run; None if there was none.
    """
    code: int | None = None
    while talk.pending:
        answers: list[Answer] = []
        for ask in askers:
            answered = {each.id for each in answers}
            answers += ask([each for each in talk.pending if each.id not in answered])
        if not answers:
            break
        code = run(talk.say(answers))
        if code is None:
            break
    return code


class Given:
    """Answers by options, each of which counts once.

    Args:
        texts: VALUE for the next question, or NAME=VALUE, where NAME is a question's name or id.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self._named = [found.groups() for each in texts if (found := _NAMED.fullmatch(each))]
        self._others = [each for each in texts if not _NAMED.fullmatch(each)]

    def __call__(self, questions: Sequence[Pending]) -> list[Answer]:
        """Answer what there are answers for; what is wrong with one is said."""
        answers: list[Answer] = []
        for question in questions:
            text = self._take(question)
            found = None if text is None else read(question, text)
            if isinstance(found, Fault):
                note(f"[{found.what}: {found.help}]", fg="red")
            elif found is not None:
                answers.append(found)
        return answers

    def _take(self, question: Pending) -> str | None:
        for at, (name, text) in enumerate(self._named):
            if name in (question.id, question.name):
                del self._named[at]
                return text
        return self._others.pop(0) if self._others and question.kind != "auth" else None


class _Instead(Exception):  # noqa: N818  # no error
    """Something is done instead of answering; an answer, or None for leaving it open."""

    def __init__(self, answer: Answer | None) -> None:
        super().__init__()
        self.answer: Answer | None = answer


class Person:
    """Answers that are typed.

    Args:
        lines: Where they are typed.

    Attributes:
        has_left: Whether no more are typed.
    """

    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._later: set[str] = set()
        self.has_left: bool = False

    def __call__(self, questions: Sequence[Pending]) -> list[Answer]:
        """Ask one question after the other."""
        answers: list[Answer] = []
        for question in questions:
            if self.has_left or question.id in self._later:
                continue
            try:
                answer = self._ask(question)
            except EOFError:
                self.has_left = True
                continue
            if answer is None:
                self._later.add(question.id)
            else:
                answers.append(answer)
        return answers

    def come_back(self) -> None:
        """Ask again what was left open."""
        self._later.clear()

    def _ask(self, question: Pending) -> Answer | None:
        note(shown(question), fg="yellow")
        if question.kind == "auth":
            found = read(question, "")
            note(f"[{found.help}]" if isinstance(found, Fault) else "")
            return None
        fields = fields_of(question)
        while True:
            try:
                found = self._fields(question, fields) if fields else self._value(question)
            except _Instead as instead:
                return instead.answer
            if not isinstance(found, Fault):
                return found
            note(f"[{found.what}: {found.help}]", fg="red")

    def _value(self, question: Pending) -> Answer | Fault:
        return read(question, self._typed(question, prompt(question)))

    def _fields(self, question: Pending, fields: dict[str, dict[str, Any]]) -> Answer | Fault:
        needed: Any = (question.response_schema or {}).get("required", ())
        values: dict[str, Any] = {}
        for name, schema in fields.items():
            if schema.get("description"):
                note(f"{name}: {schema['description']}")
            words = f"{name} ({words_of(schema)}{'' if name in needed else ', optional'})"
            while True:
                text = self._typed(question, words)
                as_json = json_or_text(text)
                if not values and is_object(as_json):
                    return whole(question, as_json)  # all of it at once
                if not text.strip():
                    if name not in needed:
                        break
                    note(f"[{name} is needed]", fg="red")
                    continue
                found = read_field(schema, text)
                if isinstance(found, tuple):
                    values[name] = found[0]
                    break
                note(f"[{found}]", fg="red")
        return whole(question, values)

    def _typed(self, question: Pending, words: str) -> str:
        """The next line that is no command.

        Raises:
            EOFError: There is none.
            _Instead: There is a command that ends the question.
        """
        while True:
            typed = self._lines.read(f"{words}> ")
            if typed is None:
                raise EOFError
            if not typed.is_command:
                return typed.text
            name, _, rest = typed.text.strip().partition(" ")
            if name == "/later":
                raise _Instead(None)
            if name in ("/quit", "/exit"):
                raise EOFError
            if name != "/refuse":
                click.echo(_HELP, err=True)
                continue
            found = refusal(question, rest.strip())
            if isinstance(found, Answer):
                raise _Instead(found)
            note(f"[{found.what}: {found.help}]", fg="red")
