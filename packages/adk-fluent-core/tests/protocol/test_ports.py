from __future__ import annotations

import inspect
import time
import uuid
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.ir import StateFieldRef
from adk_fluent.protocol import (
    AgentEvent,
    Clock,
    EventListener,
    FieldRef,
    IdSource,
    Journal,
    JournalEntry,
    RunKey,
    StateSnapshot,
    SystemClock,
    UuidIds,
)


async def test_the_machines_clock() -> None:
    clock: Clock = SystemClock()
    before, began = clock.now(), clock.monotonic()
    await clock.sleep(0.01)
    assert clock.monotonic() - began >= 0.009
    assert before <= time.time()
    assert isinstance(clock, Clock)


def test_random_identities() -> None:
    ids: IdSource = UuidIds()
    made = {ids.new_id() for _ in range(100)}
    assert len(made) == 100
    assert {uuid.UUID(each).version for each in made} == {4}
    assert isinstance(ids, IdSource)


def test_a_listener_is_whatever_takes_events() -> None:
    class Collect:
        def __init__(self) -> None:
            self.seen: list[AgentEvent] = []

        def on_event(self, event: AgentEvent) -> None:
            self.seen.append(event)

    listener: EventListener = Collect()
    assert isinstance(listener, EventListener)
    assert not isinstance(object(), EventListener)


def test_the_irs_field_reference_is_one() -> None:
    ref: FieldRef = StateFieldRef("user:tier", str)
    assert isinstance(ref, FieldRef)
    assert (ref.key, ref.type, ref.scope) == ("user:tier", str, "user")
    assert not isinstance("user:tier", FieldRef)


# --- snapshots -----------------------------------------------------------------------------------

values = st.none() | st.integers(0, 2) | st.booleans() | st.just(1.0)
states = st.dictionaries(st.sampled_from("abcd"), values)


@given(states, states)
def test_the_delta_of_two_snapshots_makes_one_of_the_other(one: Any, other: Any) -> None:
    a, b = StateSnapshot.of(one), StateSnapshot.of(other)
    delta = a.delta_to(b)
    after = a.after(AgentEvent("x", state_delta=delta))
    assert {k: (v, type(v)) for k, v in after.values.items()} == {
        k: (v, type(v)) for k, v in b.values.items()
    }
    assert b.delta_to(b) == {}
    assert all(k in delta or a.values.get(k) == b.values.get(k) for k in "abcd")


def test_a_snapshot_knows_its_event_and_passes_over_fragments() -> None:
    event = AgentEvent("x", state_delta={"k": 2, "gone": None}, id="e1", timestamp=5.0)
    after = StateSnapshot.of({"k": 1, "gone": 1}).after(event)
    assert (dict(after.values), after.event_id, after.timestamp) == ({"k": 2}, "e1", 5.0)
    fragment = AgentEvent("x", state_delta={"k": 3}, is_partial=True, id="e2")
    assert after.after(fragment).values == {"k": 2}


# --- journals ------------------------------------------------------------------------------------


class MemoryJournal:
    """What an implementation has to do, as short as can be."""

    def __init__(self) -> None:
        self.entries: dict[RunKey, JournalEntry] = {}
        self.owners: dict[RunKey, str] = {}

    async def load(self, key: RunKey) -> JournalEntry | None:
        return self.entries.get(key)

    async def save(self, key: RunKey, entry: JournalEntry | None) -> None:
        self.owners.pop(key, None)
        if entry is None:
            self.entries.pop(key, None)
        else:
            self.entries[key] = entry

    async def claim(self, key: RunKey, revision: int, owner: str, seconds: float) -> bool:
        entry = self.entries.get(key)
        if entry is None or entry.revision != revision:
            return False
        return self.owners.setdefault(key, owner) == owner


async def test_the_journal_can_be_implemented() -> None:
    journal: Journal = MemoryJournal()
    assert isinstance(journal, Journal)
    key = RunKey("app", "u", "s", "root")
    entry = JournalEntry("plan", {"strands": {}}, "waiting", waits={"q": "gate"})
    await journal.save(key, entry)
    assert await journal.load(RunKey("app", "u", "s", "root")) == entry
    assert await journal.claim(key, 0, "one", 30)
    assert not await journal.claim(key, 0, "two", 30)
    assert not await journal.claim(key, 1, "one", 30)
    await journal.save(key, None)
    assert await journal.load(key) is None


def test_an_entry_is_json_data_by_its_types() -> None:
    allowed = {"str", "float", "int", "Any", "JournalStatus"}
    allowed |= {"dict[str, Any]", "dict[str, str]", "tuple[str, ...]"}
    assert set(inspect.get_annotations(JournalEntry).values()) <= allowed
    assert get_type_hints(JournalEntry)["plan"] is str
    with pytest.raises(AttributeError):
        JournalEntry("plan").revision = 1  # pyright: ignore[reportAttributeAccessIssue]
