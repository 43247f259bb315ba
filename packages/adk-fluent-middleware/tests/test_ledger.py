"""Accounts: what is set aside never exceeds a limit, in whatever order calls end; without ADK."""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
)

from adk_fluent.middleware._budgets._ledger import Account, Hold, Ledger, Limit, take

if TYPE_CHECKING:
    from collections.abc import Iterator

ITEMS = st.sampled_from(["input", "output"])
AMOUNTS = st.dictionaries(ITEMS, st.integers(0, 60), min_size=1)


class Calls(RuleBasedStateMachine):
    """Calls that begin, end, fail and are cut off in any order, on two accounts at once."""

    holds: Bundle[tuple[Hold, dict[str, int]]] = Bundle("holds")

    @initialize(run=st.integers(0, 200), session=st.integers(0, 300), output=st.integers(0, 100))
    def begin(self, run: int, session: int, output: int) -> None:
        self.run, self.session = Account(), Account()
        self.limits = [
            Limit(self.run, run, "this run"),
            Limit(self.session, session, "this session"),
            Limit(self.session, output, "output of this session", "output"),
        ]
        self.spent: Counter[str] = Counter()
        self.open: Counter[str] = Counter()

    def room(self, amounts: dict[str, int]) -> bool:
        after = self.spent + self.open + Counter(amounts)
        whole, output = sum(after.values()), after["output"]
        return all((whole if each.item is None else output) <= each.most for each in self.limits)

    @rule(target=holds, amounts=AMOUNTS)
    def call(self, amounts: dict[str, int]) -> Any:
        fits = self.room(amounts)
        made = take(amounts, self.limits)
        assert isinstance(made, Hold) == fits
        if not isinstance(made, Hold):
            return multiple()  # pyright: ignore[reportUnknownVariableType]  # of nothing
        self.open.update(amounts)
        return made, amounts

    @rule(hold=consumes(holds), part=st.floats(0, 1))
    def answered(self, hold: tuple[Hold, dict[str, int]], part: float) -> None:
        used = {item: int(amount * part) for item, amount in hold[1].items()}
        hold[0].settle(used)
        hold[0].release()  # what is settled cannot be given back
        hold[0].settle({"input": 1000})
        self.open.subtract(hold[1])
        self.spent.update(used)

    @rule(hold=consumes(holds))
    def failed(self, hold: tuple[Hold, dict[str, int]]) -> None:
        hold[0].release()
        hold[0].settle({"input": 1000})
        self.open.subtract(hold[1])

    @invariant()
    def both_say_what_was_used(self) -> None:
        if hasattr(self, "limits"):
            for account in (self.run, self.session):
                assert +Counter(account.used) == +self.spent
                assert account.held() == self.open.total()
                assert account.held("output") == self.open["output"]
            for limit in self.limits:
                account = limit.account
                assert account.total(limit.item) + account.held(limit.item) <= limit.most


TestCalls = Calls.TestCase
TestCalls.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@pytest.fixture
def restless() -> Iterator[None]:
    """Threads that are switched as often as can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-7)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("restless")
def test_threads_together_never_take_too_much() -> None:
    """Half of what there is to do fits; what is given back is taken by others."""
    account = Account()
    limits = [Limit(account, 2000, "all")]
    ready = threading.Barrier(4)

    def work(_: int) -> int:
        ready.wait()
        used = 0
        for number in range(1500):
            hold = take({"input": 1}, limits)
            if isinstance(hold, Hold):
                used += number % 3 > 0
                hold.settle({"input": 1} if number % 3 else {})
        return used

    with ThreadPoolExecutor(4) as pool:
        used = sum(pool.map(work, range(4)))
    assert account.total() == used == 2000
    assert account.held() == 0


def test_a_call_that_has_no_room_anywhere_takes_nothing_anywhere() -> None:
    run, session = Account(), Account()
    limits = [Limit(run, 10, "run"), Limit(session, 5, "session")]
    assert take({"input": 6}, limits) is limits[1]
    assert (run.held(), session.held()) == (0, 0)


def test_what_was_used_beyond_what_was_set_aside_counts() -> None:
    account = Account()
    limits = [Limit(account, 10, "run")]
    hold = take({"input": 1}, limits)
    assert isinstance(hold, Hold)
    hold.settle({"input": 15})
    assert account.total() == 15
    assert take({"input": 0}, limits) is limits[0]


@given(st.lists(st.dictionaries(ITEMS, st.integers(0, 99)), max_size=5))
def test_copies_are_taken_over_in_any_order(copies: list[dict[str, int]]) -> None:
    account = Account()
    for each in (*copies, *reversed(copies)):
        account.at_least(each)
    for item in ("input", "output"):
        assert account.total(item) == max((each.get(item, 0) for each in copies), default=0)


@pytest.mark.parametrize("copy", [None, 5, "x", ["input"], {"input": "5"}, {1: 5}])
def test_what_is_no_copy_counts_nothing(copy: object) -> None:
    account = Account()
    account.at_least(copy)
    assert account.total() == 0


def test_an_account_is_the_same_for_all_who_have_it() -> None:
    """Also of one that so many others came after that nothing else remembers it."""
    ledger = Ledger(idle=2)
    kept = ledger.account("session", "app", "user", "1")
    for number in range(2, 9):
        ledger.account("session", "app", "user", str(number)).at_least({"input": number})
    assert ledger.account("session", "app", "user", "1") is kept
    assert ledger.account("session", "app", "user", "8").total() == 8
    gc.collect()
    assert ledger.account("session", "app", "user", "4").total() == 0  # its state still knows


def test_an_owner_can_begin_anew() -> None:
    ledger = Ledger()
    ledger.account("user", "app", "ann").at_least({"input": 5})
    ledger.forget("user", "app", "ann")
    ledger.forget("user", "app", "nobody")
    assert ledger.account("user", "app", "ann").total() == 0
