"""What is proven wrong is not compiled for ADK, whoever asks for it and however."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Pipeline, Route
from adk_fluent.config import ExecutionConfig
from adk_fluent.errors import ContractError

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder

pytestmark = pytest.mark.adk


def desk(key: str, **boundary: Any) -> Builder:
    """A pipeline whose second agent reads a key that the first writes, or not."""
    write = Agent("writer").mock("a text").writes("draft")
    polish = Agent("reader").instruct(f"Polish {{{key}}}").mock("polished")
    return Pipeline("desk", write, polish).contract(**boundary)


#: Every way from a builder to ADK.
WAYS: dict[str, Callable[[Builder, ExecutionConfig], object]] = {
    "ask": lambda pipeline, config: pipeline.ask("Go.", config=config),
    "map": lambda pipeline, config: pipeline.map(["Go."], config=config),
    "to_agent": lambda pipeline, config: pipeline.to_agent(config=config),
    "to_app": lambda pipeline, config: pipeline.to_app(config),
    "to_runner": lambda pipeline, config: pipeline.to_runner(config=config),
}


@pytest.mark.parametrize("way", WAYS)
class TestEveryWay:
    def test_an_error_stops_it(self, way: str) -> None:
        with pytest.raises(ContractError, match="needs `drafd`, but nothing writes it") as caught:
            WAYS[way](desk("drafd", inputs=[]), ExecutionConfig())
        assert caught.value.node == "reader"
        assert [each.code for each in caught.value.report.errors] == ["FLW001"]
        assert str(caught.value.location).startswith(__file__)

    def test_what_is_right_is_let_through(self, way: str) -> None:
        assert WAYS[way](desk("draft", inputs=[]), ExecutionConfig())

    def test_a_warning_is_logged(self, way: str, caplog: pytest.LogCaptureFixture) -> None:
        config = ExecutionConfig(contracts="warn")
        with caplog.at_level(logging.WARNING, "adk_fluent.contracts"):
            _tolerate(WAYS[way], desk("drafe", inputs=[]), config)
        assert "error[FLW001]: the instruction of `reader` needs `drafe`" in caplog.text
        assert "did you mean `draft`?" in caplog.text

    def test_off_is_silent(self, way: str, caplog: pytest.LogCaptureFixture) -> None:
        config = ExecutionConfig(contracts="off")
        with caplog.at_level(logging.DEBUG, "adk_fluent.contracts"):
            _tolerate(WAYS[way], desk("drafg", inputs=[]), config)
        assert "FLW" not in caplog.text

    def test_a_key_that_nobody_declares_may_be_in_the_session(self, way: str) -> None:
        _tolerate(WAYS[way], desk("anything"), ExecutionConfig())


def _tolerate(way: Callable[[Builder, ExecutionConfig], object], *given: Any) -> None:
    """A run that lacks a key fails at the reader; before a run nobody knows what it will find."""
    try:
        way(*given)
    except ContractError:
        raise
    except KeyError as error:
        assert "draf" in str(error) or "anything" in str(error)  # noqa: PT017  # of this very key


def test_the_state_of_the_session_decides() -> None:
    pipeline = desk("anything")
    assert pipeline.ask("Go.", state={"anything": "it"}) == "polished"
    with pytest.raises(KeyError, match="anything"):
        pipeline.ask("Go.")


def test_what_is_only_a_warning_runs() -> None:
    write = Agent("writer").mock("a text").writes("draft")
    polish = Agent("reader").instruct("Polish {draft}").mock("polished")
    pipeline = Route("kind").eq("new", write) >> polish
    assert [each.code for each in pipeline.check().warnings] == ["FLW002"]
    assert pipeline.ask("Go.", state={"kind": "new"}) == "polished"


def test_what_has_nothing_to_do_with_state_does_not_stop_it() -> None:
    route = Route("kind").gt(1, Agent("a").mock("1")).gt(5, Agent("b").mock("2"))
    assert "FLW113" in [each.code for each in route.check()]
    assert route.ask("Go.", state={"kind": 3}) == "1"


def test_what_is_meant_to_be_so_runs_into_it() -> None:
    pipeline = desk("drafd", inputs=[]).allow("FLW001")
    with pytest.raises(KeyError, match="drafd"):
        pipeline.ask("Go.")
