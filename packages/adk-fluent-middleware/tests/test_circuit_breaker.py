"""The circuit itself, against a plain account of what it has to do."""

from __future__ import annotations

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from kit import Time

from adk_fluent.errors import UsageError
from adk_fluent.middleware import CircuitBreakerMiddleware, CircuitOpenError, circuit_breaker
from adk_fluent.middleware._resilience._breaker import Circuit
from adk_fluent.protocol import Middleware

if TYPE_CHECKING:
    from kit import Measured

#: More examples with ``--full``.
FULL = settings.get_current_profile_name() == "full"


def circuit(**options: Any) -> tuple[Circuit, Time]:
    time = Time()
    return Circuit(circuit_breaker(clock=time, **options), "model", "m"), time


def fail(made: Circuit, times: int = 1) -> None:
    for _ in range(times):
        made.leave(made.enter(), succeeded=False)


class Account(RuleBasedStateMachine):
    """Keeps all that happened, and works out from it what the circuit has to be."""

    @initialize(
        failures=st.integers(1, 4),
        ratio=st.sampled_from([0.0, 0.5, 1.0]),
        probes=st.integers(1, 3),
    )
    def begin(self, failures: int, ratio: float, probes: int) -> None:
        self.failures, self.ratio, self.probes = failures, ratio, probes
        self.circuit, self.time = circuit(
            failures=failures,
            failure_ratio=ratio,
            half_open_calls=probes,
            window=10.0,
            reset_after=5.0,
        )
        self.state = "closed"
        self.since = self.time.time
        self.ended: list[tuple[float, bool]] = []  # in this state
        self.live: list[int] = []  # calls that began in this state
        self.late: list[int] = []  # and in an earlier one
        self.last = 0.0  # when the last probe began

    def become(self, state: str) -> None:
        self.state, self.since, self.ended = state, self.time.time, []
        self.late += self.live
        self.live = []

    def let_in(self) -> bool:
        if self.state == "half_open":
            return len(self.live) + len(self.ended) < self.probes
        return self.state == "closed"

    @rule()
    def call(self) -> None:
        if self.state == "half_open" and self.live and self.time.time >= self.last + 5.0:
            self.become("half_open")  # they are lost
        expected, refused = self.let_in(), None
        try:
            self.live.append(self.circuit.enter())
            self.last = self.time.time
        except CircuitOpenError as error:
            refused = error
        assert (refused is None) == expected
        if refused is not None:
            left = self.since + 5.0 - self.time.time if self.state == "open" else 5.0
            assert refused.retry_after == pytest.approx(left)

    @rule(data=st.data(), succeeded=st.sampled_from([True, False, False, None]))
    def end(self, data: st.DataObject, succeeded: bool | None) -> None:
        if not self.live:
            return
        at = data.draw(st.integers(0, len(self.live) - 1))
        self.circuit.leave(self.live.pop(at), succeeded)
        if succeeded is None:
            return
        now = self.time.time
        self.ended.append((now, succeeded))
        if self.state == "half_open":
            if not succeeded:
                self.become("open")
            elif len(self.ended) == self.probes:
                self.become("closed")
            return
        within = [good for at, good in self.ended if now - 10.0 < at]
        bad = within.count(False)
        if not succeeded and bad >= self.failures and bad >= self.ratio * len(within):
            self.become("open")

    @rule(succeeded=st.booleans())
    def end_late(self, succeeded: bool) -> None:
        """A call that began before the last change decides nothing."""
        if self.late:
            self.circuit.leave(self.late.pop(), succeeded)

    @rule(seconds=st.sampled_from([0.5, 2.0, 5.0, 10.0]))
    def wait(self, seconds: float) -> None:
        self.time.time += seconds
        if self.state == "open" and self.time.time >= self.since + 5.0:
            self.become("half_open")

    @invariant()
    def as_told(self) -> None:
        assert self.circuit.state == self.state


Account.TestCase.settings = settings(max_examples=200 if FULL else 40, stateful_step_count=40)
TestAccount = Account.TestCase


def test_few_failures_among_many_calls_do_not_open_it() -> None:
    made, _ = circuit(failures=3, failure_ratio=0.5)
    for _ in range(10):
        made.leave(made.enter(), succeeded=True)
    fail(made, 9)
    assert made.state == "closed"
    fail(made)
    assert made.state == "open"


def test_failures_are_forgotten_after_the_window() -> None:
    made, time = circuit(failures=3, window=10.0)
    fail(made, 2)
    time.time += 10.0
    fail(made, 2)
    assert made.state == "closed"
    fail(made)
    assert made.state == "open"


