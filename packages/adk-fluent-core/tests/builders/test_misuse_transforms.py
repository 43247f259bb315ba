"""Mistakes with `S` and with the functions that make steps: refused at once, saying where."""
# ruff: noqa: PLW0108  # the line of each lambda is the line that the error must name

from __future__ import annotations

import logging
from datetime import date
from typing import TYPE_CHECKING, Any

import pytest
from misuse import KEYS, PREDICATE, Case

import adk_fluent
from adk_fluent.errors import UnknownNameError, UsageError
from adk_fluent.ir import StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Callable

S: Any = adk_fluent.S  # Any: a type checker finds most of these mistakes by itself
Agent: Any = adk_fluent.Agent
expect: Any = adk_fluent.expect
map_over: Any = adk_fluent.map_over
race: Any = adk_fluent.race
tap: Any = adk_fluent.tap
timeout: Any = adk_fluent.timeout
transfer: Any = adk_fluent.transfer

a: Any = Agent("a")


def fn(state: Any) -> dict[str, Any]:
    return {}


def gen(state: Any) -> Any:
    yield 1


async def agen(state: Any) -> Any:
    yield 1


class Thing:
    pass


deep: Any = []
for _ in range(100):
    deep = [deep]
ring: Any = {}
ring["ring"] = ring
level: Any = "INFO"
nobodys = logging.Logger("of nobody")  # noqa: LOG001  # getLogger does not know it


JSON = "sessions are stored as JSON: give None, bool, int, float, str, list, or dict with str keys"
KEPT = "a key that ADK and adk-fluent keep for themselves"
VALUE = "pass a function that returns the value; it may be async"
TEST = 'write S.guard("topic"), or S.guard(lambda s: s["score"] > 3)'
AGENTS = "pass a builder, a built ADK agent or an IR node; functions go to .tool(...)"


def json_case(call: Callable[[], Any], found: str, method: str = "S.set") -> Case:
    return Case(call, f"{method}(...) takes values that JSON can hold", found, JSON)


