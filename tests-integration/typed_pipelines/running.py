"""Runs random pipelines over typed state, and tells what goes wrong in them."""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

import pytest

from adk_fluent.backends.mock import mock_backend
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import ExpectationError
from adk_fluent.flow import _engine, _failures, _rules
from adk_fluent.state import StateFieldRef
from typed_pipelines.parts import CHANCE, BrokenError

if TYPE_CHECKING:
    from collections.abc import Generator
    from types import ModuleType

    from google.adk.sessions.base_session_service import BaseSessionService

SECONDS = 60  # for one pipeline; far more than any takes


class Watch:
    """What goes wrong while a pipeline runs, also where that is survived.

    Attributes:
        wrong: What steps raised, but for what they raise on purpose, and reads through schemas that
            gave something else than is declared.
        reads: How many there were.
    """

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.reads = 0

    def failed(self, error: BaseException) -> None:
        if not isinstance(error, BrokenError | ExpectationError):
            self.wrong.append(f"{type(error).__name__}: {error}")

    def read(self, ref: Any, value: Any) -> None:
        self.reads += 1
        if not is_a(value, ref.type) and (value is not None or ref.required):
            self.wrong.append(f"{ref!r} gives {value!r}")


def is_a(value: Any, kind: Any) -> bool:  # noqa: PLR0911  # a row for each kind of type
    """Whether a value is of a type; by nothing of what is tested."""
    origin: Any = get_origin(kind)
    args: tuple[Any, ...] = get_args(kind)
    if origin is Annotated:
        return is_a(value, args[0])
    if origin in (Union, UnionType):
        return any(is_a(value, each) for each in args)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in args)
    if origin in (list, set, tuple, dict):
        return isinstance(value, origin) and _holds(value, origin, args)
    if kind is float:
        return type(value) in (int, float)
    if kind in (int, dt.date):
        return type(value) is kind
    return isinstance(value, kind)


def _holds(value: Any, origin: Any, args: tuple[Any, ...]) -> bool:
    """Whether a container holds what it should."""
    if origin is tuple:
        return len(value) == len(args) and all(map(is_a, value, args))
    if origin is dict:
        return _holds(value.values(), list, args[1:]) and _holds(value.keys(), list, args)
    return all(is_a(each, args[0]) for each in value)


@contextlib.contextmanager
def watching() -> Generator[Watch]:
    """Look at all that steps raise, and at all that is read through schemas."""
    watch = Watch()
    get: Any = vars(StateFieldRef)["__get__"]

    def read(self: Any, bound: Any, owner: Any = None) -> Any:
        value = get(self, bound, owner)
        if bound is not None:
            watch.read(self, value)
        return value

    with pytest.MonkeyPatch.context() as patch:
        for module in (_engine, _failures, _rules):
            add = module.add_place

            def failed(error: Any, node: Any, add: Any = add) -> Any:
                watch.failed(error)
                return add(error, node)

            patch.setattr(module, "add_place", failed)
        patch.setattr(StateFieldRef, "__get__", read)
        yield watch


# --- running -------------------------------------------------------------------------------------


def configured(**changes: Any) -> ExecutionConfig:
    return ExecutionConfig(max_llm_calls=10_000, **changes)


async def on_mock(module: ModuleType, config: ExecutionConfig) -> None:
    backend = mock_backend()
    compiled = backend.compile(module.root.to_ir(), config)
    try:
        async for _ in backend.stream(compiled, "go", state=dict(module.start)):
            pass
    finally:
        for session in backend._sessions.values():
            look_at_all(module, session.state)


class OnAdk:
    """Runs on ADK, each pipeline in an app and a session of its own, which is read back.

    Args:
        service: Keeps the sessions.
        held: Whether it is held to the schema.
    """

    def __init__(self, service: BaseSessionService, *, held: bool) -> None:
        self.service = service
        self.held = held
        self.count = 0

    async def __call__(self, module: ModuleType, config: ExecutionConfig) -> None:
        self.count += 1
        service: Any = self.service
        if self.held:
            from adk_fluent.state import SchemaSessionService

            service = SchemaSessionService(service, module.Shop)
        ids = {"user_id": f"user {self.count}", "session_id": f"session {self.count}"}
        app = f"app_{self.count}"
        try:
            await module.root.run(
                "go",
                config=configured(app_name=app, contracts=config.contracts),
                session_service=service,
                state=dict(module.start),
                **ids,
            )
        finally:
            session = await service.get_session(app_name=app, **ids)
            if session is not None:
                look_at_all(module, session.state)
                await service.delete_session(app_name=app, **ids)


def look_at_all(module: ModuleType, state: Any) -> None:
    """Read every field that has a value."""
    bound = module.Shop.bind(dict(state))
    for key, ref in module.Shop.__state_fields__.items():
        if state.get(key) is not None:
            getattr(bound, ref.name)


async def ran(module: ModuleType, way: Any, chance: int, *, contracts: Any = "error") -> Watch:
    """Run a pipeline, and tell what goes wrong."""
    CHANCE.seed(chance)
    with watching() as watch:
        try:
            async with asyncio.timeout(SECONDS):
                await way(module, configured(contracts=contracts))
        except Exception as error:  # noqa: BLE001  # it is told
            watch.failed(error)
    return watch
