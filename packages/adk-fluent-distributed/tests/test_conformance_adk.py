"""Boundaries at random steps do not show: the programs of conformance give what they should."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from segmented import CutBackend

from adk_fluent.backends.adk import ADKBackend
from adk_fluent.testing import conformance

if TYPE_CHECKING:
    from adk_fluent.protocol import Backend

pytestmark = [pytest.mark.adk, pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")]

TestCut = conformance.as_pytest(
    lambda: replace(
        conformance.adk_subject(),
        name="segments",
        backend=lambda: CutBackend(ADKBackend()),
        reopen=_reopen,
    )
)


def _reopen(backend: Backend[object]) -> CutBackend:
    assert isinstance(backend, CutBackend)
    return CutBackend(ADKBackend(backend.adk.session_service))
