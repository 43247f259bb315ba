"""What layers need of core: every name is there, under the types that checkers see."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import warnings
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import cli, extend
from adk_fluent.errors import MissingLayerError, UnknownNameError, UsageError
from adk_fluent.protocol import Money, Unknown, Usage

if TYPE_CHECKING:
    from pathlib import Path

ADK = {
    *("ask_remote", "is_journal_key", "kept_state", "merges_dicts", "to_agent_event"),
    *("AnswerInPlace", "answers_in_place", "ask_in_place", "ask_in_place_again"),
    *("fail_in_place", "refuse_in_place", "report_refusal"),
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


@pytest.mark.adk
def test_state_is_kept_without_what_is_not_the_users() -> None:
    held = {"a": 0, "user:b": 1, "temp:c": 2, "_adk_fluent_flow:desk": "{}", "d": None}
    assert extend.kept_state(held) == {"a": 0, "user:b": 1}
    assert extend.kept_state(held, keep_none=True) == {"a": 0, "user:b": 1, "d": None}


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
        "import sys, adk_fluent.ir; before = {*sys.modules}; import adk_fluent.extend; "
        "from adk_fluent.extend import describe; print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "adk_fluent._words adk_fluent.extend\n"


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


def test_texts_are_fit_to_be_shown() -> None:
    assert extend.clean("a\r\nb\x1b[31m\u202ec\ud800\t") == "a\nb[31mc\ufffd\t"
    assert extend.shorten("abcdef", 4) == "abcd… (2 more characters)"
    assert extend.one_line(" a\n\x00b ", 9) == "a b"
    assert extend.one_line("a\u2028b\x0bc") == "a b c"
    assert extend.one_line("x" * 501) == f"{'x' * 500}… (1 more characters)"
    assert (extend.plural(1, "case"), extend.plural(1000, "case")) == ("1 case", "1,000 cases")


def test_an_error_is_a_line() -> None:
    class UntoldError(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert extend.error_line(ValueError("a\n  b")) == "ValueError: a b"
    assert extend.error_line(ValueError("abc"), 2) == "ValueError: ab… (1 more characters)"
    assert extend.error_line(ValueError("x" * 999), None) == f"ValueError: {'x' * 999}"
    assert extend.error_line(UntoldError()) == "UntoldError"
    assert extend.error_line(ValueError("a\x1b[31m\u202eb")) == "ValueError: a[31mb"


def test_secrets_are_known_by_the_names_of_their_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("DESK_API_KEY", " sk-12345678 "),
        ("DESK_TOKEN", "short"),
        ("DESK", "x" * 9),
        ("LONG_TOKEN", "sk-12345678-and-more"),
    ):
        monkeypatch.setenv(name, value)
    found = extend.environment_secrets()
    assert found["sk-12345678"] == "[DESK_API_KEY]"
    assert [*found].index("sk-12345678-and-more") < [*found].index("sk-12345678")
    quoted = extend.error_line(ValueError("told sk-12345678"), 8)  # cut within the secret
    assert quoted == "ValueError: told [DE… (11 more characters)"
    assert not found.keys() & {"short", "x" * 9}


def test_one_at_a_time_holds_a_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "runs.jsonl"
    with extend.held_file(path) as first:
        assert first
        with extend.held_file(path) as second:
            assert not second
        path.write_text("kept", "utf-8")
    with extend.held_file(path) as again:
        assert again
    assert path.read_text("utf-8") == "kept"
    with extend.held_file(tmp_path) as folder, extend.held_file(tmp_path) as twice:
        assert folder
        assert twice


#: Is killed while it holds a file, and leaves a child that was forked, which waits for its input.
_KILLED = """
import os, sys
from adk_fluent.extend import held_file
with held_file(sys.argv[1]) as held:
    assert held
    there, child = os.pipe()
    if os.fork() == 0:
        os.write(child, b".")
        sys.stdin.read()
        os._exit(0)
    os.read(there, 1)
    os._exit(7)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")
def test_a_forked_child_does_not_hold_on_to_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "runs.jsonl")
    with subprocess.Popen([sys.executable, "-c", _KILLED, path], stdin=subprocess.PIPE) as process:
        assert process.wait(60) == 7
        with extend.held_file(path) as held:  # while the child is alive
            assert held


class Book:
    def price(self, model: str, usage: Usage, at: datetime, *, tier: str | None = None) -> Any:
        if model == "broken":
            raise KeyError(model)
        return Money.of(usage.total) if model == "known" else None


def made_of(rows: object = None) -> tuple[type[Book], object]:
    return Book, rows


def test_a_price_book_is_the_given_one_or_that_of_a_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    offers: dict[str, list[object]] = {"price_books": []}
    monkeypatch.setattr("adk_fluent._prices.provided", offers.__getitem__)
    book = Book()
    assert extend.price_book(book) is book
    assert extend.price_book() is None
    with pytest.raises(MissingLayerError, match="prices= needs the layer 'cost'"):
        extend.price_book({"model": {"input": 1}})
    offers["price_books"].append(extend.LayerObject("toy", "prices", made_of))
    assert extend.price_book() == (Book, None)
    assert extend.price_book({"m": 1}) == (Book, {"m": 1})


def test_a_price_book_that_raises_knows_no_price() -> None:
    book, usage, now = Book(), Usage(prompt=2), datetime.now(UTC)
    found = [extend.price_of(book, model, usage, now) for model in ("known", "broken", "other")]
    assert found == [
        Money.of(2),
        Unknown("the price book raised KeyError: 'broken'"),
        Unknown("no price"),
    ]


def test_a_script_is_named_by_its_digest() -> None:
    empty = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    assert extend.script_source("") == empty != extend.script_source("fit();")


def test_what_is_chosen_is_no_experiment() -> None:
    with extend.chosen_experiment():
        warnings.warn("[EXPERIMENTAL] new", stacklevel=1)
    with pytest.warns(UserWarning, match="EXPERIMENTAL"):
        warnings.warn("[EXPERIMENTAL] new", stacklevel=1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_cancels_the_work_of_a_command(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    told: list[str] = []

    async def work() -> None:
        signal.raise_signal(number)
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    with pytest.raises(KeyboardInterrupt):
        cli.run_interruptible(work())
    assert told == ["cancelled"]
    assert signal.getsignal(number) is before


def test_a_handler_that_python_has_not_set_becomes_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = signal.signal
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def set_in_c(number: signal.Signals, handler: Any) -> None:
        real(number, handler)

    async def work() -> int:
        return 3

    monkeypatch.setattr(signal, "signal", set_in_c)
    try:
        assert cli.run_interruptible(work()) == 3
        assert {signal.getsignal(number) for number in before} == {signal.SIG_DFL}
    finally:
        for number, handler in before.items():
            real(number, handler)
