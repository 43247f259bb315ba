"""Which failure of a remote agent it is, and whether the request may be sent again."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Final, Literal

import httpx
from google.protobuf.json_format import ParseError

from a2a.client.errors import A2AClientError
from a2a.utils.errors import A2AError
from adk_fluent.a2a._grpc import STATUS, told_by_grpc
from adk_fluent.errors import AdkFluentError, RemoteError
from adk_fluent.extend import one_line, public_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.ir import RemoteAgentNode

#: The end of an ``error_code``, after ``A2A_``.
Kind = Literal[
    "CONNECT",
    "CARD",
    "HTTP",
    "RPC",
    "PROTOCOL",
    "INCOMPLETE",
    "DEADLINE",
    "FAILED",
    "REJECTED",
    "CANCELED",
    "DIRECTORY",
]

#: Statuses with which a server says that it has not taken the request up.
_NOT_TAKEN: Final = frozenset({429, 502, 503, 504})
_HELP: Final[dict[str, str]] = {
    "CONNECT": "check that it runs there; a retry= or a fallback= of an agent bridges an outage",
    "CARD": "correct the agent's card, or the endpoint",
    "HTTP": "look at the log of the agent, or of what stands before it",
    "RPC": "look at the log of the agent: it refused the request",
    "PROTOCOL": "the other side does not speak A2A as its card says",
    "INCOMPLETE": "look at the log of the agent: it stopped before the task was done",
    "DEADLINE": "raise timeout=, or give the agent a fallback=",
    "FAILED": "look at the log of the agent: it could not do the task",
    "REJECTED": "the agent does not do such tasks; check what it is sent",
    "CANCELED": "somebody cancelled the task at the agent",
    "DIRECTORY": "correct the directory, or name another origin that you trust in origins=",
}


def failure(
    kind: Kind,
    node: RemoteAgentNode,
    what: str,
    *,
    found: str | None = None,
    retriable: bool = False,
    status: int | None = None,
) -> RemoteError:
    """Make the error of a remote agent that failed."""
    return RemoteError(
        f"{node.name} {what}",
        endpoint=public_address(node.endpoint),
        error_code=f"A2A_{kind}",
        retriable=retriable,
        status=status,
        node=node,
        found=None if not found else one_line(found),
        help=_HELP[kind],
    )


def failure_of(
    error: Exception, node: RemoteAgentNode, *, received: bool = False, card: bool = False
) -> RemoteError:
    """Classify what was raised while a remote agent was asked.

    Args:
        error: What was raised.
        node: The remote agent.
        received: Part of an answer has come: the task exists there, and nothing is sent again.
        card: Its card was being fetched, which may always be tried again.
    """
    if isinstance(error, AdkFluentError | TimeoutError):
        return _as_it_is(error, node)
    again = (node.idempotent or card) and not received
    for each in _chain(error):
        if isinstance(each, httpx.HTTPStatusError):
            status = each.response.status_code
            return failure(
                "CARD" if card else "HTTP",
                node,
                f"answered with the HTTP status {status}{' for its card' if card else ''}",
                retriable=not received and (status in _NOT_TAKEN or (again and status >= 500)),
                status=status,
            )
        if isinstance(each, httpx.ConnectError | httpx.ConnectTimeout):
            place = public_address(node.endpoint)
            found = f"{place}: {each}" if place else str(each)
            return failure(
                "CONNECT", node, "cannot be reached", found=found, retriable=not received
            )
        if isinstance(each, httpx.InvalidURL | httpx.UnsupportedProtocol):
            return failure("CARD", node, "has no usable address", found=str(each))
        if isinstance(each, httpx.RequestError):
            kind: Kind = "INCOMPLETE" if received else "CONNECT"
            found = str(each) or type(each).__name__
            return failure(kind, node, "dropped the connection", found=found, retriable=again)
    return _of_answer(error, node, received=received, card=card)


def _as_it_is(error: Exception, node: RemoteAgentNode) -> RemoteError:
    if isinstance(error, RemoteError):
        return error
    if isinstance(error, TimeoutError) and not isinstance(error, AdkFluentError):
        return deadline(node)
    raise error  # no failure of the agent's: a secret that is missing


def _of_grpc(code: str, details: str, node: RemoteAgentNode, *, received: bool) -> RemoteError:
    found = f"{code}: {details}"
    if code == "UNAVAILABLE":
        if details.startswith("failed to connect"):
            says = "cannot be reached"
            return failure("CONNECT", node, says, found=found, retriable=not received)
        says, kind = "dropped the connection", "INCOMPLETE" if received else "CONNECT"
        again = node.idempotent and not received
        return failure(kind, node, says, found=found, retriable=again)
    if "CLIENT: Received message larger" in details:
        return failure("PROTOCOL", node, "gave an answer that is too large", found=found)
    if (status := STATUS.get(code)) is not None:
        again = status in _NOT_TAKEN and not received
        says = f"answered with {code}"
        return failure("HTTP", node, says, found=found, retriable=again, status=status)
    return failure("RPC", node, "refused the request", found=found)


def _of_answer(
    error: Exception, node: RemoteAgentNode, *, received: bool, card: bool
) -> RemoteError:
    """The failure of an answer that has come and cannot be read, or says what is wrong."""
    if card:
        return failure("CARD", node, "has a card that cannot be read", found=str(error))
    if isinstance(error, A2AClientError) and (told := told_by_grpc(_chain(error))) is not None:
        return _of_grpc(*told, node, received=received)
    if isinstance(error, A2AClientError) and str(error).startswith("JSON-RPC Error "):
        return failure("RPC", node, "refused the request", found=str(error))  # of a code of its own
    if isinstance(error, A2AError) and not isinstance(error, A2AClientError):
        return failure("RPC", node, "refused the request", found=f"{type(error).__name__}: {error}")
    wrong = (ParseError, json.JSONDecodeError, A2AClientError, ValueError, TypeError, LookupError)
    if isinstance(error, (*wrong, RecursionError)):
        return failure("PROTOCOL", node, "gave an answer that is not A2A", found=str(error) or None)
    raise error  # ours, or a bug: it keeps its type


def deadline(node: RemoteAgentNode) -> RemoteError:
    """The error of a task that took too long."""
    return failure("DEADLINE", node, f"did not finish within {node.timeout_seconds:g} s")


def retry_after(error: BaseException) -> float:
    """Seconds that a server asks to wait; 0 where it does not say."""
    for each in _chain(error):
        if isinstance(each, httpx.HTTPStatusError):
            value = each.response.headers.get("retry-after", "").strip()
            if value.isdecimal():
                return float(value)
            try:
                when = parsedate_to_datetime(value)
            except (ValueError, OverflowError):
                return 0.0
            if when.tzinfo is None:
                when = when.replace(tzinfo=UTC)
            return max(0.0, (when - datetime.now(UTC)).total_seconds())
    return 0.0


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those it was raised from."""
    here: BaseException | None = error
    seen: set[int] = set()
    while here is not None and id(here) not in seen:
        seen.add(id(here))
        yield here
        here = here.__cause__ or here.__context__
