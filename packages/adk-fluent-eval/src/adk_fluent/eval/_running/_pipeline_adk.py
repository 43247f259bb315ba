"""The pipeline of a suite, or a part of it, as an App of ADK."""

from __future__ import annotations

import asyncio
import dataclasses
import re
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk import agents
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.models.base_llm import BaseLlm
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset

from adk_fluent import ir
from adk_fluent.backends import adk
from adk_fluent.errors import AdkFluentError
from adk_fluent.eval._arguments import check_known
from adk_fluent.eval._errors import EvalError
from adk_fluent.extend import LOG, added_tools, describe, error_line

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable

    from google.adk.plugins.base_plugin import BasePlugin

    from adk_fluent.eval._cases._case import FluentCase
    from adk_fluent.protocol import PriceBook


try:
    from google.adk.workflow import BaseNode, Workflow
except ImportError:  # google-adk 1.x has no graphs
    BaseNode = Workflow = None

#: What a pipeline of ADK may be, beside an App.
_AGENTS: Final[tuple[Any, ...]] = (BaseAgent, *(() if BaseNode is None else (BaseNode,)))
_APP_NAME: Final = "adk_fluent_eval"
_CLOSING: Final = 10.0  # seconds to close a plugin or toolset
#: Nodes that are no steps.
_AROUND: Final = ir.AppNode | ir.MiddlewareNode | ir.ResourceNode
#: Agents whose tools are known; others may have any.
_TRANSPARENT: Final[tuple[type, ...]] = (
    LlmAgent,
    adk.FlowAgent,
    # by name, as google-adk 2.x deprecates them
    *(getattr(agents, name) for name in ("LoopAgent", "ParallelAgent", "SequentialAgent")),
    *(() if Workflow is None else (Workflow,)),
)
#: Tools that ADK adds by itself.
BUILT_IN: Final = frozenset({"transfer_to_agent", "set_model_response", "exit_loop", "finish_task"})


@dataclass(frozen=True, slots=True)
class Target:
    """What a case runs.

    Attributes:
        app: The App.
        steps: Names of agents and steps.
        tools: Names of the known tools.
        own_tools: Those whose calls are in the case's session, and not in one of an agent inside a
            tool.
        held_tools: Name of each tool of an agent to its objects.
        hidden: Names of agents inside tools that run without plugins, and so unobserved.
        hidden_tools: Names of their tools; "" for a toolset.
        foreign: Names of agents that may call models unseen, such as remote ones.
        open: Whether there may be other tools: of a toolset or a foreign agent, or of a middleware
            that does not declare them.
        models: Agent to the name of its model.
        prices: Prices that a middleware was given.
        closeable: Plugins and toolsets to close.
        identity: Plain data that is different for different pipelines.
    """

    app: App
    steps: frozenset[str]
    tools: frozenset[str]
    own_tools: frozenset[str]
    held_tools: dict[str, list[Any]]
    hidden: frozenset[str]
    hidden_tools: frozenset[str]
    foreign: frozenset[str]
    open: bool
    models: dict[str, str]
    prices: PriceBook | None
    closeable: list[BasePlugin | BaseToolset]
    identity: Any


