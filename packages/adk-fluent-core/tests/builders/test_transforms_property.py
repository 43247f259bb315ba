"""Any sequence of `S` steps does to state what a plain dict says."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from adk_fluent import Pipeline, S
from adk_fluent.testing import mock_backend

if TYPE_CHECKING:
    from collections.abc import Callable

    from adk_fluent.builders import Builder

Model = dict[str, Any]
Step = tuple["Builder", "Callable[[Model], None]"]

SCOPES: dict[str, tuple[Any, str]] = {
    "session": (S, ""),
    "user": (S.user, "user:"),
    "app": (S.app, "app:"),
    "temp": (S.temp, "temp:"),
}
KEYS = st.sampled_from(["a", "b", "c"])
KEY_LISTS = st.lists(KEYS, min_size=1, max_size=3, unique=True)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, "", "x", "y"]),
    lambda below: (
        st.lists(below, max_size=2) | st.dictionaries(st.sampled_from("xyz"), below, max_size=2)
    ),
    max_leaves=4,
)
CONSTANTS = st.dictionaries(KEYS, VALUES, min_size=1)


def wrapped(value: Any) -> list[Any]:
    return [value]


async def size(state: Any) -> int:
    await asyncio.sleep(0)
    return len(state)


def texts(*values: Any) -> str:
    return "/".join(str(value) for value in values)


def put(model: Model, writes: Model) -> None:
    """None is as good as absent."""
    model.update(writes)
    for key in [key for key, value in model.items() if value is None]:
        del model[key]


@st.composite
def steps(draw: st.DrawFn) -> Step:  # noqa: PLR0911  # a row for each transform
    s, prefix = SCOPES[draw(st.sampled_from(list(SCOPES)))]
    match draw(st.sampled_from(["set", "default", "drop", "rename", "change", "compute", "pick"])):
        case "set":
            values = draw(CONSTANTS)
            writes = {prefix + key: value for key, value in values.items()}
            return s.set(**values), lambda model: put(model, writes)
        case "default":
            values = draw(CONSTANTS)
            writes = {prefix + key: value for key, value in values.items()}
            return s.default(**values), lambda model: put(model, writes | model)
        case "drop":
            gone = draw(KEY_LISTS)
            return s.drop(*gone), lambda model: put(model, dict.fromkeys(prefix + k for k in gone))
        case "rename":
            olds, news = draw(KEY_LISTS), draw(st.permutations(["a", "b", "c", "d"]))
            pairs = {old: new for old, new in zip(olds, news, strict=False) if old != new}
            return (s.rename(**pairs) if pairs else S.log()), lambda model: move(
                model, {prefix + old: prefix + new for old, new in pairs.items()}
            )
        case "change":
            key, into, sources = draw(KEYS), draw(KEYS), draw(KEY_LISTS)
            both = s.transform(key, wrapped) >> s.merge(*sources, into=into, fn=texts)
            return both, lambda model: change(
                model, prefix + key, prefix + into, [prefix + each for each in sources]
            )
        case "compute":
            keys = draw(KEY_LISTS)
            return s.compute(**dict.fromkeys(keys, size)), lambda model: put(
                model, dict.fromkeys([prefix + key for key in keys], len(model))
            )
        case _:
            kept = draw(KEY_LISTS)
            return S.pick(*kept), lambda model: put(
                model, {key: None for key in model if ":" not in key and key not in kept}
            )


def move(model: Model, pairs: dict[str, str]) -> None:
    found = {old: model[old] for old in pairs if old in model}
    put(model, dict.fromkeys(found) | {pairs[old]: value for old, value in found.items()})


def change(model: Model, key: str, into: str, sources: list[str]) -> None:
    if key in model:
        model[key] = wrapped(model[key])
    if any(each in model for each in sources):
        model[into] = texts(*(model.get(each) for each in sources))


STATES = st.dictionaries(
    st.builds(str.__add__, st.sampled_from(["", "user:", "app:"]), KEYS), VALUES
)


@given(state=STATES, sequence=st.lists(steps(), min_size=1, max_size=8))
def test_a_sequence_does_what_a_dict_does(state: Model, sequence: list[Step]) -> None:
    model: Model = {}
    put(model, state)
    for _, apply in sequence:
        apply(model)
    pipeline = Pipeline(*(step for step, _ in sequence))
    ran = asyncio.run(pipeline.run("hi", backend=mock_backend({}), state=state))
    assert ran.state == {k: v for k, v in model.items() if not k.startswith("temp:")}
    assert pipeline.clone().build() == pipeline.build()
