"""The command line as it describes itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from textwrap import indent
from typing import TYPE_CHECKING, Final

from docs.entry import STEP, title
from docs.problems import DocsError

if TYPE_CHECKING:
    from pathlib import Path

_COMMAND: Final = re.compile(r"^  ([a-z][\w-]*)  ", re.MULTILINE)
_WIDTH: Final = {"COLUMNS": "80", "NO_COLOR": "1"}


def reference(path: Path) -> str:
    """Each command with its options, as reStructuredText: what ``--help`` prints.

    Args:
        path: Where the packages are imported from.

    Raises:
        DocsError: A command cannot say what it is.
    """
    help_ = _help(path)
    _, _, listed = help_.partition("Commands:\n")
    shown = {"": help_, **{name: _help(path, name) for name in _COMMAND.findall(listed)}}
    return "\n\n".join([title("Commands", "-"), *(_block(*each) for each in shown.items())])


def _block(name: str, text: str) -> str:
    head = f"adk-fluent {name}".strip()
    return f".. rubric:: {head}\n\n.. code-block:: text\n\n{indent(text, STEP)}"


def _help(path: Path, *command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", "from adk_fluent.cli import main; main()", *command, "--help"],
        check=False,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, **_WIDTH, "PYTHONPATH": str(path)},
    )
    if done.returncode:
        asked = " ".join(("adk-fluent", *command, "--help"))
        raise DocsError([f"{asked} failed: {done.stderr.strip()}"])
    return done.stdout.replace("Usage: -c", "Usage: adk-fluent")
