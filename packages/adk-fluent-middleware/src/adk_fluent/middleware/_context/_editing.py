"""Requests without what a model needs no more: old results of tools, turns, thoughts and media."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import Field

from adk_fluent.errors import UsageError
from adk_fluent.middleware._builtin import BuiltIn, builtin
from adk_fluent.middleware._context._history import (
    Place,
    cuts,
    first_of,
    is_kept_elsewhere,
    pairs,
    turns,
)
from adk_fluent.protocol import ModelCall, ModelReply, NextModel, estimate_tokens
from adk_fluent.telemetry import count

if TYPE_CHECKING:
    from collections.abc import Iterator

_CLEARED: Final = "[cleared to save space; call the tool again if this is needed]"


@builtin
class ContextEditingMiddleware(BuiltIn):
    """Leaves old results of tools, old turns, thoughts and media out of what a model is sent.

    Only the request is edited; the session keeps everything. Calls keep their results, with their
    ids. What the model has not answered yet is never touched. The same conversation is always
    edited in the same way, and one that grows in the same way for a long while, so that prompt
    caches keep working. Tokens are estimated, four characters each.

    Attributes:
        trigger_tokens: Tokens of a conversation above which results of tools are cleared; None
            clears none.
        keep: The newest results that are never cleared.
        clear_at_least: Tokens that clearing has to save; until there are as many, nothing is
            cleared.
        clear_inputs: Clear the arguments of those calls, too.
        exclude_tools: Names of tools whose results are never cleared.
        placeholder: What stands in the place of a result.
        max_turns: Turns that are sent, the current one included; older ones are left out.
        turns_at_once: Turns that are left out together: up to `max_turns` and this many less one
            are sent.
        media_turns: Turns whose images and files are sent, the current one included; older ones
            are named only.
        drop_thoughts: Leave out what the model thought in earlier turns.
    """

    trigger_tokens: Annotated[int, Field(ge=0)] | None = 100_000
    keep: Annotated[int, Field(ge=0)] = 5
    clear_at_least: Annotated[int, Field(ge=0)] = 10_000
    clear_inputs: bool = False
    exclude_tools: Sequence[str] = ()
    placeholder: str = _CLEARED
    max_turns: Annotated[int, Field(ge=1)] | None = None
    turns_at_once: Annotated[int, Field(ge=1)] = 1
    media_turns: Annotated[int, Field(ge=1)] | None = None
    drop_thoughts: bool = False

    def __post_init__(self) -> None:
        """Check the options.

        Raises:
            UsageError: One has a value that it cannot have.
        """
        super().__post_init__()
        if self.turns_at_once > 1 and self.max_turns is None:
            raise UsageError(
                f"{self.name}(turns_at_once=...) says how max_turns leaves turns out",
                found="no max_turns",
                help="give max_turns, too",
            )

    async def wrap_model_call(self, call: ModelCall, next: NextModel) -> ModelReply:
        """Send the model what it needs."""
        request: Any = call.request
        if is_kept_elsewhere(request):
            return await next(call)
        first = first_of(request)
        given: list[Any] = request.contents[first:]
        edited = self._edited(given)
        if len(edited) == len(given) and all(map(_is, edited, given)):
            return await next(call)
        saved = estimate_tokens(given) - estimate_tokens(edited)
        count("adk_fluent.editing.tokens", max(0, saved), {"gen_ai.agent.name": call.agent})
        contents = [*request.contents[:first], *edited]
        return await next(replace(call, request=request.model_copy(update={"contents": contents})))

    def _edited(self, contents: list[Any]) -> list[Any]:
        contents = contents[self._left_out(contents) :]
        edits: dict[Place, Any] = {}
        for edit in (self._thoughts(contents), self._media(contents), self._results(contents)):
            edits.update(edit)
        return [
            made
            for at, content in enumerate(contents)
            if (made := _with(content, at, edits)) is not None
        ]

    # --- whole turns ---------------------------------------------------------------------------

    def _left_out(self, contents: list[Any]) -> int:
        """How many contents are left out at the beginning."""
        starts = [turn.start for turn in turns(contents)]
        many = 0 if self.max_turns is None else len(starts) - self.max_turns
        many -= max(0, many) % self.turns_at_once
        if many <= 0:
            return 0
        return max(set(starts[: many + 1]) & set(cuts(contents)), default=0)

    def _before(self, contents: list[Any], turns_kept: int) -> int:
        """Where the last so many turns begin."""
        starts = [turn.start for turn in turns(contents)]
        return starts[-turns_kept] if len(starts) >= turns_kept else 0

    # --- thoughts and media --------------------------------------------------------------------

    def _thoughts(self, contents: list[Any]) -> Iterator[tuple[Place, Any]]:
        end = self._before(contents, 1) if self.drop_thoughts else 0
        for place, part in _parts(contents[:end]):
            if part.thought and part.function_call is None:
                yield place, None

    def _media(self, contents: list[Any]) -> Iterator[tuple[Place, Any]]:
        end = 0 if self.media_turns is None else self._before(contents, self.media_turns)
        for place, part in _parts(contents[:end]):
            medium = part.inline_data or part.file_data
            if medium is not None:
                name = getattr(medium, "display_name", None) or medium.mime_type or "file"
                yield place, type(part)(text=f"[{name} left out]")
            elif part.function_response is not None and part.function_response.parts:
                yield place, _changed(part, "function_response", parts=None)

    # --- results of tools ----------------------------------------------------------------------

    def _results(self, contents: list[Any]) -> Iterator[tuple[Place, Any]]:
        """The results that are cleared, and their calls.

        Nothing is remembered from request to request: what earlier ones cleared is found out by
        going through the conversation as it grew.
        """
        sizes = [estimate_tokens(each) for each in contents]
        if self.trigger_tokens is None or sum(sizes) <= self.trigger_tokens:
            return
        growing = _Growing(self, contents, sizes)
        for at, content in enumerate(contents):
            if content.role == "model":
                growing.asked()
            growing.said(at)
        growing.asked()
        yield from growing.cleared.items()

    def clearing(self, contents: list[Any], call: Place, result: Place) -> dict[Place, Any]:
        """What stands in the place of a result, and of its call; nothing if it stays."""
        part: Any = contents[result[0]].parts[result[1]]
        if part.function_response.name in self.exclude_tools:
            return {}
        said: dict[str, Any] = {"response": {"result": self.placeholder}}
        if part.function_response.parts:
            said["parts"] = None
        made = {result: _changed(part, "function_response", **said)}
        calling: Any = contents[call[0]].parts[call[1]]
        if self.clear_inputs and calling.function_call.args:
            made[call] = _changed(calling, "function_call", args={})
        return made


class _Growing:
    """A conversation as it grew, and what was cleared in it.

    Args:
        options: Says what may be cleared, and when.
        contents: The conversation.
        sizes: Tokens of each content.

    Attributes:
        cleared: What stands in the place of parts.
    """

    def __init__(
        self, options: ContextEditingMiddleware, contents: list[Any], sizes: list[int]
    ) -> None:
        self.cleared: dict[Place, Any] = {}
        self._options = options
        self._contents = contents
        self._sizes = sizes
        self._call_of = {result: call for call, result in pairs(contents)}
        self._tokens = 0
        self._answered = 0
        #: Results that may be cleared: their place, what is put there, and the tokens it saves.
        self._full: list[tuple[Place, dict[Place, Any], int]] = []

    def said(self, at: int) -> None:
        """One more content."""
        content = self._contents[at]
        self._tokens += self._sizes[at]
        if content.role == "model":
            self._answered = at
        for number, part in enumerate(content.parts or ()):
            call = self._call_of.get((at, number))
            if part.function_response is None or call is None:
                continue
            edits = self._options.clearing(self._contents, call, (at, number))
            saves = sum(_saved(self._contents, place, part) for place, part in edits.items())
            if saves > 0:
                self._full.append(((at, number), edits, saves))

    def asked(self) -> None:
        """The model was sent everything so far."""
        options = self._options
        if self._tokens <= (options.trigger_tokens or 0):
            return
        many = max(0, len(self._full) - options.keep)
        old = [each for each in self._full[:many] if each[0][0] < self._answered]
        saves = sum(tokens for _, _, tokens in old)
        if not old or saves < options.clear_at_least:
            return
        self._full = self._full[len(old) :]
        self._tokens -= saves
        for _, edits, _ in old:
            self.cleared.update(edits)


# --- parts that others are put in the place of: never changed, they are those of the session -----


def _is(one: object, other: object) -> bool:
    return one is other


def _parts(contents: list[Any]) -> Iterator[tuple[Place, Any]]:
    for at, content in enumerate(contents):
        for number, part in enumerate(content.parts or ()):
            yield (at, number), part


def _changed(part: Any, name: str, **fields: Any) -> Any:
    return part.model_copy(update={name: getattr(part, name).model_copy(update=fields)})


def _with(content: Any, at: int, edits: dict[Place, Any]) -> Any:
    """A content with edits; None if nothing is left of it."""
    parts: list[Any] = content.parts or []
    if all((at, number) not in edits for number in range(len(parts))):
        return content
    made = [edits.get((at, number), part) for number, part in enumerate(parts)]
    left = [part for part in made if part is not None]
    return content.model_copy(update={"parts": left}) if left else None


def _saved(contents: list[Any], place: Place, part: Any) -> int:
    before = contents[place[0]].parts[place[1]]
    return estimate_tokens(SimpleNamespace(parts=[before])) - estimate_tokens(
        SimpleNamespace(parts=[part])
    )


#: `ContextEditingMiddleware` by its short name.
context_editing = ContextEditingMiddleware
