from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent._registry import LayerObject
from adk_fluent.contracts import (
    Diagnostic,
    Graph,
    Severity,
    _checkers,
    check_all,
    register_checker,
    unregister_checker,
)
from adk_fluent.errors import CheckerError, LayerError, UsageError
from adk_fluent.ir import AgentNode, RemoteAgentNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROOT = AgentNode("root")


class Odd(Diagnostic, code="ODD001", severity=Severity.WARNING):
    """Something odd."""


def check_odd(graph: Graph) -> Iterator[Diagnostic]:
    yield Odd.at(graph, graph.root, "odd")


def check_nothing(graph: Graph) -> Iterable[Diagnostic]:
    return ()


def said(node: AgentNode = ROOT) -> list[str]:
    return [each.message for each in check_all(node)]


def own() -> tuple[str, ...]:
    return tuple(name for name in check_all(ROOT).checked if "." in name)


class TestRegister:
    def test_a_registered_checker_runs_until_it_is_taken_away(self) -> None:
        assert register_checker(check_odd) is check_odd
        assert said() == ["odd"]
        assert own() == ("user.odd",)
        unregister_checker(check_odd)
        assert said() == []

    def test_it_is_a_decorator_with_and_without_arguments(self) -> None:
        @register_checker
        def plain(graph: Graph) -> Iterable[Diagnostic]:
            return [Odd.at(graph, graph.root, "plain")]

        @register_checker(name="better", layer="acme")
        def named(graph: Graph) -> Iterable[Diagnostic]:
            return [Odd.at(graph, graph.root, "named")]

        assert said() == ["named", "plain"]
        assert own() == ("user.plain", "acme.better")
        assert list(plain(Graph(ROOT))) == [Odd.at(Graph(ROOT), ROOT, "plain")]
        assert callable(named)

    def test_an_object_that_can_be_called_will_do(self) -> None:
        class Check:
            def __call__(self, graph: Graph) -> Iterable[Diagnostic]:
                return ()

        check = register_checker(Check())
        assert own() == ("user.Check",)
        unregister_checker(check)
        assert own() == ()

    def test_defining_it_again_replaces_it(self) -> None:
        def define(message: str) -> None:
            @register_checker
            def check_twice(graph: Graph) -> Iterable[Diagnostic]:
                return [Odd.at(graph, graph.root, message)]

        define("first")
        define("second")
        assert said() == ["second"]

    def test_another_checker_of_the_same_name_is_refused(self) -> None:
        register_checker(check_odd)
        with pytest.raises(UsageError, match="layer 'user' has a checker 'odd' already") as error:
            register_checker(check_nothing, name="odd")
        assert error.value.found == f"{__name__}.check_odd"
        register_checker(check_nothing, name="odd", layer="acme")
        assert own() == ("user.odd", "acme.odd")

    def test_what_cannot_be_called_is_refused(self) -> None:
        wrong: Any = 42
        with pytest.raises(UsageError, match="a checker is a function of the graph") as error:
            register_checker(wrong)
        assert error.value.found == "int"

    def test_taking_away_what_is_not_there_is_refused(self) -> None:
        with pytest.raises(LookupError, match="check_odd is not a registered checker"):
            unregister_checker(check_odd)


class TestFailures:
    def failing(self, name: str, make: Callable[[], Iterable[Diagnostic]]) -> CheckerError:
        def check(graph: Graph) -> Iterable[Diagnostic]:
            return make()

        register_checker(check, name=name, layer="acme")
        with pytest.raises(CheckerError) as caught:
            check_all(ROOT)
        return caught.value

    def test_a_checker_that_raises_is_named_with_its_layer(self) -> None:
        def make() -> Iterator[Diagnostic]:
            raise KeyError("oops")
            yield

        error = self.failing("budget", make)
        assert error.what == "checker 'budget' of layer 'acme' failed: KeyError: 'oops'"
        assert (error.checker, error.layer) == ("budget", "acme")
        assert isinstance(error.__cause__, KeyError)
        assert error.help == "correct the checker, or upgrade the layer 'acme'"

    def test_so_is_one_that_gives_something_else(self) -> None:
        wrong: Any = ["a text"]
        error = self.failing("budget", lambda: wrong)
        assert "TypeError: a checker gives Diagnostics, not a str" in error.what

    def test_and_one_that_gives_nothing_to_iterate(self) -> None:
        nothing: Any = None
        assert "TypeError: 'NoneType'" in self.failing("budget", lambda: nothing).what

    def test_an_interrupt_is_no_failure_of_the_checker(self) -> None:
        def stop(graph: Graph) -> Iterable[Diagnostic]:
            raise KeyboardInterrupt

        register_checker(stop)
        with pytest.raises(KeyboardInterrupt):
            check_all(ROOT)


class TestLayers:
    @pytest.fixture
    def install(self, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
        def install(*things: LayerObject) -> None:
            def usable(slot: str) -> tuple[list[LayerObject], list[LayerError]]:
                assert slot == "checkers"
                return [*things], []

            monkeypatch.setattr(_checkers, "usable", usable)

        return install

    def test_their_checkers_run_between_cores_and_the_users(
        self, install: Callable[..., None]
    ) -> None:
        register_checker(check_nothing, name="mine")
        install(LayerObject("cost", "", check_odd), LayerObject("eval", "named", check_odd))
        assert check_all(ROOT).checked[-4:] == (
            "middlewares",
            "cost.odd",
            "eval.named",
            "user.mine",
        )
        assert said() == ["odd"]

    def test_one_that_also_registers_itself_runs_once(self, install: Callable[..., None]) -> None:
        register_checker(check_odd)
        install(LayerObject("cost", "", check_odd))
        assert own() == ("cost.odd",)

    def test_one_that_is_no_function_is_an_error(self, install: Callable[..., None]) -> None:
        install(LayerObject("cost", "", 42))
        with pytest.raises(CheckerError, match="checker 'int' of layer 'cost' failed: TypeError"):
            check_all(ROOT)

    def test_a_layer_that_is_installed_is_not_absent(self, monkeypatch: pytest.MonkeyPatch) -> None:
        remote = RemoteAgentNode("far", "http://x")
        assert check_all(remote).absent == ("a2a",)
        monkeypatch.setattr("adk_fluent.contracts._check.found", lambda: {"a2a": object()})
        report = check_all(remote)
        assert (report.absent, report.ok) == ((), True)


def test_core_runs_its_checkers_in_a_fixed_order() -> None:
    assert check_all(ROOT).checked == (
        "legality",
        "names",
        "agent_names",
        "keys",
        "composites",
        "placement",
        "values",
        "loops",
        "maps",
        "reducers",
        "routes",
        "transfer_targets",
        "transfer_cycles",
        "gates",
        "gate_names",
        "lasting_writes",
        "tools",
        "tool_parameters",
        "placeholders",
        "answers",
        "functions",
        "dataflow",
        "type",
        "streaming",
        "modality",
        "resources",
        "middleware_names",
        "middlewares",
    )
