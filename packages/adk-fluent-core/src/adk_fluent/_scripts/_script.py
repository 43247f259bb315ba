"""What a scripted model answers: no ADK in here, so that every backend can follow a script."""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from adk_fluent._scripts._replies import Answer, Asked, Reply, Rule, Thought
from adk_fluent._words import describe
from adk_fluent.errors import RunError, UsageError
from adk_fluent.protocol import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self, Unpack

    from adk_fluent.errors import Details

_REFUSED = (type(None), int, float, bytes, dict, list, tuple, set, BaseException)
_SHOWN = 200  # characters of a prompt in an error


class ScriptExhaustedError(RunError, LookupError):
    """A scripted model was asked for something that its script has no reply for.

    Cause: more calls than replies, and no rule that applies.
    Fix: add a reply, a rule, or a ``default`` to the script; ``script.calls`` shows what was asked.

    Attributes:
        asked: What it was asked.
    """

    __module__ = "adk_fluent.testing"  # where it is public, as tracebacks say
    code = "ADKF400"

    def __init__(self, what: str, *, asked: Asked, **details: Unpack[Details]) -> None:
        self.asked = asked
        super().__init__(what, **details)


class Script:
    """Replies in order, replies by rule, and a record of what was asked.

    The first rule that applies answers; where none does, the next reply in order; then `default`.
    Copies of a script are the script itself, so that whatever holds one shares its position.

    Args:
        *replies: Given one after the other, each once.
        rules: Tried first, in order.
        default: Given when nothing else is left.
        latency: Seconds before each reply that names none itself.
    """

    def __init__(
        self,
        *replies: Answer,
        rules: Sequence[Rule] = (),
        default: Answer | None = None,
        latency: float = 0.0,
    ) -> None:
        for each in (*replies, *(rule.reply for rule in rules)):
            _check(each)
        if default is not None:
            _check(default)
        self._replies, self._rules = replies, tuple(rules)
        self._default, self._latency = default, latency
        self._next = 0
        self._used = [0] * len(self._rules)
        self._calls: list[Asked] = []
        self._lock = Lock()

    @classmethod
    def of(cls, value: Script | Answer | Sequence[Answer]) -> Script:
        """A script from what stands in for a model: a reply for every call, or a list in order."""
        if isinstance(value, Script):
            return value
        if isinstance(value, (list, tuple)):
            return cls(*cast("Sequence[Any]", value))
        return cls(default=value)

    @property
    def calls(self) -> tuple[Asked, ...]:
        """What was asked so far, in order."""
        return tuple(self._calls)

    async def answer(self, asked: Asked) -> Reply:
        """Record a question, wait for the reply's latency and return the reply.

        Raises:
            ScriptExhaustedError: There is no reply for it.
        """
        with self._lock:  # concurrent runs in other threads share the position
            asked = replace(asked, number=len(self._calls))
            self._calls.append(asked)
            answer = self._choose(asked)
        while callable(answer):
            answer = answer(asked)
            if inspect.isawaitable(answer):
                answer = await answer
            _check(answer)
        chosen = _as_reply(answer)
        if chosen.usage is None:  # ADK 2.x warns of a model that tells none
            chosen = replace(chosen, usage=_estimate(asked, chosen))
        latency = self._latency if chosen.latency is None else chosen.latency
        if latency > 0:
            await asyncio.sleep(latency)
        return chosen

    def _choose(self, asked: Asked) -> Answer:
        for at, each in enumerate(self._rules):
            if (each.times is None or self._used[at] < each.times) and each.applies(asked):
                self._used[at] += 1
                return each.reply
        if self._next < len(self._replies):
            self._next += 1
            return self._replies[self._next - 1]
        if self._default is not None:
            return self._default
        prompt = asked.prompt if len(asked.prompt) <= _SHOWN else asked.prompt[:_SHOWN] + "..."
        raise ScriptExhaustedError(
            f"the script has no reply for call {asked.number + 1}",
            asked=asked,
            node=asked.agent,
            found=f"prompt {prompt!r}; replies: {len(self._replies)}, all given; "
            f"rules: {len(self._rules)}, none applies",
            help="add a reply, a rule that applies, or default=...",
        )

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


def _check(answer: object) -> None:
    if isinstance(answer, type) and issubclass(answer, BaseException):
        raise UsageError(
            f"a script raises instances, not the class {answer.__name__}",
            help=f"give {answer.__name__}('why')",
        )
    if isinstance(answer, _REFUSED) and not isinstance(answer, Exception):
        raise UsageError(
            f"a script cannot answer with {describe(answer)}",
            help="give a text, reply(...), Call(...), an exception or a function; "
            "several parts are reply(part, part)",
        )


def _as_reply(answer: Answer) -> Reply:
    if isinstance(answer, Reply):
        return answer
    if isinstance(answer, Exception):
        return Reply(raises=answer)
    return Reply(parts=(answer,))


def prompt_tokens(asked: Asked) -> int:
    """An estimate of the tokens in a question: four characters each."""
    return _tokens(len(asked.system) + sum(len(turn.text) for turn in asked.turns))


def _estimate(asked: Asked, reply: Reply) -> Usage:
    thoughts = sum(len(part.text) for part in reply.parts if isinstance(part, Thought))
    return Usage(
        prompt=prompt_tokens(asked), output=_tokens(len(reply.text)), thoughts=_tokens(thoughts)
    )


def _tokens(characters: int) -> int:
    return -(-characters // 4)
