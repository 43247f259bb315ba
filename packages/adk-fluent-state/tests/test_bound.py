"""Reading and writing state through a schema."""

from __future__ import annotations

import copy
import datetime as dt
import json
import pickle
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType, SimpleNamespace
from typing import Annotated, Any, cast

import pytest
from pydantic import BaseModel, Field

from adk_fluent.errors import AdkFluentError, UnknownNameError, UsageError
from adk_fluent.flow import StateView
from adk_fluent.protocol import AgentCall, ModelCall
from adk_fluent.state import (
    AppScoped,
    SessionScoped,
    StateConflictError,
    StateKeyError,
    StateSchema,
    StateTypeError,
    Temp,
    UserScoped,
    field,
)


class Home(BaseModel):
    street: str
    tags: list[str] = []


@dataclass
class Point:
    x: float
    tags: list[str]


class Desk(StateSchema):
    intent: SessionScoped[str]
    confidence: SessionScoped[float]
    ticket: SessionScoped[str | None]
    tier: UserScoped[str] = field(default="free")
    version: AppScoped[int]
    scratch: Temp[dict[str, list[int]]] = field(default_factory=dict)
    tags: SessionScoped[list[str]] = field(default_factory=list)
    seen: SessionScoped[set[str]]
    when: SessionScoped[dt.datetime]
    home: SessionScoped[Home]
    point: SessionScoped[Point]
    grid: SessionScoped[list[list[int]]]
    steps: SessionScoped[tuple[int, ...]]
    few: Annotated[int, Field(ge=0, le=9)]
    homes: SessionScoped[list[Home]] = field(default=[Home(street="Main")])

    @property
    def urgent(self) -> bool:
        return self.intent == "fire"

    @urgent.setter
    def urgent(self, value: bool) -> None:
        self.intent = "fire" if value else "none"


@pytest.fixture
def state() -> dict[str, Any]:
    return {}


@pytest.fixture
def desk(state: dict[str, Any]) -> Any:  # what is wrong on purpose is no error here
    return Desk.bind(state)


def test_scalars_are_read_and_written_as_they_are(state: dict[str, Any], desk: Any) -> None:
    desk.intent, desk.confidence, desk.tier, desk.version = "x", 0.5, "gold", 3
    assert state == {"intent": "x", "confidence": 0.5, "user:tier": "gold", "app:version": 3}
    assert (desk.intent, desk.confidence, desk.tier, desk.version) == ("x", 0.5, "gold", 3)


def test_an_int_is_a_float_and_a_bool_is_no_int(state: dict[str, Any], desk: Any) -> None:
    desk.confidence = 1
    assert type(state["confidence"]) is float
    state["confidence"] = 1  # as a store that has but one sort of number gives it back
    assert type(desk.confidence) is float
    with pytest.raises(StateTypeError):
        desk.version = True
    state["app:version"] = True
    with pytest.raises(StateTypeError):
        _ = desk.version


def test_what_is_absent_or_none_gives_the_default(state: dict[str, Any], desk: Any) -> None:
    for _ in range(2):
        assert (desk.ticket, desk.tier, desk.scratch, desk.tags) == (None, "free", {}, [])
        state.update(dict.fromkeys(["ticket", "user:tier", "temp:scratch", "tags"]))
    desk.ticket = "T"
    assert desk.ticket == "T"
    desk.ticket = None
    assert state["ticket"] is None


def test_a_default_is_a_copy(desk: Any) -> None:
    desk.homes[0].tags.append("changed")
    assert desk.homes == [Home(street="Main")]
    with desk.edit(Desk.homes) as homes:
        homes[0].street = "Side"
    assert desk.homes == [Home(street="Side")]
    assert Desk.bind({}).homes == [Home(street="Main")]


def test_a_property_is_none_of_the_fields(state: dict[str, Any], desk: Any) -> None:
    desk.urgent = True
    assert state == {"intent": "fire"}
    assert desk.urgent


# --- what is missing or wrong ---------------------------------------------------------------------


def message(error: pytest.ExceptionInfo[Any]) -> str:
    return str(error.value)


