"""The server's third transport: gRPC, behind the same gate and with the same handler."""

from __future__ import annotations

import re
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import grpc
import grpc.aio
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import GrpcHandler
from a2a.server.request_handlers.grpc_handler import GrpcServerCallContextBuilder
from a2a.types import a2a_pb2_grpc
from a2a.utils.errors import VersionNotSupportedError
from opentelemetry.context import attach, detach

from adk_fluent.a2a._trace import TRACE
from adk_fluent.extend import LOG
from adk_fluent.serve._gate import Principal, RefusedError
from adk_fluent.serve._handler import BusyError
from adk_fluent.serve._parts_adk import read_call

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from a2a.utils.errors import A2AError

    from adk_fluent.serve._gate import Gate
    from adk_fluent.serve._handler import Handler
    from adk_fluent.serve._limits import Limits

_CODES: Final = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    429: grpc.StatusCode.RESOURCE_EXHAUSTED,
    500: grpc.StatusCode.INTERNAL,
}
_PEER: Final = re.compile(r"ipv[46]:\[?([^\]]*?)\]?:(\d+)")
_WHO: Final[ContextVar[str]] = ContextVar("adk_fluent_serve_grpc_principal")


async def open_grpc(
    handler: Handler, gate: Gate, limits: Limits, address: str
) -> tuple[grpc.aio.Server, int]:
    """Listen for gRPC; gives the server and its port.

    Args:
        handler: What answers.
        gate: Lets in what may be answered.
        limits: What is too much.
        address: The host and port.

    Raises:
        OSError: The address cannot be listened at.
    """
    service = _Service(handler, _Contexts())
    server = grpc.aio.server(
        interceptors=[_Interceptor(gate, limits, service)],
        options=[
            ("grpc.max_receive_message_length", limits.body_bytes),
            ("grpc.so_reuseport", 0),
        ],
    )
    a2a_pb2_grpc.add_A2AServiceServicer_to_server(service, server)  # pyright: ignore[reportUnknownMemberType]
    try:
        port = server.add_insecure_port(address)
    except RuntimeError as error:
        raise OSError(f"gRPC cannot listen at {address}") from error
    await server.start()
    return server, port


class _Contexts(GrpcServerCallContextBuilder):
    """Tells the handler who asks, which the interceptor has found out."""

    def build(self, context: Any) -> ServerCallContext:
        """Make the context of a call."""
        return ServerCallContext(user=Principal(_WHO.get()))


class _Service(GrpcHandler):
    """The SDK's service, which says with a status that clients know that the server is busy."""

    async def abort_context(self, error: A2AError, context: Any) -> None:
        """End a call with an error."""
        if isinstance(error, BusyError):
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        await super().abort_context(error, context)  # pyright: ignore[reportUnknownMemberType]


class _Interceptor(grpc.aio.ServerInterceptor):
    """Stands before every call.

    Args:
        gate: Lets in what may be answered.
        limits: What is too much.
        service: Ends calls with errors.
    """

    def __init__(self, gate: Gate, limits: Limits, service: _Service) -> None:
        self._gate = gate
        self._limits = limits
        self._service = service

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Any]], handler_call_details: Any
    ) -> Any:
        """Put the gate before a method."""
        inner = await continuation(handler_call_details)
        if inner is None:
            return None
        path = handler_call_details.method
        # what cannot be read would be told with the exception: `_admitted` reads it
        made = {"request_deserializer": None, "response_serializer": inner.response_serializer}
        if inner.response_streaming:
            return grpc.unary_stream_rpc_method_handler(self._stream(path, inner), **made)
        return grpc.unary_unary_rpc_method_handler(self._unary(path, inner), **made)

    def _unary(self, path: str, inner: Any) -> Any:
        async def call(body: bytes, context: Any) -> Any:
            async with self._admitted(path, inner, body, context) as request:
                return await inner.unary_unary(request, context)

        return call

    def _stream(self, path: str, inner: Any) -> Any:
        async def call(body: bytes, context: Any) -> AsyncGenerator[Any]:
            async with (
                self._admitted(path, inner, body, context) as request,
                aclosing(inner.unary_stream(request, context)) as items,
            ):
                async for item in items:
                    yield item

        return call

    @asynccontextmanager
    async def _admitted(
        self, path: str, inner: Any, body: bytes, context: Any
    ) -> AsyncGenerator[Any]:
        """Let a call in, and read what is asked; or end it."""
        scope = _scope(path, context)
        said = {key.decode(): value.decode() for key, value in scope["headers"]}
        entered: list[str] = []
        trace = attach(TRACE.extract(said))
        try:
            principal = await self._gate.enter(scope, entered)
            if not said.get("a2a-version", "").startswith("1."):
                error = VersionNotSupportedError("The transport gRPC speaks A2A-Version 1.0")
                await self._service.abort_context(error, context)
            request = read_call(inner.request_deserializer, body, self._limits.depth)
            _WHO.set(principal)
            yield request
        except RefusedError as refused:
            if (wait := refused.headers.get("retry-after")) is not None:
                context.set_trailing_metadata((("retry-after", wait),))
            await context.abort(_CODES[refused.status], str(refused))
        except grpc.aio.AbortError:
            raise
        except Exception:  # noqa: BLE001  # told to nobody
            LOG.exception("a call of a served pipeline failed")
            await context.abort(grpc.StatusCode.INTERNAL, "Internal error")
        finally:
            self._gate.leave(entered)
            detach(trace)


def _scope(path: str, context: Any) -> dict[str, Any]:
    """A call as a request that authenticators read."""
    metadata: Any = context.invocation_metadata() or ()
    found = _PEER.fullmatch(unquote(context.peer()))
    return {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [
            (key.lower().encode(), value.encode())
            for key, value in metadata
            if isinstance(value, str)  # what ends in -bin is bytes
        ],
        "client": None if found is None else (found[1], int(found[2])),
    }
