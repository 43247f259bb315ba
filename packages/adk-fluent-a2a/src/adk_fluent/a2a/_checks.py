"""Checks of remote agents, from what the pipeline itself says: nothing is asked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from adk_fluent.a2a._addresses import address_fault
from adk_fluent.a2a._schemes import auth_fault
from adk_fluent.contracts import Diagnostic, Severity
from adk_fluent.ir import AgentNode, FallbackNode, RemoteAgentNode, SequenceNode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a.types import AgentCard
    from adk_fluent.contracts import Graph
    from adk_fluent.ir import Node


class RemoteInputMissing(Diagnostic, code="RMT001", severity=Severity.ERROR):
    """The input schema asks for what is not among the inputs."""


class CapabilityMissing(Diagnostic, code="RMT002", severity=Severity.ERROR):
    """The agent card offers no skill for a capability."""


class FallbackOutputMissing(Diagnostic, code="RMT003", severity=Severity.ERROR):
    """The fallback does not write what the remote agent does."""


class CredentialsUnreachable(Diagnostic, code="RMT004", severity=Severity.ERROR):
    """The authentication cannot work as it is declared."""


class CredentialsAbsent(Diagnostic, code="RMT005", severity=Severity.WARNING):
    """There are no credentials here and now, or the card asks for some."""


class CardUnusable(Diagnostic, code="RMT006", severity=Severity.ERROR):
    """The agent card cannot be read, or sends requests where they must not go."""


class EndpointUnusable(Diagnostic, code="RMT007", severity=Severity.ERROR):
    """The endpoint is no address, or one at which others can read what is sent."""


def check_remote_agents(graph: Graph) -> Iterator[Diagnostic]:
    """Find what is wrong with remote agents."""
    for node in graph.of(RemoteAgentNode):
        card, fault = _card(node)
        if fault is not None:
            yield CardUnusable.at(
                graph,
                node,
                f"the card of `{node.name}` {fault}",
                help="give the card anew: RemoteAgent(name, card=...)",
            )
        if node.card is None and (fault := address_fault(node.endpoint)) is not None:
            yield EndpointUnusable.at(
                graph,
                node,
                f"the endpoint of `{node.name}` {fault}",
                help='such as endpoint="https://payments.example.com/a2a"',
            )
        yield from _inputs(graph, node)
        yield from _capabilities(graph, node, card)
        yield from _fallback(graph, node)
        yield from _auth(graph, node, card)


def _card(node: RemoteAgentNode) -> tuple[AgentCard | None, str | None]:
    """The card that was given, and what is wrong with it."""
    if node.card is None:
        return None, None  # known when it is fetched
    # whoever gave a card has loaded the SDK already
    from adk_fluent.a2a._cards_adk import checked  # noqa: PLC0415

    return checked(node.card)


def _inputs(graph: Graph, node: RemoteAgentNode) -> Iterator[Diagnostic]:
    schema: Any = None if node.input_schema is None else node.input_schema.value
    fields: dict[str, Any] = getattr(schema, "model_fields", {})
    sent = {ref.name for ref in node.reads_keys}
    absent = [name for name, each in fields.items() if each.is_required() and name not in sent]
    if absent:
        names = ", ".join(map(repr, absent))
        yield RemoteInputMissing.at(
            graph,
            node,
            f"`{node.name}` must be sent {names}, which its inputs do not have",
            help=f"add {names} to inputs=, or give the field of the schema a default",
        )


def _capabilities(
    graph: Graph, node: RemoteAgentNode, card: AgentCard | None
) -> Iterator[Diagnostic]:
    if card is None:
        return
    from adk_fluent.a2a._cards_adk import lacking  # noqa: PLC0415  # as above

    if absent := lacking(card, node.capabilities):
        ids = ", ".join(sorted(each.id for each in card.skills)) or "no skills"
        yield CapabilityMissing.at(
            graph,
            node,
            f"the card of `{node.name}` offers no {', '.join(map(repr, absent))}",
            help=f"it has: {ids}",
        )


def _fallback(graph: Graph, node: RemoteAgentNode) -> Iterator[Diagnostic]:
    if node.fallback is None:
        return
    written = _writes(node.fallback)
    absent = [ref.key for ref in node.writes_keys if written is not None and ref.key not in written]
    if absent:
        names = ", ".join(map(repr, absent))
        yield FallbackOutputMissing.at(
            graph,
            node.fallback,
            f"the fallback of `{node.name}` does not write {names}",
            help=f"let it write {names}, as the steps behind read it",
        )


def _writes(node: Node) -> set[str] | None:
    """The keys that a part writes whenever it succeeds; None where that is not known."""
    if isinstance(node, AgentNode):
        return {ref.key for ref in (*node.writes_keys, *node.tool_writes)}
    if isinstance(node, RemoteAgentNode):
        return {ref.key for ref in node.writes_keys}
    if isinstance(node, SequenceNode):
        parts = [_writes(step) for step in node.steps]
        return None if None in parts else {key for part in parts for key in part or ()}
    if isinstance(node, FallbackNode):
        parts = [_writes(step) for step in node.attempts]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or not known:
            return None
        return {key for key in known[0] if all(key in part for part in known)}
    return None


def _auth(graph: Graph, node: RemoteAgentNode, card: AgentCard | None) -> Iterator[Diagnostic]:
    auth = node.auth
    if auth is None or auth.scheme == "none":
        if card is not None and card.security_requirements:
            yield CredentialsAbsent.at(
                graph,
                node,
                f"the card of `{node.name}` asks for credentials, and there is no auth=",
                help='such as auth=AuthConfig("bearer", "PAYMENTS_TOKEN")',
            )
        return
    if (fault := auth_fault(auth)) is not None:
        yield CredentialsUnreachable.at(
            graph, node, f"`{node.name}` cannot authenticate: {fault[0]}", help=fault[1]
        )
    elif not os.environ.get(auth.secret_env or ""):
        yield CredentialsAbsent.at(
            graph,
            node,
            f"`{node.name}` reads its secret from {auth.secret_env}, which is not set here",
            help=f"set {auth.secret_env} where the pipeline runs",
        )