def test_a_missing_value_is_an_error_that_says_what_to_do(
    state: dict[str, Any], desk: Desk
) -> None:
    state.update({"other": 1, "gone": None, "_adk_x": 2})
    with pytest.raises(StateKeyError) as caught:
        _ = desk.intent
    assert message(caught) == (
        "Desk.intent: str has no value yet\n"
        "  found: keys other\n"
        "  help: let a step before it write 'intent', start the session with "
        "Desk.initial(intent=...), or give the field a default"
    )
    assert caught.value.key == "intent"
    assert isinstance(caught.value, LookupError)
    assert not isinstance(caught.value, AttributeError)  # hasattr(...) hides no mistake


def test_a_missing_value_names_keys_that_look_like_it(state: dict[str, Any], desk: Any) -> None:
    state["intnt"] = "x"
    with pytest.raises(StateKeyError, match="state has 'intnt': was that meant"):
        _ = desk.intent
    state["user:intent"] = "x"
    with pytest.raises(StateKeyError, match="state has 'user:intent', a key of another scope"):
        _ = desk.intent
    del state["user:intent"], state["intnt"]
    state["my:intent"] = "x"  # no scope: it is the session's
    with pytest.raises(StateKeyError, match="state has 'my:intent': was that meant"):
        _ = desk.intent
    state["version"] = 1
    with pytest.raises(StateKeyError, match="state has 'version', a key of another scope"):
        _ = desk.version


def test_a_missing_value_names_no_more_than_some_keys(state: dict[str, Any], desk: Any) -> None:
    state.update({f"k{at:02}": at for at in range(20)})
    with pytest.raises(StateKeyError, match=r"keys k00, .*k11 and 8 more"):
        _ = desk.intent
    with pytest.raises(StateKeyError, match="no keys"):
        _ = Desk.bind(cast("Any", {1: 2})).intent
    with pytest.raises(StateKeyError, match="no keys"):
        _ = Desk.bind({}).intent


def test_a_value_of_another_type_is_refused_both_ways(state: dict[str, Any], desk: Any) -> None:
    with pytest.raises(StateTypeError) as caught:
        desk.intent = 3
    assert message(caught) == (
        "Desk.intent: str cannot be given 3 (int): Input should be a valid string"
    )
    assert state == {}
    state["confidence"] = "0.9"
    with pytest.raises(StateTypeError) as caught:
        _ = desk.confidence
    assert message(caught) == (
        "state has '0.9' (str) in Desk.confidence: float: Input should be a valid number\n"
        "  help: something wrote it past the schema; SchemaSessionService finds out what"
    )
    assert isinstance(caught.value, TypeError)


def test_errors_keep_secrets_to_themselves() -> None:
    class Keys(StateSchema):
        api_key: SessionScoped[int]
        settings: SessionScoped[list[str]]

    keys = Keys.bind({})
    for name, value in (("api_key", "sk-12345"), ("settings", {"password": "hunter2", "x": 1})):
        with pytest.raises(StateTypeError) as error:
            setattr(keys, name, value)
        assert "sk-" not in str(error.value)
        assert "hunter2" not in str(error.value)
    with pytest.raises(StateTypeError) as error:
        print(Keys.bind({"api_key": "sk-12345"}).api_key)
    assert "sk-" not in str(error.value)


def test_an_error_shows_little_of_a_value(desk: Any) -> None:
    with pytest.raises(StateTypeError) as caught:
        desk.tags = ["x" * 1000, 3]
    assert len(message(caught)) < 200
    with pytest.raises(StateTypeError, match="a value of type Broken"):
        desk.intent = Broken()


class Broken:
    def __repr__(self) -> str:
        raise RuntimeError


def test_many_faults_are_told_briefly(desk: Any) -> None:
    with pytest.raises(StateTypeError, match=r"0: .*; 1: .*; 2: .*; and 7 more"):
        desk.tags = list(range(10))


def test_constraints_hold_both_ways(state: dict[str, Any], desk: Any) -> None:
    desk.few = 3
    with pytest.raises(StateTypeError, match="less than or equal to 9"):
        desk.few = 10
    state["few"] = -1
    with pytest.raises(StateTypeError, match="greater than or equal to 0"):
        _ = desk.few


