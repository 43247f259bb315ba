from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adk_fluent.contracts import _check, _checkers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent._registry import Provided


@pytest.fixture(autouse=True)
def only_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is installed where the tests run: no layer is, and no user's checker."""

    def nothing(slot: str) -> Iterator[Provided]:
        return iter(())

    monkeypatch.setattr(_check, "found", dict)
    monkeypatch.setattr(_checkers, "provided", nothing)
    monkeypatch.setattr(_checkers, "_users", {})