CASES = [
    Case(
        lambda: S.require("k"),
        "S has no method 'require'",
        help="use S.guard(...)",
        error=UnknownNameError,
    ),
    # nothing
    Case(lambda: S.set(), "S.set(...) needs a state key at least", "nothing"),
    Case(lambda: S.default(), "S.default(...) needs a state key at least", "nothing"),
    Case(lambda: S.pick(), "S.pick(...) needs a state key at least", "nothing"),
    Case(lambda: S.drop(), "S.drop(...) needs a state key at least", "nothing"),
    Case(lambda: S.user.drop(), "S.user.drop(...) needs a state key at least", "nothing"),
    Case(lambda: S.rename(), "S.rename(...) needs a state key at least", "nothing"),
    Case(lambda: S.compute(), "S.compute(...) needs a state key at least", "nothing"),
    Case(lambda: S.merge(into="k"), "S.merge(...) needs a state key at least", "nothing"),
    Case(lambda: S.compute(k=fn).reads(), ".reads(...) needs a state key at least", "nothing"),
    # what is no key
    Case(lambda: S.pick(3), "S.pick(...) takes state keys", "3", KEYS),
    Case(lambda: S.drop("a", ""), "S.drop(...) takes state keys", "an empty str", KEYS),
    Case(lambda: S.set(**{"": 1}), "S.set(...) takes state keys", "an empty str", KEYS),
    Case(lambda: S.rename(a=3), "S.rename(...) takes state keys", "3", KEYS),
    Case(lambda: S.merge("a", into=None), "S.merge(...) takes state keys", "None", KEYS),
    Case(lambda: S.merge(fn, into="a"), "S.merge(...) takes state keys", "the function fn", KEYS),
    Case(
        lambda: S.transform(fn, "k"), "S.transform(...) takes state keys", "the function fn", KEYS
    ),
    Case(lambda: S.log(3), "S.log(...) takes state keys", "3", KEYS),
    Case(lambda: S.guard(""), "S.guard(...) takes state keys", "an empty str", KEYS),
    Case(
        lambda: S.user.set(**{"user:": 1}),
        "S.user.set(...) does not take 'user:'",
        "a prefix without a name",
        "name a key",
    ),
    # keys of another scope
    Case(
        lambda: S.set(**{"user:x": 1}),
        "S.set(...) does not take 'user:x'",
        "a key of the scope 'user'",
        "use S.user.set(...)",
    ),
    Case(
        lambda: S.default(**{"temp:x": 1}),
        "S.default(...) does not take 'temp:x'",
        "a key of the scope 'temp'",
        "use S.temp.default(...)",
    ),
    Case(
        lambda: S.drop("a", "app:x"),
        "S.drop(...) does not take 'app:x'",
        "a key of the scope 'app'",
        "use S.app.drop(...)",
    ),
    Case(
        lambda: S.drop(StateFieldRef("user:tier")),
        "S.drop(...) does not take 'user:tier'",
        "a key of the scope 'user'",
        "use S.user.drop(...)",
    ),
    Case(
        lambda: S.pick("user:x"),
        "S.pick(...) does not take 'user:x'",
        "a key of the scope 'user'",
        "leave it out: what is not the session's own stays anyway",
    ),
    Case(
        lambda: S.user.set(**{"app:x": 1}),
        "S.user.set(...) does not take 'app:x'",
        "a key of the scope 'app'",
        "use S.app.set(...)",
    ),
    Case(
        lambda: S.rename(a="user:a"),
        "S.rename(...) does not take 'user:a'",
        "a key of the scope 'user'",
        "use S.user.rename(...)",
    ),
    Case(
        lambda: S.merge("a", into="user:a"),
        "S.merge(...) does not take 'user:a'",
        "a key of the scope 'user'",
        "use S.user.merge(...)",
    ),
    Case(
        lambda: S.app.transform("user:a", str),
        "S.app.transform(...) does not take 'user:a'",
        "a key of the scope 'user'",
        "use S.user.transform(...)",
    ),
    Case(
        lambda: S.temp.compute(**{"user:a": fn}),
        "S.temp.compute(...) does not take 'user:a'",
        "a key of the scope 'user'",
        "use S.user.compute(...)",
    ),
    Case(
        lambda: S.user.set(x=1, **{"user:x": 2}),
        "S.user.set(...) does not take 'user:x'",
        "that key twice, with its prefix and without",
        "name it once",
    ),
    # keys that are kept
    Case(
        lambda: S.set(_adk_x=1),
        "S.set(...) does not take '_adk_x'",
        KEPT,
        "choose another key",
    ),
    Case(
        lambda: S.drop("_adk_fluent_chain"),
        "S.drop(...) does not take '_adk_fluent_chain'",
        KEPT,
        "choose another key",
    ),
    Case(
        lambda: S.pick("_adk"),
        "S.pick(...) does not take '_adk'",
        KEPT,
        "choose another key",
    ),
    Case(
        lambda: S.temp.set(_adk_x=1),
        "S.temp.set(...) does not take 'temp:_adk_x'",
        KEPT,
        "choose another key",
    ),
    # values that JSON cannot hold
    json_case(lambda: S.set(x={1}), "a set at x"),
    json_case(lambda: S.set(a=1, x=(1, 2)), "a tuple at x"),
    json_case(lambda: S.set(x=b"bytes"), "a bytes at x"),
    json_case(lambda: S.set(x=date(2026, 1, 1)), "a date at x"),
    json_case(lambda: S.set(x=float("nan")), "nan at x"),
    json_case(lambda: S.set(x=[1.0, -float("inf")]), "-inf at x[1]"),
    json_case(lambda: S.set(x=Thing()), "a Thing at x"),
    json_case(lambda: S.set(x=Thing), "the class Thing at x"),
    json_case(lambda: S.set(x=fn), "the function fn at x"),
    json_case(lambda: S.set(x=a), "an Agent at x"),
    json_case(lambda: S.set(x={"rows": [1, {"y": {2}}]}), "a set at x['rows'][1]['y']"),
    json_case(lambda: S.set(x={1: 2}), "an int as a key at x"),
    json_case(lambda: S.set(x={"y": {None: 2}}), "a NoneType as a key at x['y']"),
    json_case(lambda: S.set(x="\ud800"), "text that is no valid Unicode at x"),
    json_case(lambda: S.set(x={"\ud800": 1}), "text that is no valid Unicode as a key at x"),
    json_case(lambda: S.set(x=["a\0b"]), "text with a NUL character at x[0]"),
    json_case(lambda: S.set(x=10**5000), "an int of thousands of digits at x"),
    json_case(lambda: S.default(x={1}), "a set at x", "S.default"),
    json_case(lambda: S.user.set(x={1}), "a set at user:x", "S.user.set"),
    # functions
    Case(lambda: S.transform("k", 3), "S.transform(...) takes functions", "3", VALUE),
    Case(lambda: S.transform("k", None), "S.transform(...) takes functions", "None", VALUE),
    Case(lambda: S.compute(k="a + b"), "S.compute(...) takes functions", "a str", VALUE),
    Case(lambda: S.compute(k=fn, n=a), "S.compute(...) takes functions", "an Agent", VALUE),
    Case(lambda: S.merge("a", into="b", fn=", "), "S.merge(...) takes functions", "a str", VALUE),
    Case(
        lambda: S.compute(k=gen),
        "a generator cannot be a function of S.compute(...)",
        "the function gen",
        "return the value; do not yield",
    ),
    Case(
        lambda: S.transform("k", agen),
        "a generator cannot be a function of S.transform(...)",
        "the function agen",
        "return the value; do not yield",
    ),
    # renames
    Case(
        lambda: S.rename(a="a"),
        "S.rename(...) cannot move 'a' to 'a'",
        "the same key",
        "give each key a new name of its own",
    ),
    Case(
        lambda: S.rename(a="c", b="c"),
        "S.rename(...) cannot move 'b' to 'c'",
        "another key that moves there",
        "give each key a new name of its own",
    ),
    # guard and log
    Case(lambda: S.guard(3), "S.guard(...) takes a state key or a function of state", "3", TEST),
    Case(
        lambda: S.guard(Thing),
        "S.guard(...) takes a state key or a function of state",
        "the class Thing",
        TEST,
    ),
    Case(lambda: S.guard("k", 3), "the message of S.guard(...) takes text", "3"),
    Case(
        lambda: S.log("k", logger=3),
        "the logger of S.log(...) is one of logging.getLogger(...), or its name",
        "3",
        "leave it out to log under 'adk_fluent.state'",
    ),
    Case(
        lambda: S.log("k", logger=nobodys),
        "the logger of S.log(...) is one of logging.getLogger(...), or its name",
        "a Logger",
        "leave it out to log under 'adk_fluent.state'",
    ),
    Case(
        lambda: S.log("k", logger=""),
        "the logger of S.log(...) is one of logging.getLogger(...), or its name",
        "an empty str",
        "leave it out to log under 'adk_fluent.state'",
    ),
    Case(
        lambda: S.log("k", level=level),
        "the level of S.log(...) is an int",
        "a str",
        "pass one of logging's, such as logging.DEBUG",
    ),
    # names that do not exist
    Case(
        lambda: S.sett(k=1),
        "S has no method 'sett'",
        help="did you mean 'set'?",
        error=UnknownNameError,
    ),
    Case(
        lambda: S.user.defaults(k=1),
        "S.user has no method 'defaults'",
        help="did you mean 'default'?",
        error=UnknownNameError,
    ),
    Case(
        lambda: S.user.pick("k"),
        "S.user has no method 'pick'",
        help="only S itself has it: S.pick",
        error=UnknownNameError,
    ),
    # S itself is no step
    Case(
        lambda: a >> S,
        "S cannot be a step",
        help="call one of its methods, such as S.set(key=value)",
    ),
    Case(
        lambda: a | S.user,
        "S.user cannot be a branch",
        help="call one of its methods, such as S.user.set(key=value)",
    ),
    Case(
        lambda: a >> S.set,
        "the function set cannot be a step",
        help="call it: .set(...)",
    ),
    # transfer
    Case(lambda: transfer(""), "transfer(...) takes the name of a step", "an empty str"),
    Case(lambda: transfer(3), "transfer(...) takes agents", "3", AGENTS),
    Case(lambda: transfer(fn), "transfer(...) takes agents", "the function fn", AGENTS),
    Case(lambda: transfer("a", when=3), "when takes a function of state", "3", PREDICATE),
    Case(
        lambda: transfer("a", name=3),
        "the name of a Transfer is a str",
        "3",
        'give it a name first: Transfer("my_name", ...)',
    ),
    # the others
    Case(
        lambda: tap(gen),
        "a generator cannot be a tap",
        "the function gen",
        "do the work when called; do not yield",
    ),
    Case(
        lambda: timeout(a, float("inf")),
        "seconds is a number that ends",
        "inf",
        "leave the timeout out where there is no limit",
    ),
    Case(lambda: timeout(a, True), "seconds is a number above 0", "True"),
    Case(
        lambda: timeout(S, 3),
        "S cannot be the body of timeout",
        help="call one of its methods, such as S.set(key=value)",
    ),
    Case(lambda: map_over("k", a, concurrency=2.5), "concurrency is an int above 0", "2.5"),
    Case(lambda: map_over("k", a, item_key=""), "item_key takes state keys", "an empty str", KEYS),
    Case(lambda: map_over("k", a, output_key=3), "output_key takes state keys", "3", KEYS),
    Case(lambda: map_over("k", a, result_key=3), "result_key takes state keys", "3", KEYS),
    Case(
        lambda: race(a, [a]),
        "a list cannot be a branch",
        help="write a >> b for one after the other, a | b for both at the same time",
    ),
    Case(
        lambda: expect(Thing), "expect(...) takes a function of state", "the class Thing", PREDICATE
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_mistake_is_refused_with_an_exact_message(case: Case) -> None:
    assert case.raised() == case.expected()


@pytest.mark.parametrize("value", [deep, ring], ids=["deep", "ring"])
def test_values_without_end_are_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="takes values that JSON can hold") as caught:
        S.set(x=value)
    assert (caught.value.found or "").startswith("more than 64 levels at x[")


def test_secrets_are_not_in_messages() -> None:
    with pytest.raises(UsageError) as caught:
        S.set(password={"hunter2"})
    assert "hunter2" not in str(caught.value)


def test_private_names_are_plain_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="has no attribute '_repr_html_'") as caught:
        _ = S._repr_html_
    assert not isinstance(caught.value, UnknownNameError)
    assert not hasattr(S, "sett")
