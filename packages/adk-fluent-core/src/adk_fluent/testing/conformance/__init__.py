"""Does a backend run pipelines as they are meant? Several hundred small programs that tell.

For a backend of your own, in a file of tests::

    from adk_fluent.testing import conformance

    subject = conformance.Subject(name="mine", backend=MyBackend)
    TestMine = conformance.as_pytest(subject)

Each `Program` says what is expected of it as data, independent of any engine: state, answer, the
order of calls, events, and errors. Agents bring their scripts along (``Agent.mock``), so nothing
needs a key or a network. A capability that a backend lacks is declared with a reason, and what asks
for it has to be refused with an `AdkFluentError`.
"""

from __future__ import annotations

from adk_fluent.testing.conformance._bench import Bench
from adk_fluent.testing.conformance._case import case
from adk_fluent.testing.conformance._check import Difference, check
from adk_fluent.testing.conformance._order import Beside, Order, beside
from adk_fluent.testing.conformance._program import Expected, Program, Raised, Turn, Way
from adk_fluent.testing.conformance._programs import programs
from adk_fluent.testing.conformance._subject import CAPABILITIES, Status, Subject, never, not_yet
from adk_fluent.testing.conformance._subjects import (
    ADK_LACKS,
    MOCK_LACKS,
    adk_subject,
    mock_subject,
)
from adk_fluent.testing.conformance._suite import as_pytest
from adk_fluent.testing.conformance._table import capability_table

__all__ = [
    "ADK_LACKS",
    "CAPABILITIES",
    "MOCK_LACKS",
    "Bench",
    "Beside",
    "Difference",
    "Expected",
    "Order",
    "Program",
    "Raised",
    "Status",
    "Subject",
    "Turn",
    "Way",
    "adk_subject",
    "as_pytest",
    "beside",
    "capability_table",
    "case",
    "check",
    "mock_subject",
    "never",
    "not_yet",
    "programs",
]