def test_none_is_for_fields_that_may_be_absent(desk: Any) -> None:
    with pytest.raises(StateTypeError, match=r"state\.unset\('intent'\) makes it absent"):
        desk.intent = None


def test_a_live_value_that_somebody_wrote_is_read(state: dict[str, Any], desk: Any) -> None:
    when = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    state.update({"when": when, "home": (home := Home(street="x")), "seen": {"a"}})
    assert (desk.when, desk.home, desk.seen) == (when, home, {"a"})
    assert desk.home is not home
    state["when"] = Decimal(1)
    with pytest.raises(StateTypeError):
        _ = desk.when


def test_a_state_that_contains_itself_is_refused(state: dict[str, Any], desk: Any) -> None:
    state["temp:scratch"] = state
    with pytest.raises(StateTypeError):
        _ = desk.scratch


# --- names ----------------------------------------------------------------------------------------


def test_unknown_names_are_refused_with_the_nearest(state: dict[str, Any], desk: Any) -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'intent'"):
        desk.intnt = "x"
    with pytest.raises(UnknownNameError, match="did you mean 'intent'"):
        _ = desk.intnt
    with pytest.raises(AttributeError):
        desk._hidden = 1
    assert state == {}
    assert not hasattr(desk, "nothing_like_it")


def test_a_bound_schema_shows_which_fields_have_a_value(state: dict[str, Any], desk: Any) -> None:
    assert repr(desk) == "<Desk with nothing>"
    state.update({"intent": "secret", "user:tier": "gold", "ticket": None})
    assert repr(desk) == "<Desk with intent, tier>"


class Broke(StateSchema):
    intent: SessionScoped[str]

    @property
    def length(self) -> int:
        return self.intent.size  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]


def test_an_error_in_a_property_is_its_own() -> None:
    with pytest.raises(AttributeError, match="'str' object has no attribute 'size'"):
        _ = Broke.bind({"intent": "x"}).length


class Mood(StrEnum):
    GOOD = "good"


class Moment(dt.datetime):
    """As libraries for tests and tables have them."""


def test_a_subclass_is_stored_as_what_is_declared(state: dict[str, Any], desk: Any) -> None:
    desk.intent = Mood.GOOD
    assert type(state["intent"]) is str
    assert desk.intent == "good"
    desk.when = Moment(2024, 1, 1, tzinfo=dt.UTC)
    assert type(desk.when) is dt.datetime
    assert desk.when == Moment(2024, 1, 1, tzinfo=dt.UTC)


class Villa(Home):
    pool: bool = True


def test_a_subclass_of_a_model_would_lose_its_fields(state: dict[str, Any], desk: Any) -> None:
    with pytest.raises(StateTypeError, match="it would be read as Home: declare it as Villa"):
        desk.home = Villa(street="x")
    assert state == {}


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (
            tuple,
            (1, (2, 3)),
            (
                "(1, (2, 3)) (tuple): its part [1] would be read as list: "
                "declare all that is in it by its exact type"
            ),
        ),
        (
            Any,
            {"a": (1,)},
            (
                "{'a': (1,)} (dict): its part ['a'] would be read as list: "
                "declare all that is in it by its exact type"
            ),
        ),
        (
            Any,
            {1: 2},
            (
                "{1: 2} (dict): it would be read as another value: "
                "declare all that is in it by its exact type"
            ),
        ),
        (
            list[Home],
            [Villa(street="x")],
            (
                "[Villa(street='x', tags=[], pool=True)] (list): its part [0] would be read "
                "as Home: declare it as Villa"
            ),
        ),
        (
            str | dt.date,
            dt.date(2024, 1, 2),
            (
                "datetime.date(2024, 1, 2) (date): it would be read as str: members of the union "
                "look alike when they are stored; leave one out, or tell models apart by a "
                "discriminator"
            ),
        ),
        (int, ("a", ("b",)), "('a', ('b',)) (tuple): Input should be a valid integer"),
        (int, {"password": 1, "x": (2,)}, "{'x': [2]} (dict): Input should be a valid integer"),
        (int, ({"token": 1},), "[{}] (tuple): Input should be a valid integer"),
    ],
)
def test_an_error_shows_what_was_given(kind: Any, value: Any, says: str) -> None:
    class Schema(StateSchema):
        value: kind  # pyright: ignore[reportInvalidTypeForm]

    bound: Any = Schema.bind({})
    with pytest.raises(StateTypeError) as caught:
        bound.value = value
    assert message(caught).partition("cannot be given ")[2] == says


