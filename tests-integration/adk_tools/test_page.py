"""The page ``adk-tools.md``: the file it shows, and the conversation it shows of it.

`test_docs.py` does the rest of the page, and passes over blocks below ``<!-- adk -->``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from adk_commands import Adk

pytestmark = pytest.mark.adk

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "packages" / "adk-fluent-core" / "docs" / "adk-tools.md"


def test_the_conversation_happens_as_shown(adk: Adk, tmp_path: Path) -> None:
    page = PAGE.read_text("utf-8")
    ((name, code),) = re.findall(r"<!-- file: (.+) -->\n```python\n(.+?)```\n", page, re.DOTALL)
    (shown,) = re.findall(r"<!-- adk -->\n```console\n(.+?)```\n", page, re.DOTALL)
    command, *conversation = shown.splitlines()
    file = tmp_path / name
    assert command == f"$ adk run {file.parent.name}"
    file.parent.mkdir()
    file.write_text(code, "utf-8")
    *typed, last = (line[8:] for line in conversation if line.startswith("[user]: "))
    assert last == "exit"
    assert adk.talk(file.parent, *typed) == conversation
