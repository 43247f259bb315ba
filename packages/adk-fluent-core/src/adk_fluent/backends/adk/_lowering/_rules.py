"""Core's rules of the target ``agents``: which ADK agent a leaf of the IR becomes.

How leaves are arranged is the flow engine's business and needs no rule.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.tools.agent_tool import AgentTool
from google.adk.version import __version__ as adk_version
from pydantic import ValidationError

from adk_fluent._scripts._script import Script
from adk_fluent._scripts._scripted_adk import ScriptedModel
from adk_fluent.backends._answers import answer_of
from adk_fluent.backends.adk._hooks._model_retry import tells_models
from adk_fluent.backends.adk._lowering._context import CompileContext, rules, tree
from adk_fluent.backends.adk._lowering._fields import check_known
from adk_fluent.backends.adk._lowering._injecting import handed
from adk_fluent.backends.adk._lowering._values import TOOL
from adk_fluent.backends.adk._running._retrying import Reading, read
from adk_fluent.errors import UnsupportedNodeError, UsageError
from adk_fluent.ir import AdkAgentNode, AgentNode, Ref, StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.adk.models.base_llm import BaseLlm

    from adk_fluent._scripts._replies import Asked
    from adk_fluent.backends._answers import Answer
    from adk_fluent.ir import Node

__all__ = ["rules"]  # the table of the context, once core's rules are in it

#: What to do where ADK refuses a schema.
_SCHEMAS: Final = {
    "input_schema": "give a pydantic model as the type of its input",
    "output_schema": "give a pydantic model as the type of its answer, or upgrade google-adk, "
    "of which newer versions take other types",
}


_READING: Final = " reading"  # beside the names of ADK's fields
#: Any model that an agent may take over from the one above it, when that is not yet known.
_INHERITED: Final = "gemini-2.5-flash"


@rules.rule(AgentNode)
def _agent(node: AgentNode, children: tuple[BaseAgent, ...], cx: CompileContext) -> BaseAgent:
    fields = _fields(node, children, cx)
    check_known(node, fields.keys() - {_READING})
    reading = fields.pop(_READING, None)
    try:
        agent = LlmAgent(**fields)
    except ValidationError as error:
        faults = [(".".join(map(str, e["loc"])), e["msg"]) for e in error.errors()]
        helps = [_SCHEMAS[field] for field, _ in faults if field in _SCHEMAS]
        raise UsageError(
            f"ADK refuses the agent {node.name!r}",
            node=node,
            found="; ".join(f"{field}: {says}" for field, says in faults),
            help="; ".join(helps) or None,
        ) from error
    if reading is not None:
        read(agent, reading)
    if fields.get("tools"):
        if agent.output_schema is not None:
            _check_answer(agent, agent.output_schema, node)
        tells_models(agent)
    return agent


def _fields(node: AgentNode, children: tuple[BaseAgent, ...], cx: CompileContext) -> dict[str, Any]:
    """What the user set and nothing else, so that ADK's defaults stay ADK's."""
    fields: dict[str, Any] = {"name": cx.name_of(node)}
    model = _model(node, cx)
    if model is not None:
        fields["model"] = model
    for name in ("description", "instruction", "static_instruction"):
        if (value := getattr(node, name)) is not None:
            fields[name] = _value(value)
    if callable(fields.get("instruction")):
        fields["instruction"] = handed(fields["instruction"], cx.injection)
    if node.input_schema is not None:
        fields["input_schema"] = node.input_schema.value
    count = len(node.agent_tools)
    tools = [cx.value(TOOL, spec) for spec in node.tools]
    tools.extend(AgentTool(agent) for agent in children[:count])
    if tools:
        fields["tools"] = tools
    if children[count:]:
        fields["sub_agents"] = list(children[count:])
    fields.update(_output(node, cx))
    for name, refs in node.callbacks:
        functions = [handed(ref.value, cx.injection) for ref in refs]
        fields[f"{name}_callback"] = functions[0] if len(functions) == 1 else functions
    for name, value in node.settings:
        fields[name] = _value(value)
    return fields


@rules.rule(AdkAgentNode)
def _adk_agent(
    node: AdkAgentNode, children: tuple[BaseAgent, ...], cx: CompileContext
) -> BaseAgent:
    """A copy of somebody's agent: one agent can stand in one tree only."""
    agent = node.agent.value
    if not isinstance(agent, BaseAgent):
        raise UsageError(
            f"a {type(agent).__qualname__} is no ADK agent",
            node=node,
            help="give an instance of ADK's BaseAgent, such as LlmAgent(...)",
        )
    copy = agent.clone()
    name = cx.name_of(node)
    if copy.name != name:
        copy.name = name
    tells_models(copy)
    for each in tree([copy]):
        if not isinstance(each, LlmAgent) or (answer := _own_answer(each, node)) is None:
            continue
        each.output_key = None
        if each is copy and not cx.alone:
            cx.answers[name] = answer
        else:
            read(each, Reading(answer, 0, writes=True))
    return copy


