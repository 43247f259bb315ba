"""The pages of mistakes in `golden/`: each program, and word for word what is printed about it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from . import absent, parallel, parts, scopes, sometimes, streams, typed, unread

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import ModuleType

    from ._mistake import Mistake

#: The mistakes of each page, by its name; the docstring of their module is its title.
PAGES: Final[Mapping[str, ModuleType]] = {
    f"state_{module.__name__.rpartition('.')[2]}": module
    for module in (absent, sometimes, typed, parallel, scopes, parts, unread, streams)
}
FOLDER: Final = Path(__file__).parent.with_name("golden")
_INTRODUCTION: Final = """\
Each program is a correct pipeline of `corpus/` with one thing wrong; names that it does not define
are those of its module there. It stands in a file `app.py`, and what is printed about it stands
below it. `python tests/contracts/write_golden.py` writes this page anew.
"""


def mistakes(page: str) -> Sequence[Mistake]:
    """The mistakes of a page."""
    return PAGES[page].MISTAKES


def written(page: str) -> str:
    """A page as the checks of today write it."""
    title = (PAGES[page].__doc__ or "").strip().removesuffix(".")
    sections = [
        f"## {each.title[0].upper()}{each.title[1:]}\n\n"
        f"```python\n{each.program}```\n\n```text\n{_printed(each)}\n```\n"
        for each in mistakes(page)
    ]
    return "\n".join((f"# {title}\n", _INTRODUCTION, "<!-- fmt: off -->\n", *sections))


def _printed(mistake: Mistake) -> str:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # places below it are relative
        try:
            return mistake.pipeline(Path.cwd()).check().render()
        finally:
            os.chdir(before)
