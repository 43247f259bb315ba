"""The server: a pipeline behind the A2A protocol."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from a2a.server.routes import create_jsonrpc_routes, create_rest_routes
from a2a.types import AgentCard, AgentInterface
from google.adk.agents.base_agent import BaseAgent
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from adk_fluent.a2a._agent_card import GRPC, PROTOCOL, agent_card, state_security
from adk_fluent.a2a._grpc import has_grpc
from adk_fluent.builders import Builder
from adk_fluent.contracts import ContractReport, Graph, ReadBeforeWrite, check_all
from adk_fluent.errors import ContractError, UsageError
from adk_fluent.extend import LOG, describe
from adk_fluent.ir import UNSET
from adk_fluent.serve._cards_adk import WELL_KNOWN, base_of, card_paths, card_routes
from adk_fluent.serve._executor_adk import PipelineExecutor
from adk_fluent.serve._gate import Gate
from adk_fluent.serve._guard import Guard
from adk_fluent.serve._handler import Handler
from adk_fluent.serve._keys import INPUTS, Keys
from adk_fluent.serve._limits import Limits, PushPolicy
from adk_fluent.serve._listening import Listening, check_start, listener_at
from adk_fluent.serve._logs import is_of_database, log_failure
from adk_fluent.serve._push_adk import Configs, Sender
from adk_fluent.serve._stores_adk import open_stores, store_error

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator

    from google.adk.sessions.base_session_service import BaseSessionService
    from starlette.requests import Request
    from starlette.types import ASGIApp

    from adk_fluent.contracts import Diagnostic
    from adk_fluent.ir import ExecutionConfig, Node
    from adk_fluent.protocol import FieldRef, PendingKind
    from adk_fluent.serve._auth import Authenticator

    #: A state key or several, typed fields, or a state schema.
    StateKeys: TypeAlias = str | FieldRef | Iterable[str | FieldRef] | type

_HEALTH: Final = "/healthz"
_READY: Final = "/readyz"
_CHECK_SECONDS: Final = 2.0
_QUIET_SECONDS: Final = 5.0  # for the last events of streams
_PARKED_SECONDS: Final = 300.0  # after which a task that waits is kept in its store alone


class A2AServer:
    """Serves a pipeline to other agents, over JSON-RPC and HTTP+JSON.

    Example:
        >>> server = A2AServer(pipeline, auth=BearerAuth({token: "ann"}))
        >>> await server.start(port=8080)

    Args:
        pipeline: What is served.
        card: Its agent card, of `.to_agent_card(...)`; its endpoint is where clients come in. None
            makes one of the address that `start` listens at.
        config: How it runs.
        auth: Finds the principal of a request. Tasks, contexts and sessions are that principal's
            alone. None serves this machine only, and all that comes from it is one principal.
        task_store: URL of a database that keeps tasks, such as ``sqlite:///tasks.db``; several
            servers may share it. None keeps them in memory.
        session_service: Where sessions are kept; None keeps them in the database of `task_store`.
        limits: How much it takes.
        push: Where push notifications may be sent; None sends none.
        inputs: State that a data part of a message may write: keys, typed fields, which are
            validated, or a state schema.
        outputs: State that is told with an answer, as a data part.
        answers: The kinds of questions that clients may answer. A run that waits on another kind
            fails.
        extended_card: A card that is shown to principals only.
        signer: Signs each card that is shown, such as
            ``a2a.utils.signing.create_agent_card_signer(key, {"kid": "1", "alg": "ES256"})``.

    Raises:
        UsageError: An argument cannot be used.
        BuildError: The pipeline cannot be compiled.
        ContractError: It reads state, or `outputs` names some, that neither it nor a message
            writes. Where there is a `session_service`, that is a warning: somebody else may have
            written it.
    """

    def __init__(
        self,
        pipeline: Builder,
        *,
        card: AgentCard | None = None,
        config: ExecutionConfig | None = None,
        auth: Authenticator | None = None,
        task_store: str | None = None,
        session_service: BaseSessionService | None = None,
        limits: Limits | None = None,
        push: PushPolicy | None = None,
        inputs: StateKeys = (),
        outputs: StateKeys = (),
        answers: Collection[PendingKind] = ("gate", "confirmation", "input"),
        extended_card: AgentCard | None = None,
        signer: Callable[[AgentCard], AgentCard] | None = None,
    ) -> None:
        _check(card, auth, limits, push, extended_card)
        self._node = _node_of(pipeline)
        self._inputs = Keys(inputs, INPUTS)
        told = Keys(outputs, "outputs=")
        self._card = card
        self._extended = extended_card if extended_card is None else _copy(extended_card)
        self._sign = signer or _unsigned
        self._auth = auth
        self._limits = limits or Limits()
        self._gate = Gate(auth, self._limits)
        self._stores = open_stores(task_store, self._limits, sessions=session_service is None)
        self._configs: Configs | None = None
        self._sender: Sender | None = None
        if push is not None:
            self._configs = Configs(self._stores.configs, push.per_task)
            self._sender = Sender(push, self._configs)
        self._given = session_service
        _check_state(self._node, self._inputs, told, given=session_service is not None)
        kept = session_service or self._stores.sessions
        self._executor = PipelineExecutor(
            self._node,
            config,
            sessions=kept or InMemorySessionService(),
            tasks=self._stores.tasks,
            inputs=self._inputs,
            outputs=told,
            answers=frozenset(answers),
        )
        if kept is None:  # nobody else has these sessions
            self._stores.tasks.forget = self._executor.forget
        self._app: ASGIApp | None = None
        self._handler: Handler | None = None
        self._listening: Listening | None = None
        self._address = ""
        self._grpc: Any = None
        self._grpc_address = ""

    @property
    def app(self) -> ASGIApp:
        """The ASGI app, for a server of your own.

        Raises:
            UsageError: There is no card, and so no address that clients could be told.
        """
        if self._app is None:
            if self._card is None:
                raise UsageError(
                    "`.app` needs a card, since nobody knows where the app will be served",
                    help='A2AServer(pipeline, card=pipeline.to_agent_card(endpoint="https://..."))',
                )
            self._app = self._made(self._card)
        return self._app

    @property
    def url(self) -> str:
        """Where it listens; "" before `start`."""
        return self._address

    @property
    def card_url(self) -> str:
        """Where its card is; "" before `start`."""
        path = "" if self._card is None else f"{base_of(self._card)}{WELL_KNOWN}"
        return f"{self._address}{path}" if self._address else ""

    @property
    def grpc_url(self) -> str:
        """Where it listens for gRPC; "" where it does not."""
        return self._grpc_address

    async def start(
        self, *, port: int = 8080, host: str = "127.0.0.1", grpc_port: int | None = None
    ) -> None:
        """Serve in this event loop; returns when it listens.

        Args:
            port: The port; 0 takes a free one, see `url`.
            host: The address; without `auth` one of this machine.
            grpc_port: The port for gRPC, as `port`; None serves none. Needs the extra ``grpc``.

        Raises:
            UsageError: It is served already, without `auth` to others than this machine, or at all
                addresses without a card that says where clients come in; the port is none; or gRPC
                is not installed, or not in the card.
            OSError: The address cannot be listened at.
            SessionStoreError: Where tasks or sessions are kept cannot be read or written.
        """
        check_start(
            "server",
            self._listening,
            host,
            local=self._auth is None,
            nowhere="a card" if self._card is None else None,
            help='A2AServer(pipeline, card=pipeline.to_agent_card(endpoint="https://..."))',
        )
        if grpc_port is not None:
            self._check_grpc()
        listener, address = listener_at(host, port)
        given = self._card
        try:
            await self._opened()
            if self._card is None:
                self._card = agent_card(self._node, description=None, endpoint=address)
            if grpc_port is not None:
                place = f"{address.removeprefix('http://').rpartition(':')[0]}:{grpc_port}"
                await self._start_grpc(place, self._card, listed=given is not None)
        except BaseException:  # as if it had not been tried: another port may be free
            listener.close()
            self._card, self._handler = given, None
            await self._stores.close()
            raise
        self._address = address
        self._listening = Listening(self.app)
        await self._listening.start(listener)

    async def stop(self, *, grace: float = 10.0) -> None:
        """Stop: take no more tasks, let those that run come to their end, and close.

        Args:
            grace: Seconds for that; tasks that still run then fail.
        """
        await self._close(grace)
        if self._listening is not None:
            await self._listening.stop()
        if self._grpc is not None:
            await self._grpc.stop(_QUIET_SECONDS)

    async def _opened(self) -> None:
        await self._stores.open()
        if self._given is not None:
            app = self._executor.app_name
            try:
                await self._given.get_session(app_name=app, user_id="_", session_id="_")
            except Exception as error:
                if not (isinstance(error, OSError) or is_of_database(error)):
                    raise
                what = "the sessions of session_service= cannot be read"
                raise store_error(what, error) from error

    async def _close(self, grace: float) -> None:
        await self._executor.drain(grace)
        if self._handler is not None:
            await self._handler.quiet(_QUIET_SECONDS)
            await self._handler.aclose()
        if self._sender is not None:
            await self._sender.close(_QUIET_SECONDS)
        await self._stores.close()

    # --- gRPC ----------------------------------------------------------------------------------

    def _check_grpc(self) -> None:
        if not has_grpc():
            raise UsageError(
                "gRPC needs grpcio, which is not installed",
                found="grpc_port=",
                help="pip install 'adk-fluent-a2a[grpc]'",
            )
        if self._card is not None and GRPC not in (
            each.protocol_binding for each in self._card.supported_interfaces
        ):
            raise UsageError(
                "the card does not say where clients come in for gRPC",
                found="grpc_port=",
                help='pipeline.to_agent_card(endpoint=..., grpc_endpoint="https://...")',
            )

    async def _start_grpc(self, place: str, card: AgentCard, *, listed: bool) -> None:
        from adk_fluent.serve._grpc_server import open_grpc  # noqa: PLC0415  # of an extra

        handler = self._handling(card)
        self._grpc, port = await open_grpc(handler, self._gate, self._limits, place)
        self._grpc_address = f"http://{place.rpartition(':')[0]}:{port}"
        if not listed:
            made = AgentInterface(url=self._grpc_address, protocol_binding=GRPC)
            made.protocol_version = PROTOCOL
            card.supported_interfaces.append(made)

    # --- the app -------------------------------------------------------------------------------

    def _handling(self, given: AgentCard) -> Handler:
        """What answers, on every transport."""
        if self._handler is not None:
            return self._handler
        self._handler = Handler(
            parts=self._limits.parts,
            longest_id=self._stores.longest_id,
            inputs=self._inputs,
            is_busy=self._is_busy,
            sender=self._sender,
            push_config_store=self._configs,
            agent_executor=self._executor,
            task_store=self._stores.tasks,
            agent_card=self._stated(given),
            extended_agent_card=None if self._extended is None else self._sign(self._extended),
            event_stream=self._stores.stream,
            interrupted_task_timeout=_PARKED_SECONDS,
        )
        return self._handler

    def _stated(self, given: AgentCard) -> AgentCard:
        """A card with what this server does."""
        card = _copy(given)
        state_security(card, self._auth)
        card.capabilities.streaming = True
        card.capabilities.push_notifications = self._sender is not None
        card.capabilities.extended_agent_card = self._extended is not None
        return card

    def _made(self, given: AgentCard) -> ASGIApp:
        handler = self._handling(given)
        card = self._stated(given)
        base = base_of(card)
        rpc = [base or "/", f"{base}/"] if base else ["/"]
        rest = create_rest_routes(handler, enable_v0_3_compat=True, path_prefix=base)
        calls = [
            route
            for path in rpc
            for route in create_jsonrpc_routes(handler, path, enable_v0_3_compat=True)
        ]
        cards = card_paths(base)
        routes = [
            Route(_HEALTH, _healthy, methods=["GET"]),
            Route(_READY, self._ready, methods=["GET"]),
            *card_routes(card, base, max_age=300, sign=self._sign),
            *calls,
            *rest,
        ]
        app = Starlette(routes=routes, lifespan=self._lifespan)
        app.router.redirect_slashes = False  # which would send clients to whatever Host says
        return Guard(
            app,
            gate=self._gate,
            local=self._auth is None,
            limits=self._limits,
            open_paths=[_HEALTH, _READY, *cards],
            rpc_paths=rpc,
        )

    def _is_busy(self, principal: str, answering: int, own: int) -> bool:
        # what is being answered has perhaps not begun to run, and what runs may have been answered
        limits, executor = self._limits, self._executor
        most = limits.concurrency if self._auth is None else limits.principal_concurrency
        return (
            executor.stopping
            or max(executor.running, answering) >= limits.concurrency
            or max(executor.running_of(principal), own) >= most
        )

    async def _ready(self, request: Request) -> JSONResponse:
        try:
            async with asyncio.timeout(_CHECK_SECONDS):
                await self._stores.check()
        except Exception as error:  # noqa: BLE001  # whatever it is, it is not ready
            what = "a server is not ready: its store cannot be read"
            log_failure(what, error, level=logging.WARNING)
            return JSONResponse({"status": "no store"}, status_code=503)
        if self._executor.stopping:
            return JSONResponse({"status": "stopping"}, status_code=503)
        return JSONResponse({"status": "ready"})

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncGenerator[None]:
        await self._opened()
        yield
        if not self._executor.stopping:  # served by somebody else's server
            await self._close(0)


async def _healthy(request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


def _copy(card: AgentCard) -> AgentCard:
    made = AgentCard()
    made.CopyFrom(card)
    return made


def _unsigned(card: AgentCard) -> AgentCard:
    return card


def _node_of(pipeline: object) -> Node:
    """The IR of what is served."""
    if isinstance(pipeline, Builder):
        return cast("Builder", pipeline).to_ir()
    help = "pass a pipeline, such as Agent(...) or a >> b"
    if isinstance(pipeline, BaseAgent):
        help = f'make a pipeline of it: A2AServer(Pipeline("desk", {pipeline.name}))'
    raise UsageError("A2AServer(...) takes a pipeline", found=describe(pipeline), help=help)


def _check_state(root: Node, inputs: Keys, outputs: Keys, *, given: bool) -> None:
    """Refuse a pipeline that reads state which nobody writes, or that no message can begin.

    Outputs are read, too: by whoever is answered.
    """
    sent = set(inputs.names.values())
    report = check_all(root, inputs=sent, outputs=outputs.refs or None)
    found = ContractReport.of(
        (
            *(each for each in report.errors if isinstance(each, ReadBeforeWrite)),
            *_unsent(Graph(root), sent),
        )
    )
    if not given:
        try:
            found.raise_for_errors()
        except ContractError as error:
            error.add_note("messages write what A2AServer(inputs=[...]), or --input, names")
            raise
    for each in found:
        LOG.warning("a session that is new has no value there: %s", each)


def _unsent(graph: Graph, sent: Collection[str]) -> Iterator[Diagnostic]:
    """What the contract of the whole says that its callers give, and messages may not write."""
    contract = graph.boundary.contract
    for ref in () if contract is None else contract.inputs or ():
        lasts = ref.key.startswith(("user:", "app:"))  # earlier sessions may have written it
        if ref.default is UNSET and ref.key not in sent and not lasts:
            yield ReadBeforeWrite.at(
                graph,
                graph.boundary,
                f"`{graph.boundary.name}` needs its input `{ref.key}`, which its caller has to "
                "give, and no message may",
                help=f'let messages write it: A2AServer(..., inputs=["{ref.key}"])',
            )


def _check(card: object, auth: object, limits: object, push: object, extended: object) -> None:
    for name, value in (("card", card), ("extended_card", extended)):
        if value is not None and not isinstance(value, AgentCard):
            raise UsageError(
                f"A2AServer({name}=...) takes an a2a.types.AgentCard",
                found=describe(value),
                help="pipeline.to_agent_card(...) makes one",
            )
    if isinstance(card, AgentCard) and not card.supported_interfaces:
        raise UsageError(
            "A2AServer(card=...) takes a card with an interface",
            help='pipeline.to_agent_card(endpoint="https://...") makes one',
        )
    if auth is not None and not callable(auth):
        raise UsageError(
            "A2AServer(auth=...) takes an authenticator",
            found=describe(auth),
            help="BearerAuth({...}), ApiKeyAuth({...}), JwtAuth(...), or an async function",
        )
    if limits is not None and not isinstance(limits, Limits):
        raise UsageError("A2AServer(limits=...) takes Limits(...)", found=describe(limits))
    if push is not None and not isinstance(push, PushPolicy):
        raise UsageError("A2AServer(push=...) takes PushPolicy(...)", found=describe(push))
    if extended is not None and auth is None:
        raise UsageError(
            "A2AServer(extended_card=...) needs auth=",
            help="the extended card is for those alone who are authenticated",
        )
