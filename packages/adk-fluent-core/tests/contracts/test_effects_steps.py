"""What function steps do to state, as their source says: realistic code of users."""

from __future__ import annotations

import asyncio
import enum
import functools
import json
import logging
import operator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict

import pytest
from effects_cases import Case, Cases, told

from adk_fluent.contracts._effects import effects_of_function, effects_of_predicate
from adk_fluent.ir import Ref, StateFieldRef

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    State = Mapping[Any, Any]
    StepFunction = Callable[[State], Mapping[str, Any]]

log = logging.getLogger(__name__)
KEY: Final = "topic"
KEYS: Final = ("a", "b")
PREFIX = "user:"
INTENT = StateFieldRef("user:intent", str)


class Keys(enum.StrEnum):
    DRAFT = "draft"


class Names:
    SCORE = "score"


class Answer(TypedDict):
    text: str
    score: NotRequired[float]


def helper(value: object) -> Any:
    return value


steps = Cases()

# --- reading -------------------------------------------------------------------------------------


@steps.told(reads="n", writes="n")
def count(state: State) -> dict[str, Any]:
    """A docstring."""
    return {"n": state["n"] + 1}


@steps.told(reads="n?", writes="n")
def count_on(state: State) -> dict[str, Any]:
    return {"n": state.get("n", 0) + 1}


@steps.told(reads="topic user:tier draft score user:intent", writes="out")
def by_constants(state: State) -> dict[str, Any]:
    parts = [state[KEY], state[PREFIX + "tier"], state[Keys.DRAFT], state[Names.SCORE]]
    return {"out": [*parts, state[INTENT.key]]}


@steps.told(reads="user:intent user:name draft?", writes="out")
def by_fields_and_texts(state: State) -> dict[str, Any]:
    return {"out": f"{state[INTENT.key]} {state[f'{PREFIX}name']} {state.get(Keys.DRAFT.value)}"}


@steps.told(reads="draft? topic", writes="text", assumed="text")
def with_a_guard(state: State) -> dict[str, Any]:
    if "draft" in state and len(state["draft"]) > 10:
        return {"text": state["draft"]}
    return {"text": state["topic"]}


@steps.told(reads="draft? score?", writes="text")
def with_an_early_return(state: State) -> dict[str, Any]:
    if not state.get("draft"):
        return {"text": "nothing"}
    if state.get("score") is None:
        return {"text": "no score"}
    return {"text": f"{state['draft']}: {state['score']}"}


@steps.told(reads="score? limit? name?", writes="ok")
def with_comparisons(state: State) -> dict[str, Any]:
    high = state.get("score", 0) > 5 and state["score"] < 9
    known = state.get("limit") in (1, 2) and state["limit"] == 1
    return {"ok": bool(high or known or (state.get("name") == "x" and state["name"]))}


@steps.told(reads="score? low", writes="ok")
def with_a_comparison_that_tells_nothing(state: State) -> dict[str, Any]:
    return {"ok": [state.get("score", 9) > 5 and state["low"]]}


@steps.told(reads="a? b? c", writes="sum")
def with_all_keys(state: State) -> dict[str, Any]:
    if all(key in state for key in KEYS):
        return {"sum": state["a"] + state["b"]}
    return {"sum": state["c"] + 1}


@steps.told(reads="a? b? c", writes="sum")
def with_any_key(state: State) -> dict[str, Any]:
    if any(key not in state for key in ("a", "b")):
        return {"sum": state["c"] + 1}
    return {"sum": state["a"] + state["b"]}


@steps.told(reads="x?", writes="n")
def with_a_caught_error(state: State) -> dict[str, Any]:
    try:
        return {"n": len(state["x"])}
    except (KeyError, TypeError):
        return {"n": 0}


@steps.told(reads="x", writes="n")
def with_an_error_that_is_raised_again(state: State) -> dict[str, Any]:
    try:
        return {"n": len(state["x"])}
    except KeyError as error:
        raise ValueError("no x") from error


@steps.told(reads="x", writes="n")
def with_another_error_caught(state: State) -> dict[str, Any]:
    try:
        return {"n": len(state["x"])}
    except ValueError:
        return {"n": 0}


@steps.told(reads="x? y", writes="n", assumed="n")
def with_suppress(state: State) -> dict[str, Any]:
    found = None
    with suppress(KeyError):
        return {"n": state["x"]}
    return {"n": found or state["y"]}


@steps.told(reads="x?", writes="n")
def with_a_walrus(state: State) -> dict[str, Any]:
    if (found := state.get("x")) is not None:
        return {"n": helper(found) or state["x"]}
    return {"n": 0}


