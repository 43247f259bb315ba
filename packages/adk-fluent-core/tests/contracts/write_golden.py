"""Writes the pages of mistakes in `golden/` anew: ``python tests/contracts/write_golden.py``.

Read what changes: a test holds that the pages are current, and nobody else reads what they say.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

if __name__ == "__main__":
    shared = runpy.run_path(str(Path(__file__).with_name("conftest.py")))
    from mistakes import _pages

    with pytest.MonkeyPatch.context() as patch:
        shared["hide_layers"](patch)
        for page in _pages.PAGES:
            _pages.FOLDER.joinpath(f"{page}.md").write_text(_pages.written(page), "utf-8")
