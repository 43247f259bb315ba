"""What a pipeline would do, without doing any of it: checks, steps, model calls, state keys.

Example:
    >>> print(dry_run(Agent("draft") >> Agent("review")))
"""

from __future__ import annotations

from adk_fluent.backends.dry_run._backend import DryRunBackend, dry_run
from adk_fluent.backends.dry_run._count import Count
from adk_fluent.backends.dry_run._report import DryRun, Step

__all__ = ["Count", "DryRun", "DryRunBackend", "Step", "dry_run"]
