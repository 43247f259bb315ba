"""What codecs carry comes out as it went in; what they cannot is refused, with its place."""

from __future__ import annotations

import json
import sys
from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adk_fluent.distributed import BoundaryError, EngineError, _codecs
from adk_fluent.distributed._codecs import (
    codec_named,
    codecs_of,
    names_in,
    pack,
    shown,
    state_fault,
    unpack,
)

codec_values: Any = pytest.importorskip("codec_values")  # where the extras are installed

CARRIED: dict[str, st.SearchStrategy[Any]] = codec_values.CARRIED


def same(one: Any, other: Any) -> bool:
    """Whether they are equal, and of the same types."""
    kind: object = one.__class__
    if other.__class__ is not kind:
        return False
    if kind is dict:
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if kind is list:
        return len(one) == len(other) and all(map(same, one, other))
    return one.equals(other, check_metadata=True) if hasattr(one, "schema") else bool(one == other)


@pytest.mark.parametrize("name", CARRIED)
def test_what_a_codec_carries_comes_out_as_it_went_in(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_codecs, "LARGE", 20)
    codecs = codecs_of(["json", name])

    @settings(max_examples=25, deadline=None, database=None, derandomize=True)
    @given(st.dictionaries(st.text("abc$", max_size=3), CARRIED[name], max_size=3), st.booleans())
    def check(state: dict[str, Any], apart: bool) -> None:
        assert state_fault(state, codecs) is None
        found: dict[str, bytes] = {}
        text = json.dumps(pack(state, codecs, found if apart else None), allow_nan=False)
        assert names_in(text) == found.keys()
        read = json.loads(text)
        assert same({key: unpack(read[key], found.__getitem__) for key in read}, state)
        json.dumps(shown(state, codecs), allow_nan=False)

    check()


REFUSED: dict[str, tuple[tuple[str, ...], object, str, str]] = {
    "a table without its codec": (
        ("json",),
        {"rows": [codec_values.TABLE]},
        "['rows'][0] is a Table",
        "serialization='arrow'",
    ),
    "a message without its codec": (
        ("arrow",),
        codec_values.Order(id="A1"),
        " is an Order",
        "serialization='protobuf'",
    ),
    "bytes without their codec": ((), {"a": b"x"}, "['a'] is a bytes", "serialization='msgpack'"),
    "a time without a zone": (
        ("msgpack",),
        {"at": [datetime(2026, 7, 1)]},  # noqa: DTZ001
        "['at'][0] is a datetime",
        "isoformat",
    ),
    "a date": (("msgpack",), date(2026, 7, 1), " is a date", "isoformat"),
    "keys that nothing can be found by again": (
        ("msgpack",),
        {"grid": {(1, 2): b"x"}},
        "['grid'] has the key (1, 2)",
        "str(key)",
    ),
    "a callable": (("msgpack", "protobuf", "arrow"), {"a": [print]}, "['a'][0] is a ", "inject"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_nothing_carries_is_named(case: str) -> None:
    names, value, where, help = REFUSED[case]
    fault = state_fault(value, codecs_of(names))
    assert fault is not None
    assert where in f"{fault.path} {fault.says}"
    assert help in fault.help


def test_what_contains_itself_is_refused() -> None:
    value: list[Any] = [b"x"]
    value.append({"again": value})
    fault = state_fault({"a": value}, codecs_of(["msgpack"]))
    assert fault is not None
    assert "contains itself" in fault.says


def test_without_a_codec_state_stays_as_it_is() -> None:
    state = {"a": [1, "$codec"], "b": {"c": None}}
    assert pack(state, ()) == state
    looks = {"a": {"$codec": "arrow", "kind": "table", "data": ""}}
    packed = pack(looks, ())
    assert {key: unpack(each) for key, each in packed.items()} == looks


@pytest.mark.parametrize(
    ("name", "module"), [("msgpack", "msgpack"), ("arrow", "pyarrow")], ids=str
)
def test_a_codec_whose_library_is_missing_says_what_to_install(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    codec_named.cache_clear()
    with pytest.raises(BoundaryError, match=rf"pip install 'adk-fluent-distributed\[{name}\]'"):
        codecs_of(["json", name])
    codec_named.cache_clear()


def test_what_nobody_wrote_is_an_error() -> None:
    with pytest.raises(BoundaryError, match="no codec 'pickle'"):
        unpack({"$codec": "pickle", "kind": "", "data": ""})
    with pytest.raises(BoundaryError, match=r"no message 'shop\.Unknown'"):
        unpack({"$codec": "protobuf", "kind": "shop.Unknown", "data": ""})
    for broken in ({"kind": "table", "data": "AAAA"}, {"kind": "table"}, {}):
        with pytest.raises(EngineError, match="what no engine has written"):
            unpack({"a": [{"$codec": "arrow", **broken}]})
