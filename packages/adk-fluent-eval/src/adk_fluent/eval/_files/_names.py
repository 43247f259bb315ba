"""Names as ADK takes them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: The app that ADK's files name where nothing else is known.
APP_NAME: Final = "adk_fluent"

_OTHERS: Final = re.compile(r"[^a-zA-Z0-9_]+")


def set_id(name: str) -> str:
    """A suite's name as the id of an EvalSet: ADK takes Latin letters, digits and underscores."""
    return _OTHERS.sub("_", name).strip("_") or "suite"


def run_ids(ids: Iterable[str], runs: int) -> Iterator[tuple[str, int, str]]:
    """An id for each run of each case, as ADK knows no runs: the case's own for the first.

    Args:
        ids: The cases.
        runs: How often each is run.

    Yields:
        The case, the run counted from 1, and its id, such as ``case__run2``; no two are the same.
    """
    cases = list(ids)
    taken = set(cases)
    for case in cases:
        yield case, 1, case
        for run in range(2, runs + 1):
            name = f"{case}__run{run}"
            while name in taken:
                name += "_"
            taken.add(name)
            yield case, run, name
