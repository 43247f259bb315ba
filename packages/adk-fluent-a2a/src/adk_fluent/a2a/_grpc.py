"""gRPC, for agents that offer nothing else. grpcio is an extra, imported where it is needed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from adk_fluent.a2a._http import LARGEST

if TYPE_CHECKING:
    from collections.abc import Iterable

    import grpc.aio

#: The statuses of HTTP that the protocol has in the place of some of gRPC.
STATUS: Final = {"UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403, "RESOURCE_EXHAUSTED": 429}


def has_grpc() -> bool:
    """Whether grpcio is installed."""
    return find_spec("grpc") is not None


def open_channel(url: str) -> grpc.aio.Channel:
    """A channel to an address, encrypted where that is one of https."""
    import grpc.aio  # noqa: PLC0415  # an extra

    where = urlsplit(url)
    host = f"[{where.hostname}]" if ":" in (where.hostname or "") else where.hostname
    port = where.port or (443 if where.scheme == "https" else 80)
    options = [("grpc.max_receive_message_length", LARGEST)]
    if where.scheme == "https":
        secure = grpc.ssl_channel_credentials()
        return grpc.aio.secure_channel(f"{host}:{port}", secure, options)
    return grpc.aio.insecure_channel(f"{host}:{port}", options)


def told_by_grpc(errors: Iterable[BaseException]) -> tuple[str, str] | None:
    """The status and the details of the call that failed, if it was one of gRPC."""
    for each in errors:
        if type(each).__name__ == "AioRpcError":
            call: Any = each
            return call.code().name, call.details() or ""
    return None
