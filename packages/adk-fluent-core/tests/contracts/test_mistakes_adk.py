"""Realistic mistakes, run on ADK without a check before it: what is found is no false alarm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from corpus.play_adk import play
from mistakes import MISTAKES, Mistake

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings("ignore:.EXPERIMENTAL")]

#: What has no value when it is read.
_ABSENT: Final = ("ReadBeforeWrite", "ReadRace", "ScopeMismatch")
_FAILING: Final = [each for each in MISTAKES if each.finding in _ABSENT and not each.silent]


@pytest.mark.parametrize("mistake", _FAILING, ids=lambda mistake: mistake.title)
async def test_a_key_that_is_absent_stops_the_run(mistake: Mistake, tmp_path: Path) -> None:
    with pytest.raises(KeyError) as caught:
        await play(mistake.case, mistake.pipeline(tmp_path), contracts="off")
    assert any(key in str(caught.value) for _, key in mistake.at)


def test_most_of_them_fail() -> None:
    assert len(_FAILING) >= 35
