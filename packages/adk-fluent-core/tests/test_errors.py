from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any

import pytest

from adk_fluent import errors
from adk_fluent.errors import (
    AdkFluentError,
    LayerError,
    LegalityError,
    MissingLayerError,
    RunError,
    StepTimeoutError,
    UnknownNameError,
    UnsupportedConfigError,
    UsageError,
    add_place,
    error_parts,
    format_message,
    nearest_name,
    unwrap,
)
from adk_fluent.ir import AgentNode, Location

CLASSES = sorted(
    (c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, AdkFluentError)),
    key=lambda c: c.code,
)
#: What a class demands beyond the sentence that says what happened.
NEEDS: dict[str, dict[str, Any]] = {
    "UnknownNameError": {"unknown": "instrct", "known": ["instruct", "model"]},
    "UnsupportedConfigError": {"field": "telemetry", "brings": "adk-fluent-middleware"},
    "LegalityError": {"violations": ("one", "two")},
    "ContractError": {"report": ("a report",)},
    "TargetError": {"target": "app.py:x"},
    "CheckerError": {"checker": "budget", "layer": "cost"},
    "DataFileError": {"path": "cases.yaml"},
    "MissingLayerError": {"layer": "cost"},
    "LayerError": {"layer": "cost", "distribution": "adk-fluent-cost", "version": "0.1"},
    "StepTimeoutError": {"seconds": 2.5},
    "OutputMissingError": {"keys": ("intent",)},
    "OutputInvalidError": {"fields": ("a.b",)},
    "AgentReportedError": {"error_code": "SAFETY", "error_message": "blocked"},
    "RemoteError": {"endpoint": "localhost:1"},
    "StateKeyError": {"key": "intent"},
    "StateTypeError": {"key": "intent"},
}
WHERE = {"node": "writer", "location": Location("app.py", 3), "found": "an int", "help": "do this"}


def through_pickle(error: AdkFluentError) -> AdkFluentError:
    return pickle.loads(pickle.dumps(error))


def make(cls: type[AdkFluentError], **details: Any) -> AdkFluentError:
    return cls("it broke", **NEEDS.get(cls.__name__, {}), **details)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda c: c.__name__)
class TestEveryError:
    def test_says_in_its_docstring_what_causes_it_and_what_fixes_it(self, cls: type) -> None:
        text = inspect.cleandoc(cls.__doc__ or "")
        assert "Cause: " in text
        assert "Fix: " in text

    def test_has_a_code_of_its_own_and_is_public(self, cls: type[AdkFluentError]) -> None:
        assert "code" in vars(cls)
        assert [c for c in CLASSES if c.code == cls.code] == [cls]
        assert cls.__name__ in errors.__all__
        assert cls.__module__ == "adk_fluent.errors"

    @pytest.mark.parametrize("again", [through_pickle, copy.copy, copy.deepcopy])
    def test_survives_pickle_and_copy(self, cls: type[AdkFluentError], again: Any) -> None:
        error = make(cls, **WHERE)
        error.add_note("in node 'outer'")
        same = again(error)
        assert type(same) is cls
        assert same is not error
        assert str(same) == str(error)
        assert same.args == error.args == ("it broke",)
        assert vars(same) == vars(error)
        assert vars(same)["location"] == Location("app.py", 3)

    def test_lays_out_what_where_found_and_help(self, cls: type[AdkFluentError]) -> None:
        assert str(make(cls, **WHERE)) == (
            "it broke\n  where: node 'writer' at app.py:3\n  found: an int\n  help: do this"
        )

    def test_can_be_raised_and_caught_as_each_of_its_bases(self, cls: type) -> None:
        for base in cls.__mro__:
            if base is not object:
                with pytest.raises(base):
                    raise make(cls)


@pytest.mark.parametrize(
    ("name", "stdlib"),
    [
        ("UsageError", TypeError),
        ("UnknownNameError", AttributeError),
        ("UnknownNameError", LookupError),
        ("MissingLayerError", ImportError),
        ("UnsupportedNodeError", NotImplementedError),
        ("IRFormatError", ValueError),
        ("StepTimeoutError", TimeoutError),
        ("ExpectationError", AssertionError),
        ("OutputInvalidError", ValueError),
        ("AgentReportedError", RuntimeError),
        ("RemoteError", ConnectionError),
        ("SessionError", LookupError),
        ("SessionStoreError", OSError),
    ],
)
def test_is_the_standard_type_a_reader_expects(name: str, stdlib: type) -> None:
    assert issubclass(getattr(errors, name), stdlib)


def test_all_lists_every_public_name_in_order() -> None:
    public = {
        name
        for name, value in vars(errors).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == errors.__name__
    }
    assert set(errors.__all__) == public
    assert errors.__all__ == sorted(errors.__all__)


def test_a_node_brings_its_name_and_location() -> None:
    node = AgentNode("writer", location=Location("app.py", 7))
    error = RunError("it broke", node=node)
    assert (error.node, error.location) == ("writer", Location("app.py", 7))
    assert RunError("it broke", node=node, location="b.py:1").location == "b.py:1"


def test_absent_parts_take_no_line() -> None:
    assert str(AdkFluentError("it broke")) == "it broke"
    assert format_message("it broke", location="a.py:1") == "it broke\n  where: a.py:1"
    assert (
        format_message("it broke", node="x", help="h") == "it broke\n  where: node 'x'\n  help: h"
    )


