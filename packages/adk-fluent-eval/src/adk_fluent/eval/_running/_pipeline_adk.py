"""The pipeline of a suite, or a part of it, as an App of ADK."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from inspect import signature
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
from adk_fluent.eval._text import error_line
from adk_fluent.extend import added_tools, describe

if TYPE_CHECKING:
    from google.adk.plugins.base_plugin import BasePlugin

    from adk_fluent.eval._cases._case import FluentCase


try:
    from google.adk.workflow import BaseNode, Workflow
except ImportError:  # google-adk 1.x has no graphs
    BaseNode = Workflow = None

#: What a pipeline of ADK may be, beside an App.
_AGENTS: Final[tuple[Any, ...]] = (BaseAgent, *(() if BaseNode is None else (BaseNode,)))
_APP_NAME: Final = "adk_fluent_eval"
#: Agents whose tools are known; others may have any.
_TRANSPARENT: Final[tuple[type, ...]] = (
    LlmAgent,
    adk.FlowAgent,
    # by name, as google-adk 2.x deprecates them
    *(getattr(agents, name) for name in ("LoopAgent", "ParallelAgent", "SequentialAgent")),
    *(() if Workflow is None else (Workflow,)),
)
#: Tools that ADK adds by itself.
_BUILT_IN: Final = frozenset(
    {"transfer_to_agent", "set_model_response", "exit_loop", "finish_task"}
)


@dataclass(slots=True)
class Target:
    """What a case runs.

    Attributes:
        app: The App.
        steps: Names of agents and steps.
        tools: Name of each known tool to its objects.
        inner_tools: Names of tools that only agents inside tools call.
        hidden: Names of agents inside tools that run without plugins, and so unobserved.
        hidden_tools: Names of their tools.
        inner: Names of all agents inside tools.
        foreign: Names of agents that may call models unseen, such as remote ones.
        open: Whether there may be other tools: of a toolset or a foreign agent, or of a middleware
            that does not declare them.
        models: Agent to the name of its model.
        closeable: Plugins and toolsets to close.
        identity: Plain data that is different for different pipelines.
    """

    app: App
    steps: set[str] = field(default_factory=set[str])
    tools: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    inner_tools: set[str] = field(default_factory=set[str])
    hidden: set[str] = field(default_factory=set[str])
    hidden_tools: set[str] = field(default_factory=set[str])
    inner: set[str] = field(default_factory=set[str])
    foreign: set[str] = field(default_factory=set[str])
    open: bool = False
    models: dict[str, str] = field(default_factory=dict[str, str])
    closeable: list[BasePlugin | BaseToolset] = field(
        default_factory=list["BasePlugin | BaseToolset"]
    )
    identity: Any = None

    def knows_tool(self, name: str) -> bool:
        """Whether a tool of this name may be called."""
        return self.open or name in self.tools or name in _BUILT_IN


class Targets:
    """The targets of a suite, each built once; a factory is called again for each run."""

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline
        self._built: dict[str | None, Target] = {}
        self._identities: dict[str | None, Any] = {}
        is_made = isinstance(pipeline, (type, App, ir.Node, *_AGENTS)) or hasattr(pipeline, "to_ir")
        self.is_factory: bool = callable(pipeline) and not is_made

    def of(self, case: FluentCase) -> Target:
        """Return the target of a case, for inspection."""
        part = case.target_node
        if part not in self._built:
            self._built[part] = self._build(case)
        return self._built[part]

    def identity(self, case: FluentCase) -> Any:
        """Return plain data that is different for different targets."""
        part = case.target_node
        if part not in self._identities:
            target = self.of(case)
            self._identities[part] = [target.identity, target.models]
        return self._identities[part]

    def for_run(self, case: FluentCase) -> Target:
        """Return the target of one run of a case."""
        if not self.is_factory:
            return self.of(case)
        # the one that was built for inspection is fresh, too
        return self._built.pop(case.target_node, None) or self._build(case, checked=True)

    def _build(self, case: FluentCase, *, checked: bool = False) -> Target:
        given = _call_factory(self._pipeline) if self.is_factory else self._pipeline
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


def _call_factory(factory: Callable[[], Any]) -> Any:
    """Call a factory."""
    name = getattr(factory, "__name__", "factory")
    try:
        signature(factory).bind()
    except TypeError as error:
        what = "the factory of the pipeline takes arguments"
        help = f"pipeline=lambda: {name}(...)"
        raise EvalError(what, found=f"{name}(): {error}", help=help) from None
    except ValueError:  # a builtin without a signature
        pass
    try:
        made = factory()
    except AdkFluentError:
        raise
    except Exception as error:
        found = f"{name}(): {error_line(error)}"
        raise EvalError("the factory of the pipeline raised", found=found) from error
    if isinstance(made, Coroutine):
        cast("Coroutine[Any, Any, Any]", made).close()
        what = "the factory of the pipeline is async"
        help = f"write def {name}, and open async resources as a Resource of the pipeline"
        raise EvalError(what, found=f"async def {name}", help=help)
    return made


# --- inspection ----------------------------------------------------------------------------------


def agent_tree(root: Any) -> Iterator[Any]:
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


def _middlewares(app: App) -> Iterator[Any]:
    """Yield what stands around an App and its parts."""
    for plugin in app.plugins:
        if isinstance(plugin, adk.MiddlewarePlugin):
            yield from plugin.stack
    for each in agent_tree(app.root_agent):
        if isinstance(each, adk.FlowAgent):
            yield from each.plan.all_middlewares


def _inspect(app: App) -> Target:
    target = Target(app, closeable=[*app.plugins])
    inner: list[Any] = []
    outer_tools: set[str | None] = set()
    for each in _middlewares(app):
        added = added_tools(each)
        target.open = target.open or added is None
        target.tools.update((name, []) for name in added or ())
        outer_tools |= {*target.tools}
    for each in agent_tree(app.root_agent):
        target.steps.add(each.name)
        if not isinstance(each, _TRANSPARENT):
            target.open = True
            target.foreign |= {each.name} if isinstance(each, BaseAgent) else set()
        if isinstance(each, LlmAgent):
            target.models[each.name] = _model_name(each)
        for tool in _tools(each):
            if isinstance(tool, BaseToolset):
                target.closeable.append(tool)
            name = _tool_name(tool)
            target.open = target.open or name is None
            target.tools.setdefault(name or "", []).append(tool)
            if isinstance(tool, AgentTool):
                below = list(agent_tree(tool.agent))
                inner += below
                target.inner |= {agent.name for agent in below}
                if not getattr(tool, "include_plugins", True):
                    target.hidden |= {agent.name for agent in below}
                    names = (_tool_name(held) for agent in below for held in _tools(agent))
                    target.hidden_tools |= {held or "" for held in names}
    target.identity = [_identity(each) for each in agent_tree(app.root_agent)]
    target.tools.pop("", None)
    for each in agent_tree(app.root_agent):
        if not any(each is other for other in inner):
            outer_tools |= {_tool_name(tool) for tool in _tools(each)}
    target.inner_tools = {*target.tools} - outer_tools
    return target


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
    target = _inspect(adk.to_app(node, config))
    target.steps |= {each.name for each in _steps(node)}
    target.identity = ir.content_hash(node)
    return target


# --- parts ---------------------------------------------------------------------------------------


def _steps(root: ir.Node) -> Iterator[ir.Node]:
    return (each for each in ir.walk(root) if not isinstance(each, ir.ResourceNode))


def _node_part(root: ir.Node, case: FluentCase) -> ir.Node:
    """A part of a pipeline, with the middlewares and resources around it."""
    name = case.target_node or ""
    known = {each.name for node in _steps(root) for each in (node, *_native(node))}
    check_known([name], known, "the pipeline has no step", "steps", case.error)
    if path := _path_to(root, lambda node: node.name == name):
        part = path[-1]
    else:
        path = _path_to(root, lambda node: any(each.name == name for each in _native(node)))
        holder = cast("ir.AdkAgentNode", path[-1])
        part = ir.AdkAgentNode(name, ir.Ref(_agent_part(holder.agent.value, case), name))
    for around in reversed(path[:-1]):
        if isinstance(around, ir.MiddlewareNode):
            part = ir.replace(around, around.body, part)
        elif isinstance(around, ir.AppNode):
            part = ir.replace(around, around.root, part)
    return part


def _path_to(root: ir.Node, accepts: Callable[[ir.Node], bool]) -> list[ir.Node]:
    """The nodes from the root to the first step that is accepted; empty if none is."""

    def found(node: ir.Node) -> bool:
        around = ir.AppNode | ir.MiddlewareNode | ir.ResourceNode
        return not isinstance(node, around) and accepts(node)

    if ir.find(root, found) is None:
        return []
    path = [root]
    while not found(path[-1]):
        path.append(next(each for each in path[-1].children if ir.find(each, found)))
    return path


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