class Targets:
    """The targets of a suite, each built once; a factory is called again for each run."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline
        self._built: dict[str | None, Target] = {}
        self._identities: dict[str | None, Any] = {}
        self._open: dict[int, BasePlugin | BaseToolset] = {}
        self._used: Counter[int] = Counter()
        is_made = isinstance(pipeline, (type, App, ir.Node, *_AGENTS)) or hasattr(pipeline, "to_ir")
        self._is_factory = callable(pipeline) and not is_made

    def of(self, case: FluentCase) -> Target:
        """Return the target of a case, for inspection."""
        part = case.target_node
        if part not in self._built:
            target = self._built[part] = self._build(case)
            self._identities.setdefault(part, target.identity)
        return self._built[part]

    def identity(self, case: FluentCase) -> Any:
        """Return plain data that is different for different targets, of which one was inspected."""
        return self._identities[case.target_node]

    @asynccontextmanager
    async def used(self, case: FluentCase) -> AsyncGenerator[Target]:
        """Give the target of one run of a case.

        What a factory made for it is closed after it, unless another run uses it, too.
        """
        target = self._for_run(case)
        held = {id(each): each for each in target.closeable}
        self._open |= held
        self._used.update(held.keys())
        try:
            yield target
        finally:
            self._used.subtract(held.keys())
            if self._is_factory:
                await _close_all([self._open.pop(each) for each in held if not self._used[each]])

    async def aclose(self) -> None:
        """Close the plugins and toolsets of all targets that were used."""
        await _close_all(self._open.values())
        self._open.clear()

    def _for_run(self, case: FluentCase) -> Target:
        if not self._is_factory:
            return self.of(case)
        # the one that was built for inspection is fresh, too
        return self._built.pop(case.target_node, None) or self._build(case, checked=True)

    def _build(self, case: FluentCase, *, checked: bool = False) -> Target:
        given = _call_factory(self._pipeline) if self._is_factory else self._pipeline
        if hasattr(given, "to_ir") and not isinstance(given, type):
            given = given.to_ir()
        if isinstance(given, ir.Node):
            return _target_of_ir(given, case, checked=checked)
        if isinstance(given, App):
            root = cast("Any", given.root_agent)
            return _inspect(given.model_copy(update={"root_agent": _agent_part(root, case)}))
        if isinstance(given, _AGENTS):
            root = _agent_part(given, case)
            name = re.sub(r"\W", "_", root.name)
            valid = name.isidentifier() and name != "user"
            return _inspect(App(name=name if valid else _APP_NAME, root_agent=root))
        made = "a builder, IR, an agent, Workflow or App of ADK"
        help = f"give {made}, or a function without arguments that returns one"
        raise EvalError("pipeline= cannot be run", found=describe(given), help=help)


async def _close_all(held: Iterable[BasePlugin | BaseToolset]) -> None:
    for each in list(held):
        try:
            async with asyncio.timeout(_CLOSING):
                await each.close()
        except Exception:  # noqa: BLE001  # user code; the results are kept
            LOG.exception("%r could not be closed after an evaluation", each)


def _call_factory(factory: Callable[[], Any]) -> Any:
    """Call a factory."""
    name = getattr(factory, "__name__", "factory")
    try:
        made = factory()
    except AdkFluentError:
        raise
    except Exception as error:
        found = f"{name}(): {error_line(error)}"
        help = "it is called without arguments"
        raise EvalError("the factory of the pipeline raised", found=found, help=help) from error
    if isinstance(made, Coroutine):
        cast("Coroutine[Any, Any, Any]", made).close()
        what = "the factory of the pipeline is async"
        help = f"write def {name}, and open async resources as a Resource of the pipeline"
        raise EvalError(what, found=f"async def {name}", help=help)
    return made


# --- inspection ----------------------------------------------------------------------------------


def agent_tree(root: Any, *, in_tools: bool = True) -> Iterator[Any]:
    """Yield agents and steps at and below one, those of graphs and inside tools included."""
    todo, seen = [root], set[int]()
    while todo:
        here = todo.pop(0)
        name = getattr(here, "name", None)
        if id(here) in seen or not isinstance(name, str) or name.startswith("__"):
            continue  # such as the start of a graph
        seen.add(id(here))
        yield here
        todo += getattr(here, "sub_agents", None) or ()
        if in_tools:
            todo += (tool.agent for tool in _tools(here) if isinstance(tool, AgentTool))
        todo += getattr(getattr(here, "graph", None), "nodes", None) or ()


def _tools(agent: Any) -> list[Any]:
    return list(getattr(agent, "tools", None) or ()) if isinstance(agent, LlmAgent) else []


def _tool_name(tool: Any) -> str | None:
    """A tool's name; None for a toolset."""
    if isinstance(tool, BaseTool):
        return tool.name
    return getattr(tool, "__name__", None) if callable(tool) else None


def _model_name(agent: LlmAgent) -> str:
    model = agent.model
    if isinstance(model, BaseLlm):
        return model.model
    try:
        return model or agent.canonical_model.model
    except (AdkFluentError, ValueError, AttributeError):
        return ""


def _middlewares(app: App, every: list[Any]) -> Iterator[Any]:
    """Yield what stands around an App and its parts."""
    for plugin in app.plugins:
        if isinstance(plugin, adk.MiddlewarePlugin):
            yield from plugin.stack
    for each in every:
        if isinstance(each, adk.FlowAgent):
            yield from each.plan.all_middlewares


