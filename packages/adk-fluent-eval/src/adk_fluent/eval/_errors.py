"""The errors of evaluation.

Errors of pipelines, models and tools keep their own types.
"""

from __future__ import annotations

from typing import Unpack

from adk_fluent.errors import AdkFluentError, DataFileError, Details, UsageError


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


class EvalFileError(DataFileError):
    """A file of cases or results cannot be read or written.

    Cause: it is missing, broken, of a newer version, or the disk is full.
    Fix: correct the line or field that the message names.
    """

    code = "ADKF702"


class EvalFailedError(AdkFluentError, AssertionError):
    """A suite did not pass its gate.

    Cause: cases failed, could not be evaluated, or regressed against the baseline.
    Fix: the message names the cases and reasons; the report has the details.
    """

    code = "ADKF703"


for _each in (EvalError, EvalFailedError, EvalFileError, MetricUnavailableError):
    _each.__module__ = "adk_fluent.eval"  # where they are public
