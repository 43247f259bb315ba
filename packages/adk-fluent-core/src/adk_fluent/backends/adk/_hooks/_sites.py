"""Call sites: models, tools and agents whose calls pass through the middlewares of the run.

A site is the very object with its class replaced by a subclass of the same name, so whatever asks
for its type, its fields or its name is told the same as before. Where no chain is active a call
goes straight on. Compiling makes sites of copies only.
"""

from __future__ import annotations

import copy
import operator
import types
import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar, cast

from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool

from adk_fluent.backends.adk._hooks._agents import is_flow, run_agent
from adk_fluent.backends.adk._hooks._calls import SITE, call_tool, generate
from adk_fluent.backends.adk._hooks._line import connected
from adk_fluent.backends.adk._hooks._siblings import note_call

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

T = TypeVar("T", bound=BaseLlm | BaseTool | BaseAgent)


def make_site(obj: T) -> T:
    """Make an object a call site, if it is none yet."""
    if not is_site(obj):
        object.__setattr__(obj, "__class__", _site_class(type(obj)))
    return obj


def is_site(obj: object) -> bool:
    """Whether calls of an object, or runs of an agent, pass through middlewares."""
    return SITE in type(obj).__dict__


@cache
def _site_class(kind: Any) -> Any:
    body: dict[str, Any] = {
        SITE: kind,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__doc__": kind.__doc__,
        "__reduce_ex__": _reduce,
        "__copy__": _copy,
        "__deepcopy__": _deepcopy,
        **_calls_of(kind),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pydantic's, about names the model has of its own
        return types.new_class(kind.__name__, (kind,), exec_body=lambda space: space.update(body))


def _calls_of(kind: Any) -> dict[str, Any]:
    if issubclass(kind, BaseLlm):
        return _model(kind)
    return _agent(kind) if issubclass(kind, BaseAgent) else _tool(kind)


def _model(kind: type[BaseLlm]) -> dict[str, Any]:
    def generate_content_async(
        self: BaseLlm, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        original = kind.generate_content_async  # now: others may have put theirs in its place
        return generate(original, self, llm_request, stream)

    def connect(self: BaseLlm, llm_request: LlmRequest) -> Any:
        return connected(kind.connect, self, llm_request, make_site)

    return {"generate_content_async": generate_content_async, "connect": connect}


def _tool(kind: Any) -> dict[str, Any]:
    async def run_async(self: BaseTool, *, args: dict[str, Any], tool_context: Any) -> Any:
        note_call(tool_context)
        return await call_tool(kind.run_async, self, args, tool_context)

    return {"run_async": run_async}


def _agent(kind: Any) -> dict[str, Any]:
    def run_async(
        self: BaseAgent, parent_context: InvocationContext
    ) -> AsyncGenerator[Event, None]:
        return run_agent(kind.run_async, self, parent_context)

    return {"run_async": run_async}


# --- copies --------------------------------------------------------------------------------------


def _kind(site: Any) -> Any:
    return getattr(cast("type[Any]", type(site)), SITE)


def _reduce(self: Any, protocol: Any) -> Any:
    """Pickled as what it was: whoever loads it need not have this library."""
    kind, site = _kind(self), cast("type[Any]", type(self))
    make, args, *rest = kind.__reduce_ex__(self, protocol)
    plain = tuple(kind if each is site else each for each in args)
    if make is site:
        return (kind, plain, *rest)
    # not `make` itself: pickle compares what copyreg.__newobj__ is given with the object's class
    return (operator.call, (make, *plain), *rest)


def _copy(self: Any) -> Any:
    own = getattr(_kind(self), "__copy__", None)
    return make_site(_remade(self, None) if own is None else own(self))


def _deepcopy(self: Any, memo: dict[int, Any] | None = None) -> Any:
    memo = {} if memo is None else memo
    own = getattr(_kind(self), "__deepcopy__", None)
    return make_site(_remade(self, memo) if own is None else own(self, memo))


def _remade(self: Any, memo: dict[int, Any] | None) -> Any:
    """What `copy` does with an object that has nothing to say about it."""
    make, args, *rest = self.__reduce_ex__(4)
    made: Any = make(*(args if memo is None else copy.deepcopy(args, memo)))
    state: Any = rest[0] if rest else None
    if memo is not None:
        memo[id(self)] = made
        state = copy.deepcopy(state, memo)
    if hasattr(made, "__setstate__"):
        made.__setstate__(state)
    elif isinstance(state, dict):
        made.__dict__.update(state)
    elif state is not None:  # an object with slots
        fields, slots = state
        made.__dict__.update(fields or {})
        for name, value in slots.items():
            setattr(made, name, value)
    return made


# --- installing ----------------------------------------------------------------------------------


def install_sites(root: BaseAgent) -> None:
    """Make copies of all models and tools below a root agent, and sites of these and its agents.

    What is only known when it runs (tools of toolsets, functions in somebody else's agent) the
    plugin makes a site of when it meets it.
    """
    copies: dict[int, tuple[Any, Any]] = {}  # keeps the originals, so that their ids stay theirs
    todo = list(root.sub_agents)
    while todo:
        agent = todo.pop()
        todo.extend(agent.sub_agents)
        if not is_flow(agent):
            make_site(agent)
        if not isinstance(agent, LlmAgent):
            continue
        if agent.model or not isinstance(agent.parent_agent, LlmAgent):  # else it takes that one's
            agent.model = _sited(agent.canonical_model, copies)
        given: list[Any] = getattr(agent, "tools")  # noqa: B009  # half typed by ADK
        tools = [_sited(each, copies) if isinstance(each, BaseTool) else each for each in given]
        todo.extend(make_site(tool.agent) for tool in tools if isinstance(tool, AgentTool))
        agent.tools = tools


def call_site(called: BaseTool | LlmAgent) -> None:
    """Route the calls of a tool, or of an agent's model, through middlewares and stand-ins.

    The object stays itself: its class becomes a subclass of the same name. A model that the agent
    has by name becomes the object which ADK makes of that. A plugin's `before_tool_callback` gets
    the tool, and its `before_agent_callback` the agent, that ADK is about to call.

    Args:
        called: The tool, with the agents that it runs, or the agent; what is a call site already
            stays as it is.
    """
    if isinstance(called, LlmAgent):
        if isinstance(called.model, BaseLlm):
            make_site(called.model)
        elif called.model or not isinstance(called.parent_agent, LlmAgent):  # else that one's
            called.model = make_site(called.canonical_model)
        else:
            call_site(called.parent_agent)
        return
    make_site(called)
    if isinstance(called, AgentTool):
        todo = [make_site(called.agent)]
        while todo:
            todo.extend(make_site(each) for each in todo.pop().sub_agents if not is_flow(each))


def _sited(original: Any, copies: dict[int, tuple[Any, Any]]) -> Any:
    if is_site(original):
        return original
    if id(original) not in copies:
        made: Any = original.model_copy() if isinstance(original, BaseLlm) else copy.copy(original)
        if isinstance(made, AgentTool):
            made.agent = made.agent.clone()
        copies[id(original)] = (original, make_site(made))
    return copies[id(original)][1]
