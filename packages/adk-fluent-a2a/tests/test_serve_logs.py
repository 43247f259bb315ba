"""What a server logs of failures: a line, or a traceback where it is a bug."""

from __future__ import annotations

import logging
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from google.adk.sessions.database_session_service import DatabaseSessionService
from google.genai.errors import ClientError

from adk_fluent import Agent
from adk_fluent.errors import RemoteError, UsageError
from adk_fluent.serve._logs import log_failure

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.adk


def test_an_error_that_says_all_is_logged_as_a_line_and_a_bug_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    coded = RemoteError("the bank is away", node="pay", help="try again")
    for error in (coded, ValueError("a bug")):
        log_failure("a task failed", error)
    line, bug = caplog.records
    told = f"a task failed: RemoteError [{RemoteError.code}]: the bank is away (node 'pay'"
    assert line.getMessage().startswith(told)
    assert (line.exc_info, bug.getMessage()) == (None, "a task failed")
    assert bug.exc_info is not None
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "adk_fluent"):
        log_failure("a task failed", coded)
    assert caplog.records[0].exc_info is not None


class CodedError(Exception):
    code = 3


def of_a_tool() -> None:
    sqlite3.connect(":memory:").execute("SELEC 1")


def of_a_class_with_a_code() -> None:
    raise CodedError


def of_a_condition() -> None:
    try:
        {}["missing"]
    except KeyError as error:
        raise UsageError("the condition failed") from error


def that_is_late() -> None:
    raise TimeoutError


async def of_an_answer() -> None:
    await (Agent("a").mock("no number") @ int).run("hi")


def of_a_model() -> None:
    raise ClientError(404, {"error": {"message": "no such model"}})


async def of_a_store() -> None:
    async with DatabaseSessionService("sqlite+aiosqlite:///:memory:") as service:
        await service.list_sessions(app_name="a")
        async with service.db_engine.begin() as connection:
            await connection.exec_driver_sql("DROP TABLE sessions")
        await service.list_sessions(app_name="a")


async def raised(fails: Callable[[], Any]) -> Exception:
    try:
        if (waits := fails()) is not None:
            await waits
    except Exception as error:  # noqa: BLE001  # of any kind
        return error
    raise AssertionError


@pytest.mark.parametrize("fails", [of_a_tool, of_a_class_with_a_code, of_a_condition])
async def test_what_the_code_of_an_agent_did_wrong_is_logged_with_its_traceback(
    fails: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    log_failure("a task failed", await raised(fails))
    assert (caplog.messages, bool(caplog.records[0].exc_info)) == (["a task failed"], True)


@pytest.mark.parametrize("fails", [that_is_late, of_a_model, of_an_answer, of_a_store])
async def test_what_fails_by_the_world_is_logged_as_a_line(
    fails: Callable[[], Any], caplog: pytest.LogCaptureFixture
) -> None:
    log_failure("a task failed", await raised(fails))
    assert caplog.records[0].exc_info is None
    if fails in {that_is_late, of_a_model}:
        assert f"(at {__file__}:" in caplog.text
