"""What holds in every test of the workspace.

IR is legal after every pass over it, and who counts the tasks of a loop does not count those of
another test.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import pytest

from adk_fluent.backends import PassList
from adk_fluent.errors import LegalityError
from adk_fluent.ir import Node, assert_legal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_RUN: Final[Callable[..., Node]] = getattr(PassList, "__call__")  # noqa: B004, B009  # untyped


def _checked(
    self: PassList[Any], root: Node, cx: Any, verify: Callable[[str, Node], None] | None = None
) -> Node:
    def legal(name: str, made: Node) -> None:
        try:
            assert_legal(made)
        except LegalityError as error:
            error.add_note(f"this is what pass {name!r} returned")
            raise
        if verify is not None:
            verify(name, made)

    return _RUN(self, root, cx, legal)


@pytest.fixture(autouse=True, scope="session")
def legal_after_every_pass() -> Iterator[None]:
    """However a test compiles, by builders, by the command line, or with passes of a layer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PassList, "__call__", _checked)
        yield


_ALL_TASKS: Final = asyncio.all_tasks


def _tasks(loop: asyncio.AbstractEventLoop | None = None) -> set[asyncio.Task[Any]]:
    return {task for task in _ALL_TASKS(loop) if not _closes_a_client(task)}


def _closes_a_client(task: asyncio.Task[Any]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and code.co_name == "aclose" and "site-packages" in code.co_filename


@pytest.fixture(autouse=True, scope="session")
def clients_of_other_tests_close_unseen() -> Iterator[None]:
    """Clients of google-genai close, when they are collected, in a task of whatever loop runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "all_tasks", _tasks)  # asyncio's own modules have it elsewhere
        yield


@pytest.fixture
def illegal_ir(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test that compiles illegal IR to see what a backend says about it."""
    monkeypatch.setattr(PassList, "__call__", _RUN)
