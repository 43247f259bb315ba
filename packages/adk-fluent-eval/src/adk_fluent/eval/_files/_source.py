"""Files of evaluation."""

from __future__ import annotations

from typing import ClassVar

from adk_fluent.eval._errors import EvalFileError
from adk_fluent.extend import DataFile


class Source(DataFile):
    """A file of cases or results."""

    kind: ClassVar = EvalFileError
    wheel: ClassVar = "adk-fluent-eval"
