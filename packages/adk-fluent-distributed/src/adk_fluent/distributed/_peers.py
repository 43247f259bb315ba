"""Boundaries with a peer behind them: a server of the A2A protocol runs that part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from adk_fluent.builders import RemoteAgent
from adk_fluent.distributed._errors import BoundaryError
from adk_fluent.errors import MissingLayerError, UsageError
from adk_fluent.extend import is_loopback, public_address, require_layer
from adk_fluent.ir import ExecutionBoundary, RetryConfig, TransportConfig, walk

if TYPE_CHECKING:
    from adk_fluent.ir import Contract, Node, StateFieldRef

_SCHEMES: Final = ("https", "http")
_SECONDS: Final = 300.0  # that the part may take there, where the transport says nothing


def is_peer(node: Node) -> bool:
    """Whether a peer runs this step: its boundary has an address of HTTP."""
    transport = None if node.boundary is None else node.boundary.transport
    if transport is None:
        return False
    return transport.type == "http" or (transport.endpoint or "").partition(":")[0] in _SCHEMES


def peer_step(node: Node) -> Node:
    """The step that asks the peer: what the contract names of state crosses, and the transcript.

    Raises:
        BoundaryError: The peer cannot be asked: layer ``a2a`` is not installed, the address is none
            or not safe, it is not said which state crosses, or more is asked of the boundary.
    """
    boundary = cast("ExecutionBoundary", node.boundary)
    transport = cast("TransportConfig", boundary.transport)
    _check_asked(node, boundary)
    endpoint, contract = _checked_endpoint(node, transport), _checked_contract(node)
    try:
        require_layer("a2a", "TransportConfig of an A2A server")
        step = RemoteAgent(
            node.name,
            endpoint=endpoint,
            inputs=contract.inputs or (),
            outputs=contract.outputs or (),
            auth=transport.auth,
            timeout=transport.timeout_seconds or _SECONDS,
            retry=RetryConfig(),
            idempotent=True,
            history="transcript",
        ).to_ir()
    except MissingLayerError as error:
        help = error.help or "pip install adk-fluent-a2a"
        raise _refused(node, "the layer a2a is not installed", help) from error
    except UsageError as error:
        found = f"{error.what}: {error.found}" if error.found else error.what
        raise _refused(node, found, error.help or "") from error
    return step.replace(contract=contract, location=node.location)


def _check_asked(node: Node, boundary: ExecutionBoundary) -> None:
    plain = ExecutionBoundary(transport=boundary.transport)
    for name in ("serialization", "isolation", "scaling"):
        if (value := getattr(boundary, name)) != getattr(plain, name):
            raise _refused(
                node,
                f"{name}={value!r} beside an A2A server",
                "leave it out: whoever serves that part says how",
            )
    for each in walk(node):
        if each is not node and each.boundary is not None:
            raise _refused(
                node,
                f"another boundary inside of it, at {each.name!r}",
                "leave that one out: the server runs the whole part",
            )


def _checked_endpoint(node: Node, transport: TransportConfig) -> str:
    endpoint = transport.endpoint or ""
    parts = urlsplit(endpoint)
    if parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or "")):
        return endpoint
    raise _refused(
        node,
        f"endpoint={public_address(endpoint)!r}" if endpoint else "no endpoint",
        "give the address of an A2A server: https://..., or http:// on this machine",
    )


def _checked_contract(node: Node) -> Contract:
    contract = node.contract
    if contract is None or contract.inputs is None or contract.outputs is None:
        raise _refused(
            node,
            "it is not said which state crosses to the A2A server and back",
            'say it at that step: .contract(inputs=["order"], outputs=["amount"])',
        )
    keys: tuple[StateFieldRef, ...] = (*contract.inputs, *contract.outputs)
    for each in keys:
        if each.scope == "temp":
            raise _refused(
                node,
                f"the key {each.key!r}, which ends with the process",
                "use a key without the prefix",
            )
    return contract


def _refused(node: Node, found: str, help: str) -> BoundaryError:
    details: dict[str, Any] = {"found": found, "help": help}
    return BoundaryError(f"no A2A server can run {node.name!r}", node=node, **details)
