"""The agent card of a pipeline, from its IR alone."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from adk_fluent.a2a._addresses import origin
from adk_fluent.errors import UsageError
from adk_fluent.extend import describe, public_address
from adk_fluent.ir import (
    AdkAgentNode,
    AgentNode,
    AppNode,
    MiddlewareNode,
    Modality,
    Node,
    RemoteAgentNode,
    SequenceNode,
    TimeoutNode,
    walk,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from adk_fluent.ir import ContentSpec, ToolSpec

#: The version of the protocol that a card states.
PROTOCOL: Final = "1.0"
#: The name of a transport that has a URL of its own.
GRPC: Final = "GRPC"
_AGENTS: Final = (AgentNode, AdkAgentNode, RemoteAgentNode)
#: The media types of each modality.
MEDIA_TYPES: Final[dict[Modality, tuple[str, ...]]] = {
    Modality.TEXT: ("text/plain",),
    Modality.IMAGE: ("image/png", "image/jpeg", "image/webp"),
    Modality.AUDIO: ("audio/wav", "audio/mpeg", "audio/ogg"),
    Modality.VIDEO: ("video/mp4", "video/webm"),
    Modality.PDF: ("application/pdf",),
    Modality.STRUCTURED: ("application/json",),
    Modality.CODE: ("text/plain",),
}


def agent_card(  # what a card says
    node: Node,
    *,
    description: str | None,
    endpoint: str,
    name: str | None = None,
    version: str = "1.0.0",
    skills: Sequence[Any] | None = None,
    auth: Any = None,
    grpc_endpoint: str | None = None,
) -> AgentCard:
    """Make the agent card of a pipeline.

    Args:
        node: The pipeline.
        description: What it does; None takes that of the pipeline.
        endpoint: URL under which it is served.
        name: What it is called; None is the pipeline's name.
        version: The agent's own version.
        skills: ``a2a.types.AgentSkill`` objects; None makes one of each agent and each tool.
        auth: What `A2AServer` takes as ``auth``; its security scheme is stated.
        grpc_endpoint: URL under which it is served over gRPC; None states none.

    Raises:
        UsageError: The endpoint is not a URL that can be stated, or a skill is not one.
    """
    _check_endpoint(endpoint)
    places = [("JSONRPC", endpoint), ("HTTP+JSON", endpoint)]
    if grpc_endpoint is not None:
        _check_endpoint(grpc_endpoint, "grpc_endpoint=")
        places.append((GRPC, grpc_endpoint))
    root = _unwrapped(node)
    card = AgentCard(
        name=name or root.name or "agent",
        description=description or _text(root.description) or _spoken(root.name or "agent"),
        version=version,
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=each, protocol_version=PROTOCOL)
            for each, url in places
        ],
        default_input_modes=_modes(root, "input_modalities", first=True),
        default_output_modes=_modes(root, "output_modalities", first=False),
        skills=_skills_of(root) if skills is None else _checked(skills),
    )
    state_security(card, auth)
    return card


def state_security(card: AgentCard, auth: Any) -> None:
    """State in a card how requests are authenticated, as far as the authentication tells.

    Args:
        card: The card; one that states a scheme itself stays as it is.
        auth: What a server takes as ``auth``.
    """
    tell: Callable[[], tuple[str, Any]] | None = getattr(auth, "security_scheme", None)
    if tell is None or card.security_schemes:
        return
    name, scheme = tell()
    card.security_schemes[name].CopyFrom(scheme)
    card.security_requirements.add().schemes[name].SetInParent()


def _check_endpoint(endpoint: object, role: str = "endpoint=") -> None:
    if not isinstance(endpoint, str) or origin(endpoint) is None:
        found = describe(endpoint) if not isinstance(endpoint, str) else repr(endpoint)
        raise UsageError(
            f"{role} takes the URL under which the pipeline is served",
            found=found,
            help=f'such as {role}"https://support.example.com/a2a"',
        )
    parts = urlsplit(endpoint)
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            f"{role} takes a URL without credentials, query and fragment",
            found=public_address(endpoint),
            help="everybody can read a card",
        )


def _checked(skills: Sequence[Any]) -> list[AgentSkill]:
    wrong = next((each for each in skills if not isinstance(each, AgentSkill)), None)
    if wrong is not None:
        raise UsageError(
            "skills= takes a2a.types.AgentSkill objects",
            found=describe(wrong),
            help='such as AgentSkill(id="refund", name="Refund", description="...", tags=["pay"])',
        )
    return list(skills)


def _unwrapped(node: Node) -> Node:
    """The pipeline without what only stands around it, which has no name of the user's."""
    while isinstance(node, AppNode | MiddlewareNode | TimeoutNode) and not node.description:
        node = node.root if isinstance(node, AppNode) else node.body
    return node


# --- skills ------------------------------------------------------------------------------------


def _skills_of(root: Node) -> list[AgentSkill]:
    """A skill for each agent, and one for each of its tools. Instructions are told to nobody."""
    made: dict[str, AgentSkill] = {}
    for node in walk(root):
        if not isinstance(node, _AGENTS):
            continue
        given = _text(node.description)
        if isinstance(node, AdkAgentNode) and not given:
            given = _text(getattr(node.agent.value, "description", None))
        content = None if isinstance(node, AdkAgentNode) else node.content
        skill = AgentSkill(
            id=node.name,
            name=_spoken(node.name),
            description=given or _spoken(node.name),
            tags=["agent"],
            input_modes=_media_types(content, "input_modalities"),
            output_modes=_media_types(content, "output_modalities"),
        )
        made.setdefault(skill.id, skill)
        for tool in node.tools if isinstance(node, AgentNode) else ():
            made.setdefault(tool.name, _skill_of(tool))
    return list(made.values())


def _skill_of(tool: ToolSpec) -> AgentSkill:
    value = tool.tool.value
    said = _text(getattr(value, "description", None)) or _text(inspect.getdoc(value))
    summary = " ".join(said.split("\n\n", 1)[0].split())
    return AgentSkill(
        id=tool.name,
        name=_spoken(tool.name),
        description=summary or _spoken(tool.name),
        tags=["tool"],
    )


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _spoken(name: str) -> str:
    return name.replace("_", " ")


# --- modes -------------------------------------------------------------------------------------


def _modes(root: Node, field: str, *, first: bool) -> list[str]:
    """The media types that agents at one end of a pipeline take or give."""
    found: dict[str, None] = {}
    for node in _ends(root, first=first):
        content = None if isinstance(node, AdkAgentNode) else cast("AgentNode", node).content
        found |= dict.fromkeys(_media_types(content, field) or ("text/plain",))
    return list(dict.fromkeys(("text/plain", "application/json", *found)))


def _ends(root: Node, *, first: bool) -> Iterator[Node]:
    """The agents with which a pipeline can begin, or end."""
    todo = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, _AGENTS):
            yield node
        elif isinstance(node, SequenceNode):
            steps = node.steps if first else tuple(reversed(node.steps))
            at = next((each for each in steps if _has_agent(each)), None)
            todo += [] if at is None else [at]
        else:
            todo += reversed(node.children)


def _has_agent(root: Node) -> bool:
    return any(isinstance(each, _AGENTS) for each in walk(root))


def _media_types(content: ContentSpec | None, field: str) -> list[str]:
    if content is None:
        return []
    kinds: frozenset[Modality] = frozenset(getattr(content, field))
    return [each for kind in Modality if kind in kinds for each in MEDIA_TYPES[kind]]
