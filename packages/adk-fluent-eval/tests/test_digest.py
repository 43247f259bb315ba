"""What decides an outcome, as digests: nothing of it changes unseen, nothing else counts."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import textwrap
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import cache, partial, wraps
from logging import getLogger
from operator import attrgetter, itemgetter
from pathlib import Path
from random import Random
from threading import Lock
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_fluent import Agent
from adk_fluent.eval import FluentCase, FluentJudge
from adk_fluent.eval._journal._digest import Digest, Digester
from adk_fluent.eval._journal._identity import digest_of, what_counts
from adk_fluent.eval._running._settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable


def digest(value: Any) -> Digest:
    """The digest of a value."""
    return Digester().digest(value)


def above(least: int, actual: int) -> bool:
    """A condition, for partials."""
    return actual > least


class Above:
    """A condition that is an object."""

    def __init__(self, least: Any) -> None:
        self.least = least
        self._lock = Lock()

    def __call__(self, actual: int) -> bool:
        return actual > self.least

    def at_least(self, actual: int) -> bool:
        """A condition that is a method."""
        return actual >= self.least


class Slotted:
    """A condition without a dictionary."""

    __slots__ = ("least",)

    def __init__(self, least: int) -> None:
        self.least = least

    def __call__(self, actual: int) -> bool:
        return actual > self.least


@dataclass(frozen=True)
class Placed:
    """A condition with a field that cases have, too."""

    location: str

    def __call__(self, actual: str) -> bool:
        return actual == self.location


class Quiet(Exception):  # noqa: N818  # as it is read in cases
    """An error that says nothing, but holds something."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.code = code


class Calm(Exception):  # noqa: N818  # as it is read in cases
    """Another one."""


class Color(Enum):
    """What is chosen from."""

    RED = 1
    BLUE = 2


class Strict(str):
    """A text that is more than one."""

    __slots__ = ()


def nested(least: int) -> Callable[[int], bool]:
    """A closure over a closure."""

    def inner(actual: int) -> bool:
        return actual > least

    def outer(actual: int) -> bool:
        return inner(actual)

    return outer


def held(value: Any) -> Callable[[Any], bool]:
    """A closure over any value."""

    def condition(actual: Any) -> bool:
        return actual == value

    return condition


def cached(least: int) -> Callable[[int], bool]:
    """A closure behind a cache."""

    @cache
    def condition(actual: int) -> bool:
        return actual > least

    return condition


def decorated(least: int) -> Callable[..., Any]:
    """A function that looks like another."""

    @wraps(above)
    def condition(*args: Any) -> bool:
        return above(least, *args)

    return condition


def using(names: dict[str, Any]) -> Any:
    """A condition that uses these names of its module."""
    made: dict[str, Any] = {"__name__": "conditions", **names}
    source = "def condition(actual):\n    return known(actual) if FLAG else limit\n"
    exec(source, made)  # a module of our own
    return made["condition"]


def defaulted(least: int) -> Any:
    """A function whose defaults differ."""

    def condition(actual: int, *, least: int = least) -> bool:
        return actual > least

    return condition


def marked(least: int) -> Any:
    """A function with an attribute."""

    def condition(actual: int) -> bool:
        return actual > condition.least  # pyright: ignore[reportFunctionMemberAccess]

    condition.least = least  # pyright: ignore[reportFunctionMemberAccess]
    return condition


def subclass(least: int) -> Any:
    """An object of a class with a constant."""
    return type("Above", (Above,), {"extra": [least]})(0)


class Titled(dict[str, int]):
    """A mapping with a title."""


def _with(value: Any, title: Any) -> Any:
    value.title = title
    return value


class Pair(NamedTuple):
    """Two of something."""

    a: int
    b: int


