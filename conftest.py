"""What holds in every test of the workspace: IR is legal after every pass over it."""

from __future__ import annotations

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


@pytest.fixture
def illegal_ir(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test that compiles illegal IR to see what a backend says about it."""
    monkeypatch.setattr(PassList, "__call__", _RUN)
