"""A Ctrl-C that comes while nothing runs, between two suites."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time

import pytest

from adk_fluent.eval._cli._interrupts import Interrupts


@pytest.mark.skipif(sys.platform == "win32", reason="it ends a process of Windows'")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_between_two_runs_lets_the_next_not_begin(number: signal.Signals) -> None:
    began: list[str] = []

    async def work(name: str) -> str:
        began.append(name)
        return name

    with Interrupts() as interrupts:
        assert interrupts.run(work("first")) == "first"
        os.kill(os.getpid(), number)
        for _ in range(600):
            if interrupts.happened:
                break
            time.sleep(0.05)
        assert interrupts.happened
        with pytest.raises(asyncio.CancelledError):
            interrupts.run(work("second"))
    assert began == ["first"]
    assert interrupts.code == 128 + number