#: What makes something of 1 or 2: never the same of both, and always the same of one.
MAKERS: dict[str, Callable[[int], Any]] = {
    "partial": lambda n: partial(above, n),
    "partial, by name": lambda n: partial(above, least=n),
    "partial of a partial": lambda n: partial(partial(above, n)),
    "object": Above,
    "object that holds one": lambda n: Above(Above(n)),
    "object with slots": Slotted,
    "bound method": lambda n: Above(n).at_least,
    "dataclass": lambda n: Placed(str(n)),
    "class constant": subclass,
    "closure": held,
    "closure over a closure": nested,
    "closure over an object": lambda n: held(Above(n)),
    "closure over a partial": lambda n: held(partial(above, n)),
    "cached": cached,
    "decorated": decorated,
    "default": defaulted,
    "attribute": marked,
    "error": Quiet,
    "errors of two classes": lambda n: (Quiet if n == 1 else Calm)(0),
    "error class": lambda n: Quiet if n == 1 else Calm,
    "long pattern": lambda n: re.compile("x" * 500 + str(n)),
    "flags": lambda n: re.compile("x", re.IGNORECASE if n == 1 else re.MULTILINE),
    "method of a pattern": lambda n: re.compile("x" * 500 + str(n)).fullmatch,
    "method of a set": lambda n: {"a", str(n)}.__contains__,
    "built in": lambda n: str.isupper if n == 1 else str.islower,
    "builtin function": lambda n: all if n == 1 else any,
    "itemgetter": itemgetter,
    "attrgetter": lambda n: attrgetter(f"a{n}"),
    "lambda in one line": lambda n: [lambda v: v > 1, lambda v: v < 1][n - 1],  # pyright: ignore[reportUnknownLambdaType]
    "bytes": lambda n: bytes([n]) * 100,
    "long text": lambda n: "x" * 1000 + str(n),
    "long int": lambda n: 10**5000 + n,
    "bool and number": lambda n: True if n == 1 else 1,
    "text and number": lambda n: 1 if n == 1 else "1",
    "text of a class": lambda n: Strict("x") if n == 1 else "x",
    "text that is no UTF-8": lambda n: f"\ud800{n}",
    "enum": Color,
    "set": lambda n: {"a", "b", n},
    "mapping": lambda n: OrderedDict[str, int](a=n),
    "mapping with more": lambda n: _with(Titled(a=1), n),
    "namedtuple": lambda n: Pair(1, n),
    "deque": lambda n: deque([n]),
    "date": lambda n: datetime(2024, 1, n, tzinfo=UTC),
    "decimal": Decimal,
    "path": lambda n: Path("a" * n),
    "nested": lambda n: [[[[[{"a": (n,)}]]]]],
    "sentinel": lambda n: object() if n == 1 else None,
    "pipeline": lambda n: Agent("a", "m").instruct(str(n)),
    "function of its module": lambda n: using({"known": held(n), "FLAG": 1, "limit": 0}),
    "constant of its module": lambda n: using({"known": all, "FLAG": [n], "limit": 0}),
    "number of its module": lambda n: using({"known": all, "FLAG": 0, "limit": n}),
    "class of its module": lambda n: using({"known": type(subclass(n)), "FLAG": 1, "limit": 0}),
    "object of its module": lambda n: using({"known": Above(n), "FLAG": 1, "limit": 0}),
    "method of its module": lambda n: using({"known": Above(n).at_least, "FLAG": 1}),
    "collection of its module": lambda n: using({"known": all, "FLAG": 0, "limit": {"a": [n]}}),
    "decimal of its module": lambda n: using({"known": all, "FLAG": 0, "limit": Decimal(n)}),
    "objects of its module": lambda n: using({"known": all, "FLAG": 0, "limit": [Above(n)]}),
    "object of a class": lambda n: type("Above", (Above,), {"extra": Above(n)})(0),
    "partial of its module": lambda n: using({"known": partial(above, n), "FLAG": 1}),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_what_is_otherwise_is_told_otherwise(kind: str) -> None:
    make = MAKERS[kind]
    one, other = digest(make(1)), digest(make(2))
    assert one.text != other.text
    assert (one.unsure, other.unsure) == ((), ())
    assert digest(make(1)) == one
    assert digest([make(1)]).text != one.text


@pytest.mark.parametrize("kind", MAKERS)
def test_a_case_that_holds_something_else_is_another(kind: str) -> None:
    def case(number: int) -> str:
        return digest_of(FluentCase("Hi", id="a", state_assertions={"k": make(number)})).text

    make = MAKERS[kind]
    assert case(1) != case(2)
    assert case(1) == case(1)


@pytest.mark.parametrize("kind", ["partial", "object", "closure over a closure", "cached"])
def test_a_judge_of_something_else_is_another(kind: str) -> None:
    def judges(number: int) -> Any:
        fn: Any = MAKERS[kind](number)
        return what_counts(Settings("s"), [], {}, [_judge(fn)]).told["judges"]

    assert judges(1) != judges(2)
    assert judges(1) == judges(1)


def _judge(fn: Any) -> FluentJudge:
    def judge(actual_response: str) -> bool:
        return fn(actual_response)

    return FluentJudge("j", judge)


def test_all_are_different() -> None:
    found = {digest(make(n)).text for make in MAKERS.values() for n in (1, 2)}
    assert len(found) >= 2 * len(MAKERS) - 6  # some are made of the same


class Book:
    """A price book."""

    def __init__(self, dollars: float) -> None:
        self.dollars = dollars

    def price(self, model: str, usage: Any, at: Any, *, tier: str | None = None) -> Any:
        """What one call cost."""
        return self.dollars


def test_another_price_book_counts() -> None:
    def told(book: Any) -> Any:
        return what_counts(Settings("s", prices=book), [], {}, []).told["prices"]

    assert told(Book(1)) == told(Book(1))
    assert told(Book(1)) != told(Book(2))
    assert told(Book(1)).startswith("Book ")


def test_plugins_of_other_code_count_and_what_they_hold_does_not() -> None:
    def plugin(answer: int) -> Any:
        def run(self: Any) -> int:
            return answer

        made: Any = type("Plugin", (), {"run": run, "name": "p"})()
        made.calls = object()
        return made

    def told(each: Any) -> Any:
        return what_counts(Settings("s", plugins=[each]), [], {}, []).told["plugins"]

    assert told(plugin(1)) == told(plugin(1))
    assert told(plugin(1)) != told(plugin(2))


# --- what nobody can tell ------------------------------------------------------------------------


class _Unwilling:
    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ValueError("not me")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: (n for n in (1, 2)), "generator"),
        (lambda: held(n for n in (1, 2)), "generator"),
        (lambda: Above(memoryview(b"x")), "memoryview"),
        (lambda: partial(print, memoryview(b"x")), "memoryview"),
        (_Unwilling, f"{__name__}._Unwilling"),
    ],
)
def test_what_nobody_can_tell_is_named(make: Callable[[], Any], kind: str) -> None:
    assert digest(make()).unsure == (kind,)
    case = digest_of(FluentCase("Hi", state_assertions={"k": make()}))
    assert case.unsure == (f"state_assertions ({kind})",)
    counted = what_counts(Settings("s"), [], {}, [_judge(make())])
    assert counted.unsure == [f"judge 'j' ({kind})"]
    assert counted.told["judges"][0]["fn"] == "function, which nobody can tell"