@pytest.mark.parametrize(
    ("name", "known", "nearest"),
    [
        ("instrct", ["instruct", "model"], "instruct"),
        ("MODEL", ["instruct", "model"], "model"),
        ("zzz", ["instruct", "model"], None),
        ("x", [], None),
    ],
)
def test_nearest_name(name: str, known: list[str], nearest: str | None) -> None:
    assert nearest_name(name, known) == nearest


def test_an_unknown_name_comes_with_the_nearest() -> None:
    error = UnknownNameError("Agent has no method 'instrct'", unknown="instrct", known=["instruct"])
    assert error.nearest == "instruct"
    assert "help: did you mean 'instruct'?" in str(error)
    assert UnknownNameError("no", unknown="zzz", known=["instruct"]).help is None
    assert UnknownNameError("no", unknown="a", known=["a1"], help="see x").help == "see x"


def test_a_missing_layer_names_the_wheel() -> None:
    assert str(MissingLayerError("no", layer="cost")).endswith("help: pip install adk-fluent-cost")
    assert MissingLayerError("no", layer="x", distribution="acme").help == "pip install acme"


def test_a_broken_layer_names_distribution_and_version() -> None:
    error = LayerError("no", layer="cost", distribution="adk-fluent-cost", version="0.1")
    assert "where: layer 'cost' of adk-fluent-cost 0.1\n" in str(error)
    assert "where: layer 'cost' of an unknown distribution\n" in str(LayerError("no", layer="cost"))


def test_an_unsupported_field_names_what_brings_it() -> None:
    error = UnsupportedConfigError("not yet", field="telemetry", brings="adk-fluent-middleware")
    assert error.help == "leave 'telemetry' at its default; adk-fluent-middleware brings it"


def test_broken_rules_are_what_was_found() -> None:
    assert LegalityError("bad IR", violations=["one", "two"]).found == "one; two"
    assert LegalityError("bad IR").found is None


class TestAddPlace:
    node = AgentNode("writer", location=Location("app.py", 7))
    outer = AgentNode("outer")

    def test_notes_each_place_once_and_keeps_the_error(self) -> None:
        error = KeyError("k")
        assert add_place(add_place(add_place(error, self.node), self.outer), self.outer) is error
        assert error.__notes__ == ["in node 'writer' at app.py:7", "in node 'outer'"]

    def test_fills_an_error_of_ours_that_has_no_node(self) -> None:
        error = add_place(add_place(RunError("it broke"), self.node), self.outer)
        assert (error.node, error.location) == ("writer", Location("app.py", 7))
        assert error.__notes__ == ["in node 'outer'"]

    def test_does_not_repeat_the_node_of_an_error_of_ours(self) -> None:
        error = add_place(StepTimeoutError("slow", seconds=1, node=self.node), self.node)
        assert not hasattr(error, "__notes__")


class TestErrorParts:
    node = AgentNode("writer", location=Location("app.py", 7))

    def test_takes_place_and_help_out_of_notes(self) -> None:
        error = add_place(add_place(KeyError("k"), self.node), AgentNode("outer"))
        error.add_note("while it wrote")
        error.add_note("model 'm'\n  help: ask again")
        assert error_parts(error) == {
            "type": "KeyError",
            "code": "",
            "message": "'k'\nwhile it wrote\nmodel 'm'",
            "node": "writer",
            "location": "app.py:7",
            "help": "ask again",
        }
        error = ValueError("no")
        error.add_note("help: say yes")
        assert (error_parts(error)["message"], error_parts(error)["help"]) == ("no", "say yes")

    def test_tells_what_an_error_of_ours_holds(self) -> None:
        error = RunError("it broke", node=self.node, found="nothing", help="mend it")
        assert error_parts(error) == {
            "type": "RunError",
            "code": RunError.code,
            "message": "it broke: nothing",
            "node": "writer",
            "location": "app.py:7",
            "help": "mend it",
        }


class TestUnwrap:
    def wrapped(self, text: str, cause: BaseException | None) -> RuntimeError:
        error = RuntimeError(text)
        error.__cause__ = cause
        return error

    def test_takes_off_every_layer_a_plugin_manager_put_on(self) -> None:
        cause = KeyError("k")
        once = self.wrapped("Error in plugin 'a' during 'before_run' callback: 'k'", cause)
        twice = self.wrapped("Error in plugin 'b' during 'on_event' callback: x", once)
        assert unwrap(twice) is cause

    def test_leaves_every_other_error_alone(self) -> None:
        for error in (
            KeyError("k"),
            self.wrapped("mine", KeyError("k")),
            self.wrapped("Error in plugin 'a' during 'x' callback: y", None),
            RunError("Error in plugin 'a'"),
        ):
            assert unwrap(error) is error


def test_what_an_error_quotes_cannot_move_a_cursor() -> None:
    error = UsageError(
        "bad \x1b[31mname\r\n\ttwo", node="clerk", found="é\u202e\u200e\x9b", help="\ud800"
    )
    told = "bad \\x1b[31mname\\r\n\ttwo\n  where: node 'clerk'\n  found: é\\u202e\\u200e\\x9b"
    assert str(error) == f"{told}\n  help: \\ud800"
