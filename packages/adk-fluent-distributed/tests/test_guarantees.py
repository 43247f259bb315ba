"""The table of guarantees: each row names tests, and they are there."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_each_guarantee_names_its_tests() -> None:
    page = (HERE.parent / "docs" / "guarantees.md").read_text("utf-8")
    known = {
        name
        for path in HERE.glob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    table = page.partition("| test |\n|---|---|---|\n")[2].partition("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    assert len(rows) > 20
    for what, *_, tests in rows:
        named = set(re.findall(r"`(\w+)`", tests))
        assert named, what
        assert named <= known, (what, named - known)
