"""Errors, delays, cut streams and cancellations at random: every built-in keeps its promise.

There are 40 random pipelines, or 300 with ``--full``, each run three times. Every 20th is over
ADK's own Gemini and real HTTP.
"""

from __future__ import annotations

import random

import pytest
from faults import RULES, cuts_off, once, passes_on
from kit import NAMES

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),  # ADK 1.x says so
]


FEW, MANY = 40, 300
#: Those that are to be seen at work; the others let everything by unless something takes long.
BUSY = {name for name, _, promise in RULES if promise not in (passes_on, cuts_off)}


def test_every_built_in_has_promised_something() -> None:
    assert {name for name, _, _ in RULES} == set(NAMES)


async def test_every_built_in_keeps_its_promise(pytestconfig: pytest.Config) -> None:
    option = pytestconfig.option
    seed, runs = option.seed, option.examples or (MANY if option.full else FEW)
    seen: set[str] = set()
    for run in range(runs):
        try:
            rng = random.Random(f"{seed} {run}")
            seen |= await once(rng, emulated=run % 20 == 0)
        except AssertionError as error:
            error.add_note(f"run {run} of --seed {seed}")
            raise
    if runs >= 150:
        assert seen >= BUSY, f"never at work: {BUSY - seen}"
