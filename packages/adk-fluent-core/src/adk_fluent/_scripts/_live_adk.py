"""A script as the other end of a live connection. Importing this imports google.adk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from google.adk.models.base_llm_connection import BaseLlmConnection
from google.genai import types
from websockets.exceptions import ConnectionClosedOK
from websockets.frames import Close

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from google.adk.models.llm_response import LlmResponse

_OVER = Close(1000, "")


class ScriptedConnection(BaseLlmConnection):
    """A conversation with a script.

    Each turn of the user's takes one reply: a content, the results of tools, or whatever is said in
    realtime up to an ``ActivityEnd`` or the end of the audio stream. As Gemini does, it sends a
    text in fragments, then as a whole, and then says that its turn is complete; after calls of
    tools it waits for their results.

    Args:
        answers: Makes the responses to what was said so far.
    """

    def __init__(
        self, answers: Callable[[list[types.Content]], AsyncGenerator[LlmResponse, None]]
    ) -> None:
        self._answers = answers
        self._said: list[types.Content] = []
        self._heard: list[types.Part] = []
        self._closed = False
        self._turns: asyncio.Queue[list[types.Content] | None] = asyncio.Queue()

    async def send_history(self, history: Sequence[types.Content]) -> None:
        """Take what was said before; it is answered if the user has said the last of it."""
        self._said.extend(history)
        if history and history[-1].role == "user":
            self._ask()

    async def send_content(self, content: types.Content) -> None:
        """Take a turn of the user's, or the results of tools."""
        self._said.append(content)
        self._ask()

    async def _send_content(self, content: types.Content, *, partial: bool = False) -> None:
        """The same; a part of a turn waits for the rest of it."""
        if partial:
            self._heard.extend(content.parts or ())
            return
        parts = [*self._heard, *(content.parts or ())]
        self._heard = []
        await self.send_content(content.model_copy(update={"parts": parts}))

    async def send_realtime(self, blob: Any) -> None:
        """Take what is said or shown in realtime, up to where it ends."""
        if isinstance(blob, types.Blob):
            self._heard.append(types.Part(inline_data=blob))
        elif isinstance(blob, types.ActivityEnd) or getattr(blob, "audio_stream_end", None):
            content = types.Content(role="user", parts=self._heard)
            self._heard = []
            await self.send_content(content)

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        """What is said in the next turn of the model's.

        Raises:
            ConnectionClosedOK: The connection was closed.
            Exception: Whatever the script raises.
        """
        turn = await self._turns.get()
        if turn is None or self._closed:
            self._turns.put_nowait(None)  # for whoever receives again
            raise ConnectionClosedOK(_OVER, _OVER, rcvd_then_sent=False)
        async for response in self._answers(turn):
            if response.content is not None and not response.partial:
                self._said.append(response.content)
            yield response

    async def close(self) -> None:
        """End the conversation."""
        self._closed = True
        self._turns.put_nowait(None)

    def _ask(self) -> None:
        self._turns.put_nowait(list(self._said))
