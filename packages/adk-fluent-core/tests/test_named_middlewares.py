"""Middlewares that are chosen by name: registered in a program, or brought by a layer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, _registry
from adk_fluent._middlewares import (
    added_tools,
    find_middleware,
    made_middleware,
    register_middleware,
    registered_middlewares,
    unregister_middleware,
)
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import LayerError, MissingLayerError, UnknownNameError, UsageError
from adk_fluent.ir import MiddlewareRef, Ref
from adk_fluent.protocol import Middleware, MiddlewareDesc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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


class Looks:
    async def before_model(self, ctx: Any, request: Any) -> None: ...


class Searching(Looks):
    adds_tools = ("search",)


class Quiet(Middleware):
    async def before_tool(self, ctx: Any, tool_name: str, args: dict[str, Any]) -> Any: ...


class Renewed(Quiet):
    def new(self) -> Any:
        return Looks()


class Retries(Middleware):
    async def wrap_model_call(self, call: Any, next: Any, /) -> Any:
        return await next(call)


@pytest.mark.parametrize(
    ("middleware", "added"),
    [
        (Looks(), None),
        (Searching(), ("search",)),
        (Ref(Searching()), ("search",)),
        (Quiet(), ()),
        (Shouts(), ()),
        (Renewed(), None),
        (Retries(), None),
        (MiddlewareRef("nowhere"), None),
        (MiddlewareRef("shouts"), ()),
    ],
)
def test_the_tools_that_one_adds_are_told(middleware: Any, added: Any) -> None:
    register_middleware(DESC)
    assert added_tools(middleware) == added


def test_a_description_says_what_is_added_and_nothing_is_made() -> None:
    def never() -> Any:
        raise AssertionError

    for desc, added in (
        (MiddlewareDesc("shouts", "Shouts.", never), None),
        (MiddlewareDesc("shouts", "Shouts.", never, adds_tools=("a",)), ("a",)),
        (MiddlewareDesc("shouts", "Shouts.", Searching), ("search",)),
    ):
        register_middleware(desc, replace=True)
        assert added_tools(MiddlewareRef("shouts")) == added


def test_one_name_is_not_a_sequence_of_names() -> None:
    wrong = Searching()
    wrong.adds_tools = "search"  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(UsageError, match="adds_tools of Searching is a sequence") as caught:
        made_middleware(wrong)
    assert caught.value.help == "adds_tools = ('search',)"


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
    monkeypatch.setattr(_registry, "found", dict)
    with pytest.raises(MissingLayerError, match="pip install adk-fluent-middleware"):
        find_middleware("retry")
    with pytest.raises(MissingLayerError, match="pip install adk-fluent-cost"):
        find_middleware("cost_attribution")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Layers of which some middlewares can be had, and others cannot."""
    slots = {
        "good": "Entry('good_layer:FINE', 'fine'), Entry('good_layer:FINE', 'other'), "
        "Entry('good_layer:gone', 'gone'), Entry('good_layer:FINE', 'both')",
        "more": "Entry('good_layer:FINE', 'both')",
    }
    head = "from adk_fluent.protocol import Entry, Layer, MiddlewareDesc\n"
    fine = "FINE = MiddlewareDesc('fine', 'Fine.', object)\n"
    for name, entries in slots.items():
        layer = f"{head}{fine}L = Layer({name!r}, {{'middleware': ({entries},)}})"
        (tmp_path / f"{name}_layer.py").write_text(layer)
    (tmp_path / "bad_layer.py").write_text("1 / 0")
    for name in (*slots, "bad"):
        info = tmp_path / f"acme_{name}-0.3.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: acme-{name}\nVersion: 0.3\n")
        points = f"[{_registry.GROUP}]\n{name} = {name}_layer:L\n"
        (info / "entry_points.txt").write_text(points)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    _registry.refresh()
    yield
    monkeypatch.undo()
    for name in ("good_layer", "more_layer"):
        sys.modules.pop(name, None)
    _registry.refresh()


@pytest.mark.usefixtures("installed")
def test_what_is_broken_takes_no_other_middleware_down() -> None:
    register_middleware(DESC)
    names = {"fine", "other", "gone", "both", "shouts"} & registered_middlewares().keys()
    assert names == {"fine", "shouts"}
    assert find_middleware("fine").name == "fine"
    errors = [str(error) for error in _registry.layer_errors("middleware")]
    assert any("cannot load bad_layer:L" in each for each in errors)
    assert any("cannot load good_layer:gone" in each for each in errors)
    assert any("layers 'good' and 'more' both have a middleware 'both'" in each for each in errors)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "error", "says"),
    [
        ("gone", LayerError, "cannot load good_layer:gone"),
        ("other", LayerError, "good_layer:FINE does not describe a middleware 'other'"),
        ("both", LayerError, "one of acme-good 0.3 and one of acme-more 0.3"),
        ("nobodys", UnknownNameError, "'bad' of acme-bad 0.3; adk-fluent doctor tells why"),
    ],
)
def test_what_is_broken_is_told_where_it_is_needed(
    name: str, error: type[Exception], says: str
) -> None:
    with pytest.raises(error) as caught:
        find_middleware(name)
    assert says in str(caught.value)


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
