"""Which fields of ADK's LlmAgent a node may set: those that the installed ADK has, and heeds here.

The installed ADK's class has the last word, so that fields of a newer ADK pass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from google.adk.agents.llm_agent import LlmAgent
from google.adk.version import __version__ as adk_version

from adk_fluent._adk_fields import NO_SETTER, SINCE, TOOLS_ONLY, at_least
from adk_fluent.errors import UnknownNameError, UnsupportedNodeError
from adk_fluent.ir import AgentNode

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from adk_fluent.ir import Node

FIELDS: Final = frozenset(LlmAgent.model_fields) - NO_SETTER.keys()


def check_known(node: AgentNode, names: AbstractSet[str]) -> None:
    """See that there are such fields.

    Raises:
        UnknownNameError: One does not exist in the installed ADK, or is ADK's own business.
    """
    if names <= FIELDS:
        return
    name = min(names - FIELDS)
    since = SINCE.get(name)
    if name in NO_SETTER:
        what, help = f"an agent of a flow cannot have the field {name!r}", NO_SETTER[name]
    else:
        what = f"google-adk {adk_version} has no field {name!r} for an LlmAgent"
        help = None
        if since is not None and not at_least(adk_version, since):
            help = f"upgrade to google-adk {since} or newer, or leave it out"
    raise UnknownNameError(what, unknown=name, known=FIELDS, node=node, help=help)


def check_heeded(node: Node, role: str) -> None:
    """See that a step or a delegate sets no field that ADK heeds in tools only.

    Raises:
        UnsupportedNodeError: It does.
    """
    if not isinstance(node, AgentNode):
        return
    for name, _ in node.settings:
        if name in TOOLS_ONLY and name in FIELDS:
            raise UnsupportedNodeError(
                f"ADK's {name!r} has no effect on {role}", node=node, help=TOOLS_ONLY[name]
            )
