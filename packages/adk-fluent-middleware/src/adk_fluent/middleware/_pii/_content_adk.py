"""Requests and answers of models, without what must not be in them.

Nothing is changed in place that a session, a tool or another request may hold, too: contents and
parts are copied, and what is no text (media, identities, signatures) stays the very same. Files
that are text are filtered as texts are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from google.genai import types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

    from adk_fluent.middleware._pii._filter import Change, Stream


def is_json(request: LlmRequest) -> bool:
    """Whether the answer is to be JSON."""
    config: Any = request.config
    return (
        config.response_mime_type == "application/json"
        or config.response_schema is not None
        or getattr(config, "response_json_schema", None) is not None
    )


async def filter_request(request: LlmRequest, change: Change) -> None:
    """Filter the conversation and the instruction of a request, in the request itself.

    What has it, such as ADK's telemetry, then has what the model is given.
    """
    request.contents = [await filtered(each, change) for each in request.contents or ()]
    config = request.config
    system: Any = getattr(config, "system_instruction", None)  # of a type that names PIL's
    if system is not None:
        made = await _instruction(system, change)
        request.config = config.model_copy(update={"system_instruction": made})


async def _instruction(value: Any, change: Change) -> Any:
    if isinstance(value, str):
        return await change.text(value)
    if isinstance(value, list):
        return [await _instruction(each, change) for each in cast("list[Any]", value)]
    if isinstance(value, types.Content):
        return await filtered(value, change)
    if isinstance(value, types.Part):
        return (await Parts(change).whole([value]))[0]
    return value


async def filtered(content: types.Content, change: Change) -> types.Content:
    """A content, filtered."""
    if not content.parts:
        return content
    return content.model_copy(update={"parts": await Parts(change).whole(content.parts)})


class Parts:
    """The parts of one content, or of one streamed answer.

    Texts that follow each other are one text, whatever pieces they come in.

    Args:
        change: What is done to texts and values.
        texts: Filter texts.
        tools: The tools whose arguments and results are filtered.
        of_json: The text is JSON.
    """

    def __init__(
        self,
        change: Change,
        *,
        texts: bool = True,
        tools: Callable[[str], bool] = lambda _: True,
        of_json: bool = False,
    ) -> None:
        self._change = change
        self._texts = texts
        self._tools = tools
        self._of_json = of_json
        self._open: Stream | None = None
        self._thought: bool | None = None
        self._args = _PartialArgs(change)
        self._last: LlmResponse | None = None

    # --- all at once ---------------------------------------------------------------------------

    async def whole(self, parts: Iterable[types.Part]) -> list[types.Part]:
        """Parts that nothing follows."""
        made: list[types.Part] = []
        run: list[types.Part] = []
        for part in parts:
            if run and (part.text is None or bool(part.thought) != bool(run[0].thought)):
                made += await self._joined(run)
                run = []
            if part.text is None:
                made.append(await self._other(part))
            else:
                run.append(part)
        return made + await self._joined(run)

    async def _joined(self, run: list[types.Part]) -> list[types.Part]:
        """Texts that follow each other."""
        if not self._texts:
            return run
        if len(run) == 1:
            text = run[0].text or ""
            made = await (self._change.json(text) if self._is_json(run[0]) else self._text(text))
            return [_with(run[0], made)]
        stream = self._change.stream(of_json=bool(run) and self._is_json(run[0]))
        done = [_with(part, await stream.feed(part.text or "", counted=True)) for part in run]
        if done:
            rest = await stream.end(counted=True)
            done[-1] = _with(done[-1], (done[-1].text or "") + rest)
        return done

    async def _text(self, text: str) -> str:
        return await self._change.string(text)

    def _is_json(self, part: types.Part) -> bool:
        return self._of_json and not part.thought

    async def _other(self, part: types.Part) -> types.Part:
        """A part that is no text."""
        call, result = part.function_call, part.function_response
        if call is not None and call.args and self._tools(call.name or ""):
            return _updated(part, "function_call", {"args": await self._change.value(call.args)})
        if result is not None and self._tools(result.name or ""):
            return _updated(part, "function_response", await self._result(result))
        return await self._said(part) if self._texts else part

    async def _said(self, part: types.Part) -> types.Part:
        """A part of what is said that is no text: code, what it printed, a file."""
        code, done = part.executable_code, part.code_execution_result
        if code is not None and code.code:
            update = {"code": await self._change.text(code.code)}
            return _updated(part, "executable_code", update)
        if done is not None and done.output:
            update = {"output": await self._change.string(done.output)}
            return _updated(part, "code_execution_result", update)
        return await self._file(part)

    async def _result(self, result: types.FunctionResponse) -> dict[str, Any]:
        """What a tool returns, and the files that it returns besides."""
        update: dict[str, Any] = {}
        if result.response:
            update["response"] = await self._change.value(result.response)
        if result.parts:
            update["parts"] = [await self._file(each) for each in result.parts]
        return update

    async def _file(self, part: Any) -> Any:
        """A part that is a file: its text, if it is one, where it is and what it is called."""
        update: dict[str, Any] = {}
        for name in ("inline_data", "file_data"):
            file = getattr(part, name, None)
            if file is None:
                continue
            changes: dict[str, Any] = {}
            for field in ("file_uri", "display_name"):
                text = getattr(file, field, None)
                made = await self._change.text(text) if text else text
                if made != text:
                    changes[field] = made
            data = await self._data(file)
            if data is not None:
                changes["data"] = data
            if changes:
                update[name] = file.model_copy(update=changes)
        return part.model_copy(update=update) if update else part

    async def _data(self, file: Any) -> bytes | None:
        """What is to be in a file instead; None when it is no text, or may stay."""
        kind = (file.mime_type or "").partition(";")[0].strip().lower()
        data: bytes | None = getattr(file, "data", None)
        if not data or not (kind.startswith("text/") or kind == "application/json"):
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return None
        made = await self._text(text)
        return None if made == text else made.encode()

    async def response(self, response: LlmResponse) -> LlmResponse:
        """A response that is no fragment."""
        update: dict[str, Any] = {}
        content = response.content
        if content is not None and content.parts:
            parts = await self.whole(content.parts)
            update["content"] = content.model_copy(update={"parts": parts})
        if response.error_message and self._texts:
            update["error_message"] = await self._change.text(response.error_message)
        return response.model_copy(update=update) if update else response

    # --- in fragments --------------------------------------------------------------------------

    async def fragment(self, response: LlmResponse) -> LlmResponse | None:
        """A fragment, as far as it can be let through; None when all of it is held back."""
        self._last = response
        content = response.content
        if content is None or not content.parts:
            return response
        made: list[types.Part] = []
        for part in content.parts:
            if part.text is None:
                made += await self._flushed()
                call = part.function_call
                if call is not None and (call.partial_args or call.will_continue is not None):
                    made.append(await self._args.part(part, self._tools))
                else:
                    made.append(await self._other(part))
            elif not self._texts:
                made.append(part)
            else:
                made += await self._piece(part)
        if not made:
            return None
        return response.model_copy(update={"content": content.model_copy(update={"parts": made})})

    async def _piece(self, part: types.Part) -> list[types.Part]:
        made: list[types.Part] = []
        if bool(part.thought) != self._thought or self._open is None:
            made = await self._flushed()
            self._thought = bool(part.thought)
            self._open = self._change.stream(of_json=self._is_json(part))
        text = await self._open.feed(part.text or "")
        if text or part.thought_signature or not part.text:
            made.append(_with(part, text))
        return made

    async def _flushed(self) -> list[types.Part]:
        """What was held back of the text that ends here."""
        stream, self._open = self._open, None
        rest = "" if stream is None else await stream.end()
        return [types.Part(text=rest, thought=self._thought or None)] if rest else []

    async def end(self) -> LlmResponse | None:
        """A last fragment with what was held back, if there is any."""
        parts, last = await self._flushed(), self._last
        if not parts or last is None:
            return None
        role = None if last.content is None else last.content.role
        content = types.Content(role=role or "model", parts=parts)
        return last.model_copy(update={"content": content, "finish_reason": None})


def _updated(part: types.Part, name: str, update: dict[str, Any]) -> types.Part:
    """A part with an update of what it holds."""
    if not update:
        return part
    return part.model_copy(update={name: getattr(part, name).model_copy(update=update)})


def _with(part: types.Part, text: str) -> types.Part:
    return part if text == part.text else part.model_copy(update={"text": text})


class _PartialArgs:
    """Arguments of a call that come in pieces, each at its path."""

    def __init__(self, change: Change) -> None:
        self._change = change
        self._name = ""
        self._open: dict[str, Stream] = {}

    async def part(self, part: types.Part, tools: Callable[[str], bool]) -> types.Part:
        """A fragment of a call."""
        call: Any = part.function_call
        self._name = call.name or self._name
        if not tools(self._name):
            return part
        made = [await self._piece(each) for each in call.partial_args or ()]
        update: dict[str, Any] = {"args": await self._change.value(call.args)}
        if not call.will_continue:
            for path in list(self._open):
                rest = await self._open.pop(path).end()
                if rest:
                    made.append(types.PartialArg(json_path=path, string_value=rest))
            self._name = ""
        update["partial_args"] = made or call.partial_args
        return part.model_copy(update={"function_call": call.model_copy(update=update)})

    async def _piece(self, piece: Any) -> Any:
        if piece.string_value is None:
            return piece
        path: str = piece.json_path or ""
        stream = self._open.setdefault(path, self._change.stream())
        text = await stream.feed(piece.string_value)
        if not piece.will_continue:
            text += await self._open.pop(path).end()
        return piece.model_copy(update={"string_value": text})
