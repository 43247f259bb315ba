"""Segments in processes of their own: a worker keeps some, and gives each one call at a time."""

from __future__ import annotations

import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from subprocess import PIPE, Popen
from typing import TYPE_CHECKING, Any, Final

from adk_fluent.distributed._call import SegmentResult
from adk_fluent.errors import UsageError
from adk_fluent.extend import describe

if TYPE_CHECKING:
    from adk_fluent.distributed._call import SegmentCall

_CHILD: Final = "adk_fluent.distributed._child_adk"
_MOST: Final = 256  # calls in processes at a time


@dataclass(frozen=True, slots=True)
class ProcessIsolation:
    """How an engine runs segments with ``isolation="process"``: each call in a process of its own.

    Attributes:
        target: What processes import: the pipeline, as ``path.py:attribute``, or
            ``module:attribute``; whatever ``adk-fluent worker`` takes.
        memory_mb: Memory that a process may take, in MiB; None is any. Linux alone holds it.
        timeout_seconds: Seconds that a call may take, with the start of its process where there is
            none yet; after that the process is killed. None is any.

    Raises:
        TargetError: The target is none.
        UsageError: Another value is none that it can be.
    """

    target: str
    memory_mb: int | None = None
    timeout_seconds: float | None = None

    def __post_init__(self) -> None:
        from adk_fluent.cli import Target  # noqa: PLC0415  # imports click

        target: Any = self.target
        if not isinstance(target, str):
            raise UsageError(
                "target= names a pipeline", found=describe(target), help="such as refunds.py:refund"
            )
        Target.parse(target)
        for name, most in (
            ("memory_mb", self.memory_mb),
            ("timeout_seconds", self.timeout_seconds),
        ):
            limit: Any = most
            kinds = int if name == "memory_mb" else int | float
            good = isinstance(limit, kinds) and not isinstance(limit, bool) and limit > 0
            if limit is not None and not good:
                kind = "whole number" if kinds is int else "number"
                raise UsageError(f"{name}= is a {kind} above 0", found=describe(limit))


class Processes:
    """Processes that run calls, kept for the next one where they end well.

    Args:
        isolation: What they import, and what they may take.
        url: The database of the engine.
        lease: Seconds without a sign of life after which one counts as dead on another machine.
    """

    def __init__(self, isolation: ProcessIsolation, url: str, *, lease: float) -> None:
        self._isolation = isolation
        self._url, self._lease = url, lease
        self._idle: list[Popen[bytes]] = []
        self._is_closed = False
        self._threads = ThreadPoolExecutor(_MOST, thread_name_prefix="adk-fluent-process")

    async def advance(self, call: SegmentCall) -> SegmentResult:
        """Run a call in a process; one that is killed, or dies, is an error of the call.

        Cancelling it kills the process.
        """
        process = self._free()
        loop, line = asyncio.get_running_loop(), json.dumps(call.to_dict()).encode() + b"\n"
        try:
            async with asyncio.timeout(self._isolation.timeout_seconds):
                told = await loop.run_in_executor(self._threads, _answer, process, line)
        except TimeoutError:
            _end(process)
            return _failed(call, f"took longer than {self._isolation.timeout_seconds:g} s")
        except BaseException:
            _end(process)
            raise
        if told is None:
            code = process.wait()
            _end(process)
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            return _failed(call, how)
        result = SegmentResult(**told)
        # after an error, such as for want of memory, what is left in it is not known
        if result.status == "failed" or self._is_closed:
            _end(process)
        else:
            self._idle.append(process)
        return result

    def close(self) -> None:
        """End the processes that run nothing; those that run a call end with it."""
        self._is_closed = True
        while self._idle:
            _end(self._idle.pop())
        self._threads.shutdown(wait=False)

    def _free(self) -> Popen[bytes]:
        while self._idle:
            process = self._idle.pop()
            if process.poll() is None:
                return process
            _end(process)  # it died while it ran nothing
        return self._started()

    def _started(self) -> Popen[bytes]:
        most = self._isolation.memory_mb or 0
        options = (self._isolation.target, str(self._lease), str(most))
        command = [sys.executable, "-m", _CHILD, *options]
        # in a group of its own: Ctrl-C is for the worker, which gives back what runs
        process = Popen(command, stdin=PIPE, stdout=PIPE, process_group=0)  # noqa: S603  # this Python
        assert process.stdin is not None  # noqa: S101  # a pipe
        process.stdin.write(f"{self._url}\n".encode())  # may hold a password: no argument
        return process


def _answer(process: Popen[bytes], line: bytes) -> dict[str, Any] | None:
    """What a process says of a call; None where it died."""
    assert process.stdin is not None  # noqa: S101  # both are pipes
    assert process.stdout is not None  # noqa: S101
    try:
        process.stdin.write(line)
        process.stdin.flush()
        answer = process.stdout.readline()
    except (OSError, ValueError):  # it was ended meanwhile
        return None
    return json.loads(answer) if answer.endswith(b"\n") else None


def _end(process: Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # what was not read any more
                pipe.close()


def _failed(call: SegmentCall, why: str) -> SegmentResult:
    error = {
        "type": "SegmentProcessError",
        "message": f"the process of segment {call.segment!r} {why}",
        "node": call.segment,
        "help": f"allow it more, or correct the cause; answer({call.run_id!r}) resumes the run",
    }
    return SegmentResult("failed", call.segment, error=error)