def _inspect(app: App, identity: Any = None, steps: Iterable[str] = ()) -> Target:
    every = [*agent_tree(app.root_agent)]
    held = [tool for agent in every for tool in _tools(agent)]
    agent_tools = (tool for tool in held if isinstance(tool, AgentTool))
    unseen = (tool.agent for tool in agent_tools if not getattr(tool, "include_plugins", True))
    hidden = [each for agent in unseen for each in agent_tree(agent)]
    unknown = [each for each in every if not isinstance(each, _TRANSPARENT)]
    around = [*_middlewares(app, every)]
    added = [added_tools(each) for each in around]
    prices = [each for each in (getattr(made, "__prices__", None) for made in around) if each]
    own = {name for names in added for name in names or ()}
    outer = agent_tree(app.root_agent, in_tools=False)
    own |= {_tool_name(tool) or "" for each in outer for tool in _tools(each)}
    models = {each.name: _model_name(each) for each in every if isinstance(each, LlmAgent)}
    objects: dict[str | None, list[Any]] = {}
    for tool in held:
        objects.setdefault(_tool_name(tool), []).append(tool)
    return Target(
        app,
        steps=frozenset([*steps, *(each.name for each in every)]),
        tools=frozenset({*filter(None, objects), *own} - {""}),
        own_tools=frozenset(own - {""}),
        held_tools={name: each for name, each in objects.items() if name},
        hidden=_names(hidden),
        hidden_tools=frozenset(_tool_name(tool) or "" for each in hidden for tool in _tools(each)),
        foreign=_names(each for each in unknown if isinstance(each, BaseAgent)),
        open=bool(unknown) or None in added or None in objects,
        models=models,
        prices=prices[0] if prices else None,
        closeable=[*app.plugins, *(tool for tool in held if isinstance(tool, BaseToolset))],
        identity=[identity or [_identity(each) for each in every], models],
    )


def _names(agents: Iterable[Any]) -> frozenset[str]:
    return frozenset(each.name for each in agents)


def _identity(agent: Any) -> list[Any]:
    fields = ("name", "description", "instruction", "static_instruction", "output_key")
    held = [getattr(agent, each, None) for each in fields]
    tools = [getattr(tool, "func", None) or _tool_name(tool) for tool in _tools(agent)]
    return [type(agent).__qualname__, *held, *tools]


def _target_of_ir(node: ir.Node, case: FluentCase, *, checked: bool) -> Target:
    if case.target_node is not None:
        node = _node_part(node, case)
    config = None
    # the steps before a part are missing, so its reads cannot be checked; what a factory makes for
    # each run was checked once
    if checked or case.target_node is not None:
        execution = node.execution if isinstance(node, ir.AppNode) else None
        config = dataclasses.replace(execution or ir.ExecutionConfig(), contracts="off")
    steps = (each.name for each in ir.walk(node) if not isinstance(each, _AROUND))
    return _inspect(adk.to_app(node, config), ir.content_hash(node), steps)


# --- parts ---------------------------------------------------------------------------------------


def _node_part(root: ir.Node, case: FluentCase) -> ir.Node:
    """A part of a pipeline, with the middlewares and resources around it."""
    name = case.target_node or ""

    def names(node: ir.Node) -> list[str]:
        own = [] if isinstance(node, _AROUND) else [node.name]
        return [*own, *(each.name for each in _native(node))]

    known = {each for node in ir.walk(root) for each in names(node)}
    check_known([name], known, "the pipeline has no step", "steps", case.error)
    path = [root]
    while name not in names(path[-1]):
        below = path[-1].children
        path.append(next(each for each in below if ir.find(each, lambda node: name in names(node))))
    part = path.pop()
    if part.name != name:
        holder = cast("ir.AdkAgentNode", part)
        part = ir.AdkAgentNode(name, ir.Ref(_agent_part(holder.agent.value, case), name))
    for around in reversed(path):
        if isinstance(around, ir.MiddlewareNode):
            part = ir.replace(around, around.body, part)
        elif isinstance(around, ir.AppNode):
            part = ir.replace(around, around.root, part)
    return part


def _native(node: ir.Node) -> Iterator[Any]:
    """The agents of ADK that a node holds."""
    return agent_tree(node.agent.value if isinstance(node, ir.AdkAgentNode) else None)


def _agent_part(root: Any, case: FluentCase) -> Any:
    """The root, or a part of a tree of agents or a graph, as a root of its own."""
    name = case.target_node
    if name is None or root.name == name:
        return root
    every = {each.name: each for each in reversed([*agent_tree(root)])}  # the first of a name
    check_known([name], every, "the pipeline has no step", "steps", case.error)
    found = every[name]
    if isinstance(found, BaseAgent):
        mode = getattr(found, "mode", None)
        # ADK takes a step of a graph as a root only in these modes
        return found.clone(update=None if mode in {None, "chat", "task"} else {"mode": "chat"})
    from google.adk.workflow import START  # noqa: PLC0415  # of google-adk 2.x alone

    return cast("Any", Workflow)(name=f"only_{found.name}", edges=[(START, found)])
