"""From IR to ADK: passes over the IR, then the agents, then the root that runs them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from google.adk.agents.llm_agent import LlmAgent
from google.adk.apps.app import App, ResumabilityConfig
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.version import __version__ as adk_version
from pydantic import ValidationError

from adk_fluent._middlewares import made_middleware, middlewares_everywhere
from adk_fluent._registry import INSTALLED
from adk_fluent._words import describe
from adk_fluent.backends._boundaries import check_boundaries
from adk_fluent.backends._contracts import hold
from adk_fluent.backends._remotes import with_fallbacks
from adk_fluent.backends._resources import NOTHING, Injection
from adk_fluent.backends._tables import PassList
from adk_fluent.backends.adk._caps import CAPS
from adk_fluent.backends.adk._config import check_config
from adk_fluent.backends.adk._hooks._plugin import MiddlewarePlugin
from adk_fluent.backends.adk._hooks._sites import install_sites
from adk_fluent.backends.adk._lowering._context import CompileContext, nesting, tree
from adk_fluent.backends.adk._lowering._toolsets import in_use, toolsets_of
from adk_fluent.backends.adk._lowering._values import MODEL
from adk_fluent.backends.adk._running._live import check_live
from adk_fluent.backends.adk._running._plan import Plan
from adk_fluent.backends.adk._running._root import FlowAgent
from adk_fluent.backends.adk._session._compaction import compaction_config
from adk_fluent.errors import (
    UnknownNameError,
    UnsupportedConfigError,
    UsageError,
)
from adk_fluent.ir import AppNode, ExecutionConfig, why_reserved

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from contextlib import AbstractAsyncContextManager

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.models.base_llm import BaseLlm

    from adk_fluent.ir import Node

#: Rewrites of the IR before it is compiled; open to layers (slot ``passes``).
passes: Final[PassList[CompileContext]] = PassList("passes", INSTALLED)

_SETTINGS: Final = frozenset(App.model_fields) - {"name", "root_agent", "plugins"}


class Compiled:
    """A pipeline compiled to ADK.

    Attributes:
        node: The IR it was compiled from.
        config: How it runs.
        root: ADK's root agent.
    """

    __slots__ = ("__weakref__", "_app", "_settings", "_toolsets", "config", "node", "root")

    def __init__(
        self, node: Node, config: ExecutionConfig, root: FlowAgent, settings: dict[str, Any]
    ) -> None:
        self.node: Node = node
        self.config: ExecutionConfig = config
        self.root: FlowAgent = root
        self._settings = settings
        self._app: App | None = None
        self._toolsets = toolsets_of([root])

    @property
    def app(self) -> App:
        """The App without plugins of the user's; always the same one."""
        if self._app is None:
            self._app = self.to_app()
        return self._app

    @property
    def plugins(self) -> list[BasePlugin]:
        """The plugins of the App."""
        return self.app.plugins

    @property
    def resumable_app(self) -> App:
        """The same App, of which a run can be gone on with that nobody says anything to."""
        if self.config.resumable:
            return self.app
        config = ResumabilityConfig(is_resumable=True)
        return self.app.model_copy(update={"resumability_config": config})

    def in_use(self) -> AbstractAsyncContextManager[None]:
        """While a run lasts that was started here; see `in_use` of toolsets."""
        return in_use(self._toolsets, ours=True)

    def _plugins(self) -> list[BasePlugin]:
        plan = self.root.plan
        if not plan.needs_plugin:
            return []
        plugin = MiddlewarePlugin(stack=plan.middlewares)
        plugin.will_close(plan.all_middlewares)
        return [plugin]

    def to_app(self, plugins: Sequence[BasePlugin] = ()) -> App:
        """An App around the root agent.

        Args:
            plugins: The user's own plugins, in order.

        Raises:
            UsageError: ADK refuses its name or settings, one of them is no plugin, or two have the
                same name.
        """
        _check_plugins(plugins)
        every = [*self._plugins(), *plugins]
        _check_names(every)
        fields = dict(self._settings)
        if self.config.compaction is not None:
            model = _summary_model(self.config, self.root)
            fields["events_compaction_config"] = compaction_config(self.config.compaction, model)
        if self.config.resumable:  # lets `run_async(invocation_id=...)` in
            fields["resumability_config"] = ResumabilityConfig(is_resumable=True)
        name = self.config.app_name
        try:
            return App(name=name, root_agent=self.root, plugins=every, **fields)
        except ValidationError as error:
            reasons = "; ".join(each["msg"] for each in error.errors())
            raise UsageError(
                f"ADK refuses the app {name!r}", node=self.node, found=reasons
            ) from error


def _check_plugins(plugins: Any) -> None:
    wrong: list[Any] = [plugins]
    if isinstance(plugins, list | tuple):
        wrong = [each for each in cast("list[Any]", plugins) if not isinstance(each, BasePlugin)]
    if wrong:
        raise UsageError(
            "plugins= takes a list of ADK plugins",
            found=describe(wrong[0]),
            help="such as [LoggingPlugin()], instances of BasePlugin",
        )


