"""Running what a builder describes. Imported by the first run only: asyncio is slow to import."""

from __future__ import annotations

import asyncio
import os
import re
import threading
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping
from contextlib import aclosing
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

from adk_fluent._middlewares import middlewares_everywhere
from adk_fluent._words import describe
from adk_fluent.errors import AgentReportedError, SessionError, UnknownNameError, UsageError
from adk_fluent.ir import AppNode, ExecutionConfig, walk
from adk_fluent.protocol import Answer, Backend, EventListener, resume_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine, Iterator

    from adk_fluent.backends.adk import ADKBackend
    from adk_fluent.ir import Node
    from adk_fluent.protocol import AgentEvent, RunResult

T = TypeVar("T")
R = TypeVar("R")

LOCK: Final = threading.Lock()

#: The form of ids of sessions that were given none.
_MADE_HERE: Final = re.compile("adk-fluent-run-[0-9a-f]{32}")

#: Compiled forms that one builder keeps, one a config it was run with.
KEPT: Final = 8


class Lease:
    """What keeps the session of a run that was given no id: it goes with the last who holds this.

    Attributes:
        where: App, user and id of the session.
    """

    __slots__ = ("__weakref__", "where")

    def __init__(self, where: tuple[str, str, str]) -> None:
        self.where: tuple[str, str, str] = where


class Runs:
    """What a builder keeps from one run to the next: compiled forms, and sessions in memory.

    A session whose id was made here is kept by the results of its runs, by streams, and by a
    question that is open in it.
    """

    __slots__ = ("_adk", "_asking", "_compiled", "_leases")

    def __init__(self) -> None:
        self._adk: ADKBackend | None = None
        self._compiled: list[tuple[Node, ExecutionConfig | None, Any, Any]] = []
        self._leases: WeakValueDictionary[tuple[str, str, str], Lease] = WeakValueDictionary()
        self._asking: dict[tuple[str, str, str], Lease] = {}

    def compiled(
        self, ir: Node, config: ExecutionConfig | None, backend: Backend[Any] | None
    ) -> Any:
        """The compiled form of this very IR with this config; `backend` None is ADK."""
        by = (backend, *middlewares_everywhere())
        for known, with_config, made_by, compiled in self._compiled:
            if (
                known is ir
                and with_config == config
                and list(map(id, made_by)) == list(map(id, by))
            ):
                return compiled
        compiled = (backend or self.adk).compile(ir, config)
        fresh = [entry for entry in self._compiled if entry[0] is ir]
        self._compiled = [*fresh[1 - KEPT :], (ir, config, by, compiled)]
        return compiled

    def lease(self, compiled: Any, message: object, options: dict[str, Any]) -> Lease | None:
        """What keeps the session of a run in memory, which is named if it has no name yet.

        Args:
            compiled: What is run.
            message: What it is run with.
            options: Its options; gets a `session_id`.

        Returns:
            None where the user has named the session.

        Raises:
            SessionError: The session was made by a run, and nobody has kept it.
        """
        id = options.get("session_id")
        if id is None and resume_of(message) is not None:  # which is an error
            return None
        app_name, user_id = compiled.config.app_name, options.get("user_id", "user")
        if id is None:
            id = options["session_id"] = f"adk-fluent-run-{uuid.uuid4().hex}"
            where = (app_name, user_id, id)
            lease = self._leases[where] = Lease(where)
            weakref.finalize(lease, self.adk.forget, *where).atexit = False
            return lease
        if _MADE_HERE.fullmatch(id) is None:
            return None
        found = self._leases.get((app_name, user_id, id))
        if found is None:
            raise SessionError(
                f"session {id!r} of user {user_id!r} is not there any more",
                help="a session that a run was given no id for goes with the last RunResult of it, "
                "unless a question is open: keep the result, or give session_id= from the start",
            )
        return found

    async def settle(self, compiled: Any, lease: Lease, *, asks: bool) -> None:
        """Let a lease last as long as a question is open in its session.

        Args:
            compiled: What was run there.
            lease: What keeps the session.
            asks: Whether the run waits.
        """
        if asks:
            self._asking[lease.where] = lease
        elif lease.where in self._asking:  # another run of the session may still wait
            _, user_id, id = lease.where
            if not await self.adk.pending(compiled, user_id=user_id, session_id=id):
                self._asking.pop(lease.where, None)

    async def follow(
        self, compiled: Any, lease: Lease | None, events: AsyncGenerator[AgentEvent, None]
    ) -> AsyncGenerator[AgentEvent, None]:
        """The events of a stream, whose session is kept meanwhile if there is a lease."""
        async with aclosing(events):
            async for event in events:
                if event.pending and lease is not None:
                    self._asking[lease.where] = lease
                try:
                    yield event
                except asyncio.CancelledError:
                    await _close_apart(events)
                    raise
        if lease is not None:
            await self.settle(compiled, lease, asks=False)

    @property
    def adk(self) -> ADKBackend:
        """ADK with sessions in memory, the same ones each time."""
        if self._adk is None:
            self._adk = new_adk()
        return self._adk


