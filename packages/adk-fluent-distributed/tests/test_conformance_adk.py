"""Boundaries at random steps do not show: the programs of conformance give what they should.

Some 30 programs, one of 20, where one process serves all segments; with ``--full`` all of them,
there and where each segment has a worker of its own. Those of `DIFFERENT` are left out: what
docs/guarantees.md says of boundaries shows in them.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from segmented import CutBackend

from adk_fluent.backends.adk import ADKBackend
from adk_fluent.testing import conformance

if TYPE_CHECKING:
    from adk_fluent.protocol import Backend
    from adk_fluent.testing.conformance import Program

pytestmark = [
    pytest.mark.adk,
    pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning"),
]
FEW = 20

#: Where branches of different segments run one after the other, and here they wait for each other.
APART = (
    "cancelled/",
    "timed out/(parallel|map_over)",
    "nested/.* in (parallel|map_over)$",
    "nested/parallel in ",
    "failing/.* in parallel$",
    "map_over/an item that fails does not end it",
    "parallel/(a reducer merges in declared|the first failure|branches wait|answers stand)",
    "history/branches see",
    "transform/what was there already",
    "(long-running tool|confirmation)/in two branches",
    "resumed/two gates beside each other",
)
DIFFERENT = {
    "errors of attempts before a boundary are kept as text": (
        "failing/.* in last fallback",
        "fallback/when all fail the last error",
    ),
    "max_llm_calls counts the calls of one segment": ("model calls/",),
    "temp: never crosses": ("state/a temporary key",),
    "each of very many hops reads the session": (
        "map_over/a thousand items",
        "together/two hundred steps",
    ),
}
SAME = [
    each
    for each in conformance.programs()
    if not any(re.match(pattern, str(each)) for group in DIFFERENT.values() for pattern in group)
]


BESIDE = [each for each in SAME if any(re.match(pattern, str(each)) for pattern in APART)]
ALONE = [each for each in SAME if each not in BESIDE]


def subject(*, together: bool = True) -> conformance.Subject:
    return replace(
        conformance.adk_subject(),
        name="segments",
        backend=lambda: CutBackend(ADKBackend(), together=together),
        reopen=_reopen,
    )


def _reopen(backend: Backend[object]) -> CutBackend:
    assert isinstance(backend, CutBackend)
    return CutBackend(ADKBackend(backend.adk.session_service), together=backend.together)


@pytest.mark.parametrize("program", [*ALONE[::FEW], *BESIDE[::FEW]], ids=str)
def test_boundaries_do_not_show(program: Program) -> None:
    found = asyncio.run(conformance.check(program, subject()))
    assert not found, "\n".join(map(str, found))


@pytest.mark.full
@pytest.mark.parametrize("program", ALONE, ids=str)
def test_boundaries_between_workers_do_not_show(program: Program) -> None:
    found = asyncio.run(conformance.check(program, subject(together=False)))
    assert not found, "\n".join(map(str, found))


@pytest.mark.full
@pytest.mark.parametrize(
    "program",
    [each for some in (ALONE, BESIDE) for at, each in enumerate(some) if at % FEW],
    ids=str,
)
def test_boundaries_do_not_show_in_any_program(program: Program) -> None:
    test_boundaries_do_not_show(program)


async def test_programs_are_cut() -> None:
    """The programs that run by default cross boundaries, each more than once on average."""
    backends: list[CutBackend] = []

    def counted() -> CutBackend:
        backends.append(CutBackend(ADKBackend()))
        return backends[-1]

    sample = SAME[::FEW][:10]
    for program in sample:
        await conformance.check(program, replace(subject(), backend=counted))
    assert sum(each.hops for each in backends) >= len(sample)
