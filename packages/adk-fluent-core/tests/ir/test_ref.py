"""`Ref`, paths of live objects, and `Location`."""

from __future__ import annotations

import functools
import pickle
from typing import Any

import pytest
from ir_strategies import Tool, double

from adk_fluent import ir
from adk_fluent.extend import caller
from adk_fluent.ir._path import name_of_object


def test_without_digest_identity_decides() -> None:
    one, other = Tool("a"), Tool("a")
    assert ir.Ref(one) == ir.Ref(one, "another name")
    assert ir.Ref(one) != ir.Ref(other)
    assert hash(ir.Ref(one)) == hash(ir.Ref(one, "another name"))
    assert ir.Ref(one) != one


def test_a_digest_decides_alone() -> None:
    one, other = Tool("a"), Tool("b")
    assert ir.Ref(one, digest="x") == ir.Ref(other, digest="x")
    assert hash(ir.Ref(one, digest="x")) == hash(ir.Ref(other, digest="x"))
    assert ir.Ref(one, digest="x") != ir.Ref(one, digest="y")
    assert ir.Ref(one, digest="x") != ir.Ref(one)


def test_a_bound_method_is_the_same_at_each_access() -> None:
    tool = Tool("a")
    assert ir.Ref(tool.run) == ir.Ref(tool.run)
    assert hash(ir.Ref(tool.run)) == hash(ir.Ref(tool.run))
    assert ir.Ref(tool.run) != ir.Ref(Tool("a").run)
    assert ir.Ref(tool.run) != ir.Ref(Tool.run)


def test_equal_records_are_the_same() -> None:
    one, other = ir.Ref(ir.RetryConfig(2)), ir.Ref(ir.RetryConfig(2), "another name")
    assert one == other
    assert hash(one) == hash(other)
    assert one != ir.Ref(ir.RetryConfig(3))
    assert one != ir.Ref(ir.RetryConfig)


def test_values_without_hash_can_be_held() -> None:
    held: list[int] = []
    assert ir.Ref(held) == ir.Ref(held)
    assert len({ir.Ref(held), ir.Ref(held), ir.Ref([])}) == 2


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (double, "double"),
        (Tool, "Tool"),
        (Tool("search"), "search"),
        (Tool(""), "Tool"),
        (functools.partial(double), "double"),
        (functools.partial(functools.partial(double)), "double"),
        (object(), "object"),
        (len, "len"),
    ],
)
def test_a_ref_is_named_after_its_value(value: Any, name: str) -> None:
    assert name_of_object(value) == name
    assert ir.Ref.to(value).name == name


@pytest.mark.parametrize(
    ("value", "path"),
    [
        (double, "ir_strategies:double"),
        (Tool, "ir_strategies:Tool"),
        (Tool.run, "ir_strategies:Tool.run"),
        (Tool.make, "ir_strategies:Tool.make"),
        (len, "builtins:len"),
        (Tool("a").run, None),
        (Tool("a"), None),
        (lambda: None, None),
        (functools.partial(double), None),
        (functools.wraps(double)(lambda: None), None),
        (3, None),
    ],
)
def test_only_what_an_import_would_give_has_a_path(value: Any, path: str | None) -> None:
    assert ir.import_path(value) == path
    if path is not None:
        assert ir.Ref.load(path) == ir.Ref(value)


@pytest.mark.parametrize(
    ("path", "error"), [("no_such_module_x:f", ImportError), ("os:no_such", AttributeError)]
)
def test_loading_what_is_not_there(path: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        ir.Ref.load(path)


def test_repr() -> None:
    assert repr(ir.Ref.to(double)) == "Ref.load('ir_strategies:double')"
    assert repr(ir.Ref.to(double, "d")) == "Ref.load('ir_strategies:double', digest='d')"
    assert repr(ir.Ref.to(Tool("search"))) == "Ref(<Tool>, 'search')"
    assert repr(ir.Ref(Tool("x"), "y", "d")) == "Ref(<Tool>, 'y', digest='d')"


def test_a_ref_travels_by_pickle_when_its_value_does() -> None:
    assert pickle.loads(pickle.dumps(ir.Ref.to(double))) == ir.Ref.to(double)


# --- Location ------------------------------------------------------------------------------------


def test_the_caller_is_the_nearest_line_outside_the_package() -> None:
    here = ir.Location.caller()
    assert here is not None
    assert here.file == __file__
    assert str(here) == f"{__file__}:{here.line}"


def test_known_frames_are_not_looked_at() -> None:
    def here() -> tuple[str, int] | None:
        return caller(skip=1)

    line = caller()
    assert line is not None
    assert here() == (__file__, line[1] + 2)


def _called_from(module: str, depth: int = 3) -> ir.Location | None:
    """`Location.caller` from functions whose globals say they are of some module."""
    source = "def call(inner):\n    return inner()\n"
    call: Any = ir.Location.caller
    for _ in range(depth):
        space: dict[str, Any] = {"__name__": module}
        exec(compile(source, "/elsewhere/layer.py", "exec"), space)
        call = functools.partial(space["call"], call)
    return call()


@pytest.mark.parametrize(
    "module", ["adk_fluent", "adk_fluent.middleware._resilience._retry", "dataclasses"]
)
def test_other_wheels_of_the_package_are_passed_over(module: str) -> None:
    here = _called_from(module)
    assert here is not None
    assert here.file == __file__


@pytest.mark.parametrize("module", ["adk_fluent_extras", "my.adk_fluent", "__main__"])
def test_modules_with_a_similar_name_are_the_users(module: str) -> None:
    here = _called_from(module)
    assert here == ir.Location("/elsewhere/layer.py", 2)


def test_locations_are_ordered_by_file_and_line() -> None:
    places = [ir.Location("b", 1), ir.Location("a", 10), ir.Location("a", 9)]
    assert [str(p) for p in sorted(places)] == ["a:9", "a:10", "b:1"]
