"""Summaries of conversations: what is remembered of them, and how they come about."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar, cast

from adk_fluent.errors import RunError
from adk_fluent.extend import LOG
from adk_fluent.middleware._context._history import cuts, turns
from adk_fluent.protocol import Usage, estimate_tokens
from adk_fluent.telemetry import count

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Sequence
    from typing import Self

    from adk_fluent.protocol import ModelReply

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands in the place of the first contents of a conversation.

    Attributes:
        covers: How many they are.
        prefix: What identifies them.
        text: What is said of them.
    """

    covers: int
    prefix: str
    text: str

    @classmethod
    def of(cls, stored: Any, contents: Sequence[Any]) -> Self | None:
        """A stored one, if it is of these contents."""
        if not isinstance(stored, dict):
            return None
        fields = cast("dict[str, Any]", stored)
        covers, prefix, text = (fields.get(name) for name in ("covers", "prefix", "text"))
        if not isinstance(covers, int) or not 0 < covers < len(contents):
            return None
        if not isinstance(text, str) or digest(contents[:covers]) != prefix:
            return None
        return cls(covers, str(prefix), text)

    def stored(self) -> dict[str, Any]:
        """As it stands in session state."""
        return {"covers": self.covers, "prefix": self.prefix, "text": self.text}

    def shown(self, contents: Sequence[Any]) -> list[Any]:
        """The conversation as the model is sent it.

        What the user said last is sent as it was said, also when the work on it has become so long
        that it would be summarised.
        """
        asked = [contents[at] for at in asked_last(contents) if at < self.covers]
        return [self.content, *asked, *contents[self.covers :]]

    @property
    def content(self) -> Any:
        """What says it to the model."""
        from adk_fluent.middleware._context._summarization_adk import summary_content  # noqa: PLC0415

        return summary_content(self.text)


class History:
    """A conversation and how long it is.

    Args:
        contents: The conversation.
        scale: Tokens for each estimated one.
    """

    def __init__(self, contents: Sequence[Any], scale: float) -> None:
        sizes = [estimate_tokens(each) * scale for each in contents]
        stays = asked_last(contents)
        self._contents = contents
        self._scale = scale
        self._cuts = cuts(contents)
        #: Tokens before each place, and those of them that a summary takes the place of.
        self._before = [0.0, *accumulate(sizes)]
        going = (0.0 if at in stays else size for at, size in enumerate(sizes))
        self._going = [0.0, *accumulate(going)]

    def cut(self, many: int, tokens: float) -> int:
        """Where the longest end of no more contents and tokens begins; 0 if it cannot be cut."""
        all_tokens = self._before[-1]
        for at in self._cuts:
            if len(self._contents) - at <= many and all_tokens - self._before[at] <= tokens:
                return at
        return self._cuts[-1] if self._cuts else 0

    def gone(self, start: int, end: int) -> float:
        """Tokens that are not sent any more when what is between two places is summarised."""
        return self._going[max(start, end)] - self._going[start]

    def steps(self, start: int, end: int, tokens: float) -> list[int]:
        """Where summaries end, each of which is given no more than so many tokens if possible."""
        steps: list[int] = []
        last = start
        for at in self._cuts:
            if not start < at <= end:
                continue
            if last > start and self._before[at] - self._before[start] > tokens:
                steps.append(last)
                start = last
            last = at
        return [*steps, end]


class Wait:
    """Model calls to go before the next try, after a summary that failed: 1, 2, 4, ..."""

    __slots__ = ("_failed", "_left")

    def __init__(self) -> None:
        self._failed = self._left = 0

    def is_on(self) -> bool:
        """Whether it is too early; asked once a call."""
        self._left -= 1
        return self._left >= 0

    def longer(self) -> None:
        """It failed."""
        self._left = 2 ** min(self._failed, 10)
        self._failed += 1

    def over(self) -> None:
        """It did not."""
        self._failed = self._left = 0


class Shared:
    """What all runs of a middleware share.

    Attributes:
        warned: Somebody was told that the session is summarised twice.
    """

    __slots__ = ("_model", "_under_way", "warned")

    def __init__(self) -> None:
        self.warned = False
        self._model: Any = None
        self._under_way: dict[Any, asyncio.Future[Any]] = {}

    def model(self, model: Any) -> Any:
        """The model that a name stands for; made once, as it may hold connections."""
        if isinstance(model, str) and self._model is None:
            from adk_fluent.backends.adk import resolve_model  # noqa: PLC0415  # imports ADK

            self._model = resolve_model(model)
        return self._model if isinstance(model, str) else model

    async def once(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Make something, or wait for whoever makes the same in this event loop."""
        loop = asyncio.get_running_loop()
        where = (loop, key)
        while (under_way := self._under_way.get(where)) is not None:
            await asyncio.wait([under_way])
            if not under_way.cancelled():
                return under_way.result()
        mine = self._under_way[where] = loop.create_future()
        try:
            made = await make()
        except Exception as error:
            mine.set_exception(error)
            mine.exception()  # seen, also when nobody waits
            raise
        else:
            mine.set_result(made)
            return made
        finally:
            del self._under_way[where]
            mine.cancel()  # those who wait make it themselves


def digest(contents: Sequence[Any]) -> str:
    """What identifies contents, in every process that has the session."""
    made = hashlib.sha256()
    for each in contents:
        made.update(each.model_dump_json(exclude_none=True, fallback=str).encode() + b"\n")
    return made.hexdigest()


def asked_last(contents: Sequence[Any]) -> range:
    """Which contents are what the user said last."""
    return (turns(contents) or [range(0)])[-1]


# --- of an answer --------------------------------------------------------------------------------


def text_of(reply: ModelReply) -> str:
    """The text of a summary.

    Raises:
        RunError: There is none, or it is cut off.
    """
    final = reply.final
    content = None if final is None else final.content
    parts: list[Any] = [] if content is None else content.parts or []
    text = "".join(each.text for each in parts if each.text and not each.thought).strip()
    reason = getattr(final, "finish_reason", None)
    ended = getattr(reason, "value", reason)
    code = getattr(final, "error_code", None)
    metadata: dict[str, Any] = getattr(final, "custom_metadata", None) or {}
    stopped = metadata.get("adk_fluent_stopped")  # by a limit inside: no model has said that
    if code or stopped or not text or ended == "MAX_TOKENS":
        raise RunError(
            "the model wrote no summary",
            found=f"stopped by {stopped}"
            if stopped
            else f"error_code {code}, finish_reason {ended}, {len(text)} characters",
            help="give summarization(model=...) another one, or another prompt",
        )
    return text


def note(agent: str, contents: int, usage: Usage | None) -> None:
    """Make it known what a summary took."""
    used = usage or Usage()
    who = {"gen_ai.agent.name": agent}
    for kind, tokens in (("input", used.prompt), ("output", used.output + used.thoughts)):
        count("adk_fluent.summarization.tokens", tokens, {**who, "gen_ai.token.type": kind})
    LOG.info(
        "summarised %d contents of agent %s: %d tokens in, %d out",
        contents,
        agent,
        used.prompt,
        used.output + used.thoughts,
    )
