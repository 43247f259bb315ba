"""How fast it is, beside ADK by hand and beside the monolith ``adk-fluent`` 0.18.0.

Run it with ``uv run python -m tools.bench`` or ``python tools/bench``.
"""

from __future__ import annotations
