"""`structure_hash` and `content_hash`: what they tell apart; that they are the same everywhere."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_strategies import Tool, chain, double, graphs, laws, wide

from adk_fluent import ir

PROGRAM = Path(__file__).with_name("hash_program.py")
SOURCES = Path(ir.__file__).parents[2]


# --- the same in every process -------------------------------------------------------------------


def _interpreters() -> dict[str, str]:
    """An interpreter of each supported version that this machine has, by version."""
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv"))
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local/share/uv/python"))
    candidates = [sys.executable]
    candidates += filter(None, (shutil.which(f"python3.{minor}") for minor in range(11, 16)))
    candidates += [str(p) for p in sorted(pyenv.glob("versions/3.*/bin/python"))]
    candidates += [str(p) for p in sorted(uv.glob("*/bin/python3"))]
    found: dict[str, str] = {}
    for each in candidates:
        ask = [each, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        asked = subprocess.run(ask, capture_output=True, text=True, check=False)
        version = asked.stdout.strip()
        if asked.returncode == 0 and tuple(map(int, version.split("."))) >= (3, 11):
            found.setdefault(version, each)
    return found


INTERPRETERS = _interpreters()
CURRENT = "{}.{}".format(*sys.version_info)
#: What continuous integration names, so that no version is left out unnoticed; else all there are.
ASKED = os.environ.get("ADK_FLUENT_PYTHONS", "").replace(",", " ").split()
COMPARED = sorted({CURRENT, *(ASKED or INTERPRETERS)})


def _interpreter(version: str) -> str:
    if version not in INTERPRETERS:
        pytest.fail(
            f"ADK_FLUENT_PYTHONS asks for Python {version}, which does not start on this machine; "
            f"these do: {', '.join(sorted(INTERPRETERS))}"
        )
    return INTERPRETERS[version]


@functools.cache
def _printed(interpreter: str, seed: str, program: Path = PROGRAM) -> dict[str, list[str]]:
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(SOURCES)}
    done = subprocess.run(
        [interpreter, str(program)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.fail(f"{interpreter} cannot run {program.name}: {done.stderr}")
    return json.loads(done.stdout)


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_hash_seeds_change_nothing(seed: str) -> None:
    assert _printed(sys.executable, seed) == _printed(sys.executable, "2")


@pytest.mark.parametrize("version", COMPARED, ids=lambda version: f"{version} and {CURRENT}")
def test_versions_of_python_change_nothing(version: str) -> None:
    assert _printed(_interpreter(version), "2") == _printed(sys.executable, "2")


def test_a_version_that_is_asked_for_and_not_there_is_no_success() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"asks for Python 3\.1, .*these do: .*3\.1\d"):
        _interpreter("3.1")


def test_a_version_that_cannot_run_the_program_is_no_success(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("raise SystemExit('there is no hashlib')", "utf-8")
    with pytest.raises(pytest.fail.Exception, match=r"cannot run .*: there is no hashlib"):
        _printed(sys.executable, "2", program)


def test_all_the_objects_of_the_program_differ() -> None:
    content = {name: both[1] for name, both in _printed(sys.executable, "2").items()}
    assert len(set(content.values())) == len(content) > 35


def test_hashes_do_not_change_from_one_release_to_the_next() -> None:
    """If they must, `VERSION` in `_hash.py` goes up, and paused runs of before cannot resume."""
    root = ir.SequenceNode(
        "main",
        (
            ir.AgentNode("a", model="m", reads_keys=(ir.StateFieldRef("user:x", str),)),
            ir.LoopNode("l", ir.FunctionNode("f", ir.Ref.to(len)), until=ir.Match("eq", "k", 1)),
        ),
    )
    assert ir.structure_hash(root) == STRUCTURE
    assert ir.content_hash(root) == CONTENT


STRUCTURE = "9b2ca8927fb0a2d689db3ef91430448f0bdadfbf8ca3aa46c76abbc79601e894"
CONTENT = "0ec1e2cbe1563a90e84645c77786c9b9248e365e668367f9fd08371ad1b579de"


# --- what they tell apart ------------------------------------------------------------------------


def structure(root: ir.Node) -> str:
    return ir.structure_hash(root)


def content(value: Any) -> str:
    """The content hash of a pipeline that holds a live object."""
    return ir.content_hash(ir.FunctionNode("f", ir.Ref.to(value)))


A, B = ir.AgentNode("a"), ir.AgentNode("b")


@pytest.mark.parametrize(
    "other",
    [
        ir.SequenceNode("s", (B, A)),
        ir.SequenceNode("s", (A,)),
        ir.SequenceNode("s", (A, B, B)),
        ir.SequenceNode("t", (A, B)),
        ir.ParallelNode("s", (A, B)),
        ir.SequenceNode("s", (A, ir.SequenceNode("", (B,)))),
        ir.SequenceNode("s", (ir.SequenceNode("", (A, B)),)),
        ir.SequenceNode("s", (ir.AgentNode("ab"),)),
        ir.SequenceNode("s", (A, ir.AdkAgentNode("b", ir.Ref(1)))),
    ],
)
def test_structure_is_kinds_names_and_nesting(other: ir.Node) -> None:
    assert structure(other) != structure(ir.SequenceNode("s", (A, B)))


def test_structure_tells_which_field_holds_a_child() -> None:
    tests = (ir.Match("eq", "k", 1),)
    shapes = [
        ir.RouteNode("r", tests=tests, branches=(A,)),
        ir.RouteNode("r", default=A),
        ir.RouteNode("r", tests=tests, branches=(A,), default=A),
        ir.RouteNode("r", tests=tests * 2, branches=(A, A)),
        ir.AgentNode("r", agent_tools=(A,)),
        ir.AgentNode("r", delegates=(A,)),
    ]
    assert len({structure(each) for each in shapes}) == len(shapes)
    assert len(set(shapes)) == len(shapes)


def test_structure_leaves_data_out() -> None:
    plain = ir.SequenceNode("s", (A, B))
    told = ir.SequenceNode("s", (A.replace(model="m", instruction="x", tools=()), B))
    assert structure(plain) == structure(told)
    assert ir.content_hash(plain) != ir.content_hash(told)


@laws
@given(graphs(), st.data())
def test_content_takes_in_every_field(root: ir.Node, data: st.DataObject) -> None:
    target = data.draw(st.sampled_from(list(ir.walk(root))))
    arrow = ir.ExecutionBoundary("arrow")
    other = None if target.boundary == arrow else arrow
    changed = ir.replace(root, target, target.replace(boundary=other))
    assert ir.content_hash(changed) != ir.content_hash(root)
    assert structure(changed) == structure(root)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "n"},
        {"model": ir.Ref.to(Tool("m"))},
        {"instruction": ""},
        {"settings": (("a", 1),)},
        {"settings": (("a", "1"),)},
        {"settings": (("a", b"1"),)},
        {"settings": (("a", (1,)),)},
        {"settings": (("a", ((1,),)),)},
        {"settings": (("a", None),)},
        {"settings": (("a", ir.UNSET),)},
        {"settings": (("a", ir.Modality.PDF),)},
        {"settings": (("a", 1.5),)},
        {"settings": (("a", float("nan")),)},
        {"settings": (("a", frozenset({1})),)},
        {"reads_keys": (ir.StateFieldRef("k"),)},
        {"writes_keys": (ir.StateFieldRef("k"),)},
        {"reads_keys": (ir.StateFieldRef("k", default=[1, [2]]),)},
        {"reads_keys": (ir.StateFieldRef("k", default=[1, 2]),)},
        {"reads_keys": (ir.StateFieldRef("k", default={"a": 1}),)},
        {"reads_keys": (ir.StateFieldRef("k", default={"a": {"a"}}),)},
        {"tools": (ir.ToolSpec(ir.Ref.to(double)),)},
        {"tools": (ir.ToolSpec(ir.Ref.to(double), require_confirmation=True),)},
        {"mock": ir.Ref("x", digest="1")},
        {"mock": ir.Ref("x", digest="2")},
    ],
    ids=str,
)
def test_one_field_is_enough(change: dict[str, Any]) -> None:
    seen = HASHES.setdefault(ir.content_hash(ir.AgentNode("a", **change)), change)
    assert seen is change
    assert ir.content_hash(ir.AgentNode("a")) not in HASHES


HASHES: dict[str, Any] = {}


def test_numbers_that_are_equal_hash_alike() -> None:
    for one, other in ((5, 5.0), (1, True), (0.0, -0.0), (10**30, 1e30)):
        a = ir.AgentNode("a", settings=(("x", one),))
        b = ir.AgentNode("a", settings=(("x", other),))
        assert (a == b) is (ir.content_hash(a) == ir.content_hash(b))
    body = ir.AgentNode("a")
    assert ir.content_hash(ir.LoopNode("l", body, 10)) == ir.content_hash(ir.LoopNode("l", body))
    assert ir.TimeoutNode("t", body, 60) == ir.TimeoutNode("t", body)
    assert ir.content_hash(ir.TimeoutNode("t", body, 60)) == ir.content_hash(
        ir.TimeoutNode("t", body)
    )


def test_a_field_at_its_default_counts_as_left_out() -> None:
    assert ir.content_hash(ir.FunctionNode("f", ir.Ref.to(len), ir.Effects())) == content(len)


def test_a_digest_replaces_the_value() -> None:
    one = ir.FunctionNode("f", ir.Ref(double, "x", "d"))
    other = ir.FunctionNode("f", ir.Ref(len, "y", "d"))
    assert ir.content_hash(one) == ir.content_hash(other)
    assert ir.content_hash(one) != content(double)


def test_text_that_looks_like_the_encoding_does_not_fool_it() -> None:
    one = ir.AgentNode("a", settings=(("x", ("ab", "c")),))
    other = ir.AgentNode("a", settings=(("x", ("a", "bc")),))
    third = ir.AgentNode("a", settings=(("x", ("2:ab1:c",)),))
    fourth = ir.AgentNode("a", settings=(("x", "\udc80"),))
    assert len({ir.content_hash(n) for n in (one, other, third, fourth)}) == 4


# --- live objects --------------------------------------------------------------------------------


def test_objects_count_by_type_and_name() -> None:
    assert content(Tool("a")) == content(Tool("a"))
    assert content(Tool("a")) != content(Tool("b"))
    assert content(object()) == content(object())


def test_objects_may_say_what_tells_them_apart() -> None:
    class Limit:
        def __init__(self, limit: int, deep: object = None) -> None:
            self.limit, self.deep, self.spent = limit, deep, 0

        def __content_key__(self) -> object:
            return {"limit": self.limit, "deep": self.deep}

    spent = Limit(1)
    spent.spent = 3
    assert content(Limit(1)) == content(spent)
    assert content(Limit(1)) != content(Limit(2))
    assert content(Limit(1, Limit(1))) != content(Limit(1, Limit(2)))
    spent.deep = spent
    assert content(spent) == content(spent)


def test_models_count_by_what_they_are_called() -> None:
    class Model:
        def __init__(self, model: object) -> None:
            self.model = model

        def generate_content_async(self) -> None: ...

    assert content(Model("a")) == content(Model("a"))
    assert content(Model("a")) != content(Model("b"))
    assert content(Model(object())) == content(Model(object()))


def test_methods_count_by_function_and_owner() -> None:
    assert content(Tool("a").run) == content(Tool("a").run)
    assert len({content(Tool("a").run), content(Tool("b").run), content(Tool.run)}) == 3


def test_a_closure_counts_by_what_it_holds() -> None:
    def make(held: Any, default: Any = None) -> Any:
        def inner(state: Any = default, *, more: Any = default) -> Any:
            return state, more, held

        return inner

    values: list[Any] = [1, "1", (1,), [1], {"a": 1}, None, double, len, Tool("a"), Tool]
    assert len({content(make(v)) for v in values}) == len(values)
    assert len({content(make(0, v)) for v in values}) == len(values)
    assert content(make({"a": 1, "b": 2})) == content(make({"b": 2, "a": 1}))
    assert content(make(object())) == content(make(object()))


def test_what_is_not_bound_yet_is_no_error() -> None:
    def outer() -> Any:
        def inner() -> Any:
            return later

        before = content(inner)
        later = 1
        assert content(inner) != before
        return inner

    outer()


def test_what_holds_itself_ends() -> None:
    row: list[Any] = []
    row.append(row)

    def make() -> Any:
        def one() -> Any:
            return two, row

        def two() -> Any:
            return one, row

        return one

    assert content(make()) == content(make())


def test_a_thousand_wrappers_do_not_overflow() -> None:
    def wrap(inner: Any) -> Any:
        def wrapper() -> Any:
            return inner()

        return wrapper

    deep: Any = double
    for _ in range(1000):
        deep = wrap(deep)
    assert content(deep) == content(wrap(deep))  # known by its type from a certain depth on
    assert content(wrap(double)) != content(wrap(len))


def test_plain_values_of_python_count_by_value() -> None:
    import datetime as dt
    import decimal
    import re

    assert content(decimal.Decimal("1.10")) != content(decimal.Decimal("1.11"))
    assert content(dt.date(2026, 1, 1)) != content(dt.date(2026, 1, 2))
    long = "x" * 300
    assert content(re.compile(long + "a")) != content(re.compile(long + "b"))
    assert content(re.compile("a")) != content(re.compile("a", re.IGNORECASE))


def test_types_that_are_equal_hash_alike() -> None:
    def typed(form: Any) -> str:
        return ir.content_hash(ir.AgentNode("a", reads_keys=(ir.StateFieldRef("k", form),)))

    from typing import Literal, Optional, Union

    assert typed(int | None) == typed(Optional[int]) == typed(Union[None, int])  # noqa: UP007, UP045
    assert typed(Literal["a", "b"]) == typed(Literal["b", "a"])
    assert typed(dict[str, int]) != typed(dict[int, str])
    assert typed(list[int]) != typed(list[str])
    assert typed(None) != typed(type(None))


# --- size ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [chain(20_000), wide(4_000)], ids=["deep", "wide"])
def test_many_nodes(root: ir.Node) -> None:
    assert ir.structure_hash(root) != ir.content_hash(root)


def test_shared_nodes_are_hashed_once() -> None:
    node: ir.Node = ir.AgentNode("a")
    for _ in range(500):  # 2 ** 500 places
        node = ir.SequenceNode("s", (node, node))
    assert len(ir.content_hash(node)) == len(ir.structure_hash(node)) == 64
    other: ir.Node = ir.AgentNode("a")
    for _ in range(500):
        other = ir.SequenceNode("s", (other, other))
    assert node == other
    assert hash(node) == hash(other)
