"""What the installed ADK can do: found out by looking, never from its version number."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from google.adk.apps import compaction
from google.adk.events.event import Event
from google.adk.plugins.base_plugin import BasePlugin

if TYPE_CHECKING:
    from google.adk.sessions.base_session_service import BaseSessionService

#: The code with which ADK 2.x reports an empty answer, unless it is streamed. Here that is an
#: answer like any other, as it is on every version and in every mode.
SAID_NOTHING: Final = "MODEL_RETURNED_NO_CONTENT"
_SQLITE: Final = "google.adk.sessions.sqlite_session_service"


@dataclass(frozen=True, slots=True)
class Caps:
    """What the installed ADK can do.

    Attributes:
        workflow: It has its own graph runtime (2.0).
        context: One `Context` class serves callbacks and tools; before, each has its own (1.39).
        event_output: Events carry structured output and node info (2.0).
        sliding_window: Its compaction can be asked for by who is no Runner; private, so it may go.
        plugin_error_hooks: Plugins hear of errors of agents and runs (2.x).
    """

    workflow: bool
    context: bool
    event_output: bool
    sliding_window: bool
    plugin_error_hooks: bool


CAPS: Final = Caps(
    workflow=find_spec("google.adk.workflow") is not None,
    context=find_spec("google.adk.agents.context") is not None,
    event_output="output" in Event.model_fields,
    sliding_window=hasattr(compaction, "_run_compaction_for_sliding_window"),
    plugin_error_hooks=hasattr(BasePlugin, "on_run_error_callback"),
)


def merges_dicts(service: BaseSessionService) -> bool:
    """Whether a session service merges a dict into the one it holds, instead of replacing it.

    The SQLite services of ADK 2.0 and older write state by SQL's ``json_patch``: keys that a new
    value no longer has stay. To replace a dict there, write None first.
    """
    module = sys.modules.get(_SQLITE)  # not imported: no such service
    if module is None or not isinstance(service, module.SqliteSessionService):
        return False
    # the statement that replaces; a service without it is taken for an old one, which costs a write
    return not hasattr(module, "_MERGE_STATE_SQL")
