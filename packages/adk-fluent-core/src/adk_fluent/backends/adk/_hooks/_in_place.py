"""Answers in the place of tools and models, below every middleware, callback and plugin.

Whoever evaluates a pipeline lets functions answer where tools and models would. What they answer or
raise is treated as if the tool or the model had done so: whatever stands around the call tries
again, checks and makes good as ever.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter, isawaitable, signature
from typing import TYPE_CHECKING, Any, Final, cast

from adk_fluent._words import describe
from adk_fluent.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from adk_fluent.protocol import ModelCall, ModelReply, NextModel, NextTool, ToolCall

    AnswerTool = Callable[[ToolCall, NextTool], Awaitable[Any]]
    AnswerModel = Callable[[ModelCall, NextModel], Awaitable[ModelReply]]


@dataclass(frozen=True, slots=True)
class _Answers:
    """Who answers.

    Attributes:
        tools: In the place of tools, outermost first.
        models: In the place of models, outermost first.
    """

    tools: tuple[AnswerTool, ...] = ()
    models: tuple[AnswerModel, ...] = ()


_ANSWERS: ContextVar[_Answers | None] = ContextVar("adk_fluent_in_place", default=None)
_NONE: Final = _Answers()


@contextmanager
def in_place_of(
    *, tools: AnswerTool | None = None, models: AnswerModel | None = None
) -> Generator[None]:
    """Let functions answer in the place of tools and models.

    It holds for the task that enters it and all that this task starts from then on; other tasks and
    threads do not see it. Every call of a call site (`call_site`, `call_sites_of`, and whatever a
    pipeline with middlewares has) then goes through these functions last, when every middleware,
    callback and plugin has been asked. ``await next(call)`` makes the call itself. Nested ones
    stand around each other; the one entered last is the innermost.

    What a function calls by itself goes straight to the tools and models, and so does what a model
    calls in turn. What an agent that is a tool calls goes through the functions again. A tool that
    still has to ask a person, or was refused, says so itself: its function is not called.

    Args:
        tools: Called with each tool call; what it returns or raises is the tool's result or error.
            ADK's own tools are among them, such as ``transfer_to_agent``.
        models: Called with each model call of a run that is no live one; returns a `ModelReply`.
            ``next(replace(call, model=other))`` calls another model. Fragments that a model streams
            go out as they come, and so do those that a function emits; an answer without `next` is
            given as it is. ``call.ctx`` is None where nobody has announced the call
            (`announce_call`), and ``call.agent`` is then what the request's labels say.

    Raises:
        UsageError: What is given cannot be called.
    """
    for name, given in (("tools", tools), ("models", models)):
        if given is not None and not callable(given):
            raise UsageError(
                f"in_place_of({name}=...) takes an async function of a call and next",
                found=describe(given),
                help="async def answer(call, next): return await next(call)",
            )
    outer = _ANSWERS.get() or _NONE
    inner = _Answers(
        outer.tools if tools is None else (*outer.tools, tools),
        outer.models if models is None else (*outer.models, models),
    )
    with _only(inner):
        yield


def tools_are_answered() -> bool:
    """Whether somebody answers in the place of tools."""
    answers = _ANSWERS.get()
    return answers is not None and bool(answers.tools)


def models_are_answered() -> bool:
    """Whether somebody answers in the place of models."""
    answers = _ANSWERS.get()
    return answers is not None and bool(answers.models)


async def tool_in_place(tool: NextTool, call: ToolCall) -> Any:
    """What a tool returns, or who answers in its place."""
    answers = _ANSWERS.get()
    if answers is None or not answers.tools or await _is_held(call):
        return await tool(call)

    async def real(call: ToolCall) -> Any:
        with _only(answers):  # for what it calls in turn, if it is an agent
            return await tool(call)

    following: NextTool = real
    for answer in reversed(answers.tools):
        following = partial(_answered, "tools", answer, following)
    with _only(None):
        return await following(call)


async def model_in_place(model: NextModel, call: ModelCall) -> ModelReply:
    """What a model says, or who answers in its place."""
    answers = _ANSWERS.get()
    if answers is None or not answers.models:
        return await model(call)

    async def real(call: ModelCall) -> ModelReply:
        with _only(replace(answers, models=())):  # models that this one calls are part of the call
            return await model(call)

    following: NextModel = real
    for answer in reversed(answers.models):
        following = partial(_said, answer, following)
    with _only(None):
        return await following(call)


@contextmanager
def _only(answers: _Answers | None) -> Generator[None]:
    token = _ANSWERS.set(answers)
    try:
        yield
    finally:
        _ANSWERS.reset(token)


async def _answered(what: str, answer: Any, following: Any, call: Any) -> Any:
    """What a function answers.

    Raises:
        UsageError: It is no async function.
    """
    made: object = answer(call, following)
    if not isinstance(made, Awaitable):
        raise UsageError(
            f"in_place_of({what}=...) takes an async function",
            found=f"one that returns {describe(made)}",
            help="async def answer(call, next): ...",
        )
    return await cast("Awaitable[Any]", made)


async def _said(answer: AnswerModel, following: NextModel, call: ModelCall) -> ModelReply:
    """What a function answers in the place of a model.

    Raises:
        UsageError: It is no reply.
    """
    model, name = call.model, call.request.model

    async def onward(call: ModelCall) -> ModelReply:
        request = call.request
        if call.model is not model and request.model == name:
            # Gemini asks for the model that the request names, and the old versions of ADK do not
            # look whose cache it is; a copy, for those outside asked the agent's own model
            changes = {"model": call.model.model, "cache_metadata": None}
            call = replace(call, request=request.model_copy(update=changes))
        return await following(call)

    reply = await _answered("models", answer, onward, call)
    if not hasattr(reply, "responses"):
        raise UsageError(
            "what answers in the place of a model returns a ModelReply",
            found=describe(reply),
            help="return ModelReply([LlmResponse(...)]), or await next(call)",
        )
    return reply


async def _is_held(call: ToolCall) -> bool:
    """Whether a tool would ask a person, or was refused, and so would not do its work.

    ADK 2.x asks before it calls the tool, and tools of 1.x ask by themselves.

    Raises:
        Exception: What a function raises that says whether to ask.
    """
    given = getattr(call.ctx, "tool_confirmation", None)
    if given is not None and given.confirmed:
        return False
    asks = getattr(call.tool, "_require_confirmation", False)
    if not callable(asks):
        return bool(asks)
    check = getattr(call.tool, "check_require_confirmation", None)
    if check is not None:
        return bool(await check(call.args, call.ctx))
    needed: list[str] = getattr(call.tool, "_get_mandatory_args", list)()
    if not _given(call).keys() >= set(needed):
        return True  # it says what is missing, and asks nobody
    made = asks(**_taken(asks, call))
    return bool(await made if isawaitable(made) else made)


def _taken(asks: Callable[..., Any], call: ToolCall) -> dict[str, Any]:
    """The arguments of a call that a function takes that says whether to ask."""
    given = _given(call)
    takes = signature(asks).parameters.values()
    if any(each.kind is Parameter.VAR_KEYWORD for each in takes):
        return given
    names = {each.name for each in takes}
    return {name: value for name, value in given.items() if name in names}


def _given(call: ToolCall) -> dict[str, Any]:
    """What a tool is given with a call: the arguments, of their types, and the context."""
    context = getattr(call.tool, "_context_param_name", "tool_context")
    prepare = getattr(call.tool, "_preprocess_args", dict)
    return {**prepare(call.args), context: call.ctx}
