"""State that was written under an older version of its schema."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import pytest

from adk_fluent.errors import UsageError
from adk_fluent.flow import StateView
from adk_fluent.ir import is_reserved_key
from adk_fluent.state import (
    AppScoped,
    SchemaUpgradeError,
    SessionScoped,
    StateKeyError,
    StateSchema,
    UserScoped,
    field,
)

STAMP = "_adkf_version:Order"


class Order(StateSchema):
    """Version 1 had `item` for `items`, version 2 `level` (an int) for `tier`."""

    __version__: ClassVar[int] = 3

    items: SessionScoped[list[str]]
    tier: UserScoped[str] = field(default="free")
    note: SessionScoped[str | None]

    calls: ClassVar[list[Any]] = []

    @classmethod
    def upgrade(cls, state: dict[str, Any], from_version: int) -> None:
        cls.calls.append((dict(state), from_version))
        if from_version < 2 and "item" in state:
            state["items"] = [state.pop("item")]
        if from_version < 3 and "user:level" in state:
            state["user:tier"] = "gold" if state.pop("user:level") > 1 else "free"


@pytest.fixture(autouse=True)
def calls() -> list[Any]:
    Order.calls.clear()
    return Order.calls


class Deltas(dict[str, Any]):
    """State that keeps what is written to it, as ADK's does."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.deltas: list[dict[str, Any]] = []

    def update(self, delta: dict[str, Any]) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        self.deltas.append(dict(delta))
        super().update(delta)


def test_old_state_is_upgraded_once_in_one_write(calls: list[Any]) -> None:
    state = Deltas({"item": "pen", "user:level": 2, "other": [1]})
    assert Order.bind(state).items == ["pen"]
    assert Order.bind(state).tier == "gold"
    assert state.deltas == [
        {
            "item": None,
            "items": ["pen"],
            STAMP: 3,
            "user:level": None,
            "user:tier": "gold",
            f"user:{STAMP}": 3,
        }
    ]
    assert state["other"] == [1]
    assert calls == [({"item": "pen", "other": [1]}, 1), ({"user:level": 2}, 1)]


def test_state_of_a_version_between_is_upgraded_from_there(calls: list[Any]) -> None:
    state = {"items": ["pen"], STAMP: 2, "user:level": 1, f"user:{STAMP}": 2}
    order = Order.bind(state)
    assert (order.items, order.tier) == (["pen"], "free")
    assert [version for _, version in calls] == [2, 2]


def test_what_a_user_shares_is_upgraded_for_all_sessions_at_once(calls: list[Any]) -> None:
    first: dict[str, Any] = {"item": "pen", "user:level": 2}
    Order.bind(first)
    shared = {key: value for key, value in first.items() if key.startswith("user:")}
    second = {"item": "ink", **shared}
    assert Order.bind(second).items == ["ink"]
    assert second["user:tier"] == "gold"
    assert [sorted(state) for state, _ in calls] == [["item"], ["user:level"], ["item"]]


def test_new_state_is_stamped_and_not_upgraded(calls: list[Any]) -> None:
    state = Deltas()
    order = Order.bind(state)
    assert state.deltas == [{STAMP: 3, f"user:{STAMP}": 3}]
    order.items = ["pen"]
    order.tier = "gold"
    Order.bind(state)
    assert calls == []
    assert len(state.deltas) == 1
    assert is_reserved_key(STAMP)


def test_a_session_starts_with_the_version(calls: list[Any]) -> None:
    state = Order.initial(items=["pen"])
    assert state == {"items": ["pen"], STAMP: 3}
    assert Order.bind(state).items == ["pen"]
    assert calls == []


def test_a_schema_without_a_version_writes_none() -> None:
    class Plain(StateSchema):
        intent: str = ""

    state: dict[str, Any] = {}
    assert Plain.bind(state).intent == ""
    assert Plain.initial(intent="x") == {"intent": "x"}
    assert state == {}
    assert Plain.__state_upgrade__({"intent": "x"}) == {}


@pytest.mark.parametrize("view", ["StateView", "Frozen"])
def test_state_that_is_only_read_is_read_as_of_this_version(view: str) -> None:
    state = {"item": "pen", "user:level": 2, "note": "x"}
    kept = copy.deepcopy(state)
    order = Order.bind(StateView(state) if view == "StateView" else Frozen(state))
    assert (order.items, order.tier, order.note) == (["pen"], "gold", "x")
    state["note"] = "y"
    assert order.note == "y"  # it is the state of now
    with pytest.raises(UsageError, match=r"a function step returns Order\.delta"):
        order.note = "z"
    assert state == {**kept, "note": "y"}