def _check_names(plugins: Sequence[BasePlugin]) -> None:
    """Refuse what each run would fail with: a Runner of ADK's has one plugin of a name."""
    names = [each.name for each in plugins]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two plugins are called {name!r}", help="give one another name")


def compile_ir(
    node: Node,
    config: ExecutionConfig | None = None,
    *,
    standalone: bool = False,
    segment: str | None = None,
    beside: Collection[str] = (),
) -> Compiled:
    """Compile a pipeline.

    Args:
        node: The pipeline.
        config: How it runs; None is the configuration of its `AppNode`, or the default.
        standalone: The root agent will run without the App that belongs to it.
        segment: The segment whose steps its runs do; None does all.
        beside: Segments whose steps they do, too, in branches that run at the same time.

    Raises:
        UsageError: A field of the configuration holds a value that has no meaning.
        UnsupportedConfigError: A field of the configuration has no effect in this version.
        MissingLayerError: A layer that a node needs is not installed.
        UnsupportedNodeError: There is no rule for a node, or nobody holds its execution boundary.
        BuildError: Something in the pipeline cannot be.
        ContractError: It is proven that its runs fail; see `ExecutionConfig.contracts`.
    """
    settings: dict[str, Any] = {}
    root, injection, stack = node, NOTHING, tuple[Any, ...]()
    if isinstance(node, AppNode):
        stack = tuple(made_middleware(each, node) for each in node.middlewares)
        root, settings = node.root, _settings(node, standalone=standalone)
        injection = Injection(node.resources)
        config = config or node.execution
    config = config or ExecutionConfig()
    if segment is not None:  # the run is to go on elsewhere
        config = replace(config, resumable=True)
    check_config(config)
    cx = CompileContext(config, injection)
    description = root.description
    root = passes(with_fallbacks(root), cx)
    check_boundaries(node.replace(root=root) if isinstance(node, AppNode) else root)
    agents = cx.agents(root)
    configured = (made_middleware(each, node) for each in config.middlewares)
    middlewares = (*stack, *configured, *cx.middlewares, *middlewares_everywhere())
    name = _root_name(root.name, {agent.name for agent in tree(agents)})
    resources = list(cx.resources)
    if toolsets := toolsets_of(agents):  # for runs that somebody else's Runner does
        resources.append(lambda _: in_use(toolsets, ours=False))
    plan = Plan(
        root,
        config,
        nodes=cx.nodes,
        resources=tuple(resources),
        closers=tuple(cx.closers),
        middlewares=middlewares,
        nesting=nesting(agents),
        injection=injection,
        answers=cx.answers,
        opens=True,
        limit=config.timeout_seconds,
        segment=segment,
        beside=beside,
    )
    agent = FlowAgent(name=name, description=description or "", plan=plan, sub_agents=agents)
    if config.streaming_mode == "bidi":
        check_live(agent)
    if middlewares or plan.scopes:
        install_sites(agent)
    if standalone and config.compaction is not None:
        if not CAPS.sliding_window:
            raise UnsupportedConfigError(
                f"google-adk {adk_version} summarises events only under an App of its own",
                field="compaction",
                brings="an App",
                help="export the App: app = pipeline.to_app(...)",
            )
        plan.compaction = compaction_config(config.compaction, _summary_model(config, agent))
    hold(node, config)
    return Compiled(node, config, agent, settings)


def _root_name(name: str, taken: set[str]) -> str:
    """A name for the root agent that ADK takes and no other agent has."""
    base = re.sub(r"\W", "_", name)
    if not base.isidentifier() or why_reserved(base):
        base = f"flow_{base}".rstrip("_")
    candidate, count = base, 1
    while candidate in taken:
        candidate = f"{base}_flow" if count == 1 else f"{base}_flow_{count}"
        count += 1
    return candidate


def _settings(node: AppNode, *, standalone: bool) -> dict[str, Any]:
    """The App's other fields.

    Raises:
        UnknownNameError: The installed ADK's App has no such field.
        UsageError: There is no App to put a setting into.
    """
    for field, _ in node.settings:
        if field not in _SETTINGS:
            raise UnknownNameError(
                f"google-adk {adk_version} has no field {field!r} for an App",
                unknown=field,
                known=_SETTINGS,
                node=node,
            )
    if standalone and node.settings:
        raise UsageError(
            f"{node.settings[0][0]!r} is a field of ADK's App, and an agent has no place for it",
            node=node,
            help="export the App: app = pipeline.to_app(...)",
        )
    return dict(node.settings)


def _summary_model(config: ExecutionConfig, root: BaseAgent) -> BaseLlm:
    """The model that writes summaries: the default one, else that of the first agent."""
    if config.default_model is not None:
        return CompileContext(config).value(MODEL, config.default_model)
    agents = (agent for agent in root.sub_agents if isinstance(agent, LlmAgent))
    return next(agents, LlmAgent(name="summarizer")).canonical_model
