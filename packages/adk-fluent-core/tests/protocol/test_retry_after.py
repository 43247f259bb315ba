"""What errors of services say about when to come back."""

from __future__ import annotations

from email.message import Message
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adk_fluent.protocol import retry_after

#: 2015-10-21 07:28:00 UTC.
THEN = 1445412480.0
INFO = "type.googleapis.com/google.rpc.RetryInfo"


class SaidError(Exception):
    """An error with the attributes of some client's."""

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        vars(self).update(fields)


class At:
    """A clock that stands still."""

    def __init__(self, now: float) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


def header(value: Any, name: Any = "Retry-After") -> SaidError:
    return SaidError(response=SimpleNamespace(headers={name: value}))


def details(*said: Any) -> SaidError:
    return SaidError(code=429, details={"error": {"code": 429, "details": list(said)}})


def caused(error: Exception, *causes: BaseException) -> Exception:
    at: BaseException = error
    for cause in causes:
        at.__cause__ = cause
        at = cause
    return error


def message(value: str) -> Message:
    made = Message()
    made["Retry-After"] = value
    return made


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (header("7"), 7.0),
        (header(" 0.5 "), 0.5),
        (header(7), 7.0),
        (header(b"7", b"retry-after"), 7.0),
        (header("7", "RETRY-AFTER"), 7.0),
        (header("0"), 0.0),
        (SaidError(response=SimpleNamespace(headers=MappingProxyType({"retry-after": "3"}))), 3.0),
        (SaidError(response=SimpleNamespace(headers=message("4"))), 4.0),
        (SaidError(response=None, headers={"Retry-After": "5"}), 5.0),  # aiohttp, urllib
        (SaidError(retry_after=2), 2.0),
        (SaidError(retry_after=2.5), 2.5),
        (details({"@type": INFO, "retryDelay": "3.5s"}), 3.5),
        (details({"@type": "x.QuotaFailure"}, {"@type": INFO, "retryDelay": "41s"}), 41.0),
        (details({"retryDelay": "1s"}), 1.0),
        (SaidError(details=[{"@type": INFO, "retryDelay": "2s"}]), 2.0),
        # nonsense in one place does not hide what another one says
        (
            SaidError(
                retry_after=-1,
                response=SimpleNamespace(headers={"Retry-After": "soon"}),
                details={"@type": INFO, "retryDelay": "9s"},
            ),
            9.0,
        ),
    ],
)
def test_seconds(error: Exception, seconds: float) -> None:
    assert retry_after(error) == seconds
    wrapped = RuntimeError("Error in plugin 'p' during 'before_model_callback' callback: x")
    assert retry_after(caused(wrapped, error)) == seconds
    assert retry_after(caused(ValueError(), KeyError(), error)) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "Wed, 21 Oct 2015 07:28:00 GMT",
        "Wed, 21 Oct 2015 07:28:00",
        "Wed, 21 Oct 2015 07:28:00 -0000",
        "Wed, 21 Oct 2015 09:28:00 +0200",
        "Wednesday, 21-Oct-15 07:28:00 GMT",
        "Wed Oct 21 07:28:00 2015",
    ],
)
def test_dates(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert retry_after(header(text), clock=At(THEN - 30)) == 30.0
    assert retry_after(header(text), clock=At(THEN + 30)) == 0.0
    monkeypatch.setattr("time.time", lambda: THEN - 12.0)
    assert retry_after(header(text)) == 12.0


class HostileError(Exception):
    """Everything that is asked of it fails."""

    def __getattribute__(self, name: str) -> Any:
        if name in {"retry_after", "response", "headers", "details"}:
            raise OSError(name)
        return super().__getattribute__(name)


class Broken:
    """A mapping that cannot be read."""

    def items(self) -> Any:
        raise ZeroDivisionError


def held_by_itself() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["details"] = [made, {"again": made}]
    return made


@pytest.mark.parametrize(
    "error",
    [
        ValueError("plain"),
        HostileError(),
        *(header(text) for text in ("", "soon", "-1", "nan", "inf", "1e400", "9" * 400, None, ())),
        header("Wed, 99 Oct 2015 07:28:00 GMT"),
        header("Wed, 21 Oct 99999999 07:28:00 GMT"),
        header("٣"),  # a digit, but none of HTTP's
        *(SaidError(retry_after=each) for each in (-1, float("nan"), float("inf"), True, "7")),
        SaidError(retry_after=10**400),
        *(SaidError(response=each) for each in (1, "x", {}, {"headers": {"Retry-After": "1"}})),
        *(SaidError(response=SimpleNamespace(headers=each)) for each in (1, "x", Broken(), ())),
        *(
            details({"@type": INFO, "retryDelay": each})
            for each in ("-1s", "1", "s", "1m", 3, None)
        ),
        details({"@type": INFO, "retryDelay": "9" * 400 + "s"}),
        details({"@type": "x.Other", "retryDelay": "1s"}),
        details({"@type": INFO}),
        SaidError(details=held_by_itself()),
        SaidError(details="not json"),
    ],
)
def test_nothing_that_makes_sense(error: Exception) -> None:
    assert retry_after(error) is None


def test_what_an_error_says_comes_before_what_its_cause_says() -> None:
    assert retry_after(caused(header("1"), header("2"))) == 1.0
    assert retry_after(caused(HostileError(), header("2"))) == 2.0


def test_only_what_an_error_was_raised_from_counts() -> None:
    error = ValueError()
    error.__context__ = header("2")  # something else that was being handled
    assert retry_after(error) is None


def test_causes_in_a_circle() -> None:
    one, two = ValueError(), ValueError()
    one.__cause__, two.__cause__ = two, one
    assert retry_after(one) is None


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.sampled_from(["retryDelay", "@type", "Retry-After", "x"]), inner)
    ),
)


@given(said=VALUES, headers=VALUES, found=VALUES)
def test_whatever_the_shape_it_is_no_failure(said: Any, headers: Any, found: Any) -> None:
    response = SimpleNamespace(headers=headers)
    seconds = retry_after(SaidError(retry_after=said, response=response, details=found))
    assert seconds is None or 0 <= seconds < float("inf")