async def _close_apart(events: AsyncGenerator[Any, None]) -> None:
    """Close what a generator reads whose own closing was cancelled before it began.

    So ``asyncio.run`` does at its end with a stream that nobody reads on, and then closes every
    generator at once. Python 3.11 waits but for one step of a closing that was cancelled: this is
    one, however many there are inside.
    """

    async def close() -> None:
        await events.aclose()

    await asyncio.shield(asyncio.create_task(close()))


def hold(lease: Lease, holder: object) -> None:
    """Let a lease last as long as an object, which need not be hashable."""
    weakref.finalize(holder, _let_go, lease).atexit = False


def _let_go(lease: Lease) -> None:
    """Nothing needs to be done: it was held by being the argument of this."""


def new_adk() -> ADKBackend:
    """ADK with sessions in memory that nobody else sees."""
    from adk_fluent.backends.adk import ADKBackend  # noqa: PLC0415  # another backend needs no ADK

    return ADKBackend()


def unanswered(result: RunResult, root: Node) -> AgentReportedError:
    """The error about a run whose answer nothing but a reported error stands for."""
    error = result.errors[-1]
    event = next(each for each in reversed(result) if each.error == error)
    node = next((each for each in walk(root) if each.name == event.node), None)
    said = f"{error.code}: {error.message}" if error.message else error.code
    return AgentReportedError(
        f"there is no answer: {event.author} reported {said}",
        error_code=error.code,
        error_message=error.message,
        node=event.node if node is None else node,
        help="run(...) gives the events up to there; a fallback (a // b) answers instead",
    )


def waits(result: RunResult, root: Node) -> SessionError:
    """The error about a run that waits for an answer where nobody can give one."""
    asked = "; ".join(f"{each.name or each.kind}: {each.message}" for each in result.pending)
    return SessionError(
        f"{root.name} has no answer yet, for it waits for one",
        node=root,
        found=asked,
        help="write result = await x.run(...), and then "
        "x.resume(result.pending[0].answer(...), session_id=result.session_id)",
    )


