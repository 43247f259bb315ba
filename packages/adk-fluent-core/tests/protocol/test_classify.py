from __future__ import annotations

import asyncio
import json
import math
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from adk_fluent.errors import BuildError, OutputInvalidError, RemoteError, StepTimeoutError
from adk_fluent.protocol import ErrorKind, classify, retry_after


class CodedError(Exception):
    """The shapes in which providers say their status."""

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        vars(self).update(fields)


class APIConnectionError(CodedError): ...  # litellm's carries a status of 500


class APIResponseValidationError(CodedError): ...


class NetworkError(Exception): ...


class ConnectError(NetworkError): ...  # httpx


class ClientPayloadError(Exception): ...  # aiohttp, when an answer breaks off


class Interrupt(BaseException): ...  # ADK's NodeInterruptedError


def wrapped(cause: BaseException) -> RuntimeError:
    error = RuntimeError("Error in plugin 'p' during 'before_model_callback' callback: x")
    error.__cause__ = cause
    return error


GROUP = BaseExceptionGroup("h", [wrapped(Interrupt())])


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        *((CodedError(code=status), "retriable") for status in (429, 500, 502, 503, 504, 529)),
        *((CodedError(code=status), "permanent") for status in (400, 401, 403, 404, 408, 501, 200)),
        (CodedError(status_code=503), "retriable"),
        (CodedError(code="rate_limited", status_code=429), "retriable"),
        (CodedError(response=SimpleNamespace(status_code=502)), "retriable"),
        (CodedError(code="503"), "permanent"),
        (CodedError(code=400, status_code=503), "permanent"),
        (CodedError(retriable=True, code=400), "retriable"),
        (CodedError(retriable=False, code=503), "permanent"),
        (CodedError(retriable="maybe", code=503), "retriable"),
        (APIConnectionError(status_code=500), "retriable"),
        (APIResponseValidationError(status_code=500), "permanent"),
        (ConnectError(), "retriable"),
        (ClientPayloadError(), "retriable"),
        (TimeoutError(), "retriable"),
        (ConnectionResetError(), "retriable"),
        (socket.gaierror(), "retriable"),
        (StepTimeoutError("slow", seconds=1), "retriable"),
        (RemoteError("down"), "retriable"),
        (RemoteError("refused", retriable=False), "permanent"),
        (FileNotFoundError(), "permanent"),
        (ValueError(), "permanent"),
        (BuildError("no"), "permanent"),
        (OutputInvalidError("no"), "permanent"),
        (asyncio.CancelledError(), "control"),
        (KeyboardInterrupt(), "control"),
        (GeneratorExit(), "control"),
        (SystemExit(), "control"),
        (Interrupt(), "control"),
        (wrapped(TimeoutError()), "retriable"),
        (wrapped(ValueError()), "permanent"),
        (wrapped(asyncio.CancelledError()), "control"),
        (ExceptionGroup("g", [TimeoutError(), CodedError(code=503)]), "retriable"),
        (ExceptionGroup("g", [TimeoutError(), ValueError()]), "permanent"),
        (BaseExceptionGroup("g", [ValueError(), GROUP]), "control"),
    ],
    ids=repr,
)
def test_classify(error: BaseException, kind: ErrorKind) -> None:
    assert classify(error) == kind


def test_groups_may_be_nested_deeply() -> None:
    inner: Exception = ValueError()
    for _ in range(20_000):
        inner = ExceptionGroup[Exception]("g", [inner])
    assert classify(inner) == "permanent"


class UnknownApiResponseError(ValueError): ...  # google-genai's, when it streams


def broken(text: str) -> list[Exception]:
    """What a client raises of a body that is no JSON."""
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads(text)
    other = UnknownApiResponseError("Failed to parse response as JSON.")
    other.__cause__ = caught.value
    return [caught.value, other]


BODY = '{"a": [1.5e+3, -2, "x\\u00e4\\n", true, null, {"b": false}]}'


@pytest.mark.parametrize("length", range(len(BODY)))
def test_json_that_was_cut_is_worth_another_try(length: int) -> None:
    assert [classify(each) for each in broken(BODY[:length])] == ["retriable"] * 2


@pytest.mark.parametrize(
    "text", ["<!DOCTYPE html><title>Error</title>", "upstream failed", '{"a": [{]}', "{} {}"]
)
def test_what_is_no_json_is_not(text: str) -> None:
    assert [classify(each) for each in broken(text)] == ["permanent"] * 2


def test_only_the_answer_of_a_service_is_asked_why_it_is_no_json() -> None:
    (error, _) = broken("[")
    other = ValueError("the settings cannot be read")
    other.__cause__ = error
    assert classify(other) == "permanent"


class RefusedError(Exception):
    code = 429

    def __init__(self, headers: Any = None, details: Any = None) -> None:
        self.response = SimpleNamespace(headers=headers or {})
        self.details = details


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (RefusedError({"retry-after": "7"}), 7.0),
        (RefusedError({"Retry-After": "Thu, 01 Jan 1970 00:01:10 GMT"}), 10.0),
        (RefusedError({"retry-after": "soon"}), None),
        (RefusedError({"retry-after": "Thu, 01 Jan 1970 00:01:10 -0000"}), 10.0),
        (RefusedError({"retry-after": "Thu, 01 Jan 1970 00:00:50 GMT"}), None),
        *((RefusedError({"retry-after": said}), None) for said in ("-1", "inf", "1e400", "nan")),
        (RefusedError({"retry-after": "soon"}, {"retryDelay": "3s"}), 3.0),
        (RefusedError([("retry-after", "7")]), None),
        (RefusedError({}, {"retryDelay": f"{'9' * 400}s"}), None),
        *((CodedError(retry_after=said), None) for said in (True, -5, math.nan, "7")),
        (CodedError(retry_after=0), 0.0),
        (RefusedError(details={"error": {"details": [{"x": 1}, {"retryDelay": "2.5s"}]}}), 2.5),
        (RefusedError(), None),
        (ValueError("7"), None),
    ],
)
def test_a_service_says_when_to_ask_again(error: Exception, seconds: float | None) -> None:
    assert retry_after(error, now=60.0) == seconds
