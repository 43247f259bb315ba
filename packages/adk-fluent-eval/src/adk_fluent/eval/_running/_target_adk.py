"""What is run: whatever a suite is given as its pipeline, or a part of it, as an App of ADK's."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Coroutine
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk import agents
from google.adk.agents.base_agent import BaseAgent
from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App
from google.adk.tools.base_toolset import BaseToolset

from adk_fluent._words import describe
from adk_fluent.backends import adk
from adk_fluent.eval._errors import EvalError
from adk_fluent.eval._running._part_adk import part_of, sub_graph
from adk_fluent.eval._running._pipeline_adk import (
    hidden,
    model_name,
    steps,
    tool_name,
    tools_of,
    tree,
)
from adk_fluent.ir import (
    AppNode,
    ExecutionConfig,
    MiddlewareNode,
    Node,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from google.adk.plugins.base_plugin import BasePlugin

    from adk_fluent.eval._cases._case import FluentCase

try:
    from google.adk.workflow import BaseNode, Workflow
except ImportError:  # google-adk 1.x has no graphs
    BaseNode = Workflow = None

APP_NAME: Final = "adk_fluent_eval"
#: Agents whose tools can be seen; others, and nodes of graphs, may have any.
_SEEN: Final[tuple[type, ...]] = (
    LlmAgent,
    adk.FlowAgent,
    # by name, for google-adk 2.x says of them that it will have them no more some day
    *(getattr(agents, name) for name in ("LoopAgent", "ParallelAgent", "SequentialAgent")),
    *(() if Workflow is None else (Workflow,)),
)
#: Tools that ADK adds by itself.
_BUILT_IN: Final = frozenset({"transfer_to_agent", "set_model_response", "exit_loop"})


@dataclass(slots=True)
class Target:
    """Something to run.

    Attributes:
        app: The App, with the plugins that it brings.
        steps: Names of its agents and steps.
        tools: Names of the tools that are known before it runs.
        inner_tools: Those of them that are called in no session but that of an ``AgentTool``.
        has_inner: Whether there are agents inside of tools.
        hidden: Names of those that run without the plugins of whatever calls them.
        open: Whether it may have others: of a toolset, a middleware or somebody else's agent.
        models: Agent to the name of its model.
        toolsets: What it has to close beside its plugins.
        given: The whole pipeline of which it was made.
    """

    app: App
    steps: frozenset[str] = frozenset()
    tools: frozenset[str] = frozenset()
    inner_tools: frozenset[str] = frozenset()
    has_inner: bool = False
    hidden: frozenset[str] = frozenset()
    open: bool = False
    models: dict[str, str] = field(default_factory=dict[str, str])
    toolsets: Sequence[BaseToolset] = ()
    given: Any = None

    @property
    def own_tools(self) -> frozenset[str]:
        """The tools without those that ADK adds by itself."""
        return self.tools - _BUILT_IN

    def new_app(self, name: str, first: BasePlugin, plugins: Sequence[BasePlugin]) -> App:
        """The App under another name, with a plugin before its own and more after them.

        The first sees what others keep from those after them.
        """
        every = [first, *self.app.plugins, *plugins]
        return self.app.model_copy(update={"name": name, "plugins": every})


class Targets:
    """The targets of one suite, each made once.

    Args:
        pipeline: A builder, IR, an agent, a Workflow or an App of ADK's, or a function without
            arguments that makes one, for each run anew.
    """

    def __init__(self, pipeline: Any) -> None:
        self._pipeline = pipeline
        self._made: dict[str | None, Target] = {}
        self.is_factory: bool = _is_factory(pipeline)

    def of(self, case: FluentCase) -> Target:
        """What a case runs, to be looked at and, unless it is made for each run, to be run.

        Raises:
            EvalError: It is no pipeline, or has no such part.
        """
        part = case.target_node
        if part not in self._made:
            self._made[part] = self._new(case)
        return self._made[part]

    def _new(self, case: FluentCase, *, checked: bool = False) -> Target:
        """What a case runs, made anew; `checked` says that one such was looked at before.

        Raises:
            EvalError: It is no pipeline, or has no such part.
            Exception: What the function raised that makes it.
        """
        given = _made_by(self._pipeline) if self.is_factory else self._pipeline
        target = _target(given, case, checked=checked)
        target.given = given
        return target

    def for_run(self, case: FluentCase) -> Target:
        """What one run of a case runs."""
        if not self.is_factory:
            return self.of(case)
        # what was made to be looked at is as fresh as any other
        return self._made.pop(case.target_node, None) or self._new(case, checked=True)


def _is_factory(pipeline: Any) -> bool:
    """Whether something makes pipelines: builders cannot be called, and agents neither."""
    return (
        callable(pipeline)
        and not isinstance(pipeline, type)
        and not isinstance(pipeline, BaseAgent | App | Node)
        and not hasattr(pipeline, "to_ir")
        and not (BaseNode is not None and isinstance(pipeline, BaseNode))
    )


def _made_by(factory: Callable[[], Any]) -> Any:
    """What a function makes.

    Raises:
        EvalError: It takes arguments, or is async.
    """
    name = getattr(factory, "__name__", "make")
    try:
        signature(factory).bind()
    except TypeError as error:
        raise EvalError(
            "the function that makes the pipeline takes arguments",
            found=f"{name}(): {error}",
            help=f"pipeline=lambda: {name}(...)",
        ) from None
    except ValueError:  # nobody can tell what it takes
        pass
    made = factory()
    if isinstance(made, Coroutine):
        cast("Coroutine[Any, Any, Any]", made).close()  # or Python warns that nobody awaits it
        raise EvalError(
            "the function that makes the pipeline is async",
            found=f"async def {name}",
            help=f"write def {name}, and open what has to be awaited as a Resource of the pipeline",
        )
    return made


def _target(given: Any, case: FluentCase, *, checked: bool) -> Target:
    part = case.target_node
    if hasattr(given, "to_ir") and not isinstance(given, type):
        given = given.to_ir()
    if isinstance(given, Node):
        return _of_ir(given, case, checked=checked)
    if isinstance(given, App):
        root = cast("Any", given.root_agent)
        found = root if part is None else part_of(root, case)
        return _of_app(given.model_copy(update={"root_agent": found}))
    if isinstance(given, BaseAgent) or (BaseNode is not None and isinstance(given, BaseNode)):
        found = given if part is None else part_of(given, case)
        return _of_app(App(name=_app_name(found.name), root_agent=cast("Any", found)))
    raise EvalError(
        "a suite's pipeline is nothing that runs",
        found=describe(given),
        help="give a builder, IR, an agent, a Workflow or an App of ADK's, or a function without "
        "arguments that makes one",
    )


def _app_name(name: str) -> str:
    plain = re.sub(r"\W", "_", name)
    return APP_NAME if not plain.isidentifier() or plain == "user" else plain


# --- pipelines of adk-fluent ---------------------------------------------------------------------


def _of_ir(node: Node, case: FluentCase, *, checked: bool) -> Target:
    config = None
    if case.target_node is not None:
        node = sub_graph(node, case)
    # the case puts into state what steps before a part would have written; and what a function
    # makes for each run is checked once
    if checked or case.target_node is not None:
        execution = node.execution if isinstance(node, AppNode) else None
        config = dataclasses.replace(execution or ExecutionConfig(), contracts="off")
    made = _of_app(adk.to_app(node, config))
    made.steps |= {each.name for each in steps(node)}
    made.open = made.open or any(map(_may_bring_tools, walk(node)))
    return made


def _may_bring_tools(node: Node) -> bool:
    """Whether a node may bring tools that nobody can see before it runs."""
    match node:
        case AppNode(middlewares=stack) | MiddlewareNode(stack=stack):
            return bool(stack)
        case _:
            return False


# --- agents of ADK's -----------------------------------------------------------------------------


def _of_app(app: App) -> Target:
    every = list(tree(app.root_agent))
    alone = list(tree(app.root_agent, of_tools=False))
    names: set[str] = set()
    tools: set[str] = set(_BUILT_IN)
    models: dict[str, str] = {}
    toolsets: list[BaseToolset] = []
    is_open = False
    for each in every:
        names.add(each.name)
        is_open = is_open or not isinstance(each, _SEEN)
        if isinstance(each, LlmAgent):
            models[each.name] = model_name(each)
        for tool in tools_of(each):
            if isinstance(tool, BaseToolset):
                toolsets.append(tool)
            name = tool_name(tool)
            is_open = is_open or name is None
            tools.add(name or "")
    outer = {tool_name(tool) for each in alone for tool in tools_of(each)}
    return Target(
        app,
        frozenset(names),
        frozenset(tools - {""}),
        frozenset(tools - outer - _BUILT_IN - {""}),
        len(alone) < len(every),
        frozenset(hidden(every)),
        is_open,
        models,
        toolsets,
    )
