"""What model calls took whose answers nobody further out gets to see.

A helper that chooses tools, a summary, an answer that will not do: whoever counts tokens outside
is told of them.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.protocol import ModelReply, estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

#: Those who are told: middlewares outside, whatever tasks there are in between.
_TOLD: Final[ContextVar[tuple[Counter[str], ...]]] = ContextVar("adk_fluent_spent", default=())


@contextmanager
def told_spent() -> Generator[Counter[str]]:
    """Be told what is spent within, besides what the answer itself took."""
    spent = Counter[str]()
    token = _TOLD.set((*_TOLD.get(), spent))
    try:
        yield spent
    finally:
        _TOLD.reset(token)


def tell_spent(request: Any, responses: Sequence[Any]) -> None:
    """Tell those outside what a call took, whose answer they will not get."""
    told = _TOLD.get()
    used = tokens_of((), responses, estimate_tokens(request)) if told else {}
    for each in told:
        each.update(used)


def tokens_of(fragments: Sequence[Any], responses: Sequence[Any], prompt: int) -> dict[str, int]:
    """Tokens that a call took: as the model reports, or as estimated from what it said.

    Args:
        fragments: What came before the answer was whole.
        responses: The answer.
        prompt: The estimate of the request.
    """
    said = responses or fragments
    if not said:  # it failed before it began to answer
        return {}
    usage = ModelReply([*fragments, *responses]).usage
    if usage is None or not usage.total:
        answer = [each.content for each in said if each.content is not None]
        return {"input": prompt, "output": estimate_tokens(answer)}
    return {"input": usage.prompt + usage.tool, "output": usage.output + usage.thoughts}
