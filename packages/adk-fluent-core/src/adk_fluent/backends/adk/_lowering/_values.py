"""From what users give to what ADK takes: models, tools, messages.

`values` is open to layers (slot ``values``): a layer that adds a kind of model or tool declares a
`ValueTable` with rules for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.adk.agents.base_agent import BaseAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.registry import LLMRegistry
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from adk_fluent._registry import INSTALLED
from adk_fluent._scripts._script import Script
from adk_fluent._scripts._scripted_adk import ScriptedModel
from adk_fluent._tool_parameters import untellable
from adk_fluent.backends._resources import NOTHING, Injection
from adk_fluent.backends._storable import text_fault
from adk_fluent.backends._tables import Kind, ValueTable
from adk_fluent.backends.adk._lowering._injecting import as_function_tool, with_resources
from adk_fluent.errors import UsageError
from adk_fluent.ir import Ref, ToolSpec

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.errors import Placed

Tool = BaseTool | BaseToolset

#: What an agent's model is made from.
MODEL: Final = Kind[BaseLlm]("model", "a model name or an instance of ADK's BaseLlm")
#: What an agent's tool is made from.
TOOL: Final = Kind[Tool]("tool", "a function, or an instance of ADK's BaseTool or BaseToolset")
#: What a run is started with.
MESSAGE: Final = Kind[types.Content](
    "message", "a text, a genai Content or Part, or a list of texts and Parts"
)


class ValueContext(Protocol):
    """What a rule for values is told."""

    @property
    def node(self) -> Placed | None:
        """Where the value was found, for error messages."""
        ...

    @property
    def injection(self) -> Injection:
        """The resources that functions may name."""
        ...


@dataclass(frozen=True, slots=True)
class At:
    """The least a rule for values needs to know.

    Attributes:
        node: Where the value was found.
        injection: The resources that functions may name.
    """

    node: Placed | None = None
    injection: Injection = NOTHING


NOWHERE: Final = At()

#: How each kind of value becomes ADK's; layers add rules of theirs.
values: Final[ValueTable[ValueContext]] = ValueTable(layers=INSTALLED)


def resolve_model(model: str | Ref | BaseLlm, cx: ValueContext = NOWHERE) -> BaseLlm:
    """The model that a name or reference stands for.

    Raises:
        UsageError: There is no such model, or it is no model.
    """
    return values(MODEL, model, cx)


def to_tool(tool: ToolSpec, cx: ValueContext = NOWHERE) -> Tool:
    """The ADK tool or toolset that a tool of an agent is.

    ADK's own objects are returned as they are.

    Raises:
        UsageError: It is no tool, or cannot ask for confirmation although it should.
    """
    return values(TOOL, tool, cx)


def to_content(message: object, cx: ValueContext = NOWHERE) -> types.Content:
    """A user's message as ADK takes it.

    Raises:
        UsageError: It is no message, or an empty one.
    """
    content = values(MESSAGE, message, cx)
    parts = content.parts or ()
    for at, part in enumerate(parts):
        _check_part(part, at, cx)
    if all(part.text is not None and not part.text.strip() for part in parts):
        raise UsageError("the message is empty", node=cx.node, help=f"give {MESSAGE.accepts}")
    return content


# --- models --------------------------------------------------------------------------------------


@values.rule(MODEL, BaseLlm)
def _model(model: BaseLlm, cx: ValueContext) -> BaseLlm:
    return model


@values.rule(MODEL, Ref)
def _model_ref(ref: Ref, cx: ValueContext) -> BaseLlm:
    return values(MODEL, ref.value, cx)


@values.rule(MODEL, Script)
def _model_script(script: Script, cx: ValueContext) -> BaseLlm:
    return ScriptedModel(script=script)


@values.rule(MODEL, str)
def _model_name(name: str, cx: ValueContext) -> BaseLlm:
    try:
        return LLMRegistry.new_llm(name)
    except ValueError as error:
        # ADK says which package a known family of models needs
        _, _, advice = str(error).partition("\n\n")
        raise UsageError(
            f"ADK knows no model {name!r}",
            node=cx.node,
            help=" ".join(advice.split()) or "check the name, or give an instance of ADK's BaseLlm",
        ) from error


# --- tools ---------------------------------------------------------------------------------------


@values.rule(TOOL, ToolSpec)
def _tool_spec(spec: ToolSpec, cx: ValueContext) -> Tool:
    tool, confirm = spec.tool.value, spec.require_confirmation
    if confirm is False:
        return values(TOOL, tool, cx)
    asks = confirm.value if isinstance(confirm, Ref) else confirm
    if type(tool) is FunctionTool:
        tool = tool.func
    if isinstance(tool, (BaseTool, BaseToolset)) or not callable(tool):
        raise UsageError(
            f"{type(tool).__qualname__} cannot be told to ask for confirmation",
            node=cx.node,
            found=f"tool {spec.name!r} with require_confirmation",
            help="confirmation works for functions; configure other tools with their own arguments",
        )
    return _function(tool, cx, require_confirmation=asks)


@values.rule(TOOL, BaseTool)
def _tool(tool: BaseTool, cx: ValueContext) -> Tool:
    return with_resources(tool, cx.injection, cx.node)


@values.rule(TOOL, BaseToolset)
def _toolset(toolset: BaseToolset, cx: ValueContext) -> Tool:
    return toolset


@values.rule(TOOL, object)
def _tool_function(tool: object, cx: ValueContext) -> Tool:
    if not callable(tool):
        raise UsageError(
            f"cannot use {type(tool).__qualname__} as a tool",
            node=cx.node,
            help=f"give {TOOL.accepts}"
            + ("; an agent becomes one by .agent_tool(...)" if isinstance(tool, BaseAgent) else ""),
        )
    return _function(tool, cx)


def _function(
    function: Callable[..., Any],
    cx: ValueContext,
    *,
    require_confirmation: bool | Callable[..., bool] = False,
) -> FunctionTool:
    if isinstance(function, type):
        raise UsageError(
            f"cannot use the class {function.__name__} as a tool",
            node=cx.node,
            help=f"give an instance: {function.__name__}(...)",
        )
    for name, kind in untellable(function, cx.injection.wanted(function)):
        raise UsageError(
            f"no model can be told of the parameter {name} of the tool {function.__name__}",
            node=cx.node,
            found=f"{name}: {kind.__name__}",
            help=f"take plain data, a dataclass or a pydantic model; a resource comes by "
            f".inject({name}=...)",
        )
    tool = as_function_tool(function, cx.injection, require_confirmation)
    if not hasattr(function, "__name__") or not tool.name.isidentifier():
        raise UsageError(
            "a function that is a tool needs a name the model can call it by",
            node=cx.node,
            found=f"{tool.name!r}",
            help="use a function made with def",
        )
    return tool


# --- messages ------------------------------------------------------------------------------------


def _check_part(part: types.Part, at: int, cx: ValueContext) -> None:
    """Refuse a part that every model refuses, or that no session can hold.

    Raises:
        UsageError: It is one.
    """
    what = "the message" if at == 0 else f"part {at} of the message"
    if (fault := text_fault(part.text or "")) is not None:
        raise UsageError(f"{what} {fault.says}", node=cx.node, help=fault.help)
    if (blob := part.inline_data) is not None and not (blob.data and blob.mime_type):
        raise UsageError(
            f"{what} has data {'of no type' if blob.data else 'that is empty'}",
            node=cx.node,
            found=f"mime_type {blob.mime_type!r}, {len(blob.data or b'')} bytes",
            help="give Part.from_bytes(data=..., mime_type='image/png')",
        )
    if part.function_call is not None:
        raise UsageError(
            f"{what} is a call of a function, which only a model can say",
            node=cx.node,
            found=f"a call of {part.function_call.name!r}",
            help="give the text that makes the model call it",
        )
    if all(getattr(part, name) is None for name in part.model_fields_set):
        raise UsageError(f"{what} is an empty Part", node=cx.node, help=f"give {MESSAGE.accepts}")


@values.rule(MESSAGE, str)
def _message_text(text: str, cx: ValueContext) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


@values.rule(MESSAGE, types.Content)
def _message_content(content: types.Content, cx: ValueContext) -> types.Content:
    if not content.parts:
        raise UsageError("the message is empty", node=cx.node, help="give it at least one part")
    return content if content.role else content.model_copy(update={"role": "user"})


@values.rule(MESSAGE, types.Part)
def _message_part(part: types.Part, cx: ValueContext) -> types.Content:
    return types.Content(role="user", parts=[part])


def _is_list(part: object) -> bool:
    return isinstance(part, list)


@values.rule(MESSAGE, list)
def _message_list(parts: list[Any], cx: ValueContext) -> types.Content:
    made: list[types.Part] = []
    for at, part in enumerate(parts):
        if _is_list(part) and any(map(_is_list, part)):
            raise UsageError(
                "a message is one flat list",
                node=cx.node,
                found=f"lists inside each other at position {at} of it",
                help="give its texts and Parts one after the other",
            )
        if isinstance(part, types.Content):
            raise UsageError(
                "a message is one turn of the user",
                node=cx.node,
                found=f"a Content at position {at} of a list",
                help="give the parts of it, or keep earlier turns in the session",
            )
        made.extend(values(MESSAGE, part, cx).parts or ())
    if not made:
        raise UsageError("the message is empty", node=cx.node, help=f"give {MESSAGE.accepts}")
    return types.Content(role="user", parts=made)


@values.rule(MESSAGE, bytes)
def _message_bytes(data: bytes, cx: ValueContext) -> types.Content:
    raise UsageError(
        "bytes alone do not say what they are",
        node=cx.node,
        help="give Part.from_bytes(data=..., mime_type='image/png') of google.genai.types",
    )
