"""The normalised source text of functions: what changes it and what does not."""

from __future__ import annotations

import importlib.util
import linecache
import sys
import textwrap
import warnings
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from adk_fluent import ir
from adk_fluent.ir._source import text_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType


@pytest.fixture
def load(tmp_path: Path) -> Callable[[str], ModuleType]:
    """Makes a module, always of the same name, from source in a file of its own."""

    def load(source: str) -> ModuleType:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        file = folder / "steps.py"
        file.write_text(textwrap.dedent(source), "utf-8")
        spec = importlib.util.spec_from_file_location("steps", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


def same(one: Any, other: Any) -> bool:
    """Whether two functions hash alike, which is what their text is for."""
    hashes = [ir.content_hash(ir.FunctionNode("f", ir.Ref.to(fn))) for fn in (one, other)]
    return hashes[0] == hashes[1]


BASE = '''
def step(state, limit=3):
    """Count.

    Args:
        state: State.
    """
    if state["n"] > limit:
        return {"n": 0, "text": f"{limit} # no comment"}
    return {"n": state["n"] + 1}
'''


@pytest.mark.parametrize(
    "source",
    [
        "import os\n\n\nX = 1\n" + BASE,
        BASE.replace("    if", "    # why\n\n    if"),
        BASE.replace(":\n        return", ":  # because\n\n\n        return"),
        BASE.replace("    ", "  "),
        BASE.replace("    ", "\t"),
        BASE.replace("(state, limit=3)", "(\n    state,   # the state\n    limit = 3)"),
        BASE.replace('"] + 1', '"] \\\n  + 1'),
        BASE.replace("\n", "\r\n"),
        BASE.replace("Count.", "Count.   ").replace("\n\n    Args", "\n   \n    Args"),
        BASE + "    # the end\n\n\n# of it\n",
        BASE + "other = 1\n",
    ],
    ids=range(11),
)
def test_layout_comments_and_place_do_not_matter(load: Any, source: str) -> None:
    assert same(load(source).step, load(BASE).step)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+ 1", "+ 2"),
        ("> limit", ">= limit"),
        ("limit=3", "limit=4"),
        ("Count.", "Count!"),
        ("no comment", "a comment"),
        ('"n": 0', "'n': 0"),
        ("state, limit", "state, *, limit"),
        ("def", "async def"),
        ("def", "@staticmethod\ndef"),
        ("        return {", "        pass\n    return {"),
        ("    return {", "        return {"),
    ],
)
def test_a_change_of_the_program_matters(load: Any, old: str, new: str) -> None:
    changed = BASE.replace(old, new, 1) if old != "    return {" else BASE.replace(
        '    return {"n": state', '        return {"n": state'
    )  # fmt: skip
    assert changed != BASE
    assert not same(load(changed).step, load(BASE).step)


def test_a_method_has_the_text_of_a_function(load: Any) -> None:
    method = load("class Step:\n" + textwrap.indent(BASE, "        ")).Step.step
    assert text_of(method) == text_of(load(BASE).step)
    assert not same(method, load(BASE).step)  # its qualified name is another


LAMBDAS = "f, g = (lambda x: x > 1), (lambda x: x > 2)\n"


@pytest.mark.parametrize(
    "source",
    [
        "\n\n" + LAMBDAS,
        "f = lambda x: x > 1\ng = lambda x: x > 2\n",
        "g, f = (lambda x: x > 2), (lambda x: x > 1)\n",
        "f = (lambda x:   # comment\n        x >\n   1)\ng = [(\nlambda x: x > 2)][0]\n",
        "f, é, g = (lambda x: x > 1), 'éé', (lambda x: x > 2)\n",
        "if True:\n    f = lambda x: x > 1; g = lambda x: x > 2\n",
        "f = (lambda x: x > 1) if 1 else (lambda x: x > 2); g = (lambda x: x > 2)\n",
    ],
    ids=range(7),
)
def test_a_lambda_is_the_same_wherever_it_stands(load: Any, source: str) -> None:
    base, moved = load(LAMBDAS), load(source)
    assert same(base.f, moved.f)
    assert same(base.g, moved.g)
    assert not same(moved.f, moved.g)


PAIRS = [
    "(lambda: 1), (lambda: 2)",
    "(lambda: None), (lambda: ...)",
    "(lambda x=1: x), (lambda x=2: x)",
    "(lambda x: x), (lambda y: y)",
    "(lambda x: x.a), (lambda x: x.b)",
    "(lambda x: x < 1), (lambda x: x > 1)",
    "(lambda x: f'{x}a'), (lambda x: f'{x}b')",
    "(lambda x: [i for i in x]), (lambda x: {i for i in x})",
    "(lambda x: (y := x)), (lambda x: (y := (x, x)))",
    "(lambda x: (yield x)), (lambda x: (yield from x))",
    "(lambda x: x if x else 1), (lambda x: 1 if x else x)",
    "(lambda x: (lambda y: x)), (lambda x: (lambda y: y))(1)",
    "(lambda x: lambda y: x), (lambda y: (lambda x: x))(1)",
    "(lambda a: (lambda: 1))(0), (lambda a: (lambda: 2))(0)",
]