def test_what_was_read_is_shown_as_a_list(desk: Any) -> None:
    desk.tags = ["a"]
    with pytest.raises(StateTypeError, match=r"cannot be given \['a'\] \(list\): "):
        desk.intent = desk.tags


def test_a_model_that_was_changed_to_something_wrong_is_refused(desk: Any) -> None:
    home: Any = Home(street="x")
    home.street = 3
    with pytest.raises(StateTypeError):
        desk.home = home


# --- deletion -------------------------------------------------------------------------------------


def test_deletion_is_refused_with_the_reason(desk: Any) -> None:
    desk.intent = "x"
    with pytest.raises(UsageError, match="ADK's state has no deletion") as caught:
        del desk.intent
    assert "state.unset('intent')" in message(caught)


def test_unset_makes_absent(state: dict[str, Any], desk: Any) -> None:
    desk.intent, desk.tier = "x", "gold"
    desk.unset("intent", Desk.tier)
    assert state == {"intent": None, "user:tier": None}
    assert desk.tier == "free"
    with pytest.raises(StateKeyError):
        _ = desk.intent
    with pytest.raises(UnknownNameError, match="did you mean 'intent'"):
        desk.unset("intnt")


# --- containers -----------------------------------------------------------------------------------


def test_what_is_read_is_nobody_else_s(state: dict[str, Any], desk: Any) -> None:
    desk.home = home = Home(street="x", tags=["a"])
    home.street = "changed"
    desk.home.street = "changed"
    desk.home.tags.append("b")
    assert desk.home == Home(street="x", tags=["a"])
    given = [[1], [2]]
    desk.grid = given
    given[0].append(3)
    assert state["grid"] == [[1], [2]]
    mine = copy.deepcopy(desk.grid)
    mine[0].append(3)
    assert desk.grid == [[1], [2]]


def test_a_change_in_place_is_refused_not_lost(state: dict[str, Any], desk: Any) -> None:
    desk.tags, desk.scratch, desk.seen, desk.grid = ["b", "a"], {"x": [1]}, {"s"}, [[1]]
    kept = copy.deepcopy(state)
    changes: list[tuple[str, Any]] = [
        ("append", lambda: desk.tags.append("c")),
        ("sort", lambda: desk.tags.sort(key=str)),
        ("__setitem__", lambda: desk.tags.__setitem__(0, "c")),
        ("__delitem__", lambda: desk.tags.__delitem__(0)),
        ("clear", lambda: [desk.tags.clear()]),
        ("update", lambda: desk.scratch.update(y=[])),
        ("setdefault", lambda: desk.scratch.setdefault("y", [])),
        ("__setitem__", lambda: desk.scratch.__setitem__("y", [])),
        ("append", lambda: desk.scratch["x"].append(2)),
        ("append", lambda: desk.grid[0].append(2)),
        ("add", lambda: desk.seen.add("t")),
        ("discard", lambda: desk.seen.discard("s")),
    ]
    for name, change in changes:
        with pytest.raises(UsageError, match="cannot be changed: the change would be lost") as told:
            change()
        assert name in message(told)
        assert "with state.edit(" in message(told)
    assert state == kept
    with pytest.raises(UsageError):
        Desk.bind({}).tags.append("x")  # the default of an absent key, too