class Frozen:
    """What has keys, and no way to write."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state

    def __getitem__(self, key: str) -> Any:
        return self._state[key]

    def get(self, key: str) -> Any:
        return self._state.get(key)

    def to_dict(self) -> dict[str, Any]:
        return dict(self._state)


def versioned(upgrade: Any, version: int = 2) -> Any:
    class Made(StateSchema):
        __version__ = version
        items: SessionScoped[list[str]]
        count: SessionScoped[int]

    setattr(Made, "upgrade", classmethod(upgrade))  # noqa: B010  # it is no method for pyright
    return Made


def raises(cls: Any, state: dict[str, Any], from_version: int) -> None:
    state.clear()
    raise ZeroDivisionError("oops")


def misspells(cls: Any, state: dict[str, Any], from_version: int) -> None:
    state["itms"] = ["x"]


def misfits(cls: Any, state: dict[str, Any], from_version: int) -> None:
    state["items"].append(3)


@pytest.mark.parametrize(
    ("upgrade", "says"),
    [
        (raises, r"(?s)Made\.upgrade\(\.\.\.\) from version 1 failed.*ZeroDivisionError: oops"),
        (misspells, r"(?s)writes 'itms', which is no key of the schema.*did you mean 'items'"),
        (misfits, r"(?s)makes what does not fit; nothing is changed.*Made\.items"),
    ],
)
def test_an_upgrade_that_fails_changes_nothing(upgrade: Any, says: str) -> None:
    schema = versioned(upgrade)
    state = {"items": ["pen"], "other": {"a": [1]}}
    kept = copy.deepcopy(state)
    for _ in range(2):  # and is tried again
        with pytest.raises(SchemaUpgradeError, match=says) as caught:
            schema.bind(state)
        assert (caught.value.stored, caught.value.wanted) == (1, 2)
        assert state == kept


def test_an_upgrade_may_write_values_themselves() -> None:
    def counts(cls: Any, state: dict[str, Any], from_version: int) -> None:
        state["count"] = len(state["items"])
        state["items"] = [*state["items"], "more"]

    state: dict[str, Any] = {"items": ["pen"]}
    made = versioned(counts).bind(state)
    assert (made.count, made.items) == (1, ["pen", "more"])


@pytest.mark.parametrize("stored", [4, "3", 0, True])
def test_state_of_a_newer_version_is_refused(stored: Any) -> None:
    state = {"items": ["pen"], STAMP: stored}
    kept = dict(state)
    with pytest.raises(SchemaUpgradeError, match="run the code that wrote it, or a newer one"):
        Order.bind(state)
    assert state == kept


def test_schemas_that_are_put_together_are_upgraded_each_for_itself() -> None:
    class Shipping(StateSchema):
        __version__ = 2
        street: SessionScoped[str]

        @classmethod
        def upgrade(cls, state: dict[str, Any], from_version: int) -> None:
            state["street"] = state.pop("road", "")

    class Shop(Order, Shipping):
        open: SessionScoped[bool] = field(default=True)

    state: dict[str, Any] = {"item": "pen", "road": "Main"}
    shop = Shop.bind(state)
    assert (shop.items, shop.street, shop.open) == (["pen"], "Main", True)
    assert (state[STAMP], state["_adkf_version:Shipping"]) == (3, 2)
    assert "_adkf_version:Shop" not in state
    assert Shipping.bind(state).street == "Main"


def test_a_version_that_only_adds_needs_no_upgrade() -> None:
    class Grown(StateSchema):
        __version__ = 2
        old: SessionScoped[str]
        new: SessionScoped[int] = field(default=0)

    state: dict[str, Any] = {"old": "x"}
    grown = Grown.bind(state)
    assert (grown.old, grown.new) == ("x", 0)
    assert state == {"old": "x", "_adkf_version:Grown": 2}


def test_app_keys_have_their_own_version() -> None:
    class Tuned(StateSchema):
        __version__ = 2
        limit: AppScoped[int]

        @classmethod
        def upgrade(cls, state: dict[str, Any], from_version: int) -> None:
            if "app:limit" in state:
                state["app:limit"] *= 10

    state: dict[str, Any] = {"app:limit": 3}
    assert Tuned.bind(state).limit == 30
    assert Tuned.bind(state).limit == 30
    assert state["app:_adkf_version:Tuned"] == 2


def test_what_has_to_be_written_can_be_asked_for(calls: list[Any]) -> None:
    state = {"item": "pen"}
    delta = Order.__state_upgrade__(state)
    assert delta == {"item": None, "items": ["pen"], STAMP: 3, f"user:{STAMP}": 3}
    assert state == {"item": "pen"}
    assert Order.__state_upgrade__({**state, **delta}) == {}


def test_a_missing_value_is_told_as_ever() -> None:
    with pytest.raises(StateKeyError, match=r"Order\.items: list\[str\] has no value yet"):
        _ = Order.bind(StateView({})).items