class Counting:
    """A condition that says what there is to it."""

    def __init__(self, least: int) -> None:
        self.least = least
        self.calls = 0
        self.answers = (n for n in (1, 2))

    def __call__(self, actual: int) -> bool:
        self.calls += 1
        return actual > self.least

    def __getstate__(self) -> Any:
        return self.least


@dataclass(slots=True)
class CountingData:
    """Another one."""

    least: int
    calls: int = 0

    def __call__(self, actual: int) -> bool:
        self.calls += 1
        return actual > self.least

    def __getstate__(self) -> Any:
        return self.least


@pytest.mark.parametrize("kind", [Counting, CountingData])
def test_an_object_may_say_itself_what_there_is_to_it(kind: Any) -> None:
    one, same, other = kind(1), kind(1), kind(2)
    assert one(5)
    assert digest(one) == digest(same)
    assert digest(one).text != digest(other).text
    assert not digest(one).unsure


def test_what_a_module_holds_besides_is_no_reason() -> None:
    assert not digest(using({"known": all, "FLAG": memoryview(b"y"), "limit": Lock()})).unsure
    assert not digest(using({"known": all, "FLAG": getLogger("x"), "limit": Random(1)})).unsure


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        ({"known": held(memoryview(b"x"))}, "memoryview"),
        ({"known": Above(memoryview(b"x"))}, "memoryview"),
        ({"known": _Unwilling()}, f"{__name__}._Unwilling"),
        ({"known": all, "limit": [memoryview(b"x")]}, "memoryview"),
        ({"known": ModuleType("nowhere")}, "module nowhere"),
    ],
)
def test_what_decides_beside_a_function_and_cannot_be_told_is_named(names: Any, kind: str) -> None:
    assert digest(using({"FLAG": 1, "limit": 0, **names})).unsure == (kind,)


