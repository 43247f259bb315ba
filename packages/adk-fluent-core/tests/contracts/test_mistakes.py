"""Realistic mistakes: each is found where it is made, and nothing else is found with it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from corpus import mixes
from mistakes import MISTAKES, Mistake

from adk_fluent import contracts
from adk_fluent.contracts import Severity

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.title)
def test_a_mistake_is_found_where_it_is_made(mistake: Mistake, tmp_path: Path) -> None:
    report = mistake.pipeline(tmp_path).check()
    told = [d for d in report if type(d).__name__ == mistake.finding]
    assert told, report.render()
    assert sorted({d.node for d in told}) == sorted({node for node, _ in mistake.at})
    for node, key in mistake.at:
        said = [(d.message, *(r.message for r in d.related)) for d in told if d.node == node]
        assert f"`{key}`" in str(said), report.render()
    assert all(mistake.help in (d.help or "") for d in told), report.render()
    kind = contracts.CODES[told[0].code].severity
    assert {str(d.severity) for d in told} == {mistake.severity or str(kind)}, report.render()
    # a key that is read by another name is not read by its own
    known = {mistake.finding, "DeadState"}
    bad = [d for d in report if d.severity >= Severity.WARNING]
    others = [d for d in bad if type(d).__name__ not in known]
    assert others == [], report.render()


def test_there_are_enough_of_them(tmp_path: Path) -> None:
    assert len(MISTAKES) >= 130
    assert len({mistake.title for mistake in MISTAKES}) == len(MISTAKES)
    assert len({mistake.program for mistake in MISTAKES}) == len(MISTAKES)
    assert sum(mixes(mistake.pipeline(tmp_path).to_ir()) for mistake in MISTAKES) >= 60


def test_every_kind_of_state_finding_has_a_mistake() -> None:
    kinds = {mistake.finding for mistake in MISTAKES}
    names = {code.name for code in contracts.CODES.values() if re.fullmatch("FLW00.", code.code)}
    assert names <= kinds
