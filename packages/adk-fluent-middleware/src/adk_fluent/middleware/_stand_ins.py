"""Whether the model that has answered is the one that was asked.

Names do not tell: a model of the same name may stand in for another one elsewhere.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator


@dataclass(slots=True)
class Answer:
    """What is told of an answer to those who have asked for it.

    Attributes:
        of_a_stand_in: Another model has given it.
    """

    of_a_stand_in: bool = False


#: Those who are told: middlewares outside, whatever tasks there are in between.
_TOLD: Final[ContextVar[tuple[Answer, ...]]] = ContextVar("adk_fluent_answers", default=())


@contextmanager
def told() -> Generator[Answer]:
    """Be told of the answer that is asked for within."""
    answer = Answer()
    token = _TOLD.set((*_TOLD.get(), answer))
    try:
        yield answer
    finally:
        _TOLD.reset(token)


def tell(*, of_a_stand_in: bool) -> None:
    """Tell those outside of an answer; the last one holds, since it is the one they get."""
    for answer in _TOLD.get():
        answer.of_a_stand_in = of_a_stand_in
