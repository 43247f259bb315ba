"""What the installed ADK can do: found out by looking, never from its version number."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from google.adk.agents.invocation_context import InvocationContext
from google.adk.apps import compaction
from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin

try:
    from google.adk.utils.context_utils import find_context_parameter as _find_context_parameter
except ImportError:
    _find_context_parameter = None

if TYPE_CHECKING:
    from google.adk.sessions.base_session_service import BaseSessionService

#: The code with which ADK 2.x reports an empty answer, unless it is streamed. Here that is an
#: answer like any other, as it is on every version and in every mode.
SAID_NOTHING: Final = "MODEL_RETURNED_NO_CONTENT"
#: Which parameter of a function ADK hands its context to, by type; None where it goes by name only.
find_context_parameter: Final = _find_context_parameter
_SQLITE: Final = "google.adk.sessions.sqlite_session_service"
_STORAGE: Final = "google.adk.cli.utils.local_storage"


@dataclass(frozen=True, slots=True)
class Caps:
    """What the installed ADK can do.

    Attributes:
        workflow: It has its own graph runtime (2.0).
        context: One `Context` class serves callbacks and tools; before, each has its own (1.30).
        event_output: Events carry structured output and node info (2.0).
        context_by_type: A function gets it by the type of a parameter, too, not only by its name.
        sliding_window: Its compaction can be asked for by who is no Runner; private, so it may go.
        compaction_in_run: It summarises during a run, too, where the run's context says how.
        plugin_error_hooks: Plugins hear of errors of agents and runs (2.8).
    """

    workflow: bool
    context: bool
    event_output: bool
    context_by_type: bool
    sliding_window: bool
    compaction_in_run: bool
    plugin_error_hooks: bool


CAPS: Final = Caps(
    workflow=find_spec("google.adk.workflow") is not None,
    context=find_spec("google.adk.agents.context") is not None,
    event_output="output" in Event.model_fields,
    context_by_type=_find_context_parameter is not None,
    sliding_window=hasattr(compaction, "_run_compaction_for_sliding_window"),
    compaction_in_run="events_compaction_config" in InvocationContext.model_fields,
    plugin_error_hooks=hasattr(BasePlugin, "on_run_error_callback"),
)


def checks_answers(ctx: InvocationContext) -> bool:
    """Whether ADK itself holds an answer against the schema of its question, before we see it.

    Its graph runtime (2.0) does, which runs what stands below an agent at the root: it reads little
    of a schema, and an answer that it does not take fails that message and each one after it.
    """
    return getattr(ctx, "_event_queue", None) is not None


def merges_dicts(service: BaseSessionService) -> bool:
    """Tell whether a session service merges a dict into the stored one instead of replacing it.

    The SQLite services of ADK 2.0 and older write state by SQL's ``json_patch``: keys that a new
    value no longer has stay. To replace a dict there, write None first.

    Args:
        service: The session service.
    """
    module = sys.modules.get(_SQLITE)  # not imported: no such service
    # the statement that replaces; a service without it is taken for an old one, which costs a write
    if module is None or hasattr(module, "_MERGE_STATE_SQL"):
        return False
    return isinstance(service, module.SqliteSessionService) or _is_one_per_agent(service)


def _is_one_per_agent(service: BaseSessionService) -> bool:
    """Whether it is what ADK's own tools use: a SQLite file in each agent's folder."""
    module = sys.modules.get(_STORAGE)
    return module is not None and isinstance(service, module.PerAgentDatabaseSessionService)
