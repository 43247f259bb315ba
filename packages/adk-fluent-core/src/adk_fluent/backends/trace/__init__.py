"""What happened in a run, as a table: steps, times, tokens, changes of state, errors.

Example:
    >>> with Trace() as trace:
    ...     await pipeline.run("hello", listeners=[trace])
    >>> print(trace)
"""

from __future__ import annotations

from adk_fluent.backends.trace._rows import Change, Row
from adk_fluent.backends.trace._trace import Trace, trace

__all__ = ["Change", "Row", "Trace", "trace"]
