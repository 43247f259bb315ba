"""Native ADK objects for code that knows nothing of adk-fluent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService

from adk_fluent.backends.adk._lowering._compile import compile_ir
from adk_fluent.errors import UnsupportedConfigError
from adk_fluent.ir import ExecutionConfig

if TYPE_CHECKING:
    from collections.abc import Sequence

    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import App
    from google.adk.artifacts.base_artifact_service import BaseArtifactService
    from google.adk.auth.credential_service.base_credential_service import BaseCredentialService
    from google.adk.memory.base_memory_service import BaseMemoryService
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.sessions.base_session_service import BaseSessionService

    from adk_fluent.ir import Node


def to_agent(node: Node, config: ExecutionConfig | None = None) -> BaseAgent:
    """An ADK agent, such as a module-level ``root_agent``; `config` holds under any Runner.

    Raises:
        UnsupportedConfigError: `config` names an app; the App it is put into does that.
    """
    if config is not None and config.app_name != ExecutionConfig().app_name:
        raise UnsupportedConfigError(
            "an agent has no app_name: the App it is put into has one",
            field="app_name",
            brings="to_app(config)",
            node=node,
            help="leave it out, or make the App with to_app(config)",
        )
    return compile_ir(node, config, standalone=True).root


def to_app(
    node: Node, config: ExecutionConfig | None = None, *, plugins: Sequence[BasePlugin] = ()
) -> App:
    """An ADK App.

    Args:
        node: The pipeline.
        config: How it runs, under any Runner.
        plugins: The user's own ADK plugins, in order.
    """
    return compile_ir(node, config).to_app(plugins)


def to_runner(
    node: Node,
    config: ExecutionConfig | None = None,
    *,
    plugins: Sequence[BasePlugin] = (),
    session_service: BaseSessionService | None = None,
    artifact_service: BaseArtifactService | None = None,
    memory_service: BaseMemoryService | None = None,
    credential_service: BaseCredentialService | None = None,
) -> Runner:
    """An ADK Runner; services that are not given are kept in memory."""
    return Runner(
        app=to_app(node, config, plugins=plugins),
        session_service=session_service or InMemorySessionService(),
        artifact_service=artifact_service or InMemoryArtifactService(),
        memory_service=memory_service or InMemoryMemoryService(),
        credential_service=credential_service,
    )
