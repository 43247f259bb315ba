"""Code whose use of state is not certain is opaque, and the reason says where."""

from __future__ import annotations

import builtins
import importlib.util
import linecache
import os
import sys
from typing import TYPE_CHECKING, Any, Protocol

import pytest
from effects_cases import told

from adk_fluent.contracts._effects import effects_of_function, effects_of_predicate, effects_of_tool
from adk_fluent.ir import Ref

if TYPE_CHECKING:
    from pathlib import Path

    class Load(Protocol):
        """Makes a module."""

        def __call__(self, source: str, name: str = ..., /) -> Any: ...


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Makes a module from source in a file."""

    def load(source: str, name: str = "user_code", /) -> Any:
        file = tmp_path / f"{name}.py"
        file.write_text(source, "utf-8")
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


OPAQUE = [
    ("return helper(state)", "hands `state` to `helper`"),
    ("return {'x': helper(1, key=state)}", "hands `state` to `helper`"),
    ("return {'x': helper(*[state])}", "puts `state` into something else"),
    ("return {'x': helper(*state)}", "spreads all of `state`"),
    ("return {'x': helper(**state)}", "hands `state` to `helper`"),
    ("return {**state, 'x': 1}", "takes all of `state`"),
    ("return dict(state, x=1)", "takes all of `state`"),
    ("return state | {'x': 1}", "takes all of `state`"),
    ("return state", "takes all of `state`"),
    ("return {'x': state}", "puts `state` into something else"),
    ("return {'x': [state]}", "puts `state` into something else"),
    ("return {'x': (lambda s=state: s['x'])()}", "puts `state` into something else"),
    ("get = state.get; return {'x': get('a')}", "uses `state`.get"),
    ("return {'x': getattr(state, 'get')('a')}", "hands `state` to `getattr`"),
    ("return {'x': state.copy()}", "calls `state.copy`"),
    ("return {'x': state[helper()]}", "reads a key that is computed"),
    ("return {'x': [state[k] for k in helper()]}", "reads a key that is computed"),
    ("return {helper(): 1}", "returns keys that are not known (the key `helper()` is computed)"),
    ("return helper(1)", "returns what `helper(1)` gives,"),
    ("return {**helper(1)}", "returns keys that are not known (it spreads `helper(1)`)"),
    ("return [('x', 1)]", "returns what `[('x', 1)]` gives,"),
    ("out = {}; helper(out); return out", "returns keys that are not known (`out` is handed on)"),
    (
        "out = {}; o = out; o['x'] = 1; return out",
        "returns keys that are not known (`out` is handed on)",
    ),
    (
        "o = out = {}; o['x'] = 1; return out",
        "returns keys that are not known (several names stand for it)",
    ),
    (
        "out = {}\n    def add(): out['x'] = 1\n    add(); return out",
        "returns keys that are not known (a function inside may change it)",
    ),
    (
        "out = {}; out[helper()] = 1; return out",
        "returns keys that are not known (the key `helper()` is computed)",
    ),
    (
        "out = {}; out.update(helper()); return out",
        "returns keys that are not known (it is updated with something unknown)",
    ),
    (
        "out = {}\n    for k in helper(): out[k] = 1\n    return out",
        "returns keys that are not known (the key `k` is computed)",
    ),
    (
        "out = {}; add = out.update; add(x=1); return out",
        "returns keys that are not known (`out` is handed on)",
    ),
    (
        "out = {'x': 1}\n    try: return out\n    finally: out['x'] = None",
        "may change `out` after it is returned",
    ),
    ("state['x'] = 1", "writes to `state`, which is read-only,"),
    ("state.update({'x': 1})", "writes to `state`, which is read-only,"),
    ("del state['x']", "deletes from `state`"),
    ("state |= {'x': 1}", "uses `state` in a way that is not understood"),
    ("state.x = 1", "sets `state.x`"),
    ("helper.kept = state", "keeps `state` elsewhere"),
    ("global kept; kept = state", "shares `kept` with a function inside it"),
    (
        "s = state if helper() else {}; return {'x': s['x']}",
        "uses `s`, which is not always the same",
    ),
    (
        "if helper(): s = state\n    else: s = {}\n    return {'x': s['x']}",
        "uses `s`, which is not always the same",
    ),
    ("for s in (state, {}): s['x']", "puts `state` into something else"),
    (
        "s = {}\n    for _ in 'ab':\n        s['x']; s = state\n",
        "uses `s`, which is not always the same",
    ),
    (
        "s = {}\n    while helper():\n        s['x']; s = state\n",
        "uses `s`, which is not always the same",
    ),
    ("s = {}\n    f = lambda: s['x']\n    s = state; f()", "shares `s` with a function inside it"),
    ("f = lambda: s['x']\n    s = state; f()", "shares `s` with a function inside it"),
    (
        "def f():\n        nonlocal state\n        state = {}\n    f(); state['x']",
        "shares `state` with a function inside it",
    ),
    ("class C: s = state\n    return {'x': C.s['x']}", "uses `state` in a class"),
    ("exec('x = state[\"x\"]')", "calls `exec`"),
    ("return {'x': eval('state[\"x\"]')}", "calls `eval`"),
    ("return {'x': locals()['state']['x']}", "calls `locals`"),
    ("import sys; return {'x': sys._getframe().f_locals}", None),
    ("with state as s: pass", "uses `state` in a way that is not understood"),
    ("yield {'x': 1}", "is a generator"),
    ("raise helper(state)", "hands `state` to `helper`"),
    ("assert helper(state)", "hands `state` to `helper`"),
    ("return {'x': f'{helper(state)}'}", "hands `state` to `helper`"),
    (
        "match state:\n        case {'x': 1, **rest}: return rest",
        "uses `state` in a way that is not understood",
    ),
]


@pytest.mark.parametrize(("body", "why"), [row for row in OPAQUE if row[1] is not None])
def test_what_is_not_certain_is_opaque(load: Load, body: str, why: str) -> None:
    made = load(f"def helper(*a, **k): return a\n\ndef step(state):\n    {body}\n").step
    found = effects_of_function(Ref.to(made))
    assert found.opaque is not None
    clause, line, number = found.opaque.partition(" in line ")
    assert clause == f"it {why}"
    assert line
    assert 3 <= int(number) <= 8


UNDERSTOOD = [
    ("return {'x': [state for state in (1, 2)]}", {"writes": "x"}),
    ("return {'x': [state['y'] for state in ({},)]}", {"writes": "x"}),
    ("return {'x': (lambda state: state['y'])({})}", {"writes": "x", "assumed": "x"}),
    ("def f(state): return state['y']\n    return {'x': f({})}", {"writes": "x", "assumed": "x"}),
    ("état = state\n    return {'ключ': état['clé'] + 1}", {"reads": "clé", "writes": "ключ"}),
    ("state = {'x': 1}\n    return state", {"writes": "x"}),
    ("if 0: helper(state)\n    return {'x': 1}", {"writes": "x"}),
    ("return {'x': 1}\n    helper(state)", {"writes": "x"}),
    ("state\n    return {'x': state is None}", {"writes": "x"}),
    ("print = helper\n    return {'x': 1, 'y': [print(1)]}", {"writes": "x y"}),
    ("return {'x': len([1])}", {"writes": "x"}),
    ("global KEPT\n    KEPT = 1\n    return {'x': [KEPT]}", {"writes": "x"}),
]


@pytest.mark.parametrize(("body", "expected"), UNDERSTOOD)
def test_what_only_looks_hostile_is_understood(
    load: Load, body: str, expected: dict[str, str]
) -> None:
    made = load(f"def helper(*a, **k): return a\n\ndef step(state):\n    {body}\n").step
    assert told(effects_of_function(Ref.to(made))) == expected


def test_a_name_that_hides_a_builtin(load: Load) -> None:
    module = load("def len(x): return x\n\ndef step(state): return {'x': len(state)}\n")
    assert effects_of_function(Ref.to(module.step)).opaque == "it hands `state` to `len` in line 3"
    module = load("def step(state): return {'x': len(state)}\n", "other")
    assert told(effects_of_function(Ref.to(module.step))) == {"writes": "x", "also": "reads_all"}
    module.len = builtins.sorted  # the same code with another meaning
    assert effects_of_function(Ref.to(module.step)).writes[0].type is list


def test_a_constant_that_changes(load: Load) -> None:
    module = load("KEY = 'a'\n\ndef step(state): return {'x': state[KEY] + 1}\n")
    assert told(effects_of_function(Ref.to(module.step))) == {"reads": "a", "writes": "x"}
    module.KEY = "b"
    assert told(effects_of_function(Ref.to(module.step))) == {"reads": "b", "writes": "x"}
    module.KEY = 3
    assert effects_of_function(Ref.to(module.step)).opaque is not None


def test_a_flag_of_the_module_decides_nothing(load: Load) -> None:
    module = load("DEBUG = False\n\ndef step(state):\n    if DEBUG: return {'x': state['y']}\n")
    found = {"reads": "y", "may_write": "x", "assumed": "x"}
    assert told(effects_of_function(Ref.to(module.step))) == found


class TestSource:
    def test_none(self) -> None:
        made: dict[str, Any] = {}
        exec("def step(state): return {'x': 1}", made)
        assert effects_of_function(Ref.to(made["step"])).opaque == "its source is not there"

    def test_one_that_has_changed_since(self, load: Load, tmp_path: Path) -> None:
        module = load("def step(state): return {'x': state['a'] + 1}\n")
        file = tmp_path / "user_code.py"
        file.write_text("def step(state): return {'x': state['b'] + 1}\n", "utf-8")
        os.utime(file, (1, 1))
        linecache.checkcache()
        assert effects_of_function(Ref.to(module.step)).opaque == "its source is not there"

    def test_several_lambdas_in_a_line(self, load: Load) -> None:
        text = (
            "a, b = (lambda s: s['x']), (lambda s: s['y'])\nc = [lambda s: 1, lambda s: s['z']]\n"
        )
        module = load(text)
        found = [effects_of_predicate(Ref.to(fn)) for fn in (module.a, module.b, *module.c)]
        assert [told(each) for each in found] == [
            {"reads": "x"},
            {"reads": "y"},
            {},
            {"reads": "z"},
        ]

    def test_of_methods_with_mangled_names_and_super(self, load: Load) -> None:
        module = load(
            "class Base:\n"
            "    def step(self, state): return {'x': state['base'] + 1}\n"
            "class Step(Base):\n"
            "    __key = 'k'\n"
            "    def step(self, state):\n"
            "        def inner(): return self.__key\n"
            "        return {'x': [super().__init__, self.__key, inner(), state['a']]}\n"
        )
        found = effects_of_function(Ref.to(module.Step().step))
        assert told(found) == {"reads": "a", "writes": "x"}

    def test_with_annotations_as_text(self, load: Load) -> None:
        module = load(
            "from __future__ import annotations\n"
            "def step(state: Nowhere) -> Nothing:\n"
            "    def inner(x: Unknown) -> Unknown: return x\n"
            "    return {'x': [inner(state['a'])]}\n"
        )
        assert told(effects_of_function(Ref.to(module.step))) == {"reads": "a", "writes": "x"}

    def test_of_functions_of_a_closure(self, load: Load) -> None:
        module = load(
            "import json\n"
            "def make(key, other):\n"
            "    class Step:\n"
            "        def __call__(self, state):\n"
            "            return {other: json.dumps(state[key])}\n"
            "    return Step()\n"
        )
        for key in "ab":
            found = effects_of_function(Ref.to(module.make(key, "x")))
            assert [ref.key for ref in found.reads] == [key]


class TestWrappers:
    def test_what_they_do_themselves_counts(self, load: Load) -> None:
        module = load(
            "import functools\n"
            "def logged(fn):\n"
            "    @functools.wraps(fn)\n"
            "    def wrapper(*args, **kwargs): return fn(*args, **kwargs)\n"
            "    return wrapper\n"
            "def kept(fn):\n"
            "    fn.kept = True\n"
            "    return fn\n"
            "@logged\n"
            "def one(state): return {'x': 1}\n"
            "@kept\n"
            "def two(state): return {'x': 1}\n"
        )
        assert effects_of_function(Ref.to(module.one)).opaque == (
            "it takes state in a way that is not understood"
        )
        assert told(effects_of_function(Ref.to(module.two))) == {"writes": "x"}

    def test_of_python_itself_are_opaque(self, load: Load) -> None:
        module = load("import functools\n@functools.cache\ndef step(state): return {'x': 1}\n")
        assert effects_of_function(Ref.to(module.step)).opaque == "its source is not there"

    @pytest.mark.parametrize(
        "text", ["lambda: {'x': 1}", "lambda *, state: {}", "partial(lambda s: {}, s=1)"]
    )
    def test_a_function_without_a_place_for_state(self, load: Load, text: str) -> None:
        module = load(f"from functools import partial\nstep = {text}\n")
        why = "it takes state in a way that is not understood"
        assert effects_of_function(Ref.to(module.step)).opaque == why


class TestSize:
    def test_a_long_function(self, load: Load) -> None:
        lines = "".join(f"    out['k{n}'] = state['r{n}']\n" for n in range(400))
        module = load(f"def step(state):\n    out = {{}}\n{lines}    return out\n")
        found = effects_of_function(Ref.to(module.step))
        assert found.opaque is None
        assert (len(found.reads), len(found.writes)) == (400, 400)

    def test_one_that_is_too_long(self, load: Load) -> None:
        lines = "    x = 1\n" * 15_000
        module = load(f"def step(state):\n{lines}    return {{'x': 1}}\n")
        found = effects_of_function(Ref.to(module.step))
        assert found.opaque == "it is too long to be looked through"

    def test_deep_nesting(self, load: Load) -> None:
        deep = "[" * 80 + "state['x']" + "]" * 80
        found = effects_of_function(Ref.to(load(f"def step(state): return {{'y': {deep}}}").step))
        assert told(found) == {"reads": "x", "writes": "y"}
        many = "+".join(["state['x']"] * 900)
        found = effects_of_function(Ref.to(load(f"def step(s): return {{'y': {many}}}", "m").step))
        assert found.opaque is not None

    def test_many_loops_in_loops(self, load: Load) -> None:
        lines = [f"{'    ' * (n + 1)}for i{n} in range(3):" for n in range(15)]
        lines.append("    " * 16 + "x = state.get('x')")
        module = load("def step(state):\n" + "\n".join(lines) + "\n")
        found = effects_of_function(Ref.to(module.step))
        assert found.opaque is None or "too long" in found.opaque

    def test_finally_in_finally(self, load: Load) -> None:
        lines: list[str] = []
        for n in range(7):
            lines += ["    " * (n + 1) + "try:", "    " * (n + 2) + f"if x({n}): return {{'a': 1}}"]
            lines += ["    " * (n + 1) + "finally:"]
        lines.append("    " * 8 + "x(0)")
        module = load("def step(state, x=print):\n" + "\n".join(lines) + "\n")
        found = effects_of_function(Ref.to(module.step))
        assert found.opaque is None or "too long" in found.opaque


def test_tools_that_hand_their_context_on(load: Load) -> None:
    module = load(
        "def helper(*a): return a\n"
        "def one(tool_context): helper(tool_context)\n"
        "def two(tool_context): tool_context.state[helper()] = 1\n"
        "def three(tool_context): tool_context.state.update(helper())\n"
        "def four(tool_context): tool_context._invocation_context\n"
        "def five(tool_context): tool_context.session.state['x'] = 1\n"
        "def six(tool_context): tool_context.actions = None\n"
        "async def seven(tool_context): await tool_context.run_node(1)\n"
    )
    names = ("one", "two", "three", "four", "five", "six", "seven")
    assert [effects_of_tool(Ref.to(getattr(module, name))).opaque for name in names] == [
        "it hands `tool_context` to `helper` in line 2",
        "it writes a key that is computed in line 3",
        "it writes keys that are computed in line 4",
        "it uses `tool_context`._invocation_context in line 5",
        "it writes to `tool_context.session.state`, which no session keeps, in line 6",
        "it sets `tool_context.actions` in line 7",
        "it calls `tool_context.run_node` in line 8",
    ]


def test_of_what_is_opaque_the_reads_before_are_known(load: Load) -> None:
    module = load("def step(state):\n    state['a']; print(x(state)); state['b']\n")
    assert told(effects_of_function(Ref.to(module.step))) == {
        "reads": "a",
        "opaque": "it hands `state` to `x` in line N",
    }


def test_nothing_of_the_users_is_run(load: Load) -> None:
    module = load(
        "ran = []\n"
        "class Meta(type):\n"
        "    def __getattribute__(cls, name): ran.append(name); return 1\n"
        "class Odd(metaclass=Meta):\n"
        "    def __eq__(self, other): ran.append(1); return True\n"
        "    def __bool__(self): ran.append(2); return True\n"
        "    def __getattr__(self, name): ran.append(name); return 'x'\n"
        "    __hash__ = None\n"
        "odd = object.__new__(Odd)\n"
        "ran.clear()\n"
        "def step(state):\n"
        "    if odd == 1 and odd: return {'x': state[odd.key]}\n"
    )
    found = effects_of_function(Ref.to(module.step))
    assert effects_of_function(Ref.to(module.step)) == found
    assert found.opaque == "it reads a key that is computed in line 12"
    assert module.ran == []


def test_what_is_found_is_kept_and_let_go(load: Load) -> None:
    from adk_fluent.contracts._effects import _analysis

    before = len(_analysis._known)
    module = load("def step(state): return {'x': state['a']}\n")
    found = effects_of_function(Ref.to(module.step))
    assert effects_of_function(Ref.to(module.step)) is found
    assert len(_analysis._known) == before + 1
    del module, found
    sys.modules.pop("user_code", None)
    import gc

    gc.collect()
    assert len(_analysis._known) <= before + 1