def test_what_is_read_passes_for_an_ordinary_value(desk: Any) -> None:
    desk.tags, desk.scratch, desk.seen = ["b", "a"], {"x": [1]}, {"s"}
    tags, scratch, seen = desk.tags, desk.scratch, desk.seen
    assert isinstance(tags, list)
    assert (tags, scratch, seen) == (["b", "a"], {"x": [1]}, {"s"})
    assert json.dumps([tags, scratch]) == '[["b", "a"], {"x": [1]}]'
    assert repr([tags, scratch, seen]) == "[['b', 'a'], {'x': [1]}, {'s'}]"
    assert sorted(tags) == ["a", "b"]
    for made in (
        *(tags.copy(), tags[:], tags.__add__(["c"]), tags * 2, list(tags), copy.copy(tags)),
        *(copy.deepcopy(tags), pickle.loads(pickle.dumps(tags)), [*tags]),
    ):
        assert type(made) is list
    for made in (
        *(
            scratch.copy(),
            scratch | {"x": [1]},
            {"x": [1]} | scratch,
            dict(scratch),
            copy.copy(scratch),
        ),
        *(copy.deepcopy(scratch), pickle.loads(pickle.dumps(scratch))),
    ):
        assert type(made) is dict
    assert type(copy.deepcopy(scratch)["x"]) is list
    for made in (
        *(seen.copy(), seen | {"t"}, seen & {"s"}, seen - {"s"}, seen ^ {"t"}, set(seen)),
        *(copy.copy(seen), copy.deepcopy(seen), pickle.loads(pickle.dumps(seen))),
    ):
        assert type(made) is set


def test_augmented_assignment_writes(state: dict[str, Any], desk: Any) -> None:
    desk.tags, desk.scratch, desk.seen = ["a"], {"x": [1]}, {"s"}
    desk.tags += ["b"]
    desk.tags *= 2
    desk.scratch |= {"y": []}
    desk.seen |= {"t", "u"}
    desk.seen -= {"u"}
    desk.seen &= {"t", "v"}
    desk.seen ^= {"w"}
    assert state["tags"] == ["a", "b", "a", "b"]
    assert state["temp:scratch"] == {"x": [1], "y": []}
    assert sorted(state["seen"]) == ["t", "w"]


def test_an_edit_is_written_when_it_is_done(state: dict[str, Any], desk: Any) -> None:
    with desk.edit("tags") as tags:
        tags.append("a")
        assert state == {}
    with desk.edit(Desk.tags) as tags:
        tags.append("b")
    with desk.edit(Desk.scratch) as scratch:
        scratch.setdefault("x", []).append(1)
    desk.home, desk.point = Home(street="x"), Point(1.0, [])
    with desk.edit(Desk.home) as home, desk.edit(Desk.point) as point:
        home.tags.append("new")
        home.street = "y"
        point.tags.append("p")
    assert state == {
        "tags": ["a", "b"],
        "temp:scratch": {"x": [1]},
        "home": {"street": "y", "tags": ["new"]},
        "point": {"x": 1.0, "tags": ["p"]},
    }


def test_an_edit_that_fails_writes_nothing(state: dict[str, Any], desk: Any) -> None:
    desk.tags = ["a"]

    def fails() -> None:
        with desk.edit("tags") as tags:
            tags.append("b")
            raise KeyError("x")

    with pytest.raises(KeyError):
        fails()
    assert state == {"tags": ["a"]}

    def does_not_fit() -> None:
        with desk.edit("tags") as tags:
            tags.append(3)

    with pytest.raises(StateTypeError):
        does_not_fit()
    assert state == {"tags": ["a"]}


class Counting(dict[str, Any]):
    writes = 0

    def __setitem__(self, key: str, value: Any) -> None:
        self.writes += 1
        super().__setitem__(key, value)


def test_an_edit_that_changes_nothing_writes_nothing() -> None:
    state = Counting()
    desk = Desk.bind(state)
    desk.tags = ["a"]
    with desk.edit("tags"):
        assert state.writes == 1
    assert state.writes == 1


def test_an_edit_is_not_written_over_somebody_else_s(state: dict[str, Any], desk: Any) -> None:
    desk.tags = ["a"]

    def late() -> None:
        with desk.edit("tags") as tags:
            tags.append("mine")
            state["tags"] = ["theirs"]

    with pytest.raises(StateConflictError, match="written by somebody else") as caught:
        late()
    assert caught.value.key == "tags"
    assert state == {"tags": ["theirs"]}


def test_an_edit_sees_what_somebody_changed_in_place(state: dict[str, Any], desk: Any) -> None:
    desk.tags = ["a"]

    def late() -> None:
        with desk.edit("tags") as tags:
            tags.append("mine")
            state["tags"].append("theirs")

    with pytest.raises(StateConflictError):
        late()


