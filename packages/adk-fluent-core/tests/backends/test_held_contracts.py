"""What is proven wrong does not run: `ExecutionConfig.contracts`, and what a look at it costs."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Pipeline, contracts
from adk_fluent.contracts import ReadBeforeWrite, check_runs
from adk_fluent.errors import ContractError
from adk_fluent.ir import AgentNode, ExecutionConfig, Match, Node, RouteNode, SequenceNode
from adk_fluent.testing import mock_backend

if TYPE_CHECKING:
    from collections.abc import Iterator

    from adk_fluent.contracts import ContractReport


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Node]]:
    """The pipelines that were checked."""
    seen: list[Node] = []

    def counting(root: Node) -> ContractReport:
        seen.append(root)
        return check_runs(root)

    monkeypatch.setattr(contracts, "check_runs", counting)
    yield seen
    seen.clear()


def pipeline(key: str = "draft", name: str = "p") -> Node:
    """A pipeline whose second agent reads a key."""
    writer = Agent("writer").mock("text").writes("draft")
    reader = Agent("reader").mock("text").reads(key)
    return Pipeline(name, writer, reader).contract(inputs=[]).to_ir()


def compile(node: Node, **config: Any) -> Any:
    """Compile for the mock backend."""
    return mock_backend({}).compile(node, ExecutionConfig(**config))


class TestProvenWrong:
    def test_it_is_refused(self) -> None:
        with pytest.raises(ContractError, match="did you mean `draft`") as caught:
            compile(pipeline("drafd"))
        assert [type(each) for each in caught.value.report.errors] == [ReadBeforeWrite]
        assert compile(pipeline())

    def test_it_is_told_and_runs(self, caplog: pytest.LogCaptureFixture) -> None:
        with caplog.at_level(logging.WARNING, "adk_fluent.contracts"):
            assert compile(pipeline("drafd"), contracts="warn")
        assert "FLW001" in caplog.text

    def test_nobody_looks(self, checked: list[Node], caplog: pytest.LogCaptureFixture) -> None:
        assert compile(pipeline("drafd", name="unseen"), contracts="off")
        assert not checked
        assert not caplog.text

    def test_what_a_session_may_hold_is_not_wrong(self) -> None:
        reader = Agent("reader").mock("text").reads("given").to_ir()
        assert compile(reader)


class TestMemo:
    def test_the_same_content_is_checked_once(self, checked: list[Node]) -> None:
        first, second = pipeline(name="once"), pipeline(name="once")
        assert first is not second
        for node in (first, second, first):
            compile(node)
        assert [each is first for each in checked] == [True]

    def test_other_content_is_checked(self, checked: list[Node]) -> None:
        nodes = [pipeline(name="one"), pipeline(name="other")]
        for node in nodes:
            compile(node)
        assert len(checked) == 2

    def test_errors_are_kept_too(self, checked: list[Node]) -> None:
        node = pipeline("drafd", name="kept")
        for _ in range(2):
            with pytest.raises(ContractError):
                compile(node)
        assert len(checked) == 1

    def test_nothing_is_kept_of_pipelines_that_are_gone(self, checked: list[Node]) -> None:
        compile(pipeline(name="gone"))
        checked.clear()
        gc.collect()
        compile(pipeline(name="gone"))
        assert len(checked) == 1

    @pytest.mark.parametrize("strange", [[1, 2], {"a": 1}], ids=["list", "dict"])
    def test_what_has_no_hash_is_checked_each_time(
        self, checked: list[Node], strange: object
    ) -> None:
        by = RouteNode("r", "k", (Match("eq", "k", strange),), (AgentNode("a", mock=None),))
        node = SequenceNode("s", (by,))
        with pytest.raises(TypeError):
            hash(node)
        for _ in range(2):
            compile(node)
        assert len(checked) == 2