@steps.told(reads="x?", writes="n")
def with_a_name_for_it(state: State) -> dict[str, Any]:
    found = state.get("x")
    if found is None:
        return {"n": 0}
    return {"n": found}


@steps.told(reads="kind a? b", writes="out", assumed="out")
def with_match(state: State) -> dict[str, Any]:
    match state["kind"]:
        case "a" if "a" in state:
            return {"out": state["a"]}
        case _:
            return {"out": state["b"]}


@steps.told(reads="a? b?", writes="out", assumed="out")
def with_a_match_of_state(state: State) -> dict[str, Any]:
    match state:
        case {"a": found}:
            return {"out": found or state["a"]}
        case {"b": 1}:
            return {"out": state["b"]}
        case _:
            return {"out": 0}


@steps.told(reads="items", writes="n")
def in_a_loop(state: State) -> dict[str, Any]:
    n = 0
    for item in state["items"]:
        if item is None:
            continue
        n += len(item)
        if n > 9:
            break
    else:
        n += 1
    while n > 100:
        n -= 1
    return {"n": n}


@steps.told(reads="weights items", writes="best")
def in_functions_inside(state: State) -> dict[str, Any]:
    def score(item: str) -> Any:
        return state["weights"][item]

    return {"best": sorted(state["items"], key=lambda item: score(item))}  # noqa: PLW0108


@steps.told(reads="items factor", writes="all")
def in_comprehensions(state: State) -> dict[str, Any]:
    return {"all": [item * state["factor"] for item in state["items"] if item]}


@steps.told(also="reads_all", writes="n keys text")
def all_of_it(state: State) -> dict[str, Any]:
    keys = sorted(key for key in state if key.startswith("a"))
    log.info("%s", [value for _, value in state.items()])
    return {"n": len(state), "keys": keys, "text": f"{state} {state.get(keys[0])}"}


@steps.told(reads="a? b?", writes="a b")
def in_a_loop_over_constants(state: State) -> dict[str, Any]:
    return {key: str(state.get(key, "")).strip() for key in KEYS}


@steps.told(reads="first other", writes="x y", assumed="x y")
def unpacked(state: State) -> dict[str, Any]:
    one, two = state["first"], state["other"]
    return {"x": one, "y": two}


@steps.told(reads="x", writes="y", assumed="y")
def by_another_name(state: State) -> dict[str, Any]:
    s = state
    return {"y": s["x"]}


# --- writing -------------------------------------------------------------------------------------


@steps.told(writes="a", may_write="b")
def sometimes(state: State) -> dict[str, Any]:
    if helper(1):
        return {"a": 1, "b": 2}
    return {"a": 3}


@steps.told(may_write="a")
def or_nothing(state: State) -> dict[str, Any] | None:
    if helper(1):
        return {"a": 1}
    return None


@steps.told(may_write="a")  # noqa: RET503  # its end is a way out, too
def to_the_end(state: State) -> Any:
    if helper(1):
        return {"a": 1}


@steps.told(removes="a", writes="b", may_write="c", may_remove="c")
def removing(state: State) -> dict[str, Any]:
    return {"a": None, "b": 1, "c": 2 if helper(1) else None}


@steps.told(writes="a b c", may_write="d")
def in_a_local_dict(state: State) -> dict[str, Any]:
    out: dict[str, Any] = {}
    out["a"] = 1
    out.update({"b": 2}, c=3)
    if helper(1):
        out["d"] = 4
    log.debug("%s", len(out))
    return out


@steps.told(writes="a b", may_write="c")
def in_a_dict_that_is_put_together(state: State) -> dict[str, Any]:
    base = {"a": 1}
    more = dict(b=2) if helper(1) else {"b": 3, "c": 4}  # noqa: C408  # the case
    return {**base, **more}


@steps.told(writes="a b")
def in_a_union(state: State) -> dict[str, Any]:
    base = {"a": 1} | {"b": 2}
    base |= {"a": 2}
    return base


@steps.told(writes="a", removes="b")
def in_a_dict_that_loses_keys(state: State) -> dict[str, Any]:
    out: dict[str, Any] = {"a": 1, "b": 2, "c": 3, "d": 4}
    del out["c"]
    out.pop("d")
    out["b"] = None
    return out


@steps.told(may_write="a")
def in_a_dict_or_none(state: State) -> Any:
    out = None
    if helper(1):
        out = {"a": 1}
    return out


@steps.told(writes="text", may_write="score")
def as_a_typed_dict(state: State) -> Answer:
    if helper(1):
        return Answer(text="x", score=1.0)
    return {"text": "y"}


