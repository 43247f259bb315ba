"""Fixtures of all tests here."""

from __future__ import annotations

from typing import Any

import pytest


class Measured(list[tuple[str, float, dict[str, str]]]):
    """What was measured: name, value, attributes."""

    def __call__(self, name: str, **attributes: str) -> float:
        """The sum of a metric, of the points with these attributes (dots written as ``__``)."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        return sum(v for n, v, a in self if n == name and wanted.items() <= a.items())


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> Measured:
    """The metrics of a test, as they are handed to OpenTelemetry."""
    from adk_fluent.cost import _telemetry

    points = Measured()

    class Noted:
        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self, value: float, attributes: Any = None) -> None:
            points.append((self.name, value, dict(attributes or {})))

    monkeypatch.setattr(_telemetry, "_instrument", Noted)
    return points