def test_no_success_opens_it() -> None:
    made, time = circuit(failures=2, failure_ratio=0.5, window=10.0)
    for _ in range(4):
        made.leave(made.enter(), succeeded=True)
    time.time += 9.0
    fail(made, 2)
    time.time += 1.0  # the successes are forgotten
    made.leave(made.enter(), succeeded=True)
    assert made.state == "closed"


def test_once_closed_it_counts_anew() -> None:
    made, time = circuit(failures=1, failure_ratio=1.0, reset_after=5.0)
    for _ in range(2):
        fail(made)
        assert made.state == "open"
        time.time += 5.0
        made.leave(made.enter(), succeeded=True)
        assert made.state == "closed"


def test_no_more_calls_are_probes_than_there_are_to_be() -> None:
    made, time = circuit(failures=1, reset_after=5.0, half_open_calls=2)
    fail(made)
    time.time += 5.0
    first, second = made.enter(), made.enter()
    made.leave(first, succeeded=True)
    with pytest.raises(CircuitOpenError):
        made.enter()
    made.leave(second, succeeded=True)
    assert made.state == "closed"


def test_a_probe_that_is_cancelled_makes_room_for_another() -> None:
    made, time = circuit(failures=1, reset_after=5.0)
    fail(made)
    time.time += 5.0
    made.leave(made.enter(), succeeded=None)
    assert made.state == "half_open"
    made.leave(made.enter(), succeeded=True)
    assert made.state == "closed"


def test_a_probe_that_hangs_makes_room_for_another() -> None:
    made, time = circuit(failures=1, reset_after=5.0)
    fail(made)
    time.time += 5.0
    hangs = made.enter()
    time.time += 4.0
    with pytest.raises(CircuitOpenError):
        made.enter()
    time.time += 1.0
    probe = made.enter()
    made.leave(hangs, succeeded=False)
    assert made.state == "half_open"
    made.leave(probe, succeeded=True)
    assert made.state == "closed"


def test_a_failure_that_comes_late_does_not_end_a_probe() -> None:
    made, time = circuit(failures=1, reset_after=5.0)
    slow = made.enter()
    fail(made)
    time.time += 5.0
    probe = made.enter()
    made.leave(slow, succeeded=False)
    assert made.state == "half_open"
    made.leave(probe, succeeded=True)
    assert made.state == "closed"


def test_each_change_is_measured(metrics: Measured) -> None:
    made, time = circuit(failures=1, reset_after=5.0)
    fail(made)
    with pytest.raises(CircuitOpenError, match="model 'm' is not called"):
        made.enter()
    time.time += 5.0
    made.leave(made.enter(), succeeded=True)
    what = {"adk_fluent.call": "model", "gen_ai.request.model": "m"}
    assert metrics.points == [
        ("adk_fluent.breaker.state", 2, what),
        ("adk_fluent.breaker.rejections", 1, what),
        ("adk_fluent.breaker.state", 1, what),
        ("adk_fluent.breaker.state", 0, what),
    ]


def test_threads_let_exactly_as_many_probes_through() -> None:
    made, time = circuit(failures=1, reset_after=5.0, half_open_calls=3)
    fail(made)
    time.time += 5.0
    together = threading.Barrier(8)

    def probe(_: int) -> bool:
        together.wait()
        try:
            made.enter()
        except CircuitOpenError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(probe, range(8))) == 3


def test_copies_share_the_circuits_and_those_that_were_pickled_do_not() -> None:
    breaker = circuit_breaker(failures=1)
    fail(breaker._circuit("model", "m"))
    assert copy.copy(breaker).state("m") == "open"
    assert pickle.loads(pickle.dumps(breaker)).state("m") == "closed"
    assert copy.deepcopy(breaker).state("m") == "closed"


def test_it_is_a_middleware() -> None:
    assert isinstance(CircuitBreakerMiddleware(), Middleware)
    assert CircuitBreakerMiddleware().state("gemini-2.5-flash") == "closed"


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"failures": 0}, "failures"),
        ({"failure_ratio": 1.5}, "failure_ratio"),
        ({"window": 0}, "window"),
        ({"reset_after": 0}, "reset_after"),
        ({"half_open_calls": 0}, "half_open_calls"),
        ({"tools": "search"}, "tools"),
    ],
)
def test_wrong_options_are_refused_where_they_are_given(options: Any, option: str) -> None:
    with pytest.raises(UsageError, match=rf"circuit_breaker\({option}=\.\.\.\)") as caught:
        CircuitBreakerMiddleware(**options)
    assert __file__ in str(caught.value)
