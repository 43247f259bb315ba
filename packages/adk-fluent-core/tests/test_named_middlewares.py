"""Middlewares that are chosen by name: registered in a program, or brought by a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, _registry
from adk_fluent._middlewares import (
    find_middleware,
    made_middleware,
    register_middleware,
    registered_middlewares,
    unregister_middleware,
)
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import MissingLayerError, UnknownNameError, UsageError
from adk_fluent.ir import MiddlewareRef
from adk_fluent.protocol import MiddlewareDesc

if TYPE_CHECKING:
    from collections.abc import Iterator


class Shouts:
    def __init__(self, mark: str = "!") -> None:
        self.mark = mark

    async def after_model(self, ctx: Any, response: Any) -> None: ...


DESC = MiddlewareDesc("shouts", "Shouts.", Shouts, {"type": "object"})


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    yield
    unregister_middleware("shouts")


def test_a_registered_one_is_found_and_made() -> None:
    register_middleware(DESC)
    assert find_middleware("shouts") is DESC
    assert registered_middlewares()["shouts"] is DESC
    made = made_middleware(MiddlewareRef("shouts", {"mark": "?"}))
    assert (type(made), made.mark) == (Shouts, "?")
    assert made_middleware(MiddlewareRef("shouts")) is not made


def test_a_name_means_one_middleware() -> None:
    register_middleware(DESC)
    register_middleware(DESC)
    other = MiddlewareDesc("shouts", "Another.", Shouts)
    with pytest.raises(UsageError, match="called 'shouts' already"):
        register_middleware(other)
    assert register_middleware(other, replace=True) is find_middleware("shouts")


def test_what_is_no_description_is_refused() -> None:
    wrong: Any = Shouts
    with pytest.raises(UsageError, match="takes a MiddlewareDesc"):
        register_middleware(wrong)


def test_an_unknown_name_says_which_are_near() -> None:
    register_middleware(DESC)
    with pytest.raises(UnknownNameError, match="no middleware called 'shuots'") as caught:
        find_middleware("shuots")
    assert "shouts" in str(caught.value)


def test_one_of_an_absent_layer_names_the_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_registry, "layers", dict)
    monkeypatch.setattr("adk_fluent._middlewares.installed", dict)
    with pytest.raises(MissingLayerError, match="pip install adk-fluent-middleware"):
        find_middleware("retry")
    with pytest.raises(MissingLayerError, match="pip install adk-fluent-cost"):
        find_middleware("cost_attribution")


def test_settings_it_does_not_take_are_refused() -> None:
    register_middleware(DESC)
    with pytest.raises(UsageError, match="'shouts' does not take these settings") as caught:
        made_middleware(MiddlewareRef("shouts", {"volume": 3}))
    assert "volume" in str(caught.value)


def test_whoever_makes_no_middleware_is_told_so() -> None:
    register_middleware(MiddlewareDesc("shouts", "Shouts.", lambda: 42))  # pyright: ignore[reportArgumentType]
    with pytest.raises(UsageError, match="no middleware"):
        made_middleware(MiddlewareRef("shouts"))


def test_builders_and_configs_take_references() -> None:
    reference = MiddlewareRef("retry", {"max_attempts": 2})
    pipeline = Agent("a").middleware(reference) >> Agent("b").middleware(reference, scope="agent")
    assert "middleware retry" in pipeline.explain()
    assert ExecutionConfig(middlewares=[reference]).middlewares == (reference,)


def test_a_reference_without_a_name_is_refused() -> None:
    wrong: Any = MiddlewareRef("")
    with pytest.raises(UsageError, match="has a name"):
        Agent("a").middleware(wrong)


@pytest.mark.adk
async def test_a_pipeline_runs_with_it() -> None:
    calls: list[str] = []

    class Counts(Shouts):
        async def before_model(self, ctx: Any, request: Any) -> None:
            calls.append(self.mark)

    register_middleware(MiddlewareDesc("shouts", "Shouts.", Counts))
    named = MiddlewareRef("shouts", {"mark": "?"})
    pipeline = Agent("a").mock("A").middleware(named, scope="agent") >> Agent("b").mock("B")
    await pipeline.run("hi", config=ExecutionConfig(middlewares=[MiddlewareRef("shouts")]))
    assert calls == ["!", "?", "!"]


@pytest.mark.adk
async def test_an_unknown_name_stops_before_any_model_call() -> None:
    pipeline = Agent("a").mock("A").middleware(MiddlewareRef("nobodys"))
    with pytest.raises(UnknownNameError, match="nobodys") as caught:
        await pipeline.run("hi")
    assert __file__ in str(caught.value)
