"""How much of the tests runs: few repetitions with fixed seeds, or all with ``--full``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

import busy

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
    import os

    import pytest
    from hypothesis import given
    from hypothesis import strategies as st

    drawn = []

    @given(st.integers())
    def test_property(number):
        drawn.append(number)

    def test_what_was_drawn():
        print("drawn:", len(drawn), drawn)

    @pytest.mark.full
    def test_long():
        print("long")

    def test_options_of_the_outer_run_do_not_reach_a_nested_one():
        assert "PYTEST_ADDOPTS" not in os.environ
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., str]:
    """Run the program beside a copy of the workspace's conftest and settings."""
    for name in ("conftest.py", "pyproject.toml"):
        (tmp_path / name).write_text((ROOT / name).read_text("utf-8"), "utf-8")
    (tmp_path / "test_program.py").write_text(dedent(PROGRAM), "utf-8")

    def run(*options: str, **variables: str) -> str:
        command = [sys.executable, "-m", "pytest", "-n0", "-s", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, *options, "test_program.py"],
            cwd=tmp_path,
            env=os.environ | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def drawn(printed: str) -> tuple[int, str]:
    found = re.search(r"drawn: (\d+) (.*)", printed)
    assert found is not None, printed
    return int(found[1]), found[2]


def test_two_runs_draw_the_same_and_another_seed_draws_others(run: Callable[..., str]) -> None:
    one, again = run(PYTEST_ADDOPTS="-v"), run(PYTHONHASHSEED="1")
    assert drawn(one) == drawn(again)
    assert drawn(one)[0] == 20
    assert "long" not in one
    assert "1 deselected" in one
    full = run("--full", "--seed", "7")
    assert drawn(full)[0] == 100
    assert drawn(full)[1].startswith(drawn(run("--seed", "7"))[1].rstrip("]"))
    assert not drawn(full)[1].startswith(drawn(one)[1].rstrip("]"))
    assert "long" in full
    assert "--seed 7 --full" in full


@pytest.mark.full
def test_a_run_that_fails_on_a_busy_machine_fails_the_script(tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    path.write_text("def test_it(): assert True", "utf-8")
    options = ["--runs", "1", "-n0", "-c", os.devnull, "-p", "no:cacheprovider", str(path)]
    assert busy.main(options) == 0
    path.write_text("def test_it(): assert False", "utf-8")
    assert busy.main(options) == 1