def test_what_cannot_be_changed_in_place_is_not_edited(desk: Any) -> None:
    desk.intent, desk.steps = "x", (1,)
    for name in ("intent", "steps", "ticket"):
        with pytest.raises(UsageError, match=rf"state\.{name} = \.\.\."), desk.edit(name):
            pass
    with pytest.raises(StateKeyError), desk.edit("home"):
        pass
    with pytest.raises(UnknownNameError), desk.edit("hom"):
        pass

    class Other(StateSchema):
        intent: SessionScoped[list[str]]

    with pytest.raises(UnknownNameError, match=r"Other\.intent: .* is no field of Desk"):
        desk.edit(Other.intent)


# --- contexts -------------------------------------------------------------------------------------


def test_what_has_state_can_be_bound(state: dict[str, Any]) -> None:
    context = SimpleNamespace(state=state)
    Desk.bind(context).intent = "x"
    assert state == {"intent": "x"}
    bound = Desk.bind(state)
    assert Desk.bind(bound).intent == "x"
    assert Desk.bind(AgentCall("a", state=StateView(state))).intent == "x"
    Desk.bind(ModelCall(None, ctx=context)).intent = "y"
    assert state == {"intent": "y"}


@pytest.mark.parametrize("context", [None, 3, "intent", ["intent"], object(), Desk])
def test_what_has_no_state_is_refused(context: Any) -> None:
    with pytest.raises(UsageError, match=r"bind\(\.\.\.\) takes a context that has state"):
        Desk.bind(context)


@pytest.mark.parametrize("view", [StateView, MappingProxyType])
def test_a_state_that_is_only_read_says_what_to_do_instead(view: Any) -> None:
    state: dict[str, Any] = {"intent": "x", "tags": ["a"]}
    desk = Desk.bind(view(state))
    assert (desk.intent, desk.ticket, desk.tier, desk.tags) == ("x", None, "free", ["a"])
    with pytest.raises(StateKeyError):
        _ = desk.home

    def edit() -> None:
        with desk.edit("tags") as tags:
            tags.append("b")

    for write in (
        lambda: setattr(desk, "intent", "y"),
        lambda: setattr(desk, "tags", ["b"]),
        lambda: desk.unset("intent"),
        edit,
    ):
        with pytest.raises(UsageError, match="function") as caught:
            write()
        assert "return" in str(caught.value.help)
    assert state == {"intent": "x", "tags": ["a"]}


class Refusing(dict[str, Any]):
    def __setitem__(self, key: str, value: Any) -> None:
        raise TypeError("ADK's own schema says no")


def test_errors_of_the_state_itself_are_kept() -> None:
    with pytest.raises(TypeError, match="ADK's own schema says no") as caught:
        Desk.bind(Refusing()).intent = "x"
    assert not isinstance(caught.value, AdkFluentError)


# --- as core sees a schema ------------------------------------------------------------------------


def test_a_delta_is_encoded_whether_its_values_are_stored_ones_or_not() -> None:
    when = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    stored: dict[str, Any] = {
        "when": "2024-01-01T00:00:00Z",
        "home": {"street": "x", "tags": []},
        "few": 3,
    }
    live: dict[str, Any] = {"when": when, "home": Home(street="x"), "few": 3}
    for delta in (stored, live):
        assert Desk.__state_encode__(delta, "clerk") == stored
    assert Desk.__state_encode__({"confidence": 1, "other": object, "intent": None}, "x") == {
        "confidence": 1.0,
        "other": object,
        "intent": None,
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [("intent", 3), ("confidence", "0.9"), ("when", "soon"), ("user:tier", ["x"]), ("few", 10)],
)
def test_a_delta_that_does_not_fit_is_refused_with_who_writes(key: str, value: Any) -> None:
    with pytest.raises(StateTypeError, match=r"cannot be given .* by clerk: ") as caught:
        Desk.__state_encode__({key: value}, "clerk")
    assert caught.value.key == key


def test_fields_are_given_by_their_keys() -> None:
    fields: Any = Desk.__state_fields__
    assert fields["user:tier"] is Desk.tier
    with pytest.raises(TypeError):
        fields["x"] = 1
