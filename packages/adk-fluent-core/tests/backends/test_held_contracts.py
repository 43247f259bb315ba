"""What is proven wrong does not run: `ExecutionConfig.contracts`, and what a look at it costs."""

from __future__ import annotations

import gc
import logging
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import Agent, Pipeline, contracts
from adk_fluent._registry import LayerObject
from adk_fluent.backends._contracts import _guards, _with
from adk_fluent.contracts import (
    Diagnostic,
    Graph,
    ReadBeforeWrite,
    Severity,
    _check,
    check_runs,
)
from adk_fluent.errors import ContractError, LayerError
from adk_fluent.ir import (
    AgentNode,
    AppNode,
    Contract,
    ExecutionConfig,
    Match,
    Node,
    RouteNode,
    SequenceNode,
)
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


class Unguarded(Diagnostic, code="ODD801", severity=Severity.ERROR):
    """What a layer finds wrong with what stands around a run."""


class TestWhatLayersFind:
    @pytest.fixture(autouse=True)
    def layer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A layer that takes offence at names, and at what runs are configured with."""

        def check_names(graph: Graph) -> Iterator[Diagnostic]:
            for node in graph.nodes:
                if node.name in ("bad", "odd"):
                    severity = Severity.ERROR if node.name == "bad" else Severity.WARNING
                    yield Unguarded.at(graph, node, f"`{node.name}` it is", severity=severity)
            if isinstance(graph.root, AppNode) and graph.root.execution:
                for each in graph.root.execution.middlewares:
                    yield Unguarded.at(graph, graph.root, f"{each} stands around it")

        def usable(slot: str) -> tuple[list[LayerObject], list[LayerError]]:
            assert slot == "run_checkers"
            broken = LayerError("cannot load it", layer="odd", distribution="odd", version="1")
            return [LayerObject("toy", "names", check_names)], [broken]

        monkeypatch.setattr(_check, "usable", usable)

    def test_an_error_stops_it(self) -> None:
        with pytest.raises(ContractError, match="`bad` it is") as caught:
            compile(SequenceNode("s", (AgentNode("a"), AgentNode("bad"))))
        assert caught.value.node == "bad"
        assert compile(AgentNode("odd"))

    def test_it_stops_it_beside_what_core_finds(self) -> None:
        with pytest.raises(ContractError) as caught:
            compile(pipeline("drafd", name="bad"))
        assert sorted(each.code for each in caught.value.report.errors) == ["FLW001", "ODD801"]

    def test_it_may_be_meant_told_or_not_looked_for(self, caplog: pytest.LogCaptureFixture) -> None:
        assert compile(AgentNode("bad", contract=Contract(allow=("ODD801",))))
        assert compile(AgentNode("bad"), contracts="off")
        with caplog.at_level(logging.WARNING, "adk_fluent"):
            assert compile(AgentNode("bad"), contracts="warn")
        assert "error[ODD801]: `bad` it is" in caplog.text
        assert "what a layer has is not used: cannot load it" in caplog.text

    def test_what_a_run_is_configured_with_is_looked_at(self) -> None:
        told = [
            _with(AgentNode("a"), ExecutionConfig()),
            _with(AgentNode("a"), ExecutionConfig(middlewares=["one"])),
            _with(AppNode("app", AgentNode("a")), ExecutionConfig(middlewares=["two"])),
        ]
        found = [[each.message for each in _guards(node)] for node in told]
        assert found == [[], ["one stands around it"], ["two stands around it"]]
