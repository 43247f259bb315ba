"""Files of evaluation, and names for those of several suites."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar
from zlib import crc32

from adk_fluent.eval._errors import EvalFileError
from adk_fluent.extend import DataFile


class Source(DataFile):
    """A file of cases or results."""

    kind: ClassVar = EvalFileError
    wheel: ClassVar = "adk-fluent-eval"


def with_suite(path: str, suite: str) -> str:
    """Return ``run.<suite>.json`` for ``run.json``; the path itself without a suite.

    A name that a file cannot have gets a checksum, so that no two suites write one file.
    """
    if not suite:
        return path
    file = Path(path)
    safe = re.sub(r"[^A-Za-z0-9._-]+", "_", suite)[:80]
    if safe != suite:
        safe += f"-{crc32(suite.encode('utf-8', 'surrogatepass')):08x}"
    return str(file.with_name(f"{file.stem}.{safe}{file.suffix}"))
