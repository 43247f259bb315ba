"""Resources while pipelines run: making them, handing them to functions, tidying up.

What lives longer than a run (scopes ``app`` and ``session``) is kept in one table of the process,
never in state. What an async function made belongs to its event loop, so there is one for each.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
    suppress,
)
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from adk_fluent._calling import call
from adk_fluent._logs import LOG
from adk_fluent.errors import UsageError, add_place
from adk_fluent.ir import RESOURCE_SCOPES, ResourceNode

if TYPE_CHECKING:
    from types import TracebackType

    from adk_fluent.ir import Node, Ref

Table = Mapping[str, Any]

#: The resources of the run that goes on here.
_HERE: ContextVar[Table] = ContextVar("adk_fluent_resources")
_LIFETIME: Final = {scope: at for at, scope in enumerate(RESOURCE_SCOPES)}  # longest first


class Owner(NamedTuple):
    """Whose run it is.

    Attributes:
        app_name: The app.
        user_id: The user.
        session_id: The session.
    """

    app_name: str
    user_id: str
    session_id: str


def here() -> Table:
    """The resources of the run that goes on here."""
    return _HERE.get({})


def injected(name: str) -> Any:
    """The resource of that name, for code that no resource can be handed to, such as a middleware.

    Raises:
        UsageError: No pipeline runs here, or it has no such resource.
    """
    table = here()
    if name not in table:
        known = ", ".join(map(repr, table)) or "none"
        raise UsageError(
            f"no resource {name!r} here",
            found=f"resources of this run: {known}",
            help="add .inject(...) to the pipeline, and call this only while it runs",
        )
    return table[name]


def chosen(table: Table, names: Iterable[str]) -> dict[str, Any]:
    """Some resources.

    Raises:
        UsageError: One is not there: ADK called a function when no run of the pipeline went on.
    """
    try:
        return {name: table[name] for name in names}
    except KeyError as error:
        raise UsageError(
            f"the resource {error} is not open: no run of the pipeline goes on here",
            help="ADK gives the answer to a confirmation to the agent, past the pipeline; "
            "use a resource there that lives outside of it",
        ) from None


class Injection:
    """The resources of one pipeline.

    Args:
        resources: Their nodes.

    Raises:
        UsageError: One needs itself, or something that does not live as long.
    """

    def __init__(self, resources: Iterable[Node] = ()) -> None:
        nodes = {each.name: each for each in resources if isinstance(each, ResourceNode)}
        self._nodes = tuple(_ordered(nodes))
        self.names: frozenset[str] = frozenset(nodes)
        self._wanted: dict[int, tuple[object, tuple[str, ...]]] = {}

    def wanted(self, function: object) -> tuple[str, ...]:
        """The names of resources that a function has parameters for."""
        if not self.names:
            return ()
        known = self._wanted.get(id(function))
        if known is None:  # kept with the function, so that its id stays its own
            known = self._wanted[id(function)] = (function, _wanted(function, self.names))
        return known[1]

    def call(self, fn: Ref, state: object, table: Table) -> Any:
        """Call a function over state.

        Raises:
            UsageError: It cannot be called with state and these resources.
        """
        given = {name: table[name] for name in self.wanted(fn.value)}
        return call(fn, (state,), given, self.names)

    @asynccontextmanager
    async def open(self, owner: Owner) -> AsyncGenerator[Table]:
        """The resources of one run, while it goes on."""
        if _GONE:
            await close_gone()
        async with AsyncExitStack() as stack:
            table: dict[str, Any] = {}
            for node in self._nodes:
                try:
                    table[node.name] = await _instance(node, owner, table, stack)
                except Exception as error:
                    add_place(error, node)
                    raise
            token = _HERE.set(table)
            try:
                yield table
            finally:
                try:
                    _HERE.reset(token)
                except ValueError:  # the run was driven from several tasks, each with a context
                    _HERE.set({})

    async def close(self) -> None:
        """Tidy up what lives longer than a run, in every app and session."""
        await _close(_take(self._nodes))


# --- what functions ask for ----------------------------------------------------------------------


def parameters(function: object) -> Mapping[str, inspect.Parameter]:
    """The parameters of anything that can be called; none where Python cannot tell."""
    try:
        return inspect.signature(cast("Callable[..., Any]", function)).parameters
    except (TypeError, ValueError):
        return {}


def _wanted(function: object, names: frozenset[str]) -> tuple[str, ...]:
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    every = parameters(function)
    return tuple(name for name, each in every.items() if name in names and each.kind in kinds)


def _ordered(nodes: Mapping[str, ResourceNode]) -> Iterator[ResourceNode]:
    """Each resource behind those that it is made of."""
    needs = {name: _needs(node, nodes) for name, node in nodes.items()}
    while needs:
        ready = [name for name, others in needs.items() if not others & needs.keys()]
        if not ready:
            name = next(iter(needs))
            raise UsageError(
                f"the resources {', '.join(map(repr, needs))} need each other",
                node=nodes[name],
                help="make one of them without the others",
            )
        for name in ready:
            del needs[name]
            yield nodes[name]


def _needs(node: ResourceNode, nodes: Mapping[str, ResourceNode]) -> set[str]:
    if not node.is_factory:
        return set()
    others = set(_wanted(node.factory.value, frozenset(nodes)))
    for name in others:
        if _LIFETIME[nodes[name].scope] > _LIFETIME[node.scope]:
            raise UsageError(
                f"resource {node.name!r} lives as long as its {node.scope}, and needs {name!r}, "
                f"which lives as long as an {nodes[name].scope}",
                node=node,
                help=f"give {name!r} the scope {node.scope!r}, or {node.name!r} a shorter one",
            )
    return others


# --- making them ---------------------------------------------------------------------------------


async def _instance(node: ResourceNode, owner: Owner, table: Table, stack: AsyncExitStack) -> Any:
    if not node.is_factory:
        return node.factory.value
    if node.scope == "invocation":
        return await _make(node, table, stack)
    return await _kept(node, owner, table)


async def _make(node: ResourceNode, table: Table, stack: AsyncExitStack) -> Any:
    """One instance; `stack` tidies it up."""
    own = _TidyUp(node)
    stack.push_async_exit(own.leave)
    factory: Callable[..., Any] = node.factory.value
    given = {name: table[name] for name in _wanted(factory, frozenset(table))}
    if inspect.isasyncgenfunction(factory):
        value = asynccontextmanager(factory)(**given)
    elif inspect.isgeneratorfunction(factory):
        value = contextmanager(factory)(**given)
    else:
        value = factory(**given)
        if inspect.isawaitable(value):
            value = await value
    if node.cleanup is None and isinstance(value, AbstractAsyncContextManager):
        return await own.stack.enter_async_context(cast("AbstractAsyncContextManager[Any]", value))
    if node.cleanup is None and isinstance(value, AbstractContextManager):
        return own.stack.enter_context(cast("AbstractContextManager[Any]", value))
    if node.cleanup is not None:
        own.stack.push_async_callback(_clean, node.cleanup.value, value)
    return value


class _TidyUp:
    """Tidies one instance up: its errors say whose they are, and it hides no error of the run."""

    def __init__(self, node: ResourceNode) -> None:
        self._node = node
        self.stack: Final = AsyncExitStack()

    async def leave(
        self,
        kind: type[BaseException] | None,
        of_run: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        try:
            await self.stack.__aexit__(kind, of_run, at)
        except Exception as error:
            if error is not of_run:
                add_place(error, self._node)
            raise


async def _clean(cleanup: Callable[[Any], object], value: Any) -> None:
    done = cleanup(value)
    if inspect.isawaitable(done):
        await done


def made_by(test: Callable[[object], bool], function: object) -> bool:
    """Whether a test of `inspect` holds of a function, or of an object that can be called."""
    return test(function) or test(type(function).__call__)


def _loop_of(node: ResourceNode) -> asyncio.AbstractEventLoop | None:
    """The event loop that what it makes belongs to, if to one."""
    factory = node.factory.value
    tests = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    bound = any(made_by(test, factory) for test in tests)
    return asyncio.get_running_loop() if bound else None


# --- keeping them --------------------------------------------------------------------------------


@dataclass(eq=False)
class _Kept:
    """An instance that outlives a run.

    Attributes:
        node: What it is.
        loop: The event loop it belongs to; None if to none.
        made: The instance, once it is there.
        stack: Tidies it up.
    """

    node: ResourceNode
    loop: asyncio.AbstractEventLoop | None
    made: Future[Any] = field(default_factory=Future[Any])
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)


_Key = tuple[int, int | None, Owner | str]
_TABLE: Final[dict[_Key, _Kept]] = {}
_LOCK: Final = Lock()
#: What of the table each session has, in the order in which it was asked for.
_OF_SESSION: Final[dict[Owner, dict[_Key, None]]] = {}
#: Sessions that are gone, whose resources nobody has tidied up yet.
_GONE: Final[deque[Owner]] = deque()


def session_is_gone(owner: Owner) -> None:
    """Let the resources of a session be tidied up by the next run, or by `close_gone`.

    It waits for nothing and takes no lock: garbage collection may call it at any point.
    """
    if owner in _OF_SESSION:
        _GONE.append(owner)


async def close_gone() -> None:
    """Tidy up the resources of sessions that are gone; what goes wrong is logged."""
    every: list[_Kept] = []
    with suppress(IndexError):
        while True:
            owner = _GONE.popleft()
            with _LOCK:
                keys = _OF_SESSION.pop(owner, {})
                every += [_TABLE.pop(key) for key in reversed(keys) if key in _TABLE]
    for kept in every:
        if kept.loop in (None, asyncio.get_running_loop()):
            await _tidy(kept)
        else:
            _tidy_elsewhere(kept)


async def _kept(node: ResourceNode, owner: Owner, table: Table) -> Any:
    """The one instance of this app or session; whoever comes first makes it, the others wait."""
    loop = _loop_of(node)
    key: _Key = (
        id(node.factory.value),
        id(loop) if loop else None,
        owner if node.scope == "session" else owner.app_name,
    )
    while True:
        with _LOCK:
            found = _TABLE.get(key)
            if found is not None and found.loop is not None and found.loop.is_closed():
                found = None  # another loop had this id
            mine = found is None
            if found is None:
                found = _TABLE[key] = _Kept(node, loop)
                if node.scope == "session":
                    _OF_SESSION.setdefault(owner, {})[key] = None
                found.made.set_running_or_notify_cancel()  # who waits for it cannot cancel it
        if mine:
            return await _make_kept(key, found, table)
        try:
            return await asyncio.wrap_future(found.made)
        except _AbandonedError:
            continue  # who was making it was cancelled: make it ourselves


class _AbandonedError(Exception):
    """Whoever was making a resource was cancelled."""


async def _make_kept(key: _Key, kept: _Kept, table: Table) -> Any:
    try:
        value = await _make(kept.node, table, kept.stack)
    except BaseException as error:
        with _LOCK:
            if _TABLE.get(key) is kept:
                del _TABLE[key]
        ours = isinstance(error, Exception)
        kept.made.set_exception(error if ours else _AbandonedError())
        kept.made.exception()  # nobody else need have waited for it
        raise
    kept.made.set_result(value)
    return value


NOTHING: Final = Injection()


def _take(nodes: Iterable[ResourceNode]) -> list[_Kept]:
    """Take instances of these resources out of the table."""
    factories = {id(node.factory.value) for node in nodes}
    with _LOCK:
        keys = [key for key in _TABLE if key[0] in factories]
        for owner in {key[2] for key in keys if isinstance(key[2], Owner)}:
            left = {key: None for key in _OF_SESSION.pop(owner, {}) if key[0] not in factories}
            if left:
                _OF_SESSION[owner] = left
        return [_TABLE.pop(key) for key in reversed(keys)]


async def _close(every: Iterable[_Kept]) -> None:
    """Tidy up; the first error is raised when all is done."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        for kept in reversed(list(every)):
            if not kept.made.done() and kept.loop in (None, loop):
                await asyncio.wait([asyncio.wrap_future(kept.made)])  # then there is what to close
            if kept.loop is None or kept.loop is loop:
                stack.push_async_exit(kept.stack)
            else:
                _tidy_elsewhere(kept)


def _tidy_elsewhere(kept: _Kept) -> None:
    """Tidy up what belongs to another event loop than the one that runs here."""
    loop = cast("asyncio.AbstractEventLoop", kept.loop)
    if loop.is_closed():
        LOG.warning("resource %r is left as it is: its loop is closed", kept.node.name)
    else:
        loop.call_soon_threadsafe(loop.create_task, _tidy(kept))


async def _tidy(kept: _Kept) -> None:
    try:
        await kept.stack.aclose()
    except Exception:  # noqa: BLE001  # nobody waits for it who could be told otherwise
        LOG.exception("tidying up resource %r failed", kept.node.name)


@atexit.register
def _at_exit() -> None:
    """Tidy up what nobody closed."""
    with _LOCK:
        every = [_TABLE.pop(key) for key in reversed(list(_TABLE))]
    left = [kept for kept in every if kept.loop is None]
    if left:
        asyncio.run(_all(left))


async def _all(every: Iterable[_Kept]) -> None:
    for kept in every:
        await _tidy(kept)
