"""``adk-fluent run --cost``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from adk_fluent.cost._attribution import CostAttributionMiddleware
from adk_fluent.cost._report import CostReport

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adk_fluent.protocol import AnyMiddleware


class CostOption:
    """Collects what the model calls of a command cost, and prints it at its end."""

    def __init__(self) -> None:
        self._report = CostReport()
        self._costs = CostAttributionMiddleware(on_record=self._report.add)

    @property
    def middlewares(self) -> Sequence[AnyMiddleware]:
        """What stands around each run."""
        return (self._costs,)

    def report(self, *, as_json: bool) -> str:
        """Return what was spent, as a line of JSON or as Markdown."""
        if as_json:
            return json.dumps({"cost": self._report.to_dict()})
        return f"\nCost: {self._report.to_markdown()}"