@steps.told(writes="a", assumed="a")
def what_a_helper_gives(state: State) -> dict[str, Any]:
    return {"a": helper(1)}


@steps.told(reads="x", writes="a", assumed="a")
async def waiting(state: State) -> dict[str, Any]:
    await asyncio.sleep(0)
    async with asyncio.timeout(1):
        found: Any = await helper(state["x"])
    return {"a": found[0]}


@steps.told(writes="ok")
def with_finally(state: State) -> dict[str, Any]:
    try:
        helper(1)
        return {"ok": True}
    except ValueError:
        return {"ok": False}
    finally:
        log.info("done")


@steps.told(reads="x?", writes="n")
def with_an_assertion(state: State) -> dict[str, Any]:
    assert state.get("x")
    return {"n": len(state["x"])}


@steps.told(reads="i", writes="out")
def with_while_true(state: State) -> dict[str, Any]:
    tries = 0
    while True:
        tries += 1
        if tries > state["i"]:
            break
    return {"out": tries}


@steps.told()
def that_does_nothing(state: State) -> None:
    """Nothing at all."""


@steps.told(reads="x")
def that_raises(state: State) -> None:
    raise ValueError(state["x"])


@steps.told(reads="db? x", writes="n", assumed="n")
def with_resources(state: State, db: Any, *, limit: int = 3) -> dict[str, Any]:
    if db is None or "db" in state:
        return {"n": limit}
    return {"n": db.count(state["x"], limit)}


def reader(key: str, *, to: str) -> Callable[[State], dict[str, Any]]:
    """Makes steps, all of the same code."""

    def read(state: State) -> dict[str, Any]:
        return {to: len(state[key])}

    return read


steps.told(reads="x", writes="y")(reader("x", to="y"))
steps.told(reads="a", writes="b")(reader("a", to="b"))


class Steps:
    """Steps that are methods and objects."""

    key = "mine"

    def __init__(self) -> None:
        self.__limit = 3

    def method(self, state: State) -> dict[str, Any]:
        return {"n": state["x"] + self.__limit}

    @staticmethod
    def static(state: State) -> dict[str, Any]:
        return {"n": state["y"] + 1}

    @classmethod
    def of_class(cls, state: State) -> dict[str, Any]:
        return {"n": state["z"] + 1}

    def __call__(self, state: State) -> dict[str, Any]:
        return {"n": state["called"] + 1}


def add(one: str, state: State, *, other: str) -> dict[str, Any]:
    return {"n": state[one] + state[other]}


steps.told(reads="x", writes="n")(Steps().method)
steps.told(reads="y", writes="n")(Steps.static)
steps.told(reads="z", writes="n")(Steps.of_class)
steps.told(reads="called", writes="n")(Steps())
steps.told(reads="p q", writes="n")(functools.partial(add, "p", other="q"))
steps.of(lambda s: {"y": s["x"]}, reads="x", writes="y", assumed="y")
steps.of(
    lambda s: {"y": s["x"]} if s else {"y": 0},
    reads="x",
    writes="y",
    assumed="y",
    also="reads_all",
)

PAIR: Final[list[StepFunction]] = [lambda s: {"p": s["x"] + 1}, lambda s: {"q": s["y"] + 1}]
steps.told(reads="x", writes="p")(PAIR[0])
steps.told(reads="y", writes="q")(PAIR[1])

# --- looking -------------------------------------------------------------------------------------

looks = Cases()
looks.of(lambda s: s.get("score", 0) > 0.8, reads="score?")
looks.of(lambda s: helper(s["x"]), reads="x")
looks.of(lambda s: {"amount": s["x"], **helper(s["y"])}, reads="x y")
looks.of(lambda s: "x" in s and "y" in s.keys(), reads="x? y?")  # noqa: SIM118
looks.of(lambda s: s["x"] if "x" in s else s["y"], reads="x? y")
looks.of(operator.itemgetter("x", "y"), reads="x y")
looks.of(print, also="reads_all")
looks.of(len, also="reads_all")
looks.of(lambda s: print("state:", s), also="reads_all")
looks.of(bool, also="reads_all")
looks.of(lambda s: json.dumps(s["x"]), reads="x")


@pytest.mark.parametrize("case", steps, ids=lambda case: getattr(case.fn, "__name__", "object"))
def test_a_step(case: Case) -> None:
    assert told(effects_of_function(Ref.to(case.fn))) == case.expected


@pytest.mark.parametrize("case", looks)
def test_a_function_that_looks(case: Case) -> None:
    assert told(effects_of_predicate(Ref.to(case.fn))) == case.expected
