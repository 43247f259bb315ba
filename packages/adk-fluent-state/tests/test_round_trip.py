"""Random values of random types come back, whatever is stored; random JSON never gets through."""

from __future__ import annotations

import copy
import datetime as dt
import json
import uuid
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from state_values import Address, Colour, Grade, Kind, Point, alike, holds

from adk_fluent.state import StateTypeError

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ZONES = st.just(None) | st.just(dt.UTC) | st.just(dt.timezone(dt.timedelta(hours=-3)))
SCALARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, TEXT),
    (int, st.integers()),
    (float, FLOATS),
    (bool, st.booleans()),
    (bytes, st.binary()),
    (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (uuid.UUID, st.uuids()),
    (dt.date, st.dates()),
    (dt.time, st.times()),
    (dt.datetime, st.datetimes(timezones=ZONES)),
    (dt.timedelta, st.timedeltas()),
    (Colour, st.sampled_from(Colour)),
    (Grade, st.sampled_from(Grade)),
    (Kind, st.sampled_from(Kind)),
]
OBJECTS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (Address, st.builds(Address, street=TEXT, since=st.none() | st.dates())),
    (Point, st.builds(Point, FLOATS, FLOATS, TEXT, st.none() | st.datetimes(timezones=ZONES))),
]
Typed = tuple[Any, st.SearchStrategy[Any]]


def containers(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    def listed(each: Typed) -> Typed:
        return list[each[0]], st.lists(each[1], max_size=4)

    def paired(pair: tuple[Typed, Typed]) -> Typed:
        one, other = pair
        return tuple[one[0], other[0]], st.tuples(one[1], other[1])

    def keyed(pair: tuple[Typed, Typed]) -> Typed:
        key, each = pair
        return dict[key[0], each[0]], st.dictionaries(key[1], each[1], max_size=4)

    def optional(each: Typed) -> Typed:
        return each[0] | None, st.none() | each[1]

    def gathered(each: Typed) -> Typed:
        return set[each[0]], st.sets(each[1], max_size=4)

    keys = st.sampled_from([each for each in SCALARS if each[0] not in (bytes, float, Kind)])
    return st.one_of(
        inner.map(listed),
        inner.map(optional),
        st.tuples(inner, inner).map(paired),
        st.tuples(keys, inner).map(keyed),
        st.sampled_from(SCALARS).map(gathered),
    )


TYPES = st.recursive(st.sampled_from([*SCALARS, *OBJECTS]), containers, max_leaves=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TYPES.flatmap(lambda each: st.tuples(st.just(each[0]), each[1])))
def test_a_random_value_comes_back(case: tuple[Any, Any]) -> None:
    kind, value = case
    state: dict[str, Any] = {}
    schema = holds(kind)
    ref = schema.ref("value")
    kept = copy.deepcopy(value)
    if value is None:
        assert ref.encode(None) is None
        return
    schema.bind(state).value = value
    stored = json.loads(json.dumps(state, allow_nan=False))
    read = schema.bind(stored).value
    assert alike(read, kept)
    schema.bind(stored).value = read  # what was read can be written again
    assert alike(schema.bind(stored).value, kept)
    for given_ in (state["value"], kept):  # a write may be given as it is stored
        (again,) = schema.__state_encode__({"value": given_}, "a step").values()
        assert alike(ref.decode(again), kept)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TYPES, JSON)
def test_json_is_read_as_a_value_of_the_type_or_refused(each: Typed, value: Any) -> None:
    schema = holds(each[0])
    try:
        read = schema.bind({"value": value}).value
    except StateTypeError:
        return
    except LookupError:
        assert value is None
        return
    if read is not None:
        try:
            TypeAdapter(each[0]).validate_python(copy.copy(read), strict=True)
        except ValidationError as error:
            pytest.fail(f"{read!r} is no {each[0]}: {error}")
