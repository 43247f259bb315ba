"""The threat model names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs/threats.md"


def test_each_claim_of_the_threat_model_names_tests_that_exist() -> None:
    defined = {
        name
        for path in HERE.glob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
    }
    named: set[str] = set()
    claims = re.findall(r"^\| (?!threat|-).*\|.*\| (.*) \|$", _claims(), re.MULTILINE)
    for claim in claims:
        tests = re.findall(r"`(test_\w+)`", claim)
        assert tests, claim
        named.update(tests)
    assert len(claims) > 20
    assert named <= defined


def _claims() -> str:
    """The tables with a column of tests."""
    return "\n".join(
        re.findall(r"^\| threat \|[^\n]*\n(?:\|[^\n]*\n)+", PAGE.read_text("utf-8"), re.MULTILINE)
    )
