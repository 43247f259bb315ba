"""Data flow through transfers: what they lead to runs where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from adk_fluent import Agent, S, transfer
from adk_fluent.contracts import ReadRace, check_all
from adk_fluent.ir import StateFieldRef

if TYPE_CHECKING:
    from adk_fluent.builders import Builder


def found(pipeline: Builder) -> list[tuple[str, str]]:
    """The findings, as their names and nodes."""
    return [(type(each).__name__, each.node) for each in check_all(pipeline)]


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


class TestToNowhere:
    """A transfer whose target is misspelt hides no finding that does not depend on it."""

    #: What each pipeline is found to be beside what is wrong in it.
    lost = ("UnknownTransferTarget", "t")

    def test_what_is_wrong_before_it_is_found(self) -> None:
        first = Agent("a").reads("k") >> Agent("b").writes("n")
        pipeline = first >> transfer("bb", name="t") >> Agent("c").reads("n")
        assert found(pipeline) == [("ReadBeforeWrite", "a"), self.lost]

    def test_what_is_wrong_beside_it_is_found(self) -> None:
        many = Agent("a").writes("k") | Agent("b").writes("k") | transfer("bb", name="t")
        assert found(many) == [self.lost, ("WriteRace", "parallel")]

    def test_what_it_may_write_is_no_finding(self) -> None:
        ref = StateFieldRef("n", float)
        first = Agent("a").writes("n") >> transfer("bb", name="t")
        second = Agent("c").reads("k") >> Agent("d").reads(ref) >> Agent("b").writes("k")
        assert found(first >> second) == [self.lost]

    def test_what_is_written_may_be_read_by_it(self) -> None:
        pipeline = Agent("a").writes("k") >> transfer("bb", name="t") >> Agent("b")
        assert found(pipeline) == [self.lost]
        assert [each.node for each in check_all(pipeline).opaque] == ["t"]

    def test_one_in_a_loop_may_write_for_the_next_round(self) -> None:
        body = Agent("a").reads("k") >> transfer("bb", name="t")
        assert found((body * 2) >> Agent("b").reads("k")) == [self.lost]