@dataclass
class Twin:
    """Data in data."""

    left: Any
    right: Any


def test_what_is_shared_is_told_once() -> None:
    pair: Any = 1
    for _ in range(30):
        pair = [pair, pair]
    twin: Any = Twin(1, 2)
    for _ in range(30):
        twin = Twin(twin, twin)
    for each in (pair, twin, Above(pair), held(pair), using({"known": all, "limit": pair})):
        assert not digest(each).unsure
    assert digest(Twin(1, Twin(2, 3))).text != digest(Twin(1, Twin(2, 4))).text
    assert digest(_with(Twin(1, 2), 3)).text != digest(_with(Twin(1, 2), 4)).text


def test_data_in_data_is_told_in_a_time_that_does_not_double() -> None:
    def nest(depth: int) -> Any:
        return Placed("x") if depth == 0 else Twin(nest(depth - 1), depth)

    assert not digest(nest(40)).unsure


def test_what_holds_itself_is_the_same_wherever_it_is() -> None:
    def ring() -> Any:
        made: list[Any] = [1]
        made.append([made])
        return made

    shared = ring()
    assert digest([shared, [shared]]) == digest([ring(), [ring()]])
    assert not digest([shared, [shared]]).unsure


class _Hostile(type):
    def __getattribute__(cls, name: str) -> Any:
        raise SystemExit(name)


def guest() -> Any:
    """A class that pytest must not see."""
    return _Hostile("Guest", (), {})


class _Exiting:
    def __reduce_ex__(self, protocol: Any) -> Any:
        raise SystemExit(1)

    def __call__(self, actual_response: str) -> bool:
        return True


@pytest.mark.parametrize(
    "make", [guest, lambda: [guest()()], _Exiting, lambda: [{"a": _Exiting()}]]
)
def test_whatever_an_object_does_it_is_run_again(make: Callable[[], Any]) -> None:
    for each in (make(), held(make()), using({"known": make(), "FLAG": 1, "limit": 0})):
        assert digest(each).unsure
    counted = what_counts(Settings("s", prices=make(), plugins=[]), [], {}, [])
    assert len(counted.unsure) == 1


def test_a_plugin_whose_code_nobody_can_tell_is_run_again() -> None:
    kind = type("Plugin", (), {"name": "p", "held": _Unwilling()})
    counted = what_counts(Settings("s", plugins=[kind()]), [], {}, [])
    assert counted.unsure == [f"plugin 'p' ({__name__}._Unwilling)"]


def test_what_others_have_installed_is_known_by_its_name() -> None:
    def told(number: int, module: str) -> Digest:
        known = held(number)
        known.__module__ = module
        return digest(using({"known": known, "FLAG": 1, "limit": 0}))

    assert told(1, "hypothesis.strategies") == told(2, "hypothesis.strategies")
    assert told(1, "mine") != told(2, "mine")


def test_too_much_and_too_deep_is_not_told() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    assert digest(deep).unsure
    assert digest([[] for _ in range(300_000)]).unsure


