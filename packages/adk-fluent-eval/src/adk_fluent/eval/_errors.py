"""The errors of evaluation; errors of pipelines, models and tools keep their own types."""

from __future__ import annotations

from typing import Unpack

from adk_fluent.errors import AdkFluentError, BuildError, Details, UsageError


class EvalError(UsageError):
    """A suite, case or metric is invalid; no model was called.

    Cause: an unknown tool, step or tag, an empty suite, two cases with one id, a threshold that is
    not a number, and the like.
    Fix: change what the message names.
    """

    code = "ADKF700"


class MetricUnavailableError(EvalError, NotImplementedError):
    """A metric cannot be computed here; no model was called.

    Cause: the metric needs a judge model, google-adk's extra, a newer google-adk, or Google Cloud.
    Fix: follow the help line, or leave the metric out.

    Attributes:
        metric: The metric's name.
    """

    code = "ADKF701"

    def __init__(self, what: str, *, metric: str, **details: Unpack[Details]) -> None:
        self.metric = metric
        super().__init__(what, **details)


class EvalFileError(BuildError, OSError):
    """A file of cases or results cannot be read or written.

    Cause: it is missing, broken, of a newer version, or the disk is full.
    Fix: correct the line or field that the message names.

    Attributes:
        path: The file.
        line: The line, counted from 1; None if unknown.
        field: The field, as ``cases[3].input``; empty if unknown.
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

    Cause: cases failed, could not be evaluated, or regressed against the baseline.
    Fix: the message names the cases and reasons; the report has the details.
    """

    code = "ADKF703"


for _each in (EvalError, EvalFailedError, EvalFileError, MetricUnavailableError):
    _each.__module__ = "adk_fluent.eval"  # where they are public
