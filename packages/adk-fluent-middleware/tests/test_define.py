"""Middlewares of one's own, by name: what is a setting, what is kept, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent._middlewares import made_middleware
from adk_fluent.cli import main
from adk_fluent.errors import UsageError
from adk_fluent.extend import registered_middlewares, unregister_middleware
from adk_fluent.middleware import (
    MiddlewareRef,
    RetryMiddleware,
    define_middleware,
    retry,
)
from adk_fluent.middleware._layer import LAYER

if TYPE_CHECKING:
    from collections.abc import Iterator


class Exporter:
    """Something that no file can hold."""


class Tracing:
    """Traces model calls.

    Args:
        sample_rate: Part of the calls that is traced.
    """

    def __init__(self, sample_rate: float = 1.0, exporter: Exporter | None = None) -> None:
        self.sample_rate = sample_rate
        self.exporter = exporter
        self.seen = 0

    def new(self) -> Tracing:
        return Tracing(self.sample_rate, self.exporter)

    async def before_model(self, ctx: Any, request: Any) -> None:
        self.seen += 1


@dataclass
class Counting:
    """Counts."""

    most: int = 3
    exporter: Exporter = field(default_factory=Exporter)

    async def before_model(self, ctx: Any, request: Any) -> None: ...


class Needs:
    def __init__(self, exporter: Exporter) -> None: ...

    async def before_model(self, ctx: Any, request: Any) -> None: ...


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    yield
    for name in ("tracing", "counting", "patient", "needs"):
        unregister_middleware(name)


def made(name: str, config: dict[str, Any] | None = None) -> Any:
    return made_middleware(MiddlewareRef(name, config))


def test_a_class_is_made_with_its_settings() -> None:
    desc = define_middleware(Tracing, name="tracing")
    assert desc.description == "Traces model calls."
    assert desc.config_schema == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "sample_rate": {
                "type": "number",
                "default": 1.0,
                "description": "Part of the calls that is traced.",
            }
        },
    }
    assert made("tracing", {"sample_rate": 0.1}).sample_rate == 0.1


def test_a_prototype_keeps_what_it_was_given() -> None:
    exporter = Exporter()
    define_middleware(Tracing(0.5, exporter), name="tracing")
    one, other = made("tracing"), made("tracing", {"sample_rate": 0.1})
    assert (one.sample_rate, other.sample_rate) == (0.5, 0.1)
    assert one.exporter is other.exporter is exporter
    assert one is not other


def test_a_prototype_that_is_a_dataclass() -> None:
    prototype = Counting(exporter=Exporter())
    define_middleware(prototype, name="counting")
    other = made("counting", {"most": 7})
    assert (other.most, other.exporter) == (7, prototype.exporter)
    assert prototype.most == 3


def test_a_built_in_as_a_prototype() -> None:
    define_middleware(retry(max_attempts=9, random=lambda: 0.0), name="patient")
    other = made("patient", {"backoff_base": 2.0})
    assert isinstance(other, RetryMiddleware)
    assert (other.max_attempts, other.backoff_base, other.random()) == (9, 2.0, 0.0)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"sample_rate": "much"}, r"tracing\(sample_rate=\.\.\.\) cannot have this value"),
        ({"sample_rte": 0.1}, "did you mean 'sample_rate'"),
        ({"exporter": "x"}, "no option 'exporter'"),
    ],
)
def test_settings_are_checked(config: dict[str, Any], says: str) -> None:
    define_middleware(Tracing, name="tracing")
    with pytest.raises(UsageError, match=says):
        made("tracing", config)


def test_what_no_file_can_hold_wants_a_prototype() -> None:
    with pytest.raises(UsageError, match="needs what no file can hold: exporter") as caught:
        define_middleware(Needs, name="needs")
    assert "define a prototype" in str(caught.value)
    define_middleware(Needs(Exporter()), name="needs")
    assert isinstance(made("needs"), Needs)


def test_it_has_a_name_and_is_a_middleware() -> None:
    with pytest.raises(UsageError, match="has no name"):
        define_middleware(Tracing())
    with pytest.raises(UsageError, match="no middleware"):
        define_middleware(42, name="forty-two")


def test_a_taken_name_is_refused() -> None:
    with pytest.raises(UsageError, match="'retry' already"):
        define_middleware(Tracing, name="retry")
    define_middleware(Tracing, name="tracing")
    define_middleware(Tracing, name="tracing")  # a module that is loaded again


# --- the built-in ones ---------------------------------------------------------------------------


NAMES = [entry.name for entry in LAYER.entries("middleware")]


@pytest.mark.parametrize("name", NAMES)
def test_each_built_in_says_what_it_does_and_takes(name: str) -> None:
    desc = registered_middlewares()[name]
    assert desc.name == name
    assert desc.description.endswith(".")
    schema: Any = desc.config_schema
    assert json.loads(json.dumps(schema)) == schema
    assert all("description" in each for each in schema["properties"].values()), schema


# --- the command line ----------------------------------------------------------------------------


Says = Callable[..., str]


@pytest.fixture
def says(capsys: pytest.CaptureFixture[str]) -> Says:
    def run(*command: str, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["middleware", *command])
        assert ended.value.code == code
        said = capsys.readouterr()
        return said.out + said.err

    return run


def test_list_names_all(says: Says) -> None:
    lines = says("list").splitlines()
    listed = [line.split()[0] for line in lines]
    assert listed == sorted(listed)
    assert {*listed} >= {*NAMES}  # and those of other wheels


def test_list_as_json(says: Says) -> None:
    found = json.loads(says("list", "--json"))
    assert {each["name"] for each in found} >= {*NAMES}
    assert all(each["config_schema"]["type"] == "object" for each in found)


def test_show(says: Says) -> None:
    shown = says("show", "retry")
    assert shown.startswith("retry: Calls a model again that failed in passing")
    assert "max_attempts     3" in shown
    data = json.loads(says("show", "retry", "--json"))
    assert data["config_schema"]["properties"]["max_attempts"]["minimum"] == 1


def test_show_names_what_no_file_can_hold(says: Says) -> None:
    assert says("show", "cache").splitlines()[-1] == "in Python also: store, key, cache_if"
    assert json.loads(says("show", "cache", "--json"))["live"] == ["store", "key", "cache_if"]
    assert "in Python" not in says("show", "todo_list")


def test_show_names_what_no_file_can_hold_of_ones_own(says: Says) -> None:
    class Sends:
        """Sends."""

        def __init__(self, rate: float = 1.0, client: object = None) -> None: ...

        async def before_run(self, ctx: Any) -> None: ...

    desc = define_middleware(Sends(client=print), name="sends")
    try:
        assert says("show", "sends").splitlines()[1:] == [
            "  rate  1.0",
            "in Python also: client",
        ]
    finally:
        unregister_middleware(desc.name)


def test_show_an_unknown_one(says: Says) -> None:
    assert "did you mean 'retry'" in says("show", "rety", code=2)