@pytest.mark.parametrize("pair", PAIRS)
def test_two_lambdas_of_a_line_differ(load: Any, pair: str) -> None:
    line = load(f"f, g = {pair}\n")
    assert not same(line.f, line.g)
    again = load(f"import os\nf, g = {pair}\n")
    assert same(line.f, again.f)
    assert same(line.g, again.g)


CLOSED = """
def make(a, b):
    return (lambda: a + b), (lambda: a - b), (lambda: 1), (lambda: 2)
"""


def test_two_lambdas_of_a_line_that_close_over_values(load: Any) -> None:
    made = load(CLOSED).make(1, 2)
    assert len({ir.content_hash(ir.FunctionNode("f", ir.Ref.to(fn))) for fn in made}) == 4
    assert all(text_of(fn) is not None for fn in made)


def test_lambdas_of_a_line_without_column_positions(load: Any) -> None:
    """As under ``python -X no_debug_ranges``."""
    first, second, third = load("fs = (lambda x: x < 1), (lambda x: x > 1), (lambda x: x > 2)").fs
    texts = [text_of(_without_columns(fn)) for fn in (first, second, third)]
    assert texts == [text_of(fn) for fn in (first, second, third)]
    closing = load(CLOSED).make(1, 2)
    assert [text_of(_without_columns(fn)) for fn in closing] == [text_of(fn) for fn in closing]


def _without_columns(function: Any) -> Any:
    code = function.__code__
    lines = bytearray()
    for at in range(0, len(code.co_code), 16):  # location entries without columns, 8 units each
        units = min(8, (len(code.co_code) - at) // 2)
        lines += bytes([0x80 | (13 << 3) | (units - 1), 0])
    bare = code.replace(co_linetable=bytes(lines))
    return type(function)(bare, function.__globals__, function.__name__, None, function.__closure__)


DECORATED = """
import functools

def times(n):
    def decorate(fn):
        @functools.wraps(fn)
        def wrapper(*args):
            return [fn(*args)] * n
        return wrapper
    return decorate

@times(
    {n})
def step(x):
    return x{change}
"""


def test_a_decorated_function_counts_with_what_is_around_it(load: Any) -> None:
    def step(n: int, change: str = "") -> Any:
        return load(DECORATED.format(n=n, change=change)).step

    assert same(step(2), step(2))
    assert not same(step(2), step(3))
    assert not same(step(2), step(2, " + 1"))


def test_functions_without_source_count_by_names_and_constants() -> None:
    def make(text: str) -> Any:
        return eval(text, {"__name__": "nowhere"})

    texts = [
        "lambda x: x.a", "lambda x: x.b", "lambda y: y.a", "lambda x, y: x.a", "lambda *x: x.a",
        "lambda **x: x.a", "lambda x, /: x.a", "lambda *, x: x.a", "lambda x: x['a']",
        "lambda x: lambda: x.a", "lambda x: [y.b for y in x.a]", "lambda x: x.a > 1000",
    ]  # fmt: skip
    assert all(text_of(make(t)) is None for t in texts)
    hashes = [ir.content_hash(ir.FunctionNode("f", ir.Ref.to(make(t)))) for t in texts]
    assert len(set(hashes)) == len(texts) - 1  # what is nested is not told from what is not
    assert same(make("lambda x: x.a"), make("lambda   x : x.a"))


def test_source_from_an_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        archive.writestr("steps_in_zip.py", BASE)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "lib.zip"), *sys.path])
    module = importlib.import_module("steps_in_zip")
    monkeypatch.delitem(sys.modules, "steps_in_zip")
    assert "Count." in (text_of(module.step) or "")


def test_source_of_a_notebook_cell() -> None:
    """IPython puts its cells where `linecache` looks; commands in them are no Python."""
    for name, text, known in (("<cell 1>", BASE, True), ("<cell 2>", "%time\n" + BASE, False)):
        lines = text.splitlines(keepends=True)
        linecache.cache[name] = (len(text), None, lines, name)
        space: dict[str, Any] = {"__name__": "__main__"}
        exec(compile(BASE, name, "exec"), space)
        assert (text_of(space["step"]) is not None) is known


def test_a_file_that_changed_after_the_import(load: Any) -> None:
    module = load(BASE)
    file = module.step.__code__.co_filename
    assert text_of(module.step) is not None
    other = load("x = 1\n" + BASE.replace("step", "another"))
    with open(file, "w", encoding="utf-8") as stream:  # noqa: PTH123  # its name is all we have
        stream.write("\n" * 3)
    linecache.checkcache(file)
    fresh = eval("lambda state: 1", {"__name__": "steps"})
    moved = type(module.step)(module.step.__code__.replace(co_name="gone"), {"__name__": "steps"})
    assert text_of(fresh) is None
    assert text_of(moved) is None
    assert text_of(other.another) is not None


def test_a_module_that_is_loaded_again(load: Any) -> None:
    before = load(BASE)
    text = text_of(before.step)
    with open(before.__file__, "w", encoding="utf-8") as stream:  # noqa: PTH123
        stream.write(BASE.replace("+ 1", "+ 100"))
    before.__spec__.loader.exec_module(before)
    assert text_of(before.step) not in (None, text)


def test_a_source_with_a_doubtful_escape_gives_no_warning(load: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python itself gives one
        module = load("def step(x):\n    return '\\d' + x\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert text_of(module.step) is not None