def test_what_holds_itself_ends() -> None:
    again: list[Any] = [1]
    again.append(again)
    node = Above(1)
    node.least = node
    assert digest(again) == digest(again)
    assert not digest(node).unsure

    def even(number: int) -> bool:
        return number == 0 or odd(number - 1)

    def odd(number: int) -> bool:
        return number != 0 and even(number - 1)

    assert digest(even).text != digest(odd).text


def test_what_is_shared_and_what_is_equal_is_the_same() -> None:
    one = ["x", 1]
    assert digest([one, one]) == digest([["x", 1], ["x", 1]])
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
        max_leaves=20,
    )
)
def test_data_is_always_told(value: Any) -> None:
    import copy

    found = digest(value)
    assert found == digest(copy.deepcopy(value))
    assert not found.unsure
    assert digest([value]).text != found.text


def test_a_function_without_a_module_is_told() -> None:
    made = FunctionType(above.__code__, {})
    assert not digest(made).unsure


# --- other processes -----------------------------------------------------------------------------

MODULE = """
from __future__ import annotations
import re, threading
from collections import namedtuple
from dataclasses import dataclass, field
from functools import cache, partial, wraps
from adk_fluent import Agent
from adk_fluent.eval import FluentCase, FluentJudge, ToolCall, Turn, UserSimulation, Rubric
from adk_fluent.eval._journal._identity import digest_of, what_counts
from adk_fluent.eval._running._settings import Settings

WORDS = {"one", "two", "three", "four", "five"}
TABLE = {"b": frozenset({"x", "y", "z"}), "a": [1, 2.5, None]}
limit = 3

class Base:
    words = {"p", "q", "r", "s"}
    def __init__(self, n):
        self.n = n
        self.lock = threading.RLock()
        self.seen = {"u", "v", "w", n}
    def __call__(self, actual):
        return self.check(actual) and actual in WORDS
    def check(self, actual):
        return len(actual) > limit and helper(actual)
    @property
    def twice(self):
        return self.n * 2

class Derived(Base):
    def check(self, actual):
        return super().check(actual) and bool(TABLE)

@dataclass(frozen=True, slots=True)
class Data:
    words: frozenset = frozenset({"k", "l", "m"})
    more: list = field(default_factory=list)
    def __call__(self, actual):
        return actual in self.words

class Problem(Exception):
    pass

def helper(actual):
    return actual in {"g", "h", "i", "j"} or Derived(1)(actual)

def closed(n):
    known = {"a", "b", "c", n}
    def inner(actual):
        return actual in known
    def outer(actual, *, other={"d", "e", "f"}):
        return inner(actual) or actual in other
    return outer

@cache
def cached(actual):
    return any(each in actual for each in ("m", "n"))

Pair = namedtuple("Pair", "a b")

cases = [
    FluentCase("Hi", id="a", state_assertions={"k": held}) for held in (
        closed("x"), partial(closed("x"), other={"u", "v", "w"}), Derived("x"), Derived("x").check,
        Data(), cached, lambda v: v in WORDS, {"a", "b", "c"}.__contains__,
        Pair({"a", "b"}, closed(1)), {closed("x"), helper, Derived, "x", 1, None}, object(),
        Data.__call__, Base, Agent("a", "m"),
    )
]
cases += [
    FluentCase(Turn("Ho", rubrics=["r", Rubric("x")]), id="b",
        expected_trajectory=[ToolCall("t", {"x": helper, "y": {"a", "b", "c"}})],
        expected_response_contains=re.compile("x" * 400 + "|y"),
        mock_tool_outputs={"t": [Problem(), Problem({"a", "b", "c"}), closed("y")]},
        simulation=UserSimulation(script=["x"]), metadata={"a": {"x", "y", "z"}}),
]
counted = what_counts(
    Settings("s", prices=Data(), plugins=[Derived("p")]), [], {},
    [FluentJudge("j", partial(lambda responses, words: responses in words, words=WORDS))],
)
print([digest_of(each) for each in cases], counted)
"""


