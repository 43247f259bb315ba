"""What evaluation raises by itself; errors of pipelines, models and tools stay what they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from adk_fluent.errors import AdkFluentError, BuildError, Details, UsageError

if TYPE_CHECKING:
    from typing import Unpack


class EvalError(UsageError):
    """A suite, a case or a metric as written has no meaning; no model was called.

    Cause: an unknown tool, step or tag, an empty suite, two cases with one id, a threshold that is
    no number, and the like.
    Fix: change what the message names.
    """

    code = "ADKF700"


class MetricUnavailableError(EvalError, NotImplementedError):
    """A metric was asked for that cannot be computed here; no model was called.

    Cause: it needs an extra, Google Cloud, a judge model, or a newer google-adk.
    Fix: do what the help line says, or leave the metric out.

    Attributes:
        metric: The metric's name.
    """

    code = "ADKF701"

    def __init__(self, what: str, *, metric: str, **details: Unpack[Details]) -> None:
        self.metric = metric
        super().__init__(what, **details)


class EvalFileError(BuildError, OSError):
    """A file of cases, of results or of a journal cannot be read or written.

    Cause: it is not there, broken, of a newer version, or the disk is full.
    Fix: mend the line or the field that the message names.

    Attributes:
        path: The file.
        line: The line, counted from 1; None where none is to blame.
        field: The field, as ``cases[3].input``; empty where none is to blame.
    """

    code = "ADKF702"

    def __init__(
        self,
        what: str,
        *,
        path: str,
        line: int | None = None,
        field: str = "",
        **details: Unpack[Details],
    ) -> None:
        self.path = path
        self.line = line
        self.field = field
        place = f"{path}:{line}" if line else path
        details.setdefault("location", f"{place} ({field})" if field else place)
        super().__init__(what, **details)


class EvalFailedError(AdkFluentError, AssertionError):
    """A suite did not pass its gate.

    Cause: cases failed, could not be evaluated, or got worse than the baseline.
    Fix: the message names the cases and why; the report has all of it.
    """

    code = "ADKF703"


for _each in (EvalError, EvalFailedError, EvalFileError, MetricUnavailableError):
    _each.__module__ = "adk_fluent.eval"  # where they are public
