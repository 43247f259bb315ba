"""Data flow through transfers: what they lead to runs where they stand."""

from __future__ import annotations

import pytest

from adk_fluent import Agent, S, transfer
from adk_fluent.contracts import ReadRace, check_all


def test_a_transfer_runs_beside_the_branch_it_leads_into() -> None:
    drop = S.drop("k").named("drop")
    first = drop >> Agent("a").writes("k") >> Agent("b").reads("k")
    report = check_all((first | transfer("drop")) >> Agent("c"))
    [race] = [each for each in report if isinstance(each, ReadRace)]
    assert (race.node, race.message) == (
        "b",
        "`b` reads `k` while `drop` removes it: they run at the same time",
    )


@pytest.mark.parametrize("name", ["other", "drop"])
def test_a_transfer_out_of_a_transfer_does_so_as_well(name: str) -> None:
    drop = S.drop("k").named("drop")
    other = (Agent("d") >> transfer("drop")).named("other")
    first = drop >> Agent("a").writes("k") >> Agent("b").reads("k")
    report = check_all((first | transfer(name)) >> other)
    assert any(isinstance(each, ReadRace) and each.node == "b" for each in report)


def test_a_transfer_beside_the_branches_does_not() -> None:
    drop = S.drop("k").named("drop")
    first = drop >> Agent("a").writes("k") >> Agent("b").reads("k")
    report = check_all((first | Agent("e").writes("k")) >> transfer("drop"))
    assert not any(isinstance(each, ReadRace) for each in report)