def _told(folder: Path, seed: str, *args: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, *args], cwd=folder, env=environment, capture_output=True, check=True
    )
    return done.stdout.decode()


def test_another_process_tells_the_same(tmp_path: Path) -> None:
    (tmp_path / "conditions.py").write_text(MODULE)
    first = _told(tmp_path, "1", "conditions.py")
    assert "unsure=()" in first
    assert first.count("unsure=(") == first.count("unsure=()") == 15
    assert "unsure=[]" in first
    assert _told(tmp_path, "2", "conditions.py") == first
    imported = ("-c", "import conditions")
    assert _told(tmp_path, "3", *imported) == first  # compiles it
    assert list((tmp_path / "__pycache__").glob("conditions*"))
    assert _told(tmp_path, "4", *imported) == first  # compiled before


def test_where_something_stands_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "conditions.py").write_text(MODULE)
    first = _told(tmp_path, "1", "conditions.py")
    moved = textwrap.dedent("\n# a note\n\n") + MODULE.replace(
        "limit = 3", "\n\nlimit = 3  # three"
    )
    (tmp_path / "conditions.py").write_text(moved)
    assert _told(tmp_path, "1", "conditions.py") == first
    (tmp_path / "conditions.py").write_text(MODULE.replace("limit = 3", "limit = 4"))
    assert _told(tmp_path, "1", "conditions.py") != first


SCORING = """
from other import least
LIMIT = 3
def grade(text):
    return len(text) > LIMIT
def unused(text):
    return 1
"""
JUDGES = {
    "attribute": "import scoring\ndef judge(r): return scoring.grade(r)",
    "attribute of a package": "import pack.scoring\ndef judge(r): return pack.scoring.grade(r)",
    "import": "def judge(r):\n    import scoring\n    return scoring.grade(r)",
    "import of a name": "def judge(r):\n    from scoring import grade\n    return grade(r)",
    "import from a package": "def judge(r):\n    from pack import scoring\n    return scoring",
    "module as a whole": "import scoring\ndef judge(r): return vars(scoring)['grade'](r)",
    "module in a closure": "import scoring\n"
    "def make(it):\n    def judge(r): return it.grade(r)\n    return judge\n"
    "judge = make(scoring)",
}


@pytest.mark.parametrize("kind", JUDGES)
def test_other_modules_of_the_user_count(tmp_path: Path, kind: str) -> None:
    def told(scoring: str = SCORING, other: str = "least = 1") -> str:
        for folder in (tmp_path, tmp_path / "pack"):
            folder.mkdir(exist_ok=True)
            (folder / "scoring.py").write_text(scoring)
            (folder / "__init__.py").write_text("")
        (tmp_path / "other.py").write_text(other)
        (tmp_path / "judges.py").write_text(JUDGES[kind])
        return _told(tmp_path, "1", "-B", "-c", _ASK)

    first = told()
    assert "unsure=()" in first
    assert told() == first
    assert told("# a note\n" + SCORING) == first
    assert told(SCORING.replace("LIMIT = 3", "LIMIT = 4")) != first
    assert told(SCORING.replace("> LIMIT", "< LIMIT")) != first
    if kind.startswith("attribute"):
        assert told(SCORING.replace("return 1", "return 2")) == first
    else:
        assert told(other="least = 2") != first


_ASK = """
from adk_fluent.eval._journal._digest import Digester
from judges import judge
first = Digester().digest(judge)
judge("x")
assert Digester().digest(judge) == first
print(first)
"""


def test_what_is_found_by_a_text_is_unsure() -> None:
    def by_name(name: str) -> Any:
        return importlib.import_module(name)

    assert digest(by_name).unsure == ("importlib.import_module",)


def test_ordinary_functions_are_told() -> None:
    def ordinary(text: str) -> Any:
        import json

        import pydantic

        match = re.search("x", os.path.join(text, sys.executable))  # noqa: PTH118
        return json.loads(text), match, pydantic.VERSION, st.none(), subprocess.run, LOGGER, pytest

    assert not digest(ordinary).unsure


LOGGER = getLogger(__name__)