def _own_answer(agent: LlmAgent, node: Node) -> Answer | None:
    """How a typed answer of somebody's agent is read, which ADK would validate at once.

    It would take for one what is said while a long-running tool has no result yet.
    """
    schema: Any = agent.output_schema
    if schema is None or not agent.output_key:
        return None
    if getattr(agent, "mode", None) == "task":  # its answer is what it calls a tool with
        return None
    typed = AgentNode(
        agent.name,
        output_schema=Ref.to(schema),
        writes_keys=(StateFieldRef(agent.output_key),),
        location=node.location,
    )
    answer = answer_of(typed)
    return answer if answer is not None and answer.is_typed else None


def _value(value: Any) -> Any:
    return value.value if isinstance(value, Ref) else value


def _model(node: AgentNode, cx: CompileContext) -> Any:
    """The agent's own, or a name; None leaves it to the agent above, and then to ADK."""
    if node.mock is not None:
        return ScriptedModel(script=_script(node.mock.value))
    model = node.model
    if model is None:
        model = None if cx.inherits else cx.config.default_model
    return None if model is None else cx.model(model)


def _script(mock: Any) -> Script:
    return Script(default=_ByPrompt(mock)) if callable(mock) else Script.of(mock)


class _ByPrompt:
    """A function of the prompt as a function of all that a script is told."""

    def __init__(self, mock: Callable[[str], Any]) -> None:
        self._mock = mock

    def __call__(self, asked: Asked) -> Any:
        return self._mock(asked.prompt)


def _check_answer(agent: LlmAgent, schema: Any, node: AgentNode) -> None:
    """Refuse a type of answer that ADK cannot tell a model of which it wants tool calls, too.

    It offers the answer as one more tool then, unless the model takes tools and a schema at once;
    what 1.x can say of a tool's arguments has its limits.

    Raises:
        UnsupportedNodeError: Every call of the model would fail.
    """
    # few agents need it
    from google.adk.tools.set_model_response_tool import SetModelResponseTool

    try:
        SetModelResponseTool(schema)._get_declaration()  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]  # as ADK asks it
    except Exception as error:
        if _takes_both(agent.model or _INHERITED):
            return
        raise UnsupportedNodeError(
            f"google-adk {adk_version} cannot ask {node.name!r} for an answer of this type, "
            "since it has tools",
            node=node,
            found=f"{type(error).__name__}: {str(error).partition(chr(10))[0]}",
            help="let another agent have the tools, make the type simpler, or upgrade google-adk",
        ) from error


def _takes_both(model: str | BaseLlm) -> bool:
    """Whether a model takes tools and a schema at once."""
    from google.adk.utils import output_schema_utils

    with warnings.catch_warnings():  # what 2.x has instead is only in 2.x
        warnings.simplefilter("ignore", DeprecationWarning)
        return output_schema_utils.can_use_output_schema_with_tools(model)  # pyright: ignore[reportDeprecated]  # the same


def _output(node: AgentNode, cx: CompileContext) -> dict[str, Any]:
    """The form of an agent's answer, and where it goes.

    Raises:
        UnsupportedNodeError: ADK runs it by itself, and cannot write what it declares.
    """
    answer = answer_of(node)
    if answer is None:
        return {}
    fields: dict[str, Any] = {}
    alone = cx.alone and answer.is_typed
    if node.output_retries or alone:
        fields[_READING] = Reading(answer, node.output_retries, writes=cx.alone)
    if answer.schema is not None:
        fields["output_schema"] = answer.schema
    if not cx.alone:
        cx.answers[node.name] = answer
        key = answer.text_key  # data is written when it has been validated, by us
    elif node.writes_keys and answer.whole_key is None:
        raise UnsupportedNodeError(
            f"{node.name} writes several keys, or one that is no text, and ADK runs it by itself",
            node=node,
            found=", ".join(repr(ref.key) for ref in node.writes_keys),
            help="a delegate or an agent that is a tool writes one str key (ADK's output_key); "
            "or make it a step of the pipeline",
        )
    else:  # what is read here is written here, too
        key = None if alone else answer.whole_key
    if key is not None:
        fields["output_key"] = key
    return fields