def check_answers(answers: Iterable[object]) -> None:
    """Refuse what is no answer to a question.

    Raises:
        UsageError: One is none.
    """
    for each in answers:
        if not isinstance(each, Answer):
            raise UsageError(
                "resume(...) takes answers",
                found=describe(each),
                help="make one of a question: result.pending[0].answer(True)",
            )


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse options of a run that no backend can make anything of.

    Raises:
        UnknownNameError: There is no such option.
        UsageError: One has a wrong value.
    """
    for name in ("compiled", "prompt"):  # of `Backend.run`, and no options
        if name in options:
            raise UnknownNameError(f"a run takes no {name!r}", unknown=name, known=_OPTIONS)
    for name, (says, fits) in _OPTIONS.items():
        value = options.get(name)
        if value is not None and not fits(value):
            raise UsageError(
                f"{name}= takes {says}",
                found=describe(value),
            )


def with_middlewares(
    config: ExecutionConfig | None, ir: Node, more: Iterable[object]
) -> ExecutionConfig:
    """How a pipeline runs, with more middlewares inside all others."""
    own = ir.execution if isinstance(ir, AppNode) else None
    config = config or own or ExecutionConfig()
    return replace(config, middlewares=(*config.middlewares, *more))


def _is_id(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _listens(value: object) -> bool:
    return not isinstance(value, type) and isinstance(value, EventListener)


def _items(values: Any) -> Iterable[object]:
    return values


_OPTIONS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "user_id": ("a text that is not empty", _is_id),
    "session_id": ("a text that is not empty", _is_id),
    "config": ("an ExecutionConfig", lambda value: isinstance(value, ExecutionConfig)),
    "session_service": (
        "a session service of ADK, such as SqliteSessionService(...)",
        lambda value: not isinstance(value, type) and hasattr(value, "append_event"),
    ),
    "listeners": (
        "a list of listeners, such as [Trace()]",
        lambda value: isinstance(value, list | tuple) and all(map(_listens, _items(value))),
    ),
    "middleware": (
        "a list of middlewares, such as [RetryMiddleware()]",
        lambda value: isinstance(value, list | tuple),
    ),
    "backend": (
        "something that compiles and streams, such as mock_backend(...)",
        lambda value: not isinstance(value, type) and isinstance(value, Backend),
    ),
}


class _Loop:
    """An event loop that is closed when its owner is gone, at the latest when Python ends."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        weakref.finalize(self, _close, self.runner, os.getpid())


def _close(runner: asyncio.Runner, process: int) -> None:
    if os.getpid() != process:  # or it would close what the process before a fork uses
        return
    try:
        runner.close()
    except RuntimeError as error:  # Python 3.12.1 has no thread any more to wait for others in
        if "interpreter shutdown" not in str(error):
            raise


class _PerThread(threading.local):
    """One loop a thread, and kept: the clients that models cache live and die with their loop."""

    def __init__(self) -> None:
        self.loop = _Loop()


_here = _PerThread()


def _begin_anew() -> None:
    """In a forked process: the loop of the one before it is shared, and its threads are gone."""
    global _here  # noqa: PLW0603  # the one of this process
    _left.append(_here)
    _here = _PerThread()


_left: Final[list[_PerThread]] = []  # kept, for what is collected is closed
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_begin_anew)


def run_sync(
    name: str, make: Callable[[], Coroutine[Any, Any, T]], *, instead: str | None = None
) -> T:
    """Run a coroutine to its end from code that is not async.

    Each thread keeps one event loop, in which the clients that models cache stay usable.

    Args:
        name: The method that calls this, for the error.
        make: Makes the coroutine.
        instead: The async method to use inside an event loop; ``{name}_async`` otherwise.

    Raises:
        UsageError: An event loop runs in this thread already.
    """
    if _is_in_loop():
        raise UsageError(
            f"{name}() cannot wait inside a running event loop",
            help=f"write: await {instead or f'{name}_async'}(...)",
        )
    return _here.loop.runner.run(make(), context=copy_context())


def _is_in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _is_many(items: object) -> bool:
    return isinstance(items, Iterable) and not isinstance(items, str | bytes | Mapping)


async def run_each(
    items: Iterable[T], work: Callable[[T], Coroutine[Any, Any, R]], concurrency: int
) -> list[R]:
    """Do the work for each item, some at the same time; results in the order of the items.

    The first failure cancels what is under way and is raised.

    Raises:
        UsageError: `items` is one message, or nothing one can go through.
    """
    if not _is_many(items):
        raise UsageError(
            "map(...) takes several messages",
            found=describe(items),
            help="give a list of messages; one alone goes to ask(...) or run(...)",
        )
    results: dict[int, R] = {}

    async def worker(rest: Iterator[tuple[int, T]]) -> None:
        for index, item in rest:
            try:
                results[index] = await work(item)
            except Exception as error:
                error.add_note(f"in message {index} of map(...)")
                raise

    rest = iter(enumerate(items))
    workers = [asyncio.create_task(worker(rest)) for _ in range(concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [results[index] for index in range(len(results))]
