"""Running what is planned, and keeping what is done whatever ends it."""

from __future__ import annotations

import sys
import time
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from adk_fluent.cli._keys import credentials, no_key, require_credentials
from adk_fluent.cli._versions import installed
from adk_fluent.eval._cli._summary import met
from adk_fluent.eval._outcome import Status
from adk_fluent.eval._report._report import FluentEvalReport
from adk_fluent.ir import Node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from adk_fluent.eval._cli._interrupts import Interrupts
    from adk_fluent.eval._cli._plan import Unit
    from adk_fluent.eval._cli._progress import Silent
    from adk_fluent.eval._outcome import CaseOutcome
    from adk_fluent.eval._running._progress import Progress

#: Errors of clients of models, and of what carries their calls.
_OF_SERVICES: Final = frozenset(
    (
        *("APIConnectionError", "APIError", "APIStatusError", "APITimeoutError"),
        *("AuthenticationError", "BadGatewayError", "ClientConnectorError", "ClientError"),
        *("ConnectError", "ConnectTimeout", "ConnectionError", "ConnectionRefusedError"),
        *("ConnectionResetError", "CredentialsError", "DefaultCredentialsError"),
        *("InternalServerError", "NoAnswerError", "PermissionDeniedError", "PoolTimeout"),
        *("RateLimitError", "ReadError", "ReadTimeout", "RefreshError", "RemoteProtocolError"),
        *("SSLError", "ServerError", "ServiceUnavailableError", "TransportError", "gaierror"),
    )
)


@dataclass(slots=True)
class Result:
    """What became of what was planned.

    Attributes:
        reports: Units that were run, in order, with what they came to.
        error: What ended it before its end; None for nothing.
        interrupted: Whether the person did.
    """

    reports: list[tuple[Unit, FluentEvalReport]] = field(
        default_factory=list["tuple[Unit, FluentEvalReport]"]
    )
    error: BaseException | None = None
    interrupted: bool = False


def check(units: Iterable[Unit]) -> None:
    """Look at everything that is named before any model is called.

    Raises:
        AdkFluentError: Something is not there, or there is no key.
    """
    for unit in units:
        with redirect_stdout(sys.stderr):
            unit.suite.check(**unit.options)
        _check_key(unit)


class Session:
    """The units of one call, run one after the other until all are done or something ends it.

    Args:
        units: What is planned.
        interrupts: Runs each.
        display: Shows how far it is.

    Attributes:
        result: What became of it.
    """

    def __init__(self, units: Iterable[Unit], interrupts: Interrupts, display: Silent) -> None:
        self.result = Result()
        self._units = units
        self._interrupts = interrupts
        self._display = display
        self._current: _Current | None = None

    def run(self) -> Result:
        """Run everything."""
        for unit in self._units:
            if self._interrupts.happened:  # too late for the one before
                self.result.interrupted = True
                break
            if not self._run(unit):
                break
        return self.result

    def so_far(self) -> Result:
        """What is done by now, of a run that does not end; may be called by another thread."""
        reports = list(self.result.reports)
        current = self._current
        if current is not None and current.done and len(reports) == current.number:
            reports.append((current.unit, current.report()))
        return Result(reports, interrupted=True)

    def _run(self, unit: Unit) -> bool:
        """Run one, and tell whether there is reason to go on."""
        from asyncio import CancelledError  # noqa: PLC0415  # slow to import, and not of --help

        result = self.result
        current = self._current = _Current(unit, len(result.reports))
        self._display.begin(unit.title)
        try:
            report = self._report(current)
        except BaseException as error:  # noqa: BLE001  # raised when what is done is written
            ended = self._interrupts.happened and isinstance(error, CancelledError)
            result.interrupted, result.error = ended, None if ended else error
            if current.done:
                result.reports.append((unit, current.report()))
            return False
        finally:
            self._display.end()
        result.reports.append((unit, report))
        return met(report) or not unit.options.get("fail_fast")

    def _report(self, current: _Current) -> FluentEvalReport:
        def tell(progress: Progress) -> None:
            current.done.append(progress.outcome)
            self._display.tell(progress)

        options = current.unit.options.copy()
        options["progress"] = tell
        with redirect_stdout(sys.stderr):  # what tools print is no result
            return self._interrupts.run(current.unit.suite.run(**options))


@dataclass(slots=True)
class _Current:
    """The unit that is being run, and what is done of it."""

    unit: Unit
    number: int
    done: list[CaseOutcome] = field(default_factory=list["CaseOutcome"])
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    clock: float = field(default_factory=time.monotonic)

    def report(self) -> FluentEvalReport:
        """A report of what is done."""
        suite, options = self.unit.suite, self.unit.options
        engine = options.get("engine", "auto")
        return FluentEvalReport(
            list(self.done),
            suite=suite.name,
            gate=suite.gate,
            metrics=suite.metrics,
            engine="light" if engine == "auto" else engine,
            adk_version=installed("google-adk") or "",
            started_at=self.began,
            duration_s=time.monotonic() - self.clock,
            interrupted=True,
            baseline=options.get("baseline"),
            model=self.unit.model or "",
            cases=suite.cases,
            shard=options.get("shard"),
        )


def nothing_reached(reports: Iterable[FluentEvalReport]) -> bool:
    """Whether all runs came to nothing because of services."""
    counting = [each for report in reports for each in report.outcomes if each.status.counts]
    return bool(counting) and all(
        each.status is Status.ERROR and (each.error or "").partition(":")[0] in _OF_SERVICES
        for each in counting
    )


def _check_key(unit: Unit) -> None:
    """Stop where Gemini would be asked without a key, once for each case.

    Raises:
        CredentialsError: There is none.
    """
    if unit.options.get("cache") is not None:
        return  # which may have all answers
    if unit.model is not None:
        if unit.model.startswith("gemini") and credentials() is None:
            raise no_key(f"--model {unit.model} is Gemini", "name another model")
        return
    pipeline = unit.suite.pipeline
    root = pipeline.to_ir() if hasattr(pipeline, "to_ir") else pipeline
    if isinstance(root, Node) and any(case.target_node is None for case in unit.suite.cases):
        require_credentials(root)
