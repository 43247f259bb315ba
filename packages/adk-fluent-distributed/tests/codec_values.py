"""Values that codecs carry, and a message of protobuf that is the tests' own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from importlib import import_module
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from hypothesis import strategies as st

pa: Any = import_module("pyarrow")  # it has no types

_FIELDS: list[dict[str, Any]] = [
    {"name": name, "type": kind, "label": label}
    for name, kind, label in [("id", 9, 1), ("cents", 3, 1), ("notes", 9, 3), ("scan", 12, 1)]
]
_FILE = descriptor_pb2.FileDescriptorProto(
    name="adk_fluent_tests/order.proto",
    package="adk_fluent_tests",
    syntax="proto3",
    message_type=[
        descriptor_pb2.DescriptorProto(
            name="Order",
            field=[
                descriptor_pb2.FieldDescriptorProto(number=at, **each)
                for at, each in enumerate(_FIELDS, 1)
            ],
        )
    ],
)
descriptor_pool.Default().Add(_FILE)
#: What protoc would make of `message Order { string id; int64 cents; repeated string notes; ... }`.
Order: Any = message_factory.GetMessageClass(
    descriptor_pool.Default().FindMessageTypeByName("adk_fluent_tests.Order")
)

_ZONES = st.integers(-14, 14).map(lambda hours: timezone(timedelta(hours=hours)))
_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
_JSON = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | _TEXT


def _within(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Such values in lists and dicts, beside JSON, and beside dicts that look like a codec's."""
    keys = _TEXT | st.sampled_from(["$codec", "kind", "data", "bytes", "value"])
    return st.recursive(
        leaves | _JSON,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
        max_leaves=6,
    )


_BYTES = st.binary(max_size=40)
_TIMES = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 29), timezones=_ZONES)  # noqa: DTZ001
_KEYED = st.dictionaries(st.integers(-5, 5) | st.binary(max_size=3), _JSON | _BYTES, max_size=3)
_ORDERS = st.builds(
    Order,
    id=_TEXT,
    cents=st.integers(-(2**63), 2**63 - 1),
    notes=st.lists(_TEXT, max_size=2),
    scan=_BYTES,
)
_COLUMNS = st.lists(
    st.tuples(st.integers(-(2**63), 2**63 - 1), _TEXT, st.none() | st.floats(allow_nan=False)),
    max_size=4,
)


def _table(rows: list[tuple[Any, ...]]) -> Any:
    names = ("n", "text", "number")
    kinds = (pa.int64(), pa.string(), pa.float64())
    columns = {
        name: pa.array([row[at] for row in rows], kinds[at]) for at, name in enumerate(names)
    }
    return pa.table(columns, metadata={"from": "tests"})


def _batch(table: Any) -> Any:
    columns = [each.combine_chunks() for each in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


_TABLES = _COLUMNS.map(_table)

#: Values that state may hold, by the codec that carries what of them JSON cannot.
CARRIED: dict[str, st.SearchStrategy[Any]] = {
    "msgpack": _within(_BYTES | _TIMES | _KEYED | st.just(float("inf"))),
    "protobuf": _within(_ORDERS),
    "arrow": _within(_TABLES | _TABLES.map(_batch)),
}

NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)
TABLE = _table([(1, "one", 1.5), (2, "two", None)])
