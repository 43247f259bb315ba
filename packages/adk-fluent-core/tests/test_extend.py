"""What layers need of core: every name is there, under the types that checkers see."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from adk_fluent import cli, extend
from adk_fluent.errors import UnknownNameError, UsageError

ADK = {
    *("ask_remote", "is_journal_key", "merges_dicts", "to_agent_event"),
    *("AnswerInPlace", "answers_in_place", "ask_in_place", "ask_in_place_again"),
    *("fail_in_place", "refuse_in_place"),
}


@pytest.mark.parametrize("name", [each for each in extend.__all__ if each not in ADK])
def test_every_name_is_there(name: str) -> None:
    value = getattr(extend, name)
    assert getattr(extend, name) is value
    assert getattr(value, "__name__", name) in (name, "adk_fluent")


@pytest.mark.adk
@pytest.mark.parametrize("name", sorted(ADK))
def test_what_concerns_adk_is_there(name: str) -> None:
    assert getattr(extend, name).__name__ == name


def test_the_places_of_names_are_those_of_the_names() -> None:
    assert set(vars(extend)["_PLACES"]) == set(extend.__all__)


def test_a_misspelt_name_comes_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'describe'"):
        getattr(extend, "descrbe")  # noqa: B009  # type checkers see that there is none


def test_an_object_of_a_layer_is_a_layer_object() -> None:
    assert {type(each) for each in extend.provided("names")} <= {extend.LayerObject}
    made = extend.LayerObject("toy", "first_toy", 1)
    assert (made.layer, made.name, made.object) == ("toy", "first_toy", 1)


def test_importing_it_imports_nothing_of_what_it_offers() -> None:
    code = (
        "import sys, adk_fluent; before = {*sys.modules}; import adk_fluent.extend; "
        "from adk_fluent.extend import describe; print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "adk_fluent.extend\n"


def test_every_name_for_commands_is_there() -> None:
    assert all(hasattr(cli, name) for name in cli.__all__)


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        ("localhost", True),
        ("LOCALHOST", True),
        ("127.0.0.2", True),
        ("::1", True),
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_which_host_is_this_machine(host: str, is_here: bool) -> None:
    assert extend.is_loopback(host) is is_here


@pytest.mark.parametrize(
    ("kind", "value"), [(int, True), (int, "1"), (extend.LayerObject, extend.LayerObject)]
)
def test_what_is_of_another_kind_is_refused(kind: type, value: object) -> None:
    with pytest.raises(UsageError, match="takes one") as caught:
        extend.must_be(kind, value, "it takes one", "give one")
    assert (caught.value.found, caught.value.help) == (extend.describe(value), "give one")


@pytest.mark.parametrize("value", [-1, 3, float("inf"), float("nan"), 0])
def test_what_is_no_such_number_is_refused(value: float) -> None:
    extend.must_be_number(2.5, "it takes a number", most=2.5, above_0=True)
    with pytest.raises(UsageError, match="takes a number"):
        extend.must_be_number(value, "it takes a number", most=2.5, above_0=True)


def test_names_of_a_package_are_imported_when_they_are_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package = ModuleType("adk_fluent.toy")
    monkeypatch.setitem(sys.modules, package.__name__, package)
    find = extend.lazy_names(package.__name__, {"errors": "UsageError BuildError"})
    assert "UsageError" not in vars(package)
    assert find("UsageError") is UsageError is vars(package)["UsageError"]
    for name, help in (("UsageEror", "UsageError"), ("_private", "")):
        with pytest.raises(AttributeError, match=f"(?s)toy' has no attribute '{name}'.*{help}"):
            find(name)
