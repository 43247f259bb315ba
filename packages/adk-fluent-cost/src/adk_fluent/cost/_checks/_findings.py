"""The kinds of findings, with their codes."""

from __future__ import annotations

from adk_fluent.contracts import Diagnostic, Severity

_ERROR, _WARNING = Severity.ERROR, Severity.WARNING


class InvalidCandidatePrice(Diagnostic, code="CST001", severity=_ERROR):
    """A candidate's price is none, or off by orders of magnitude from the one that is known."""


class UnknownPrice(Diagnostic, code="CST002", severity=_ERROR):
    """A model is held to a budget, or its cost is counted, and nobody knows its price."""


class MissingBudget(Diagnostic, code="CST003", severity=_WARNING):
    """A model is chosen by what is left of a budget, and there is none."""


class UnboundedCost(Diagnostic, code="CST004", severity=_WARNING):
    """Nothing bounds how often models are called, nor what that costs."""


class UnreachableCandidate(Diagnostic, code="CST005", severity=_WARNING):
    """A candidate that is never asked, since another one takes each call before it."""


class DearFallback(Diagnostic, code="CST006", severity=_WARNING):
    """A fallback for want of money that is no cheaper, or that the budget has no room for."""


class SmallBudget(Diagnostic, code="CST007", severity=_WARNING):
    """A budget that not even one call of a model fits into."""
